// Recognises what bodies compute, and applies them to tensors.
#include "engine/import/xla/body.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "engine/ops/math/elementwise.h"

namespace oncilla {
namespace {

// The value behind ops that pass it on.
ValueId Behind(const Graph& body, ValueId value) {
  for (;;) {
    const Value& of = body.value(value);
    if (of.producer == kNoNode) return value;
    const Node& node = body.node(of.producer);
    if (node.op->name != "Identity") return value;
    value = node.inputs[0];
  }
}

constexpr std::pair<std::string_view, XlaFold> kFolds[] = {
    {"Add", XlaFold::kAdd},    {"Mul", XlaFold::kMul},  {"Max", XlaFold::kMax},
    {"Min", XlaFold::kMin},    {"And", XlaFold::kAnd},  {"BitAnd", XlaFold::kAnd},
    {"Or", XlaFold::kOr},      {"BitOr", XlaFold::kOr}, {"Xor", XlaFold::kXor},
    {"BitXor", XlaFold::kXor},
};

// The name of the op for truth values, or for numbers.
std::string_view NameOfFold(XlaFold fold, bool truth, bool integer) {
  switch (fold) {
    case XlaFold::kAdd:
      return truth ? "Or" : "Add";
    case XlaFold::kMul:
      return truth ? "And" : "Mul";
    case XlaFold::kMax:
      return truth ? "Or" : "Max";
    case XlaFold::kMin:
      return truth ? "And" : "Min";
    case XlaFold::kAnd:
      return truth ? "And" : integer ? "BitAnd" : "";
    case XlaFold::kOr:
      return truth ? "Or" : integer ? "BitOr" : "";
    case XlaFold::kXor:
      return truth ? "Xor" : integer ? "BitXor" : "";
    default:
      return "";
  }
}

}  // namespace

std::optional<XlaFold> FoldOf(const Graph& body) {
  if (body.inputs().size() != 2 || body.outputs().size() != 1) return std::nullopt;
  const ValueId x = body.inputs()[0].value, y = body.inputs()[1].value;
  const ValueId result = Behind(body, body.outputs()[0].value);
  if (result == x) return XlaFold::kFirst;
  if (result == y) return XlaFold::kSecond;
  const Value& value = body.value(result);
  if (value.producer == kNoNode) return std::nullopt;
  const Node& node = body.node(value.producer);
  if (node.inputs.size() != 2) return std::nullopt;
  const ValueId a = Behind(body, node.inputs[0]), b = Behind(body, node.inputs[1]);
  if (!(a == x && b == y) && !(a == y && b == x)) return std::nullopt;
  for (const auto& [name, fold] : kFolds) {
    if (node.op->name == name) return fold;
  }
  return std::nullopt;
}

Result<ValueId> AddFold(Lowering& b, XlaFold fold, ValueId x, ValueId y, std::string_view role) {
  if (fold == XlaFold::kFirst) return x;
  if (fold == XlaFold::kSecond) return y;
  const DType dtype = b.fact(x).dtype;
  const std::string_view op = NameOfFold(fold, dtype == DType::kBool, IsInteger(dtype));
  if (op.empty()) return Unsupported("a bitwise reduction of ", dtype);
  return b.Add(op, AttrMap(), {x, y}, role);
}

bool IsNeutral(XlaFold fold, const Fact& scalar) {
  if (!scalar.has_value() || scalar.value.elements() != 1) return false;
  const DType dtype = scalar.dtype;
  if (dtype == DType::kU64) {
    const auto bytes = scalar.value.bytes();
    const bool zero =
        std::all_of(bytes.begin(), bytes.end(), [](std::byte x) { return x == std::byte(0); });
    const bool ones =
        std::all_of(bytes.begin(), bytes.end(), [](std::byte x) { return x == std::byte(0xFF); });
    return fold == XlaFold::kMin || fold == XlaFold::kAnd ? ones : fold != XlaFold::kMul && zero;
  }
  const Result<std::vector<double>> values = ToDoubles(scalar.value);
  if (!values.ok()) return false;
  const double value = (*values)[0];
  const bool truth = dtype == DType::kBool;
  const double infinity = std::numeric_limits<double>::infinity();
  const int bits = BitsOf(dtype);
  const bool has_sign = IsSigned(dtype);
  double lowest = -infinity, highest = infinity;
  if (truth) {
    lowest = 0;
    highest = 1;
  } else if (IsInteger(dtype)) {
    lowest = has_sign ? -std::ldexp(1.0, bits - 1) : 0;
    highest = has_sign ? std::ldexp(1.0, bits - 1) - 1 : std::ldexp(1.0, bits) - 1;
  }
  switch (fold) {
    case XlaFold::kAdd:
    case XlaFold::kOr:
    case XlaFold::kXor:
      return value == 0;
    case XlaFold::kMul:
      return value == 1;
    case XlaFold::kMax:
      return value == lowest;
    case XlaFold::kMin:
      return value == highest && bits <= 32;  // above that the double may be rounded
    case XlaFold::kAnd:
      return truth ? value == 1 : has_sign && value == -1;
    default:
      return false;
  }
}

Result<Values> ApplyBody(Lowering& b, const Graph& body, const Values& arguments,
                         std::string_view role) {
  if (body.inputs().size() != arguments.size()) {
    return DataLoss("a body takes ", body.inputs().size(), " arguments, not ", arguments.size());
  }
  std::map<ValueId, ValueId> inside;
  for (size_t i = 0; i < arguments.size(); ++i) {
    inside[body.inputs()[i].value] = arguments[i];
  }
  const auto mapped = [&](ValueId value) {
    if (value == kNoValue) return value;
    const auto [known, added] = inside.emplace(value, kNoValue);
    if (added) known->second = b.Constant(body.fact(value).value);
    return known->second;
  };
  size_t count = 0;
  for (const Node& node : body.nodes()) {
    if (FindElementwise(node.op->name) == nullptr && node.op->name != "Bitcast") {
      return Unsupported("a body with ", node.op->name);
    }
    Values inputs;
    for (ValueId input : node.inputs) inputs.push_back(mapped(input));
    ONCILLA_ASSIGN(const ValueId result, b.Add(node.op->name, node.attrs, std::move(inputs),
                                               StrCat(role, "_", node.op->name, count++)));
    inside[node.outputs[0]] = result;
  }
  Values results;
  for (const NamedValue& output : body.outputs()) results.push_back(mapped(output.value));
  return results;
}

namespace {

// Computes a body of comparisons and choices for given numbers: nothing if it has other ops. What
// such a body gives depends only on the order of its arguments, so its results for one case of each
// order say all about it.
std::optional<std::vector<double>> Computed(const Graph& body, std::span<const double> arguments) {
  std::map<ValueId, double> values;
  for (size_t i = 0; i < arguments.size(); ++i) values[body.inputs()[i].value] = arguments[i];
  for (const Node& node : body.nodes()) {
    std::array<double, 3> in = {};
    if (node.inputs.size() > in.size()) return std::nullopt;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto known = values.find(node.inputs[i]);
      if (known == values.end()) return std::nullopt;  // a constant
      in[i] = known->second;
    }
    const std::string_view op = node.op->name;
    const auto [x, y, z] = in;
    double result = 0;
    if (op == "Identity")
      result = x;
    else if (op == "Greater")
      result = x > y;
    else if (op == "GreaterEqual")
      result = x >= y;
    else if (op == "Less")
      result = x < y;
    else if (op == "LessEqual")
      result = x <= y;
    else if (op == "Equal")
      result = x == y;
    else if (op == "NotEqual")
      result = x != y;
    else if (op == "IsNaN")
      result = std::isnan(x);
    else if (op == "And")
      result = x != 0 && y != 0;
    else if (op == "Or")
      result = x != 0 || y != 0;
    else if (op == "Not")
      result = x == 0;
    else if (op == "Where")
      result = x != 0 ? y : z;
    else
      return std::nullopt;
    values[node.outputs[0]] = result;
  }
  std::vector<double> results;
  for (const NamedValue& output : body.outputs()) {
    const auto known = values.find(output.value);
    if (known == values.end()) return std::nullopt;
    results.push_back(known->second);
  }
  return results;
}

bool Picks(const Graph& body, XlaPick pick) {
  const double nan = std::nan("");
  const bool can_be_nan = IsFloat(body.fact(body.inputs()[0].value).dtype);
  // Numbers of another size than the indices, so that a comparison of one with the other shows.
  for (const double scale : {1.0, 1e6}) {
    for (const double x : {-5 * scale, 7 * scale, nan}) {
      for (const double y : {-5 * scale, 7 * scale, nan}) {
        if (!can_be_nan && (std::isnan(x) || std::isnan(y))) continue;
        for (const auto& [i, k] : {std::pair(10.0, 20.0), std::pair(20.0, 10.0)}) {
          // Two NaNs: which index counts is left open, since JAX keeps the accumulated one.
          const bool better = std::isnan(x) || (pick == XlaPick::kLargest ? x > y : x < y);
          const bool equal = x == y;
          const double value = better || equal ? x : y;
          const double index = better || (equal && i < k) ? i : k;
          const auto got = Computed(body, std::array{x, i, y, k});
          if (!got.has_value() || got->size() != 2) return false;
          const bool same = (*got)[0] == value || (std::isnan((*got)[0]) && std::isnan(value));
          if (std::isnan(x) && std::isnan(y)) {
            if (!std::isnan((*got)[0])) return false;
            continue;
          }
          if (!same || (*got)[1] != index) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

std::optional<XlaPick> PickOf(const Graph& body) {
  if (body.inputs().size() != 4 || body.outputs().size() != 2) return std::nullopt;
  for (const XlaPick pick : {XlaPick::kLargest, XlaPick::kSmallest}) {
    if (Picks(body, pick)) return pick;
  }
  return std::nullopt;
}

}  // namespace oncilla
