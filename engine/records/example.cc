// Example and SequenceExample messages, read through protozero.
#include "engine/records/example.h"

#include <bit>

#include "engine/records/reader.h"

namespace oncilla {
namespace {

using records::Fixed32;
using records::Number;
using records::Reader;
using records::View;

template <class Add, class Range>
void AddAll(const Range& range, Add&& add) {
  for (const auto& value : range) add(value);
}

void ReadList(Feature::Kind kind, std::string_view bytes, Feature& out) {
  // As protocol buffers merge them: a later list of the same kind continues an earlier one; another
  // kind replaces it.
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
          out.floats.push_back(std::bit_cast<float>(Fixed32(list)));
        }
        break;
      case Feature::Kind::kInt64:
        if (packed) {
          AddAll(list.get_packed_int64(), [&](int64_t v) { out.ints.push_back(v); });
        } else {
          out.ints.push_back(static_cast<int64_t>(Number(list)));
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

void ReadFeatures(std::string_view bytes, Example& out) {
  Reader features(bytes.data(), bytes.size());
  while (features.next()) {
    if (features.tag() == 1) {
      ReadEntry(View(features), out);
    } else {
      features.skip();
    }
  }
}

void ReadLists(std::string_view bytes, SequenceExample& out) {
  Reader lists(bytes.data(), bytes.size());
  while (lists.next()) {
    if (lists.tag() != 1) {
      lists.skip();
      continue;
    }
    std::string_view name, value;
    const std::string_view view = View(lists);
    Reader entry(view.data(), view.size());
    while (entry.next()) {
      if (entry.tag() == 1) {
        name = View(entry);
      } else if (entry.tag() == 2) {
        value = View(entry);
      } else {
        entry.skip();
      }
    }
    std::vector<Feature> steps;
    Reader list(value.data(), value.size());
    while (list.next()) {
      if (list.tag() == 1) {
        steps.push_back(ReadFeature(View(list)));
      } else {
        list.skip();
      }
    }
    out.lists[name] = std::move(steps);
  }
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
      ReadFeatures(View(example), out);
    }
  } catch (const std::exception&) {
    return InvalidArgument("it is not an Example message");
  }
  return out;
}

Result<SequenceExample> ReadSequenceExample(std::string_view bytes) {
  SequenceExample out;
  try {
    Reader example(bytes.data(), bytes.size());
    while (example.next()) {
      if (example.tag() == 1) {
        ReadFeatures(View(example), out.context);
      } else if (example.tag() == 2) {
        ReadLists(View(example), out);
      } else {
        example.skip();
      }
    }
  } catch (const std::exception&) {
    return InvalidArgument("it is not a SequenceExample message");
  }
  return out;
}

}  // namespace oncilla
