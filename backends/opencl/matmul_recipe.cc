// Choosing tiles and panels for products.
#include "backends/opencl/matmul_recipe.h"

#include <algorithm>
#include <limits>

#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// A work-item of `panels` should be worth some microseconds of one core.
constexpr double kFlopsPerItem = 2e5;

}  // namespace

std::string IndexType(int64_t most) {
  return most > std::numeric_limits<int32_t>::max() / 2 ? "long" : "int";
}

Arg Index(int64_t value, bool wide) {
  if (wide) return value;
  return static_cast<int32_t>(value);
}

std::string SumType(DType dtype) {
  return IsInteger(dtype) ? "ulong" : dtype == DType::kF64 ? "double" : "float";
}

void AddEpilogue(const NodeView& node, const std::string& activation, Dispatch& d) {
  d.defines.emplace_back("ACTIVATION", "ACT_" + activation);
  if (node.has_input(2)) {
    d.defines.emplace_back("BIAS", "1");
    d.args.push_back(In{2});
  }
  if (node.has_input(3)) {
    d.defines.emplace_back("RESIDUAL", "1");
    d.args.push_back(In{3});
  }
}

BatchAxes BatchOf(const MatMulGeometry& g) {
  BatchAxes batch;
  for (int i = g.batch_dims.rank() - 1; i >= 0; --i) {
    const BatchAxes::Axis axis{g.batch_dims[i], g.a_steps[i], g.b_steps[i]};
    if (axis.size == 1) continue;
    if (!batch.axes.empty()) {
      BatchAxes::Axis& inner = batch.axes.back();
      if (axis.a_step == inner.a_step * inner.size && axis.b_step == inner.b_step * inner.size) {
        inner.size *= axis.size;
        continue;
      }
    }
    batch.axes.push_back(axis);
  }
  return batch;
}

void AddBatch(const BatchAxes& batch, bool wide, Dispatch& d) {
  d.defines.emplace_back("AXES", StrCat(batch.count()));
  for (int i = 0; i < batch.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    const BatchAxes::Axis axis = at < batch.axes.size() ? batch.axes[at] : BatchAxes::Axis{1, 0, 0};
    d.args.push_back(Index(axis.size, wide));
    d.args.push_back(Index(axis.a_step, wide));
    d.args.push_back(Index(axis.b_step, wide));
  }
}

TileChoice ChooseTile(int64_t rows, int64_t columns, int64_t products, const Capabilities& caps) {
  constexpr TileChoice kTiles[] = {{16, 16, 8, 8}, {16, 16, 8, 4}, {16, 16, 4, 4}, {16, 16, 2, 4},
                                   {16, 16, 2, 2}, {8, 8, 2, 2},   {4, 4, 2, 2, 8}};
  TileChoice best;
  for (const TileChoice& tile : kTiles) {
    if (tile.threads_x * tile.threads_y > caps.max_work_group ||
        tile.local_bytes() > caps.local_memory) {
      continue;
    }
    best = tile;
    const int64_t groups = SaturatingMul(
        products, SaturatingMul(DivideUp(rows, tile.rows()), DivideUp(columns, tile.columns())));
    // Enough groups to keep every compute unit busy, and not mostly beyond the edges.
    const bool fits = rows * 2 > tile.rows() && columns * 2 > tile.columns();
    if (fits && groups >= 2 * caps.compute_units) break;
  }
  return best;
}

void AddTile(const TileChoice& tile, Dispatch& d) {
  d.defines.insert(d.defines.end(), {{"TX", StrCat(tile.threads_x)},
                                     {"TY", StrCat(tile.threads_y)},
                                     {"WM", StrCat(tile.per_item_m)},
                                     {"WN", StrCat(tile.per_item_n)},
                                     {"TILE_K", StrCat(tile.slice)}});
  d.args.push_back(Local{tile.local_bytes()});
  d.local = {tile.threads_x, tile.threads_y, 1};
}

int64_t PanelVector(const Capabilities& caps) {
  return caps.vector_width >= 16 ? 16 : caps.vector_width >= 8 ? 8 : 4;
}

int64_t PackedElements(int64_t depth, int64_t columns, const Capabilities& caps) {
  return RoundUp(columns, PanelColumns(caps)) * depth;
}

bool IsCarried(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

void AddStored(DType dtype, Dispatch& d) {
  if (dtype != DType::kF32) d.defines.emplace_back("T", std::string(Name(dtype)));
}

template <class T>
void PackPanels(const T* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns,
                int64_t panel_columns, T* to) {
  for (int64_t first = 0; first < columns; first += panel_columns) {
    const int64_t count = std::min(panel_columns, columns - first);
    for (int64_t k = 0; k < depth; ++k, to += panel_columns) {
      const T* from = b + k * row_step + first * column_step;
      for (int64_t j = 0; j < count; ++j) to[j] = from[j * column_step];
      std::fill(to + count, to + panel_columns, T());
    }
  }
}
template void PackPanels(const float*, int64_t, int64_t, int64_t, int64_t, int64_t, float*);
template void PackPanels(const uint16_t*, int64_t, int64_t, int64_t, int64_t, int64_t, uint16_t*);

Dispatch MakePanels(const PanelLaunch& launch, Arg a, Arg b, const NodeView& node,
                    const std::string& activation, const Capabilities& caps) {
  const ConvProduct& p = launch.shape;
  const int64_t vector = PanelVector(caps);
  // As many rows as leave the registers room for two vectors of B and one of A.
  const int64_t most_rows = vector == 16 ? 8 : vector == 8 ? 6 : 4;
  const int64_t rows = p.line_rows == 1 ? 1 : p.line_rows <= 4 ? 4 : most_rows;
  const int64_t per_line = DivideUp(p.line_rows, rows);
  const int64_t tiles = per_line * p.line_count[0] * p.line_count[1] * p.line_count[2];
  const int64_t panels = DivideUp(p.columns, PanelColumns(caps));
  const double flops = 2.0 * static_cast<double>(rows * PanelColumns(caps) * p.depth());
  const auto worth = static_cast<int64_t>(
      std::clamp(kFlopsPerItem / std::max(flops, 1.0), 1.0, static_cast<double>(tiles)));
  // Few items would leave cores idle at the end.
  const int64_t spread = tiles * panels * launch.products / (8 * caps.compute_units);
  const int64_t per_item = std::max<int64_t>(1, std::min(worth, spread));

  Dispatch d{.source = &cl::kMatmulPanels, .entry = "panels"};
  const std::string type = IndexType(launch.most);
  const bool wide = type == "long";
  d.defines = {{"V", StrCat(vector)}, {"ROWS", StrCat(rows)}, {"IDX", type}};
  AddStored(node.inputs[0].dtype, d);
  d.args = {a, b};
  AddEpilogue(node, activation, d);
  d.args.push_back(Out{0});
  for (const int64_t value :
       {p.columns,      launch.row_y,   launch.y_step,  launch.bias_step, tiles,
        per_item,       per_line,       p.line_rows,    p.line_count[1],  p.line_count[2],
        p.line_step[0], p.line_step[1], p.line_step[2], p.row_step,       launch.run_step,
        p.run,          p.tap_count[0], p.tap_count[1], p.tap_count[2],   p.tap_step[0],
        p.tap_step[1],  p.tap_step[2]}) {
    d.args.push_back(Index(value, wide));
  }
  AddBatch(launch.batch, wide, d);
  d.global = {DivideUp(tiles, per_item), panels, launch.products};
  d.longest_loop = std::max({p.run, per_item, p.tap_count[0], p.tap_count[1], p.tap_count[2]});
  return d;
}

Dispatch MakePack(Arg from, Arg to, DType dtype, int64_t matrices, int64_t b_matrix,
                  int64_t row_step, int64_t column_step, int64_t depth, int64_t columns,
                  const Capabilities& caps) {
  Dispatch d{.source = &cl::kMatmulPanels, .entry = "pack"};
  const int64_t packed = PackedElements(depth, columns, caps);
  const std::string type =
      IndexType(SaturatingMul(matrices, std::max(packed, SaturatingMul(depth, columns))));
  const bool wide = type == "long";
  d.defines = {{"V", StrCat(PanelVector(caps))},
               {"ROWS", "1"},
               {"IDX", type},
               {"ACTIVATION", "ACT_none"},
               {"AXES", "0"}};
  AddStored(dtype, d);
  d.args = {from,
            to,
            Index(columns, wide),
            Index(depth, wide),
            Index(row_step, wide),
            Index(column_step, wide),
            Index(b_matrix, wide)};
  d.global = {depth, DivideUp(columns, PanelColumns(caps)), matrices};
  d.longest_loop = PanelColumns(caps);
  return d;
}

}  // namespace oncilla::opencl
