// The error of mixed precision: compares the same run in a session that stores 16 bits and in one
// that does not, number by number, and node by node on request.
#pragma once

#include <string>
#include <vector>

#include "engine/session/model.h"

namespace oncilla {

struct NumberErrors {
  std::string name;
  double largest = 0;      // largest finite magnitude in the reference
  double max_error = 0;    // of the numbers that are finite in both
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

// Runs both models on the request; both must have the same source and, if it has state, the same
// state. Then up to `most_nodes` float values of the graph, evenly spread, are fetched one by one:
// a deny list helps at the node where errors first grow. A fetched value itself is stored in f32
// unless it is computed from weights alone.
Result<PrecisionCheck> CheckPrecision(Model& model, Model& reference, const RunRequest& request,
                                      int most_nodes = 0);

// Loads the model in a session with these options and in one that differs only in storing fp32,
// compares a run of each as above, and closes both. Both hold memory at the same time.
// `request.keep` is ignored. InvalidArgument when the options store fp32 themselves.
Result<PrecisionCheck> CheckPrecision(const std::shared_ptr<Runtime>& runtime,
                                      const SessionOptions& options, const std::string& path,
                                      const OpenModelOptions& open, RunRequest request,
                                      int most_nodes = 0);

// A table: name, largest magnitude, errors, overflow, top-1 agreement.
std::string Print(const PrecisionCheck& check);

}  // namespace oncilla
