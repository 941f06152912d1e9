// Products of bytes: the choice among plain, panels and tiles, the packing of constants, and the
// launches.
#include "backends/opencl/recipes/integer_product.h"

#include <algorithm>

#include "backends/opencl/recipes/matmul_recipe.h"
#include "backends/opencl/recipes/tiles.h"
#include "backends/opencl/recipes/window_args.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {

const Fact* BiasOf(const NodeView& node) { return node.has_input(4) ? &node.inputs[4] : nullptr; }

namespace {

void AddZeros(const NodeView& node, const char* const (&names)[2], const char* const (&defines)[2],
              DispatchBuilder& b) {
  for (size_t i = 0; i < 2; ++i) {
    if (!node.has_input(2 + i)) continue;
    b.Define(defines[i], "1").Arg(names[i], In{static_cast<int>(2 + i)});
    if (node.inputs[2 + i].desc().elements() != 1) b.Define(std::string(defines[i]) + "S", "1");
  }
}
void AddBias(const NodeView& node, DispatchBuilder& b) {
  if (node.has_input(4)) b.Define("BIAS", "1").Arg("bias", In{4});
}

}  // namespace

void AddZerosAndBias(const NodeView& node, const char* const (&names)[2],
                     const char* const (&defines)[2], DispatchBuilder& b) {
  AddZeros(node, names, defines, b);
  AddBias(node, b);
}

std::string ResultType(const NodeView& node) {
  const DType y = node.outputs[0].dtype;
  return std::string(TypeName(y == DType::kF32 ? DType::kI32 : y));
}

void AddEpilogue(const IntegerEpilogue& epilogue, const NodeView& node, DispatchBuilder& b) {
  if (epilogue.none()) return;
  const auto step = [&](size_t input) { return node.inputs[input].desc().elements() == 1 ? 0 : 1; };
  b.Define("REQUANTIZED", "1").Arg("scale", In{5});
  if (epilogue.real()) {
    b.Define("REAL", "1").Int("scale_step", step(5));
    if (node.has_input(6)) b.Define("TERM", "1").Arg("term", In{6}).Int("term_step", step(6));
    return;
  }
  if (SumType(node.inputs[0].dtype, BiasOf(node)) == DType::kI64) b.Define("WIDE", "1");
  if (epilogue.requantize == "fixed") b.Define("FIXED", "1").Arg("shift", In{7});
  if (node.has_input(6)) b.Define("ZERO", "1").Arg("zero", In{6});
  const IntegerRange range = RangeOf(AsRequantize(epilogue));
  b.Int("scale_step", step(5));
  b.Int({{"least", range.least}, {"most", range.most}});
}

namespace {

enum class Way { kPlain, kTiles, kPanels };

bool IsByte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

// The choice depends on types and the second operand alone, as all packing does. Tiles must not
// depend on anything that changes if Device::Prepare tries again with smaller groups.
Way WayOf(const NodeView& node, const Capabilities& caps) {
  const bool bytes = IsByte(node.inputs[0].dtype) && IsByte(node.inputs[1].dtype) &&
                     SumType(node.inputs[0].dtype, BiasOf(node)) == DType::kI32;
  if (!bytes || node.inputs[1].desc().elements() == 0) return Way::kPlain;
  if (TuningOf(caps).panels) return Way::kPanels;
  return caps.local_groups ? Way::kTiles : Way::kPlain;
}

const std::optional<Recipe> kNothing;
constexpr int64_t kLeastColumns = 4;  // with fewer, most of a tile or panel would be past the edge
constexpr int64_t kLeastChannels =
    4;  // and fewer channels of a tap mostly beyond the end of a word

// Whether x may have a zero point for each sample, which the plain kernel alone knows. Decided by
// what does not change with sizes, as the filter's packing follows from it.
bool MayDifferBySample(const NodeView& node) {
  if (!node.has_input(2)) return false;
  const Fact& zero = node.inputs[2];
  if (zero.constant) return zero.desc().elements() != 1;
  return !zero.shape.ranked() || zero.shape.rank() > 0;
}

Way WayOf(const ConvIntegerAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  if (MayDifferBySample(node)) return Way::kPlain;
  const Shape filter = node.inputs[1].desc().shape;
  const int64_t columns = filter.back() / attrs.groups, channels = filter[filter.rank() - 2];
  const bool few = columns < kLeastColumns || (attrs.groups > 1 && channels < kLeastChannels);
  return few || attrs.groups > kMostGroups || filter.back() > kMostGroups ? Way::kPlain
                                                                          : WayOf(node, caps);
}

Way WayOf(const MatMulIntegerAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const Shape b = node.inputs[1].desc().shape;
  if (b.rank() < 2) return Way::kPlain;
  const int64_t columns = b[b.rank() - (attrs.transpose_b ? 2 : 1)];
  const Way way = WayOf(node, caps);
  // The elements of a word of A are neighbours in K.
  const bool turned = way == Way::kTiles && attrs.transpose_a;
  return turned || columns < kLeastColumns || columns / 4 > kMostGroups ? Way::kPlain : way;
}

// Matrices in which element (tap, row, column) is at (tap * rows + row) * row_step + column *
// column_step.
struct Matrices {
  int64_t count, matrix_step, row_step, column_step, taps, rows, columns;
  int64_t word_elements() const { return WordMatrix(taps, rows, columns); }
};

Matrices MatricesOf(const ConvIntegerAttrs& attrs, const Shape& filter) {
  const int64_t out_channels = filter.back(), columns = out_channels / attrs.groups;
  return {attrs.groups,
          columns,
          out_channels,
          1,
          filter.Product(0, filter.rank() - 2),
          filter[filter.rank() - 2],
          columns};
}

Matrices MatricesOf(const MatMulIntegerAttrs& attrs, const Shape& b) {
  const int64_t rows = b[b.rank() - 2], columns = b[b.rank() - 1];
  const int64_t k = attrs.transpose_b ? columns : rows, n = attrs.transpose_b ? rows : columns;
  const int64_t row_step = attrs.transpose_b ? 1 : n, column_step = attrs.transpose_b ? k : 1;
  return {b.elements() / (k * n), k * n, row_step, column_step, 1, k, n};
}

// Packs one matrix into words.
void PackMatrix(const uint8_t* from, const Matrices& m, uint8_t flip, uint32_t* to) {
  const int64_t pitch = WordPitch(m.columns), words = DivideUp(m.rows, 4);
  std::fill_n(to, m.word_elements(), 0U);
  for (int64_t tap = 0; tap < m.taps; ++tap) {
    for (int64_t row = 0; row < m.rows; ++row) {
      const uint8_t* line = from + (tap * m.rows + row) * m.row_step;
      uint32_t* words_at = to + (1 + tap * words + row / 4) * pitch;
      for (int64_t column = 0; column < m.columns; ++column) {
        const auto byte = static_cast<uint8_t>(line[column * m.column_step] ^ flip);
        words_at[column] |= static_cast<uint32_t>(byte) << (8 * (row % 4));
        to[column] += static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(byte)));
      }
    }
  }
}

std::string LayoutName(std::string_view kind, const Matrices& m) {
  return StrCat(kind, m.count, "x", m.taps, "x", m.rows, "x", m.columns,
                m.column_step == 1 ? "" : "t");
}

Packing InWordsOf(const Matrices& m, const TensorDesc& desc) {
  const uint8_t flip = desc.dtype == DType::kU8 ? 0x80 : 0;
  const auto pack = [=](const Tensor& constant, std::span<std::byte> to) {
    const auto* from = reinterpret_cast<const uint8_t*>(constant.bytes().data());
    auto* words = reinterpret_cast<uint32_t*>(to.data());
    for (int64_t i = 0; i < m.count; ++i) {
      PackMatrix(from + i * m.matrix_step, m, flip, words + i * m.word_elements());
    }
    return Status();
  };
  return {LayoutName("words", m), m.count * m.word_elements() * 4, pack};
}

Packing Pack(Way way, const Matrices& m, const TensorDesc& desc, const Capabilities& caps) {
  if (way == Way::kTiles) return InWordsOf(m, desc);
  return PackedPanels(
      desc, {m.count, m.matrix_step, m.row_step, m.column_step, m.taps * m.rows, m.columns},
      LayoutName("bytes", m), caps);
}

// The second operand in the layout of `way`; if it is not constant, a launch packs it.
Arg Packed(Way way, const Matrices& m, const NodeView& node, const Capabilities& caps,
           Recipe& recipe) {
  if (node.inputs[1].constant) return In{1};
  const bool words = way == Way::kTiles;
  const int64_t depth = m.taps * m.rows, width = PanelColumns(caps);
  const int64_t bytes = words ? m.word_elements() * 4 : PackedElements(depth, m.columns, caps);
  const Scratch to = recipe.AddScratch(m.count * bytes, caps);
  const IndexType index(std::max(m.count * bytes, node.inputs[1].desc().elements()));
  DispatchBuilder b(cl::kMatmulIntegerPack, words ? "words" : "panels", index);
  b.Define({{"W", TypeName(node.inputs[1].dtype)},
            {"IDX", index.name()},
            {"PANEL", StrCat(words ? 1 : width)}});
  b.Arg("b", In{1}).Arg("packed", to).Index("columns", m.columns);
  if (words) b.Index("taps", m.taps);
  b.Index({{"rows", words ? m.rows : depth}, {"b_row", m.row_step}, {"b_col", m.column_step}});
  b.Index("b_matrix", m.matrix_step);
  if (words) {
    const int64_t group = caps.Group(TuningOf(caps).loop_group);
    b.Groups({DivideUp(WordPitch(m.columns), group), m.count, 1}, {group, 1, 1});
    b.Loop(std::max(m.taps, DivideUp(m.rows, 4)));
  } else {
    b.Groups({depth, DivideUp(m.columns, width), m.count}).Loop(width);
  }
  b.AddTo(recipe);
  return to;
}

int64_t MostOf(const NodeView& node) {
  return std::max({node.inputs[0].desc().elements(), node.inputs[1].desc().elements(),
                   node.outputs[0].desc().elements()});
}

void AddTypes(const NodeView& node, const std::string& result, IndexType index,
              DispatchBuilder& b) {
  b.Define({{"X", TypeName(node.inputs[0].dtype)},
            {"W", TypeName(node.inputs[1].dtype)},
            {"Y", result},
            {"IDX", index.name()}});
}

// Adds the types and INTEGER_PARAMS of common/integer_product.clh; `rows` are the rows of a.
void AddOperands(const NodeView& node, int64_t rows, IndexType index, DispatchBuilder& b) {
  AddTypes(node, ResultType(node), index, b);
  AddZerosAndBias(node, {"a_zero", "b_zero"}, {"A_ZERO", "B_ZERO"}, b);
  b.Arg("y", Out{0}).Index("rows_a", rows);
}

// Whether common/byte_tile.clh computes row sums: needed if columns have zero points as signed
// bytes.
bool HasRowSums(const NodeView& node) {
  return node.has_input(3) || node.inputs[1].dtype != DType::kI8;
}

// The launches of a product by tiles: one; or, if K is divided, one for its parts and one that adds
// them up. Sums are exact, so the division of K does not affect the result.
class TiledLaunches {
 public:
  TiledLaunches(const ProductSizes& sizes, const NodeView& node, const Capabilities& caps)
      : sizes_(sizes), plan_(PlanTiles(sizes, caps)), node_(node), caps_(caps) {}
  const Tile& tile() const { return plan_.tile; }
  int64_t slices() const {
    return DivideUp(std::min(plan_.part_k, sizes_.depth), plan_.tile.slice);
  }
  // The elements of the parts; 0 if there are none.
  int64_t elements() const {
    const int64_t lines = SaturatingMul(sizes_.products * plan_.parts, sizes_.rows);
    return plan_.parts > 1 ? SaturatingMul(lines, WordPitch(sizes_.columns)) : 0;
  }

  // Adds everything between the operands and the sizes. `rows` are the rows that zero points refer
  // to.
  void Begin(int64_t rows, IndexType index, DispatchBuilder& b, Recipe& recipe) {
    AddTileShape(plan_.tile, caps_, b);
    b.Define({{"PART", Flag(plan_.parts > 1)}, {"Y_WIDE", Flag(Wide())}});
    if (caps_.byte_dot == ByteDot::kKhr) b.Define("DOT_KHR", "1");
    if (caps_.byte_dot == ByteDot::kPtx) b.Define("DOT_PTX", "1");
    if (plan_.parts > 1) {
      parts_ = recipe.AddScratch(elements() * 4, caps_);
      AddTypes(node_, std::string(TypeName(DType::kI32)), index, b);
      AddZeros(node_, {"a_zero", "b_zero"}, {"A_ZERO", "B_ZERO"}, b);
      b.Arg("parts", parts_);
      b.Index({{"part_count", plan_.parts}, {"part_words", plan_.part_k}, {"rows_a", rows}});
    } else {
      AddOperands(node_, rows, index, b);
    }
    const int64_t columns = DivideUp(sizes_.columns, plan_.tile.columns());
    b.Index({{"column_tiles", columns}, {"rows", sizes_.rows}, {"columns", sizes_.columns}});
    b.Groups({DivideUp(sizes_.rows, plan_.tile.rows()) * columns, sizes_.products * plan_.parts, 1},
             {plan_.tile.threads(), 1, 1});
  }
  // Adds everything after the sizes: the epilogue of the launch `b`, or the launch that joins the
  // parts. `steps` has the distances of products in y and in bias, and of rows in y.
  void End(const IntegerEpilogue& epilogue, const JoinSteps& steps, IndexType index,
           DispatchBuilder& b, Recipe& recipe) {
    if (plan_.parts == 1) AddEpilogue(epilogue, node_, b);
    b.AddTo(recipe);
    if (plan_.parts == 1) return;
    const int64_t quads = sizes_.products * sizes_.rows * (WordPitch(sizes_.columns) / 4);
    DispatchBuilder join(cl::kMatmulIntegerJoin, "integer_join", index);
    join.Define({{"Y", ResultType(node_)}, {"IDX", index.name()}, {"Y_WIDE", Flag(Wide())}});
    join.Arg("parts", parts_);
    AddBias(node_, join);
    join.Arg("y", Out{0}).Index({{"quads", quads}, {"part_count", plan_.parts}});
    join.Index({{"rows", sizes_.rows}, {"columns", sizes_.columns}});
    join.Index({{"y_step", steps.y}, {"y_row", steps.y_row}, {"bias_step", steps.bias}});
    AddEpilogue(epilogue, node_, join);
    join.Items(quads, caps_.Group(TuningOf(caps_).loop_group)).Loop(plan_.parts).AddTo(recipe);
  }

 private:
  bool Wide() const { return sizes_.columns % 4 == 0; }

  const ProductSizes sizes_;
  const TilePlan plan_;
  const NodeView& node_;
  const Capabilities& caps_;
  Scratch parts_ = {0, 0};
};

ProductSizes ByteSizes(int64_t rows, int64_t columns, int64_t words, int64_t products,
                       const NodeView& node) {
  return {.rows = rows,
          .columns = columns,
          .depth = words,
          .products = products,
          .bytes = true,
          .row_sums = HasRowSums(node)};
}

// The batch of a product whose second operand is packed: its steps count packed elements.
BatchAxes PackedBatch(const MatMulGeometry& g, int64_t matrix) {
  BatchAxes batch = BatchOf(g);
  for (BatchAxes::Axis& axis : batch.axes) axis.b_step = axis.b_step / (g.k * g.n) * matrix;
  return batch;
}

bool IsAligned(const MatMulGeometry& g) {
  bool all = g.k % 4 == 0 && (g.m == 1 || g.a_row % 4 == 0);
  for (int i = 0; i < g.a_steps.rank(); ++i) all = all && g.a_steps[i] % 4 == 0;
  return all;
}

Recipe TiledMatMul(const IntegerEpilogue& epilogue, const MatMulGeometry& g, const Matrices& m,
                   int64_t rows_a, const NodeView& node, const Capabilities& caps) {
  Recipe recipe;
  const Arg packed = Packed(Way::kTiles, m, node, caps, recipe);
  const int64_t words = DivideUp(g.k, 4);
  TiledLaunches launches(ByteSizes(g.m, g.n, words, g.batch, node), node, caps);
  const Tile& tile = launches.tile();
  const int64_t beyond = SaturatingMul(words + 2 * tile.slice, WordPitch(g.n));
  const IndexType index(
      std::max({MostOf(node), m.count * m.word_elements() + beyond, launches.elements(),
                g.m * std::max(g.a_row, int64_t{1}) + 8 * tile.slice, g.m + tile.rows(),
                g.n + tile.columns()}));
  DispatchBuilder b(cl::kMatmulIntegerTiled, "integer_tiled", index);
  b.Define("A_WIDE", Flag(IsAligned(g)));
  b.Arg("a", In{0}).Arg("b", packed);
  launches.Begin(rows_a, index, b, recipe);
  b.Index({{"k", g.k}, {"a_row", g.a_row}});
  AddBatch(PackedBatch(g, m.word_elements()), b);
  b.Loop(launches.slices());
  launches.End(epilogue, {g.m * g.n, g.n, 0}, index, b, recipe);
  return recipe;
}

Recipe TiledConv(const ConvIntegerAttrs& attrs, const WindowGeometry& g, const Matrices& m,
                 const NodeView& node, const Capabilities& caps) {
  Recipe recipe;
  const Arg packed = Packed(Way::kTiles, m, node, caps, recipe);
  const int64_t run = RoundUp(m.rows, 4), depth = g.taps() * run;
  TiledLaunches launches(ByteSizes(g.batch * g.out_pixels(), m.columns, depth / 4, g.groups, node),
                         node, caps);
  const Tile& tile = launches.tile();
  const int64_t beyond = SaturatingMul(depth / 4 + 2 * tile.slice, WordPitch(m.columns));
  const IndexType index(std::max({MostPlace(g, depth + 8 * tile.slice, tile.rows(), node),
                                  m.count * m.word_elements() + beyond, launches.elements()}));
  DispatchBuilder b(cl::kConvIntegerTiled, "integer_tiled", index);
  AddSeen(g, b);
  b.Define({{"NARROW", Flag(run < 4 * tile.slice)}, {"A_WIDE", Flag(m.rows % 4 == 0)}});
  b.Arg("x", In{0}).Arg("filter", packed);
  launches.Begin(1, index, b, recipe);
  b.Index({{"k", depth}, {"group_step", m.word_elements()}});
  b.Int({{"run", run}, {"channels", g.in_channels}});
  b.Int({{"out_channels", g.out_channels}, {"in_group", m.rows}});
  AddWindow(g, b);
  b.Loop(std::max(launches.slices(), LongestAxis(g)));
  launches.End(attrs.epilogue, {m.columns, g.out_channels, m.columns}, index, b, recipe);
  return recipe;
}

void AddBytePanels(const PanelLaunch& launch, const Arg& a, const Arg& b_arg, int64_t rows_a,
                   const IntegerEpilogue& epilogue, const NodeView& node, const Capabilities& caps,
                   Recipe& recipe) {
  const IndexType index(launch.most);
  DispatchBuilder b(cl::kMatmulIntegerPanels, "integer_panels", index);
  const PanelPlan plan = UsualPanels(launch, caps);
  b.Define({{"V", StrCat(PanelOf(caps).vector)}, {"ROWS", StrCat(plan.rows)}});
  b.Arg("a", a).Arg("b", b_arg);
  AddOperands(node, rows_a, index, b);
  AddPanelSteps(launch, plan, caps, b);
  AddEpilogue(epilogue, node, b);
  b.AddTo(recipe);
}

Recipe PanelMatMul(const IntegerEpilogue& epilogue, const MatMulGeometry& g, const Matrices& m,
                   int64_t rows_a, const NodeView& node, const Capabilities& caps) {
  Recipe recipe;
  const Arg packed = Packed(Way::kPanels, m, node, caps, recipe);
  const int64_t elements = PackedElements(g.k, g.n, caps);
  PanelLaunch launch = PanelsOf(g);
  launch.batch = PackedBatch(g, elements);
  launch.most = std::max(MostOf(node), m.count * elements);
  AddBytePanels(launch, In{0}, packed, rows_a, epilogue, node, caps, recipe);
  return recipe;
}

Recipe PanelConv(const ConvIntegerAttrs& attrs, const WindowGeometry& g, const Matrices& m,
                 const NodeView& node, const Capabilities& caps) {
  Recipe recipe;
  const ConvProduct p = ProductOf(g);
  const int64_t elements = PackedElements(p.depth(), p.columns, caps);
  Arg a = In{0};
  if (p.pads) {
    a = recipe.AddScratch(p.in_floats, caps);
    const std::optional<Arg> zero = node.has_input(2) ? std::optional<Arg>(In{2}) : std::nullopt;
    recipe.dispatches.push_back(PadInput(g, p, node.inputs[0].dtype, a, zero));
  }
  const Arg packed = Packed(Way::kPanels, m, node, caps, recipe);
  PanelLaunch launch = PanelsOf(g, p, elements);
  launch.most = std::max({MostOf(node), p.in_floats, g.groups * elements});
  AddBytePanels(launch, a, packed, 1, attrs.epilogue, node, caps, recipe);
  return recipe;
}

}  // namespace

Packing PackFilter(const ConvIntegerAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const TensorDesc desc = node.inputs[1].desc();
  const Way way = WayOf(attrs, node, caps);
  if (way == Way::kPlain) return {"dense", desc.bytes(), nullptr};
  return Pack(way, MatricesOf(attrs, desc.shape), desc, caps);
}

Packing PackWeights(const MatMulIntegerAttrs& attrs, const NodeView& node,
                    const Capabilities& caps) {
  const TensorDesc desc = node.inputs[1].desc();
  const Way way = WayOf(attrs, node, caps);
  if (way == Way::kPlain) return {"dense", desc.bytes(), nullptr};
  return Pack(way, MatricesOf(attrs, desc.shape), desc, caps);
}

bool InWords(const ConvIntegerAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  return node.inputs[1].constant && WayOf(attrs, node, caps) == Way::kTiles;
}
bool InWords(const MatMulIntegerAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  return node.inputs[1].constant && WayOf(attrs, node, caps) == Way::kTiles;
}

Result<std::optional<Recipe>> ByteConv(const ConvIntegerAttrs& attrs, const WindowGeometry& g,
                                       const NodeView& node, const Capabilities& caps) {
  const Way way = WayOf(attrs, node, caps);
  if (way == Way::kPlain || (way == Way::kTiles && !HasByteTiles(caps))) return kNothing;
  const Matrices m = MatricesOf(attrs, node.inputs[1].desc().shape);
  std::optional<Recipe> recipe;
  if (way == Way::kPanels) {
    recipe = PanelConv(attrs, g, m, node, caps);
  } else if (IsProduct(g)) {
    recipe = TiledMatMul(attrs.epilogue, ProductGeometry(g), m, 1, node, caps);
  } else {
    recipe = TiledConv(attrs, g, m, node, caps);
  }
  return recipe;
}

Result<std::optional<Recipe>> ByteMatMul(const MatMulIntegerAttrs& attrs, const MatMulGeometry& g,
                                         const NodeView& node, const Capabilities& caps) {
  constexpr int64_t kLeastRows = 4;  // of a product whose second operand has yet to be packed
  const Way way = WayOf(attrs, node, caps);
  if (way == Way::kPlain || g.k == 0 || (!node.inputs[1].constant && g.m < kLeastRows)) {
    return kNothing;
  }
  if (way == Way::kPanels && g.batch > kMostGroups) {
    return Unsupported("opencl: a product of ", g.batch, " matrices of bytes");
  }
  if (way == Way::kTiles && (g.batch > kMostGroups || !HasByteTiles(caps))) return kNothing;
  const Shape a = node.inputs[0].desc().shape;
  const int64_t rows_a = a.rank() < 2 ? 1 : a[a.rank() - (attrs.transpose_a ? 1 : 2)];
  const Matrices m = MatricesOf(attrs, node.inputs[1].desc().shape);
  std::optional<Recipe> recipe = way == Way::kPanels
                                     ? PanelMatMul(attrs.epilogue, g, m, rows_a, node, caps)
                                     : TiledMatMul(attrs.epilogue, g, m, rows_a, node, caps);
  return recipe;
}

}  // namespace oncilla::opencl
