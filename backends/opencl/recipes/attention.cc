// Recipes of attention: tiles of keys in local memory if the device has it, otherwise one work-item
// that loops over the keys for a few queries of one head.
#include "engine/ops/nn/attention.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/tiles.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

using Attend = AttentionInput;

// The largest size of a head: a work-item holds a query and a result in private memory.
constexpr int64_t kMostSize = 512;

// Bytes of queries and results that a work-item may hold: half of a core's first-level cache. Not
// far above that, Intel's compiler for its older GPUs aborts.
constexpr int64_t kMostHeld = 16 << 10;

// Queries of a work-item: the floats of a vector if the device prefers vectors, but no more than
// fit kMostHeld.
int64_t LanesOf(const AttentionGeometry& g, DType dtype, const Capabilities& caps) {
  if (caps.shape != KernelShape::kCpu || dtype == DType::kF64) return 1;
  int64_t vector = PanelOf(caps).vector;
  while (vector > 4 && vector * (g.size + g.value_size) * 4 > kMostHeld) vector /= 2;
  if (g.rows >= vector) return vector;
  const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(g.rows)));
  return wanted == 1 ? 1 : std::clamp<int64_t>(wanted, 4, vector);
}

// The shape of a group: its queries, and the parts among which the keys are divided. `queries` is 0
// if the device does not use tiles; `matrix` means a matrix unit.
struct Tiles {
  int64_t queries = 0, parts = 1, items = 0, width = 0;
  bool matrix = false;
};

constexpr int64_t kTileOfKeys = 32;  // as in the kernels

// Bytes of local memory that a group takes.
int64_t LocalBytes(const Tiles& t) {
  if (t.matrix) {
    const int64_t rows = t.queries + t.parts * 2 * kTileOfKeys;
    return 2 * rows * (t.width + 8) + 24 * t.items + 8 * t.parts * t.queries;
  }
  const int64_t keys = t.width * (kTileOfKeys + 4), weights = kTileOfKeys * (t.queries + 4);
  return 4 * (t.width * (t.queries + 4) + t.parts * (keys + weights + t.queries * 8));
}

// The tiles that fit and are expected to finish first. A group takes one round for each tile of
// keys of a part, plus one to begin and to end; work-items beyond kBusy on a core take additional
// time. Since parts change the order of sums, they depend on the class of the device (NominalCores)
// and not on the device itself.
Tiles TilesOf(const AttentionGeometry& g, DType dtype, const Capabilities& caps) {
  constexpr int64_t kBusy = 128, kWidest = 128;
  const int64_t size = std::max({g.size, g.value_size, int64_t{1}});
  if (caps.shape != KernelShape::kGpu || !caps.local_groups || dtype == DType::kF64 ||
      size > kWidest) {
    return {};
  }
  const bool matrix = dtype != DType::kF32 && caps.matrix_unit != MatrixUnit::kNone;
  const int64_t width = RoundUp(size, matrix ? 16 : 32);
  static constexpr Tiles kTiles[] = {{64, 1, 128}, {32, 1, 64}, {32, 2, 128}};
  static constexpr Tiles kMatrixTiles[] = {{64, 1, 128}, {32, 2, 128}, {16, 4, 128}};
  Tiles best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (Tiles tiles : matrix ? kMatrixTiles : kTiles) {
    tiles.matrix = matrix;
    tiles.width = width;
    const int64_t queries = tiles.queries;
    if (!matrix && queries == 64 && (width > 64 || g.rows <= 32)) continue;
    if (LocalBytes(tiles) > caps.local_memory || tiles.items > caps.max_work_group) continue;
    const int64_t rounds = DivideUp(g.keys, kTileOfKeys * tiles.parts) + 1;
    const int64_t groups = g.batch * g.heads * DivideUp(g.rows, queries);
    const int64_t cost =
        rounds * std::max(kBusy, DivideUp(groups, NominalCores(caps)) * tiles.items);
    if (cost < least) least = cost, best = tiles;
  }
  return best;
}

// Whether quads of numbers are at multiples of four elements, in every row.
bool IsAligned(const AttentionGeometry& g) {
  for (const AttentionGeometry::Steps* s : {&g.q, &g.k, &g.v, &g.y}) {
    if ((s->at | s->batch | s->head | s->row) % 4 != 0) return false;
  }
  return true;
}

// Adds the defines and arguments that both kernels have. `items` are the arguments before the
// sizes.
void Describe(DispatchBuilder& b, const AttentionAttrs& attrs, const AttentionGeometry& g,
              const NodeView& node, IndexType index, DispatchBuilder::Named<int64_t> items) {
  const auto has = [&](size_t i) { return node.has_input(i); };
  b.Define({{"T", TypeName(node.inputs[0].dtype)},
            {"SIZE", StrCat(g.size)},
            {"VALUES", StrCat(g.value_size)},
            {"IDX", index.name()},
            {"CAP", Flag(attrs.softcap > 0)},
            {"LENGTHS", Flag(has(Attend::kLengths))},
            {"STARTS", Flag(has(Attend::kStarts))},
            {"SINK", Flag(has(Attend::kSink))},
            {"WINDOW", Flag(g.left >= 0 || g.right >= 0)},
            {"FROM_END", Flag(g.from_end)},
            {"BLIND", attrs.zero_blind ? "0" : "NAN"}});
  const auto input = [&](size_t i) { return In{has(i) ? static_cast<int>(i) : 0}; };
  b.Arg({{"q", In{0}}, {"k", In{1}}, {"v", In{2}}, {"mask", input(Attend::kMask)}});
  b.Arg({{"lengths", input(Attend::kLengths)}, {"starts", input(Attend::kStarts)}});
  b.Arg({{"sink", input(Attend::kSink)}, {"y", Out{0}}});
  b.Index(items).Index({{"heads", g.heads}, {"shared_by", g.group()}});
  b.Index({{"rows", g.rows}, {"keys", g.keys}});
  const auto steps = [&](const std::string& name, const AttentionGeometry::Steps& s) {
    b.Index({{name + "_at", s.at},
             {name + "_batch", s.batch},
             {name + "_head", s.head},
             {name + "_row", s.row}});
  };
  steps("q", g.q);
  steps("k", g.k);
  steps("v", g.v);
  b.Index({{"y_batch", g.y.batch}, {"y_head", g.y.head}, {"y_row", g.y.row}});
  b.Index({{"mask_batch", g.mask[0]},
           {"mask_head", g.mask[1]},
           {"mask_row", g.mask[2]},
           {"mask_key", g.mask[3]}});
  constexpr int64_t kFar = int64_t{1} << 40;
  b.Arg("left", std::min(g.left, kFar)).Arg("right", std::min(g.right, kFar));
  b.Float("scale", g.scale).Float("cap", attrs.softcap);
}

Result<Recipe> Attention(const AttentionAttrs& attrs, const NodeView& node,
                         const Capabilities& caps) {
  const AttentionGeometry g = GeometryOf(attrs, node.inputs);
  const TensorDesc out = node.outputs[0].desc();
  if (out.elements() == 0) return Recipe();
  int64_t most = std::max(out.elements(), g.batch * g.heads * g.rows);
  for (const Fact& fact : node.inputs) {
    if (!fact.absent()) most = std::max(most, fact.desc().elements());
  }
  const IndexType index(most);
  const int64_t longest = std::max({g.keys, g.size, g.value_size, int64_t{128}});
  const bool masked = node.has_input(Attend::kMask);
  if (const Tiles shared = TilesOf(g, out.dtype, caps); shared.queries > 0) {
    const int64_t tiles = DivideUp(g.rows, shared.queries);
    DispatchBuilder b = shared.matrix
                            ? DispatchBuilder(cl::kAttentionMatrix, "attention_matrix", index)
                            : DispatchBuilder(cl::kAttentionFlash, "attention_flash", index);
    b.Define({{"D", StrCat(shared.width)},
              {"PARTS", StrCat(shared.parts)},
              {"WIDE", Flag(IsAligned(g))}});
    if (shared.matrix) {
      DefineMatrixUnit(caps, b);
    } else {
      b.Define("BQ", StrCat(shared.queries));
      // Reading ahead costs registers for the quads of keys and of values that a work-item brings.
      // Intel's compilers have half as many as others, and windows need some.
      const int64_t quads = kTileOfKeys * shared.width / 4 * shared.parts / shared.items;
      const bool ahead = shared.width <= (caps.family == GpuFamily::kIntel ? 32 : 64) &&
                         quads <= (g.left >= 0 || g.right >= 0 ? 4 : 8);
      b.Define("AHEAD", Flag(ahead));
    }
    b.Define("MASK", !masked ? "0" : g.mask[2] == 0 ? "1" : "2");
    Describe(b, attrs, g, node, index, {{"tiles", tiles}});
    return b.Groups({g.batch * g.heads * tiles, 1, 1}, {shared.items, 1, 1}).Loop(longest).Alone();
  }
  const int64_t lanes = LanesOf(g, out.dtype, caps), tiles = DivideUp(g.rows, lanes);
  const int64_t items = g.batch * g.heads * tiles;
  DispatchBuilder b(cl::kAttentionLines, "attention_lines", index);
  b.Define({{"V", StrCat(lanes)}, {"MASK", Flag(masked)}});
  Describe(b, attrs, g, node, index, {{"items", items}, {"tiles", tiles}});
  const int64_t group = lanes > 1 ? 1 : caps.Group(TuningOf(caps).loop_group);
  return b.Items(items, group).Loop(longest).Alone();
}

Status CanAttend(const AttentionAttrs& attrs, const NodeView& node, const Capabilities&) {
  const auto size_of = [&](size_t i, int64_t given) -> int64_t {
    const PartialShape& shape = node.inputs[i].shape;
    if (given > 0) return given;
    return shape.ranked() && shape[shape.rank() - 1].known() && shape.rank() == 4
               ? shape[3].size
               : 0;  // unknown for rows with heads side by side, which are handled below
  };
  int64_t size = std::max(size_of(Attend::kKey, attrs.size), size_of(Attend::kQuery, attrs.size));
  int64_t value_size = size_of(Attend::kValue, attrs.value_size);
  const int64_t heads = std::max<int64_t>(attrs.heads, 1);
  const auto by_rows = [&](size_t i, int64_t own) -> int64_t {
    const PartialShape& shape = node.inputs[i].shape;
    return shape.ranked() && shape.rank() == 3 && shape[2].known() ? shape[2].size / own : 0;
  };
  if (size == 0) size = by_rows(Attend::kQuery, heads);
  if (value_size == 0) {
    value_size = by_rows(Attend::kValue, attrs.kv_heads > 0 ? attrs.kv_heads : heads);
  }
  if (std::max(size, value_size) <= kMostSize) return Status();
  return Unsupported("opencl: Attention with heads of ", std::max(size, value_size));
}

const KernelRow kRows[] = {
    Row<Attention>("Attention", kFloats).CanRun<CanAttend>(),
};

}  // namespace

std::span<const KernelRow> AttentionKernels() { return kRows; }

}  // namespace oncilla::opencl
