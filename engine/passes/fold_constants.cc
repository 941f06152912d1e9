// Constant folding: nodes whose inputs are all known are computed now, by the CPU's reference
// kernels.
//
// The growth is bounded: a result that is larger than the inputs is folded only while it is small,
// so that a Fill or Expand of a constant does not turn into megabytes. Where the facts do not tell
// how large it will be (data-dependent sizes, strings), the computation is bounded as well.
#include <atomic>

#include "engine/base/work_limits.h"
#include "engine/passes/pass.h"
#include "engine/tensor/tensor_list.h"

namespace oncilla {
namespace {

constexpr int64_t kSmallBytes = 1 << 16;

// The factor 4 lets an int8 weight become float32.
bool GrowsTooMuch(int64_t in_bytes, int64_t out_bytes) {
  return out_bytes > kSmallBytes && out_bytes > SaturatingMul(in_bytes, 4);
}

// What one node may take while it is folded; counted on the account of the work at hand too.
class FoldAccount : public HostAccount {
 public:
  explicit FoldAccount(int64_t most) : outer_(WorkScope::Current().memory), most_(most) {}
  Status Take(int64_t bytes) override {
    if (bytes_.fetch_add(bytes) > most_ - bytes) {
      bytes_ -= bytes;
      return Exhausted("a folded constant may take ", most_, " bytes");
    }
    if (outer_ == nullptr) return Status();
    const Status taken = outer_->Take(bytes);
    if (!taken.ok()) bytes_ -= bytes;
    return taken;
  }
  void Give(int64_t bytes) noexcept override {
    bytes_ -= bytes;
    if (outer_ != nullptr) outer_->Give(bytes);
  }

 private:
  const std::shared_ptr<HostAccount> outer_;
  const int64_t most_;
  std::atomic<int64_t> bytes_ = 0;
};

}  // namespace

Status FoldConstants(const Graph& graph, const PassContext& context, Patch& patch) {
  std::vector<ValueId> known(graph.values().size(), kNoValue);  // its replacement
  for (uint32_t i = 0; i < graph.values().size(); ++i) {
    if (graph.value(ValueId{i}).is_constant()) known[i] = ValueId{i};
  }
  for (const Node& node : graph.nodes()) {
    const OpTraits& traits = node.op->traits;
    if (traits.has_effects || traits.is_random) continue;
    // Inference may know the outputs even without the inputs' values (Shape of a tensor of known
    // sizes).
    bool inferred = true, tensors = true;
    for (ValueId out : node.outputs) {
      inferred &= graph.fact(out).has_value();
      tensors &= graph.fact(out).kind == ValueKind::kTensor;
    }
    if (!tensors) continue;
    std::vector<Tensor> results;
    if (inferred) {
      for (ValueId out : node.outputs) results.push_back(graph.fact(out).value);
    } else {
      std::vector<Tensor> in;
      int64_t in_bytes = 0, out_bytes = 0;
      bool all = true;
      for (ValueId id : node.inputs) {
        if (id == kNoValue) {
          in.emplace_back();
          continue;
        }
        all &= known[Index(id)] != kNoValue;
        if (!all) break;
        in.push_back(patch.fact(known[Index(id)]).value);
        in_bytes = SaturatingAdd(in_bytes, in.back().desc().bytes());
        // The bytes of strings are not visible in shapes, so they are checked here.
        all = in.back().dtype() != DType::kString || HeldBytesOf(in.back()) <= kSmallBytes;
        if (!all) break;
      }
      if (!all || node.inputs.empty()) continue;
      const Facts out_facts = graph.FactsOf(node.outputs);
      bool sized = true;
      for (const Fact& fact : out_facts) {
        if (fact.fixed()) out_bytes = SaturatingAdd(out_bytes, fact.desc().bytes());
        sized &= fact.fixed() && fact.dtype != DType::kString;
      }
      if (out_bytes > context.max_folded_bytes || GrowsTooMuch(in_bytes, out_bytes)) continue;
      const Facts in_facts = graph.FactsOf(node.inputs);
      const NodeView view{node.op, &node.attrs, in_facts, out_facts, node.name};
      if (!context.devices[0]->CanRun(view).ok()) continue;
      WorkLimits limits = WorkScope::Current();
      if (!sized) {
        // What is taken on the way counts as well, and a result is looked at again below.
        limits.memory = std::make_shared<FoldAccount>(
            SaturatingAdd(int64_t{16} * kSmallBytes, SaturatingMul(in_bytes, 16)));
      }
      const WorkScope scope(limits);
      auto computed = context.devices[0]->Evaluate(view, in);
      // A failure is ignored here: the node may be on a branch that is never taken. If it is run,
      // it fails again.
      if (!computed.ok()) {
        ONCILLA_TRY(WorkLook::Ask());
        continue;
      }
      results = *std::move(computed);
      int64_t held = 0;
      for (const Tensor& result : results) held = SaturatingAdd(held, HeldBytesOf(result));
      if (!sized && GrowsTooMuch(in_bytes, held)) continue;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId constant = patch.AddConstant(results[i]);
      known[Index(node.outputs[i])] = constant;
      ONCILLA_TRY(patch.Replace(node.outputs[i], constant));
    }
  }
  return Status();
}

}  // namespace oncilla
