// Attention written as several nodes becomes Attention: a product of queries and keys, factors,
// masks, a softmax over the keys, and a product with the values. The op reads heads as a leading
// axis, as the nodes have it; move_heads.cc then lets it read them from their source.
#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

// A number far below any score of a model. Adding it to a score absorbs the score in rounding, so
// replacing a score by this number gives the same result as adding it.
constexpr double kSurelyHides = -1e30;

class AttentionRecogniser {
 public:
  AttentionRecogniser(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), uses_(graph), readers_(Consumers(graph)), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.op->name == "Softmax") ONCILLA_TRY(TryFrom(NodeId{n}));
    }
    return Status();
  }

 private:
  // A mask: a value added to the scores, or a `where` that replaces scores by a number.
  struct Mask {
    ValueId added = kNoValue;
    // If not empty, samples are windows of images, [images * windows, heads, L, S], and the mask
    // was added to [images, windows, heads, L, S]: these are the first two sizes there.
    std::vector<int64_t> windows = {};
    const Node* where = nullptr;
    size_t scores_at = 0;  // which input of where
    double number = 0;     // replaces the scores
  };

  // One attention as it was written.
  struct Found {
    std::vector<NodeId> nodes;  // the last one first
    ValueId q = kNoValue, k = kNoValue, v = kNoValue;
    bool keys_transposed = false;  // k is [.., size, S]
    std::vector<Mask> masks;
    std::vector<ValueId> row_factors;  // of the scores, one for all keys each
    double scale = 1;
    bool zero_blind = false;  // queries without keys give zeros
    ValueId y = kNoValue;     // [.., L, value_size]
  };

  static bool IsOneKnown(const Dim& dim) { return dim.known() && dim.size == 1; }

  const PartialShape& ShapeOf(ValueId id) const { return graph_.fact(id).shape; }

  // Also kNoNode for values that this patch made.
  NodeId ProducerOf(ValueId id) const {
    return Index(id) < graph_.values().size() ? graph_.value(id).producer : kNoNode;
  }

  // The number that a one-element constant holds.
  std::optional<double> NumberOf(ValueId id) const {
    if (id == kNoValue || !graph_.value(id).is_constant()) return {};
    const Fact& fact = graph_.fact(id);
    if (!fact.has_value() || !fact.shape.known() || fact.shape.elements().size != 1) return {};
    const auto values = ToDoubles(fact.value);
    if (!values.ok()) return {};
    return (*values)[0];
  }

  // x and the factor of x * c or x / c; nothing if the node is neither.
  struct Scaled {
    ValueId x = kNoValue;
    double factor = 1;
  };
  std::optional<Scaled> ScaledBy(const Node& node) const {
    const bool mul = node.op->name == "Mul", div = node.op->name == "Div";
    if ((!mul && !div) || node.inputs.size() != 2) return {};
    for (size_t i = 0; i < (mul ? 2u : 1u); ++i) {
      const auto number = NumberOf(node.inputs[1 - i]);
      // The factor must not broadcast x to a larger shape.
      if (!number || ShapeOf(node.inputs[1 - i]).rank() > ShapeOf(node.outputs[0]).rank() ||
          !ShapeOf(node.inputs[i]).ranked() ||
          ShapeOf(node.inputs[i]).rank() != ShapeOf(node.outputs[0]).rank()) {
        continue;
      }
      const double factor = mul ? *number : 1 / *number;
      if (std::isfinite(factor) && factor != 0) return Scaled{node.inputs[i], factor};
    }
    return {};
  }

  static bool IsPlainProduct(const Node& node) {
    return node.op->name == "MatMul" && node.inputs.size() == 2 &&
           !BoolAttr(node, "transpose_a", false) &&
           StringAttr(node, "activation", "none") == "none";
  }

  Status TryFrom(NodeId softmax_id) {
    const Node& softmax = graph_.node(softmax_id);
    const Fact& weights = graph_.fact(softmax.outputs[0]);
    if (!weights.shape.ranked() || BoolAttr(softmax, "log", false)) return Status();
    const int rank = weights.shape.rank();
    const int64_t axis = IntAttr(softmax, "axis", -1);
    if ((rank != 3 && rank != 4) || (axis != -1 && axis != rank - 1)) return Status();
    Found found;
    ValueId used = softmax.outputs[0];
    if (const Node* guard = NanGuard(used)) {
      used = guard->outputs[0];
      found.zero_blind = true;
      found.nodes = {ProducerOf(used), ProducerOf(guard->inputs[0])};
    }
    const Node* last = uses_.OnlyReader(used);
    if (last == nullptr || !IsPlainProduct(*last) || last->inputs[0] != used ||
        BoolAttr(*last, "transpose_b", false)) {
      return Status();
    }
    found.y = last->outputs[0];
    found.v = last->inputs[1];
    found.nodes.insert(found.nodes.begin(), ProducerOf(found.y));
    found.nodes.push_back(softmax_id);
    if (!WalkBack(softmax.inputs[0], weights.shape, found) || !Fits(found, rank)) return Status();
    return Put(found, rank);
  }

  // The Where of where(isnan(weights), 0, weights), as PyTorch writes the softmax of scores whose
  // mask may hide all keys of a query; null unless these two nodes alone read the weights. Scores
  // that are NaN themselves give zeros there, and NaN in the op.
  const Node* NanGuard(ValueId weights) const {
    const auto& readers = readers_[Index(weights)];
    if (readers.size() != 2 || uses_.Count(weights) != 2) return nullptr;
    for (const NodeId reader : readers) {
      const Node& where = graph_.node(reader);
      if (where.op->name != "Where" || where.inputs[2] != weights) continue;
      const Node* nan = ProducerIf(graph_, where.inputs[0], "IsNaN");
      const auto zero = NumberOf(where.inputs[1]);
      const bool same_rank = ShapeOf(where.inputs[1]).rank() <= ShapeOf(weights).rank();
      if (nan != nullptr && nan->inputs[0] == weights && uses_.Single(where.inputs[0]) && zero &&
          *zero == 0 && same_rank) {
        return &where;
      }
    }
    return nullptr;
  }

  // Goes backwards from the softmax to the product of queries and keys.
  bool WalkBack(ValueId at, const PartialShape& scores, Found& found) {
    bool scaled = false;
    while (uses_.Single(at)) {
      const NodeId id = ProducerOf(at);
      if (id == kNoNode) return false;
      const Node& node = graph_.node(id);
      found.nodes.push_back(id);
      if (IsPlainProduct(node)) {
        found.q = node.inputs[0], found.k = node.inputs[1];
        found.keys_transposed = !BoolAttr(node, "transpose_b", false);
        return true;
      }
      if (const auto factor = ScaledBy(node)) {
        found.scale *= factor->factor;
        scaled = true;
        at = factor->x;
        continue;
      }
      if (const ValueId x = ScaledByRows(node, scores, found); x != kNoValue) {
        scaled = true;
        at = x;
        continue;
      }
      // Going backwards, a factor applied after the mask would scale the mask, too.
      if (scaled) return false;
      const ValueId scores_in = node.op->name == "Add"       ? AddedTo(node, scores, found)
                                : node.op->name == "Where"   ? PutInto(node, scores, found)
                                : node.op->name == "Reshape" ? AddedToWindows(node, scores, found)
                                                             : kNoValue;
      if (scores_in == kNoValue) return false;
      at = scores_in;
    }
    return false;
  }

  // Whether a value broadcasts to the shape of the scores without enlarging it: each axis is 1 or
  // equal.
  bool FitsScores(ValueId id, const PartialShape& scores) const {
    const PartialShape& own = ShapeOf(id);
    if (!own.ranked() || own.rank() > scores.rank()) return false;
    for (int i = 1; i <= own.rank(); ++i) {
      const Dim& dim = own[own.rank() - i];
      if (!(dim.known() && dim.size == 1) && !dim.Same(scores[scores.rank() - i])) return false;
    }
    return true;
  }
  bool IsScores(ValueId id, const PartialShape& scores) const {
    return uses_.Single(id) && ShapeOf(id).ranked() && ShapeOf(id).rank() == scores.rank() &&
           FitsScores(id, scores) && ProducerOf(id) != kNoNode;
  }
  // Whether a value is a product of two values, perhaps scaled and masked.
  bool ComesFromProduct(ValueId id, int most_steps = 4) const {
    const NodeId producer = ProducerOf(id);
    if (producer == kNoNode || !uses_.Single(id) || most_steps == 0) return false;
    const Node& node = graph_.node(producer);
    if (IsPlainProduct(node)) return true;
    if (const auto factor = ScaledBy(node)) return ComesFromProduct(factor->x, most_steps - 1);
    const std::string_view op = node.op->name;
    if (op != "Add" && op != "Where" && op != "Mul") return false;
    return std::any_of(node.inputs.end() - 2, node.inputs.end(),
                       [&](ValueId operand) { return ComesFromProduct(operand, most_steps - 1); });
  }

  ValueId AddedTo(const Node& node, const PartialShape& scores, Found& found) {
    for (size_t i = 0; i < 2; ++i) {
      const ValueId mask = node.inputs[1 - i];
      if (!IsScores(node.inputs[i], scores) || !ComesFromProduct(node.inputs[i]) ||
          !FitsScores(mask, scores)) {
        continue;
      }
      found.masks.push_back({.added = mask});
      return node.inputs[i];
    }
    return kNoValue;
  }

  // The scores, if the node multiplies them by numbers that are the same for all keys of a query.
  ValueId ScaledByRows(const Node& node, const PartialShape& scores, Found& found) {
    if (node.op->name != "Mul") return kNoValue;
    for (size_t i = 0; i < 2; ++i) {
      const ValueId factor = node.inputs[1 - i];
      const PartialShape& shape = ShapeOf(factor);
      if (!IsScores(node.inputs[i], scores) || !ComesFromProduct(node.inputs[i]) ||
          !FitsScores(factor, scores) || shape.rank() == 0 ||
          !IsOneKnown(shape[shape.rank() - 1])) {
        continue;
      }
      found.row_factors.push_back(factor);
      return node.inputs[i];
    }
    return kNoValue;
  }

  // A mask as Swin Transformers write it, for windows that were shifted across an image's edge:
  // [images * windows, heads, L, S] -> [images, windows, heads, L, S], plus mask, and back.
  ValueId AddedToWindows(const Node& back, const PartialShape& scores, Found& found) {
    const Node* add = ProducerIf(graph_, back.inputs[0], "Add");
    if (add == nullptr || !uses_.Single(back.inputs[0]) || scores.rank() != 4) return kNoValue;
    const PartialShape& apart = ShapeOf(back.inputs[0]);
    if (!apart.known() || apart.rank() != 5) return kNoValue;
    for (size_t i = 0; i < 2; ++i) {
      const Node* split = ProducerIf(graph_, add->inputs[i], "Reshape");
      const PartialShape& mask = ShapeOf(add->inputs[1 - i]);
      if (split == nullptr || !uses_.Single(add->inputs[i]) ||
          !IsScores(split->inputs[0], scores) || !SameShape(ShapeOf(split->inputs[0]), scores) ||
          !mask.known() || mask.rank() != 5 || !FitsScores(add->inputs[1 - i], apart)) {
        continue;
      }
      for (int a = 1; a < 4; ++a) {
        if (!scores[a].Same(apart[a + 1])) return kNoValue;
      }
      found.nodes.push_back(ProducerOf(back.inputs[0]));
      found.nodes.push_back(ProducerOf(add->inputs[i]));
      found.masks.push_back(
          {.added = add->inputs[1 - i], .windows = {apart[0].size, apart[1].size}});
      return split->inputs[0];
    }
    return kNoValue;
  }

  // Handles where(condition, scores, c), or the branches exchanged, if c is so low that it works
  // like minus infinity; it becomes a mask of zeros and c.
  ValueId PutInto(const Node& node, const PartialShape& scores, Found& found) {
    const ValueId condition = node.inputs[0];
    if (!FitsScores(condition, scores)) return kNoValue;
    for (size_t i = 1; i <= 2; ++i) {
      const ValueId other = node.inputs[3 - i];
      const auto number = NumberOf(other);
      if (!number || !(*number <= kSurelyHides) || !IsScores(node.inputs[i], scores) ||
          !ComesFromProduct(node.inputs[i]) || ShapeOf(other).rank() > scores.rank()) {
        continue;
      }
      found.masks.push_back({.where = &node, .scores_at = i, .number = *number});
      return node.inputs[i];
    }
    return kNoValue;
  }

  // Attention does not broadcast as the product does: samples and heads must be equal.
  bool Fits(const Found& found, int rank) const {
    const Fact& q = graph_.fact(found.q);
    for (ValueId id : {found.q, found.k, found.v}) {
      const Fact& fact = graph_.fact(id);
      if (fact.dtype != q.dtype || !IsFloat(fact.dtype) || !fact.shape.ranked() ||
          fact.shape.rank() != rank) {
        return false;
      }
      for (int a = 0; a + 2 < rank; ++a) {
        if (!fact.shape[a].Same(q.shape[a])) return false;
      }
    }
    for (ValueId factor : found.row_factors) {
      if (graph_.fact(factor).dtype != q.dtype) return false;
    }
    return std::all_of(found.masks.begin(), found.masks.end(), [&](const Mask& mask) {
      const ValueId id = mask.where != nullptr ? mask.where->outputs[0] : mask.added;
      return graph_.fact(id).dtype == q.dtype;
    });
  }

  // q or k before any factors, which go into the scale, also those in front of a transpose.
  Result<ValueId> Unscaled(ValueId id, double* scale, const std::vector<NodeId>& from) {
    while (ProducerOf(id) != kNoNode) {
      const Node& node = graph_.node(ProducerOf(id));
      if (const auto factor = ScaledBy(node)) {
        *scale *= factor->factor;
        id = factor->x;
        continue;
      }
      if (node.op->name != "Transpose" || node.inputs.size() < 2) break;
      double factor = 1;
      ONCILLA_ASSIGN(const ValueId x, Unscaled(node.inputs[0], &factor, from));
      if (x == node.inputs[0]) break;
      *scale *= factor;
      return patch_.Add("Transpose", node.attrs, {x, node.inputs[1]}, from);
    }
    return id;
  }

  Result<ValueId> Unsqueezed(ValueId id, std::vector<int64_t> axes,
                             const std::vector<NodeId>& from) {
    if (axes.empty()) return id;
    const ValueId at = patch_.AddConstant(Tensor::Int64s(axes));
    return patch_.Add("Unsqueeze", {}, {id, at}, from);
  }

  // The mask of windows expanded to the shape of the scores, [images * windows, ...].
  Result<ValueId> OfWindows(const Mask& mask, const std::vector<NodeId>& from) {
    const PartialShape& shape = ShapeOf(mask.added);
    std::vector<int64_t> sizes = mask.windows;
    for (int a = 2; a < 5; ++a) sizes.push_back(shape[a].size);
    const ValueId all = patch_.AddConstant(Tensor::Int64s(sizes));
    ONCILLA_ASSIGN(const ValueId each, patch_.Add("Expand", {}, {mask.added, all}, from));
    sizes[1] = SaturatingMul(sizes[0], sizes[1]);
    sizes.erase(sizes.begin());
    return patch_.Add("Reshape", {}, {each, patch_.AddConstant(Tensor::Int64s(sizes))}, from);
  }

  // Combines the mask so far, `inner` (kNoValue if there is none), with one more. A number that
  // replaces scores also replaces their earlier masks.
  Result<ValueId> Masked(ValueId inner, const Mask& mask, const std::vector<NodeId>& from) {
    if (mask.where == nullptr) {
      ValueId added = mask.added;
      if (!mask.windows.empty()) {
        ONCILLA_ASSIGN(added, OfWindows(mask, from));
      }
      return inner == kNoValue ? added : patch_.Add("Add", {}, {inner, added}, from);
    }
    const Node& where = *mask.where;
    const DType dtype = graph_.fact(where.outputs[0]).dtype;
    ONCILLA_ASSIGN(Tensor zero, ScalarOf(dtype, 0));
    ONCILLA_ASSIGN(Tensor hidden, ScalarOf(dtype, mask.number));
    if (inner == kNoValue) inner = patch_.AddConstant(std::move(zero));
    std::vector<ValueId> inputs = {where.inputs[0], inner, inner};
    inputs[3 - mask.scores_at] = patch_.AddConstant(std::move(hidden));
    return patch_.Add("Where", {}, inputs, {ProducerOf(where.outputs[0])});
  }

  // All masks combined into one of rank 4, in the order from the product on. For scores of rank 3,
  // a second axis is added for the only head.
  Result<ValueId> AllMasks(const Found& found, int rank, const std::vector<NodeId>& from) {
    ValueId sum = kNoValue;
    for (auto mask = found.masks.rbegin(); mask != found.masks.rend(); ++mask) {
      ONCILLA_ASSIGN(sum, Masked(sum, *mask, from));
    }
    if (sum == kNoValue) return sum;
    std::vector<int64_t> axes;
    const int own = patch_.fact(sum).shape.rank();
    for (int64_t a = 0; a < rank - own; ++a) axes.push_back(a);
    ONCILLA_ASSIGN(sum, Unsqueezed(sum, axes, from));
    return rank == 3 ? Unsqueezed(sum, {1}, from) : sum;
  }

  Status Put(const Found& found, int rank) {
    const std::vector<NodeId>& from = found.nodes;
    double scale = found.scale;
    ONCILLA_ASSIGN(ValueId q, Unscaled(found.q, &scale, from));
    for (const ValueId factor : found.row_factors) {
      ONCILLA_ASSIGN(q, patch_.Add("Mul", {}, {q, factor}, from));
    }
    ONCILLA_ASSIGN(ValueId k, Unscaled(found.k, &scale, from));
    if (!std::isfinite(scale) || scale == 0) return Status();
    if (found.keys_transposed) {
      std::vector<int64_t> perm = {0, 1, 3, 2};
      if (rank == 3) perm = {0, 2, 1};
      const ValueId order = patch_.AddConstant(Tensor::Int64s(perm));
      ONCILLA_ASSIGN(k, patch_.Add("Transpose", {}, {k, order}, from));
    }
    AttrMap attrs = {{"scale", scale}};
    if (found.zero_blind) attrs["zero_blind"] = true;
    ONCILLA_ASSIGN(const ValueId mask, AllMasks(found, rank, from));
    std::vector<ValueId> inputs = {q, k, found.v};
    if (mask != kNoValue) inputs.push_back(mask);
    for (size_t i = 0; i < 3 && rank == 3; ++i) {
      ONCILLA_ASSIGN(inputs[i], Unsqueezed(inputs[i], {1}, from));
    }
    if (!AcceptedEverywhere(graph_, context_, patch_, "Attention", attrs, inputs)) return Status();
    ONCILLA_ASSIGN(ValueId result, patch_.Add("Attention", attrs, inputs, from));
    if (rank == 4) return patch_.Replace(found.y, result);
    const ValueId at = patch_.AddConstant(Tensor::Int64s(std::vector<int64_t>{1}));
    ONCILLA_ASSIGN(result, patch_.Add("Squeeze", {}, {result, at}, from));
    return patch_.Replace(found.y, result);
  }

  const Graph& graph_;
  const PassContext& context_;
  const Uses uses_;
  const std::vector<std::vector<NodeId>> readers_;
  Patch& patch_;
};

}  // namespace

Status RecogniseAttention(const Graph& graph, const PassContext& context, Patch& patch) {
  return AttentionRecogniser(graph, context, patch).Run();
}

}  // namespace oncilla
