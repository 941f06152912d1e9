// Recipes of the reduce family.
//
// One kernel reduces any set of axes: a group takes some outputs side by side, where they lie side
// by side in memory, and cuts the elements of each into parts. A long reduction to few outputs runs
// in two launches, the first of which leaves partial results in scratch memory.
#include <algorithm>
#include <bit>
#include <limits>

#include "backends/opencl/kernels.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/reduce.h"

namespace oncilla::opencl {
namespace {

constexpr int64_t kMostGroup = 256;
constexpr int64_t kPieceElements = 16384;  // of one group in the first of two launches

int64_t PowerAbove(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// What a dtype is computed in, by the names of elementwise.clh, and as a dtype in memory.
char CarrierOf(DType t) {
  if (t == DType::kF64) return 'd';
  return IsFloat(t) ? 'f' : IsSigned(t) ? 'l' : 'u';
}
DType PartialOf(DType t) {
  if (t == DType::kF64) return DType::kF64;
  return IsFloat(t) ? DType::kF32 : IsSigned(t) ? DType::kI64 : DType::kU64;
}

// Indices of kernels: 32 bits unless something is larger. Groups compute places a little beyond.
class Indices {
 public:
  explicit Indices(int64_t most) : wide_(most > std::numeric_limits<int32_t>::max() / 2) {}
  std::string type() const { return wide_ ? "long" : "int"; }
  void Push(int64_t value, std::vector<Arg>& args) const {
    if (wide_) {
      args.push_back(value);
    } else {
      args.push_back(static_cast<int32_t>(value));
    }
  }

 private:
  bool wide_;
};

// Outputs side by side, and parts of each, in one group.
struct GroupShape {
  int64_t outputs = 1, parts = 1;
};
GroupShape ShapeGroup(int64_t outputs, int64_t count, bool side_by_side, const Capabilities& caps) {
  const int64_t group = caps.Group(kMostGroup);
  if (count < 32) return {group, 1};
  if (!side_by_side) return {1, std::min(group, PowerAbove(count / 4))};
  const int64_t wide = std::min<int64_t>({group, 64, PowerAbove(outputs)});
  return {wide, std::min(group / wide, PowerAbove(count / 16))};
}

struct Reduction {
  std::string kind;
  DType from, to;
  bool maps = true, finishes = true;
  const Scratch* largest = nullptr;  // per output, of LogSumExp
  int64_t count = 0;                 // elements of a set, for the mean
};

// One launch: `pieces` partial results per output.
Dispatch Launch(const Reduction& r, const ReduceLoops& loops, int64_t most, int64_t piece,
                int64_t pieces, const Arg& x, const Arg& y, const Capabilities& caps) {
  const bool columns = !loops.kept.empty() && loops.kept.back().stride == 1;
  const GroupShape shape = ShapeGroup(loops.outputs, std::min(piece, loops.count), columns, caps);
  const Indices indices(most);
  Dispatch d{.source = &cl::kReduceReduce, .entry = "reduce"};
  d.args = {x, y};
  if (r.largest != nullptr) d.args.push_back(*r.largest);
  auto push = [&](int64_t v) { indices.Push(v, d.args); };
  // Innermost first; the outermost size is not needed.
  auto push_axes = [&](const std::vector<ReduceLoops::Axis>& axes) {
    auto at = [&](size_t i) {
      return i < axes.size() ? axes[axes.size() - 1 - i] : ReduceLoops::Axis{1, 0};
    };
    for (size_t i = 0; i < 3; ++i) push(at(i).size);
    for (size_t i = 0; i < 4; ++i) push(at(i).stride);
  };
  push(loops.outputs);
  push_axes(loops.kept);
  push(loops.count);
  push_axes(loops.reduced);
  push(piece);
  push(pieces);
  push(r.count);
  const int64_t group = shape.outputs * shape.parts;
  d.global = {DivideUp(loops.outputs, shape.outputs) * group, pieces, 1};
  d.local = {group, 1, 1};
  d.longest_loop = std::max<int64_t>(256, DivideUp(piece, shape.parts * 256));
  d.defines = {{"T", std::string(Name(r.from))},
               {"TO", std::string(Name(r.to))},
               {"C", std::string(1, CarrierOf(r.from))},
               {"KIND", r.kind},
               {"MAPS", r.maps ? "1" : "0"},
               {"FINISHES", r.finishes ? "1" : "0"},
               {"KEPT", StrCat(loops.kept.size())},
               {"REDUCED", StrCat(loops.reduced.size())},
               {"SHIFTED", r.largest != nullptr ? "1" : "0"},
               {"GX", StrCat(shape.outputs)},
               {"GY", StrCat(shape.parts)},
               {"IDX", indices.type()}};
  return d;
}

// Appends the launches of a reduction.
void AddReduction(Reduction r, const ReduceLoops& loops, int64_t most, const Arg& x, const Arg& y,
                  const Capabilities& caps, Recipe& recipe) {
  if (loops.outputs == 0) return;
  r.count = loops.count;
  // Enough groups to fill a device; more pieces only where they stay long.
  const int64_t pieces = std::min(DivideUp(loops.count, kPieceElements),
                                  DivideUp(caps.compute_units * 16, loops.outputs));
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
    return InvalidArgument("the mean of no integers");
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

// The three parts of a shape around one axis.
struct AroundAxis {
  int64_t outer, size, inner;
};
Result<AroundAxis> Around(const Shape& shape, int64_t axis) {
  ONCILLA_ASSIGN(const int a, NormalizeAxis(axis, shape.rank()));
  return AroundAxis{shape.Product(0, a), shape[a], shape.Product(a + 1, shape.rank())};
}

Result<Recipe> ArgOf(const ArgAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc in = node.inputs[0].desc();
  ONCILLA_ASSIGN(const AroundAxis at, Around(in.shape, attrs.axis));
  const int64_t outputs = at.outer * at.inner;
  const GroupShape shape = ShapeGroup(outputs, at.size, at.inner > 1, caps);
  const int64_t group = shape.outputs * shape.parts;
  const Indices indices(in.elements());
  Dispatch d{.source = &cl::kReduceArg, .entry = "arg"};
  d.args = {oncilla::opencl::In{0}, Out{0}};
  for (int64_t v : {outputs, at.size, at.inner}) indices.Push(v, d.args);
  d.global = {DivideUp(outputs, shape.outputs) * group, 1, 1};
  d.local = {group, 1, 1};
  d.longest_loop = DivideUp(at.size, shape.parts);
  d.defines = {{"T", std::string(Name(in.dtype))},
               {"TO", std::string(Name(attrs.to))},
               {"WANT_LARGEST", node.op->name == "ArgMax" ? "1" : "0"},
               {"LAST", attrs.last ? "1" : "0"},
               {"GX", StrCat(shape.outputs)},
               {"GY", StrCat(shape.parts)},
               {"IDX", indices.type()}};
  if (attrs.skip_nan && IsFloat(in.dtype)) {
    const std::string_view most = in.dtype == DType::kF64    ? "DBL_MAX"
                                  : in.dtype == DType::kF32  ? "FLT_MAX"
                                  : in.dtype == DType::kBF16 ? "0x1.FEp127f"
                                                             : "65504.0f";
    d.defines.push_back({"EDGE", StrCat(node.op->name == "ArgMax" ? "-" : "", most)});
  }
  Recipe recipe;
  if (outputs > 0) recipe.dispatches.push_back(std::move(d));
  return recipe;
}

Result<Recipe> Cumulate(const CumulativeAttrs& attrs, const NodeView& node,
                        const Capabilities& caps) {
  const TensorDesc in = node.inputs[0].desc();
  ONCILLA_ASSIGN(const auto axis, NeedInts(node.inputs[1], "axis"));
  ONCILLA_ASSIGN(const AroundAxis at, Around(in.shape, axis[0]));
  const int64_t lines = at.outer * at.inner, group = caps.Group(64);
  const Indices indices(in.elements());
  Dispatch d{.source = &cl::kReduceCumulate, .entry = "cumulate"};
  d.args = {oncilla::opencl::In{0}, Out{0}};
  for (int64_t v : {lines, at.size, at.inner}) indices.Push(v, d.args);
  d.global = {RoundUp(lines, group), 1, 1};
  d.local = {group, 1, 1};
  d.longest_loop = at.size;
  d.defines = {{"T", std::string(Name(in.dtype))},
               {"C", std::string(1, CarrierOf(in.dtype))},
               {"PRODUCT", node.op->name == "CumProd" ? "1" : "0"},
               {"LOGS", node.op->name == "CumLogSumExp" ? "1" : "0"},
               {"EXCLUSIVE", attrs.exclusive ? "1" : "0"},
               {"REVERSE", attrs.reverse ? "1" : "0"},
               {"GROUP", StrCat(group)},
               {"IDX", indices.type()}};
  Recipe recipe;
  if (in.elements() > 0) recipe.dispatches.push_back(std::move(d));
  return recipe;
}

// An axis is cut into chunks of so many elements, or of twice k; the kernel's work is the elements
// times the chunk. What is found in each is searched again, until one chunk is left.
constexpr int64_t kTopKChunk = 4096;
constexpr int64_t kMostTopK = 8192;  // k, of an axis longer than a chunk of it

int64_t TopKChunk(int64_t k) { return std::max(kTopKChunk, SaturatingMul(k, int64_t{2})); }

Result<Recipe> TopK(const TopKAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc in = node.inputs[0].desc();
  ONCILLA_ASSIGN(const auto ks, NeedInts(node.inputs[1], "k"));
  ONCILLA_ASSIGN(const AroundAxis at, Around(in.shape, attrs.axis));
  const int64_t k = ks[0], group = caps.Group(64);
  Recipe recipe;
  if (k <= 0 || in.elements() == 0) return recipe;
  const Indices indices(in.elements());
  // The candidates, and their places on the axis once they are not the axis itself.
  Arg values = oncilla::opencl::In{0}, places = oncilla::opencl::In{0};
  for (int64_t size = at.size, round = 0;; ++round) {
    const int64_t chunk = std::min(size, TopKChunk(k)), chunks = DivideUp(size, chunk);
    const int64_t left = (chunks - 1) * k + std::min(k, size - (chunks - 1) * chunk);
    const int64_t elements = at.outer * size * at.inner;
    Dispatch d{.source = &cl::kReduceTopk, .entry = "topk"};
    Arg to_values = Out{0}, to_places = Out{1};
    if (chunks > 1) {
      const int64_t kept = at.outer * left * at.inner;
      to_values = recipe.AddScratch(kept * BytesOf(in.dtype), caps);
      to_places = recipe.AddScratch(kept * BytesOf(attrs.to), caps);
    }
    d.args = {values, places, to_values, to_places};
    for (int64_t v : {elements, size, at.inner, k, chunk, left}) indices.Push(v, d.args);
    d.global = {RoundUp(elements, group), 1, 1};
    d.local = {group, 1, 1};
    d.longest_loop = chunk;
    d.defines = {{"T", std::string(Name(in.dtype))},
                 {"TO", std::string(Name(attrs.to))},
                 {"LARGEST", attrs.largest ? "1" : "0"},
                 {"PLACED", round > 0 ? "1" : "0"},
                 {"GROUP", StrCat(group)},
                 {"IDX", indices.type()}};
    recipe.dispatches.push_back(std::move(d));
    if (chunks == 1) return recipe;
    values = to_values;
    places = to_places;
    size = left;
  }
}

Status CheckTopK(const TopKAttrs& attrs, const NodeView& node, const Capabilities&) {
  const PartialShape& shape = node.inputs[0].shape;
  if (!shape.ranked() || !AllIntsKnown(node.inputs[1])) return Status();
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  ONCILLA_ASSIGN(const auto k, NeedInts(node.inputs[1], "k"));
  if (k.size() != 1 || k[0] <= kMostTopK || shape[axis].size <= TopKChunk(k[0])) return Status();
  return Unsupported("opencl: TopK of the first ", k[0], ", above ", kMostTopK);
}

// Roots and logarithms of integers are exact on the CPU only.
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
