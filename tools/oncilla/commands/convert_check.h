// Compares a converted model with its source: both run on the CPU, on generated or given inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/session/model.h"
#include "tools/oncilla/inputs.h"

namespace oncilla::tool {

struct CheckOptions {
  InputFlags input;  // files; the rest is made up, whatever `random` says
  DType weights = DType::kF32;
  bool random_numbers = false;  // the model draws some: only types and shapes are compared
  // Names that differ in the result.
  std::map<std::string, std::string> renamed_inputs = {}, renamed_outputs = {};
};

struct OutputError {
  std::string name;
  enum class Kind : uint8_t { kDifference, kShare, kOtherType } kind = Kind::kDifference;
  double error = 0;    // the largest difference of floats, or the share of other values that differ
  double largest = 0;  // magnitude of floats in the source's answer
  bool fits = true;
};

// "max error 1e-7 (largest value 3)", "no value differs"
std::string Describe(const OutputError& output);
// Describes how an output differs.
std::string DescribeMisfit(const OutputError& output, DType weights);

struct CheckResult {
  std::vector<OutputError> outputs;
  std::string inputs;  // what was fed, as "x f32[1,3]"
  bool fits() const;
};

// The difference allowed between floats, as a share of the largest magnitude of the output.
double ToleranceOf(DType weights);

// Runs the signature of both. Open sizes are tried in turn until the source accepts them. Fails if
// a run does, or if the source accepts no generated inputs.
Result<CheckResult> Check(Model& source, Model& result, const Signature& signature,
                          const std::string& source_signature, const CheckOptions& options);

// One output of two runs.
OutputError Compare(const std::string& name, const Tensor& expected, const Tensor& actual,
                    const CheckOptions& options);

}  // namespace oncilla::tool
