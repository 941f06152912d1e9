// Stores signed bytes as unsigned ones: q + 128 with the zero point moved by 128 represents the
// same numbers. The CPU's products multiply unsigned bytes by signed weights, so that signed ones
// would be converted in each product that reads them.
//
// Values that movements connect change together, and only if every node that computes or reads one
// of them can do so by a change of constants and attributes alone. Once a product gains from it,
// all values change that can, since sums have fast code for terms of one type.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "engine/ops/math/quantize.h"
#include "engine/ops/nn/integer.h"
#include "engine/passes/integers/quantised.h"
#include "engine/passes/pass.h"

namespace oncilla {
namespace {

constexpr int kMoved = 128;

// How a node treats one of its signed bytes.
enum class Role : uint8_t {
  kOther,   // it cannot change
  kMoves,   // an element of the result, like those of the others of this role
  kStarts,  // it is computed, or read, from something else
};

class UnsignedBytes {
 public:
  UnsignedBytes(const Graph& graph, Patch& patch)
      : graph_(graph), patch_(patch), group_(graph.values().size()) {
    std::iota(group_.begin(), group_.end(), size_t{0});
    changes_.assign(group_.size(), true);
  }

  Status Run() {
    for (const Node& node : graph_.nodes()) Look(node);
    for (const NamedValue& input : graph_.inputs()) Forbid(input.value);
    for (const NamedValue& output : graph_.outputs()) Forbid(output.value);
    Settle();
    const bool pays = std::ranges::any_of(graph_.nodes(), [this](const Node& node) {
      return IsProduct(node) && Changes(node.inputs[0]);
    });
    if (!pays) return Status();
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) ONCILLA_TRY(Rewrite(NodeId{n}));
    return Status();
  }

 private:
  bool IsSigned(ValueId id) const {
    return id != kNoValue && graph_.fact(id).dtype == DType::kI8 &&
           graph_.fact(id).kind == ValueKind::kTensor;
  }
  bool IsConstantOrAbsent(const Node& node, size_t input) const {
    return input >= node.inputs.size() || node.inputs[input] == kNoValue ||
           graph_.value(node.inputs[input]).is_constant();
  }

  static bool IsProduct(const Node& node) {
    return node.op->name == "ConvInteger" || node.op->name == "MatMulInteger";
  }
  static bool IsMovement(const Node& node) {
    return OnlyMoves(*node.op) || node.op->name == "Pad" ||
           (node.op->name == "MaxPool" && node.outputs.size() == 1);
  }
  static bool IsMoved(const Node& node, size_t input) {
    if (node.op->name == "Pad") return input == 0 || input == 2;
    return input == 0 || node.op->traits.axes.all_inputs;
  }

  Role RoleOfInput(const Node& node, size_t input) const {
    if (IsMovement(node)) return IsMoved(node, input) ? Role::kMoves : Role::kOther;
    if (input != 0) return Role::kOther;
    const std::string_view op = node.op->name;
    if (IsProduct(node)) return IsConstantOrAbsent(node, 2) ? Role::kStarts : Role::kOther;
    if (op == "Requantize") return Role::kStarts;
    if (op == "ByteTable") return IsConstantOrAbsent(node, 1) ? Role::kStarts : Role::kOther;
    if (op == "DequantizeLinear") return ParametersOf(graph_, node) ? Role::kStarts : Role::kOther;
    return Role::kOther;
  }

  Role RoleOfOutput(const Node& node) const {
    if (IsMovement(node)) return Role::kMoves;
    const std::string_view op = node.op->name;
    if (op == "Requantize") return IsConstantOrAbsent(node, 2) ? Role::kStarts : Role::kOther;
    if (op == "ByteTable") return IsConstantOrAbsent(node, 1) ? Role::kStarts : Role::kOther;
    if (op == "QuantizeLinear") {
      const bool stated = node.inputs.size() > 2 && node.inputs[2] != kNoValue;
      return stated && ParametersOf(graph_, node) ? Role::kStarts : Role::kOther;
    }
    return Role::kOther;
  }

  size_t Group(ValueId id) {
    size_t g = Index(id);
    while (group_[g] != g) g = group_[g] = group_[group_[g]];
    return g;
  }
  void Forbid(ValueId id) { changes_[Index(id)] = false; }

  // Notes what the node says about its signed bytes. Constants belong to no group: a node that
  // moves one reads a changed copy.
  void Look(const Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (!IsSigned(id) || graph_.value(id).is_constant()) continue;
      const Role role = RoleOfInput(node, i);
      if (role == Role::kOther) Forbid(id);
      if (role == Role::kMoves) {
        for (const ValueId moved : node.outputs) group_[Group(moved)] = Group(id);
      }
    }
    for (const ValueId id : node.outputs) {
      if (IsSigned(id) && RoleOfOutput(node) == Role::kOther) Forbid(id);
    }
  }

  // Gives the first value of each group what holds for all of it.
  void Settle() {
    for (uint32_t v = 0; v < group_.size(); ++v) {
      const size_t first = Group(ValueId{v});
      if (!changes_[v]) changes_[first] = false;
    }
  }

  bool Changes(ValueId id) {
    if (!IsSigned(id) || graph_.value(id).is_constant()) return false;
    return changes_[Group(id)];
  }

  // The bytes of a constant, each moved by 128.
  Result<ValueId> Moved(ValueId id) {
    const Tensor& bytes = graph_.fact(id).value;
    std::vector<uint8_t> moved;
    for (const int8_t byte : bytes.As<int8_t>()) {
      moved.push_back(static_cast<uint8_t>(byte + kMoved));
    }
    return patch_.AddConstant(Tensor::Of<uint8_t>(DType::kU8, bytes.shape(), moved));
  }
  // The zero point that takes the place of that of input `input`, whose shape is that of `like`
  // where there is none.
  Status MoveZero(std::vector<ValueId>& inputs, size_t input, ValueId like) {
    if (inputs.size() <= input) inputs.resize(input + 1, kNoValue);
    if (inputs[input] != kNoValue) {
      ONCILLA_ASSIGN(inputs[input], Moved(inputs[input]));
      return Status();
    }
    const Shape shape = like == kNoValue ? Shape() : graph_.fact(like).desc().shape;
    const std::vector<uint8_t> zeros(static_cast<size_t>(shape.elements()), kMoved);
    inputs[input] = patch_.AddConstant(Tensor::Of<uint8_t>(DType::kU8, shape, zeros));
    return Status();
  }

  Status Rewrite(NodeId id) {
    const Node& node = graph_.node(id);
    const bool input = !node.inputs.empty() &&
                       std::ranges::any_of(node.inputs, [&](ValueId v) { return Changes(v); });
    const bool output = std::ranges::any_of(node.outputs, [&](ValueId v) { return Changes(v); });
    if (!input && !output) return Status();
    std::vector<ValueId> inputs = node.inputs;
    AttrMap attrs = node.attrs;
    for (ValueId& v : inputs) {
      if (const auto made = moved_.find(v); v != kNoValue && made != moved_.end()) v = made->second;
    }
    if (IsMovement(node)) {
      ONCILLA_TRY(MoveConstants(node, inputs));
    } else if (IsProduct(node)) {
      ONCILLA_TRY(MoveZero(inputs, 2, kNoValue));
    } else if (node.op->name == "Requantize") {
      ONCILLA_TRY(ChangeRequantize(input, output, inputs, attrs));
    } else if (node.op->name == "ByteTable") {
      ONCILLA_TRY(ChangeTable(input, output, inputs));
    } else {  // DequantizeLinear's input or QuantizeLinear's result
      if (output) {
        ONCILLA_ASSIGN(auto quantize, ReadAttrs<QuantizeLinearAttrs>(attrs));
        quantize.to = DType::kU8;
        attrs = WriteAttrs(quantize);
      }
      ONCILLA_TRY(MoveZero(inputs, 2, inputs[1]));
    }
    ONCILLA_ASSIGN(const auto made, patch_.AddNode(node.op->name, attrs, inputs, {id}));
    for (size_t i = 0; i < made.size(); ++i) {
      if (output) {
        moved_[node.outputs[i]] = made[i];
      } else {
        ONCILLA_TRY(patch_.Replace(node.outputs[i], made[i]));
      }
    }
    return Status();
  }

  Status MoveConstants(const Node& node, std::vector<ValueId>& inputs) {
    // A constant Pad without a value pads with 0.
    if (node.op->name == "Pad" && StringAttr(node, "mode", "constant") == "constant" &&
        (inputs.size() < 3 || inputs[2] == kNoValue)) {
      ONCILLA_TRY(MoveZero(inputs, 2, kNoValue));
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId given = node.inputs[i];
      if (!IsMoved(node, i) || !IsSigned(given) || !graph_.value(given).is_constant()) continue;
      ONCILLA_ASSIGN(inputs[i], Moved(given));
    }
    return Status();
  }

  Status ChangeRequantize(bool input, bool output, std::vector<ValueId>& inputs, AttrMap& map) {
    ONCILLA_ASSIGN(auto attrs, ReadAttrs<RequantizeAttrs>(map));
    if (input) attrs.x_zero += kMoved;
    if (output) {
      const IntegerRange range = RangeOf(attrs);
      attrs.to = DType::kU8;
      attrs.least = range.least + kMoved;
      attrs.most = range.most + kMoved;
      ONCILLA_TRY(MoveZero(inputs, 2, kNoValue));
    }
    map = WriteAttrs(attrs);
    return Status();
  }

  // A table is read at the bits of a byte.
  Status ChangeTable(bool input, bool output, std::vector<ValueId>& inputs) {
    if (output) {
      ONCILLA_ASSIGN(inputs[1], Moved(inputs[1]));
    }
    if (!input) return Status();
    const Tensor& table = patch_.fact(inputs[1]).value;
    std::vector<std::byte> turned(table.bytes().begin(), table.bytes().end());
    std::rotate(turned.begin(), turned.begin() + static_cast<ptrdiff_t>(turned.size() / 2),
                turned.end());
    inputs[1] = patch_.AddConstant(Tensor::Copy(table.desc(), turned));
    return Status();
  }

  const Graph& graph_;
  Patch& patch_;
  std::vector<size_t> group_;  // by value: another one of its group, or itself
  std::vector<bool> changes_;  // by value, later by group: whether it may change
  std::unordered_map<ValueId, ValueId> moved_;
};

}  // namespace

Status StoreUnsignedBytes(const Graph& graph, const PassContext&, Patch& patch) {
  return UnsignedBytes(graph, patch).Run();
}

}  // namespace oncilla
