// Attention reads and writes heads where they are. Transposes that move heads to the front or back
// are absorbed by the op; keys and values that were repeated for the heads that share them are read
// unrepeated.
#include "engine/ops/axes.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

class HeadMover {
 public:
  HeadMover(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), uses_(graph), readers_(Consumers(graph)), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      if (graph_.node(NodeId{n}).op->name == "Attention") ONCILLA_TRY(TryLayout(NodeId{n}));
    }
    return Status();
  }

 private:
  const PartialShape& ShapeOf(ValueId id) const { return graph_.fact(id).shape; }

  static bool IsOneKnown(const Dim& dim) { return dim.known() && dim.size == 1; }

  // The keys or values [B, own, S, size] before they were repeated for the heads that share them.
  ValueId Unshared(ValueId id) const {
    const Node* joined = ProducerIf(graph_, id, "Reshape");
    if (joined == nullptr) return id;
    const Node* expanded = ProducerIf(graph_, joined->inputs[0], "Expand");
    if (expanded == nullptr) return id;
    const PartialShape &all = ShapeOf(expanded->outputs[0]), &apart = ShapeOf(expanded->inputs[0]);
    const PartialShape& y = ShapeOf(id);
    if (!y.ranked() || y.rank() != 4) return id;
    if (!all.ranked() || all.rank() != 5 || !apart.ranked() || apart.rank() != 5 ||
        !IsOneKnown(apart[2]) || !all[1].known() || !all[2].known() || !y[1].known() ||
        y[1].size != SaturatingMul(all[1].size, all[2].size)) {
      return id;
    }
    for (int a : {0, 1, 3, 4}) {
      if (!apart[a].Same(all[a])) return id;
    }
    if (!y[0].Same(all[0]) || !y[2].Same(all[3]) || !y[3].Same(all[4])) return id;
    const Node* unsqueezed = ProducerIf(graph_, expanded->inputs[0], "Unsqueeze");
    if (unsqueezed == nullptr) unsqueezed = ProducerIf(graph_, expanded->inputs[0], "Reshape");
    if (unsqueezed == nullptr) return id;
    const PartialShape& own = ShapeOf(unsqueezed->inputs[0]);
    if (!own.ranked() || own.rank() != 4) return id;
    for (int a = 0; a < 4; ++a) {
      if (!own[a].Same(apart[a < 2 ? a : a + 1])) return id;
    }
    return unsqueezed->inputs[0];
  }

  // Whether it transposes [B, L, heads, size] to [B, heads, L, size], or back.
  bool IsHeadsTranspose(const Node& node) const {
    constexpr int64_t kOrder[] = {0, 2, 1, 3};
    if (node.op->name != "Transpose" || node.inputs.size() < 2) return false;
    const auto perm = NeedInts(graph_.fact(node.inputs[1]), "perm");
    return perm.ok() &&
           std::equal(perm->begin(), perm->end(), std::begin(kOrder), std::end(kOrder));
  }

  // What an operand was transposed from, if heads are adjacent in its rows there.
  ValueId RowsOf(ValueId id) const {
    const Node* transpose = ProducerIf(graph_, id, "Transpose");
    if (transpose == nullptr || !IsHeadsTranspose(*transpose)) return kNoValue;
    const ValueId x = transpose->inputs[0];
    const PartialShape& shape = ShapeOf(x);
    const bool known = shape[2].known() && shape[3].known() && shape[2].size > 0;
    return known ? x : kNoValue;
  }

  // Absorbs transposes around an Attention whose operands or result have heads adjacent in rows.
  Status TryLayout(NodeId id) {
    const Node& node = graph_.node(id);
    bool changes = JoiningTranspose(node.outputs[0]) != nullptr && !BoolAttr(node, "joined", false);
    for (size_t i = 0; i < 3; ++i) {
      if (!graph_.fact(node.inputs[i]).shape.ranked()) return Status();
      if (ShapeOf(node.inputs[i]).rank() != 4) continue;
      changes |= RowsOf(node.inputs[i]) != kNoValue ||
                 (i > 0 && Unshared(node.inputs[i]) != node.inputs[i]);
    }
    if (!changes) return Status();
    return PutHeads(node.outputs[0], node.attrs, node.inputs, {id});
  }

  // Adds the op such that q, k and v (so far by head) are read from their rows, and the result is
  // written to rows where its reader wants that.
  Status PutHeads(ValueId y, AttrMap attrs, std::vector<ValueId> inputs,
                  const std::vector<NodeId>& from) {
    const auto by_head = [&](size_t i) { return patch_.fact(inputs[i]).shape.rank() == 4; };
    if (by_head(1) && by_head(2)) {
      // Both or neither, since keys and values have the same number of heads.
      const ValueId k = Unshared(inputs[1]), v = Unshared(inputs[2]);
      if (k != inputs[1] && v != inputs[2] && ShapeOf(k)[1].Same(ShapeOf(v)[1])) {
        inputs[1] = k, inputs[2] = v;
      }
    }
    if (by_head(0)) SetHeads("heads", patch_.fact(inputs[0]).shape[1], attrs);
    if (by_head(1)) SetHeads("kv_heads", patch_.fact(inputs[1]).shape[1], attrs);
    for (size_t i = 0; i < 3; ++i) {
      const ValueId rows = by_head(i) && attrs.contains(i == 0 ? "heads" : "kv_heads")
                               ? RowsOf(inputs[i])
                               : kNoValue;
      if (rows == kNoValue) continue;
      ONCILLA_ASSIGN(inputs[i], Together(rows, from));
    }
    const Node* joins = AttrOr(attrs, "joined", false) ? nullptr : JoiningTranspose(y);
    if (joins != nullptr) attrs["joined"] = true;
    if (!AcceptedEverywhere(graph_, context_, patch_, "Attention", attrs, inputs)) return Status();
    ONCILLA_ASSIGN(ValueId result, patch_.Add("Attention", attrs, inputs, from));
    if (joins == nullptr) return patch_.Replace(y, result);
    const ValueId apart = joins->outputs[0];
    // Other readers of y, such as Shape, get it back in its old layout.
    if (!uses_.Single(y)) {
      const PartialShape& by_head = ShapeOf(y);
      ONCILLA_ASSIGN(const ValueId split,
                     Reshaped(result, {0, 0, by_head[1].size, by_head[3].size}, from));
      const ValueId order = patch_.AddConstant(Tensor::Int64s(std::vector<int64_t>{0, 2, 1, 3}));
      ONCILLA_ASSIGN(const ValueId turned, patch_.Add("Transpose", {}, {split, order}, from));
      ONCILLA_TRY(patch_.Replace(y, turned));
    }
    // Usually a Reshape joins the heads right after.
    const Node* reshape = uses_.OnlyReader(apart);
    if (reshape != nullptr && reshape->op->name == "Reshape" &&
        SameShape(ShapeOf(reshape->outputs[0]), patch_.fact(result).shape)) {
      return patch_.Replace(reshape->outputs[0], result);
    }
    const PartialShape& shape = ShapeOf(y);
    ONCILLA_ASSIGN(result, Reshaped(result, {0, 0, shape[1].size, shape[3].size}, from));
    return patch_.Replace(apart, result);
  }

  Result<ValueId> Reshaped(ValueId id, std::vector<int64_t> sizes,
                           const std::vector<NodeId>& from) {
    const ValueId shape = patch_.AddConstant(Tensor::Int64s(sizes));
    return patch_.Add("Reshape", {{"zero_copies", true}}, {id, shape}, from);
  }

  // [B, L, heads, size] reshaped to [B, L, heads * size]: the value before it was split, if
  // possible.
  Result<ValueId> Together(ValueId rows, const std::vector<NodeId>& from) {
    const PartialShape& apart = ShapeOf(rows);
    const int64_t width = SaturatingMul(apart[2].size, apart[3].size);
    if (const Node* reshape = ProducerIf(graph_, rows, "Reshape")) {
      const ValueId x = reshape->inputs[0];
      const PartialShape& before = ShapeOf(x);
      if (SameShape(before, PartialShape({apart[0], apart[1], Dim(width)}))) return x;
      // The rows of all samples form one axis; the reshape that split them states their sizes.
      const auto sizes = NeedInts(graph_.fact(reshape->inputs[1]), "shape");
      if (before.ranked() && before.rank() == 2 && before[1].Same(Dim(width)) && sizes.ok() &&
          sizes->size() == 4 && (*sizes)[0] != 0 && (*sizes)[1] != 0) {
        return Reshaped(x, {(*sizes)[0], (*sizes)[1], width}, from);
      }
    }
    return Reshaped(rows, {0, 0, width}, from);
  }

  static void SetHeads(const char* name, const Dim& heads, AttrMap& attrs) {
    if (heads.known() && heads.size > 0) attrs[name] = heads.size;
  }

  // The reader of y that transposes [B, heads, L, size] back to [B, L, heads, size]; other readers
  // may only ask for the shape.
  const Node* JoiningTranspose(ValueId y) const {
    const PartialShape& shape = ShapeOf(y);
    const auto& readers = readers_[Index(y)];
    if (!shape.ranked() || shape.rank() != 4 || !shape[1].known() || !shape[3].known() ||
        uses_.Count(y) != static_cast<int>(readers.size())) {
      return nullptr;
    }
    const Node* joins = nullptr;
    for (NodeId id : readers) {
      const Node& reader = graph_.node(id);
      if (reader.op->name == "Shape") continue;
      if (joins != nullptr || !IsHeadsTranspose(reader)) return nullptr;
      joins = &reader;
    }
    return joins;
  }

  const Graph& graph_;
  const PassContext& context_;
  const Uses uses_;
  const std::vector<std::vector<NodeId>> readers_;
  Patch& patch_;
};

}  // namespace

Status MoveHeads(const Graph& graph, const PassContext& context, Patch& patch) {
  return HeadMover(graph, context, patch).Run();
}

}  // namespace oncilla
