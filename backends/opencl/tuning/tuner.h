// Tuner: measures the choices of layers on a device.
//
// Each choice is compiled and run once, and its result is compared with that of the generic choice:
// one with another result is a fault of the driver, is reported, and never chosen. The others run
// in turn, round by round, so that disturbances of the machine affect all of them; times are the
// driver's stamps if it has any, else the host's around a wait. Slow ones are dropped after the
// first round. A choice replaces the generic one only if the difference is larger than the spread
// of the times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/device.h"
#include "backends/opencl/tuning/tuning_file.h"

namespace oncilla::opencl {

// A node of its own, with everything that preparing it needs.
struct LayerNode {
  const OpDef* op = nullptr;
  AttrMap attrs;
  Facts inputs, outputs;
  std::string name;

  NodeView view() const { return {op, &attrs, inputs, outputs, name}; }
};

// A class of layers, of which nodes were added.
struct TunableLayer {
  std::string name;  // as tables have it
  LayerNode node;    // the first one
  int nodes = 0;
  size_t choices = 0;
};

struct ChoiceFault {
  std::string choice, what;
};

struct MeasuredLayer {
  std::string generic, best;  // choices; the same where none was faster
  double generic_us = 0, best_us = 0;
  size_t tried = 0, choices = 0;  // fewer were tried if the time was over
  std::vector<ChoiceFault> faults;
};

// For tests, which make a correct result appear wrong.
struct TunerOptions {
  double most_error_scale = 1;  // of the error that rounding explains
};

class Tuner {
 public:
  // A device without a table (Tunable).
  explicit Tuner(ClDevice& device, const TunerOptions& options = {});
  ~Tuner();

  // The layer that a node belongs to, recorded for Measure; nothing for a node without a choice.
  // `nodes`: how often it occurs.
  Result<std::optional<size_t>> Add(const LayerNode& node, int nodes = 1);
  const std::vector<TunableLayer>& layers() const { return layers_; }

  // Checks the time before each compilation, so that it may exceed `until` by one. DeadlineExceeded
  // if no time is left at all; Unavailable for a device that hangs.
  Result<MeasuredLayer> Measure(size_t layer, Deadline until);

  // An empty row for the table.
  TunedDevice Row() const;

 private:
  Capabilities With(const std::string& layer, const std::string& choice) const;

  ClDevice& device_;
  const TunerOptions options_;
  std::unique_ptr<Queue> queue_;
  std::vector<TunableLayer> layers_;
};

}  // namespace oncilla::opencl
