// Runs one case: inference with all facts known and with fewer, then the kernel on real buffers.
#include "tests/case_runner/run_case.h"

#include <atomic>
#include <cstring>

#include "engine/base/work_limits.h"
#include "engine/graph/graph.h"

namespace oncilla::testing {
namespace {

constexpr std::byte kPoison{0xa5};

bool IsPlanInput(const OpDef& op, size_t i) { return op.traits.IsPlanInput(i); }

Result<Facts> InferFacts(const Case& c, const OpSet& ops, const Facts& in) {
  return InferNode(ops, c.op, c.op, c.attrs, in);
}

// Inference from fewer facts must not refuse the node, and must not contradict the full result.
Status CheckPartialInference(const Case& c, const OpSet& ops, const Facts& full, const Facts& out) {
  for (const bool ranked : {true, false}) {
    for (const bool values : {true, false}) {
      if (c.mutant && !values) continue;  // attributes that leave all to a value need that value
      Facts less = full;
      for (Fact& fact : less) {
        if (fact.absent() || (values && fact.has_value())) continue;
        const int rank = fact.shape.rank();
        fact = Fact::Of(fact.dtype, ranked ? PartialShape::OfRank(rank) : PartialShape());
      }
      auto partial = InferFacts(c, ops, less);
      const std::string what = StrCat("inference with ", ranked ? "unknown sizes" : "unknown rank",
                                      values ? "" : " and no values");
      if (!partial.ok()) return In(partial.status(), what);
      if (partial->size() != out.size()) return InvalidArgument(what, " gives another arity");
      for (size_t i = 0; i < out.size(); ++i) {
        if ((*partial)[i].dtype != out[i].dtype ||
            !MergeShapes((*partial)[i].shape, out[i].shape).ok()) {
          return InvalidArgument(what, " gives ", (*partial)[i], " for output ", i, ", which is ",
                                 out[i]);
        }
      }
    }
  }
  return Status();
}

// Lays buffers out one after another at multiples of the device's alignment.
class Layout {
 public:
  Layout(int64_t alignment, bool offset) : alignment_(alignment), gap_(offset ? alignment : 0) {}
  int64_t Add(int64_t bytes) {
    const int64_t at = end_ + gap_;
    end_ = (at + std::max<int64_t>(bytes, 1) + alignment_ - 1) / alignment_ * alignment_;
    return at;
  }
  int64_t total() const { return end_ + gap_ + alignment_; }

 private:
  int64_t alignment_, gap_, end_ = 0;
};

Result<std::vector<Tensor>> RunOnDevice(const NodeView& node, const Case& c, Device& device,
                                        bool offset) {
  ONCILLA_ASSIGN(auto kernel, device.Prepare(node));
  Layout layout(device.info().alignment_bytes, offset);
  std::vector<std::vector<std::byte>> packed(c.inputs.size());
  std::vector<int64_t> in_at(c.inputs.size(), -1), in_bytes(c.inputs.size());
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i].absent || IsPlanInput(*node.op, i)) continue;
    const Tensor& t = c.inputs[i].value;
    packed[i].assign(t.bytes().begin(), t.bytes().end());
    if (c.inputs[i].constant) {
      ONCILLA_ASSIGN(const Packing packing, device.PackingFor(node, static_cast<int>(i)));
      if (packing.write != nullptr) {
        packed[i].assign(static_cast<size_t>(packing.bytes), std::byte{0});
        ONCILLA_TRY(packing.write(t, packed[i]));
      }
    }
    in_bytes[i] = static_cast<int64_t>(packed[i].size());
    in_at[i] = layout.Add(in_bytes[i]);
  }
  std::vector<int64_t> out_at;
  for (const Fact& fact : node.outputs) out_at.push_back(layout.Add(fact.desc().bytes()));
  const int64_t scratch_at = layout.Add(kernel->scratch_bytes());

  constexpr int64_t kMost = int64_t{1} << 30;  // a session would ask its memory limit
  if (layout.total() > kMost) return Exhausted(c.op, " takes ", layout.total(), " bytes");
  ONCILLA_ASSIGN(auto region, device.AllocateRegion(layout.total()));
  std::vector<std::byte> image(static_cast<size_t>(layout.total()), kPoison);
  Step step;
  step.kernel = kernel.get();
  step.node = c.op;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (in_at[i] < 0) {
      step.inputs.push_back({});
      continue;
    }
    if (!packed[i].empty())
      std::memcpy(image.data() + in_at[i], packed[i].data(), packed[i].size());
    step.inputs.push_back({{region.get(), in_at[i], in_bytes[i]}, -1});
  }
  std::vector<Tensor> out;
  std::vector<std::byte> expected_poison = image;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    ONCILLA_ASSIGN(Tensor t, Tensor::Allocate(node.outputs[i].desc()));
    step.outputs.push_back({{region.get(), out_at[i], node.outputs[i].desc().bytes()}, -1});
    out.push_back(std::move(t));
  }
  step.scratch = {region.get(), scratch_at, kernel->scratch_bytes()};

  ONCILLA_ASSIGN(auto queue, device.OpenQueue());
  const BufferView all{region.get(), 0, layout.total()};
  const Upload upload{all, image};
  ONCILLA_TRY(device.Transfer(*queue, {&upload, 1}, {}).status());
  ONCILLA_ASSIGN(auto recording, device.Record({step}));
  ONCILLA_ASSIGN(const EventPtr done, device.Submit(*queue, *recording, {}, {}));
  std::vector<std::byte> after(image.size());
  const Download download{after, all};
  ONCILLA_ASSIGN(const EventPtr read, device.Transfer(*queue, {}, {&download, 1}));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const Status ran = device.Wait(done, deadline);
  const Status got = device.Wait(read, deadline);
  recording.reset();
  queue.reset();
  ONCILLA_TRY(device.ReleaseRegion(std::move(region)));
  ONCILLA_TRY(ran);
  ONCILLA_TRY(got);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t bytes = out[i].bytes().size();
    if (bytes != 0) std::memcpy(out[i].mutable_bytes().data(), after.data() + out_at[i], bytes);
    std::fill_n(after.begin() + out_at[i], bytes, kPoison);
  }
  std::fill_n(after.begin() + scratch_at, kernel->scratch_bytes(), kPoison);
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i] != expected_poison[i]) {
      return Internal("the kernel wrote outside its outputs, at byte ", i, " of ", after.size());
    }
  }
  return out;
}

// The facts of the inputs for inference: values only of those that are known before a run.
Facts FactsOfInputs(const Case& c, const OpDef& op) {
  Facts in;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const CaseInput& input = c.inputs[i];
    if (input.absent) {
      in.push_back(Fact::Absent());
    } else if (input.constant || IsPlanInput(op, i)) {
      in.push_back(Fact::Constant(input.value));
    } else {
      in.push_back(Fact::Of(input.value.desc()));
    }
  }
  return in;
}

std::vector<Tensor> ValuesOf(const Case& c) {
  std::vector<Tensor> values;
  for (const CaseInput& input : c.inputs) {
    values.push_back(input.absent ? Tensor() : input.value);
  }
  return values;
}

// Whether a case runs on the host for every device.
bool RunsOnHost(const OpDef& op, const Facts& in, const Facts& out) {
  bool host = op.traits.host_only || op.traits.data_dependent;
  for (const Fact& fact : out) host |= !fact.fixed() || fact.dtype == DType::kString;
  for (const Fact& fact : in) host |= fact.dtype == DType::kString;
  return host;
}

// Limits the memory that a mutant may take.
class SmallAccount : public HostAccount {
 public:
  static constexpr int64_t kLimit = int64_t{256} << 20;
  Status Take(int64_t bytes) override {
    if (bytes > kLimit - taken_.load()) return Exhausted("a mutant asks for ", bytes, " bytes");
    taken_ += bytes;
    return Status();
  }
  void Give(int64_t bytes) noexcept override { taken_ -= bytes; }

 private:
  std::atomic<int64_t> taken_{0};
};

bool IsLarge(const Facts& facts) {
  int64_t bytes = 0;
  for (const Fact& fact : facts) {
    if (!fact.fixed()) continue;
    if (__builtin_add_overflow(bytes, fact.desc().bytes(), &bytes)) return true;
    if (fact.dtype == DType::kString && fact.desc().elements() > SmallAccount::kLimit / 64) {
      return true;
    }
  }
  return bytes > SmallAccount::kLimit / 4;
}

Outcome RunMutant(const Case& c, const OpSet& ops, Device& device, Device& reference) {
  const auto wrong = [&](const auto&... what) -> Outcome {
    return {Verdict::kFail, StrCat(what..., "\n", ToText(c))};
  };
  const OpDef& op = *ops.Find(c.op);
  for (const CaseInput& input : c.inputs) {
    if (!input.absent && !input.value.valid()) return {};
  }
  // Ops check the clock themselves, well before the runner considers them hung.
  EarlyEnd end;
  end.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const WorkScope scope({.memory = std::make_shared<SmallAccount>(), .end = &end});
  const Facts in = FactsOfInputs(c, op);
  const auto facts = InferFacts(c, ops, in);
  if (!facts.ok() || IsLarge(*facts)) return {};
  if (Status partial = CheckPartialInference(c, ops, in, *facts); !partial.ok()) {
    return wrong(Message(partial));
  }
  const NodeView node{&op, &c.attrs, in, *facts, c.op};
  const bool host = RunsOnHost(op, in, *facts);
  if (!reference.CanRun(node).ok() || (host && !device.info().can_evaluate)) return {};
  if (!device.CanRun(node).ok()) return {};
  const std::vector<Tensor> values = ValuesOf(c);
  const auto expected = reference.Evaluate(node, values);
  const auto actual = host ? device.Evaluate(node, values) : RunOnDevice(node, c, device, false);
  for (const Status& status : {expected.status(), actual.status()}) {
    if (status.code() == Code::kResourceExhausted) return {};
    if (status.code() == Code::kDeadlineExceeded) return {};
    if (status.code() == Code::kInternal) return wrong(Message(status));
  }
  if (expected.ok() != actual.ok()) {
    return wrong(
        expected.ok() ? "fails where plain code does not: " : "does not fail as plain code does: ",
        Message(expected.ok() ? actual.status() : expected.status()));
  }
  if (!expected.ok()) return {};
  for (size_t i = 0; i < expected->size(); ++i) {
    // Random numbers may be ill-conditioned: only wrong results count here, not inexact ones.
    const double tolerance = c.may_be_rough ? 0.1 : 100 * c.tolerance;
    if (Status s = Agree((*actual)[i], (*expected)[i], tolerance); !s.ok()) {
      return wrong("output ", i, ": ", Message(s));
    }
  }
  return {};
}

}  // namespace

Outcome RunCase(const Case& c, const OpSet& ops, Device& device, Device& reference, bool offset) {
  if (c.mutant) return RunMutant(c, ops, device, reference);
  const OpDef& op = *ops.Find(c.op);
  auto verdict = [&](const Status& status) -> Outcome {
    if (c.error) {
      if (status.ok()) return {Verdict::kFail, StrCat("passed, but must fail with: ", *c.error)};
      if (Message(status).find(*c.error) != std::string::npos) return {};
      return {Verdict::kFail,
              StrCat("failed with: ", Message(status), "\n  instead of: ", *c.error)};
    }
    if (status.ok()) return {};
    return {Verdict::kFail, Message(status)};
  };

  const Facts in = FactsOfInputs(c, op);
  const std::vector<Tensor> values = ValuesOf(c);
  auto facts = InferFacts(c, ops, in);
  if (!facts.ok()) return verdict(facts.status());
  if (Status status = CheckPartialInference(c, ops, in, *facts); !status.ok()) {
    if (!c.error) return {Verdict::kFail, Message(status)};
  }
  const NodeView node{&op, &c.attrs, in, *facts, c.op};
  if (Status can = device.CanRun(node); !can.ok()) {
    const Outcome refused = verdict(can);
    return c.error && refused.verdict == Verdict::kPass
               ? refused
               : Outcome{Verdict::kUnsupported, Message(can)};
  }
  const bool host = RunsOnHost(op, in, *facts);
  if (host && !device.info().can_evaluate) return {Verdict::kUnsupported, "runs on the host"};
  auto actual = host ? device.Evaluate(node, values) : RunOnDevice(node, c, device, offset);
  if (!actual.ok()) return verdict(actual.status());
  if (c.error) return verdict(Status());

  std::vector<Tensor> expected = c.outputs;
  if (c.same_as_cpu) {
    auto computed = reference.Evaluate(node, values);
    if (!computed.ok()) return {Verdict::kFail, StrCat("on the CPU: ", Message(computed.status()))};
    expected = *std::move(computed);
  }
  if (expected.size() != actual->size()) {
    return {Verdict::kFail, StrCat("gives ", actual->size(), " outputs, not ", expected.size())};
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (Status s = Agree((*actual)[i], expected[i], c.tolerance); !s.ok()) {
      return {Verdict::kFail, StrCat("output ", i, ": ", Message(s))};
    }
  }
  return {};
}

}  // namespace oncilla::testing
