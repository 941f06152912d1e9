// TensorProto messages, read through protozero.
#include "engine/records/tensor_message.h"

#include "engine/records/reader.h"

namespace oncilla {
namespace {

using records::Fixed32;
using records::Fixed64;
using records::Number;
using records::Reader;
using records::View;

Status Damaged() { return InvalidArgument("it is not a TensorProto message"); }

void ReadShape(std::string_view bytes, TensorHeader& out) {
  Reader shape(bytes.data(), bytes.size());
  while (shape.next()) {
    if (shape.tag() == 3) {
      out.unknown_rank = Number(shape) != 0;
    } else if (shape.tag() == 2) {
      int64_t size = 0;  // a size of zero is not encoded
      const std::string_view view = View(shape);
      Reader dim(view.data(), view.size());
      while (dim.next()) {
        if (dim.tag() == 1) {
          size = static_cast<int64_t>(Number(dim));
        } else {
          dim.skip();
        }
      }
      out.sizes.push_back(size);
    } else {
      shape.skip();
    }
  }
}

// Calls `add` with the bits of each value until it returns false.
template <class Range, class Add>
bool Each(const Range& range, Add&& add) {
  for (const auto& value : range) {
    if (!add(static_cast<uint64_t>(value))) return false;
  }
  return true;
}

// One occurrence of a repeated field: a packed list, or a single value.
template <class Add>
bool ReadValues(Reader& message, TensorValues list, Add&& add) {
  const bool packed = message.wire_type() == protozero::pbf_wire_type::length_delimited;
  if (list == TensorValues::kFloats) {
    return packed ? Each(message.get_packed_fixed32(), add) : add(Fixed32(message));
  }
  if (list == TensorValues::kDoubles) {
    return packed ? Each(message.get_packed_fixed64(), add) : add(Fixed64(message));
  }
  return packed ? Each(message.get_packed_uint64(), add) : add(Number(message));
}

}  // namespace

Result<TensorHeader> ReadTensorHeader(std::string_view bytes) {
  TensorHeader out;
  try {
    Reader message(bytes.data(), bytes.size());
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          out.type = static_cast<int32_t>(Number(message));
          break;
        case 2:
          ReadShape(View(message), out);
          break;
        case 4:
          out.content = View(message);
          break;
        default:
          message.skip();
      }
    }
  } catch (const protozero::exception&) {
    return Damaged();
  }
  return out;
}

Result<HostVector<uint64_t>> ReadTensorBits(std::string_view bytes, TensorValues list,
                                            int64_t most) {
  HostVector<uint64_t> out;
  const auto add = [&](uint64_t bits) {
    if (std::ssize(out) >= most) return false;
    out.push_back(bits);
    return true;
  };
  try {
    Reader message(bytes.data(), bytes.size());
    while (message.next()) {
      if (message.tag() != static_cast<uint32_t>(list)) {
        message.skip();
      } else if (!ReadValues(message, list, add)) {
        break;
      }
    }
  } catch (const protozero::exception&) {
    return Damaged();
  }
  return out;
}

Result<std::vector<std::string_view>> ReadTensorStrings(std::string_view bytes, int64_t most) {
  std::vector<std::string_view> out;
  try {
    Reader message(bytes.data(), bytes.size());
    while (std::ssize(out) < most && message.next()) {
      if (message.tag() == static_cast<uint32_t>(TensorValues::kStrings)) {
        out.push_back(View(message));
      } else {
        message.skip();
      }
    }
  } catch (const protozero::exception&) {
    return Damaged();
  }
  return out;
}

std::string WriteTensorMessage(int64_t type, std::span<const int64_t> sizes,
                               std::string_view content, std::span<const std::string> strings) {
  std::string shape;
  protozero::pbf_writer shape_writer(shape);
  for (const int64_t size : sizes) {
    std::string dim;
    protozero::pbf_writer dim_writer(dim);
    if (size != 0) dim_writer.add_int64(1, size);
    shape_writer.add_message(2, dim);
  }
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_int32(1, static_cast<int32_t>(type));
  writer.add_message(2, shape);
  if (!content.empty()) writer.add_bytes(4, content.data(), content.size());
  for (const std::string& text : strings) writer.add_bytes(8, text.data(), text.size());
  return out;
}

}  // namespace oncilla
