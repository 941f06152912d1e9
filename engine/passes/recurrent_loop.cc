// Reading loops: the roles of the loop variables follow from how the body and the condition use
// them, the weights from the products on the way to the new state.
#include "engine/passes/recurrent_loop.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

// The ops that a recurrent step may consist of. All are analytic, so that two bodies that agree at
// random points are the same function.
constexpr std::string_view kStepOps[] = {
    "Add",   "Concat", "MatMul",  "Mul",          "Neg", "Reshape", "Sigmoid",
    "Slice", "Split",  "Squeeze", "StridedSlice", "Sub", "Tanh",    "Unsqueeze",
};

std::vector<float> FloatsOf(const Tensor& tensor) {  // may be unaligned in a mapped file
  std::vector<float> out(static_cast<size_t>(tensor.elements()));
  std::memcpy(out.data(), tensor.bytes().data(), tensor.bytes().size());
  return out;
}

std::optional<int64_t> KnownScalar(const Fact& fact) {
  const Dim count = fact.shape.elements();
  if (!IsInteger(fact.dtype) || !count.known() || count.size != 1 || !AllIntsKnown(fact)) {
    return std::nullopt;
  }
  auto ints = NeedInts(fact, "number");
  if (!ints.ok()) return std::nullopt;
  return ints->front();
}

class LoopReader {
 public:
  LoopReader(const Graph& cond, const Graph& body, const Facts& initial)
      : cond_(cond), body_(body), initial_(initial) {}

  std::optional<RecurrentLoop> Read() {
    loop_.body = &body_;
    const size_t count = initial_.size();
    if (body_.inputs().size() != count || body_.outputs().size() != count ||
        cond_.inputs().size() != count || cond_.outputs().size() != 1 || HasEffects(cond_) ||
        HasEffects(body_)) {
      return std::nullopt;
    }
    for (size_t i = 0; i < count; ++i) number_of_[Index(body_.inputs()[i].value)] = i;
    // Each loop variable is unchanged, a list that is written, a counter or a state.
    std::vector<int> written;
    for (size_t i = 0; i < count; ++i) {
      const int n = static_cast<int>(i);
      const ValueId in = In(n), out = Out(n);
      if (in == out) {
        loop_.unchanged.push_back(n);
      } else if (body_.fact(in).kind == ValueKind::kList) {
        written.push_back(n);
      } else if (IsCounter(n)) {
        loop_.counters.push_back(n);
      } else {
        loop_.states.push_back(n);
      }
    }
    if (loop_.states.empty() || loop_.states.size() > 2 || !ReadCondition() || !FindStep() ||
        !ReadWeights() || !OrderStates()) {
      return std::nullopt;
    }
    for (int n : loop_.states) loop_.next.push_back(Out(n));
    for (int n : written) {
      if (!ReadWritten(n)) return std::nullopt;
    }
    return loop_;
  }

 private:
  static bool HasEffects(const Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return node.op->traits.has_effects; });
  }
  ValueId In(int n) const { return body_.inputs()[static_cast<size_t>(n)].value; }
  ValueId Out(int n) const { return body_.outputs()[static_cast<size_t>(n)].value; }
  int Number(ValueId id) const {
    auto it = number_of_.find(Index(id));
    return it == number_of_.end() ? -1 : static_cast<int>(it->second);
  }
  bool IsOne(const std::vector<int>& of, int n) const {
    return std::find(of.begin(), of.end(), n) != of.end();
  }

  bool IsCounter(int n) const {
    const Node* add = ProducerIf(body_, Out(n), "Add");
    if (add == nullptr || KnownScalar(initial_[static_cast<size_t>(n)]) != 0) return false;
    const auto& [a, b] = std::pair(add->inputs[0], add->inputs[1]);
    const ValueId one = a == In(n) ? b : b == In(n) ? a : kNoValue;
    return one != kNoValue && KnownScalar(body_.fact(one)) == 1;
  }

  // The condition must be a conjunction of comparisons counter < limit.
  bool ReadCondition() {
    std::vector<ValueId> open = {cond_.outputs()[0].value};
    auto argument = [this](ValueId id) {
      for (size_t i = 0; i < cond_.inputs().size(); ++i) {
        if (cond_.inputs()[i].value == id) return static_cast<int>(i);
      }
      return -1;
    };
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (const Node* both = ProducerIf(cond_, id, "And")) {
        open.insert(open.end(), both->inputs.begin(), both->inputs.end());
        continue;
      }
      const Node* less = ProducerIf(cond_, id, "Less");
      if (less == nullptr || !IsOne(loop_.counters, argument(less->inputs[0]))) return false;
      const int limit = argument(less->inputs[1]);
      const auto known = KnownScalar(cond_.fact(less->inputs[1]));
      if (known.has_value()) {
        loop_.limits.push_back(*known);
      } else if (IsOne(loop_.unchanged, limit)) {
        loop_.limit_values.push_back(limit);
      } else {
        return false;
      }
    }
    return !loop_.limits.empty() || !loop_.limit_values.empty();
  }

  // Everything between the new states and the loop variables must be a known op. Of lists, only one
  // may be read, at a counter.
  bool FindStep() {
    std::vector<ValueId> open;
    for (int n : loop_.states) open.push_back(Out(n));
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const Value& value = body_.value(id);
      if (value.is_constant() || IsOne(loop_.states, Number(id))) continue;
      if (value.producer == kNoNode) return false;
      const Node& node = body_.node(value.producer);
      if (node.op->name == "ListGet") {
        const int list = Number(node.inputs[0]);
        if (!IsOne(loop_.unchanged, list) || !IsOne(loop_.counters, Number(node.inputs[1])) ||
            (loop_.step != kNoValue && loop_.step != id)) {
          return false;
        }
        loop_.step = id;
        loop_.inputs = list;
        continue;
      }
      if (std::find(std::begin(kStepOps), std::end(kStepOps), node.op->name) ==
          std::end(kStepOps)) {
        return false;
      }
      if (!steps_.insert(Index(value.producer)).second) continue;
      for (ValueId input : node.inputs) {
        if (input != kNoValue) open.push_back(input);
      }
    }
    return loop_.step != kNoValue;
  }

  // The constant that a product multiplies with; nothing if it is not a plain matrix.
  std::optional<Tensor> WeightsOf(const Node& product) const {
    if (BoolAttr(product, "transpose_a", false) || BoolAttr(product, "transpose_b", false)) {
      return std::nullopt;
    }
    const Fact& b = body_.fact(product.inputs[1]);
    if (!body_.value(product.inputs[1]).is_constant() || !b.has_value() || b.dtype != DType::kF32 ||
        b.shape.rank() != 2) {
      return std::nullopt;
    }
    return b.value;
  }

  static Tensor Rows(const Tensor& matrix, int64_t begin, int64_t count) {
    const int64_t width = matrix.shape()[1];
    const auto bytes = matrix.bytes().subspan(static_cast<size_t>(begin * width) * 4,
                                              static_cast<size_t>(count * width) * 4);
    return Tensor::Copy({DType::kF32, Shape{count, width}}, bytes);
  }
  // The columns of a followed by those of b; either may be missing. Invalid if they do not fit.
  static Tensor SideBySide(const Tensor& a, const Tensor& b) {
    if (!b.valid()) return a;
    if (!a.valid() || a.shape()[0] != b.shape()[0]) return Tensor();
    const auto x = FloatsOf(a), y = FloatsOf(b);
    std::vector<float> both;
    for (int64_t row = 0; row < a.shape()[0]; ++row) {
      const int64_t m = a.shape()[1], n = b.shape()[1];
      both.insert(both.end(), x.begin() + row * m, x.begin() + (row + 1) * m);
      both.insert(both.end(), y.begin() + row * n, y.begin() + (row + 1) * n);
    }
    return Tensor::Of<float>(DType::kF32, Shape{a.shape()[0], a.shape()[1] + b.shape()[1]}, both);
  }

  bool ReadWeights() {
    // Products give the weights, additions the biases.
    std::vector<ValueId> added;
    for (uint32_t n : steps_) {
      const Node& node = body_.node(NodeId{n});
      if (node.op->name == "MatMul") {
        const auto weights = WeightsOf(node);
        if (!weights.has_value() || !ReadProduct(node, *weights)) return false;
      }
      const bool adds = node.op->name == "Add" || node.op->name == "Sub";
      const size_t first = adds ? 0 : node.op->name == "MatMul" ? 2 : node.inputs.size();
      for (size_t i = first; i < node.inputs.size(); ++i) {
        const ValueId id = node.inputs[i];
        if (id != kNoValue && body_.value(id).is_constant()) added.push_back(id);
      }
    }
    // Join the parts, and check that they form gates of equal width.
    loop_.resets_before = of_state_[1].valid();
    loop_.input_weights = SideBySide(of_step_[0], of_step_[1]);
    loop_.recurrent_weights = SideBySide(of_state_[0], of_state_[1]);
    if (!loop_.input_weights.valid() || !loop_.recurrent_weights.valid()) return false;
    loop_.features = loop_.input_weights.shape()[0];
    loop_.units = loop_.recurrent_weights.shape()[0];
    const int64_t width = loop_.input_weights.shape()[1];
    if (loop_.units == 0 || width != loop_.recurrent_weights.shape()[1] ||
        width % loop_.units != 0) {
      return false;
    }
    loop_.gates = width / loop_.units;
    if (loop_.resets_before && (loop_.gates != 3 || of_state_[1].shape()[1] != loop_.units)) {
      return false;
    }
    return std::all_of(added.begin(), added.end(), [this](ValueId id) { return ReadAdded(id); });
  }

  bool ReadAdded(ValueId id) {
    const Fact& fact = body_.fact(id);
    const int64_t elements = fact.shape.elements().size, width = loop_.gates * loop_.units;
    if (!fact.has_value() || fact.dtype != DType::kF32) return false;
    std::vector<float> values = FloatsOf(fact.value);
    if (elements == 1) {
      loop_.scalars.push_back(double{values[0]});
      return true;
    }
    // If the state is reset before its product, the candidate and the other gates have biases of
    // their own.
    if (loop_.resets_before && elements == loop_.units) {
      values.insert(values.begin(), static_cast<size_t>(2 * loop_.units), 0.0f);
    } else if (loop_.resets_before && elements == 2 * loop_.units) {
      values.resize(static_cast<size_t>(width));
    }
    if (static_cast<int64_t>(values.size()) != width) return false;
    loop_.biases.push_back(std::move(values));
    return true;
  }

  // 0: the state that is multiplied; 1: the state after a reset gate; -1: neither.
  int RoleOf(ValueId id) {
    int role = 0;
    if (const Node* reset = ProducerIf(body_, id, "Mul")) {
      role = 1;
      id = Number(reset->inputs[0]) >= 0 ? reset->inputs[0] : reset->inputs[1];
    }
    const int state = Number(id);
    if (!IsOne(loop_.states, state) || (multiplied_ >= 0 && multiplied_ != state)) return -1;
    multiplied_ = state;
    return role;
  }

  // Reads x W, h R, or both as one product of the concatenation of x and h.
  bool ReadProduct(const Node& product, const Tensor& weights) {
    const ValueId a = product.inputs[0];
    if (a == loop_.step) {
      // If there are two products of x, the one with fewer columns belongs to the candidate.
      if (!of_step_[0].valid()) return Set(of_step_[0], weights);
      if (!Set(of_step_[1], weights)) return false;
      if (of_step_[0].shape()[1] < of_step_[1].shape()[1]) std::swap(of_step_[0], of_step_[1]);
      return true;
    }
    const Node* both = ProducerIf(body_, a, "Concat");
    if (both == nullptr) {
      const int role = RoleOf(a);
      return role >= 0 && Set(of_state_[role], weights);
    }
    if (both->inputs.size() != 2 || both->inputs[0] != loop_.step) return false;
    const PartialShape& x = body_.fact(loop_.step).shape;
    const int64_t axis = IntAttr(*both, "axis", 0), rows = weights.shape()[0];
    if (!x.ranked() || x.rank() != 2 || (axis != 1 && axis != -1) || !x[1].known() ||
        x[1].size > rows) {
      return false;
    }
    const int role = RoleOf(both->inputs[1]);
    return role >= 0 && Set(of_step_[role], Rows(weights, 0, x[1].size)) &&
           Set(of_state_[role], Rows(weights, x[1].size, rows - x[1].size));
  }
  static bool Set(Tensor& to, const Tensor& weights) {
    if (to.valid()) return false;
    to = weights;
    return true;
  }

  bool OrderStates() {
    if (loop_.states[0] != multiplied_) std::swap(loop_.states[0], loop_.states.back());
    for (int n : loop_.states) {
      const Fact& fact = body_.fact(In(n));
      if (fact.dtype != DType::kF32 || !fact.shape.ranked() || fact.shape.rank() != 2 ||
          !fact.shape[1].known() || fact.shape[1].size != loop_.units) {
        return false;
      }
    }
    return loop_.states[0] == multiplied_;
  }

  bool ReadWritten(int n) {
    const Node* set = ProducerIf(body_, Out(n), "ListSet");
    if (set == nullptr || set->inputs[0] != In(n) || set->inputs[2] != loop_.next[0] ||
        BoolAttr(*set, "grow", false)) {
      return false;
    }
    if (IsOne(loop_.counters, Number(set->inputs[1]))) {
      loop_.results.push_back(n);
      return true;
    }
    loop_.lasts.push_back(n);
    return KnownScalar(body_.fact(set->inputs[1])) == 0;
  }

  const Graph &cond_, &body_;
  const Facts& initial_;
  RecurrentLoop loop_;
  std::map<uint32_t, size_t> number_of_;  // number of each input of the body
  std::set<uint32_t> steps_;              // nodes of the step
  Tensor of_step_[2], of_state_[2];       // indexed by the role of the state that they belong to
  int multiplied_ = -1;                   // the loop variable in those products
};

}  // namespace

std::optional<RecurrentLoop> ReadRecurrentLoop(const Graph& cond, const Graph& body,
                                               const Facts& initial) {
  return LoopReader(cond, body, initial).Read();
}

}  // namespace oncilla
