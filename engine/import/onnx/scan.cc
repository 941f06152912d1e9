// Loops over existing values: Scan over slices of tensors, SequenceMap over elements of sequences.
#include <algorithm>

#include "engine/import/onnx/loop.h"
#include "engine/ops/array/indexing.h"
#include "engine/ops/array/list.h"
#include "engine/ops/check.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

std::vector<size_t> All(size_t count) {
  std::vector<size_t> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

// The size of x along an axis as an i64 scalar; a constant if it is known.
Result<ValueId> SizeAlong(Graph& graph, ValueId x, int64_t axis, const std::string& name) {
  const PartialShape& shape = graph.fact(x).shape;
  if (shape.ranked() && axis < shape.rank() && shape[static_cast<int>(axis)].known()) {
    return graph.AddConstant(Tensor::ScalarInt64(shape[static_cast<int>(axis)].size));
  }
  ONCILLA_ASSIGN(const ValueId size,
                 graph.Add(name + "/shape", "Shape",
                           WriteAttrs(ShapeAttrs{.start = axis, .end = axis + 1}), {x}));
  return graph.Add(name, "Reshape", WriteAttrs(ReshapeAttrs{}),
                   {size, graph.AddConstant(Tensor::Int64s({}))});
}

// Fails the run if two lengths differ; fails the import if both are known.
Status RequireSame(Graph& graph, ValueId a, ValueId b, const std::string& name,
                   const std::string& what) {
  const Fact &first = graph.fact(a), &second = graph.fact(b);
  if (first.has_value() && second.has_value()) {
    const auto x = ToInt64s(first.value), y = ToInt64s(second.value);
    if (x.ok() && y.ok() && *x == *y) return {};
    return InvalidArgument(what);
  }
  ONCILLA_ASSIGN(const ValueId same, graph.Add(name + "/same", "Equal", {}, {a, b}));
  const ValueId text = graph.AddConstant(Tensor::Strings({}, {what}));
  return graph.AddNode(name, "Assert", WriteAttrs(AssertAttrs{}), {same, text, a, b}).status();
}

// One Scan over tensors without a batch axis: the node itself, or one entry of a batch.
struct Slices {
  std::string name;
  OnnxSubgraphs& graphs;
  const OnnxGraph& body;
  size_t states = 0;
  std::vector<int64_t> input_axes, input_directions;    // of each scanned input
  std::vector<int64_t> output_axes, output_directions;  // of each scanned output

  // `inputs` are states and scanned inputs; `captured` are the graph's other arguments. Returns the
  // final states and the scanned outputs.
  Result<Values> Add(OnnxTarget& target, std::span<const ValueId> inputs,
                     std::span<const ValueId> captured) const {
    Graph& graph = target.graph;
    OnnxLoopSpec spec;
    spec.name = name;
    spec.carried.assign(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(states));
    const std::span<const ValueId> scanned = inputs.subspan(states);
    for (size_t i = 0; i < scanned.size(); ++i) {
      ONCILLA_ASSIGN(const ValueId length,
                     SizeAlong(graph, scanned[i], input_axes[i], StrCat(name, "/length", i)));
      if (i == 0) {
        spec.limit = length;
        continue;
      }
      ONCILLA_TRY(RequireSame(graph, spec.limit, length, StrCat(name, "/lengths", i),
                              "the scanned inputs have different lengths:"));
    }
    spec.read.assign(scanned.begin(), scanned.end());
    spec.read.insert(spec.read.end(), captured.begin(), captured.end());
    spec.read.push_back(spec.limit);
    spec.round = [&](const OnnxRoundInputs& in) { return Round(in); };
    ONCILLA_ASSIGN(OnnxLoopResults results, AddOnnxLoop(graphs.builder().state(), target, spec));
    Values outputs = std::move(results.carried);
    for (size_t k = 0; k < results.lists.size(); ++k) {
      ONCILLA_ASSIGN(const ValueId joined, Join(graph, results.lists[k], k));
      outputs.push_back(joined);
    }
    return outputs;
  }

 private:
  Result<OnnxRound> Round(const OnnxRoundInputs& in) const {
    Graph& graph = in.body.graph;
    Values inputs(in.carried.begin(), in.carried.end());
    ValueId from_end = kNoValue;
    for (size_t i = 0; i < input_axes.size(); ++i) {
      ValueId at = in.number;
      if (input_directions[i] != 0) {
        if (from_end == kNoValue) {
          ONCILLA_ASSIGN(const ValueId left,
                         graph.Add(name + "/left", "Sub", {}, {in.read.back(), in.number}));
          const ValueId one = graph.AddConstant(Tensor::ScalarInt64(1));
          ONCILLA_ASSIGN(from_end, graph.Add(name + "/from_end", "Sub", {}, {left, one}));
        }
        at = from_end;
      }
      ONCILLA_ASSIGN(const ValueId slice,
                     graph.Add(StrCat(name, "/slice", i), "Gather",
                               WriteAttrs(GatherAttrs{.axis = input_axes[i]}), {in.read[i], at}));
      inputs.push_back(slice);
    }
    const auto captured =
        in.read.subspan(input_axes.size(), in.read.size() - input_axes.size() - 1);
    ONCILLA_ASSIGN(const Values results,
                   graphs.Lower(body, in.body, inputs, captured, All(body.outputs.size())));
    OnnxRound round;
    const auto split = results.begin() + static_cast<ptrdiff_t>(states);
    round.carried.assign(results.begin(), split);
    round.collected.assign(split, results.end());
    return round;
  }

  Result<ValueId> Join(Graph& graph, ValueId list, size_t k) const {
    const std::string joined_name = StrCat(name, "/scan", k);
    ONCILLA_ASSIGN(const ValueId joined, StackOnnxRounds(graph, list, output_axes[k],
                                                         body.outputs[states + k], joined_name));
    if (output_directions[k] == 0) return joined;
    const Tensor axis = Tensor::Int64s(std::vector<int64_t>{output_axes[k]});
    return graph.Add(joined_name + "/reverse", "Reverse", {}, {joined, graph.AddConstant(axis)});
  }
};

// A list with one entry for each of `count` inputs or outputs; zeros if it is not given.
Result<std::vector<int64_t>> Entries(const OnnxLowering& b, std::string_view name, size_t count,
                                     bool directions) {
  ONCILLA_ASSIGN(std::vector<int64_t> list, b.IntList(name));
  if (list.empty()) list.assign(count, 0);
  if (list.size() != count) return DataLoss("attribute '", name, "' has ", list.size(), " entries");
  for (int64_t entry : list) {
    if (directions && entry != 0 && entry != 1)
      return DataLoss("attribute '", name, "' holds ", entry);
  }
  return list;
}

// Converts negative axes of scanned inputs.
Status NormaliseInputAxes(const OnnxLowering& b, Slices& slices) {
  for (size_t i = 0; i < slices.input_axes.size(); ++i) {
    int64_t& axis = slices.input_axes[i];
    const size_t input = slices.states + i;
    if (!b.in_fact(input).shape.ranked() && axis >= 0) continue;
    if (!b.in_fact(input).shape.ranked()) {
      return Unsupported("an axis from the end of an input whose rank is not known");
    }
    ONCILLA_ASSIGN(axis, NormalizeAxis(axis, b.in_fact(input).shape.rank()));
  }
  return {};
}

// How far one entry of a batch is scanned, where the file says lengths.
class EntryLength {
 public:
  // Fails the run unless the length is from 1 to `most`, an i64 scalar.
  static Result<EntryLength> Of(Graph& graph, ValueId lengths, ValueId number, ValueId most,
                                const std::string& name) {
    EntryLength entry(graph, name);
    entry.most_ = most;
    ONCILLA_ASSIGN(entry.length_,
                   entry.Add("", "Gather", WriteAttrs(GatherAttrs{}), {lengths, number}));
    const ValueId none = graph.AddConstant(Tensor::ScalarInt64(0));
    ONCILLA_ASSIGN(const ValueId some, entry.Add("/some", "Greater", {}, {entry.length_, none}));
    ONCILLA_ASSIGN(const ValueId less, entry.Add("/less", "LessEqual", {}, {entry.length_, most}));
    ONCILLA_ASSIGN(const ValueId fits, entry.Add("/fits", "And", {}, {some, less}));
    const ValueId text = graph.AddConstant(
        Tensor::Strings({}, {"a sequence's length is not from 1 to that of the scanned inputs:"}));
    ONCILLA_TRY(graph
                    .AddNode(name + "/check", "Assert", WriteAttrs(AssertAttrs{}),
                             {fits, text, entry.length_, most})
                    .status());
    return entry;
  }

  // The beginning of a scanned input.
  Result<ValueId> Cut(ValueId x, size_t i) {
    ONCILLA_ASSIGN(const ValueId end, Vector(length_, StrCat("/end", i)));
    const ValueId zero = graph_.AddConstant(Tensor::Int64s(std::vector<int64_t>{0}));
    return Add(StrCat("/cut", i), "Slice", {}, {x, zero, end, zero});
  }
  // A scanned output with zeros behind it.
  Result<ValueId> Fill(ValueId x, size_t i) {
    const PartialShape& shape = graph_.fact(x).shape;
    if (!shape.ranked()) return Unsupported("with lengths, and outputs of unknown rank");
    ONCILLA_ASSIGN(const ValueId left, Add(StrCat("/left", i), "Sub", {}, {most_, length_}));
    ONCILLA_ASSIGN(const ValueId end, Vector(left, StrCat("/ends", i)));
    const auto rank = static_cast<size_t>(shape.rank());
    const auto zeros = [&](size_t n) {
      return graph_.AddConstant(Tensor::Int64s(std::vector<int64_t>(n, 0)));
    };
    ONCILLA_ASSIGN(const ValueId pads,
                   Add(StrCat("/pads", i), "Concat", WriteAttrs(ConcatAttrs{.axis = 0}),
                       {zeros(rank), end, zeros(rank - 1)}));
    return Add(StrCat("/filled", i), "Pad", {}, {x, pads});
  }

 private:
  EntryLength(Graph& graph, std::string name) : graph_(graph), name_(std::move(name)) {}

  Result<ValueId> Add(const std::string& role, std::string_view op, AttrMap attrs,
                      std::vector<ValueId> inputs) {
    return graph_.Add(name_ + role, op, std::move(attrs), std::move(inputs));
  }
  Result<ValueId> Vector(ValueId scalar, const std::string& role) {
    const ValueId one = graph_.AddConstant(Tensor::Int64s(std::vector<int64_t>{1}));
    return Add(role, "Reshape", WriteAttrs(ReshapeAttrs{}), {scalar, one});
  }

  Graph& graph_;
  const std::string name_;
  ValueId length_ = kNoValue, most_ = kNoValue;
};

// Scan of opset 8: all tensors have a batch axis in front, and each entry of the batch is scanned
// by itself, as far as its length says.
Result<Values> ScanBatch(OnnxBuilder& builder, OnnxLowering& b, const Slices& slices) {
  OnnxLoopSpec spec;
  spec.name = b.name();
  for (size_t i = 1; i < b.inputs(); ++i) {
    ONCILLA_ASSIGN(const ValueId length,
                   SizeAlong(builder.graph(), b.in(i), 0, StrCat(b.name(), "/batch", i)));
    if (i == 1) {
      spec.limit = length;
    } else {
      ONCILLA_TRY(RequireSame(builder.graph(), spec.limit, length, StrCat(b.name(), "/batches", i),
                              "the inputs have batches of different sizes:"));
    }
    spec.read.push_back(b.in(i));
  }
  const size_t given = spec.read.size();
  const Values& captured = slices.graphs.arguments();
  spec.read.insert(spec.read.end(), captured.begin(), captured.end());
  const size_t others = spec.read.size();
  if (b.has(0)) {
    ONCILLA_ASSIGN(const ValueId lengths, b.Cast(b.in(0), DType::kI64, "lengths"));
    ONCILLA_ASSIGN(const ValueId most, SizeAlong(builder.graph(), b.in(1 + slices.states), 1,
                                                 StrCat(b.name(), "/longest")));
    spec.read.push_back(lengths);
    spec.read.push_back(most);
  }
  spec.round = [&](const OnnxRoundInputs& in) -> Result<OnnxRound> {
    Values entries;
    for (size_t i = 0; i < given; ++i) {
      ONCILLA_ASSIGN(const ValueId entry,
                     in.body.graph.Add(StrCat(b.name(), "/entry", i), "Gather",
                                       WriteAttrs(GatherAttrs{}), {in.read[i], in.number}));
      entries.push_back(entry);
    }
    const auto arguments = in.read.subspan(given, others - given);
    OnnxRound round;
    if (!b.has(0)) {
      ONCILLA_ASSIGN(round.collected, slices.Add(in.body, entries, arguments));
      return round;
    }
    ONCILLA_ASSIGN(EntryLength length,
                   EntryLength::Of(in.body.graph, in.read[others], in.number, in.read[others + 1],
                                   StrCat(b.name(), "/entry_length")));
    for (size_t i = slices.states; i < given; ++i) {
      ONCILLA_ASSIGN(entries[i], length.Cut(entries[i], i));
    }
    ONCILLA_ASSIGN(round.collected, slices.Add(in.body, entries, arguments));
    for (size_t i = slices.states; i < round.collected.size(); ++i) {
      ONCILLA_ASSIGN(round.collected[i], length.Fill(round.collected[i], i));
    }
    return round;
  };
  ONCILLA_ASSIGN(const OnnxLoopResults results,
                 AddOnnxLoop(builder.state(), builder.scope().target, spec));
  Values outputs;
  for (size_t k = 0; k < results.lists.size(); ++k) {
    ONCILLA_ASSIGN(const ValueId stacked,
                   StackOnnxRounds(builder.graph(), results.lists[k], 0, OnnxType(),
                                   StrCat(b.name(), "/batch_scan", k)));
    outputs.push_back(stacked);
  }
  return outputs;
}

}  // namespace

Result<Values> LowerOnnxScan(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b) {
  ONCILLA_ASSIGN(const OnnxGraph* body, b.GraphAttr("body"));
  ONCILLA_ASSIGN(const int64_t scans, b.NeedInt("num_scan_inputs"));
  const bool batched = b.version() < 9;
  const size_t first = batched ? 1 : 0;
  const size_t inputs = b.inputs() < first ? 0 : b.inputs() - first;
  if (scans < 1 || scans > static_cast<int64_t>(inputs)) {
    return DataLoss("scans ", scans, " of ", inputs, " inputs");
  }
  const auto scanned = static_cast<size_t>(scans);
  const size_t states = inputs - scanned;
  if (body->inputs.size() != inputs || body->outputs.size() < states ||
      body->outputs.size() < node.outputs.size()) {
    return DataLoss("its body takes ", body->inputs.size(), " inputs for ", inputs, " and gives ",
                    body->outputs.size(), " results for ", states, " states and ",
                    node.outputs.size(), " outputs");
  }
  for (size_t i = first; i < b.inputs(); ++i) {
    if (!b.has(i)) return DataLoss("input ", i, " is missing");
    if (b.in_kind(i) != OnnxKind::kTensor) return InvalidArgument("input ", i, " is a sequence");
  }
  OnnxSubgraphs graphs(builder, b.name());
  ONCILLA_TRY(graphs.Capture(*body));
  const size_t collected = body->outputs.size() - states;
  Slices slices{batched ? b.name() + "/entry" : b.name(), graphs, *body, states, {}, {}, {}, {}};
  ONCILLA_ASSIGN(slices.input_directions,
                 Entries(b, batched ? "directions" : "scan_input_directions", scanned, true));
  slices.input_axes.assign(scanned, 0);
  slices.output_axes.assign(collected, 0);
  slices.output_directions.assign(collected, 0);
  if (batched) return ScanBatch(builder, b, slices);
  ONCILLA_ASSIGN(slices.input_axes, Entries(b, "scan_input_axes", scanned, false));
  ONCILLA_ASSIGN(slices.output_axes, Entries(b, "scan_output_axes", collected, false));
  ONCILLA_ASSIGN(slices.output_directions, Entries(b, "scan_output_directions", collected, true));
  ONCILLA_TRY(NormaliseInputAxes(b, slices));
  return slices.Add(builder.scope().target, b.all_inputs(), graphs.arguments());
}

Result<Values> LowerOnnxSequenceMap(OnnxBuilder& builder, const OnnxNode& node, OnnxLowering& b) {
  ONCILLA_ASSIGN(const OnnxGraph* body, b.GraphAttr("body"));
  if (b.inputs() == 0 || body->inputs.size() != b.inputs() ||
      body->outputs.size() != node.outputs.size()) {
    return DataLoss("its body takes ", body->inputs.size(), " inputs for ", b.inputs(),
                    " and gives ", body->outputs.size(), " results for ", node.outputs.size());
  }
  OnnxLoopSpec spec;
  spec.name = b.name();
  for (size_t i = 0; i < b.inputs(); ++i) {
    if (!b.has(i)) return DataLoss("input ", i, " is missing");
    const OnnxKind kind = b.in_kind(i);
    if (kind != OnnxKind::kSequence && (i == 0 || kind != OnnxKind::kTensor)) {
      return InvalidArgument("input ", i, " must be a sequence", i == 0 ? "" : " or a tensor");
    }
    spec.read.push_back(b.in(i));
    if (kind != OnnxKind::kSequence) continue;
    ONCILLA_ASSIGN(const ValueId count, b.Add("ListLength", {}, {b.in(i)}, StrCat("count", i)));
    ONCILLA_ASSIGN(const ValueId length, b.Cast(count, DType::kI64, StrCat("length", i)));
    if (i == 0) {
      spec.limit = length;
      continue;
    }
    ONCILLA_TRY(RequireSame(builder.graph(), spec.limit, length, StrCat(b.name(), "/lengths", i),
                            "the sequences have different lengths:"));
  }
  OnnxSubgraphs graphs(builder, b.name());
  ONCILLA_TRY(graphs.Capture(*body));
  spec.read.insert(spec.read.end(), graphs.arguments().begin(), graphs.arguments().end());
  spec.round = [&](const OnnxRoundInputs& in) -> Result<OnnxRound> {
    Graph& graph = in.body.graph;
    Values inputs;
    for (size_t i = 0; i < b.inputs(); ++i) {
      inputs.push_back(in.read[i]);
      if (graph.fact(in.read[i]).kind != ValueKind::kList) continue;
      ONCILLA_ASSIGN(inputs.back(),
                     graph.Add(StrCat(b.name(), "/element", i), "ListGet",
                               WriteAttrs(ListGetAttrs{.zeros = false}), {in.read[i], in.number}));
    }
    OnnxRound round;
    ONCILLA_ASSIGN(round.collected,
                   graphs.Lower(*body, in.body, inputs, in.read.subspan(b.inputs()),
                                All(body->outputs.size())));
    return round;
  };
  ONCILLA_ASSIGN(OnnxLoopResults results,
                 AddOnnxLoop(builder.state(), builder.scope().target, spec));
  return std::move(results.lists);
}

}  // namespace oncilla
