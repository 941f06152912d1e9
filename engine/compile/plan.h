// Plan: the second stage. A compiled graph specialised for concrete input shapes (and the values of
// inputs that shapes depend on): kernels prepared, values assigned to storages, memory packed,
// steps in order. Pure data except for the kernels; an Instance binds it to memory.
//
// A plan covers one segment: the part of the graph whose shapes are known. Where shapes depend on
// data, the segment ends. Host nodes are then computed on its results, and the rest is planned with
// the real shapes as a segment of its own, which is cached by those shapes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/compile/compiled_graph.h"
#include "engine/memory/arena_plan.h"

namespace oncilla {

struct PlanMemo;  // plan_memo.h

// Where a value is located on one device while a segment runs.
struct Home {
  enum Kind : uint8_t {
    kNone,
    kStorage,   // index: a Storage of the plan
    kInput,     // index: an input of the segment, read in place (see Plan::input_devices)
    kConstant,  // view: packed memory of the model
  };
  Kind kind = kNone;
  int index = 0;
  BufferView view;
};

// A buffer with a live range, which one or more values share.
struct Storage {
  int device = 0;
  int64_t bytes = 0;
  int first = 0, last = 0;  // the live range, on the plan's clock
  int output = -1;  // >= 0: it is the memory of that output of the segment, not of the arena
  int block = 0;    // else: its location in the device's arena
  int64_t offset = 0;
};

struct PlannedStep {
  NodeId node = kNoNode;
  std::shared_ptr<Kernel> kernel;  // plans of one graph may share it
  std::vector<Home> inputs;
  std::vector<Home> outputs;
  int scratch = -1;  // a storage
  int clock = 0;     // when it runs, on the clock of the live ranges
};

// A copy of a value to the device of a stretch, made before its steps.
struct PlannedCopy {
  int from_device = 0;
  Home from;
  Home to;
  int64_t bytes = 0;
};

// Consecutive steps of one device, and the copies that must be made before them.
struct Stretch {
  int device = 0;
  std::vector<PlannedCopy> copies;
  std::vector<PlannedStep> steps;
};

struct SegmentOutput {
  ValueId value = kNoValue;
  TensorDesc desc;
  // Where it comes from: a storage that is the output itself (direct), a home to read back from, or
  // an input that is passed through.
  bool direct = false;
  int device = 0;
  Home home;
  // It stays on its device, whose memory the host cannot access: as memory of its own (direct), as
  // the input that it is, or as another output that it shares memory with.
  bool on_device = false;
  int same_as = -1;

  // Whether it is copied to the host at the end.
  bool read_back(std::span<const int> input_devices) const {
    if (direct || on_device) return false;
    return home.kind == Home::kStorage ||
           (home.kind == Home::kInput && input_devices[static_cast<size_t>(home.index)] > 0);
  }
};

// A value that was computed while planning and is read by a kernel. It is uploaded when an instance
// is made.
struct PlannedUpload {
  Home to;
  int device = 0;
  Tensor value;
};

// How a plan treats a node.
enum class NodeFate : uint8_t {
  kElsewhere,  // belongs to an earlier or a later segment
  kSettled,    // folded: its values are known without running anything
  kUnneeded,   // read by settled nodes only
  kStep,       // a kernel on the node's device
  kView,       // on the node's device, without a kernel: its output shares its input's memory
  kHost,       // computed on host tensors after the steps
};

struct Plan {
  std::shared_ptr<const CompiledGraph> compiled;
  std::vector<ValueId> inputs;
  std::vector<int> input_devices;  // per input: the device that holds it; 0: host memory
  std::vector<SegmentOutput> outputs;
  std::vector<Stretch> stretches;
  std::vector<PlannedUpload> uploads;
  std::vector<Storage> storages;
  std::vector<ArenaPlan> arenas;  // per device
  // Values known without running anything: fetched sizes, results of shape arithmetic.
  std::vector<std::pair<ValueId, Tensor>> settled;
  std::vector<NodeId> host_nodes;  // in order, computed after the steps
  std::vector<bool> done;          // per node: settled, planned or a host node by the end of this
  std::vector<NodeFate> fates;     // per node
  bool complete = false;           // nothing remains after the host nodes
  std::shared_ptr<const PlanMemo> memo;  // for the next plan; whoever keeps the plan takes it out

  int64_t arena_bytes(int device) const;
  int steps_on(int device) const;
  int64_t copied_bytes() const;
  int copies() const;
};

// What is known when a segment starts.
struct SegmentStart {
  std::vector<bool> done;                           // per node; empty: none
  std::vector<std::pair<ValueId, Fact>> available;  // values available as host tensors; with their
                                                    // contents where those fix shapes
  std::vector<std::pair<ValueId, int>> on_device;   // those that are on another device than 0
  std::vector<bool>
      keep;  // per output of the graph: it stays on the device that computes it; empty: none
};

// Called now and then on the thread that makes a plan, with the share of its kernels that are
// ready.
using PlanProgress = std::function<void(double share)>;

struct PlanOptions {
  EarlyEnd end = {};  // how long to wait while a driver compiles kernels
  // That of ArenaOptions. With 0 the plan is made sooner, and its arenas are never smaller than
  // with more work.
  int64_t arena_work = ArenaOptions().work;
  PlanProgress progress = {};
  std::shared_ptr<const PlanMemo> earlier = nullptr;  // of the same graph, devices and segment
};

// Fails with InvalidArgument, naming the node, for input shapes that do not fit the model, and when
// a kernel cannot be prepared.
Result<std::shared_ptr<Plan>> MakePlan(std::shared_ptr<const CompiledGraph> compiled,
                                       std::span<Device* const> devices, const SegmentStart& start,
                                       const PlanOptions& options = {});

// Stable text: stretches, steps with kernels and homes, arenas.
std::string Print(const Plan& plan, std::span<const std::string> device_names);

}  // namespace oncilla
