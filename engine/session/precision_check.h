// What mixed precision costs: the same run by a model whose session stores 16 bits and by one that
// does not, compared number by number, and node by node where asked for.
#pragma once

#include <string>
#include <vector>

#include "engine/session/model.h"

namespace oncilla {

struct NumberErrors {
  std::string name;
  double largest = 0;      // magnitude in the reference, of its finite numbers
  double max_error = 0;    // of numbers that are finite in both
  double rms_error = 0;    // root of the mean square of these
  int64_t overflowed = 0;  // finite in the reference, infinite or NaN here
  // The share of rows (along the last axis, at least two long) whose largest number is at the same
  // index; negative for outputs without rows.
  double top1 = -1;
  int64_t others = 0;  // strings, integers, booleans that differ

  // max_error as a share of the largest magnitude.
  double relative() const { return largest > 0 ? max_error / largest : max_error; }
};

// InvalidArgument when dtypes or shapes differ.
Result<NumberErrors> CompareNumbers(const std::string& name, const Tensor& reference,
                                    const Tensor& tensor);

struct PrecisionCheck {
  std::vector<NumberErrors> outputs;
  std::vector<NumberErrors> nodes;  // values in the middle of the graph, in its order
};

// Runs both models on the request; both must be of the same source and, where it has state, in the
// same one. Then up to `most_nodes` float
// values of the graph, evenly spread, are fetched one by one: where errors first grow is where a
// deny list helps. A fetched value itself is stored in f32 unless weights made it.
Result<PrecisionCheck> CheckPrecision(Model& model, Model& reference, const RunRequest& request,
                                      int most_nodes = 0);

// Loads the model in a session of these options and in one that differs in storing fp32, compares a
// run of each as above, and closes both. Both take memory at the same time. `request.keep` means
// nothing here. InvalidArgument when the options store fp32 themselves.
Result<PrecisionCheck> CheckPrecision(const std::shared_ptr<Runtime>& runtime,
                                      const SessionOptions& options, const std::string& path,
                                      const OpenModelOptions& open, RunRequest request,
                                      int most_nodes = 0);

// A table: name, largest magnitude, errors, overflow, top-1 agreement.
std::string Print(const PrecisionCheck& check);

}  // namespace oncilla
