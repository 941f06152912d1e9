// Recipes of quantisation by scale and zero point: a work-item per element. Quantisation by ranges,
// types of fewer than 8 bits, and divisions in a precision other than float are left to the CPU.
#include "engine/ops/math/quantize.h"

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

constexpr DTypeSet kScales = Set(DType::kF32) | Set(DType::kF16) | Set(DType::kBF16);
constexpr DTypeSet kStored8And16 =
    Set(DType::kI8) | Set(DType::kU8) | Set(DType::kI16) | Set(DType::kU16);

Status CheckTypes(const NodeView& node, DType computed, DType stored, DTypeSet allowed) {
  if ((Set(computed) & kScales) == 0) {
    return Unsupported("opencl has no ", node.op->name, " for ", computed);
  }
  if ((Set(node.inputs[1].dtype) & kScales) == 0) {
    return Unsupported("opencl has no ", node.op->name, " by a scale of ", node.inputs[1].dtype);
  }
  if ((Set(stored) & allowed) == 0) {
    return Unsupported("opencl has no ", node.op->name, " for ", stored);
  }
  return {};
}

Status CheckQuantize(const QuantizeLinearAttrs& attrs, const NodeView& node, const Capabilities&) {
  if (attrs.precision != DType::kF32) {
    return Unsupported("opencl has no QuantizeLinear in ", attrs.precision);
  }
  return CheckTypes(node, node.inputs[0].dtype, attrs.to, kStored8And16);
}

Status CheckDequantize(const DequantizeLinearAttrs& attrs, const NodeView& node,
                       const Capabilities&) {
  return CheckTypes(node, attrs.to, node.inputs[0].dtype, kStored8And16 | Set(DType::kI32));
}

// Adds the operands, sizes and steps that both kernels share.
Result<DispatchBuilder> Begin(std::string entry, const NodeView& node, int64_t axis,
                              int64_t block) {
  const Shape x = node.inputs[0].desc().shape;
  ONCILLA_ASSIGN(const ParameterPlaces scale,
                 PlacesOf(x, node.inputs[1].desc().shape, axis, block));
  const bool has = node.has_input(2);
  ParameterPlaces zero;
  if (has) {
    ONCILLA_ASSIGN(zero, PlacesOf(x, node.inputs[2].desc().shape, axis, block));
  }
  const ParameterPlaces& sizes = scale.steps.place != 0 || !has ? scale : zero;
  const IndexType index(x.elements());
  DispatchBuilder b(cl::kQuantizeLinear, std::move(entry), index);
  b.Define("IDX", index.name()).Type("T", node.inputs[0]).Type("S", node.inputs[1]);
  b.Type("Z", node.inputs[has ? 2 : 0]).Type("Y", node.outputs[0]).Define("HAS_ZERO", Flag(has));
  b.Define("QUANTIZE", Flag(node.op->name == "QuantizeLinear"));
  b.Arg("x", In{0}).Arg("y", Out{0}).Arg("scale", In{1}).Arg("zero", In{has ? 2 : 0});
  b.Index({{"elements", x.elements()}, {"places", sizes.places}, {"inner", sizes.inner}});
  b.Index({{"scale_outer", scale.steps.outer}, {"scale_place", scale.steps.place}});
  b.Index({{"scale_inner", scale.steps.inner}, {"scale_block", scale.steps.block}});
  b.Index({{"zero_outer", zero.steps.outer}, {"zero_place", zero.steps.place}});
  b.Index({{"zero_inner", zero.steps.inner}, {"zero_block", zero.steps.block}});
  return b;
}

Recipe Launch(DispatchBuilder& b, const NodeView& node, const Capabilities& caps) {
  const int64_t group = caps.Group(TuningOf(caps).flat_group);
  b.Define("GROUP", StrCat(group));
  return b.Groups({DivideUp(node.inputs[0].desc().elements(), group), 1, 1}, {group, 1, 1}).Alone();
}

Result<Recipe> Quantize(const QuantizeLinearAttrs& attrs, const NodeView& node,
                        const Capabilities& caps) {
  if (node.inputs[0].desc().elements() == 0) return Recipe();
  ONCILLA_ASSIGN(DispatchBuilder b, Begin("quantize_linear", node, attrs.axis, attrs.block_size));
  const auto steps = static_cast<double>(int64_t{1} << BitsOf(attrs.to));
  const double low = IsSigned(attrs.to) ? -steps / 2 : 0;
  b.Float("low", low).Float("high", low + steps - 1);
  return Launch(b, node, caps);
}

Result<Recipe> Dequantize(const DequantizeLinearAttrs& attrs, const NodeView& node,
                          const Capabilities& caps) {
  if (node.inputs[0].desc().elements() == 0) return Recipe();
  ONCILLA_ASSIGN(DispatchBuilder b, Begin("dequantize_linear", node, attrs.axis, attrs.block_size));
  return Launch(b, node, caps);
}

// Elements are only copied, so types of one size share a program.
Status CheckByteTable(const NoAttrs&, const NodeView& node, const Capabilities&) {
  const DType to = node.outputs[0].dtype;
  if ((Set(to) & kFixedSize) == 0) return Unsupported("opencl has no ByteTable of ", to);
  return {};
}

Result<Recipe> ByteTable(const NoAttrs&, const NodeView& node, const Capabilities& caps) {
  const int64_t elements = node.inputs[0].desc().elements();
  if (elements == 0) return Recipe();
  const IndexType index(elements);
  DispatchBuilder b(cl::kQuantizeByteTable, "byte_table", index);
  b.Define("IDX", index.name()).Define("BYTES", StrCat(BytesOf(node.outputs[0].dtype)));
  b.Arg("x", In{0}).Arg("table", In{1}).Arg("y", Out{0}).Index({{"elements", elements}});
  return Launch(b, node, caps);
}

constexpr KernelRow kRows[] = {
    Row<ByteTable>("ByteTable", Set(DType::kU8) | Set(DType::kI8)).CanRun<CheckByteTable>(),
    Row<Quantize>("QuantizeLinear", kScales).CanRun<CheckQuantize>(),
    Row<Dequantize>("DequantizeLinear", kIntegers).CanRun<CheckDequantize>(),
};

}  // namespace

std::span<const KernelRow> QuantizeKernels() { return kRows; }

}  // namespace oncilla::opencl
