// ONNX's layers that keep a small state from step to step.
#include <algorithm>
#include <string>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// com.microsoft's attribute state_window: states have a first axis of `window` slots, and the last
// slot is read. Slot j of the new states holds the state as it was window - 1 - j positions before
// the end, or zeros if there is no such position.
class Slots {
 public:
  // A window of zero means only the last state, without the axis of slots. Positions are those of
  // input 0 along `axis`.
  static Result<Slots> Of(OnnxLowering& b, int64_t window, int axis) {
    constexpr int64_t kMost = 8;
    if (window < 0 || window > kMost) return InvalidArgument("state_window is ", window);
    Slots slots(b, window);
    ONCILLA_ASSIGN(slots.places_, b.Sizes(b.in(0), axis, axis + 1, "places"));
    return slots;
  }

  bool any() const { return count_ > 0; }
  int64_t count() const { return std::max<int64_t>(count_, 1); }
  // The number of positions up to which slot `j` has seen the input, as a vector of one number.
  Result<ValueId> End(int64_t j) const {
    if (j + 1 == count()) return places_;
    const std::string role = StrCat("end", j);
    ONCILLA_ASSIGN(const ValueId end,
                   b_.Add("Add", {}, {places_, b_.Ints({j + 1 - count_})}, role + "_or_less"));
    return b_.Add("Max", {}, {end, b_.Ints({0})}, role);
  }
  Result<ValueId> Past(ValueId state) const {
    if (!any() || state == kNoValue) return state;
    const ValueId last = b_.Constant(Tensor::ScalarInt64(count_ - 1));
    return b_.Add(GatherAttrs{.axis = 0}, {state, last}, "last_slot");
  }
  // Stores the state after End(j) positions. To be called for each j in turn.
  Status Keep(ValueId state) {
    const int64_t j = std::ssize(states_);
    if (j + 1 < count_) {
      ONCILLA_ASSIGN(const ValueId zero, b_.Scalar(b_.fact(state).dtype, 0));
      ONCILLA_ASSIGN(
          const ValueId exists,
          b_.Add("Greater", {}, {places_, b_.Ints({count_ - 1 - j})}, StrCat("exists", j)));
      ONCILLA_ASSIGN(state, b_.Add("Where", {}, {exists, state, zero}, StrCat("kept", j)));
    }
    if (any()) {
      ONCILLA_ASSIGN(state, b_.Unsqueeze(state, {0}, StrCat("slot", j)));
    }
    states_.push_back(state);
    return Status();
  }
  Result<ValueId> Present() const {
    if (!any()) return states_[0];
    return b_.Add(ConcatAttrs{.axis = 0}, states_, "present_state");
  }

 private:
  Slots(OnnxLowering& b, int64_t count) : b_(b), count_(count) {}

  OnnxLowering& b_;
  int64_t count_ = 0;
  ValueId places_ = kNoValue;
  Values states_;
};

// If states before the last are kept, the tokens are processed in pieces that end at each such
// state.
Result<Values> AddLinearAttention(OnnxLowering& b, int64_t window) {
  b.Ignore("chunk_size");  // a hint about the implementation
  LinearAttentionAttrs attrs;
  ONCILLA_ASSIGN(attrs.query_heads, b.NeedInt("q_num_heads"));
  ONCILLA_ASSIGN(attrs.heads, b.NeedInt("kv_num_heads"));
  ONCILLA_ASSIGN(const float scale, b.Float("scale", 0));
  ONCILLA_ASSIGN(attrs.rule, b.String("update_rule", "gated_delta"));
  attrs.scale = double{scale};
  if (window == 0) return b.AddAll(attrs, b.all_inputs());
  ONCILLA_ASSIGN(Slots slots, Slots::Of(b, window, 1));
  Values inputs = b.all_inputs(), parts;
  inputs.resize(std::max(inputs.size(), size_t{4}), kNoValue);
  ONCILLA_ASSIGN(inputs[3], slots.Past(b.in(3)));
  ValueId begin = b.Ints({0});
  for (int64_t j = 0; j < slots.count(); ++j) {
    ONCILLA_ASSIGN(const ValueId end, slots.End(j));
    for (size_t i = 0; i < b.inputs(); ++i) {
      if (i == 3 || !b.has(i)) continue;
      ONCILLA_ASSIGN(inputs[i], b.Add("Slice", {}, {b.in(i), begin, end, b.Ints({1})},
                                      StrCat("input", i, "_", j)));
    }
    ONCILLA_ASSIGN(const Values out, b.AddAll(attrs, inputs, StrCat("piece", j)));
    parts.push_back(out[0]);
    inputs[3] = out[1];
    begin = end;
    ONCILLA_TRY(slots.Keep(out[1]));
  }
  ONCILLA_ASSIGN(const ValueId y, b.Add(ConcatAttrs{.axis = 1}, parts));
  ONCILLA_ASSIGN(const ValueId state, slots.Present());
  return Values{y, state};
}

Result<Values> LowerLinearAttention(OnnxLowering& b) { return AddLinearAttention(b, 0); }

Result<Values> LowerMicrosoftLinearAttention(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t window, b.Int("state_window", 0));
  return AddLinearAttention(b, window);
}

// The forms that com.microsoft's CausalConvWithState has in addition to ONNX's: slots of states,
// dilated taps, and positions along axis 1 with all further axes as channels.
struct CausalForm {
  int64_t window = 0;
  int64_t dilation = 1;
  bool last = false;
};

// x from [N, T, ..] to [N, T, channels].
Result<ValueId> InRows(OnnxLowering& b, ValueId x, int64_t channels, const std::string& role) {
  ONCILLA_ASSIGN(const ValueId sizes, b.Sizes(x, 0, 2, role + "_sizes"));
  ONCILLA_ASSIGN(const ValueId shape,
                 b.Add(ConcatAttrs{.axis = 0}, {sizes, b.Ints({channels})}, role + "_shape"));
  return b.Add(ReshapeAttrs{}, {x, shape}, role);
}

// x from [N, .., channels] to the input's axes after the second.
Result<ValueId> InAxes(OnnxLowering& b, ValueId x, int rank, const std::string& role) {
  ONCILLA_ASSIGN(const ValueId rows, b.Sizes(x, 0, 2, role + "_rows"));
  ONCILLA_ASSIGN(const ValueId axes, b.Sizes(b.in(0), 2, rank, role + "_axes"));
  ONCILLA_ASSIGN(const ValueId shape, b.Add(ConcatAttrs{.axis = 0}, {rows, axes}, role + "_shape"));
  return b.Add(ReshapeAttrs{}, {x, shape}, role);
}

// A depthwise convolution over each position and the positions before it. The positions before the
// first come from the past state; the last ones become the new state.
Result<Values> AddCausalConv(OnnxLowering& b, const CausalForm& form) {
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
  const int64_t before = SaturatingMul(taps - 1, form.dilation);
  if (before > INT32_MAX) return InvalidArgument("a kernel that reaches over ", before, " places");
  const int axis = form.last ? 1 : 2;
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank < 3 || (rank > 3 && !form.last)) return InvalidArgument("an input of rank ", rank);
  ONCILLA_ASSIGN(Slots slots, Slots::Of(b, form.window, axis));
  ONCILLA_ASSIGN(ValueId past, slots.Past(b.in(3)));
  ValueId x = b.in(0);
  if (rank > 3) {
    ONCILLA_ASSIGN(x, InRows(b, x, channels, "input"));
    if (past != kNoValue) {
      ONCILLA_ASSIGN(past, InRows(b, past, channels, "past"));
    }
  }
  if (past != kNoValue) {
    ONCILLA_ASSIGN(x, b.Add(ConcatAttrs{.axis = axis}, {past, x}, "with_state"));
  } else {
    std::vector<int64_t> pads(6, 0);
    pads[static_cast<size_t>(axis)] = before;
    ONCILLA_ASSIGN(x, b.Add("Pad", {}, {x, b.Ints(std::move(pads))}, "with_zeros"));
  }
  ONCILLA_ASSIGN(const ValueId filter, b.Transpose(b.in(1), {2, 1, 0}, "filter"));
  ValueId y = x;
  if (!form.last) {
    ONCILLA_ASSIGN(y, b.ChannelsLast(x, 3));
  }
  ConvAttrs attrs;
  attrs.groups = channels;
  if (form.dilation != 1) attrs.dilations = {form.dilation};
  attrs.activation = activation == "none" ? "none" : "silu";
  ONCILLA_ASSIGN(y, b.Add(attrs, {y, filter, b.in(2)}, "inner"));
  if (!form.last) {
    ONCILLA_ASSIGN(y, b.ChannelsFirst(y, 3));
  } else if (rank > 3) {
    ONCILLA_ASSIGN(y, InAxes(b, y, rank, "output"));
  }
  if (!b.wants(1)) return Values{y, kNoValue};
  for (int64_t j = 0; j < slots.count(); ++j) {
    // x has `before` past positions in front. A kernel of one tap keeps none.
    ONCILLA_ASSIGN(const ValueId first, slots.End(j));
    ONCILLA_ASSIGN(const ValueId end,
                   b.Add("Add", {}, {first, b.Ints({before})}, StrCat("state_end", j)));
    ONCILLA_ASSIGN(ValueId state,
                   b.Add("Slice", {}, {x, first, end, b.Ints({axis})}, StrCat("state", j)));
    if (rank > 3) {
      ONCILLA_ASSIGN(state, InAxes(b, state, rank, StrCat("state_axes", j)));
    }
    ONCILLA_TRY(slots.Keep(state));
  }
  ONCILLA_ASSIGN(const ValueId states, slots.Present());
  return Values{y, states};
}

Result<Values> LowerCausalConv(OnnxLowering& b) { return AddCausalConv(b, {}); }

Result<Values> LowerMicrosoftCausalConv(OnnxLowering& b) {
  CausalForm form;
  ONCILLA_ASSIGN(const int64_t axes, b.Int("ndim", 1));
  ONCILLA_ASSIGN(form.window, b.Int("state_window", 0));
  ONCILLA_ASSIGN(form.dilation, b.Int("dilation", 1));
  ONCILLA_ASSIGN(form.last, b.Flag("channels_last", false));
  if (axes != 1) return Unsupported("with ", axes, " spatial axes");
  if (form.dilation < 1) return InvalidArgument("dilation is ", form.dilation);
  return AddCausalConv(b, form);
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
