// Slices of tensors as boxes: parses their notation, and copies the elements that two boxes share.
#include "engine/import/tf/state/checkpoint_slices.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <sstream>

namespace oncilla {
namespace {

// Numbers and strings in TensorFlow's ordered code, taken from the front of `rest`. Nothing if it
// is malformed.
std::optional<uint64_t> TakeNumber(std::string_view* rest) {
  if (rest->empty()) return std::nullopt;
  const auto length = static_cast<uint8_t>((*rest)[0]);
  if (length > 8 || length >= rest->size()) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = 1; i <= length; ++i) value = value << 8 | static_cast<uint8_t>((*rest)[i]);
  rest->remove_prefix(size_t{1} + length);
  return value;
}

// The bytes 00 and FF are escaped as 00 FF and FF 00; 00 01 ends the string.
std::optional<std::string> TakeString(std::string_view* rest) {
  std::string out;
  for (size_t i = 0; i < rest->size(); ++i) {
    const auto byte = static_cast<uint8_t>((*rest)[i]);
    if (byte != 0 && byte != 0xff) {
      out.push_back(static_cast<char>(byte));
      continue;
    }
    if (++i == rest->size()) return std::nullopt;
    const auto next = static_cast<uint8_t>((*rest)[i]);
    if (byte == 0 && next == 1) {
      rest->remove_prefix(i + 1);
      return out;
    }
    if (next != static_cast<uint8_t>(~byte)) return std::nullopt;
    out.push_back(static_cast<char>(byte));
  }
  return std::nullopt;
}

// As many one bits as the number has bytes, a zero bit, then the value; for a negative number all
// bits are inverted.
std::optional<int64_t> TakeSigned(std::string_view* rest) {
  if (rest->empty()) return std::nullopt;
  const bool negative = (static_cast<uint8_t>((*rest)[0]) & 0x80u) == 0;
  const auto byte_at = [&](size_t i) {
    const auto byte = static_cast<uint8_t>((*rest)[i]);
    return negative ? static_cast<uint8_t>(~byte) : byte;
  };
  size_t ones = 0;
  while (ones <= 10 && ones / 8 < rest->size() && (byte_at(ones / 8) >> (7 - ones % 8) & 1u) != 0) {
    ++ones;
  }
  if (ones == 0 || ones > 10 || ones > rest->size()) return std::nullopt;
  const size_t first_bit = ones + 1, bits = ones * 8;
  uint64_t value = 0;
  for (size_t bit = first_bit; bit < bits; ++bit) {
    if (value >> 62 != 0) return std::nullopt;  // more than 63 bits
    value = value << 1 | (byte_at(bit / 8) >> (7 - bit % 8) & 1u);
  }
  rest->remove_prefix(ones);
  const auto number = static_cast<int64_t>(value);
  return negative ? ~number : number;
}

std::optional<int64_t> ToNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// The text up to `separator`, taken from the front of `rest`; all of it if there is none.
std::string_view TakeUntil(std::string_view* rest, char separator) {
  const size_t at = rest->find(separator);
  const std::string_view head = rest->substr(0, at);
  rest->remove_prefix(at == std::string_view::npos ? rest->size() : at + 1);
  return head;
}

// The intersection of two boxes; nothing if it is empty.
std::optional<SliceBox> Intersection(const SliceBox& a, const SliceBox& b) {
  SliceBox out;
  for (size_t d = 0; d < a.size(); ++d) {
    const int64_t first = std::max(a[d].start, b[d].start);
    const int64_t end = std::min(a[d].start + a[d].length, b[d].start + b[d].length);
    if (end <= first) return std::nullopt;
    out.push_back({first, end - first});
  }
  return out;
}

// The index of the box's first element in a row-major tensor that covers `in`.
int64_t Offset(const SliceBox& box, const SliceBox& in) {
  int64_t offset = 0;
  for (size_t d = 0; d < box.size(); ++d) {
    offset = offset * in[d].length + (box[d].start - in[d].start);
  }
  return offset;
}

// Whether the elements of `box` are contiguous in a row-major tensor that covers `in`.
bool IsOnePiece(const SliceBox& box, const SliceBox& in) {
  size_t d = 0;
  while (d < box.size() && box[d].length == 1) ++d;
  for (++d; d < box.size(); ++d) {
    if (box[d].length != in[d].length) return false;
  }
  return true;
}

// Calls `copy(to, from, count)`, counted in elements, for each row of `shared`.
template <class Copy>
void ForRows(const SliceBox& shared, const SliceBox& to, const SliceBox& from, Copy&& copy) {
  SliceBox row = shared;
  const int64_t count = shared.empty() ? 1 : shared.back().length;
  for (;;) {
    copy(Offset(row, to), Offset(row, from), count);
    size_t d = shared.empty() ? 0 : shared.size() - 1;
    for (;;) {
      if (d == 0) return;
      --d;
      if (++row[d].start < shared[d].start + shared[d].length) break;
      row[d].start = shared[d].start;
    }
  }
}

}  // namespace

Result<SliceKey> ParseSliceKey(std::string_view key) {
  SliceKey out;
  const auto damaged = [] { return DataLoss("the key of a slice is damaged"); };
  const auto mark = TakeNumber(&key);
  auto name = TakeString(&key);
  if (mark != uint64_t{0} || !name.has_value()) return damaged();
  out.tensor = *std::move(name);
  const auto rank = TakeNumber(&key);
  if (!rank.has_value() || *rank > static_cast<uint64_t>(kMaxRank)) return damaged();
  for (uint64_t d = 0; d < *rank; ++d) {
    const auto start = TakeSigned(&key);
    const auto length = TakeSigned(&key);
    if (!start.has_value() || !length.has_value() || *start < 0 || *length < -1) return damaged();
    out.box.push_back({*start, *length});
  }
  if (!key.empty()) return damaged();
  return out;
}

Result<SliceSpec> ParseSliceSpec(std::string_view text) {
  const auto damaged = [&] { return DataLoss("'", text, "' is not a slice of a tensor"); };
  SliceSpec out;
  std::string_view rest = text;
  while (rest.find(' ') != std::string_view::npos) {
    const auto size = ToNumber(TakeUntil(&rest, ' '));
    if (!size.has_value() || out.whole.rank() == kMaxRank) return damaged();
    out.whole.push_back(*size);
  }
  while (!rest.empty()) {
    std::string_view axis = TakeUntil(&rest, ':');
    if (axis == "-") {
      out.box.emplace_back();
      continue;
    }
    const auto start = ToNumber(TakeUntil(&axis, ','));
    const auto length = ToNumber(axis);
    if (!start.has_value() || !length.has_value()) return damaged();
    out.box.push_back({*start, *length});
  }
  if (out.box.size() != static_cast<size_t>(out.whole.rank())) return damaged();
  return out;
}

Result<SliceBox> Settled(const SliceBox& box, const Shape& whole) {
  const auto outside = [&] {
    return DataLoss("the slice ", ToString(box), " does not lie in ", whole);
  };
  if (box.size() != static_cast<size_t>(whole.rank())) return outside();
  SliceBox out = box;
  for (size_t d = 0; d < box.size(); ++d) {
    const int64_t size = whole[static_cast<int>(d)];
    if (out[d].length == SliceExtent::kAll) out[d].length = size - out[d].start;
    if (out[d].start < 0 || out[d].length < 0 || out[d].start > size ||
        out[d].length > size - out[d].start) {
      return outside();
    }
  }
  return out;
}

Shape ShapeOf(const SliceBox& settled) {
  Shape shape;
  for (const SliceExtent& extent : settled) shape.push_back(extent.length);
  return shape;
}

std::string ToString(const SliceBox& box) {
  std::ostringstream out;
  for (size_t d = 0; d < box.size(); ++d) {
    if (d > 0) out << ':';
    if (box[d] == SliceExtent()) {
      out << '-';
    } else {
      out << box[d].start << ',' << box[d].length;
    }
  }
  return out.str();
}

Result<Tensor> Assemble(const SliceBox& wanted, std::span<const StoredSlice> parts) {
  if (parts.empty()) return DataLoss("no slice is stored");
  const TensorDesc desc{parts[0].tensor.dtype(), ShapeOf(wanted)};
  int64_t shared_elements = 0;
  std::vector<std::pair<const StoredSlice*, SliceBox>> used;
  for (const StoredSlice& part : parts) {
    auto shared = Intersection(part.box, wanted);
    if (!shared.has_value()) continue;
    shared_elements = SaturatingAdd(shared_elements, ShapeOf(*shared).elements());
    used.emplace_back(&part, *std::move(shared));
  }
  if (shared_elements != desc.elements()) {
    return DataLoss("the stored slices give ", shared_elements, " of the ", desc.elements(),
                    " elements of ", ToString(wanted));
  }
  const bool strings = desc.dtype == DType::kString;
  if (!strings && BytesOf(desc.dtype) == 0) {
    return Unsupported("is partitioned and of ", Name(desc.dtype), ", several elements to a byte");
  }
  if (used.size() == 1 && !strings && IsOnePiece(wanted, used[0].first->box)) {
    const Tensor& whole = used[0].first->tensor;
    if (whole.desc() == desc) return whole;
    const auto element = static_cast<size_t>(BytesOf(desc.dtype));
    Tensor view = Tensor::View(
        desc,
        whole.bytes().subspan(static_cast<size_t>(Offset(wanted, used[0].first->box)) * element,
                              static_cast<size_t>(desc.bytes())),
        std::make_shared<Tensor>(whole));
    if (whole.mapped()) view.set_mapped();
    return view;
  }
  // As many elements as positions, with no position twice, means that every position is filled
  // once.
  std::vector<bool> filled(static_cast<size_t>(desc.elements()));
  bool twice = false;
  const auto fill = [&](int64_t at, int64_t count) {
    for (int64_t i = at; i < at + count; ++i) {
      twice = twice || filled[static_cast<size_t>(i)];
      filled[static_cast<size_t>(i)] = true;
    }
  };
  Tensor out;
  std::vector<std::string> texts;
  if (strings) {
    texts.resize(static_cast<size_t>(desc.elements()));
  } else {
    ONCILLA_ASSIGN(out, Tensor::Allocate(desc));
  }
  for (const auto& [part, shared] : used) {
    const Tensor& from_tensor = part->tensor;
    ForRows(shared, wanted, part->box, [&](int64_t to, int64_t from, int64_t count) {
      fill(to, count);
      if (strings) {
        std::copy_n(from_tensor.strings().begin() + from, count, texts.begin() + to);
      } else {
        const auto element = static_cast<size_t>(BytesOf(desc.dtype));
        std::memcpy(out.mutable_bytes().data() + static_cast<size_t>(to) * element,
                    from_tensor.bytes().data() + static_cast<size_t>(from) * element,
                    static_cast<size_t>(count) * element);
      }
    });
  }
  if (twice) return DataLoss("the stored slices of ", ToString(wanted), " overlap");
  if (strings) return Tensor::Strings(desc.shape, std::move(texts));
  return out;
}

}  // namespace oncilla
