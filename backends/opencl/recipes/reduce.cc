// Recipes of the reduce family.
//
// One kernel reduces any set of axes. A group computes some outputs, which are neighbours if
// outputs are contiguous in memory, and divides the elements of each into parts. A long reduction
// to few outputs takes two launches; the first leaves partial results in scratch memory.
#include "engine/ops/math/reduce.h"

#include <algorithm>
#include <bit>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/tiles.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

constexpr int64_t kBlock = 256;  // elements that reduce.cl sums up before it adds to the rest

int64_t PowerAbove(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// The dtype of partial results.
DType PartialOf(DType t) {
  if (t == DType::kF64) return DType::kF64;
  return IsFloat(t) ? DType::kF32 : IsSigned(t) ? DType::kI64 : DType::kU64;
}

// Outputs of one group, and parts of each.
struct GroupShape {
  int64_t outputs = 1, parts = 1;
};
GroupShape ShapeGroup(int64_t outputs, int64_t count, bool side_by_side, const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  const int64_t group = caps.Group(tuning.flat_group);
  if (count < tuning.short_row) return {group, 1};
  if (!side_by_side) return {1, std::min(group, PowerAbove(count / tuning.row_elements))};
  const int64_t wide = std::min({group, tuning.columns_per_group, PowerAbove(outputs)});
  return {wide, std::min(group / wide, PowerAbove(count / tuning.column_elements))};
}

struct Reduction {
  std::string kind;
  DType from, to;
  bool maps = true, finishes = true;
  const Scratch* largest = nullptr;  // per output, of LogSumExp
  int64_t count = 0;                 // elements of a set, for the mean
};

// What a work-item with vectors reduces: neighbouring outputs, or the elements of one output.
enum class VectorKernel { kNone, kColumns, kLines };
VectorKernel VectorsOf(const Reduction& r, const ReduceLoops& loops, const Capabilities& caps) {
  const bool narrow = r.from == DType::kF32 || r.from == DType::kF16 || r.from == DType::kBF16;
  // A driver that stops long loops gets the kernel for groups, whose loops are short.
  if (!TuningOf(caps).lines || caps.max_loop_trips > 0 || !narrow || r.kind == "LogSumExp" ||
      r.kind == "Prod") {
    return VectorKernel::kNone;
  }
  // Short runs would consist mostly of the ends of vectors.
  const int64_t vector = PanelOf(caps).vector;
  if (!loops.kept.empty() && loops.kept.back().stride == 1) {
    return loops.kept.back().size >= vector ? VectorKernel::kColumns : VectorKernel::kNone;
  }
  return !loops.reduced.empty() && loops.reduced.back().stride == 1 &&
                 loops.reduced.back().size >= vector
             ? VectorKernel::kLines
             : VectorKernel::kNone;
}

// One launch, which leaves `pieces` partial results per output.
Dispatch Launch(const Reduction& r, const ReduceLoops& loops, int64_t most, int64_t piece,
                int64_t pieces, const Arg& x, const Arg& y, const Capabilities& caps) {
  const bool columns = !loops.kept.empty() && loops.kept.back().stride == 1;
  const GroupShape shape = ShapeGroup(loops.outputs, std::min(piece, loops.count), columns, caps);
  const VectorKernel vectors = VectorsOf(r, loops, caps);
  const IndexType index(most);
  DispatchBuilder b =
      vectors == VectorKernel::kNone
          ? DispatchBuilder(cl::kReduceReduce, "reduce", index)
          : DispatchBuilder(cl::kReduceVectors,
                            vectors == VectorKernel::kColumns ? "reduce_columns" : "reduce_lines",
                            index);
  b.Arg("x", x).Arg("y", y);
  if (r.largest != nullptr) b.Arg("shift", *r.largest);
  // Innermost axis first; the outermost size is not needed.
  auto add_axes = [&](const std::vector<ReduceLoops::Axis>& axes, const char* size,
                      const char* stride) {
    auto at = [&](size_t i) {
      return i < axes.size() ? axes[axes.size() - 1 - i] : ReduceLoops::Axis{1, 0};
    };
    for (size_t i = 0; i < 3; ++i) b.Index(StrCat(size, i), at(i).size);
    for (size_t i = 0; i < 4; ++i) b.Index(StrCat(stride, i), at(i).stride);
  };
  b.Index("outputs", loops.outputs);
  add_axes(loops.kept, "k", "s");
  b.Index("count", loops.count);
  add_axes(loops.reduced, "r", "t");
  b.Index({{"piece", piece}, {"pieces", pieces}, {"n", r.count}});
  b.Define({{"T", TypeName(r.from)},
            {"TO", TypeName(r.to)},
            {"KIND", r.kind},
            {"MAPS", Flag(r.maps)},
            {"FINISHES", Flag(r.finishes)},
            {"KEPT", StrCat(loops.kept.size())},
            {"REDUCED", StrCat(loops.reduced.size())},
            {"IDX", index.name()}});
  if (vectors != VectorKernel::kNone) {
    const int64_t lanes = PanelOf(caps).vector;
    b.Define("V", StrCat(lanes));
    const int64_t width = vectors == VectorKernel::kColumns ? loops.kept.back().size : 1;
    b.Groups(
        {loops.outputs / width * DivideUp(width, vectors == VectorKernel::kColumns ? lanes : 1),
         pieces, 1});
    return b.Loop(std::max(piece, lanes)).Build();
  }
  b.Define({{"C", std::string(1, CarrierOf(r.from))},
            {"SHIFTED", Flag(r.largest != nullptr)},
            {"GX", StrCat(shape.outputs)},
            {"GY", StrCat(shape.parts)}});
  b.Groups({DivideUp(loops.outputs, shape.outputs), pieces, 1},
           {shape.outputs * shape.parts, 1, 1});
  return b.Loop(std::max(kBlock, DivideUp(piece, shape.parts * kBlock))).Build();
}

// Appends the launches of a reduction.
void AddReduction(Reduction r, const ReduceLoops& loops, int64_t most, const Arg& x, const Arg& y,
                  const Capabilities& caps, Recipe& recipe) {
  if (loops.outputs == 0) return;
  r.count = loops.count;
  // Enough groups to fill the device; more pieces only as long as each stays long.
  const Tuning& tuning = TuningOf(caps);
  const bool columns = !loops.kept.empty() && loops.kept.back().stride == 1;
  const VectorKernel vectors = VectorsOf(r, loops, caps);
  GroupShape shape = ShapeGroup(loops.outputs, loops.count, columns, caps);
  if (vectors != VectorKernel::kNone) {
    shape = {vectors == VectorKernel::kColumns ? PanelOf(caps).vector : 1, 1};
  }
  const int64_t groups = DivideUp(loops.outputs, shape.outputs);
  const int64_t pieces =
      std::min(DivideUp(loops.count, tuning.item_elements * shape.parts),
               DivideUp(NominalCores(caps) * tuning.reduce_groups_per_core, groups));
  if (pieces <= 1) {
    recipe.dispatches.push_back(
        Launch(r, loops, most, std::max<int64_t>(loops.count, 1), 1, x, y, caps));
    return;
  }
  const DType partial = PartialOf(r.from);
  const Scratch scratch = recipe.AddScratch(loops.outputs * pieces * BytesOf(partial), caps);
  Reduction first = r, second = r;
  first.to = partial;
  first.finishes = false;
  recipe.dispatches.push_back(
      Launch(first, loops, most, DivideUp(loops.count, pieces), pieces, x, Arg(scratch), caps));
  second.from = partial;
  second.maps = false;
  ReduceLoops rest;
  rest.outputs = loops.outputs;
  rest.count = pieces;
  if (loops.outputs > 1) rest.kept = {{loops.outputs, pieces}};
  rest.reduced = {{pieces, 1}};
  recipe.dispatches.push_back(Launch(second, rest, most, pieces, 1, Arg(scratch), y, caps));
}

Result<Recipe> Reduce(const ReduceAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc in = node.inputs[0].desc();
  ONCILLA_ASSIGN(const auto axes,
                 ReducedAxes(attrs, node.has_input(1) ? &node.inputs[1] : nullptr, in.rank()));
  const ReduceLoops loops = MakeReduceLoops(in.shape, axes);
  const std::string kind(node.op->name.substr(std::string_view("Reduce").size()));
  if (kind == "Mean" && IsInteger(in.dtype) && loops.count == 0 && loops.outputs > 0) {
    return InvalidArgument("the mean of no integers is undefined");
  }
  const int64_t most = std::max(in.elements(), loops.outputs);
  Recipe recipe;
  if (kind != "LogSumExp") {
    AddReduction({kind, in.dtype, in.dtype}, loops, most, oncilla::opencl::In{0}, Out{0}, caps,
                 recipe);
    return recipe;
  }
  if (loops.outputs == 0) return recipe;
  const DType partial = PartialOf(in.dtype);
  const Scratch largest = recipe.AddScratch(loops.outputs * BytesOf(partial), caps);
  AddReduction({"Max", in.dtype, partial}, loops, most, oncilla::opencl::In{0}, Arg(largest), caps,
               recipe);
  AddReduction({.kind = kind, .from = in.dtype, .to = in.dtype, .largest = &largest}, loops, most,
               oncilla::opencl::In{0}, Out{0}, caps, recipe);
  return recipe;
}

Result<Recipe> ArgOf(const ArgAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc in = node.inputs[0].desc();
  ONCILLA_ASSIGN(const AroundAxis at, Around(in.shape, attrs.axis));
  const GroupShape shape = ShapeGroup(at.lines(), at.size, at.inner > 1, caps);
  const IndexType index(in.elements());
  DispatchBuilder b(cl::kReduceArg, "arg", index);
  b.Arg("x", oncilla::opencl::In{0}).Arg("y", Out{0});
  b.Index({{"outputs", at.lines()}, {"size", at.size}, {"inner", at.inner}});
  b.Groups({DivideUp(at.lines(), shape.outputs), 1, 1}, {shape.outputs * shape.parts, 1, 1});
  b.Loop(DivideUp(at.size, shape.parts));
  b.Define({{"T", TypeName(in.dtype)},
            {"TO", TypeName(attrs.to)},
            {"WANT_LARGEST", Flag(node.op->name == "ArgMax")},
            {"LAST", Flag(attrs.last)},
            {"GX", StrCat(shape.outputs)},
            {"GY", StrCat(shape.parts)},
            {"IDX", index.name()}});
  if (attrs.skip_nan && IsFloat(in.dtype)) {
    const std::string_view most = in.dtype == DType::kF64    ? "DBL_MAX"
                                  : in.dtype == DType::kF32  ? "FLT_MAX"
                                  : in.dtype == DType::kBF16 ? "0x1.FEp127f"
                                                             : "65504.0f";
    b.Define("EDGE", StrCat(node.op->name == "ArgMax" ? "-" : "", most));
  }
  return at.lines() > 0 ? b.Alone() : Recipe();
}

Result<Recipe> Cumulate(const CumulativeAttrs& attrs, const NodeView& node,
                        const Capabilities& caps) {
  const TensorDesc in = node.inputs[0].desc();
  ONCILLA_ASSIGN(const auto axis, NeedInts(node.inputs[1], "axis"));
  ONCILLA_ASSIGN(const AroundAxis at, Around(in.shape, axis[0]));
  if (at.elements() == 0) return Recipe();
  const int64_t group = caps.Group(TuningOf(caps).loop_group);
  const IndexType index(in.elements());
  DispatchBuilder b(cl::kReduceCumulate, "cumulate", index);
  b.Arg("x", oncilla::opencl::In{0}).Arg("y", Out{0});
  b.Index({{"lines", at.lines()}, {"size", at.size}, {"inner", at.inner}});
  b.Define({{"T", TypeName(in.dtype)},
            {"C", std::string(1, CarrierOf(in.dtype))},
            {"PRODUCT", Flag(node.op->name == "CumProd")},
            {"LOGS", Flag(node.op->name == "CumLogSumExp")},
            {"EXCLUSIVE", Flag(attrs.exclusive)},
            {"REVERSE", Flag(attrs.reverse)},
            {"GROUP", StrCat(group)},
            {"IDX", index.name()}});
  return b.Items(at.lines(), group).Loop(at.size).Alone();
}

// The length of the chunks that an axis is divided into. The kernel's work is the elements times
// the chunk. The candidates found in the chunks are searched again, until one chunk remains.
int64_t TopKChunk(int64_t k, const Capabilities& caps) {
  return std::max(TuningOf(caps).topk_chunk, SaturatingMul(k, int64_t{2}));
}

Result<Recipe> TopK(const TopKAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc in = node.inputs[0].desc();
  ONCILLA_ASSIGN(const auto ks, NeedInts(node.inputs[1], "k"));
  ONCILLA_ASSIGN(const AroundAxis at, Around(in.shape, attrs.axis));
  const int64_t k = ks[0], group = caps.Group(TuningOf(caps).loop_group);
  Recipe recipe;
  if (k <= 0 || in.elements() == 0) return recipe;
  const IndexType index(in.elements());
  // The candidates, and, from the second round on, their positions on the axis.
  Arg values = oncilla::opencl::In{0}, places = oncilla::opencl::In{0};
  for (int64_t size = at.size, round = 0;; ++round) {
    const int64_t chunk = std::min(size, TopKChunk(k, caps)), chunks = DivideUp(size, chunk);
    const int64_t left = (chunks - 1) * k + std::min(k, size - (chunks - 1) * chunk);
    const int64_t elements = at.outer * size * at.inner;
    Arg to_values = Out{0}, to_places = Out{1};
    if (chunks > 1) {
      const int64_t kept = at.outer * left * at.inner;
      to_values = recipe.AddScratch(kept * BytesOf(in.dtype), caps);
      to_places = recipe.AddScratch(kept * BytesOf(attrs.to), caps);
    }
    DispatchBuilder b(cl::kReduceTopk, "topk", index);
    b.Arg({{"x", values}, {"from", places}, {"values", to_values}, {"places", to_places}});
    b.Index({{"elements", elements}, {"size", size}, {"inner", at.inner}});
    b.Index({{"k", k}, {"chunk", chunk}, {"left", left}});
    b.Define({{"T", TypeName(in.dtype)},
              {"TO", TypeName(attrs.to)},
              {"LARGEST", Flag(attrs.largest)},
              {"PLACED", Flag(round > 0)},
              {"GROUP", StrCat(group)},
              {"IDX", index.name()}});
    b.Items(elements, group).Loop(chunk).AddTo(recipe);
    if (chunks == 1) return recipe;
    values = to_values;
    places = to_places;
    size = left;
  }
}

Status CheckTopK(const TopKAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const PartialShape& shape = node.inputs[0].shape;
  if (!shape.ranked() || !AllIntsKnown(node.inputs[1])) return Status();
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  ONCILLA_ASSIGN(const auto k, NeedInts(node.inputs[1], "k"));
  const int64_t most = TuningOf(caps).topk_most;
  if (k.size() != 1 || k[0] <= most || shape[axis].size <= TopKChunk(k[0], caps)) return Status();
  return Unsupported("opencl: TopK of the first ", k[0], ", above ", most);
}

// Roots and logarithms of integers are exact only on the CPU.
constexpr KernelRow kRows[] = {
    Row<Reduce>("ReduceSum", kNumbers),      Row<Reduce>("ReduceMean", kNumbers),
    Row<Reduce>("ReduceMax", kNumbers),      Row<Reduce>("ReduceMin", kNumbers),
    Row<Reduce>("ReduceProd", kNumbers),     Row<Reduce>("ReduceAll", kBools),
    Row<Reduce>("ReduceAny", kBools),        Row<Reduce>("ReduceL1", kNumbers),
    Row<Reduce>("ReduceL2", kFloats),        Row<Reduce>("ReduceLogSum", kFloats),
    Row<Reduce>("ReduceLogSumExp", kFloats), Row<Reduce>("ReduceSumSquare", kNumbers),
    Row<ArgOf>("ArgMax", kFixedSize),        Row<ArgOf>("ArgMin", kFixedSize),
    Row<Cumulate>("CumSum", kNumbers),       Row<Cumulate>("CumProd", kNumbers),
    Row<Cumulate>("CumLogSumExp", kFloats),  Row<TopK>("TopK", kNumbers).CanRun<CheckTopK>(),
};

}  // namespace

std::span<const KernelRow> ReduceKernels() { return kRows; }

}  // namespace oncilla::opencl
