// Convolutions and matrix products of quantised tensors are computed in integers with exact sums,
// as ONNX Runtime does:
//   Quantize(conv(Dequantize(x), Dequantize(w), Dequantize(b)))
//     ->  Requantize(ConvInteger(x, w, x_zero, w_zero, b))
// A constant b in float is rounded to steps of the sums. Transposes may be in between, and
// activations that only clip, which become clipping of the integers.
//
// This must run before constant folding, which would turn the weights into floats. Products whose
// sums could overflow 32 bits are left as they are.
#include <cmath>
#include <limits>

#include "engine/ops/math/matmul.h"
#include "engine/ops/nn/conv.h"
#include "engine/ops/nn/integer.h"
#include "engine/passes/integers/quantised.h"
#include "engine/passes/pass.h"

namespace oncilla {
namespace {

// The bounds that an activation clips its input to.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

std::optional<double> Single(const Graph& graph, const Node& node, size_t i, double otherwise) {
  if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return otherwise;
  const Fact& fact = graph.fact(node.inputs[i]);
  if (!fact.has_value() || fact.value.elements() != 1 || fact.shape.rank() > 1) return {};
  const auto numbers = ToDoubles(fact.value);
  if (!numbers.ok() || std::isnan((*numbers)[0])) return {};
  return (*numbers)[0];
}

std::optional<Bounds> BoundsOf(const Graph& graph, const Node& node) {
  Bounds bounds;
  if (node.op->name == "Relu") {
    bounds.low = 0;
  } else if (node.op->name == "Relu6") {
    bounds = {0, 6};
  } else if (node.op->name == "Clip") {
    const auto low = Single(graph, node, 1, bounds.low), high = Single(graph, node, 2, bounds.high);
    if (!low || !high || *low > *high) return {};
    bounds = {*low, *high};
  } else {
    return {};
  }
  return bounds;
}

bool IsByte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

// The nodes from a product to the QuantizeLinear of its result.
struct Tail {
  NodeId product = kNoNode;
  ValueId bias = kNoValue;  // added to a matrix product
  AxisOrder order;          // of the transposes after it; empty: none
  int64_t least = INT32_MIN, most = INT32_MAX;
  std::vector<NodeId> from;  // in graph order, the product first
};

class ProductFinder {
 public:
  ProductFinder(const Graph& graph, Patch& patch) : graph_(graph), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.op->name != "QuantizeLinear") continue;
      const auto to = ParametersOf(graph_, node);
      if (!to || !to->single() || BitsOf(to->dtype) > 16) continue;
      const auto tail = TailBefore(NodeId{n}, *to);
      if (!tail) continue;
      ONCILLA_TRY(Rewrite(node, *tail, *to));
    }
    return Status();
  }

 private:
  // Goes backwards from the QuantizeLinear, through clips, transposes and one addition of a bias.
  std::optional<Tail> TailBefore(NodeId quantise, const LinearParameters& to) const {
    Tail tail;
    tail.from = {quantise};
    ValueId value = graph_.node(quantise).inputs[0];
    while (uses_.Single(value)) {
      const NodeId id = IdOf(graph_, value);
      if (id == kNoNode) return {};
      const Node& node = graph_.node(id);
      tail.from.insert(tail.from.begin(), id);
      value = node.inputs[0];
      if (node.op->name == "Conv" || node.op->name == "MatMul") {
        tail.product = id;
        return tail;
      }
      if (tail.bias != kNoValue) return {};  // only the product itself may come before the bias
      if (const auto bounds = BoundsOf(graph_, node)) {
        if (!std::isinf(bounds->low)) {
          tail.least = std::max(tail.least, QuantisedNumber(to, bounds->low));
        }
        if (!std::isinf(bounds->high)) {
          tail.most = std::min(tail.most, QuantisedNumber(to, bounds->high));
        }
        if (tail.least > tail.most) return {};
      } else if (node.op->name == "Transpose") {
        const auto order = OrderOf(graph_, node);
        if (!order) return {};
        tail.order = tail.order.empty() ? *order : Compose(*order, tail.order);
      } else if (node.op->name == "Add") {
        const bool second = graph_.value(node.inputs[1]).is_constant() ||
                            ProducerIf(graph_, node.inputs[1], "DequantizeLinear") != nullptr;
        tail.bias = node.inputs[second ? 1 : 0];
        value = node.inputs[second ? 0 : 1];
      } else {
        return {};
      }
    }
    return {};
  }

  // The integers of a bias whose scales are the products of the scales of x and w, so that it can
  // be added to their sums. kNoValue if there is no bias, nothing if it is a different one. `reach`
  // becomes at least its largest absolute value.
  std::optional<ValueId> BiasOf(ValueId bias, const Dequantised& x, const Dequantised& w,
                                int64_t* reach) {
    if (bias == kNoValue) return kNoValue;
    if (const Fact& fact = graph_.fact(bias); fact.has_value()) {
      return RoundedBias(fact, x.parameters.scales[0], w.parameters.scales, reach);
    }
    const auto b = DequantisedBefore(graph_, bias);
    if (!b || !b->order.empty() || b->parameters.dtype != DType::kI32) return {};
    const LinearParameters& p = b->parameters;
    const Fact& fact = graph_.fact(b->integers);
    if (!fact.has_value() || fact.shape.rank() != 1) return {};
    for (const int64_t zero : p.zeros) {
      if (zero != 0) return {};
    }
    const std::vector<float>& scales = w.parameters.scales;
    const size_t places = std::max(p.scales.size(), scales.size());
    for (size_t i = 0; i < places; ++i) {
      const float is = p.scales[p.scales.size() == 1 ? 0 : i];
      const float wanted = x.parameters.scales[0] * scales[scales.size() == 1 ? 0 : i];
      if (std::abs(is - wanted) > 1e-5f * wanted) return {};
    }
    const auto ints = ToInt64s(fact.value);
    if (!ints.ok()) return {};
    for (const int64_t i : *ints) *reach = std::max(*reach, std::abs(i));
    return b->integers;
  }

  // The integers nearest to a bias that quantisers left in float, as ONNX Runtime's "weight bias
  // quantization" rounds it: to half a step of the sums.
  std::optional<ValueId> RoundedBias(const Fact& bias, float scale, std::span<const float> scales,
                                     int64_t* reach) {
    if (bias.dtype != DType::kF32 || bias.shape.rank() != 1) return {};
    const auto floats = bias.value.As<float>();
    if (scales.size() != 1 && scales.size() != floats.size()) return {};
    std::vector<int32_t> ints;
    for (size_t i = 0; i < floats.size(); ++i) {
      const float step = scale * scales[scales.size() == 1 ? 0 : i];
      const float steps = std::nearbyint(floats[i] / step);
      if (!(std::abs(steps) < 2147483648.0f)) return {};  // NaN too
      ints.push_back(static_cast<int32_t>(steps));
      *reach = std::max(*reach, std::abs(int64_t{ints.back()}));
    }
    return patch_.AddConstant(Tensor::Of<int32_t>(DType::kI32, bias.value.shape(), ints));
  }

  // The number of products in each sum; nothing if it is unknown.
  std::optional<int64_t> Terms(const Node& product) const {
    const PartialShape& w = graph_.fact(product.inputs[1]).shape;
    if (!w.ranked() || w.rank() == 0) return {};
    if (product.op->name == "MatMul") {
      const bool transposed = BoolAttr(product, "transpose_b", false);
      const Dim& k = w[w.rank() == 1 || transposed ? w.rank() - 1 : w.rank() - 2];
      return k.known() ? std::optional(k.size) : std::nullopt;
    }
    int64_t terms = 1;
    for (int i = 0; i + 1 < w.rank(); ++i) {
      if (!w[i].known()) return {};
      terms = SaturatingMul(terms, w[i].size);
    }
    return terms;
  }

  // Whether w has one scale, or one for each column of the result.
  bool ScalesColumns(const Node& product, const LinearParameters& w) const {
    if (w.single()) return true;
    const PartialShape& shape = graph_.fact(product.inputs[1]).shape;
    if (!shape.ranked()) return false;
    if (product.op->name == "Conv") return w.axis == shape.rank() - 1;
    const bool transposed = BoolAttr(product, "transpose_b", false);
    return shape.rank() == 2 && w.axis == (transposed ? 0 : 1);
  }

  Status Rewrite(const Node& quantise, const Tail& tail, const LinearParameters& to) {
    const Node& product = graph_.node(tail.product);
    const bool conv = product.op->name == "Conv";
    if (product.inputs.size() > 3 || StringAttr(product, "activation", "none") != "none") {
      return Status();
    }
    const auto x = DequantisedBefore(graph_, product.inputs[0]);
    const auto w = DequantisedBefore(graph_, product.inputs[1]);
    if (!x || !w || !IsByte(x->parameters.dtype) || !IsByte(w->parameters.dtype) ||
        !x->parameters.single() || !ScalesColumns(product, w->parameters)) {
      return Status();
    }
    // A bias may be the product's own or an addition after it, not both.
    ValueId given = product.inputs.size() > 2 ? product.inputs[2] : kNoValue;
    if (tail.bias != kNoValue) {
      if (conv || given != kNoValue || graph_.fact(product.outputs[0]).shape.rank() < 2) {
        return Status();
      }
      given = tail.bias;
    }
    int64_t bias_reach = 0;
    const auto bias = BiasOf(given, *x, *w, &bias_reach);
    const auto terms = Terms(product);
    if (!bias || !terms) return Status();
    // No sum may exceed 32 bits, for any data.
    const int64_t most = SaturatingMul(*terms, x->parameters.Reach() * w->parameters.Reach());
    if (SaturatingAdd(most, bias_reach) > INT32_MAX) return Status();

    ONCILLA_ASSIGN(const ValueId left, AddIntegers(patch_, *x));
    ONCILLA_ASSIGN(const ValueId right, AddIntegers(patch_, *w));
    std::vector<ValueId> inputs = {left, right, x->parameters.zero, w->parameters.zero, *bias};
    while (inputs.back() == kNoValue) inputs.pop_back();
    ONCILLA_ASSIGN(AttrMap attrs, conv ? ConvAttributes(product) : ProductAttributes(product));
    ONCILLA_ASSIGN(const ValueId sums, patch_.Add(conv ? "ConvInteger" : "MatMulInteger",
                                                  std::move(attrs), inputs, tail.from));
    ONCILLA_ASSIGN(ValueId y, AddRequantised(sums, *x, *w, tail, to));
    if (!tail.order.empty()) {
      ONCILLA_ASSIGN(y, AddTranspose(patch_, y, tail.order, tail.from));
    }
    return patch_.Replace(quantise.outputs[0], y);
  }

  static Result<AttrMap> ConvAttributes(const Node& product) {
    ONCILLA_ASSIGN(const auto conv, ReadAttrs<ConvAttrs>(product.attrs));
    return WriteAttrs(ConvIntegerAttrs{.strides = conv.strides,
                                       .dilations = conv.dilations,
                                       .pads = conv.pads,
                                       .auto_pad = conv.auto_pad,
                                       .groups = conv.groups});
  }
  static Result<AttrMap> ProductAttributes(const Node& product) {
    ONCILLA_ASSIGN(const auto matmul, ReadAttrs<MatMulAttrs>(product.attrs));
    return WriteAttrs(MatMulIntegerAttrs{matmul.transpose_a, matmul.transpose_b});
  }

  Result<ValueId> AddRequantised(ValueId sums, const Dequantised& x, const Dequantised& w,
                                 const Tail& tail, const LinearParameters& to) {
    std::vector<float> factors;
    for (const float scale : w.parameters.scales) {
      factors.push_back(x.parameters.scales[0] * scale / to.scales[0]);
    }
    const Shape shape =
        w.parameters.single() ? Shape{} : Shape{static_cast<int64_t>(factors.size())};
    const ValueId factor = patch_.AddConstant(Tensor::Of<float>(DType::kF32, shape, factors));
    const RequantizeAttrs attrs = {.to = to.dtype, .least = tail.least, .most = tail.most};
    std::vector<ValueId> inputs = {sums, factor};
    if (to.zero != kNoValue) inputs.push_back(to.zero);
    return patch_.Add("Requantize", WriteAttrs(attrs), inputs, tail.from);
  }

  const Graph& graph_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status IntegerProducts(const Graph& graph, const PassContext&, Patch& patch) {
  return ProductFinder(graph, patch).Run();
}

}  // namespace oncilla
