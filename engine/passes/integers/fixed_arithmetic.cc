// Sums and differences of two tensors of bytes that TFLite files requantise by the rule
// of fixed point, computed in floats in one pass (byte_expression.h), where floats give the same
// bytes for all 65,536 pairs of inputs:
//   Requantize(Requantize(a) + Requantize(b))  ->  Bytes(a * a_factor + (b * b_factor + offset))
// Both are computed here for each pair, the floats in double precision. Pairs whose real number
// lies about half way between two integers are then computed as kernels do, with factors that
// differ in their last bits, until some give the same bytes for all of them. Where none do, for
// example where a factor is a half and ties are frequent, the nodes stay as they are.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/ops/nn/integer.h"
#include "engine/passes/integers/byte_expression.h"
#include "engine/passes/pass.h"
#include "engine/passes/subgraph.h"

namespace oncilla {
namespace {

// Nodes between a tensor of bytes and an operand.
constexpr int kMostSteps = 3;
// Results that lie closer to their integer than this are certain: floats move them by less than
// 2e-4, the other factors that are tried by less than 7e-4.
constexpr double kCertain = 0.499;
constexpr size_t kMostUncertain = 1024;

bool IsByte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

// An operand as a function of a byte: table[i] is that of first + i.
struct Operand {
  ValueId bytes = kNoValue;
  int first = 0;  // the lowest byte
  std::array<int32_t, 256> table = {};
};

// The Requantize at the end.
struct End {
  int32_t multiplier = 0, shift = 0, zero = 0;
  double least = 0, most = 0;
  DType to = DType::kI8;

  double Result(int32_t x) const {
    return std::clamp(static_cast<double>(MultiplyFixed(x, multiplier, shift)) + zero, least, most);
  }
  double factor() const { return std::ldexp(static_cast<double>(multiplier), shift - 31); }
};

// A pair of inputs, as indices into the operands' tables, whose result is not certain.
struct Pair {
  int a = 0, b = 0;
  double result = 0;
};

// `x` moved by a number of units in its last place.
float Moved(float x, int units) {
  const float to =
      units < 0 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  for (int i = 0; i < std::abs(units); ++i) x = std::nextafter(x, to);
  return x;
}

class FixedPoint {
 public:
  FixedPoint(const Graph& graph, Device& cpu, Patch& patch)
      : graph_(graph), cpu_(cpu), uses_(graph), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      if (graph_.node(NodeId{n}).op->name == "Requantize") ONCILLA_TRY(Look(NodeId{n}));
    }
    return Status();
  }

 private:
  Status Look(NodeId id) {
    const Node& last = graph_.node(id);
    const auto end = EndOf(last);
    if (!end || !uses_.Single(last.inputs[0])) return Status();
    const bool minus = ProducerIf(graph_, last.inputs[0], "Sub") != nullptr;
    const Node* node = ProducerIf(graph_, last.inputs[0], minus ? "Sub" : "Add");
    if (node == nullptr) return Status();
    const auto a = OperandOf(node->inputs[0]), b = OperandOf(node->inputs[1]);
    if (!a || !b || !SameRank(*a, *b, last.outputs[0])) return Status();
    ByteExpression bytes(patch_, {id, graph_.value(last.inputs[0]).producer});
    ONCILLA_ASSIGN(ValueId y, Sum(bytes, *a, *b, *end, minus));
    if (y == kNoValue) return Status();
    ONCILLA_ASSIGN(
        y, bytes.Bytes(y, end->to, static_cast<float>(end->least), static_cast<float>(end->most)));
    return patch_.Replace(last.outputs[0], y);
  }

  std::optional<int64_t> NumberOf(ValueId id) const {
    if (id == kNoValue || !graph_.value(id).is_constant()) return std::nullopt;
    const Fact& fact = graph_.fact(id);
    if (!fact.has_value() || fact.value.elements() != 1) return std::nullopt;
    if (fact.dtype == DType::kI32) return fact.value.As<int32_t>()[0];
    if (fact.dtype == DType::kI8) return fact.value.As<int8_t>()[0];
    if (fact.dtype == DType::kU8) return fact.value.As<uint8_t>()[0];
    return std::nullopt;
  }

  std::optional<End> EndOf(const Node& node) const {
    const auto attrs = ReadAttrs<RequantizeAttrs>(node.attrs);
    if (!attrs.ok() || attrs->mode != "fixed" || !IsByte(attrs->to) || attrs->x_zero != 0 ||
        attrs->left_shift != 0 || node.inputs.size() != 4 ||
        graph_.fact(node.inputs[0]).dtype != DType::kI32) {
      return std::nullopt;
    }
    const auto multiplier = NumberOf(node.inputs[1]), shift = NumberOf(node.inputs[3]);
    const auto zero = node.inputs[2] == kNoValue ? 0 : NumberOf(node.inputs[2]);
    if (!multiplier || !shift || !zero || *multiplier <= 0) return std::nullopt;
    const IntegerRange range = RangeOf(*attrs);
    return End{static_cast<int32_t>(*multiplier), static_cast<int32_t>(*shift),
               static_cast<int32_t>(*zero),       static_cast<double>(range.least),
               static_cast<double>(range.most),   attrs->to};
  }

  // The operand as a function of bytes, if a few nodes with constants compute it from them.
  std::optional<Operand> OperandOf(ValueId value) const {
    if (graph_.fact(value).dtype != DType::kI32) return std::nullopt;
    ValueId bytes = value;
    for (int step = 0; step < kMostSteps && !IsByte(graph_.fact(bytes).dtype); ++step) {
      const NodeId producer = graph_.value(bytes).producer;
      if (producer == kNoNode) return std::nullopt;
      const Node& node = graph_.node(producer);
      if (node.op->name != "Requantize" && node.op->name != "Cast" && node.op->name != "Sub") {
        return std::nullopt;
      }
      for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != kNoValue && !NumberOf(node.inputs[i])) return std::nullopt;
      }
      bytes = node.inputs[0];
    }
    if (!IsByte(graph_.fact(bytes).dtype)) return std::nullopt;
    Operand operand{.bytes = bytes, .first = graph_.fact(bytes).dtype == DType::kI8 ? -128 : 0};
    std::vector<uint8_t> codes;
    for (int i = 0; i < 256; ++i) codes.push_back(static_cast<uint8_t>(operand.first + i));
    const Tensor all = Tensor::Of<uint8_t>(graph_.fact(bytes).dtype, {256}, codes);
    const auto results = ComputeValues(graph_, {{Index(bytes), all}}, {{value}}, cpu_);
    // A failure is left to the nodes, which may be on a branch that is never taken.
    if (!results.ok() || results->front().elements() != 256) return std::nullopt;
    std::ranges::copy(results->front().As<int32_t>(), operand.table.begin());
    return operand;
  }

  // Whether the result's rank comes from the bytes, and not from a constant in the nodes' place.
  bool SameRank(const Operand& a, const Operand& b, ValueId y) const {
    int rank = 0;
    for (const ValueId id : {a.bytes, b.bytes, y}) {
      if (!graph_.fact(id).shape.ranked()) return false;
      if (id != y) rank = std::max(rank, graph_.fact(id).shape.rank());
    }
    return rank == graph_.fact(y).shape.rank();
  }

  // Returns kNoValue if floats do not give the same bytes.
  static Result<ValueId> Sum(ByteExpression& bytes, const Operand& a, const Operand& b,
                             const End& end, bool minus) {
    const int sign = minus ? -1 : 1;
    // Both operands are lines, up to the rounding of a last place that is far below 1.
    const auto slope = [&](const Operand& x) {
      return (static_cast<double>(x.table[255]) - static_cast<double>(x.table[0])) / 255 *
             end.factor();
    };
    const double a_slope = slope(a), b_slope = sign * slope(b);
    const double start = a.table[0] * end.factor() - a_slope * a.first +
                         sign * (b.table[0] * end.factor()) - b_slope * b.first + end.zero;
    std::vector<Pair> pairs;
    for (int i = 0; i < 256; ++i) {
      const double base = a_slope * (a.first + i) + start;
      for (int j = 0; j < 256; ++j) {
        const int64_t sum = int64_t{a.table[i]} + sign * int64_t{b.table[j]};
        if (sum != static_cast<int32_t>(sum)) return kNoValue;
        const double result = end.Result(static_cast<int32_t>(sum));
        const double real = std::clamp(base + b_slope * (b.first + j), end.least, end.most);
        if (std::abs(real - result) >= kCertain) pairs.push_back({i, j, result});
      }
      if (pairs.size() > kMostUncertain) return kNoValue;
    }
    const auto agree = [&](float a_factor, float b_factor, float offset) {
      return std::ranges::all_of(pairs, [&](const Pair& p) {
        const auto x = static_cast<float>(a.first + p.a), y = static_cast<float>(b.first + p.b);
        const float real = std::fma(x, a_factor, std::fma(y, b_factor, offset));
        return std::clamp(std::nearbyint(static_cast<double>(real)), end.least, end.most) ==
               p.result;
      });
    };
    constexpr std::array<int, 11> kUnits = {0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5};
    for (const int offset_units : kUnits) {
      for (const int a_units : kUnits) {
        for (const int b_units : kUnits) {
          const float a_factor = Moved(static_cast<float>(a_slope), a_units);
          const float b_factor = Moved(static_cast<float>(b_slope), b_units);
          const float offset = Moved(static_cast<float>(start), offset_units);
          if (!std::isnormal(a_factor) || !std::isnormal(b_factor)) return kNoValue;
          if (std::abs(a_factor) > 2 || std::abs(b_factor) > 2 || std::abs(offset) > 1024) {
            return kNoValue;
          }
          if (agree(a_factor, b_factor, offset)) {
            return bytes.Sum(a.bytes, a_factor, b.bytes, b_factor, offset);
          }
        }
      }
    }
    return kNoValue;
  }

  const Graph& graph_;
  Device& cpu_;
  const Uses uses_;
  Patch& patch_;
};

}  // namespace

Status FixedArithmetic(const Graph& graph, const PassContext& context, Patch& patch) {
  return FixedPoint(graph, *context.devices[0], patch).Run();
}

}  // namespace oncilla
