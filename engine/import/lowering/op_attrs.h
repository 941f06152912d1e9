// The attribute structs of all canonical ops, and the op of each struct that belongs to one op
// only, such as Softmax for SoftmaxAttrs.
#pragma once

#include <limits>
#include <string_view>

#include "engine/ops/array/indexing.h"
#include "engine/ops/array/list.h"
#include "engine/ops/array/movement.h"
#include "engine/ops/array/segment.h"
#include "engine/ops/array/sparse.h"
#include "engine/ops/check.h"
#include "engine/ops/control.h"
#include "engine/ops/data/records.h"
#include "engine/ops/data/strings.h"
#include "engine/ops/data/text.h"
#include "engine/ops/math/decompose.h"
#include "engine/ops/math/diagonal.h"
#include "engine/ops/math/elementwise.h"
#include "engine/ops/math/elementwise_program.h"
#include "engine/ops/math/linalg.h"
#include "engine/ops/math/matmul.h"
#include "engine/ops/math/packed.h"
#include "engine/ops/math/quantize.h"
#include "engine/ops/math/random.h"
#include "engine/ops/math/reduce.h"
#include "engine/ops/math/trees.h"
#include "engine/ops/nn/attention.h"
#include "engine/ops/nn/columns.h"
#include "engine/ops/nn/conv.h"
#include "engine/ops/nn/image.h"
#include "engine/ops/nn/integer.h"
#include "engine/ops/nn/norm.h"
#include "engine/ops/nn/pool.h"
#include "engine/ops/nn/recurrent.h"
#include "engine/ops/nn/resize.h"
#include "engine/ops/nn/sampling.h"
#include "engine/ops/nn/sequence.h"

namespace oncilla {

// Attributes of elementwise ops, which are rows of a table and have no structs of their own.
struct AlphaAttrs {
  double alpha = std::numeric_limits<double>::quiet_NaN();  // each row has a default of its own
  void Fields(auto&& field) { field("alpha", alpha); }
};
struct HardSigmoidAttrs {
  double alpha = 0.2, beta = 0.5;
  void Fields(auto&& field) {
    field("alpha", alpha);
    field("beta", beta);
  }
};
struct GeluAttrs {
  bool approximate = false;
  void Fields(auto&& field) { field("approximate", approximate); }
};
struct IsInfAttrs {
  bool negative = true, positive = true;
  void Fields(auto&& field) {
    field("negative", negative);
    field("positive", positive);
  }
};

template <class Attrs>
inline constexpr std::string_view kOpOf;

// clang-format off
#define OF_AS(Attrs, name) \
  template <>              \
  inline constexpr std::string_view kOpOf<Attrs> = name;
#define OF(Op) OF_AS(Op##Attrs, #Op)
OF(Assert) OF(AssignVariable) OF(Attention) OF(AveragePool) OF(BatchNorm) OF(Bincount) OF(Bitcast) OF(BlockLstm)
OF(Cast) OF(ChangeCase) OF(CheckNumerics) OF(Compress) OF(Concat) OF(Conv) OF(ConvInteger) OF(ConvTranspose)
OF(CountGrams) OF(CropAndResize) OF(CtcBeam) OF(CtcGreedy) OF(DecodeCsv) OF(DecodeImage)
OF(DecodeRaw) OF(DeformConv) OF(DepthToSpace) OF(DequantizeRange) OF(Dilation) OF(DynamicPartition)
OF(DynamicStitch) OF(EditDistance) OF(EncodeImage) OF(EnsureShape) OF(ExtractGlimpse)
OF(ExtractPatches) OF(EyeLike) OF(Flatten) OF(FoldColumns) OF(FormatStrings) OF(FractionalPool) OF(Gather)
OF(GatherElements) OF(GatherND) OF(Gelu) OF(GridSample) OF(GroupNorm) OF(HardSigmoid)
OF(HashStrings) OF(If) OF(InstanceNorm) OF(IsInf) OF(JpegShape) OF(LinearAttention) OF(ListDiff) OF(ListGet)
OF(ListJoin) OF(ListReserve) OF(ListScatter) OF(ListSet) OF(ListSplit) OF(LpNormalize) OF(LpPool) OF(MatMul) OF(MatMulInteger) OF(MatMulPacked) OF(MatrixExponential) OF(MaxPool) OF(MaxRoiPool)
OF(NonMaxSuppression) OF(NormalizeWords) OF(OneHot) OF(Pad) OF(ParseExamples) OF(ParseNumbers)
OF(Print) OF(PrintNumbers) OF(ProjectImage) OF(QuantizeRange) OF(RaggedGather) OF(RaggedRange)
OF(RaggedToDense) OF(Rank) OF(ReadVariable) OF(ReduceJoin) OF(RegexReplace) OF(Requantize) OF(Reshape) OF(Resize)
OF(ReverseSequence) OF(RoiAlign) OF(RoundToSteps) OF(ScaleAndTranslate) OF(ScatterElements)
OF(ScatterND) OF(SearchSorted) OF(SelectBoxes) OF(SelectBoxesByClass) OF(Shape) OF(Size) OF(Softmax)
OF(SpaceToDepth) OF(SparseConcat) OF(SparseMatMul) OF(SparseToDense) OF(Split) OF(SplitStrings)
OF(StridedSlice) OF(StringNGrams) OF(TopK) OF(TreeEnsemble) OF(TriangularSolve) OF(TridiagonalSolve) OF(Trilu)
OF(Unique) OF(While)
OF_AS(Base64Attrs, "EncodeBase64") OF_AS(BernoulliAttrs, "BernoulliStream")
OF_AS(MersenneAttrs, "MersenneStream") OF_AS(LrnAttrs, "LRN") OF_AS(ShuffleAttrs, "ShuffleStream")
#undef OF
#undef OF_AS
// clang-format on

}  // namespace oncilla
