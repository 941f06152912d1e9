// Recipes of ops that generate tensors from a few numbers.
#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/move.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/array/indexing.h"

namespace oncilla::opencl {
namespace {

// The number of a plan input as the bits that range.cl takes.
Result<uint64_t> Bits(const Tensor& value) {
  if (IsInteger(value.dtype())) {
    // In two's complement only the low bits matter here, so sign extension does no harm.
    uint64_t bits = 0;
    std::memcpy(&bits, value.bytes().data(), value.bytes().size());
    return bits;
  }
  ONCILLA_ASSIGN(const auto number, ToDoubles(value));
  if (value.dtype() == DType::kF64) return std::bit_cast<uint64_t>(number[0]);
  return std::bit_cast<uint32_t>(static_cast<float>(number[0]));
}

Result<Recipe> Range(const NoAttrs&, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  if (y.elements() == 0) return Recipe();
  ONCILLA_ASSIGN(const uint64_t start, Bits(node.inputs[0].value));
  ONCILLA_ASSIGN(const uint64_t delta, Bits(node.inputs[2].value));
  const int kind = IsInteger(y.dtype) ? 0 : y.dtype == DType::kF64 ? 2 : 1;
  DispatchBuilder b(cl::kIndexingRange, "range");
  b.Define({{"TYPE", TypeName(y.dtype)}, {"KIND", StrCat(kind)}});
  b.Arg("y", Out{0}).Arg("n", y.elements()).Arg("start", start).Arg("delta", delta);
  return b.Flat(y.elements(), caps).Alone();
}

Result<Recipe> OneHot(const OneHotAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  const auto axis = static_cast<int>(attrs.axis < 0 ? attrs.axis + y.rank() : attrs.axis);
  if (y.elements() == 0) return Recipe();
  const IndexType index(y.elements(), IndexType::kPlaces);
  DispatchBuilder b(cl::kIndexingOneHot, "one_hot", index);
  b.Define({{"T", std::string(MoveType(y.dtype))},
            {"I", index.name()},
            {"INDEX", TypeName(node.inputs[0].dtype)},
            {"NEGATIVE", Flag(attrs.negative_indices)}});
  b.Arg("indices", In{0}).Arg("values", In{2}).Arg("y", Out{0});
  b.Index({{"elements", y.elements()},
           {"depth", y.shape[axis]},
           {"inner", y.shape.Product(axis + 1, y.rank())}});
  return b.Flat(y.elements(), caps).Alone();
}

// The part that both kernels of triangle.cl share, up to their operands.
DispatchBuilder Triangle(const char* entry, bool upper, const TensorDesc& y) {
  const IndexType index(y.elements(), IndexType::kPlaces);
  DispatchBuilder b(cl::kIndexingTriangle, entry, index);
  b.Define({{"T", std::string(MoveType(y.dtype))},
            {"I", index.name()},
            {"UPPER", Flag(upper)},
            {"TYPE", TypeName(y.dtype)}});
  return b;
}

// Clamps a diagonal outside the matrix to one just outside it.
int64_t Diagonal(int64_t k, const TensorDesc& y) {
  const int64_t far = std::max(y.shape[y.rank() - 2], y.shape[y.rank() - 1]) + 1;
  return std::clamp(k, -far, far);
}

Result<Recipe> Trilu(const TriluAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  int64_t k = 0;
  if (node.has_input(1)) {
    ONCILLA_ASSIGN(const auto given, NeedInts(node.inputs[1], "k"));
    k = given[0];
  }
  if (y.elements() == 0) return Recipe();
  DispatchBuilder b = Triangle("triangle", attrs.upper, y);
  b.Arg("x", In{0}).Arg("y", Out{0}).Index("elements", y.elements());
  b.Index({{"rows", y.shape[y.rank() - 2]}, {"columns", y.shape.back()}, {"k", Diagonal(k, y)}});
  return b.Flat(y.elements(), caps).Alone();
}

Result<Recipe> EyeLike(const EyeLikeAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc y = node.outputs[0].desc();
  if (y.elements() == 0) return Recipe();
  DispatchBuilder b = Triangle("eye", true, y);
  b.Arg("y", Out{0}).Index("elements", y.elements());
  b.Index({{"columns", y.shape.back()}, {"k", Diagonal(attrs.k, y)}});
  return b.Flat(y.elements(), caps).Alone();
}

const KernelRow kRows[] = {
    MoveRow<FillMoves>("Fill"),          Row<Range>("Range", kNumbers),
    Row<OneHot>("OneHot", kIntegers),    Row<Trilu>("Trilu", kFixedSize),
    Row<EyeLike>("EyeLike", kFixedSize),
};

}  // namespace

std::span<const KernelRow> ShapeKernels() { return kRows; }

}  // namespace oncilla::opencl
