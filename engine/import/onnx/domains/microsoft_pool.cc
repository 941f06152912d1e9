// com.microsoft's MaxpoolWithMask: pools that see only a part of each window.
#include <limits>

#include "engine/import/onnx/ops/window.h"
#include "engine/ops/check.h"

namespace oncilla {
namespace {

struct MaskedPool {
  int axes = 0;
  ExtractPatchesAttrs window;
  int64_t width = 1;            // of the window along the last axis
  int64_t rows = 1;             // of the window
  ValueId outer = kNoValue;     // [2]: samples and channels
  ValueId channels = kNoValue;  // [1]: their product
  ValueId image = kNoValue;     // the sizes of a channel
  ValueId area = kNoValue;      // [1]: their product
};

// Fails where the mask's spatial sizes are not the input's: now, or in the run where they are not
// known before.
Status RequireSameImage(OnnxLowering& b, const MaskedPool& pool, int rank) {
  const PartialShape x = b.in_fact(0).shape, mask = b.in_fact(1).shape;
  bool known = x.ranked() && mask.ranked();
  for (int i = 2; i < rank && known; ++i) {
    known = x[i].known() && mask[i].known();
    if (known && x[i].size != mask[i].size) {
      return InvalidArgument("the mask is ", mask, ", the input ", x);
    }
  }
  if (known) return {};
  ONCILLA_ASSIGN(const ValueId own, b.Sizes(b.in(1), 2, rank, "mask_image"));
  ONCILLA_ASSIGN(ValueId same, b.Add("Equal", {}, {own, pool.image}, "equal_sizes"));
  ONCILLA_ASSIGN(
      same, b.Add("ReduceAll", ReduceAttrs{.keep_dims = false}, {same, b.Ints({0})}, "same_sizes"));
  const ValueId text =
      b.Constant(Tensor::Strings({}, {"the spatial sizes of the mask and of the input differ:"}));
  return b.AddAll(AssertAttrs{}, {same, text, own, pool.image}, "check").status();
}

Result<MaskedPool> ReadMaskedPool(OnnxLowering& b) {
  b.Ignore("storage_order");  // of indices, which this op does not give
  if (b.dtype(0) != DType::kF32 || b.dtype(1) != DType::kI32) {
    return InvalidArgument("of ", b.dtype(0), " with a mask of ", b.dtype(1));
  }
  MaskedPool pool;
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const int mask_rank, b.Rank(1, "the mask"));
  if (rank < 3 || rank > 5) return Unsupported("with ", rank - 2, " spatial axes");
  if (mask_rank != rank) {
    return InvalidArgument("the mask has the rank ", mask_rank, ", the input ", rank);
  }
  pool.axes = rank - 2;
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, pool.axes, false));
  pool.window = window.As<ExtractPatchesAttrs>();
  ONCILLA_ASSIGN(pool.window.kernel, OnnxSpatialList(b, "kernel_shape", pool.axes));
  if (pool.window.kernel.empty()) return DataLoss("attribute 'kernel_shape' is missing");
  const auto& [kernel, strides, dilations, pads, auto_pad, ceil] =
      static_cast<const PoolWindow&>(pool.window);
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] < 0 || pads[i] >= kernel[i % kernel.size()]) {
      return InvalidArgument("pads holds ", pads[i], " for a window of ",
                             kernel[i % kernel.size()]);
    }
  }
  // ONNX Runtime's rule for the padding gives less than none there.
  for (size_t i = 0; i < strides.size() && auto_pad.starts_with("same"); ++i) {
    if (strides[i] - 1 > kernel[i]) {
      return Unsupported("with auto_pad, a stride of ", strides[i], " and a window of ", kernel[i]);
    }
  }
  // Every place of every window is a number in memory.
  constexpr int64_t kMostTaps = int64_t{1} << 20;
  int64_t taps = 1;
  for (int64_t size : pool.window.kernel) {
    if (size < 1) return InvalidArgument("kernel_shape holds ", size);
    taps = SaturatingMul(taps, size);
  }
  if (taps > kMostTaps) return Unsupported("with windows of ", taps, " elements");
  pool.width = pool.window.kernel.back();
  pool.rows = taps / pool.width;
  const ReduceAttrs keep = {.keep_dims = true};
  ONCILLA_ASSIGN(pool.outer, b.Sizes(b.in(0), 0, 2, "outer"));
  ONCILLA_ASSIGN(pool.channels, b.Add("ReduceProd", keep, {pool.outer, b.Ints({0})}, "channels"));
  ONCILLA_ASSIGN(pool.image, b.Sizes(b.in(0), 2, rank, "image"));
  ONCILLA_ASSIGN(pool.area, b.Add("ReduceProd", keep, {pool.image, b.Ints({0})}, "area"));
  ONCILLA_TRY(RequireSameImage(b, pool, rank));
  return pool;
}

// [channels, area] or [1, area]: whether the mask closes an element. Channel c of the input begins
// at element c * area modulo the mask's number of channels, which is what ONNX Runtime computes;
// so a mask of one channel is for all of them.
Result<ValueId> ClosedElements(OnnxLowering& b, const MaskedPool& pool) {
  const PartialShape shape = b.in_fact(1).shape;
  const bool one = shape.ranked() && shape[0].known() && shape[1].known() && shape[0].size == 1 &&
                   shape[1].size == 1;
  const ValueId zero = b.Constant(Tensor::ScalarInt64(0)),
                unit = b.Constant(Tensor::ScalarInt64(1));
  const auto range = [&](ValueId count, const std::string& name) -> Result<ValueId> {
    ONCILLA_ASSIGN(const ValueId end, b.ToScalar(count, name + "_end"));
    return b.Add("Range", {}, {zero, end, unit}, name);
  };
  ONCILLA_ASSIGN(const ValueId elements, range(pool.area, "elements"));
  ONCILLA_ASSIGN(const ValueId outer, b.Sizes(b.in(1), 0, 2, "mask_outer"));
  ONCILLA_ASSIGN(const ValueId count, b.Add("ReduceProd", ReduceAttrs{.keep_dims = true},
                                            {outer, b.Ints({0})}, "mask_channels"));
  ONCILLA_ASSIGN(const ValueId sizes,
                 b.Add(ConcatAttrs{.axis = 0}, {count, pool.area}, "mask_sizes"));
  ONCILLA_ASSIGN(ValueId mask, b.Add(ReshapeAttrs{}, {b.in(1), sizes}, "mask_channels_in_rows"));
  if (!one) {
    ONCILLA_ASSIGN(ValueId first, range(pool.channels, "channel"));
    ONCILLA_ASSIGN(first, b.Add("Mul", {}, {first, pool.area}, "first"));
    ONCILLA_ASSIGN(first, b.Add("FloorMod", {}, {first, count}, "first_of_mask"));
    ONCILLA_ASSIGN(first, b.Unsqueeze(first, {1}, "first_upright"));
    ONCILLA_ASSIGN(const ValueId places, b.Add("Add", {}, {first, elements}, "places"));
    ONCILLA_ASSIGN(const ValueId flat, b.Add(ReshapeAttrs{}, {mask, b.Ints({-1})}, "flat_mask"));
    ONCILLA_ASSIGN(mask, b.Add(GatherAttrs{.axis = 0}, {flat, places}, "mask"));
  }
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(DType::kI32, 0));
  ONCILLA_ASSIGN(const ValueId closed, b.Add("Equal", {}, {mask, none}, "closed"));
  if (pool.axes == 1) return closed;
  // The first element of a channel is always open, but where there is one axis.
  ONCILLA_ASSIGN(const ValueId later, b.Add("Greater", {}, {elements, zero}, "later"));
  return b.Add("And", {}, {closed, later}, "closed_later");
}

// What each window sees of x [channels, area]: [channels, out.., rows, width], zeros outside.
Result<ValueId> Windows(OnnxLowering& b, const MaskedPool& pool, ValueId x,
                        const std::string& name) {
  ONCILLA_ASSIGN(
      const ValueId shape,
      b.Add(ConcatAttrs{.axis = 0}, {b.Ints({-1}), pool.image, b.Ints({1})}, name + "_sizes"));
  ONCILLA_ASSIGN(const ValueId image, b.Add(ReshapeAttrs{}, {x, shape}, name + "_image"));
  ONCILLA_ASSIGN(const ValueId patches, b.Add(pool.window, {image}, name + "_windows"));
  std::vector<int64_t> sizes(static_cast<size_t>(pool.axes) + 1, 0);
  sizes.insert(sizes.end(), {pool.rows, pool.width});
  return b.Add(ReshapeAttrs{.zero_copies = true}, {patches, b.Ints(std::move(sizes))},
               name + "_rows");
}

// The largest element of each window before the first closed one of its row; the least number where
// there is none. NaN and -inf count as the least number.
Result<Values> LowerMaxpoolWithMask(OnnxLowering& b) {
  ONCILLA_ASSIGN(const MaskedPool pool, ReadMaskedPool(b));
  ONCILLA_ASSIGN(const ValueId least,
                 b.Scalar(DType::kF32, double{std::numeric_limits<float>::lowest()}));
  ONCILLA_ASSIGN(const ValueId flat_shape,
                 b.Add(ConcatAttrs{.axis = 0}, {pool.channels, pool.area}, "flat_sizes"));
  ONCILLA_ASSIGN(ValueId x, b.Add(ReshapeAttrs{}, {b.in(0), flat_shape}, "flat"));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Greater", {}, {x, least}, "above"));
  ONCILLA_ASSIGN(x, b.Add("Where", {}, {above, x, least}, "numbers"));
  ONCILLA_ASSIGN(x, Windows(b, pool, x, "x"));
  ONCILLA_ASSIGN(ValueId closed, ClosedElements(b, pool));
  ONCILLA_ASSIGN(closed, b.Cast(closed, DType::kF32, "closed_number"));
  ONCILLA_ASSIGN(closed, Windows(b, pool, closed, "closed"));
  ONCILLA_ASSIGN(
      closed, b.Add("CumSum", {}, {closed, b.Constant(Tensor::ScalarInt64(-1))}, "closed_before"));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF32, 1));
  ONCILLA_ASSIGN(ValueId inside,
                 b.Add(ConcatAttrs{.axis = 0}, {b.Ints({1}), pool.area}, "one_channel"));
  ONCILLA_ASSIGN(inside, b.Add("Expand", {}, {one, inside}, "ones"));
  ONCILLA_ASSIGN(inside, Windows(b, pool, inside, "inside"));
  ONCILLA_ASSIGN(const ValueId open, b.Add("Less", {}, {closed, inside}, "open"));
  ONCILLA_ASSIGN(ValueId y, b.Add("Where", {}, {open, x, least}, "seen"));
  ONCILLA_ASSIGN(
      y, b.Add("ReduceMax", ReduceAttrs{.keep_dims = false}, {y, b.Ints({-2, -1})}, "largest"));
  ONCILLA_ASSIGN(const ValueId places, b.Sizes(y, 1, pool.axes + 1, "places_of_windows"));
  ONCILLA_ASSIGN(const ValueId shape, b.Add(ConcatAttrs{.axis = 0}, {pool.outer, places}, "sizes"));
  return One(b.Add(ReshapeAttrs{}, {y, shape}));
}

constexpr OnnxOpRow kRows[] = {
    {"MaxpoolWithMask", 1, kNewestOnnxMicrosoft, 2, "", LowerMaxpoolWithMask},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftPoolRows() { return kRows; }

}  // namespace oncilla
