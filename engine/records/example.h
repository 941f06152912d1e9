// tensorflow.Example, a map from names to lists of values, as views into its bytes.
//
// Fields after TensorFlow's example.proto and feature.proto. A name that stands there twice counts
// with its last value, as protobuf's maps do.
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

// InvalidArgument when the bytes are no Example.
Result<Example> ReadExample(std::string_view bytes);

// tensorflow.SequenceExample: features of the whole, and lists of them, one for each step.
struct SequenceExample {
  Example context;
  std::map<std::string_view, std::vector<Feature>> lists;
};
Result<SequenceExample> ReadSequenceExample(std::string_view bytes);

}  // namespace oncilla
