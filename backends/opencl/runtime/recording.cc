// Binding of arguments and enqueueing; recording.h states the rules.
//
// To make a recording, StepBuilder creates the kernel objects of each step, records which launches
// use each operand, and binds the operands that are known. Enqueue then binds the external
// operands, copies views that cannot be addressed into staging buffers, launches, and copies back.
#include "backends/opencl/runtime/recording.h"

#include <algorithm>
#include <type_traits>

#include "backends/opencl/runtime/run_error.h"
#include "engine/base/format.h"

namespace oncilla::opencl {
namespace {

template <class T>
Status SetArg(const Api& api, cl_kernel kernel, cl_uint index, const T& value) {
  return Check(api.SetKernelArg(kernel, index, sizeof(value), &value),
               StrCat("clSetKernelArg(", index, ")"));
}

const Operand* FindOperand(const Step& step, bool output, int index) {
  const std::vector<Operand>& list = output ? step.outputs : step.inputs;
  return static_cast<size_t>(index) < list.size() ? &list[static_cast<size_t>(index)] : nullptr;
}

}  // namespace

Result<std::unique_ptr<ClRecording>> ClRecording::Make(const DeviceObjects& device,
                                                       const std::vector<Step>& steps) {
  if (steps.size() > static_cast<size_t>(kMostErrorSteps)) {
    return Internal("a recording of ", steps.size(), " steps");
  }
  std::unique_ptr<ClRecording> recording(new ClRecording(device));
  auto names = std::make_shared<Names>();
  for (const Step& step : steps) {
    const auto* kernel = dynamic_cast<const ClKernel*>(step.kernel);
    if (kernel == nullptr) return Internal("node '", step.node, "' is not an OpenCL kernel");
    names->where.push_back(StrCat("node '", OneLine(step.node), "' (", kernel->op, ")"));
    names->node.push_back(step.node);
  }
  recording->names_ = std::move(names);
  for (size_t i = 0; i < steps.size(); ++i) {
    const int index = static_cast<int>(i);
    if (Status status = recording->AddStep(steps[i], index); !status.ok()) {
      return WithNode(oncilla::In(status, recording->names_->where[i]), steps[i].node);
    }
  }
  return recording;
}

// Builds the launches of one step, and records which operands they use.
class ClRecording::StepBuilder {
 public:
  StepBuilder(ClRecording& recording, const Step& step, int index)
      : recording_(recording),
        step_(step),
        kernel_(static_cast<const ClKernel&>(*step.kernel)),
        index_(index) {}

  Status AddLaunch(const ClKernel::Launch& source) {
    const Dispatch& d = source.dispatch;
    Launch launch;
    launch.step = index_;
    launch.dimensions = d.global[2] > 1 ? 3 : d.global[1] > 1 ? 2 : 1;
    for (size_t i = 0; i < 3; ++i) {
      launch.global[i] = static_cast<size_t>(d.global[i]);
      launch.local[i] = static_cast<size_t>(d.local[i]);
    }
    ONCILLA_ASSIGN(launch.kernel, CreateKernel(api(), source.program->program.get(), d.entry));
    raw_ = launch.kernel.get();
    place_ = {recording_.launches_.size(), 0};
    at_arg_ = static_cast<cl_uint>(d.args.size());  // offsets come last
    for (const Arg& value : d.args) at_arg_ += std::holds_alternative<ErrorWord>(value) ? 1 : 0;
    for (const Arg& value : d.args) {
      ONCILLA_TRY(std::visit([&](const auto& arg) { return Set(arg); }, value));
      ++place_.arg;
    }
    recording_.launches_.push_back(std::move(launch));
    return Status();
  }

  // Binds the operands that are known now; the others are bound at each Submit.
  Status BindOperands() {
    for (auto& [operand, binding] : bindings_) {
      auto& b = binding;  // clang 14 does not let lambdas capture structured bindings
      // A shifted view can be passed only if every launch that uses the operand also takes an
      // offset for it.
      b.takes_offset = std::all_of(b.buffers.begin(), b.buffers.end(), [&](const Place& p) {
        return std::any_of(b.offsets.begin(), b.offsets.end(),
                           [&](const OffsetPlace& o) { return o.place.launch == p.launch; });
      });
      if (b.slot >= 0) {
        recording_.externals_.push_back(std::move(b));
        continue;
      }
      const BufferView& view = FindOperand(step_, b.output, operand)->view;
      if (Status status = recording_.Bind(b, view, recording_.views_, recording_.stagings_);
          !status.ok()) {
        return oncilla::In(status, StrCat(b.output ? "output " : "input ", operand));
      }
    }
    return Status();
  }

 private:
  const Api& api() const { return recording_.device_.api; }

  // The binding of an operand, created when the operand is first used.
  Result<Binding*> BindingOf(bool output, int operand, Part part = {}) {
    const Operand* found = FindOperand(step_, output, operand);
    if (found == nullptr) {
      return Internal("it was given no ", output ? "output " : "input ", operand);
    }
    for (auto& [number, binding] : bindings_) {
      if (number == operand && binding.output == output && binding.part == part) {
        return &binding;
      }
    }
    Binding fresh;
    fresh.step = index_;
    fresh.output = output;
    fresh.slot = found->external;
    fresh.part = part;
    const std::vector<int64_t>& least = output ? kernel_.output_bytes : kernel_.input_bytes;
    if (static_cast<size_t>(operand) < least.size()) {
      fresh.least_bytes = least[static_cast<size_t>(operand)];
    }
    return &bindings_.emplace_back(operand, std::move(fresh)).second;
  }

  // Sets one argument, at place_. Operands are only recorded here, and bound later.
  Status Set(opencl::In in) { return Note(false, in.index, {in.offset, in.bytes}); }
  Status Set(Out out) { return Note(true, out.index, {}); }
  Status Note(bool output, int operand, const Part& part) {
    ONCILLA_ASSIGN(Binding * b, BindingOf(output, operand, part));
    b->buffers.push_back({place_.launch, place_.arg, at_arg_++});
    return Status();
  }
  Status Set(const Offset& offset) {
    ONCILLA_ASSIGN(Binding * b, BindingOf(offset.output, offset.index));
    b->offsets.push_back({place_, offset.unit});
    return Status();
  }
  Status Set(const Scratch& scratch) {
    ONCILLA_ASSIGN(ClRegion * region, RegionOf(step_.scratch));
    ONCILLA_ASSIGN(ClViewPtr view,
                   region->View(step_.scratch.offset + scratch.offset, scratch.bytes));
    ONCILLA_TRY(SetArg(api(), raw_, place_.arg, view->raw));
    if (!recording_.device_.sub_buffers) {
      ONCILLA_TRY(SetArg(api(), raw_, at_arg_++, view->place));
    }
    recording_.views_.push_back(std::move(view));
    return Status();
  }
  Status Set(Local local) {
    return Check(api().SetKernelArg(raw_, place_.arg, static_cast<size_t>(local.bytes), nullptr),
                 StrCat("clSetKernelArg(", place_.arg, ")"));
  }
  Status Set(ErrorWord) {
    Memory& word = recording_.error_word_;
    if (!word) {
      ONCILLA_ASSIGN(word, CreateBuffer(api(), recording_.device_.context, sizeof(cl_int)));
    }
    ONCILLA_TRY(SetArg(api(), raw_, place_.arg++, word.get()));
    return SetArg(api(), raw_, place_.arg, static_cast<cl_int>(index_ + 1));
  }
  template <class T>
  Status Set(const T& number) {
    static_assert(std::is_arithmetic_v<T>);
    return SetArg(api(), raw_, place_.arg, number);
  }

  ClRecording& recording_;
  const Step& step_;
  const ClKernel& kernel_;
  const int index_;
  std::vector<std::pair<int, Binding>> bindings_;  // by the operand's index
  cl_kernel raw_ = nullptr;                        // of the current launch
  Place place_ = {};                               // of the current argument
  cl_uint at_arg_ = 0;                             // the next argument for a place
};

Status ClRecording::AddStep(const Step& step, int index) {
  const auto& kernel = static_cast<const ClKernel&>(*step.kernel);
  if (kernel.scratch > 0 &&
      (step.scratch.region == nullptr || step.scratch.bytes < kernel.scratch)) {
    return Internal("it needs ", kernel.scratch, " bytes of scratch and was given ",
                    step.scratch.bytes);
  }
  StepBuilder builder(*this, step, index);
  const size_t first = launches_.size();
  for (const ClKernel::Launch& launch : kernel.launches) {
    if (std::ranges::count(launch.dispatch.global, 0) > 0) continue;
    ONCILLA_TRY(builder.AddLaunch(launch));
  }
  if (launches_.size() == first) return Status();
  launches_[first].first_of_step = true;
  launches_.back().last_of_step = true;
  return builder.BindOperands();
}

Status ClRecording::SetBuffers(const Binding& binding, cl_mem raw, cl_ulong place,
                               int64_t offset_bytes) const {
  for (const Place& p : binding.buffers) {
    cl_kernel kernel = launches_[p.launch].kernel.get();
    ONCILLA_TRY(SetArg(device_.api, kernel, p.arg, raw));
    if (!device_.sub_buffers) ONCILLA_TRY(SetArg(device_.api, kernel, p.at_arg, place));
  }
  for (const OffsetPlace& o : binding.offsets) {
    const cl_long elements = offset_bytes / o.unit;
    ONCILLA_TRY(SetArg(device_.api, launches_[o.place.launch].kernel.get(), o.place.arg, elements));
  }
  return Status();
}

Status ClRecording::Bind(const Binding& binding, const BufferView& whole,
                         std::vector<ClViewPtr>& views, std::vector<Staging>& stagings) const {
  const auto [begin, bytes] = binding.part;
  const int64_t least = std::max(binding.least_bytes, bytes > 0 ? begin + bytes : begin);
  if (whole.region == nullptr || whole.bytes == 0) {
    if (least > 0) return Internal("it needs ", least, " bytes and was given none");
    return SetBuffers(binding, device_.dummy, 0, 0);
  }
  if (whole.bytes < least) {
    return Internal("it needs ", least, " bytes and was given ", whole.bytes);
  }
  const BufferView view{whole.region, whole.offset + begin,
                        bytes > 0 ? bytes : whole.bytes - begin};
  ONCILLA_ASSIGN(ClRegion * region, RegionOf(view));
  const int64_t beyond = view.offset % device_.alignment;
  const bool by_offset = binding.takes_offset &&
                         std::all_of(binding.offsets.begin(), binding.offsets.end(),
                                     [&](const OffsetPlace& o) { return beyond % o.unit == 0; });
  if (beyond == 0 || by_offset) {
    ONCILLA_ASSIGN(ClViewPtr part, region->View(view.offset - beyond, view.bytes + beyond));
    ONCILLA_TRY(SetBuffers(binding, part->raw, part->place, beyond));
    views.push_back(std::move(part));
    return Status();
  }
  // Holds the region, as every view does.
  ONCILLA_ASSIGN(ClViewPtr hold, region->View(view.offset - beyond, view.bytes + beyond));
  views.push_back(std::move(hold));
  ONCILLA_ASSIGN(Memory buffer,
                 CreateBuffer(device_.api, device_.context, static_cast<size_t>(view.bytes)));
  ONCILLA_TRY(SetBuffers(binding, buffer.get(), 0, 0));
  stagings.push_back({binding.step, binding.output, std::move(buffer), region->raw(),
                      static_cast<size_t>(view.offset), static_cast<size_t>(view.bytes)});
  return Status();
}

// Outputs are copied in too, because a kernel may write only a part of them.
Status ClRecording::CopyStaged(cl_command_queue queue, const std::vector<Staging>& stagings,
                               int step, bool out) const {
  for (const Staging& s : stagings) {
    if (s.step != step || (out && !s.output)) continue;
    ONCILLA_TRY(
        Check(out ? device_.api.EnqueueCopyBuffer(queue, s.buffer.get(), s.outside, 0, s.offset,
                                                  s.bytes, 0, nullptr, nullptr)
                  : device_.api.EnqueueCopyBuffer(queue, s.outside, s.buffer.get(), s.offset, 0,
                                                  s.bytes, 0, nullptr, nullptr),
              "clEnqueueCopyBuffer"));
    ++device_.staged->copies;
    device_.staged->bytes += static_cast<int64_t>(s.bytes);
  }
  return Status();
}

Status ClRecording::Enqueue(cl_command_queue queue, std::span<const BufferView> externals,
                            std::vector<std::pair<int, EventObject>>* stamps,
                            Launched launched) const {
  // The driver retains what it enqueued, so views of external operands are held only until then.
  std::vector<ClViewPtr> views;
  std::vector<Staging> stagings;
  for (const Binding& b : externals_) {
    if (static_cast<size_t>(b.slot) >= externals.size()) {
      return Internal(names_->where[static_cast<size_t>(b.step)], ": external operand ", b.slot,
                      " of ", externals.size());
    }
    Status status = Bind(b, externals[static_cast<size_t>(b.slot)], views, stagings);
    if (!status.ok()) return oncilla::In(status, names_->where[static_cast<size_t>(b.step)]);
  }
  if (error_word_) {
    static const cl_int kNone = 0;
    ONCILLA_TRY(Check(device_.api.EnqueueWriteBuffer(queue, error_word_.get(), CL_FALSE, 0,
                                                     sizeof(kNone), &kNone, 0, nullptr, nullptr),
                      "clEnqueueWriteBuffer"));
  }
  const bool staged = !stagings_.empty() || !stagings.empty();
  for (const Launch& launch : launches_) {
    auto copy = [&](bool out) -> Status {
      ONCILLA_TRY(CopyStaged(queue, stagings_, launch.step, out));
      return CopyStaged(queue, stagings, launch.step, out);
    };
    Status status;
    if (staged && launch.first_of_step) status = copy(false);
    if (status.ok()) {
      cl_event stamp = nullptr;
      status =
          Check(device_.api.EnqueueNDRangeKernel(queue, launch.kernel.get(), launch.dimensions,
                                                 nullptr, launch.global.data(), launch.local.data(),
                                                 0, nullptr, stamps == nullptr ? nullptr : &stamp),
                "clEnqueueNDRangeKernel");
      if (stamps != nullptr && stamp != nullptr) {
        stamps->emplace_back(launch.step, EventObject(device_.api, stamp));
      }
    }
    if (status.ok() && staged && launch.last_of_step) status = copy(true);
    if (status.ok()) status = launched(1);
    if (!status.ok()) {
      const auto step = static_cast<size_t>(launch.step);
      return WithNode(oncilla::In(status, names_->where[step]), names_->node[step]);
    }
  }
  return Status();
}

}  // namespace oncilla::opencl
