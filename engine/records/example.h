// tensorflow.Example, a map from names to lists of values, as views into its serialized bytes.
//
// Fields follow TensorFlow's example.proto and feature.proto. If a name occurs twice, its last
// value counts, as in protobuf's maps.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

struct Feature {
  enum class Kind { kNone, kBytes, kFloat, kInt64 };
  Kind kind = Kind::kNone;
  std::vector<std::string_view> bytes;
  std::vector<float> floats;
  std::vector<int64_t> ints;

  int64_t size() const {
    return static_cast<int64_t>(kind == Kind::kBytes   ? bytes.size()
                                : kind == Kind::kFloat ? floats.size()
                                                       : ints.size());
  }
};

using Example = std::map<std::string_view, Feature>;

// InvalidArgument when the bytes are not an Example.
Result<Example> ReadExample(std::string_view bytes);

// tensorflow.SequenceExample: features of the whole sequence, and lists with one feature per step.
struct SequenceExample {
  Example context;
  std::map<std::string_view, std::vector<Feature>> lists;
};
Result<SequenceExample> ReadSequenceExample(std::string_view bytes);

}  // namespace oncilla
