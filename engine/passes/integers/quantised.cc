// Reads quantisation parameters from graphs.
#include "engine/passes/integers/quantised.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/math/quantize.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

std::optional<std::vector<double>> Numbers(const Fact& fact) {
  if (!fact.has_value()) return {};
  auto numbers = ToDoubles(fact.value);
  if (!numbers.ok() || numbers->empty()) return {};
  return *std::move(numbers);
}

bool IsWhole(const PartialShape& shape) {
  return shape.rank() == 0 || (shape.rank() == 1 && shape[0].size == 1);
}

// The attributes that QuantizeLinear and DequantizeLinear share.
struct LinearAttrs {
  int64_t axis = 0, block_size = 0;
};

}  // namespace

int64_t LinearParameters::Reach() const {
  const IntegerLimits limits = LimitsOf(dtype);
  int64_t reach = 0;
  for (const int64_t z : zeros) reach = std::max({reach, z - limits.least, limits.most - z});
  return reach;
}

bool LinearParameters::SameAs(const LinearParameters& other) const {
  return single() && other.single() && dtype == other.dtype && scales == other.scales &&
         zeros == other.zeros;
}

std::optional<LinearParameters> ParametersOf(const Graph& graph, const Node& node) {
  const bool quantises = node.op->name == "QuantizeLinear";
  if (!quantises && node.op->name != "DequantizeLinear") return {};
  const Fact& x = graph.fact(node.inputs[0]);
  const Fact& y = graph.fact(node.outputs[0]);
  const DType real = quantises ? x.dtype : y.dtype;
  LinearParameters p;
  p.dtype = quantises ? y.dtype : x.dtype;
  const Fact& scale = graph.fact(node.inputs[1]);
  if (real != DType::kF32 || scale.dtype != DType::kF32 || !IsInteger(p.dtype) ||
      BitsOf(p.dtype) < 8 || BitsOf(p.dtype) > 32 || p.dtype == DType::kU32) {
    return {};
  }
  LinearAttrs attrs;
  if (quantises) {
    const auto read = ReadAttrs<QuantizeLinearAttrs>(node.attrs);
    if (!read.ok() || read->precision != DType::kF32) return {};
    attrs = {read->axis, read->block_size};
  } else {
    const auto read = ReadAttrs<DequantizeLinearAttrs>(node.attrs);
    if (!read.ok()) return {};
    attrs = {read->axis, read->block_size};
  }
  const auto scales = Numbers(scale);
  if (!scales || attrs.block_size != 0) return {};
  for (const double s : *scales) {
    if (!std::isfinite(s) || s <= 0) return {};
    p.scales.push_back(static_cast<float>(s));
  }
  p.zeros = {0};
  if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
    p.zero = node.inputs[2];
    const auto zeros = Numbers(graph.fact(p.zero));
    if (!zeros) return {};
    p.zeros.assign(zeros->begin(), zeros->end());
    const auto is_zero = [](int64_t zero) { return zero == 0; };
    if (std::all_of(p.zeros.begin(), p.zeros.end(), is_zero)) p.zero = kNoValue;
  }
  if (IsWhole(scale.shape)) return p.zeros.size() == 1 ? std::optional(p) : std::nullopt;
  if (!x.shape.ranked() || (p.zeros.size() != 1 && p.zeros.size() != p.scales.size())) return {};
  const auto axis = NormalizeAxis(attrs.axis, x.shape.rank());
  if (!axis.ok()) return {};
  p.axis = *axis;
  return p;
}

bool OnlyMoves(const OpDef& op) {
  if (op.traits.storage != StorageRule::kCarries || op.traits.work != Work::kNone) return false;
  // The axis rules of ops that only reorder, drop or repeat elements.
  switch (op.traits.axes.rule) {
    case AxisRule::kAxis:
    case AxisRule::kRegroups:
    case AxisRule::kPermutes:
    case AxisRule::kSlice:
    case AxisRule::kStrided:
    case AxisRule::kPerAxis:
    case AxisRule::kStretches:
      return true;
    default:
      return false;
  }
}

std::optional<Dequantised> DequantisedBefore(const Graph& graph, ValueId value) {
  Dequantised out;
  while (const Node* node = ProducerIf(graph, value, "Transpose")) {
    const auto order = OrderOf(graph, *node);
    if (!order) return {};
    out.order = out.order.empty() ? *order : Compose(*order, out.order);
    value = node->inputs[0];
  }
  const Node* node = ProducerIf(graph, value, "DequantizeLinear");
  if (node == nullptr) return {};
  auto parameters = ParametersOf(graph, *node);
  if (!parameters) return {};
  out.parameters = *std::move(parameters);
  out.integers = node->inputs[0];
  out.from = IdOf(graph, value);
  if (!out.parameters.single() && !out.order.empty()) {
    const auto at = std::find(out.order.begin(), out.order.end(), out.parameters.axis);
    out.parameters.axis = static_cast<int>(at - out.order.begin());
  }
  return out;
}

Result<ValueId> AddIntegers(Patch& patch, const Dequantised& value) {
  if (value.order.empty()) return value.integers;
  return AddTranspose(patch, value.integers, value.order, {value.from});
}

int64_t QuantisedNumber(const LinearParameters& parameters, double number) {
  const IntegerLimits limits = LimitsOf(parameters.dtype);
  const float steps = static_cast<float>(number) / parameters.scales[0];
  const double moved = std::nearbyint(double{steps}) + static_cast<double>(parameters.zeros[0]);
  return static_cast<int64_t>(
      std::clamp(moved, static_cast<double>(limits.least), static_cast<double>(limits.most)));
}

}  // namespace oncilla
