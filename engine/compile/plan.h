// Plan: the second stage. A compiled graph specialised for concrete input shapes (and the values of
// inputs that shapes depend on): kernels prepared, values given storage, memory packed, steps in
// order. Pure data but for the kernels; bound to memory by an Instance.
//
// A plan covers one segment: as far as shapes are known. Where they depend on data, the segment
// ends; host nodes are computed on the results, and the rest is planned with the real shapes as a
// segment of its own, cached under what was found.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/compile/compiled_graph.h"
#include "engine/memory/arena_plan.h"

namespace oncilla {

// Where a value lives on one device while a segment runs.
struct Home {
  enum Kind : uint8_t {
    kNone,
    kStorage,   // index: a Storage of the plan
    kInput,     // index: an input of the segment, read where it is (see Plan::input_devices)
    kConstant,  // view: packed memory of the model
  };
  Kind kind = kNone;
  int index = 0;
  BufferView view;
};

// Memory that one or more values share, for a stretch of time.
struct Storage {
  int device = 0;
  int64_t bytes = 0;
  int first = 0, last = 0;  // in the plan's clock
  int output = -1;  // >= 0: it is the memory of that output of the segment, not of the arena
  int block = 0;    // else: where in the device's arena
  int64_t offset = 0;
};

struct PlannedStep {
  NodeId node = kNoNode;
  std::unique_ptr<Kernel> kernel;
  std::vector<Home> inputs;
  std::vector<Home> outputs;
  int scratch = -1;  // a storage
  int clock = 0;     // when it runs, by the clock of storages
};

// A value brought to a device before a stretch of steps.
struct PlannedCopy {
  int from_device = 0;
  Home from;
  Home to;
  int64_t bytes = 0;
};

// Steps of one device, one behind the other, and what must be there before them.
struct Stretch {
  int device = 0;
  std::vector<PlannedCopy> copies;
  std::vector<PlannedStep> steps;
};

struct SegmentOutput {
  ValueId value = kNoValue;
  TensorDesc desc;
  // One of these tells where it comes from: a storage that is the output itself (direct), a home to
  // read back from, or an input handed on.
  bool direct = false;
  int device = 0;
  Home home;
  // It stays on its device, whose memory the host does not see: as memory of its own (direct), as
  // the input that it is, or as another output that it shares memory with.
  bool on_device = false;
  int same_as = -1;

  // It is copied to the host at the end.
  bool read_back(std::span<const int> input_devices) const {
    if (direct || on_device) return false;
    return home.kind == Home::kStorage ||
           (home.kind == Home::kInput && input_devices[static_cast<size_t>(home.index)] > 0);
  }
};

// A value that planning itself computed and a kernel reads: uploaded when an instance is made.
struct PlannedUpload {
  Home to;
  int device = 0;
  Tensor value;
};

// What a plan makes of a node.
enum class NodeFate : uint8_t {
  kElsewhere,  // an earlier or a later segment's
  kSettled,    // its values are known without running anything
  kUnneeded,   // only settled nodes wanted it
  kStep,       // a kernel on the node's device
  kView,       // on the node's device, and needs no kernel: its output shares its input's memory
  kHost,       // computed on host tensors after the steps
};

struct Plan {
  std::shared_ptr<const CompiledGraph> compiled;
  std::vector<ValueId> inputs;
  std::vector<int> input_devices;  // per input: where it is given; 0: in host memory
  std::vector<SegmentOutput> outputs;
  std::vector<Stretch> stretches;
  std::vector<PlannedUpload> uploads;
  std::vector<Storage> storages;
  std::vector<ArenaPlan> arenas;  // per device
  // Values known without running anything: fetched sizes, settled shape chains.
  std::vector<std::pair<ValueId, Tensor>> settled;
  std::vector<NodeId> host_nodes;  // in order, computed after the steps
  std::vector<bool> done;          // per node: settled, planned or a host node by the end of this
  std::vector<NodeFate> fates;     // per node
  bool complete = false;           // nothing remains after the host nodes

  int64_t arena_bytes(int device) const;
  int steps_on(int device) const;
  int64_t copied_bytes() const;
  int copies() const;
};

// What is known when a segment starts.
struct SegmentStart {
  std::vector<bool> done;                           // per node; empty: none
  std::vector<std::pair<ValueId, Fact>> available;  // values at hand as host tensors; with their
                                                    // contents where those fix shapes
  std::vector<std::pair<ValueId, int>> on_device;   // those that are on another device than 0
  std::vector<bool>
      keep;  // per output of the graph: it shall stay where it is computed; empty: none
};

// Refusals are the user's shapes not fitting the model (InvalidArgument, naming the node) or a
// kernel that cannot be prepared. `arena_work` is of ArenaOptions: with 0 the plan is made sooner,
// and its arenas are never smaller than those of more work. Drivers that
// compile kernels are waited for as long as `end` allows.
Result<std::shared_ptr<Plan>> MakePlan(std::shared_ptr<const CompiledGraph> compiled,
                                       std::span<Device* const> devices, const SegmentStart& start,
                                       const EarlyEnd& end = {},
                                       int64_t arena_work = ArenaOptions().work);

// Stable text: stretches, steps with kernels and homes, arenas.
std::string Print(const Plan& plan, std::span<const std::string> device_names);

}  // namespace oncilla
