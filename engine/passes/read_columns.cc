// If queries, keys and values are slices of the rows of one product, Attention reads them there, as
// columns, so that no slice is copied. Frameworks slice in two ways: the rows themselves ([B, L,
// columns] by Split or Slice); or the columns split into axes and moved to the front, [B, L, n,
// heads, size] -> [n, B, heads, L, size], and then Split or Gather.
#include <algorithm>
#include <optional>

#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"

namespace oncilla {
namespace {

class ColumnReader {
 public:
  ColumnReader(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.op->name != "Attention" || node.attrs.contains("columns")) continue;
      ONCILLA_TRY(TryRead(NodeId{n}));
    }
    return Status();
  }

 private:
  // An operand of Attention as columns of wider rows.
  struct Columns {
    ValueId x = kNoValue;  // [B, L, width], or [B, L, n, heads, size] of the same elements
    int64_t first = 0, width = 0;
    int64_t heads = 0;  // 0: as the node says
  };

  const PartialShape& ShapeOf(ValueId id) const { return graph_.fact(id).shape; }

  std::optional<std::vector<int64_t>> Ints(const Node& node, size_t input) const {
    if (input >= node.inputs.size() || node.inputs[input] == kNoValue) return {};
    auto values = NeedInts(graph_.fact(node.inputs[input]), "numbers");
    if (!values.ok()) return {};
    return *std::move(values);
  }

  // The position along the axis of a Split where one of its outputs begins.
  std::optional<int64_t> PlaceInSplit(const Node& split, ValueId output, int axis) const {
    int64_t place = 0;
    for (const ValueId id : split.outputs) {
      if (id == output) return place;
      const PartialShape& shape = ShapeOf(id);
      if (!shape.ranked() || !shape[axis].known()) return {};
      place += shape[axis].size;
    }
    return {};
  }

  static bool IsAxis(int64_t axis, int wanted, int rank) {
    return axis == wanted || axis + rank == wanted;
  }

  // [B, L, part] of [B, L, width].
  std::optional<Columns> PartOfRows(ValueId id) const {
    const Node* cut = ProducerIf(graph_, id, "Split");
    if (cut == nullptr) cut = ProducerIf(graph_, id, "Slice");
    if (cut == nullptr) return {};
    const PartialShape& rows = ShapeOf(cut->inputs[0]);
    if (!rows.ranked() || rows.rank() != 3 || !rows[2].known()) return {};
    Columns out{.x = cut->inputs[0], .width = rows[2].size};
    if (cut->op->name == "Split") {
      if (!IsAxis(IntAttr(*cut, "axis", 0), 2, 3)) return {};
      const auto place = PlaceInSplit(*cut, id, 2);
      if (!place) return {};
      out.first = *place;
      return out;
    }
    const auto starts = Ints(*cut, 1), axes = Ints(*cut, 3);
    const auto steps = cut->inputs.size() > 4 ? Ints(*cut, 4) : std::vector<int64_t>{1};
    if (!starts || !axes || !steps || starts->size() != 1 || axes->size() != 1 ||
        !IsAxis((*axes)[0], 2, 3) || *steps != std::vector<int64_t>{1}) {
      return {};
    }
    const int64_t start = (*starts)[0] < 0 ? (*starts)[0] + out.width : (*starts)[0];
    out.first = std::clamp<int64_t>(start, 0, out.width);
    return out;
  }

  // [B, heads, L, size], which is index i of [n, B, heads, L, size].
  std::optional<Columns> PartOfHeads(ValueId id) const {
    int64_t place = 0;
    ValueId all = kNoValue;
    if (const Node* gather = ProducerIf(graph_, id, "Gather")) {
      const auto index = Ints(*gather, 1);
      if (!index || index->size() != 1 || ShapeOf(gather->inputs[1]).rank() != 0 ||
          IntAttr(*gather, "axis", 0) != 0 || IntAttr(*gather, "batch_dims", 0) != 0) {
        return {};
      }
      place = (*index)[0];
      all = gather->inputs[0];
    } else if (const Node* squeeze = ProducerIf(graph_, id, "Squeeze")) {
      const Node* split = ProducerIf(graph_, squeeze->inputs[0], "Split");
      const auto axes = Ints(*squeeze, 1);
      if (split == nullptr || IntAttr(*split, "axis", 0) != 0 || !axes ||
          *axes != std::vector<int64_t>{0}) {
        return {};
      }
      const auto at = PlaceInSplit(*split, squeeze->inputs[0], 0);
      if (!at) return {};
      place = *at;
      all = split->inputs[0];
    }
    const Node* transpose = ProducerIf(graph_, all, "Transpose");
    if (transpose == nullptr || Ints(*transpose, 1) != std::vector<int64_t>{2, 0, 3, 1, 4}) {
      return {};
    }
    const PartialShape& apart = ShapeOf(transpose->inputs[0]);
    for (int a : {2, 3, 4}) {
      if (!apart[a].known() || apart[a].size <= 0) return {};
    }
    const int64_t n = apart[2].size, heads = apart[3].size;
    const int64_t part = SaturatingMul(heads, apart[4].size);
    if (place < 0) place += n;
    if (place < 0 || place >= n) return {};
    return Columns{.x = transpose->inputs[0],
                   .first = SaturatingMul(place, part),
                   .width = SaturatingMul(n, part),
                   .heads = heads};
  }

  std::optional<Columns> ColumnsOf(ValueId id) const {
    const PartialShape& shape = ShapeOf(id);
    if (!shape.ranked()) return {};
    return shape.rank() == 3 ? PartOfRows(id) : shape.rank() == 4 ? PartOfHeads(id) : std::nullopt;
  }

  // The size of a head, which no longer follows from the shape; 0 if it is not known.
  int64_t SizeOfHead(const Node& node, size_t i) const {
    const PartialShape& shape = ShapeOf(node.inputs[i]);
    if (!shape.ranked()) return 0;
    const Dim& last = shape[shape.rank() - 1];
    if (!last.known() || shape.rank() == 4) return last.known() ? last.size : 0;
    int64_t heads = IntAttr(node, "heads", 0);
    if (i > 0) heads = IntAttr(node, "kv_heads", 0) > 0 ? IntAttr(node, "kv_heads", 0) : heads;
    return heads > 0 ? last.size / heads : 0;
  }

  Status TryRead(NodeId id) {
    const Node& node = graph_.node(id);
    std::optional<Columns> parts[3];
    for (size_t i = 0; i < 3; ++i) parts[i] = ColumnsOf(node.inputs[i]);
    // Keys and values share one number of heads, so that both change or neither.
    if (!parts[1] || !parts[2] || parts[1]->heads != parts[2]->heads) return Status();
    AttrMap attrs = node.attrs;
    const int64_t size = SizeOfHead(node, 1), value_size = SizeOfHead(node, 2);
    if (size <= 0 || value_size <= 0) return Status();
    attrs["size"] = size;
    attrs["value_size"] = value_size;
    std::vector<int64_t> columns(3, 0);
    std::vector<ValueId> inputs = node.inputs;
    for (size_t i = 0; i < 3; ++i) {
      if (!parts[i]) continue;
      columns[i] = parts[i]->first;
      if (parts[i]->heads > 0) attrs[i == 0 ? "heads" : "kv_heads"] = parts[i]->heads;
      ONCILLA_ASSIGN(inputs[i], RowsOf(*parts[i], id));
    }
    attrs["columns"] = columns;
    if (!AcceptedEverywhere(graph_, context_, patch_, "Attention", attrs, inputs)) return Status();
    ONCILLA_ASSIGN(const ValueId result, patch_.Add("Attention", attrs, inputs, {id}));
    return patch_.Replace(node.outputs[0], result);
  }

  // x as [B, L, width]: usually the value before it was split into heads.
  Result<ValueId> RowsOf(const Columns& part, NodeId id) {
    if (part.heads == 0) return part.x;
    if (const Node* reshape = ProducerIf(graph_, part.x, "Reshape")) {
      const PartialShape &rows = ShapeOf(reshape->inputs[0]), &apart = ShapeOf(part.x);
      if (rows.ranked() && rows.rank() == 3 && rows[0].Same(apart[0]) && rows[1].Same(apart[1])) {
        return reshape->inputs[0];
      }
    }
    const ValueId sizes =
        patch_.AddConstant(Tensor::Int64s(std::vector<int64_t>{0, 0, part.width}));
    return patch_.Add("Reshape", {{"zero_copies", true}}, {part.x, sizes}, {id});
  }

  const Graph& graph_;
  const PassContext& context_;
  Patch& patch_;
};

}  // namespace

Status ReadColumns(const Graph& graph, const PassContext& context, Patch& patch) {
  return ColumnReader(graph, context, patch).Run();
}

}  // namespace oncilla
