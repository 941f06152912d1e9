// Matrix products with a few rows: the numbers of lanes, slices and parts, and the launches.
#include "backends/opencl/recipes/columns.h"

#include <algorithm>
#include <bit>

#include "backends/opencl/recipes/choices.h"
#include "backends/opencl/recipes/tiles.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// Neighbouring lanes read at least 128 bytes of a line, the unit in which memory is delivered.
constexpr int64_t kNarrowLanes = 8, kWideLanes = 32;
// Vectors of four floats per work-item that a group keeps in local memory at most
// (matmul/columns.cl).
constexpr int64_t kLocalFloats = 4;

bool InFours(const Shape& steps) {
  for (int i = 0; i < steps.rank(); ++i) {
    if (steps[i] % 4 != 0) return false;
  }
  return true;
}

// Quads of columns per lane. Two quads of 16-bit elements are 16 bytes. They require columns that
// can be read in this way, and few enough rows that the registers suffice.
int64_t QuadsOf(const MatMulGeometry& g, DType dtype, int64_t rows) {
  if (dtype == DType::kF32 || rows > 4 || g.n % 8 != 0 || g.b_row % 8 != 0) return 1;
  for (int i = 0; i < g.b_steps.rank(); ++i) {
    if (g.b_steps[i] % 8 != 0) return 1;
  }
  return 2;
}

// The number of parts that K is divided into. Groups that read little do not keep the memory busy,
// but dividing K costs a second launch.
int64_t PartsOf(const MatMulGeometry& g, int64_t groups, int64_t group_columns, int64_t bytes,
                const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  const auto cores = static_cast<double>(NominalCores(caps));
  // The cost of the second launch, whose own reads wait one after the other.
  const double join = 2 * tuning.launch_clocks;
  int64_t best = 1;
  double least = 0;
  for (int64_t parts = 1; parts <= tuning.most_parts; parts *= 2) {
    if (parts > 1 && g.k / parts < tuning.part_least) break;
    const double each = std::ceil(static_cast<double>(groups * parts) / cores);
    const double clocks = each * static_cast<double>(DivideUp(g.k, parts) * group_columns * bytes) /
                              tuning.cache_bytes +
                          (parts > 1 ? join + 200.0 * static_cast<double>(parts) : 0);
    if (parts == 1 || clocks < least) best = parts, least = clocks;
  }
  return best;
}

// How columns and K are divided.
struct ColumnPlan {
  ColumnGroup group;
  int64_t parts = 1, part_k = 0;
  std::string name() const { return StrCat(group.name(), " PARTS=", parts); }
};

ColumnPlan Divided(const MatMulGeometry& g, const ColumnGroup& group, int64_t wanted) {
  const int64_t part_k = wanted == 1 ? g.k : RoundUp(DivideUp(g.k, wanted), 16);
  return {group, DivideUp(g.k, part_k), part_k};
}

int64_t LaneColumns(const MatMulGeometry& g, DType dtype, const ColumnGroup& group) {
  return group.lanes * QuadsOf(g, dtype, group.rows) * 4;
}

ColumnPlan GenericPlan(const MatMulGeometry& g, DType dtype, const ColumnGroup& group,
                       const Capabilities& caps) {
  const int64_t columns = LaneColumns(g, dtype, group);
  const int64_t groups = DivideUp(g.n, columns) * DivideUp(g.m, group.rows) * g.batch;
  return Divided(g, group, PartsOf(g, groups, columns, BytesOf(dtype), caps));
}

std::vector<ColumnPlan> AllPlans(const MatMulGeometry& g, const ColumnGroup& generic,
                                 const Capabilities& caps) {
  std::vector<ColumnPlan> plans;
  const Tuning& tuning = TuningOf(caps);
  for (const ColumnGroup& group : AllColumnGroups(generic, caps)) {
    int64_t last = 0;
    for (int64_t wanted = 1; wanted <= tuning.most_parts; wanted *= 2) {
      if (wanted > 1 && g.k / wanted < tuning.part_least) break;
      const ColumnPlan plan = Divided(g, group, wanted);
      if (SaturatingMul(plan.parts, DivideUp(g.m, group.rows)) > kMostGroups) break;
      if (plan.parts > last) plans.push_back(plan);
      last = std::max(last, plan.parts);
    }
  }
  return plans;
}

}  // namespace

std::vector<ColumnGroup> AllColumnGroups(const ColumnGroup& generic, const Capabilities& caps) {
  std::vector<ColumnGroup> groups;
  for (const int64_t threads : {64, 256}) {
    if (threads > caps.max_work_group || threads * kLocalFloats * 16 > caps.local_memory) continue;
    for (const int64_t lanes : {kNarrowLanes, kWideLanes}) {
      groups.push_back({lanes, threads / lanes, generic.rows});
    }
  }
  return groups;
}

std::optional<ColumnGroup> ColumnGroupOf(int64_t rows, int64_t columns, const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  const int64_t group = caps.Group(tuning.column_group);
  if (tuning.panels || !caps.local_groups || group < 2 * kWideLanes) return std::nullopt;
  const bool wide = columns >= 4 * kWideLanes * NominalCores(caps);
  const int64_t lanes = wide ? kWideLanes : kNarrowLanes;
  const int64_t together = std::min(
      tuning.column_rows,
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows, 1)))));
  if (group * kLocalFloats * 16 > caps.local_memory) return std::nullopt;
  return ColumnGroup{lanes, group / lanes, together};
}

bool TakesColumns(const MatMulGeometry& g, DType dtype, const Capabilities& caps) {
  const int64_t most_rows = TuningOf(caps).column_most_rows;
  return IsCarried(dtype) && g.m <= most_rows && g.n >= 4 * kNarrowLanes &&
         g.k >= TuningOf(caps).part_least && g.b_col == 1 && g.n % 4 == 0 && g.b_row % 4 == 0 &&
         InFours(g.b_steps) && g.batch <= kMostGroups &&
         ColumnGroupOf(g.m, g.n / 4, caps).has_value();
}

Recipe ColumnsMatMul(const std::string& activation, const MatMulGeometry& g, const NodeView& node,
                     int64_t most, const Capabilities& caps) {
  const DType dtype = node.inputs[0].dtype;
  Recipe recipe;
  const ColumnGroup usual = *ColumnGroupOf(g.m, g.n / 4, caps);
  const std::string sizes = StrCat(g.m, "x", g.n, "x", g.k, g.batch > 1 ? "*" : "",
                                   g.batch > 1 ? StrCat(g.batch) : std::string());
  const ColumnPlan plan = Choose(
      LayerName("columns", sizes, node, activation), GenericPlan(g, dtype, usual, caps),
      [&] { return AllPlans(g, usual, caps); }, caps, recipe.decision);
  const ColumnGroup& group = plan.group;
  const int64_t quads = QuadsOf(g, dtype, group.rows), row_tiles = DivideUp(g.m, group.rows);
  const int64_t column_groups = DivideUp(g.n, LaneColumns(g, dtype, group));
  const int64_t part_k = plan.part_k, parts = plan.parts, elements = g.batch * parts * g.m * g.n;
  const bool a_wide =
      g.a_col == 1 && g.k % 4 == 0 && (g.m == 1 || g.a_row % 4 == 0) && InFours(g.a_steps);
  const IndexType index(std::max({most, elements, SaturatingMul(g.k + 4, g.b_row)}));
  DispatchBuilder b(cl::kMatmulColumns, "columns", index);
  b.Define({{"T", TypeName(dtype)},
            {"IDX", index.name()},
            {"ROWS", StrCat(group.rows)},
            {"QUADS", StrCat(quads)},
            {"LANES", StrCat(group.lanes)},
            {"SLICES", StrCat(group.slices)},
            {"A_WIDE", Flag(a_wide)},
            {"PART", Flag(parts > 1)},
            {"Y_WIDE", "1"}});
  b.Arg("a", In{0}).Arg("b", In{1});
  Scratch sums = {0, 0};
  if (parts > 1) {
    sums = recipe.AddScratch(elements * 4, caps);
    b.Define("ACTIVATION", "ACT_none").Arg("parts", sums);
  } else {
    AddEpilogue(node, activation, b);
    b.Arg("y", Out{0});
  }
  b.Index({{"part_count", parts}, {"part_k", part_k}});
  b.Index({{"rows", g.m}, {"columns", g.n}, {"k", g.k}});
  b.Index({{"a_row", g.a_row}, {"a_col", g.a_col}, {"b_row", g.b_row}});
  AddBatch(BatchOf(g), b);
  b.Groups({column_groups, parts * row_tiles, g.batch}, {group.lanes, group.slices, 1});
  b.Loop(std::max(DivideUp(part_k, 4 * group.slices), int64_t{4})).AddTo(recipe);
  if (parts > 1) {
    AddJoin({g.m, g.n, g.k, g.batch}, parts, sums, {g.m * g.n, g.n, 0}, activation, node, index,
            caps, recipe);
  }
  return recipe;
}

}  // namespace oncilla::opencl
