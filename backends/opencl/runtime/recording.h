// Recording: the steps of a segment as kernel objects with their arguments set, ready to be
// enqueued again and again.
//
// Kernel objects belong to one recording, because arguments of a shared one would race. Fixed
// operands are bound when recording, external ones at each Submit. A view that the device cannot
// address is passed as an element offset where the kernel takes one, else through a staging buffer
// that is copied around the step.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "backends/opencl/recipes/recipe.h"
#include "backends/opencl/runtime/memory.h"
#include "backends/opencl/runtime/program_cache.h"

namespace oncilla::opencl {

// A prepared node: programs and their launches. Immutable.
class ClKernel : public Kernel {
 public:
  struct Launch {
    Dispatch dispatch;
    std::shared_ptr<const BuiltProgram> program;
  };
  int64_t scratch_bytes() const override { return scratch; }
  std::string description() const override { return text; }

  std::string op;
  std::vector<Launch> launches;
  int64_t scratch = 0;
  std::string text;  // the recipe's
  // The least sizes of operands in bytes; 0 if unknown (packed constants) or unused.
  std::vector<int64_t> input_bytes, output_bytes;
};

// What a recording needs from its device.
struct DeviceObjects {
  const Api& api;
  cl_context context;
  int64_t alignment;  // of sub-buffers
  cl_mem dummy;       // passed for absent and empty operands
  // Counts copies of operands that a kernel cannot use in place; outlives recordings.
  struct Staged {
    std::atomic<int64_t> copies{0}, bytes{0};
  };
  Staged* staged;
  bool sub_buffers = true;  // else kernels take places (places.h)
};

class ClRecording : public Recording {
 public:
  static Result<std::unique_ptr<ClRecording>> Make(const DeviceObjects& device,
                                                   const std::vector<Step>& steps);

  // Called with the number of launches enqueued since the last call; may flush.
  using Launched = absl::FunctionRef<Status(size_t launches)>;
  // Binds the external slots and enqueues everything. `stamps` gets an event per launch when not
  // null. Calls must not overlap.
  Status Enqueue(cl_command_queue queue, std::span<const BufferView> externals,
                 std::vector<std::pair<int, EventObject>>* stamps, Launched launched) const;

  // The word that kernels report errors in; null when none of them can.
  cl_mem error_word() const { return error_word_.get(); }
  // "node 'probs' (Softmax)" and the node's name, shared with events that outlive the recording.
  struct Names {
    std::vector<std::string> where, node;
  };
  const std::shared_ptr<const Names>& names() const { return names_; }
  bool empty() const { return launches_.empty(); }

 private:
  struct Launch {
    KernelObject kernel;
    std::array<size_t, 3> global, local;
    cl_uint dimensions = 1;
    int step = 0;
    bool first_of_step = false, last_of_step = false;
  };
  struct Place {  // an argument of a launch
    size_t launch;
    cl_uint arg;
    cl_uint at_arg = 0;  // of an operand, without sub-buffers: the argument with its offset
  };
  struct OffsetPlace {
    Place place;
    int64_t unit;
  };
  // One operand of one step, wherever its launches use it.
  // See In; bytes 0: to the end.
  struct Part {
    int64_t begin = 0, bytes = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  struct Binding {
    int step = 0;
    bool output = false;
    int slot = -1;  // external, when not negative
    Part part;      // of the operand
    int64_t least_bytes = 0;
    std::vector<Place> buffers;
    std::vector<OffsetPlace> offsets;
    bool takes_offset = false;
  };
  struct Staging {
    int step;
    bool output;
    Memory buffer;
    cl_mem outside;  // the region's own buffer
    size_t offset, bytes;
  };

  class StepBuilder;

  explicit ClRecording(const DeviceObjects& device) : device_(device) {}
  Status AddStep(const Step& step, int index);
  // Sets the arguments; objects that must stay alive are added to `views` and `stagings`.
  Status Bind(const Binding& binding, const BufferView& whole, std::vector<ClViewPtr>& views,
              std::vector<Staging>& stagings) const;
  // `place` and `offset_bytes` are the offset of the operand from the start of `raw`.
  Status SetBuffers(const Binding& binding, cl_mem raw, cl_ulong place, int64_t offset_bytes) const;
  Status CopyStaged(cl_command_queue queue, const std::vector<Staging>& stagings, int step,
                    bool out) const;

  const DeviceObjects device_;
  std::vector<Launch> launches_;
  std::vector<Binding> externals_;
  std::vector<ClViewPtr> views_;
  std::vector<Staging> stagings_;
  Memory error_word_;
  std::shared_ptr<const Names> names_;
};

}  // namespace oncilla::opencl
