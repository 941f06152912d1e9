// ONNX's layers that keep a small state from step to step.
#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerLinearAttention(OnnxLowering& b) {
  b.Ignore("chunk_size");  // only a hint for the implementation
  LinearAttentionAttrs attrs;
  ONCILLA_ASSIGN(attrs.query_heads, b.NeedInt("q_num_heads"));
  ONCILLA_ASSIGN(attrs.heads, b.NeedInt("kv_num_heads"));
  ONCILLA_ASSIGN(const float scale, b.Float("scale", 0));
  ONCILLA_ASSIGN(attrs.rule, b.String("update_rule", "gated_delta"));
  attrs.scale = double{scale};
  return b.AddAll(attrs, b.all_inputs());
}

// A causal depthwise convolution: each position sees the positions up to its own. The positions
// before the first are the state, and the last ones become the new state.
Result<Values> LowerCausalConv(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string activation, b.String("activation", "none"));
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return InvalidArgument("activation is '", activation, "'");
  }
  const PartialShape weight = b.in_fact(1).shape;
  if (!weight.ranked() || weight.rank() != 3 || !weight[0].known() || !weight[2].known()) {
    return Unsupported("the sizes of the kernel are not known");
  }
  const int64_t channels = weight[0].size, taps = weight[2].size;
  if (taps < 1 || weight[1].size != 1) return InvalidArgument("a kernel of shape ", weight);
  ValueId x = b.in(0);
  if (b.has(3)) {
    ONCILLA_ASSIGN(x, b.Add(ConcatAttrs{.axis = 2}, {b.in(3), x}, "with_state"));
  } else {
    ONCILLA_ASSIGN(x, b.Add("Pad", {}, {x, b.Ints({0, 0, taps - 1, 0, 0, 0})}, "with_zeros"));
  }
  ONCILLA_ASSIGN(const ValueId filter, b.Transpose(b.in(1), {2, 1, 0}, "filter"));
  ONCILLA_ASSIGN(const ValueId last, b.ChannelsLast(x, 3));
  ConvAttrs attrs;
  attrs.groups = channels;
  attrs.activation = activation == "none" ? "none" : "silu";
  ONCILLA_ASSIGN(const ValueId inner, b.Add(attrs, {last, filter, b.in(2)}, "inner"));
  ONCILLA_ASSIGN(const ValueId y, b.ChannelsFirst(inner, 3));
  if (!b.wants(1)) return Values{y, kNoValue};
  // Counted from the end, so that it is empty for a kernel of one tap.
  ONCILLA_ASSIGN(const ValueId all, b.Sizes(x, 2, 3, "places"));
  ONCILLA_ASSIGN(const ValueId first, b.Add("Sub", {}, {all, b.Ints({taps - 1})}, "first_kept"));
  ONCILLA_ASSIGN(const ValueId state,
                 b.Add("Slice", {}, {x, first, all, b.Ints({2})}, "present_state"));
  return Values{y, state};
}

// com.microsoft's ops have attributes besides ONNX's; keeping the states of several steps is not
// supported.
Status RefuseWindow(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t window, b.Int("state_window", 0));
  return window == 0 ? Status() : Unsupported("with state_window ", window);
}

Result<Values> LowerMicrosoftLinearAttention(OnnxLowering& b) {
  ONCILLA_TRY(RefuseWindow(b));
  return LowerLinearAttention(b);
}

Result<Values> LowerMicrosoftCausalConv(OnnxLowering& b) {
  ONCILLA_TRY(RefuseWindow(b));
  ONCILLA_ASSIGN(const int64_t axes, b.Int("ndim", 1));
  ONCILLA_ASSIGN(const int64_t dilation, b.Int("dilation", 1));
  ONCILLA_ASSIGN(const bool last, b.Flag("channels_last", false));
  if (axes != 1) return Unsupported("with ", axes, " spatial axes");
  if (dilation != 1) return Unsupported("with dilation ", dilation);
  if (last) return Unsupported("with channels_last");
  return LowerCausalConv(b);
}

constexpr OnnxOpRow kMicrosoftRows[] = {
    {"CausalConvWithState", 1, kNewestOnnxMicrosoft, 2, "", LowerMicrosoftCausalConv},
    {"LinearAttention", 1, kNewestOnnxMicrosoft, 3, "", LowerMicrosoftLinearAttention},
};
constexpr OnnxOpRow kRows[] = {
    {"CausalConvWithState", 27, kNewestOnnxOpset, 2, "", LowerCausalConv},
    {"LinearAttention", 27, kNewestOnnxOpset, 3, "", LowerLinearAttention},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftStateRows() { return kMicrosoftRows; }
std::span<const OnnxOpRow> OnnxStateRows() { return kRows; }

}  // namespace oncilla
