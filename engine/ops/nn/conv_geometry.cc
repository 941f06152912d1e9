// Padding modes and output sizes of sliding windows.
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla {
namespace {

// These bounds keep all products along an axis within int64.
constexpr int64_t kMaxParameter = int64_t{1} << 30;
constexpr int64_t kMaxSize = int64_t{1} << 40;

Status CheckList(std::span<const int64_t> list, size_t count, int64_t least,
                 std::string_view what) {
  if (!list.empty() && list.size() != count) {
    return InvalidArgument(what, " has ", list.size(), " numbers, not ", count);
  }
  for (int64_t v : list) {
    if (v < least || v > kMaxParameter) return InvalidArgument(what, " contains ", v);
  }
  return Status();
}

Result<AutoPad> AutoPadFromName(std::string_view name) {
  if (name == "explicit") return AutoPad::kExplicit;
  if (name == "valid") return AutoPad::kValid;
  if (name == "same_upper") return AutoPad::kSameUpper;
  if (name == "same_lower") return AutoPad::kSameLower;
  return InvalidArgument("there is no auto_pad '", name, "'");
}

bool IsSame(const WindowSpec& spec) {
  return spec.auto_pad == AutoPad::kSameUpper || spec.auto_pad == AutoPad::kSameLower;
}

void SplitPadding(const WindowSpec& spec, int64_t total, WindowAxis& axis) {
  axis.pad_begin = spec.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
  axis.pad_end = total - axis.pad_begin;
}

Result<WindowAxis> StartAxis(const WindowSpec& spec, int i, int64_t size, int64_t kernel) {
  if (kernel < 1) return InvalidArgument("the window has the size ", kernel);
  if (kernel > kMaxParameter || size > kMaxSize) {
    return InvalidArgument("sizes ", size, " and ", kernel, " are out of range");
  }
  WindowAxis axis;
  axis.kernel = kernel;
  axis.stride = spec.stride[i];
  axis.dilation = spec.dilation[i];
  if (!IsSame(spec)) {
    axis.pad_begin = spec.pad_begin[i];
    axis.pad_end = spec.pad_end[i];
  }
  return axis;
}

}  // namespace

Result<WindowSpec> MakeWindowSpec(int spatial, std::span<const int64_t> strides,
                                  std::span<const int64_t> dilations, std::span<const int64_t> pads,
                                  std::string_view auto_pad) {
  if (spatial < 1 || spatial > kMaxSpatial) {
    return Unsupported("windows over ", spatial, " spatial axes");
  }
  const auto count = static_cast<size_t>(spatial);
  ONCILLA_TRY(CheckList(strides, count, 1, "strides"));
  ONCILLA_TRY(CheckList(dilations, count, 1, "dilations"));
  ONCILLA_TRY(CheckList(pads, 2 * count, 0, "pads"));
  WindowSpec spec;
  spec.spatial = spatial;
  ONCILLA_ASSIGN(spec.auto_pad, AutoPadFromName(auto_pad));
  if (spec.auto_pad != AutoPad::kExplicit &&
      std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; })) {
    return InvalidArgument("pads are given although auto_pad is ", auto_pad);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!strides.empty()) spec.stride[i] = strides[i];
    if (!dilations.empty()) spec.dilation[i] = dilations[i];
    if (!pads.empty()) {
      spec.pad_begin[i] = pads[i];
      spec.pad_end[i] = pads[count + i];
    }
  }
  return spec;
}

Result<WindowAxis> SlideAxis(const WindowSpec& spec, int i, int64_t in, int64_t kernel) {
  ONCILLA_ASSIGN(WindowAxis axis, StartAxis(spec, i, in, kernel));
  axis.in = in;
  if (IsSame(spec)) {
    axis.out = (in + axis.stride - 1) / axis.stride;
    SplitPadding(spec, std::max<int64_t>((axis.out - 1) * axis.stride + axis.extent() - in, 0),
                 axis);
    return axis;
  }
  const int64_t room = in + axis.pad_begin + axis.pad_end - axis.extent();
  if (room <= -2 * axis.stride && in > 0) {
    return InvalidArgument("a window of ", axis.extent(), " does not fit into ", in,
                           " with padding ", axis.pad_begin, " and ", axis.pad_end);
  }
  axis.out = room < 0 ? 0 : room / axis.stride + 1;
  // ONNX also rounds a negative number up: the window extends beyond the input by less than a
  // stride.
  if (spec.ceil && room < 0 && room > -axis.stride && in > 0) axis.out = 1;
  if (spec.ceil && room >= 0 && room % axis.stride != 0) {
    // As in ONNX with ceil_mode: a window that would start after the input and its begin padding is
    // dropped.
    if (axis.out * axis.stride < in + axis.pad_begin) ++axis.out;
  }
  return axis;
}

Result<WindowAxis> SpreadAxis(const WindowSpec& spec, int i, int64_t small, int64_t kernel,
                              int64_t output_pad, int64_t asked) {
  ONCILLA_ASSIGN(WindowAxis axis, StartAxis(spec, i, small, kernel));
  axis.out = small;
  if (asked > kMaxSize) return InvalidArgument("the output size ", asked, " is out of range");
  // The extent that all windows together cover, before padding is cut off.
  const int64_t covered = (small - 1) * axis.stride + axis.extent() + output_pad;
  if (IsSame(spec)) {
    axis.in = asked >= 0 ? asked : std::max<int64_t>(std::min(covered, small * axis.stride), 0);
    const int64_t total = covered - axis.in;
    // The output may exceed that by less than one stride; the rest is filled with zeros.
    if (total <= -axis.stride) {
      return InvalidArgument("an input of ", small, " cannot give an output of ", axis.in);
    }
    SplitPadding(spec, std::max<int64_t>(total, 0), axis);
    return axis;
  }
  axis.in = asked >= 0 ? asked : covered - axis.pad_begin - axis.pad_end;
  if (axis.in < 0) {
    return InvalidArgument("the padding ", axis.pad_begin, " and ", axis.pad_end,
                           " is more than the whole output of ", covered);
  }
  if (asked >= 0) {
    const int64_t room = asked + axis.pad_begin + axis.pad_end - axis.extent();
    if ((room < 0 ? 0 : room / axis.stride + 1) != small) {
      return InvalidArgument("an input of ", small, " cannot give an output of ", asked);
    }
  }
  return axis;
}

Result<Dim> SlideDim(const WindowSpec& spec, int i, const Dim& in, const Dim& kernel) {
  const bool same = IsSame(spec);
  if (in.known() && (kernel.known() || same)) {
    ONCILLA_ASSIGN(const WindowAxis axis, SlideAxis(spec, i, in.size, same ? 1 : kernel.size));
    return Dim(axis.out);
  }
  if (spec.stride[i] == 1 &&
      (same || (kernel.known() && spec.pad_begin[i] + spec.pad_end[i] ==
                                      SaturatingMul(kernel.size - 1, spec.dilation[i])))) {
    return in;
  }
  return Dim();
}

Result<Dim> SpreadDim(const WindowSpec& spec, int i, const Dim& small, const Dim& kernel,
                      int64_t output_pad, const Dim& asked) {
  if (small.known() && kernel.known()) {
    ONCILLA_ASSIGN(const WindowAxis axis,
                   SpreadAxis(spec, i, small.size, kernel.size, output_pad, asked.size));
    return Dim(axis.in);
  }
  return asked;
}

}  // namespace oncilla
