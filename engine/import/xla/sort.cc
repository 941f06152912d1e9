// Sorts by keys: from the last one to the first, each keeping the order of equal elements.
#include "engine/import/xla/sort.h"

#include <algorithm>
#include <cmath>

#include "engine/import/xla/shape.h"

namespace oncilla {
namespace {

struct Key {
  ValueId value = kNoValue;  // in the body, of the first elements
  bool descending = false;
};

class Order {
 public:
  explicit Order(const Graph& body) : body_(body) {}

  // The keys that the body compares, the most important first; nothing for other bodies.
  std::optional<std::vector<Key>> Keys() {
    if (body_.outputs().size() != 1) return std::nullopt;
    ValueId at = body_.outputs()[0].value;
    std::vector<Key> keys;
    for (int depth = 0; depth < 64; ++depth) {
      const Node* node = NodeOf(at);
      if (node == nullptr) return std::nullopt;
      if (node->op->name == "Identity") {
        at = node->inputs[0];
        continue;
      }
      std::optional<Key> key = Compared(*node, false);
      if (key.has_value()) {
        keys.push_back(*key);
        return keys;
      }
      // less(a) or (equal(a) and rest)
      if (node->op->name != "Or") return std::nullopt;
      const auto [first, second] = std::pair(NodeOf(node->inputs[0]), NodeOf(node->inputs[1]));
      if (first == nullptr || second == nullptr) return std::nullopt;
      const bool swapped = first->op->name == "And";
      const Node& less = swapped ? *second : *first;
      const Node& both = swapped ? *first : *second;
      key = Compared(less, false);
      if (!key.has_value() || both.op->name != "And") return std::nullopt;
      bool found = false;
      for (size_t i = 0; i < 2 && !found; ++i) {
        const Node* equal = NodeOf(both.inputs[i]);
        if (equal == nullptr) continue;
        const std::optional<Key> same = Compared(*equal, true);
        if (!same.has_value() || !Alike(same->value, key->value, false)) continue;
        at = both.inputs[1 - i];
        found = true;
      }
      if (!found) return std::nullopt;
      keys.push_back(*key);
    }
    return std::nullopt;
  }

 private:
  const Node* NodeOf(ValueId value) const {
    const NodeId producer = body_.value(value).producer;
    return producer == kNoNode ? nullptr : &body_.node(producer);
  }

  // The argument's number, or -1.
  int ArgumentOf(ValueId value) const {
    for (size_t i = 0; i < body_.inputs().size(); ++i) {
      if (body_.inputs()[i].value == value) return static_cast<int>(i);
    }
    return -1;
  }

  // A comparison of f(first elements) with f(second elements).
  std::optional<Key> Compared(const Node& node, bool equal) {
    const std::string_view op = node.op->name;
    const bool less = op == "Less", greater = op == "Greater";
    if (equal ? op != "Equal" : !less && !greater) return std::nullopt;
    if (!Alike(node.inputs[0], node.inputs[1], true)) return std::nullopt;
    // Which side is of the first elements?
    const int side = SideOf(node.inputs[0]);
    if (side < 0) return std::nullopt;
    return Key{Plain(side == 0 ? node.inputs[0] : node.inputs[1]), side == 0 ? greater : less};
  }

  // A float without the choices that make all NaNs one, and all zeros: a sort treats them as equal.
  ValueId Plain(ValueId value) const {
    while (IsFloat(body_.fact(value).dtype)) {
      const Node* choice = NodeOf(value);
      if (choice == nullptr || choice->op->name != "Where") break;
      const Node* test = NodeOf(choice->inputs[0]);
      const Tensor& instead = body_.fact(choice->inputs[1]).value;
      if (test == nullptr || !instead.valid() || instead.elements() != 1) break;
      const Result<std::vector<double>> number = ToDoubles(instead);
      if (!number.ok()) break;
      const bool nans = (test->op->name == "IsNaN" ||
                         (test->op->name == "NotEqual" && test->inputs[0] == test->inputs[1])) &&
                        std::isnan((*number)[0]);
      const bool zeros = test->op->name == "Equal" && (*number)[0] == 0;
      if (!nans && !zeros) break;
      value = choice->inputs[2];
    }
    return value;
  }

  // 0 if a value is of first elements only, 1 if of second ones only; else -1.
  int SideOf(ValueId value) {
    int side = -2;
    steps_ = 0;
    if (!Sides(value, side) || side < 0) return -1;
    return side;
  }
  bool Sides(ValueId value, int& side) {
    if (++steps_ > kMostSteps) return false;
    const int argument = ArgumentOf(value);
    if (argument >= 0) {
      if (side >= 0 && side != argument % 2) return false;
      side = argument % 2;
      return true;
    }
    const Node* node = NodeOf(value);
    if (node == nullptr) return true;  // a constant
    return std::all_of(node->inputs.begin(), node->inputs.end(),
                       [&](ValueId input) { return Sides(input, side); });
  }

  // Whether two values are computed in the same way: with `other` from the elements of the other
  // side. Bodies are small, and what they share is compared again: the steps are bounded.
  bool Alike(ValueId a, ValueId b, bool other) {
    steps_ = 0;
    return Same(a, b, other);
  }
  bool Same(ValueId a, ValueId b, bool other) {
    if (++steps_ > kMostSteps) return false;
    const int x = ArgumentOf(a), y = ArgumentOf(b);
    if (x >= 0 || y >= 0) return x >= 0 && y >= 0 && (other ? (x ^ 1) == y : x == y);
    const Node *m = NodeOf(a), *n = NodeOf(b);
    if (m == nullptr || n == nullptr) {
      if (m != nullptr || n != nullptr) return false;
      const Tensor &p = body_.fact(a).value, &q = body_.fact(b).value;
      const auto left = p.bytes(), right = q.bytes();
      return p.valid() && q.valid() && p.desc() == q.desc() &&
             std::equal(left.begin(), left.end(), right.begin(), right.end());
    }
    if (m->op != n->op || m->inputs.size() != n->inputs.size() || !(m->attrs == n->attrs))
      return false;
    for (size_t i = 0; i < m->inputs.size(); ++i) {
      if (!Same(m->inputs[i], n->inputs[i], other)) return false;
    }
    return true;
  }

  static constexpr int kMostSteps = 4096;
  const Graph& body_;
  int steps_ = 0;
};

// The part of a body that computes one value, as a body of its own.
Graph WithResult(const Graph& body, ValueId value) {
  Graph part = body;
  part.AddOutput("key", value);
  return part;
}

// The keys of all elements: a value of the body, computed for tensors. Only what it needs is added.
Result<ValueId> KeyOf(Lowering& b, const Graph& body, const Values& operands, ValueId value,
                      std::string_view role) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (body.inputs()[2 * i].value == value) return operands[i];
  }
  Values arguments;
  for (ValueId operand : operands) {
    arguments.push_back(operand);
    arguments.push_back(operand);
  }
  const Graph part = WithResult(body, value);
  ONCILLA_ASSIGN(const Values results, ApplyBody(b, part, arguments, role));
  return results.back();
}

}  // namespace

Result<Values> LowerXlaSort(Lowering& b, const Values& operands, int64_t axis, const Graph& body) {
  if (operands.empty() || body.inputs().size() != 2 * operands.size()) {
    return DataLoss("a comparison of ", body.inputs().size(), " elements");
  }
  if (!b.fact(operands[0]).shape.ranked()) return Unsupported("a sort of unknown rank");
  const int rank = b.fact(operands[0]).shape.rank();
  if (rank == 0) return operands;
  ONCILLA_ASSIGN(const int along, NormalizeAxis(axis, rank));
  const auto keys = Order(body).Keys();
  if (!keys.has_value()) return Unsupported("a sort by a comparison of its own");
  ONCILLA_ASSIGN(const ValueId count, b.Sizes(operands[0], along, along + 1, "count"));
  // The order so far: for each place, the index of the element that belongs there.
  ValueId order = kNoValue;
  ValueId last_values = kNoValue, last_key = kNoValue;
  for (size_t k = keys->size(); k-- > 0;) {
    const Key& key = (*keys)[k];
    ONCILLA_ASSIGN(const ValueId of_elements,
                   KeyOf(b, body, operands, key.value, StrCat("key", k)));
    last_key = of_elements;
    ValueId sorted = of_elements;
    if (order != kNoValue) {
      ONCILLA_ASSIGN(sorted, b.Add(GatherElementsAttrs{.axis = along}, {of_elements, order},
                                   StrCat("key_in_order", k)));
    }
    const TopKAttrs attrs = {.axis = along, .largest = key.descending, .sorted = true};
    ONCILLA_ASSIGN(const Values best, b.AddAll(attrs, {sorted, count}, StrCat("sorted", k)));
    last_values = best[0];
    if (order == kNoValue) {
      order = best[1];
    } else {
      ONCILLA_ASSIGN(
          order, b.Add(GatherElementsAttrs{.axis = along}, {order, best[1]}, StrCat("order", k)));
    }
  }
  Values results;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == last_key) {
      results.push_back(last_values);
      continue;
    }
    // Indices in order need not be taken again.
    if (IsCountAlong(b.graph(), operands[i], along)) {
      ONCILLA_ASSIGN(const ValueId indices,
                     b.Cast(order, b.fact(operands[i]).dtype, StrCat("indices", i)));
      results.push_back(indices);
      continue;
    }
    ONCILLA_ASSIGN(const ValueId moved, b.Add(GatherElementsAttrs{.axis = along},
                                              {operands[i], order}, StrCat("result", i)));
    results.push_back(moved);
  }
  return results;
}

}  // namespace oncilla
