// Fast QuantizeLinear and DequantizeLinear between f32 and integers of 8 and 16 bits with one scale
// and zero point for all.
#include "engine/ops/math/quantize.h"

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/integer/element_bytes.h"
#include "engine/tensor/scalar.h"

namespace oncilla::cpu {
namespace {

constexpr int64_t kGrain = 1 << 15;

// One scale, and one zero point or none.
bool HasOneScale(const NodeView& node) {
  if (node.inputs[1].dtype != DType::kF32 || node.inputs[1].desc().elements() != 1) return false;
  return !node.has_input(2) || node.inputs[2].desc().elements() == 1;
}

ByteScale ScaleOf(const Args& args, DType integers) {
  ByteScale scale;
  scale.scale = args.In<float>(1)[0];
  if (args.has_input(2)) {
    DispatchDType(integers, [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_integral_v<T>) scale.zero = static_cast<float>(args.In<T>(2)[0]);
    });
  }
  const IntegerLimits limits = LimitsOf(integers);
  scale.least = static_cast<float>(limits.least);
  scale.most = static_cast<float>(limits.most);
  return scale;
}

class FastQuantize : public CpuKernel {
 public:
  using CpuKernel::CpuKernel;
  std::string description() const override { return "vectors"; }

  Status Run(const Args& args) const override {
    const DType to = args.out(0).dtype;
    const ByteScale scale = ScaleOf(args, to);
    ParallelFor(args.threads, args.in(0).elements(), kGrain, [&](int64_t begin, int64_t end) {
      ToScaled(args.In<float>(0) + begin, end - begin, scale, to,
               args.outputs[0] + begin * (BitsOf(to) / 8));
    });
    return Status();
  }
};

class FastDequantize : public CpuKernel {
 public:
  using CpuKernel::CpuKernel;
  std::string description() const override { return "vectors"; }

  Status Run(const Args& args) const override {
    const DType from = args.in(0).dtype;
    const ByteScale scale = ScaleOf(args, from);
    ParallelFor(args.threads, args.in(0).elements(), kGrain, [&](int64_t begin, int64_t end) {
      FromScaled(from, args.inputs[0] + begin * (BitsOf(from) / 8), end - begin, scale,
                 args.Out<float>(0) + begin);
    });
    return Status();
  }
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastQuantizeLinear(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<QuantizeLinearAttrs>(*node.attrs));
  if (node.inputs[0].dtype != DType::kF32 || attrs.precision != DType::kF32 ||
      attrs.block_size != 0 || !HasByteScale(attrs.to) || !HasOneScale(node)) {
    return nullptr;
  }
  return std::unique_ptr<CpuKernel>(std::make_unique<FastQuantize>(node));
}

Result<std::unique_ptr<CpuKernel>> MakeFastDequantizeLinear(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<DequantizeLinearAttrs>(*node.attrs));
  if (!HasByteScale(node.inputs[0].dtype) || attrs.to != DType::kF32 || attrs.block_size != 0 ||
      !HasOneScale(node)) {
    return nullptr;
  }
  return std::unique_ptr<CpuKernel>(std::make_unique<FastDequantize>(node));
}

}  // namespace oncilla::cpu
