// One rule for each op: from the derivative by its output to those by its inputs. Where an input
// was stretched, its derivative is the sum over what it was stretched to.
#include "engine/import/lowering/derivative.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

class Derivation {
 public:
  Derivation(Lowering& b, size_t first) : b_(b), first_(first), end_(b.graph().nodes().size()) {}

  Result<Values> By(std::span<const ValueId> xs, ValueId y) {
    FindDependent(xs);
    ONCILLA_ASSIGN(sums_[y], Filled(y, 1));
    for (size_t n = end_; n-- > first_;) ONCILLA_TRY(Through(n));
    Values out;
    for (const ValueId x : xs) {
      const auto sum = sums_.find(x);
      ValueId by = sum == sums_.end() ? kNoValue : sum->second;
      if (by == kNoValue) {
        ONCILLA_ASSIGN(by, Filled(x, 0));  // y does not depend on it
      }
      out.push_back(by);
    }
    return out;
  }

  // For the rules: nodes under names of their own.
  Result<ValueId> Do(std::string_view op, Values inputs, AttrMap attrs = {}) {
    return b_.Add(op, std::move(attrs), std::move(inputs), StrCat("derivative", count_++));
  }
  Result<ValueId> Number(ValueId like, double value) {
    return b_.Scalar(b_.fact(like).dtype, value);
  }
  Result<ValueId> ShapeOf(ValueId x) { return Do("Shape", {x}, WriteAttrs(ShapeAttrs{})); }
  // g where the condition is true, else zero.
  Result<ValueId> Where(ValueId condition, ValueId g) {
    ONCILLA_ASSIGN(const ValueId zero, Number(g, 0));
    return Do("Where", {condition, g, zero});
  }
  Lowering& b() { return b_; }
  bool Needs(ValueId x) const { return dependent_.contains(x); }

  // Adds to the derivative by x, which was stretched to the shape of `by`. The sizes of the last
  // `alike` axes are not stretched.
  Status Give(ValueId x, ValueId by, int alike = 0) {
    if (!Needs(x)) return {};
    ONCILLA_ASSIGN(by, Unstretched(by, x, alike));
    ValueId& sum = sums_.try_emplace(x, kNoValue).first->second;
    if (sum == kNoValue) {
      sum = by;
      return {};
    }
    ONCILLA_ASSIGN(const ValueId both, Do("Add", {sum, by}));
    sums_[x] = both;
    return {};
  }
  // The same of a derivative that has as many elements as x, in the same order.
  Status GiveReshaped(ValueId x, ValueId by) {
    if (!Needs(x)) return {};
    ONCILLA_ASSIGN(const ValueId shape, ShapeOf(x));
    ONCILLA_ASSIGN(const ValueId reshaped, Do("Reshape", {by, shape}));
    return Give(x, reshaped, b_.fact(x).shape.ranked() ? b_.fact(x).shape.rank() : 0);
  }

 private:
  // Only floats have derivatives: sizes and conditions that depend on xs are constants here.
  void FindDependent(std::span<const ValueId> xs) {
    dependent_.insert(xs.begin(), xs.end());
    for (size_t n = first_; n < end_; ++n) {
      const Node& node = b_.graph().nodes()[n];
      if (std::none_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return Needs(id); })) {
        continue;
      }
      for (const ValueId output : node.outputs) {
        if (IsFloat(b_.fact(output).dtype)) dependent_.insert(output);
      }
    }
  }

  Result<ValueId> Filled(ValueId like, double value) {
    ONCILLA_ASSIGN(const ValueId shape, ShapeOf(like));
    ONCILLA_ASSIGN(const ValueId number, Number(like, value));
    return Do("Fill", {shape, number});
  }

  Status Through(size_t n);

  Result<ValueId> Unstretched(ValueId by, ValueId x, int alike) {
    const PartialShape to = b_.fact(x).shape, from = b_.fact(by).shape;
    if (!to.ranked() || !from.ranked())
      return Unsupported("derivatives of tensors of unknown rank");
    if (alike == to.rank() && alike == from.rank()) return by;
    const int leading = from.rank() - to.rank();
    std::vector<int64_t> axes, extra;
    for (int i = 0; i < from.rank() - alike; ++i) {
      if (i < leading) {
        extra.push_back(i);
        axes.push_back(i);
        continue;
      }
      const Dim &own = to[i - leading], &wide = from[i];
      if (own.Same(wide) || (own.known() && own.size != 1)) continue;
      if (!own.known()) {
        return Unsupported("derivatives where a size of ", to, " may be stretched to ", from);
      }
      axes.push_back(i);
    }
    if (axes.empty()) return by;
    ONCILLA_ASSIGN(const ValueId sum, Do("ReduceSum", {by, b_.Ints(axes)},
                                         WriteAttrs(ReduceAttrs{.keep_dims = true})));
    return extra.empty() ? Result<ValueId>(sum) : Do("Squeeze", {sum, b_.Ints(extra)});
  }

  Lowering& b_;
  const size_t first_, end_;
  int count_ = 0;
  std::set<ValueId> dependent_;
  std::map<ValueId, ValueId> sums_;
};

// A node, and the derivative by its output.
struct Step {
  Derivation& d;
  const Node& node;
  ValueId g;
  ValueId x(size_t i = 0) const { return i < node.inputs.size() ? node.inputs[i] : kNoValue; }
  ValueId y() const { return node.outputs[0]; }
  Result<ValueId> Mul(ValueId a, ValueId b) const { return d.Do("Mul", {a, b}); }
  // Gives g times a factor to input i.
  Status GiveTimes(ValueId factor, size_t i = 0) const {
    ONCILLA_ASSIGN(const ValueId by, Mul(g, factor));
    return d.Give(x(i), by);
  }
};

Status AddRule(const Step& s) {
  ONCILLA_TRY(s.d.Give(s.x(0), s.g));
  return s.d.Give(s.x(1), s.g);
}

Status SubRule(const Step& s) {
  ONCILLA_TRY(s.d.Give(s.x(0), s.g));
  if (!s.d.Needs(s.x(1))) return {};
  ONCILLA_ASSIGN(const ValueId by, s.d.Do("Neg", {s.g}));
  return s.d.Give(s.x(1), by);
}

Status MulRule(const Step& s) {
  if (s.d.Needs(s.x(0))) ONCILLA_TRY(s.GiveTimes(s.x(1), 0));
  return s.d.Needs(s.x(1)) ? s.GiveTimes(s.x(0), 1) : Status();
}

// By the divisor: -g y / x1.
Status DivRule(const Step& s) {
  ONCILLA_ASSIGN(const ValueId part, s.d.Do("Div", {s.g, s.x(1)}));
  ONCILLA_TRY(s.d.Give(s.x(0), part));
  if (!s.d.Needs(s.x(1))) return {};
  ONCILLA_ASSIGN(ValueId by, s.Mul(part, s.y()));
  ONCILLA_ASSIGN(by, s.d.Do("Neg", {by}));
  return s.d.Give(s.x(1), by);
}

// g x1 x0^(x1 - 1), and zero for the power 0, whatever x0 is.
Status PowRule(const Step& s) {
  if (s.d.Needs(s.x(1))) return Unsupported("derivatives by an exponent");
  ONCILLA_ASSIGN(const ValueId one, s.d.Number(s.y(), 1));
  ONCILLA_ASSIGN(const ValueId zero, s.d.Number(s.y(), 0));
  ONCILLA_ASSIGN(const ValueId less, s.d.Do("Sub", {s.x(1), one}));
  ONCILLA_ASSIGN(ValueId by, s.d.Do("Pow", {s.x(0), less}));
  ONCILLA_ASSIGN(by, s.Mul(by, s.x(1)));
  ONCILLA_ASSIGN(const ValueId constant, s.d.Do("Equal", {s.x(1), zero}));
  ONCILLA_ASSIGN(by, s.d.Do("Where", {constant, zero, by}));
  return s.GiveTimes(by);
}

Status NegRule(const Step& s) {
  ONCILLA_ASSIGN(const ValueId by, s.d.Do("Neg", {s.g}));
  return s.d.Give(s.x(), by);
}

Status ExpRule(const Step& s) { return s.GiveTimes(s.y()); }

Status LogRule(const Step& s) {
  ONCILLA_ASSIGN(const ValueId by, s.d.Do("Div", {s.g, s.x()}));
  return s.d.Give(s.x(), by);
}

Status SqrtRule(const Step& s) {
  ONCILLA_ASSIGN(const ValueId twice, s.d.Do("Add", {s.y(), s.y()}));
  ONCILLA_ASSIGN(const ValueId by, s.d.Do("Div", {s.g, twice}));
  return s.d.Give(s.x(), by);
}

Status SquareRule(const Step& s) {
  ONCILLA_ASSIGN(const ValueId twice, s.d.Do("Add", {s.x(), s.x()}));
  return s.GiveTimes(twice);
}

// 1 - y^2
Status TanhRule(const Step& s) {
  ONCILLA_ASSIGN(const ValueId one, s.d.Number(s.y(), 1));
  ONCILLA_ASSIGN(const ValueId square, s.Mul(s.y(), s.y()));
  ONCILLA_ASSIGN(const ValueId factor, s.d.Do("Sub", {one, square}));
  return s.GiveTimes(factor);
}

// y (1 - y)
Status SigmoidRule(const Step& s) {
  ONCILLA_ASSIGN(const ValueId one, s.d.Number(s.y(), 1));
  ONCILLA_ASSIGN(const ValueId rest, s.d.Do("Sub", {one, s.y()}));
  ONCILLA_ASSIGN(const ValueId factor, s.Mul(s.y(), rest));
  return s.GiveTimes(factor);
}

Status ReluRule(const Step& s) {
  ONCILLA_ASSIGN(const ValueId zero, s.d.Number(s.y(), 0));
  ONCILLA_ASSIGN(const ValueId above, s.d.Do("Greater", {s.x(), zero}));
  ONCILLA_ASSIGN(const ValueId by, s.d.Where(above, s.g));
  return s.d.Give(s.x(), by);
}

Status WhereRule(const Step& s) {
  ONCILLA_ASSIGN(ValueId by, s.d.Where(s.x(0), s.g));
  ONCILLA_TRY(s.d.Give(s.x(1), by));
  if (!s.d.Needs(s.x(2))) return {};
  ONCILLA_ASSIGN(const ValueId otherwise, s.d.Do("Not", {s.x(0)}));
  ONCILLA_ASSIGN(by, s.d.Where(otherwise, s.g));
  return s.d.Give(s.x(2), by);
}

Status IdentityRule(const Step& s) { return s.d.Give(s.x(), s.g); }

Status CastRule(const Step& s) {
  const DType type = s.d.b().fact(s.x()).dtype;
  ONCILLA_ASSIGN(const ValueId by, s.d.Do("Cast", {s.g}, WriteAttrs(CastAttrs{type})));
  return s.d.Give(s.x(), by);
}

Status ReshapeRule(const Step& s) { return s.d.GiveReshaped(s.x(), s.g); }

Status TransposeRule(const Step& s) {
  Values inputs = {s.g};
  if (s.x(1) != kNoValue) {
    ONCILLA_ASSIGN(const auto perm, NeedInts(s.d.b().fact(s.x(1)), "perm"));
    std::vector<int64_t> back(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) {
      back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    }
    inputs.push_back(s.d.b().Ints(back));
  }
  ONCILLA_ASSIGN(const ValueId by, s.d.Do("Transpose", inputs));
  return s.d.Give(s.x(), by);
}

// y = a b: by a it is g b^T, by b it is a^T g, each transposed where its operand is.
Status MatMulRule(const Step& s) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulAttrs>(s.node.attrs));
  const ValueId a = s.x(0), b = s.x(1);
  for (const ValueId operand : {a, b}) {
    const PartialShape& shape = s.d.b().fact(operand).shape;
    if (!shape.ranked() || shape.rank() < 2)
      return Unsupported("derivatives of products of ", shape);
  }
  const bool ta = attrs.transpose_a, tb = attrs.transpose_b;
  const auto product = [&](ValueId p, ValueId q, bool turn_p, bool turn_q) {
    return s.d.Do("MatMul", {p, q},
                  WriteAttrs(MatMulAttrs{.transpose_a = turn_p, .transpose_b = turn_q}));
  };
  if (s.d.Needs(a)) {
    ONCILLA_ASSIGN(const ValueId by, ta ? product(b, s.g, tb, true) : product(s.g, b, false, !tb));
    ONCILLA_TRY(s.d.Give(a, by, 2));
  }
  if (!s.d.Needs(b)) return {};
  ONCILLA_ASSIGN(const ValueId by, tb ? product(s.g, a, true, ta) : product(a, s.g, !ta, false));
  return s.d.Give(b, by, 2);
}

// Gives g, divided by a count if there is one, to each of the elements that were summed.
Status SumRule(const Step& s, bool mean) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ReduceAttrs>(s.node.attrs));
  const PartialShape shape = s.d.b().fact(s.x()).shape;
  if (!shape.ranked()) return Unsupported("derivatives of tensors of unknown rank");
  std::vector<int64_t> axes;
  if (s.x(1) != kNoValue) {
    ONCILLA_ASSIGN(const auto given, NeedInts(s.d.b().fact(s.x(1)), "axes"));
    ONCILLA_ASSIGN(const auto places, NormalizeAxes(given, shape.rank()));
    axes.assign(places.begin(), places.end());
  }
  if (axes.empty() && attrs.empty_axes_is_all) {
    for (int i = 0; i < shape.rank(); ++i) axes.push_back(i);
  }
  std::sort(axes.begin(), axes.end());
  ValueId by = s.g;
  if (!attrs.keep_dims && !axes.empty()) {
    ONCILLA_ASSIGN(by, s.d.Do("Unsqueeze", {by, s.d.b().Ints(axes)}));
  }
  ONCILLA_ASSIGN(const ValueId sizes, s.d.ShapeOf(s.x()));
  ONCILLA_ASSIGN(by, s.d.Do("Expand", {by, sizes}));
  if (mean) {
    ONCILLA_ASSIGN(ValueId count, s.d.Do("Gather", {sizes, s.d.b().Ints(axes)},
                                         WriteAttrs(GatherAttrs{.axis = 0})));
    ONCILLA_ASSIGN(count, s.d.Do("ReduceProd", {count}, WriteAttrs(ReduceAttrs{})));
    const DType type = s.d.b().fact(s.g).dtype;
    ONCILLA_ASSIGN(count, s.d.Do("Cast", {count}, WriteAttrs(CastAttrs{type})));
    ONCILLA_ASSIGN(by, s.d.Do("Div", {by, count}));
  }
  return s.d.Give(s.x(), by, shape.rank());
}
Status ReduceSumRule(const Step& s) { return SumRule(s, /*mean=*/false); }
Status ReduceMeanRule(const Step& s) { return SumRule(s, /*mean=*/true); }

struct Rule {
  std::string_view op;
  Status (*apply)(const Step&);
};
constexpr Rule kRules[] = {
    {"Add", AddRule},
    {"Cast", CastRule},
    {"Div", DivRule},
    {"EnsureShape", IdentityRule},
    {"Exp", ExpRule},
    {"Expand", IdentityRule},
    {"Flatten", ReshapeRule},
    {"Identity", IdentityRule},
    {"Log", LogRule},
    {"MatMul", MatMulRule},
    {"Mul", MulRule},
    {"Neg", NegRule},
    {"Pow", PowRule},
    {"ReduceMean", ReduceMeanRule},
    {"ReduceSum", ReduceSumRule},
    {"Relu", ReluRule},
    {"Reshape", ReshapeRule},
    {"Sigmoid", SigmoidRule},
    {"Sqrt", SqrtRule},
    {"Square", SquareRule},
    {"Squeeze", ReshapeRule},
    {"Sub", SubRule},
    {"Tanh", TanhRule},
    {"Transpose", TransposeRule},
    {"Unsqueeze", ReshapeRule},
    {"Where", WhereRule},
};

Status Derivation::Through(size_t n) {
  // A copy, since rules add nodes and so move the graph's own.
  const Node node = b_.graph().nodes()[n];
  for (const ValueId output : node.outputs) {
    const auto sum = sums_.find(output);
    if (sum == sums_.end() || !Needs(output)) continue;
    const auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                                   [&](const Rule& r) { return r.op == node.op->name; });
    if (rule == std::end(kRules)) {
      return Unsupported("the derivative of ", node.op->name, " (node '", node.name, "')");
    }
    const Status status = rule->apply({*this, node, sum->second});
    if (!status.ok()) return In(status, StrCat("node '", node.name, "' (", node.op->name, ")"));
  }
  return {};
}

}  // namespace

Result<Values> AddDerivatives(Lowering& b, size_t first, ValueId y, std::span<const ValueId> xs) {
  return Derivation(b, first).By(xs, y);
}

}  // namespace oncilla
