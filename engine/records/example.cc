// Example messages through protozero.
#include "engine/records/example.h"

#define PROTOZERO_USE_VIEW std::string_view
#include <protozero/pbf_reader.hpp>

namespace oncilla {
namespace {

using Reader = protozero::pbf_reader;

std::string_view View(Reader& message) {
  const protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}

template <class Add, class Range>
void AddAll(const Range& range, Add&& add) {
  for (const auto& value : range) add(value);
}

void ReadList(Feature::Kind kind, std::string_view bytes, Feature& out) {
  // The last list of a kind goes on where an earlier one of the same kind ended.
  if (out.kind != kind) out = Feature{kind, {}, {}, {}};
  Reader list(bytes.data(), bytes.size());
  while (list.next(1)) {
    const bool packed = list.wire_type() == protozero::pbf_wire_type::length_delimited;
    switch (kind) {
      case Feature::Kind::kBytes:
        out.bytes.push_back(View(list));
        break;
      case Feature::Kind::kFloat:
        if (packed) {
          AddAll(list.get_packed_float(), [&](float v) { out.floats.push_back(v); });
        } else {
          out.floats.push_back(list.get_float());
        }
        break;
      case Feature::Kind::kInt64:
        if (packed) {
          AddAll(list.get_packed_int64(), [&](int64_t v) { out.ints.push_back(v); });
        } else {
          out.ints.push_back(list.get_int64());
        }
        break;
      case Feature::Kind::kNone:
        list.skip();
        break;
    }
  }
}

Feature ReadFeature(std::string_view bytes) {
  Feature out;
  Reader feature(bytes.data(), bytes.size());
  while (feature.next()) {
    const auto field = feature.tag();
    if (field >= 1 && field <= 3) {
      ReadList(static_cast<Feature::Kind>(field), View(feature), out);
    } else {
      feature.skip();
    }
  }
  return out;
}

void ReadEntry(std::string_view bytes, Example& out) {
  std::string_view name, value;
  Reader entry(bytes.data(), bytes.size());
  while (entry.next()) {
    if (entry.tag() == 1) {
      name = View(entry);
    } else if (entry.tag() == 2) {
      value = View(entry);
    } else {
      entry.skip();
    }
  }
  out[name] = ReadFeature(value);
}

}  // namespace

Result<Example> ReadExample(std::string_view bytes) {
  Example out;
  try {
    Reader example(bytes.data(), bytes.size());
    while (example.next()) {
      if (example.tag() != 1) {
        example.skip();
        continue;
      }
      const std::string_view map = View(example);
      Reader features(map.data(), map.size());
      while (features.next()) {
        if (features.tag() == 1) {
          ReadEntry(View(features), out);
        } else {
          features.skip();
        }
      }
    }
  } catch (const std::exception&) {
    return InvalidArgument("it is no Example message");
  }
  return out;
}

}  // namespace oncilla
