// A convolution as Conv or ConvTranspose, with axes moved to where these want them.
#include "engine/import/xla/conv.h"

#include <algorithm>

#include "engine/import/xla/shape.h"

namespace oncilla {
namespace {

std::vector<int64_t> AxesOf(int64_t first, const std::vector<int64_t>& middle, int64_t last) {
  std::vector<int64_t> axes = {first};
  axes.insert(axes.end(), middle.begin(), middle.end());
  axes.push_back(last);
  return axes;
}

bool AllAre(const std::vector<int64_t>& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

Status Fill(std::vector<int64_t>& values, size_t spatial, int64_t otherwise,
            std::string_view what) {
  if (values.empty()) values.assign(spatial, otherwise);
  if (values.size() != spatial) return DataLoss(what, " for ", values.size(), " spatial axes");
  constexpr int64_t kMost = int64_t{1} << 31;
  for (int64_t value : values) {
    if (value > kMost || value < -kMost) return InvalidArgument(what, " of ", value);
  }
  return {};
}

Status Check(const Lowering& b, ValueId x, ValueId filter, XlaConvolution& conv) {
  const PartialShape &in = b.fact(x).shape, &by = b.fact(filter).shape;
  const size_t spatial = conv.input_spatial.size();
  const int rank = static_cast<int>(spatial) + 2;
  if (!in.ranked() || !by.ranked()) return Unsupported("a convolution of unknown rank");
  if (in.rank() != rank || by.rank() != rank || conv.filter_spatial.size() != spatial ||
      conv.output_spatial.size() != spatial) {
    return DataLoss("a convolution with ", spatial, " spatial axes of ", in, " by ", by);
  }
  if (spatial < 1 || spatial > 3) return Unsupported("a convolution along ", spatial, " axes");
  ONCILLA_TRY(CheckAxes(AxesOf(conv.input_batch, conv.input_spatial, conv.input_feature), rank,
                        "the input's axes"));
  ONCILLA_TRY(CheckAxes(AxesOf(conv.filter_input, conv.filter_spatial, conv.filter_output), rank,
                        "the filter's axes"));
  ONCILLA_TRY(CheckAxes(AxesOf(conv.output_batch, conv.output_spatial, conv.output_feature), rank,
                        "the output's axes"));
  ONCILLA_TRY(Fill(conv.strides, spatial, 1, "strides"));
  ONCILLA_TRY(Fill(conv.low, spatial, 0, "padding"));
  ONCILLA_TRY(Fill(conv.high, spatial, 0, "padding"));
  ONCILLA_TRY(Fill(conv.input_dilation, spatial, 1, "dilation"));
  ONCILLA_TRY(Fill(conv.filter_dilation, spatial, 1, "dilation"));
  ONCILLA_TRY(Fill(conv.reversal, spatial, 0, "reversal"));
  for (size_t i = 0; i < spatial; ++i) {
    if (conv.strides[i] < 1 || conv.input_dilation[i] < 1 || conv.filter_dilation[i] < 1) {
      return InvalidArgument("a stride or dilation below one");
    }
  }
  if (conv.feature_groups < 1 || conv.batch_groups < 1) return InvalidArgument("groups below one");
  return {};
}

// Groups of the batch become groups of channels: [G * N, .., C] is taken as [N, .., G * C].
Result<ValueId> BatchGroupsToChannels(Lowering& b, ValueId x, int64_t groups) {
  const int rank = b.fact(x).shape.rank();
  if (!b.fact(x).shape[0].known() || b.fact(x).shape[0].size % groups != 0) {
    return Unsupported("groups of a batch whose size is not known");
  }
  std::vector<XlaSize> apart = {XlaSize::Number(groups),
                                XlaSize::Number(b.fact(x).shape[0].size / groups)};
  for (int i = 1; i < rank; ++i) apart.push_back(XlaSize::Axis(x, i));
  ONCILLA_ASSIGN(const ValueId split, ReshapeTo(b, x, apart, "batch_groups"));
  std::vector<int64_t> perm;
  for (int i = 1; i < rank; ++i) perm.push_back(i);
  perm.push_back(0);
  perm.push_back(rank);
  ONCILLA_ASSIGN(const ValueId moved, b.Transpose(split, perm, "batch_groups_moved"));
  std::vector<XlaSize> sizes;
  for (int i = 0; i + 1 < rank; ++i) sizes.push_back(XlaSize::Axis(moved, i));
  sizes.push_back(XlaSize{moved, {rank - 1, rank}, 1});
  return ReshapeTo(b, moved, sizes, "batch_channels");
}

// The filter [spatial.., Cin / groups, Cout] as ConvTranspose takes it: reversed in space,
// [spatial.., Cout / groups, Cin].
Result<ValueId> TransposedFilter(Lowering& b, ValueId filter, int64_t groups) {
  const int rank = b.fact(filter).shape.rank(), spatial = rank - 2;
  std::vector<int64_t> axes;
  for (int i = 0; i < spatial; ++i) axes.push_back(i);
  ONCILLA_ASSIGN(ValueId by, b.Add("Reverse", AttrMap(), {filter, b.Ints(axes)}, "filter_back"));
  if (groups == 1) {
    std::vector<int64_t> perm = axes;
    perm.push_back(spatial + 1);
    perm.push_back(spatial);
    return b.Transpose(by, perm, "filter_swapped");
  }
  const Dim out = b.fact(filter).shape[rank - 1];
  if (!out.known() || out.size % groups != 0) return Unsupported("groups of an unknown filter");
  std::vector<XlaSize> sizes;
  for (int i = 0; i <= spatial; ++i) sizes.push_back(XlaSize::Axis(by, i));
  sizes.push_back(XlaSize::Number(groups));
  sizes.push_back(XlaSize::Number(out.size / groups));
  ONCILLA_ASSIGN(by, ReshapeTo(b, by, sizes, "filter_groups"));
  std::vector<int64_t> perm = axes;
  for (const int64_t axis : {spatial + 2, spatial + 1, spatial}) perm.push_back(axis);
  ONCILLA_ASSIGN(by, b.Transpose(by, perm, "filter_swapped"));
  sizes.clear();
  for (int i = 0; i <= spatial; ++i) sizes.push_back(XlaSize::Axis(by, i));
  sizes.push_back(XlaSize{by, {spatial + 1, spatial + 2}, 1});
  return ReshapeTo(b, by, sizes, "filter_joined");
}

// A convolution of an input with gaps between its elements, which is the gradient of a convolution
// with strides: each output is reached from the other side.
Result<ValueId> AddTransposed(Lowering& b, ValueId x, ValueId filter, const XlaConvolution& conv,
                              int64_t groups, std::string_view role) {
  const size_t spatial = conv.strides.size();
  ConvTransposeAttrs attrs;
  attrs.groups = groups;
  std::vector<int64_t> crop_low(spatial + 2, 0), crop_high(spatial + 2, 0);
  std::vector<int64_t> pads_end;
  bool crops = false;
  for (size_t i = 0; i < spatial; ++i) {
    const Dim& size = b.fact(filter).shape[static_cast<int>(i)];
    if (!size.known()) return Unsupported("a transposed convolution by a filter of unknown size");
    const int64_t reach = SaturatingMul(size.size - 1, conv.filter_dilation[i]);
    const int64_t begin = reach - conv.low[i], end = reach - conv.high[i];
    attrs.strides.push_back(conv.input_dilation[i]);
    attrs.dilations.push_back(conv.filter_dilation[i]);
    attrs.pads.push_back(std::max<int64_t>(begin, 0));
    pads_end.push_back(std::max<int64_t>(end, 0));
    // Padding beyond the filter's reach are zeros around the result.
    crop_low[i + 1] = std::max<int64_t>(-begin, 0);
    crop_high[i + 1] = std::max<int64_t>(-end, 0);
    crops |= begin < 0 || end < 0;
  }
  attrs.pads.insert(attrs.pads.end(), pads_end.begin(), pads_end.end());
  ONCILLA_ASSIGN(const ValueId by, TransposedFilter(b, filter, groups));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x, by}, crops ? "inner" : role));
  if (!crops) return y;
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.fact(y).dtype, 0));
  return LowerXlaPad(b, y, zero, {crop_low, crop_high, std::vector<int64_t>(spatial + 2, 0)}, role);
}

// x with gaps between its elements and what is cropped taken away, so that a plain convolution
// remains.
Result<ValueId> WithGaps(Lowering& b, ValueId x, XlaConvolution& conv) {
  const size_t spatial = conv.strides.size();
  XlaPadding padding{std::vector<int64_t>(spatial + 2, 0), std::vector<int64_t>(spatial + 2, 0),
                     std::vector<int64_t>(spatial + 2, 0)};
  bool any = false;
  for (size_t i = 0; i < spatial; ++i) {
    padding.interior[i + 1] = conv.input_dilation[i] - 1;
    padding.low[i + 1] = std::min<int64_t>(conv.low[i], 0);
    padding.high[i + 1] = std::min<int64_t>(conv.high[i], 0);
    any |= conv.input_dilation[i] > 1 || conv.low[i] < 0 || conv.high[i] < 0;
    conv.low[i] = std::max<int64_t>(conv.low[i], 0);
    conv.high[i] = std::max<int64_t>(conv.high[i], 0);
  }
  if (!any) return x;
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.fact(x).dtype, 0));
  return LowerXlaPad(b, x, zero, padding, "gaps");
}

}  // namespace

Result<ValueId> LowerXlaConv(Lowering& b, ValueId x, ValueId filter, XlaConvolution conv,
                             DType to) {
  ONCILLA_TRY(Check(b, x, filter, conv));
  if (!IsFloat(to)) return Unsupported("a convolution of ", to);
  ONCILLA_ASSIGN(x, b.Cast(x, to, "input_type"));
  ONCILLA_ASSIGN(filter, b.Cast(filter, to, "filter_type"));
  ONCILLA_ASSIGN(x, b.Transpose(x, AxesOf(conv.input_batch, conv.input_spatial, conv.input_feature),
                                "channels_last"));
  std::vector<int64_t> filter_axes = conv.filter_spatial;
  filter_axes.push_back(conv.filter_input);
  filter_axes.push_back(conv.filter_output);
  ONCILLA_ASSIGN(filter, b.Transpose(filter, filter_axes, "filter_axes"));
  std::vector<int64_t> reversed;
  for (size_t i = 0; i < conv.reversal.size(); ++i) {
    if (conv.reversal[i] != 0) reversed.push_back(static_cast<int64_t>(i));
  }
  if (!reversed.empty()) {
    ONCILLA_ASSIGN(filter, b.Add("Reverse", AttrMap(), {filter, b.Ints(reversed)}, "reversed"));
  }
  int64_t groups = conv.feature_groups;
  if (conv.batch_groups > 1) {
    if (groups > 1) return Unsupported("groups of channels and of the batch at once");
    groups = conv.batch_groups;
    ONCILLA_ASSIGN(x, BatchGroupsToChannels(b, x, groups));
  }
  // Where each axis of the result is among (batch, spatial.., features).
  const std::vector<int64_t> to_axes =
      AxesOf(conv.output_batch, conv.output_spatial, conv.output_feature);
  std::vector<int64_t> back(to_axes.size());
  for (size_t i = 0; i < to_axes.size(); ++i) {
    back[static_cast<size_t>(to_axes[i])] = static_cast<int64_t>(i);
  }
  const std::string_view role = std::is_sorted(back.begin(), back.end()) ? "" : "conv";
  ValueId y;
  if (!AllAre(conv.input_dilation, 1) && AllAre(conv.strides, 1)) {
    ONCILLA_ASSIGN(y, AddTransposed(b, x, filter, conv, groups, role));
  } else {
    ONCILLA_ASSIGN(x, WithGaps(b, x, conv));
    ConvAttrs attrs;
    attrs.strides = conv.strides;
    attrs.dilations = conv.filter_dilation;
    attrs.pads = conv.low;
    attrs.pads.insert(attrs.pads.end(), conv.high.begin(), conv.high.end());
    attrs.groups = groups;
    ONCILLA_ASSIGN(y, b.Add(attrs, {x, filter}, role));
  }
  return b.Transpose(y, back, "");
}

}  // namespace oncilla
