// Recipes of recurrent layers: a launch per step (two for a Gru that resets before its product).
#include "backends/opencl/kernels.h"
#include "backends/opencl/move.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/recurrent.h"

namespace oncilla::opencl {
namespace {

Result<Recipe> Recurrent(const RecurrentAttrs& attrs, const NodeView& node,
                         const Capabilities& caps) {
  const std::string_view op = node.op->name;
  ONCILLA_ASSIGN(const auto activations, ActivationsOf(attrs, op));
  const TensorDesc y = node.outputs[0].desc();
  const int64_t steps = y.shape[0], samples = y.shape[1], units = y.shape[2];
  const int64_t bytes = BytesOf(y.dtype), state = SaturatingMul(samples, units);
  const bool lstm = op == "Lstm", gru = op == "Gru";
  Recipe recipe;
  if (state == 0) return recipe;
  if (SaturatingMul(y.elements(), 4) > std::numeric_limits<int64_t>::max() / 16 ||
      state > (int64_t{1} << 30)) {
    return Unsupported("opencl: ", op, " with ", state, " states");
  }
  // What is left of each sample's state after no step at all.
  for (int output = 1; output < (lstm ? 3 : 2); ++output) {
    const int start = output == 1 ? 3 : 4;
    if (node.has_input(static_cast<size_t>(start))) {
      AddMove(recipe, {start, output, 0, 0, {{state, 1, 1}}}, bytes, caps);
    } else {
      AddFill(recipe, Out{output}, state, 0, bytes, caps);
    }
  }
  const bool halves = gru && !attrs.linear_before_reset;
  const int64_t carry = y.dtype == DType::kF64 ? 8 : 4;
  const Scratch z = recipe.AddScratch(halves ? state * carry : carry, caps);
  const Scratch rh = recipe.AddScratch(halves ? state * carry : carry, caps);
  // Of 16-bit tensors the state goes from step to step in float: h of two steps in turn, and c.
  const bool keep = bytes == 2;
  const Scratch kept_h = keep ? recipe.AddScratch(2 * state * carry, caps) : z;
  const Scratch kept_c = keep && lstm ? recipe.AddScratch(state * carry, caps) : z;
  auto input = [&](size_t i) { return In{node.has_input(i) ? static_cast<int>(i) : 0}; };
  const size_t extra = lstm ? 5 : 4;
  const bool has_extra = (lstm || gru) && node.has_input(extra);
  Dispatch d{.source = &cl::kRecurrentStep, .entry = "recurrent_step"};
  d.args = {In{0}, In{1}, input(2), input(3), input(extra), Out{0}, Out{1}, Out{lstm ? 2 : 1},
            z,     rh,    kept_h,   kept_c};
  const size_t step_at = d.args.size();
  d.args.insert(d.args.end(), {int64_t{0}, steps, static_cast<int32_t>(samples),
                               static_cast<int32_t>(units), static_cast<float>(attrs.clip)});
  for (const RecurrentActivation& activation : activations) {
    d.args.push_back(static_cast<float>(activation.alpha));
    d.args.push_back(static_cast<float>(activation.beta));
  }
  d.args.push_back(ErrorWord{});
  auto flag = [](bool set) { return std::string(set ? "1" : "0"); };
  d.defines = {{"T", std::string(Name(y.dtype))},
               {"KIND", "0"},
               {"F", "RNN_" + activations[0].name},
               {"G", "RNN_" + activations[1].name},
               {"H", "RNN_" + activations[2].name},
               {"REVERSE", flag(attrs.reverse)},
               {"STARTED", flag(node.has_input(3))},
               {"EXTRA", flag(has_extra)},
               {"LENGTHS", flag(node.has_input(2))},
               {"INDEX", std::string(Name(node.has_input(2) ? node.inputs[2].dtype : DType::kI32))},
               {"CLIP", flag(attrs.clip > 0)}};
  if (keep) d.defines.emplace_back("KEEP", "1");
  if (attrs.input_forget) d.defines.emplace_back("INPUT_FORGET", "1");
  LaunchFlat(d, state, caps);
  d.longest_loop = units;
  for (int64_t step = 0; step < steps; ++step) {
    d.args[step_at] = step;
    for (const char* kind : {lstm ? "2" : halves ? "3" : gru ? "1" : "0", "4"}) {
      if (kind[0] == '4' && !halves) break;
      d.defines[1].second = kind;
      recipe.dispatches.push_back(d);
    }
  }
  return recipe;
}

const KernelRow kRows[] = {
    Row<Recurrent>("Lstm", kFloats),
    Row<Recurrent>("Gru", kFloats),
    Row<Recurrent>("Rnn", kFloats),
};

}  // namespace

std::span<const KernelRow> RecurrentKernels() { return kRows; }

}  // namespace oncilla::opencl
