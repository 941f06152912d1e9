// Tuner: measures the choices of layers on a device.
//
// Each choice is compiled and run once, and its result is compared with that of the generic choice:
// one that computes something else is a fault of the driver, is told, and never taken. Those that
// agree run in turn, round by round, so that what disturbs the machine disturbs all of them; times
// are the driver's stamps where it has any, else the host's around a wait. Slow ones leave after
// the first round. A choice replaces the generic one only where the difference is larger than the
// spread of the times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/device.h"
#include "backends/opencl/tuning/tuning_file.h"

namespace oncilla::opencl {

// A node of its own, with everything known that preparing it takes.
struct LayerNode {
  const OpDef* op = nullptr;
  AttrMap attrs;
  Facts inputs, outputs;
  std::string name;

  NodeView view() const { return {op, &attrs, inputs, outputs, name}; }
};

// A class of layers of which nodes were added.
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
  size_t tried = 0, choices = 0;  // fewer were tried where the time was over
  std::vector<ChoiceFault> faults;
};

// For tests, which make a correct result look wrong.
struct TunerOptions {
  double most_error_scale = 1;  // of the error that rounding explains
};

class Tuner {
 public:
  // A device without a table (Tunable).
  explicit Tuner(ClDevice& device, const TunerOptions& options = {});
  ~Tuner();

  // The layer that a node belongs to, noted for Measure; nothing for a node without a choice.
  // `nodes`: how often it is there.
  Result<std::optional<size_t>> Add(const LayerNode& node, int nodes = 1);
  const std::vector<TunableLayer>& layers() const { return layers_; }

  // Looks at the time before each compilation, so that it may take one more than until then.
  // DeadlineExceeded where no time is left at all; Unavailable for a device that hangs.
  Result<MeasuredLayer> Measure(size_t layer, Deadline until);

  // A row for the table, with nothing in it.
  TunedDevice Row() const;

 private:
  Capabilities With(const std::string& layer, const std::string& choice) const;

  ClDevice& device_;
  const TunerOptions options_;
  std::unique_ptr<Queue> queue_;
  std::vector<TunableLayer> layers_;
};

}  // namespace oncilla::opencl
