// Products and convolutions by tiles: choosing a tile and a division of K by cost, and the recipes.
#include "backends/opencl/recipes/tiles.h"

#include <algorithm>
#include <bit>

#include "backends/opencl/recipes/window_args.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {

int64_t NominalCores(const Capabilities& caps) {
  const auto cores = static_cast<uint64_t>(std::max<int64_t>(caps.cores(), 1));
  const uint64_t below = std::bit_floor(cores);
  return static_cast<int64_t>(cores * cores >= 2 * below * below ? 2 * below : below);
}

namespace {

// Parts begin at multiples of every tile's slice, so that the parts do not depend on the tile.
constexpr int64_t kPartStep = 16;

bool Fits(const Tile& tile, const Capabilities& caps) {
  return caps.local_groups && tile.threads() <= caps.max_work_group &&
         tile.local_bytes() <= caps.local_memory &&
         (tile.sub_group == 0 || tile.sub_group == caps.sub_group);
}
bool FitsOne(std::span<const TileRow> tiles, const Capabilities& caps) {
  return std::ranges::any_of(
      tiles, [&](const TileRow& row) { return row.tile.sub_group == 0 && Fits(row.tile, caps); });
}
// The tiles among which a product may choose.
std::span<const TileRow> TilesOf(const ProductSizes& p, const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  const auto matrix = p.bytes ? tuning.matrix_byte_tiles : tuning.matrix_tiles;
  const bool suits = p.bytes ? !p.row_sums : p.halves;
  if (suits && caps.matrix_unit != MatrixUnit::kNone && FitsOne(matrix, caps)) return matrix;
  return p.bytes ? tuning.byte_tiles : tuning.tiles;
}
// Kernels that use sub-groups do not handle edges along K and columns.
bool Suits(const Tile& tile, const ProductSizes& p) {
  return tile.sub_group == 0 ||
         (p.sub_groups && p.depth % tile.slice == 0 && p.columns % tile.columns() == 0);
}

int64_t PartK(int64_t depth, int64_t parts) { return RoundUp(DivideUp(depth, parts), kPartStep); }

// The estimated clocks on a device with `cores`. Groups are distributed evenly over the cores. On
// one core, as many groups as can be resident run together, and each such round adds the cost
// outside the loop. The result is at least the time that the shared cache takes to deliver the
// operands.
double Clocks(const TileRow& row, const ProductSizes& p, int64_t parts, int64_t cores,
              const Tuning& tuning) {
  const Tile& tile = row.tile;
  const TileCost& cost = row.cost;
  const int64_t part_k = PartK(p.depth, parts);
  const auto slices = static_cast<double>(DivideUp(std::min(part_k, p.depth), tile.slice));
  const double groups = static_cast<double>(DivideUp(p.rows, tile.rows())) *
                        static_cast<double>(DivideUp(p.columns, tile.columns())) *
                        static_cast<double>(p.products) *
                        static_cast<double>(DivideUp(p.depth, part_k));
  const double each = std::ceil(groups / static_cast<double>(cores));
  const auto resident = static_cast<double>(cost.resident);
  const auto round = [&](double now) {
    // With few groups on a core, nothing hides the latency of each.
    const double slice = std::max(cost.full, cost.alone / now);
    return now * slices * slice + cost.outside * std::max(1.0, now / 2);
  };
  const double full = std::floor(each / resident), rest = each - full * resident;
  const double work = full * round(resident) + (rest > 0 ? round(rest) : 0);
  const double bytes =
      groups * slices *
      static_cast<double>((tile.rows() + tile.columns()) * tile.slice * (p.halves ? 2 : 4));
  const double join = static_cast<double>(p.rows) * static_cast<double>(p.columns) *
                      static_cast<double>(p.products) * 4.0 * static_cast<double>(parts + 2);
  const double per_clock = static_cast<double>(cores) * tuning.cache_bytes;
  return std::max(work, bytes / per_clock) +
         (parts > 1 ? (p.apart ? 0 : tuning.launch_clocks) + join / per_clock : 0);
}

struct Best {
  const TileRow* row = nullptr;
  double clocks = 0;
};
Best BestTile(const ProductSizes& p, int64_t parts, int64_t cores, const Capabilities& caps) {
  Best best;
  for (const TileRow& row : TilesOf(p, caps)) {
    if (!Fits(row.tile, caps) || !Suits(row.tile, p)) continue;
    const double clocks = Clocks(row, p, parts, cores, TuningOf(caps));
    if (best.row == nullptr || clocks < best.clocks) best = {&row, clocks};
  }
  return best;
}

int64_t PaddedColumns(int64_t columns) { return RoundUp(columns, 4); }

int64_t PartElements(const ProductSizes& p, int64_t parts) {
  return SaturatingMul(SaturatingMul(p.products, parts),
                       SaturatingMul(p.rows, PaddedColumns(p.columns)));
}

// Whether K may be divided into `parts`.
bool MayDivide(const ProductSizes& p, int64_t parts, const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  return !p.row_sums && parts <= tuning.most_parts && p.depth / parts >= tuning.part_least &&
         p.products <= kMostGroups / parts &&
         SaturatingMul(PartElements(p, parts), 4) <= caps.max_allocation / 4;
}

// The least number of parts that K is divided into.
int64_t FewestParts(const ProductSizes& p) {
  return p.longest_part > 0 ? DivideUp(p.depth, p.longest_part) : 1;
}

struct Parts {
  int64_t count;
  double clocks;
};
Parts ChooseParts(const ProductSizes& p, const Capabilities& caps) {
  const int64_t cores = NominalCores(caps);
  Parts best{FewestParts(p), 0};
  best.clocks = BestTile(p, best.count, cores, caps).clocks;
  for (int64_t parts = 2 * best.count; MayDivide(p, parts, caps); parts *= 2) {
    const double clocks = BestTile(p, parts, cores, caps).clocks;
    if (clocks < best.clocks) best = {parts, clocks};
  }
  best.count = DivideUp(p.depth, PartK(p.depth, best.count));
  return best;
}

void AddTile(const Tile& tile, bool parts, const Capabilities& caps, DispatchBuilder& b) {
  if (tile.sub_group > 0) {
    b.Define({{"LANES", StrCat(tile.sub_group)},
              {"ROWS", StrCat(tile.tm)},
              {"WARPS", StrCat(tile.warps_m)},
              {"PART", Flag(parts)}});
    return;
  }
  AddTileShape(tile, caps, b);
  b.Define("PART", Flag(parts));
}

// The launches of one product. `b` already has the operands a and b; it gets the other arguments up
// to the sizes, which both kernels share. If K is divided, a second launch adds up the parts,
// unless the caller asked for separate parts.
class Launches {
 public:
  Launches(const ProductSizes& sizes, const TilePlan& plan, const std::string& activation,
           const NodeView& node, const Capabilities& caps)
      : sizes_(sizes),
        plan_(plan),
        in_parts_(plan.parts > 1 || sizes.apart),
        activation_(activation),
        node_(node),
        caps_(caps) {}

  // The largest index into a tensor or the parts, given the largest index into the operands.
  int64_t Most(int64_t most) const {
    return std::max(most, in_parts_ ? PartElements(sizes_, plan_.parts) : 0);
  }

  // Adds everything up to the sizes.
  void Begin(DispatchBuilder& b, IndexType index, Recipe& recipe) {
    b.Define({{"T", TypeName(node_.inputs[0].dtype)}, {"IDX", index.name()}});
    AddTile(plan_.tile, in_parts_, caps_, b);
    if (plan_.tile.sub_group == 0) b.Define("Y_WIDE", Flag(Wide()));
    if (in_parts_) {
      parts_ = recipe.AddScratch(PartElements(sizes_, plan_.parts) * 4, caps_);
      b.Define("ACTIVATION", "ACT_none").Arg("parts", parts_);
      b.Index({{"part_count", plan_.parts}, {"part_k", plan_.part_k}});
    } else {
      AddEpilogue(node_, activation_, b);
      b.Arg("y", Out{0});
    }
    const int64_t columns = DivideUp(sizes_.columns, plan_.tile.columns());
    b.Index({{"column_tiles", columns},
             {"rows", sizes_.rows},
             {"columns", sizes_.columns},
             {"k", sizes_.depth}});
    b.Groups({DivideUp(sizes_.rows, plan_.tile.rows()) * columns, sizes_.products * plan_.parts, 1},
             {plan_.tile.threads(), 1, 1});
  }
  Scratch parts() const { return parts_; }
  // Adds the second launch, if there is one.
  void Join(const JoinSteps& steps, IndexType index, Recipe& recipe) {
    if (!in_parts_) return;
    AddJoin(sizes_, plan_.parts, parts_, steps, activation_, node_, index, caps_, recipe);
  }

 private:
  bool Wide() const { return sizes_.columns % 4 == 0; }

  const ProductSizes sizes_;
  const TilePlan& plan_;
  const bool in_parts_;
  const std::string& activation_;
  const NodeView& node_;
  const Capabilities& caps_;
  Scratch parts_ = {0, 0};
};

}  // namespace

void DefineMatrixUnit(const Capabilities& caps, DispatchBuilder& b) {
  b.Define("MATRIX", "1");
  if (caps.matrix_unit == MatrixUnit::kPtx) b.Define("MATRIX_PTX", "1");
}

void AddTileShape(const Tile& tile, const Capabilities& caps, DispatchBuilder& b) {
  b.Define({{"TM", StrCat(tile.tm)},
            {"TN", StrCat(tile.tn)},
            {"WARPS_M", StrCat(tile.warps_m)},
            {"WARPS_N", StrCat(tile.warps_n)},
            {"LANES_M", StrCat(tile.lanes_m)},
            {"TILE_K", StrCat(tile.slice)},
            {"UNROLL_K", StrCat(std::min(tile.slice, TuningOf(caps).tile_unroll))}});
  if (tile.matrix == 0) return;
  DefineMatrixUnit(caps, b);
  if (tile.matrix == 4) b.Define("MATRIX_BYTES", "1");
}

void AddJoin(const ProductSizes& p, int64_t parts, Scratch sums, const JoinSteps& steps,
             const std::string& activation, const NodeView& node, IndexType index,
             const Capabilities& caps, Recipe& recipe) {
  const int64_t quads = p.products * p.rows * (PaddedColumns(p.columns) / 4);
  DispatchBuilder b(cl::kMatmulJoin, "join", index);
  b.Define({{"T", TypeName(node.inputs[0].dtype)},
            {"IDX", index.name()},
            {"Y_WIDE", Flag(p.columns % 4 == 0)}});
  b.Arg("parts", sums);
  AddEpilogue(node, activation, b);
  b.Arg("y", Out{0}).Index({{"quads", quads}, {"part_count", parts}});
  b.Index({{"rows", p.rows}, {"columns", p.columns}});
  b.Index({{"y_step", steps.y}, {"y_row", steps.y_row}, {"bias_step", steps.bias}});
  b.Items(quads, caps.Group(TuningOf(caps).loop_group)).Loop(parts).AddTo(recipe);
}

TilePlan PlanTiles(const ProductSizes& p, const Capabilities& caps) {
  const int64_t parts = ChooseParts(p, caps).count;
  const Best best = BestTile(p, parts, std::max<int64_t>(caps.cores(), 1), caps);
  return {best.row->tile, parts, PartK(p.depth, parts)};
}

std::string TilePlan::name() const {
  if (tile.sub_group > 0) {
    return StrCat("LANES=", tile.sub_group, " ROWS=", tile.tm, " WARPS=", tile.warps_m,
                  " PARTS=", parts);
  }
  return StrCat("TM=", tile.tm, " TN=", tile.tn, " WARPS_M=", tile.warps_m,
                " WARPS_N=", tile.warps_n, " LANES_M=", tile.lanes_m, " TILE_K=", tile.slice,
                " PARTS=", parts);
}

std::vector<TilePlan> AllPlans(const ProductSizes& p, const Capabilities& caps) {
  std::vector<TilePlan> plans;
  for (const TileRow& row : TilesOf(p, caps)) {
    if (!Fits(row.tile, caps) || !Suits(row.tile, p)) continue;
    const int64_t fewest = FewestParts(p);
    for (int64_t wanted = fewest, last = 0; wanted == fewest || MayDivide(p, wanted, caps);
         wanted *= 2) {
      const int64_t part_k = PartK(p.depth, wanted), parts = DivideUp(p.depth, part_k);
      if (parts > last) plans.push_back({row.tile, parts, part_k});
      last = std::max(last, parts);
    }
  }
  return plans;
}

double ExpectedClocks(const ProductSizes& p, const Capabilities& caps) {
  return ChooseParts(p, caps).clocks;
}

bool HasTiles(const Capabilities& caps) { return FitsOne(TuningOf(caps).tiles, caps); }
bool HasByteTiles(const Capabilities& caps) { return FitsOne(TuningOf(caps).byte_tiles, caps); }

namespace {

// A quad can be read in one access if its elements are contiguous, and all lines and products begin
// at multiples of a quad.
struct Layout {
  bool a_along, a_wide, b_along, b_wide;
};
Layout LayoutOf(const MatMulGeometry& g) {
  const auto whole = [](const Shape& steps) {
    bool all = true;
    for (int i = 0; i < steps.rank(); ++i) all = all && steps[i] % 4 == 0;
    return all;
  };
  // With a single line, the step to the next line does not matter.
  const bool a_along = g.a_col == 1, b_along = g.b_col != 1 || (g.n == 1 && g.b_row == 1);
  const bool a_quads = a_along ? g.k % 4 == 0 && (g.m == 1 || g.a_row % 4 == 0)
                               : g.a_row == 1 && g.m % 4 == 0 && g.a_col % 4 == 0;
  const bool b_quads = b_along ? g.b_row == 1 && g.k % 4 == 0 && (g.n == 1 || g.b_col % 4 == 0)
                               : g.n % 4 == 0 && g.b_row % 4 == 0;
  return {a_along, a_quads && whole(g.a_steps), b_along, b_quads && whole(g.b_steps)};
}

}  // namespace

ProductSizes SizesOf(const MatMulGeometry& g, DType dtype) {
  const Layout layout = LayoutOf(g);
  return {.rows = g.m,
          .columns = g.n,
          .depth = g.k,
          .products = g.batch,
          .sub_groups = dtype == DType::kF32 && layout.a_along && layout.a_wide &&
                        !layout.b_along && layout.b_wide,
          .halves = BytesOf(dtype) == 2};
}

namespace {

// Adds the launch of a product; returns the type of its indices.
IndexType AddMatMul(Launches& launches, const MatMulGeometry& g, const TilePlan& plan, const Arg& a,
                    const Arg& b_arg, int64_t most, Recipe& recipe) {
  // Indices run one slice past the last one.
  const int64_t beyond = SaturatingMul(g.k + 2 * plan.tile.slice, std::max(g.a_col, g.b_row));
  const IndexType index(launches.Most(std::max({most, beyond, g.m + plan.tile.rows()})));
  const bool sub_groups = plan.tile.sub_group > 0;
  DispatchBuilder b(sub_groups ? cl::kMatmulSubGroup : cl::kMatmulTiled,
                    sub_groups ? "sub_group" : "tiled", index);
  b.Arg("a", a).Arg("b", b_arg);
  launches.Begin(b, index, recipe);
  if (sub_groups) {
    b.Index({{"a_row", g.a_row}, {"b_row", g.b_row}});
  } else {
    const Layout layout = LayoutOf(g);
    b.Define({{"A_ALONG", Flag(layout.a_along)},
              {"A_WIDE", Flag(layout.a_wide)},
              {"B_ALONG", Flag(layout.b_along)},
              {"B_WIDE", Flag(layout.b_wide)}});
    b.Index({{"a_row", g.a_row}, {"a_col", g.a_col}, {"b_row", g.b_row}, {"b_col", g.b_col}});
  }
  AddBatch(BatchOf(g), b);
  b.Loop(DivideUp(plan.part_k, plan.tile.slice)).AddTo(recipe);
  return index;
}

}  // namespace

Recipe TiledMatMul(const std::string& activation, const MatMulGeometry& g, const TilePlan& plan,
                   const NodeView& node, int64_t most, const Capabilities& caps) {
  Recipe recipe;
  Launches launches(SizesOf(g, node.inputs[0].dtype), plan, activation, node, caps);
  const IndexType index = AddMatMul(launches, g, plan, In{0}, In{1}, most, recipe);
  launches.Join({g.m * g.n, g.n, 0}, index, recipe);
  return recipe;
}

Scratch AddParts(const ProductSizes& sizes, const MatMulGeometry& g, const TilePlan& plan,
                 const Arg& a, const Arg& b, const NodeView& node, int64_t most,
                 const Capabilities& caps, Recipe& recipe) {
  static const std::string kNone = "none";
  ProductSizes apart = sizes;
  apart.apart = true;
  Launches launches(apart, plan, kNone, node, caps);
  AddMatMul(launches, g, plan, a, b, most, recipe);
  return launches.parts();
}

namespace {

std::string SizesText(const ProductSizes& p) {
  return StrCat(p.rows, "x", p.columns, "x", p.depth,
                p.products == 1 ? std::string() : StrCat("*", p.products));
}
// The layout of a and b in memory: 't' for an operand read across its lines, '4' for one read in
// quads.
std::string SizesText(const MatMulGeometry& g, DType dtype) {
  const Layout layout = LayoutOf(g);
  return StrCat(SizesText(SizesOf(g, dtype)), " ", layout.a_along ? "n" : "t",
                layout.a_wide ? "4" : "", layout.b_along ? "t" : "n", layout.b_wide ? "4" : "");
}
std::string SizesText(const WindowGeometry& g, DType dtype) {
  return StrCat(SizesText(SizesOf(g, dtype)), " ", WindowText(g));
}

}  // namespace

Recipe PlannedMatMul(const std::string& activation, const MatMulGeometry& g, const NodeView& node,
                     int64_t most, const Capabilities& caps) {
  const DType dtype = node.inputs[0].dtype;
  const ProductSizes sizes = SizesOf(g, dtype);
  Decision decision;
  const TilePlan plan = Choose(
      LayerName("product", SizesText(g, dtype), node, activation), PlanTiles(sizes, caps),
      [&] { return AllPlans(sizes, caps); }, caps, decision);
  Recipe recipe = TiledMatMul(activation, g, plan, node, most, caps);
  recipe.decision = std::move(decision);
  return recipe;
}

Recipe PlannedConv(const std::string& activation, const WindowGeometry& g, bool packed,
                   const NodeView& node, const Capabilities& caps) {
  const DType dtype = node.inputs[0].dtype;
  const ProductSizes sizes = SizesOf(g, dtype);
  Decision decision;
  const TilePlan plan = Choose(
      LayerName("convolution", SizesText(g, dtype), node, activation), PlanTiles(sizes, caps),
      [&] { return AllPlans(sizes, caps); }, caps, decision);
  Recipe recipe = TiledConv(activation, g, plan, packed, node, caps);
  recipe.decision = std::move(decision);
  return recipe;
}

int64_t ChannelRun(int64_t group_channels, int64_t taps) {
  return taps == 1 ? group_channels : RoundUp(group_channels, 4);
}

ProductSizes SizesOf(const WindowGeometry& g, DType dtype) {
  return {.rows = g.batch * g.out_pixels(),
          .columns = g.out_channels / g.groups,
          .depth = g.taps() * ChannelRun(g.in_channels / g.groups, g.taps()),
          .products = g.groups,
          .halves = BytesOf(dtype) == 2};
}

int64_t MostPlace(const WindowGeometry& g, int64_t depth, int64_t tile_rows, const NodeView& node) {
  int64_t around = SaturatingMul(g.batch, g.in_channels);
  for (const WindowAxis& axis : g.axis) {
    around = SaturatingMul(around,
                           axis.in + axis.pad_begin + axis.pad_end + axis.extent() + axis.stride);
  }
  return std::max({node.inputs[1].desc().elements(), node.outputs[0].desc().elements(), around,
                   SaturatingMul(depth, g.out_channels), g.batch * g.out_pixels() + tile_rows});
}

void AddSeen(const WindowGeometry& g, DispatchBuilder& b) {
  const int64_t bits = g.axis[0].kernel + g.axis[1].kernel + g.axis[2].kernel;
  if (bits <= 64) b.Define("SEEN", bits <= 32 ? "uint" : "ulong");
}

namespace {

// The filter as [tap][run][out_channels]. If it is not constant, an additional launch writes it.
Arg FilterInRuns(const WindowGeometry& g, int64_t run, bool packed, const NodeView& node,
                 const Capabilities& caps, Recipe& recipe) {
  const int64_t in_group = g.in_channels / g.groups;
  if (packed || run == in_group) return In{1};
  const DType dtype = node.inputs[1].dtype;
  const int64_t elements = g.taps() * run * g.out_channels;
  const Scratch filter = recipe.AddScratch(elements * BytesOf(dtype), caps);
  DispatchBuilder pad(cl::kConvPad, "pad");
  pad.Define("IDX", IndexType(elements).name());
  AddStored(dtype, pad);
  pad.Arg("x", In{1}).Arg("y", filter).Int("channels", g.out_channels);
  pad.Int({{"in0", 1}, {"in1", 1}, {"in2", in_group}, {"size0", 1}, {"size1", 1}, {"size2", run}});
  pad.Int({{"before0", 0}, {"before1", 0}, {"before2", 0}});
  pad.Groups({g.taps(), 1, 1});
  pad.Loop(run * g.out_channels).AddTo(recipe);
  return filter;
}

// Adds the last arguments, which both kernels of convolutions share.
void AddFilter(const WindowGeometry& g, int64_t run, DispatchBuilder& b) {
  b.Int({{"run", RoundUp(run, 4)}, {"channels", g.in_channels}});
  b.Int({{"out_channels", g.out_channels}, {"in_group", g.in_channels / g.groups}});
  AddWindow(g, b);
}

// Groups of x by y work-items, each of which takes 4 rows and some quads of columns.
struct RegisterPlan {
  int64_t x, y, quads;
  std::string name() const { return StrCat("GX=", x, " GY=", y, " QUADS=", quads); }
};
bool Fits(const RegisterPlan& plan, const ProductSizes& p, const Capabilities& caps) {
  return caps.local_groups && plan.x * plan.y <= caps.max_work_group &&
         DivideUp(p.rows, 4 * plan.y) <= kMostGroups && p.products <= kMostGroups;
}
RegisterPlan ChooseRegisters(std::string layer, const ProductSizes& p, int64_t quads,
                             const Capabilities& caps, Decision& decision) {
  const Tuning& tuning = TuningOf(caps);
  const auto all = [&] {
    std::vector<RegisterPlan> plans;
    // The sizes that the VARIANT lines of both kernels name.
    for (const RegisterPlan& plan : {RegisterPlan{4, 4, 1}, RegisterPlan{4, 4, 2},
                                     RegisterPlan{4, 16, 1}, RegisterPlan{4, 16, 2}}) {
      if (Fits(plan, p, caps)) plans.push_back(plan);
    }
    return plans;
  };
  const RegisterPlan generic = {tuning.registers_x, tuning.registers_y, quads};
  return Choose(std::move(layer), generic, all, caps, decision);
}

void AddRegisters(const ProductSizes& p, const std::string& activation, const NodeView& node,
                  const RegisterPlan& plan, IndexType index, DispatchBuilder& b) {
  b.Define({{"T", TypeName(node.inputs[0].dtype)},
            {"IDX", index.name()},
            {"GX", StrCat(plan.x)},
            {"GY", StrCat(plan.y)},
            {"QUADS", StrCat(plan.quads)},
            {"Y_WIDE", Flag(p.columns % 4 == 0)}});
  AddEpilogue(node, activation, b);
  b.Arg("y", Out{0}).Index({{"rows", p.rows}, {"columns", p.columns}});
  b.Groups({DivideUp(p.columns, 4 * plan.quads * plan.x), DivideUp(p.rows, 4 * plan.y), p.products},
           {plan.x, plan.y, 1});
}

}  // namespace

bool TakesRegisters(const ProductSizes& p, const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  return tuning.registers_x > 0 && Fits({tuning.registers_x, tuning.registers_y, 1}, p, caps);
}

Recipe RegisterMatMul(const std::string& activation, const MatMulGeometry& g, const NodeView& node,
                      int64_t most, const Capabilities& caps) {
  const Layout layout = LayoutOf(g);
  const int64_t beyond = SaturatingMul(g.k + 4, std::max(g.a_col, g.b_row));
  const IndexType index(std::max({most, beyond, g.m + 4}));
  DispatchBuilder b(cl::kMatmulRegisters, "registers", index);
  b.Define({{"A_WIDE", Flag(layout.a_along && layout.a_wide)},
            {"B_WIDE", Flag(!layout.b_along && layout.b_wide)}});
  b.Arg("a", In{0}).Arg("b", In{1});
  const DType dtype = node.inputs[0].dtype;
  const ProductSizes sizes = SizesOf(g, dtype);
  Recipe recipe;
  const RegisterPlan plan =
      ChooseRegisters(LayerName("register product", SizesText(g, dtype), node, activation), sizes,
                      TuningOf(caps).register_quads, caps, recipe.decision);
  AddRegisters(sizes, activation, node, plan, index, b);
  b.Index("k", g.k);
  b.Index({{"a_row", g.a_row}, {"a_col", g.a_col}, {"b_row", g.b_row}, {"b_col", g.b_col}});
  AddBatch(BatchOf(g), b);
  b.Loop(DivideUp(g.k, 4)).AddTo(recipe);
  return recipe;
}

Recipe RegisterConv(const std::string& activation, const WindowGeometry& g, bool packed,
                    const NodeView& node, const Capabilities& caps) {
  const int64_t in_group = g.in_channels / g.groups, run = ChannelRun(in_group, g.taps());
  Recipe recipe;
  const Arg filter = FilterInRuns(g, run, packed, node, caps, recipe);
  const IndexType index(MostPlace(g, g.taps() * RoundUp(run, 4), 4, node));
  DispatchBuilder b(cl::kConvRegisters, "registers", index);
  b.Define(
      {{"A_WIDE", Flag(in_group % 4 == 0)}, {"B_WIDE", Flag(g.out_channels / g.groups % 4 == 0)}});
  AddSeen(g, b);
  b.Arg("x", In{0}).Arg("filter", filter);
  const DType dtype = node.inputs[0].dtype;
  const ProductSizes sizes = SizesOf(g, dtype);
  const RegisterPlan plan =
      ChooseRegisters(LayerName("register convolution", SizesText(g, dtype), node, activation),
                      sizes, TuningOf(caps).register_conv_quads, caps, recipe.decision);
  AddRegisters(sizes, activation, node, plan, index, b);
  AddFilter(g, run, b);
  b.Loop(std::max(DivideUp(in_group, 4), LongestAxis(g))).AddTo(recipe);
  return recipe;
}

Recipe TiledConv(const std::string& activation, const WindowGeometry& g, const TilePlan& plan,
                 bool packed, const NodeView& node, const Capabilities& caps) {
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  const int64_t run = ChannelRun(in_group, g.taps()), depth = g.taps() * run;
  Recipe recipe;
  Launches launches(SizesOf(g, node.inputs[0].dtype), plan, activation, node, caps);
  const Tile& tile = plan.tile;
  const IndexType index(launches.Most(MostPlace(g, depth + 2 * tile.slice, tile.rows(), node)));
  const Arg filter = FilterInRuns(g, run, packed, node, caps, recipe);
  DispatchBuilder b(cl::kConvTiled, "tiled", index);
  AddSeen(g, b);
  b.Define({{"NARROW", Flag(RoundUp(run, 4) < tile.slice)},
            {"A_WIDE", Flag(in_group % 4 == 0)},
            {"B_WIDE", Flag(out_group % 4 == 0)}});
  b.Arg("x", In{0}).Arg("filter", filter);
  launches.Begin(b, index, recipe);
  AddFilter(g, run, b);
  b.Loop(std::max(DivideUp(plan.part_k, tile.slice), LongestAxis(g))).AddTo(recipe);
  launches.Join({out_group, g.out_channels, out_group}, index, recipe);
  return recipe;
}

}  // namespace oncilla::opencl
