// Movement of elements that share bytes: a wrapper for all movement ops unpacks, moves and packs
// them again.
#include "backends/cpu/packed_moves.h"

#include <algorithm>

#include "engine/tensor/numbers.h"

namespace oncilla::cpu {
namespace {

// The same facts with a byte for each element. Known values are dropped, since they are stored as
// bits.
Facts AsBytes(std::span<const Fact> facts) {
  Facts out(facts.begin(), facts.end());
  for (Fact& fact : out) {
    if (fact.absent() || !IsPacked(fact.dtype)) continue;
    fact.dtype = DType::kU8;
    fact.value = Tensor();
    fact.constant = false;
  }
  return out;
}

class PackedMove : public CpuKernel {
 public:
  PackedMove(const NodeView& node, std::unique_ptr<CpuKernel> inner)
      : CpuKernel(node), inner_(std::move(inner)) {}

  std::string description() const override { return inner_->description() + " on unpacked bytes"; }

  Status Run(const Args& args) const override {
    std::vector<std::vector<uint8_t>> bytes;
    bytes.reserve(args.node.inputs.size() + args.node.outputs.size());
    std::vector<const std::byte*> inputs(args.inputs.begin(), args.inputs.end());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!args.has_input(i) || !IsPacked(args.in(i).dtype) || inputs[i] == nullptr) continue;
      const int64_t count = args.in(i).elements();
      bytes.emplace_back(static_cast<size_t>(count));
      UnpackCodes(args.in(i).dtype, inputs[i], count, bytes.back().data());
      inputs[i] = reinterpret_cast<const std::byte*>(bytes.back().data());
    }
    std::vector<std::byte*> outputs(args.outputs.begin(), args.outputs.end());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!IsPacked(args.out(i).dtype)) continue;
      bytes.emplace_back(static_cast<size_t>(args.out(i).elements()));
      outputs[i] = reinterpret_cast<std::byte*>(bytes.back().data());
    }
    const NodeView view = inner_->node();
    ONCILLA_TRY(inner_->Run({view, inputs, outputs, args.scratch, args.threads}));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const TensorDesc y = args.out(i);
      if (!IsPacked(y.dtype)) continue;
      PackCodes(y.dtype, reinterpret_cast<const uint8_t*>(outputs[i]), y.elements(),
                args.outputs[i]);
    }
    return Status();
  }

 private:
  std::unique_ptr<CpuKernel> inner_;
};

}  // namespace

bool HasPacked(const NodeView& node) {
  const auto packed = [](const Fact& fact) { return !fact.absent() && IsPacked(fact.dtype); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), packed) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), packed);
}

Result<std::unique_ptr<CpuKernel>> MakePackedMove(const KernelRow& row, const NodeView& node) {
  const Facts inputs = AsBytes(node.inputs), outputs = AsBytes(node.outputs);
  ONCILLA_ASSIGN(auto inner, row.plain({node.op, node.attrs, inputs, outputs, node.name}));
  return std::unique_ptr<CpuKernel>(std::make_unique<PackedMove>(node, std::move(inner)));
}

}  // namespace oncilla::cpu
