// For each op, whether it keeps the samples along axis 0 independent; and splitting and joining
// rows.
#include "engine/compile/batch_split.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/compile/classify.h"
#include "engine/ops/axes.h"

namespace oncilla {
namespace {

template <class... Parts>
Status No(const Parts&... parts) {
  return Error(Code::kFailedPrecondition, parts...);
}

SegmentStart StartOf(const CompiledGraph& compiled, std::span<const Tensor> feeds) {
  SegmentStart start;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const ValueId value = compiled.graph.inputs()[i].value;
    Fact fact = Fact::Of(feeds[i]);
    if (compiled.fixes_shapes[Index(value)]) fact.value = feeds[i];
    start.available.emplace_back(value, std::move(fact));
  }
  return start;
}

class Checker {
 public:
  Checker(const CompiledGraph& compiled, const BatchAxis& batch, Classified here, Classified other,
          int64_t other_size)
      : graph_(compiled.graph),
        sizes_{batch.size, other_size},
        sides_{std::move(here), std::move(other)},
        has_rows_(graph_.values().size()) {}

  Status Run(const BatchAxis& batch) {
    for (const Classified& side : sides_) {
      if (!side.complete) return No("some of its sizes depend on what is computed");
      if (!side.host_nodes.empty()) {
        const Node& node = graph_.node(side.host_nodes[0]);
        return No("node '", node.name, "' (", node.op->name, ") runs on the host");
      }
    }
    for (size_t i = 0; i < batch.inputs.size(); ++i) {
      has_rows_[Index(graph_.inputs()[i].value)] = batch.inputs[i];
    }
    for (NodeId id : sides_[0].steps) {
      const Node& node = graph_.node(id);
      if (Status s = Visit(node); !s.ok()) {
        return No("node '", node.name, "' (", node.op->name, ") ", Message(s));
      }
    }
    for (const NamedValue& output : graph_.outputs()) {
      if (!HasRows(output.value)) {
        return No("output '", output.name, "' has no row for each sample");
      }
    }
    return Status();
  }

 private:
  const Fact& FactOf(ValueId id, int side = 0) const { return sides_[side].facts[Index(id)]; }
  const Shape ShapeOf(ValueId id) const { return FactOf(id).desc().shape; }
  int RankOf(ValueId id) const { return static_cast<int>(ShapeOf(id).rank()); }
  // Whether axis 0 is as long as the batch under both batch sizes that were tried.
  bool LeadsWithBatch(ValueId id) const {
    for (int side = 0; side < 2; ++side) {
      const Shape shape = FactOf(id, side).desc().shape;
      if (shape.rank() < 1 || shape[0] != sizes_[side]) return false;
    }
    return true;
  }
  bool SameShape(ValueId id) const {
    return FactOf(id, 0).desc().shape == FactOf(id, 1).desc().shape;
  }
  bool Known(ValueId id) const { return sides_[0].values[Index(id)] == Availability::kSettled; }

  // A known value that grows with the batch has rows only if they are all equal: each part of the
  // batch then gets the same ones. A known value that does not grow has no rows. Anything else has
  // neither property.
  bool HasRows(ValueId id) const {
    if (!Known(id)) return has_rows_[Index(id)];
    return LeadsWithBatch(id) && RowsEqual(id);
  }
  bool RowsEqual(ValueId id) const {
    const Fact &a = FactOf(id, 0), &b = FactOf(id, 1);
    if (!a.has_value() || !b.has_value() || a.value.is_list()) return false;
    if (a.dtype == DType::kString) return false;
    const auto bytes = a.value.bytes(), other = b.value.bytes();
    const size_t row = bytes.size() / static_cast<size_t>(sizes_[0]);
    if (row * static_cast<size_t>(sizes_[0]) != bytes.size() || other.size() < row) return false;
    for (size_t at = 0; at + row <= bytes.size(); at += row) {
      if (std::memcmp(bytes.data() + at, bytes.data(), row) != 0) return false;
    }
    for (size_t at = 0; at + row <= other.size(); at += row) {
      if (std::memcmp(other.data() + at, bytes.data(), row) != 0) return false;
    }
    return true;
  }
  bool Unchanged(ValueId id) const {
    if (graph_.value(id).is_constant()) return true;
    if (!SameShape(id)) return false;
    if (!Known(id)) return !has_rows_[Index(id)];
    const Fact &a = FactOf(id, 0), &b = FactOf(id, 1);
    if (!a.has_value() || !b.has_value() || a.value.is_list() || b.value.is_list()) return false;
    if (a.dtype == DType::kString) return a.value.strings() == b.value.strings();
    return std::ranges::equal(a.value.bytes(), b.value.bytes());
  }

  bool Has(const Node& node, size_t i) const {
    return i < node.inputs.size() && node.inputs[i] != kNoValue;
  }
  // Reads plan input `i` as integers. False if it is absent or not known.
  bool Ints(const Node& node, size_t i, std::vector<int64_t>* out) const {
    if (!Has(node, i)) return false;
    const Fact& fact = FactOf(node.inputs[i]);
    if (!fact.has_value()) return false;
    auto ints = ToInt64s(fact.value);
    if (!ints.ok()) return false;
    *out = *std::move(ints);
    return true;
  }
  static int64_t Axis(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

  Status Visit(const Node& node) {
    const OpTraits& traits = node.op->traits;
    if (traits.has_effects) return No("has effects");
    if (traits.is_random) return No("draws random numbers");
    bool rows = false, grows = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      if (node.op->traits.IsPlanInput(i)) {
        grows |= !Unchanged(node.inputs[i]);
        continue;
      }
      if (HasRows(node.inputs[i])) {
        rows = true;
      } else if (!Unchanged(node.inputs[i])) {
        return No("reads a value that depends on the size of the batch");
      }
    }
    if (!rows && !grows) return Status();
    for (ValueId output : node.outputs) {
      if (!LeadsWithBatch(output)) {
        return No("gives ", FactOf(output).desc(), ", which has no row for each sample");
      }
      const Shape here = FactOf(output, 0).desc().shape, there = FactOf(output, 1).desc().shape;
      if (!std::equal(here.begin() + 1, here.end(), there.begin() + 1, there.end())) {
        return No("gives rows whose size depends on that of the batch");
      }
    }
    if (rows && grows && !OnlySizesGrow(node)) return No("depends on the size of the batch");
    ONCILLA_TRY(CheckRows(node, rows));
    for (ValueId output : node.outputs) has_rows_[Index(output)] = true;
    return Status();
  }

  // Whether the batch size among an op's plan inputs only determines the length of axis 0.
  bool OnlySizesGrow(const Node& node) const {
    const AxisRule rule = node.op->traits.axes.rule;
    if (rule == AxisRule::kRegroups || rule == AxisRule::kStretches) return true;
    if (rule != AxisRule::kSlice) return false;
    std::vector<int64_t> axes;
    const bool listed = Ints(node, 3, &axes);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (!Has(node, i) || Unchanged(node.inputs[i])) continue;
      if (i > 2) return false;  // axes or steps
      const Fact &a = FactOf(node.inputs[i], 0), &b = FactOf(node.inputs[i], 1);
      if (!a.has_value() || !b.has_value()) return false;
      const auto here = ToInt64s(a.value), there = ToInt64s(b.value);
      if (!here.ok() || !there.ok() || here->size() != there->size()) return false;
      for (size_t k = 0; k < here->size(); ++k) {
        const int64_t axis = listed && k < axes.size() ? axes[k] : static_cast<int64_t>(k);
        const bool leading = Axis(axis, RankOf(node.inputs[0])) == 0;
        if (!leading && (*here)[k] != (*there)[k]) return false;
      }
    }
    return true;
  }

  // An input with rows must have the output's rank, so that its rows are on the output's axis 0; an
  // input without rows must not extend to axis 0, unless its size there is one.
  Status CheckBroadcast(const Node& node, size_t first, size_t end, int rank) const {
    for (size_t i = first; i < std::min(end, node.inputs.size()); ++i) {
      if (!Has(node, i) || node.op->traits.IsPlanInput(i)) continue;
      const int own = RankOf(node.inputs[i]);
      const bool fits =
          HasRows(node.inputs[i]) ? own == rank : own < rank || ShapeOf(node.inputs[i])[0] == 1;
      if (!fits) return No("puts the batch on another axis");
    }
    return Status();
  }
  // Only the inputs that the op's axis rule names may have rows.
  Status OnlyItsRows(const Node& node) const {
    const Axes& axes = node.op->traits.axes;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!Has(node, i) || node.op->traits.IsPlanInput(i)) continue;
      const bool rows = HasRows(node.inputs[i]);
      if (axes.all_inputs && !rows) {
        return No("joins values with and without a row for each sample");
      }
      if (rows && !axes.all_inputs && (i >= 8 || (axes.rows >> i & 1) == 0)) {
        return No("mixes samples: input ", i, " has a row for each");
      }
    }
    return Status();
  }
  Status NotAxis0(int64_t axis, int rank) const {
    return Axis(axis, rank) > 0 ? Status() : No("works along the batch");
  }

  // Checks that each row of the result depends on that row of the inputs alone.
  Status CheckRows(const Node& node, bool rows) const {
    if (node.outputs.empty() || node.outputs[0] == kNoValue) return No("has no output");
    const auto packed = [&](ValueId id) { return id != kNoValue && IsPacked(FactOf(id, 0).dtype); };
    if (std::any_of(node.inputs.begin(), node.inputs.end(), packed) ||
        std::any_of(node.outputs.begin(), node.outputs.end(), packed)) {
      return No("has several elements in a byte");
    }
    const int out_rank = RankOf(node.outputs[0]);
    const auto in_rank = [&] { return RankOf(node.inputs[0]); };
    const AxisRule rule = node.op->traits.axes.rule;
    // These two rules also apply if no input has rows.
    if (rule == AxisRule::kElementwise) {
      return CheckBroadcast(node, 0, node.inputs.size(), out_rank);
    }
    if (rule == AxisRule::kStretches) {
      const bool stretched = !rows && in_rank() == out_rank && ShapeOf(node.inputs[0])[0] != 1;
      return stretched || (rows && in_rank() != out_rank) ? No("puts the batch on another axis")
                                                          : Status();
    }
    if (!rows) return No("depends on the size of the batch");

    std::vector<int64_t> ints;
    switch (rule) {
      case AxisRule::kSamples:
        if (AttrOr(node.attrs, "with_indices", false)) return No("counts indices over the batch");
        return OnlyItsRows(node);
      case AxisRule::kAxis:
      case AxisRule::kAxisToEnd:
      case AxisRule::kArg:
      case AxisRule::kReduce:
      case AxisRule::kAxisInput:
      case AxisRule::kAxesInput:
      case AxisRule::kLastTwo:
        ONCILLA_TRY(OnlyItsRows(node));
        return CheckNamed(node);
      case AxisRule::kRegroups:
        // Rows keep their order and their number of elements: the leading sizes were compared.
        return LeadsWithBatch(node.inputs[0]) ? Status() : No("puts the batch on another axis");
      case AxisRule::kPermutes: {
        const bool stays = Ints(node, 1, &ints) && !ints.empty() && Axis(ints[0], in_rank()) == 0;
        return stays ? Status() : No("moves the batch to another axis");
      }
      case AxisRule::kInserts:
        ONCILLA_TRY(OnlyItsRows(node));
        return NotAxis0(AttrOr<int64_t>(node.attrs, "axis", node.op->traits.axes.at), out_rank);
      case AxisRule::kSlice:
        return CheckSlice(node);
      case AxisRule::kStrided:
        return CheckStrided(node);
      case AxisRule::kPads:
        if (!Ints(node, 1, &ints) || ints.size() % 2 != 0 || ints.empty()) {
          return No("has unknown pads");
        }
        return ints[0] == 0 && ints[ints.size() / 2] == 0 ? OnlyItsRows(node)
                                                          : No("pads the batch");
      case AxisRule::kPerAxis: {
        const bool once = Ints(node, 1, &ints) && !ints.empty() && ints[0] == 1;
        return once && in_rank() == out_rank ? Status() : No("repeats the batch");
      }
      case AxisRule::kGathers:
        return CheckGather(node);
      case AxisRule::kProduct:
        return CheckMatMul(node, out_rank);
      case AxisRule::kElementwise:
      case AxisRule::kStretches:
      case AxisRule::kNone:
        break;
    }
    return No("is not known to take samples one by one");
  }

  // The axes that the node works along must be known, and must not include axis 0.
  Status CheckNamed(const Node& node) const {
    Facts inputs;
    for (ValueId id : node.inputs) inputs.push_back(id == kNoValue ? Fact::Absent() : FactOf(id));
    const auto axes = NamedAxes({node.op, &node.attrs, inputs, {}, node.name});
    if (!axes) return No("has unknown axes");
    for (int64_t axis : *axes) ONCILLA_TRY(NotAxis0(axis, RankOf(node.inputs[0])));
    return Status();
  }

  Status CheckSlice(const Node& node) const {
    const int rank = RankOf(node.inputs[0]);
    std::vector<int64_t> starts, axes, steps;
    if (!Ints(node, 1, &starts)) return No("has unknown bounds");
    if (!Ints(node, 3, &axes)) {
      for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    }
    if (!Ints(node, 4, &steps)) steps.assign(axes.size(), 1);
    for (size_t i = 0; i < axes.size() && i < steps.size(); ++i) {
      if (Axis(axes[i], rank) == 0 && steps[i] != 1) return No("reorders the batch");
    }
    return Status();
  }

  Status CheckStrided(const Node& node) const {
    const auto first = [&](std::string_view mask) {
      return (AttrOr<int64_t>(node.attrs, mask, 0) & 1) != 0;
    };
    if (first("new_axis_mask") || first("shrink_axis_mask")) {
      return No("puts the batch on another axis");
    }
    if (first("ellipsis_mask")) return Status();
    std::vector<int64_t> strides;
    if (!Ints(node, 3, &strides) || strides.empty()) return No("has unknown bounds");
    return strides[0] == 1 ? Status() : No("reorders the batch");
  }

  Status CheckMatMul(const Node& node, int out_rank) const {
    const int a = RankOf(node.inputs[0]), b = RankOf(node.inputs[1]);
    const bool a_rows = HasRows(node.inputs[0]), b_rows = HasRows(node.inputs[1]);
    if (a_rows && (a != out_rank || a < 2)) return No("puts the batch on another axis");
    if (a_rows && a == 2 && (b_rows || AttrOr(node.attrs, "transpose_a", false))) {
      return No("multiplies along the batch");
    }
    if (b_rows && (b != out_rank || b < 3)) return No("multiplies along the batch");
    if (a_rows != b_rows) {
      const ValueId other = node.inputs[a_rows ? 1 : 0];
      const int rank = RankOf(other);
      if (rank == out_rank && out_rank >= 3 && ShapeOf(other)[0] != 1) {
        return No("puts the batch on another axis");
      }
    }
    if (Has(node, 2) && HasRows(node.inputs[2])) return No("has a bias for each sample");
    return CheckBroadcast(node, 3, 4, out_rank);
  }

  Status CheckGather(const Node& node) const {
    const bool data = HasRows(node.inputs[0]), indices = HasRows(node.inputs[1]);
    const int64_t batch_dims = AttrOr<int64_t>(node.attrs, "batch_dims", 0);
    const int64_t axis = Axis(AttrOr<int64_t>(node.attrs, "axis", 0), RankOf(node.inputs[0]));
    if (data && indices) {
      return batch_dims >= 1 ? Status() : No("picks among samples");
    }
    if (batch_dims != 0) return No("puts the batch on another axis");
    if (data) return axis > 0 ? Status() : No("picks among samples");
    return axis == 0 ? Status() : No("puts the batch on another axis");
  }

  const Graph& graph_;
  const int64_t sizes_[2];
  const Classified sides_[2];
  std::vector<bool> has_rows_;
};

}  // namespace

Result<BatchAxis> FindBatch(const CompiledGraph& compiled, std::span<const Tensor> feeds) {
  BatchAxis batch;
  const auto& inputs = compiled.graph.inputs();
  std::string first;
  for (size_t i = 0; i < inputs.size() && i < feeds.size(); ++i) {
    const PartialShape& shape = compiled.graph.fact(inputs[i].value).shape;
    const bool open = !shape.ranked() || (shape.rank() > 0 && !shape.dims()[0].known());
    const bool has = open && !feeds[i].is_list() && feeds[i].shape().rank() > 0;
    batch.inputs.push_back(has);
    if (!has) continue;
    const int64_t size = feeds[i].shape()[0];
    if (first.empty()) {
      first = inputs[i].name;
      batch.size = size;
    } else if (size != batch.size) {
      return No("input '", first, "' has ", batch.size, " rows and '", inputs[i].name, "' has ",
                size);
    }
  }
  if (first.empty()) return No("no input has an open leading size");
  return batch;
}

Status CheckBatchIndependent(const CompiledGraph& compiled, Device& cpu,
                             std::span<const Tensor> feeds, const BatchAxis& batch) {
  if (batch.size < 2) return No("the batch has ", batch.size, " rows");
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (batch.inputs[i] && IsPacked(feeds[i].dtype())) {
      return No("rows of ", feeds[i].dtype(), " share bytes");
    }
  }
  // The second batch size is one less: other sizes in a model are unlikely to change with it.
  const int64_t other = batch.size - 1;
  ONCILLA_ASSIGN(Classified here, Classify(compiled, cpu, StartOf(compiled, feeds)));
  ONCILLA_ASSIGN(Classified there,
                 Classify(compiled, cpu, StartOf(compiled, RowsOf(feeds, batch, 0, other))));
  if (here.steps != there.steps) return No("another size of the batch runs other nodes");
  return Checker(compiled, batch, std::move(here), std::move(there), other).Run(batch);
}

std::vector<Tensor> RowsOf(std::span<const Tensor> feeds, const BatchAxis& batch, int64_t first,
                           int64_t count) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Tensor& feed = feeds[i];
    if (!batch.inputs[i]) {
      out.push_back(feed);
      continue;
    }
    Shape shape = feed.shape();
    shape[0] = count;
    if (feed.dtype() == DType::kString) {
      const auto row = static_cast<int64_t>(feed.strings().size()) / batch.size;
      const auto begin = feed.strings().begin() + first * row;
      out.push_back(Tensor::Strings(shape, {begin, begin + count * row}));
      continue;
    }
    const size_t row = feed.bytes().size() / static_cast<size_t>(batch.size);
    out.push_back(Tensor::View(
        {feed.dtype(), shape},
        feed.bytes().subspan(static_cast<size_t>(first) * row, static_cast<size_t>(count) * row),
        std::make_shared<Tensor>(feed)));
  }
  return out;
}

Result<std::vector<Tensor>> JoinRows(std::span<const std::vector<Tensor>> parts) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < parts[0].size(); ++i) {
    Shape shape = parts[0][i].shape();
    shape[0] = 0;
    for (const auto& part : parts) shape[0] += part[i].shape()[0];
    ONCILLA_ASSIGN(Tensor whole, Tensor::Allocate({parts[0][i].dtype(), shape}));
    size_t at = 0;
    for (const auto& part : parts) {
      const auto bytes = part[i].bytes();
      if (bytes.size() > whole.bytes().size() - at) return Internal("parts of another shape");
      if (!bytes.empty())
        std::memcpy(whole.mutable_bytes().data() + at, bytes.data(), bytes.size());
      at += bytes.size();
    }
    if (at != whole.bytes().size()) return Internal("parts of another shape");
    out.push_back(std::move(whole));
  }
  return out;
}

Result<int64_t> LargestThatFits(int64_t size, const std::function<Result<bool>(int64_t)>& fits,
                                int64_t guess) {
  int64_t yes = 0, no = size;
  // First searches outwards from the guess in growing steps, then bisects.
  for (int64_t step = 1; guess > yes && guess < no; step *= 4) {
    ONCILLA_ASSIGN(const bool fit, fits(guess));
    if (fit) {
      yes = guess;
      if (no < size) break;
      guess = std::min(guess + step, size - 1);
    } else {
      no = guess;
      if (yes > 0) break;
      guess = std::max<int64_t>(guess - step, 1);
    }
  }
  while (no - yes > 1) {
    const int64_t middle = yes + (no - yes) / 2;
    ONCILLA_ASSIGN(const bool fit, fits(middle));
    (fit ? yes : no) = middle;
  }
  return yes;
}

}  // namespace oncilla
