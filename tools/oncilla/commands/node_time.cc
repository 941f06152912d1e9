// Records one step once, and submits it repeatedly.
#include "tools/oncilla/commands/node_time.h"

#include <algorithm>
#include <chrono>

#include "engine/tensor/dispatch.h"

namespace oncilla::tool {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Numbers from 0 to 3 in a long period: exact in every type, and no row is like another.
Result<Tensor> Filled(const TensorDesc& desc) {
  ONCILLA_ASSIGN(Tensor tensor, Tensor::Allocate(desc));
  uint32_t state = 1;
  DispatchDType(desc.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T>) {
      for (T& value : tensor.MutableAs<T>()) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<T>(state >> 30);
      }
    }
  });
  return tensor;
}

// Regions that are released when a measurement ends, whatever its outcome.
class Regions {
 public:
  explicit Regions(Device& device) : device_(device) {}
  ~Regions() {
    for (auto& region : regions_) (void)device_.ReleaseRegion(std::move(region));
  }
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;
  Result<BufferView> Take(int64_t bytes) {
    ONCILLA_ASSIGN(auto region, device_.AllocateRegion(std::max<int64_t>(bytes, 64)));
    regions_.push_back(std::move(region));
    return BufferView{regions_.back().get(), 0, bytes};
  }

 private:
  Device& device_;
  std::vector<std::unique_ptr<Region>> regions_;
};

Result<BufferView> Uploaded(Device& device, Queue& queue, Regions& regions, const NodeView& node,
                            int input, const Tensor& value, bool weight) {
  std::vector<std::byte> bytes(value.bytes().begin(), value.bytes().end());
  if (weight) {
    ONCILLA_ASSIGN(const Packing packing, device.PackingFor(node, input));
    if (packing.write != nullptr) {
      bytes.assign(static_cast<size_t>(packing.bytes), std::byte{0});
      ONCILLA_TRY(packing.write(value, bytes));
    }
  }
  ONCILLA_ASSIGN(const BufferView view, regions.Take(static_cast<int64_t>(bytes.size())));
  const Upload upload{view, bytes};
  ONCILLA_ASSIGN(const EventPtr done, device.Transfer(queue, {&upload, 1}, {}));
  ONCILLA_TRY(device.Wait(done, kNoDeadline));
  return view;
}

Result<double> LeastOf(Device& device, Queue& queue, const Recording& recording, double budget_s) {
  double least = 0;
  const auto begin = Clock::now();
  for (int run = 0; run < 3 || Since(begin) < budget_s; ++run) {
    const auto submitted = Clock::now();
    ONCILLA_ASSIGN(const EventPtr done, device.Submit(queue, recording, {}, {.profile = true}));
    ONCILLA_TRY(device.Wait(done, kNoDeadline));
    double time_s = Since(submitted), stamped_s = 0;
    for (const StepTime& time : done->step_times()) {
      stamped_s += static_cast<double>(time.end_ns - time.start_ns) * 1e-9;
    }
    if (stamped_s > 0) time_s = stamped_s;
    least = run == 0 ? time_s : std::min(least, time_s);
  }
  return least;
}

}  // namespace

Result<double> LeastTime(Device& device, const OpDef& op, const AttrMap& attrs,
                         const std::vector<TimedOperand>& operands, double budget_s) {
  std::vector<Tensor> values;
  Facts in;
  for (const TimedOperand& operand : operands) {
    ONCILLA_ASSIGN(Tensor value, Filled(operand.desc));
    in.push_back(operand.weight ? Fact::Constant(value) : Fact::Of(value.desc()));
    values.push_back(std::move(value));
  }
  ONCILLA_ASSIGN(const Facts out, op.infer(attrs, in));
  const NodeView node{&op, &attrs, in, out, op.name};
  ONCILLA_TRY(device.CanRun(node));
  ONCILLA_ASSIGN(const auto kernel, device.Prepare(node));
  ONCILLA_ASSIGN(auto queue, device.OpenQueue({.stamps = true}));
  Regions regions(device);
  Step step{kernel.get(), {}, {}, {}, std::string(op.name)};
  for (size_t i = 0; i < values.size(); ++i) {
    ONCILLA_ASSIGN(const BufferView view,
                   Uploaded(device, *queue, regions, node, static_cast<int>(i), values[i],
                            operands[i].weight));
    step.inputs.push_back({view, -1});
  }
  ONCILLA_ASSIGN(const BufferView y, regions.Take(out[0].desc().bytes()));
  step.outputs.push_back({y, -1});
  if (kernel->scratch_bytes() > 0) {
    ONCILLA_ASSIGN(step.scratch, regions.Take(kernel->scratch_bytes()));
  }
  ONCILLA_ASSIGN(auto recording, device.Record({step}));
  auto least = LeastOf(device, *queue, *recording, budget_s);
  recording.reset();
  queue.reset();
  return least;
}

}  // namespace oncilla::tool
