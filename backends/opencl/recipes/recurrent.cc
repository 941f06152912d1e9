// Recipes of recurrent layers: one launch per step (two for a Gru that resets before its product).
#include "engine/ops/nn/recurrent.h"

#include <algorithm>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/move.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// KIND of step.cl: what a launch computes. A Gru that resets before its product needs two launches
// per step, one for the gates and one for the state.
enum class StepKind { kRnn = 0, kGru = 1, kLstm = 2, kGruGates = 3, kGruState = 4 };

// Without any step, the state of each sample is its initial state.
void AddStart(const NodeView& node, bool lstm, int64_t state, Recipe& recipe,
              const Capabilities& caps) {
  const int64_t bytes = BytesOf(node.outputs[0].dtype);
  for (int output = 1; output < (lstm ? 3 : 2); ++output) {
    const int start = output == 1 ? 3 : 4;
    if (node.has_input(static_cast<size_t>(start))) {
      AddMove(recipe, {start, output, 0, 0, {{state, 1, 1}}}, bytes, caps);
    } else {
      AddFill(recipe, Out{output}, state, 0, bytes, caps);
    }
  }
}

Result<Recipe> Recurrent(const RecurrentAttrs& attrs, const NodeView& node,
                         const Capabilities& caps) {
  const std::string_view op = node.op->name;
  ONCILLA_ASSIGN(const auto activations, ActivationsOf(attrs, op));
  const TensorDesc y = node.outputs[0].desc();
  const int64_t steps = y.shape[0], samples = y.shape[1], units = y.shape[2];
  const int64_t state = SaturatingMul(samples, units);
  const bool lstm = op == "Lstm", gru = op == "Gru";
  Recipe recipe;
  if (state == 0) return recipe;
  if (SaturatingMul(y.elements(), 4) > std::numeric_limits<int64_t>::max() / 16 ||
      state > (int64_t{1} << 30)) {
    return Unsupported("opencl: ", op, " with ", state, " states");
  }
  AddStart(node, lstm, state, recipe, caps);
  const bool halves = gru && !attrs.linear_before_reset;
  const int64_t carry = y.dtype == DType::kF64 ? 8 : 4;
  const Scratch z = recipe.AddScratch(halves ? state * carry : carry, caps);
  const Scratch rh = recipe.AddScratch(halves ? state * carry : carry, caps);
  // For 16-bit tensors the state is kept in float from step to step: two copies of h, which
  // alternate, and c.
  const bool keep = BytesOf(y.dtype) == 2;
  const Scratch kept_h = keep ? recipe.AddScratch(2 * state * carry, caps) : z;
  const Scratch kept_c = keep && lstm ? recipe.AddScratch(state * carry, caps) : z;
  auto input = [&](size_t i) { return In{node.has_input(i) ? static_cast<int>(i) : 0}; };
  const size_t extra = lstm ? 5 : 4;
  const bool has_extra = (lstm || gru) && node.has_input(extra);
  const auto launch = [&](StepKind kind, int64_t step) {
    DispatchBuilder b(cl::kRecurrentStep, "recurrent_step");
    b.Define({{"T", TypeName(y.dtype)},
              {"KIND", StrCat(static_cast<int>(kind))},
              {"F", "RNN_" + activations[0].name},
              {"G", "RNN_" + activations[1].name},
              {"H", "RNN_" + activations[2].name},
              {"REVERSE", Flag(attrs.reverse)},
              {"STARTED", Flag(node.has_input(3))},
              {"EXTRA", Flag(has_extra)},
              {"LENGTHS", Flag(node.has_input(2))},
              {"INDEX", TypeName(node.has_input(2) ? node.inputs[2].dtype : DType::kI32)},
              {"CLIP", Flag(attrs.clip > 0)}});
    if (keep) b.Define("KEEP", "1");
    if (attrs.input_forget) b.Define("INPUT_FORGET", "1");
    b.Arg("gates", In{0}).Arg("recurrent", In{1}).Arg("lengths", input(2));
    b.Arg("h0", input(3)).Arg("extra", input(extra));
    b.Arg({{"y", Out{0}}, {"h", Out{1}}, {"c", Out{lstm ? 2 : 1}}});
    b.Arg({{"kept_z", z}, {"kept_rh", rh}, {"kept_h", kept_h}, {"kept_c", kept_c}});
    b.Arg("step", step).Arg("steps", steps).Int({{"samples", samples}, {"units", units}});
    b.Float("bound", attrs.clip);
    for (size_t i = 0; i < 3; ++i) {
      const std::string name(1, "fgh"[i]);
      b.Float(name + "a", activations[i].alpha).Float(name + "b", activations[i].beta);
    }
    b.Error().Flat(state, caps).Loop(units).AddTo(recipe);
  };
  for (int64_t step = 0; step < steps; ++step) {
    if (halves) {
      launch(StepKind::kGruGates, step);
      launch(StepKind::kGruState, step);
    } else {
      launch(lstm ? StepKind::kLstm : gru ? StepKind::kGru : StepKind::kRnn, step);
    }
  }
  return recipe;
}

// Every column of every head's matrix is computed over all steps independently.
Result<Recipe> LinearAttention(const LinearAttentionAttrs& attrs, const NodeView& node,
                               const Capabilities& caps) {
  const TensorDesc query = node.inputs[0].desc(), value = node.inputs[2].desc();
  const TensorDesc state = node.outputs[1].desc();
  const int64_t samples = query.shape[0], steps = query.shape[1];
  const int64_t size = query.shape[2] / attrs.query_heads, depth = value.shape[2] / attrs.heads;
  const int64_t columns = samples * attrs.heads * depth;
  if (columns == 0) return Recipe();
  const int64_t most =
      std::max({query.elements(), node.inputs[1].desc().elements(), value.elements(),
                node.outputs[0].desc().elements(), state.elements()});
  const IndexType index(most);
  Recipe recipe;
  DispatchBuilder b(cl::kRecurrentLinearAttention, "linear_attention", index);
  b.Define({{"T", TypeName(query.dtype)},
            {"S", TypeName(state.dtype)},
            {"STARTED", Flag(node.has_input(3))},
            {"DECAYS", Flag(attrs.decays())},
            {"CORRECTS", Flag(attrs.corrects())},
            {"IDX", index.name()}});
  b.Arg("query", In{0}).Arg("key", In{1}).Arg("value", In{2});
  b.Arg("start", In{node.has_input(3) ? 3 : 0});
  b.Arg("decay", In{attrs.decays() ? 4 : 0}).Arg("beta", In{attrs.corrects() ? 5 : 0});
  // Between steps the state keeps the type in which it is computed; it is converted to its stored
  // type at the end.
  const bool wide = query.dtype == DType::kF64 || state.dtype == DType::kF64;
  if (wide) b.Define("WIDE", "1");
  const Scratch kept =
      recipe.AddScratch(SaturatingMul(std::max<int64_t>(state.elements(), 1), wide ? 8 : 4), caps);
  b.Arg({{"y", Out{0}}, {"end", Out{1}}, {"kept", kept}});
  b.Index({{"columns", columns}, {"steps", steps}});
  b.Int({{"heads", attrs.heads}, {"readers", attrs.query_heads / attrs.heads}});
  b.Int({{"size", size}, {"depth", depth}});
  const auto width = [&](size_t i, bool has) { return has ? node.inputs[i].desc().shape[2] : 0; };
  b.Int({{"decay_width", width(4, attrs.decays())}, {"beta_width", width(5, attrs.corrects())}});
  b.Float("scale", attrs.scale);
  b.Items(columns, caps.Group(TuningOf(caps).loop_group)).Loop(std::max(steps, size));
  b.AddTo(recipe);
  return recipe;
}

// Gates must have the type of the queries, and the sizes must fit int.
Status CanAttendLinearly(const LinearAttentionAttrs& attrs, const NodeView& node,
                         const Capabilities&) {
  for (size_t i : {size_t{4}, size_t{5}}) {
    if (node.has_input(i) && node.inputs[i].dtype != node.inputs[0].dtype) {
      return Unsupported("opencl: LinearAttention with gates of another type");
    }
  }
  constexpr int64_t kMost = int64_t{1} << 20;
  for (size_t i = 0; i < 3; ++i) {
    const PartialShape& shape = node.inputs[i].shape;
    if (shape.ranked() && shape[2].known() && shape[2].size > kMost) {
      return Unsupported("opencl: LinearAttention of rows of ", shape[2].size);
    }
  }
  return attrs.heads <= kMost ? Status() : Unsupported("opencl: ", attrs.heads, " heads");
}

const KernelRow kRows[] = {
    Row<LinearAttention>("LinearAttention", kFloats).CanRun<CanAttendLinearly>(),
    Row<Recurrent>("Lstm", kFloats),
    Row<Recurrent>("Gru", kFloats),
    Row<Recurrent>("Rnn", kFloats),
};

}  // namespace

std::span<const KernelRow> RecurrentKernels() { return kRows; }

}  // namespace oncilla::opencl
