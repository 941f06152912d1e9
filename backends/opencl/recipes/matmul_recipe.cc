// Products by panels, and what all products share.
#include "backends/opencl/recipes/matmul_recipe.h"

#include <algorithm>

#include "backends/opencl/recipes/choices.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
std::string SumType(DType dtype) {
  return IsInteger(dtype) ? "ulong" : dtype == DType::kF64 ? "double" : "float";
}

void AddEpilogue(const NodeView& node, const std::string& activation, DispatchBuilder& b) {
  b.Define("ACTIVATION", "ACT_" + activation);
  if (node.has_input(2)) b.Define("BIAS", "1").Arg("bias", In{2});
  if (node.has_input(3)) b.Define("RESIDUAL", "1").Arg("residual", In{3});
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

void AddBatch(const BatchAxes& batch, DispatchBuilder& b) {
  b.Define("AXES", StrCat(batch.count()));
  for (int i = 0; i < batch.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    const BatchAxes::Axis axis = at < batch.axes.size() ? batch.axes[at] : BatchAxes::Axis{1, 0, 0};
    b.Index({{StrCat("d", i), axis.size},
             {StrCat("a_step", i), axis.a_step},
             {StrCat("b_step", i), axis.b_step}});
  }
}

int64_t PackedElements(int64_t depth, int64_t columns, const Capabilities& caps) {
  return RoundUp(columns, PanelColumns(caps)) * depth;
}

bool IsCarried(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

void AddStored(DType dtype, DispatchBuilder& b) {
  if (dtype != DType::kF32) b.Define("T", TypeName(dtype));
}

namespace {

// Packs one matrix. T is float, or uint16_t for any 16-bit element.
template <class T>
void PackMatrix(const T* b, const PackSource& source, int64_t panel_columns, T* to) {
  for (int64_t first = 0; first < source.columns; first += panel_columns) {
    const int64_t count = std::min(panel_columns, source.columns - first);
    for (int64_t k = 0; k < source.depth; ++k, to += panel_columns) {
      const T* from = b + k * source.row_step + first * source.column_step;
      for (int64_t j = 0; j < count; ++j) to[j] = from[j * source.column_step];
      std::fill(to + count, to + panel_columns, T());
    }
  }
}

}  // namespace

Packing PackedPanels(const TensorDesc& desc, const PackSource& from, std::string_view mark,
                     const Capabilities& caps) {
  const int64_t width = PanelColumns(caps);
  const int64_t elements = PackedElements(from.depth, from.columns, caps);
  const auto pack = [=, dtype = desc.dtype](const Tensor& constant, std::span<std::byte> to) {
    const auto all = [&]<class T>(T* panels) {
      for (int64_t i = 0; i < from.count; ++i) {
        PackMatrix(constant.As<T>().data() + i * from.matrix_step, from, width,
                   panels + i * elements);
      }
    };
    if (dtype == DType::kF32) {
      all(reinterpret_cast<float*>(to.data()));
    } else {
      all(reinterpret_cast<uint16_t*>(to.data()));
    }
    return Status();
  };
  return {StrCat("panels", width, mark), from.count * elements * BytesOf(desc.dtype), pack};
}

namespace {

// Rows of a tile, and tiles of a work-item.
struct PanelPlan {
  int64_t rows, per_item;
  std::string name() const { return StrCat("ROWS=", rows, " TILES=", per_item); }
};

int64_t Lines(const ConvProduct& p) { return p.line_count[0] * p.line_count[1] * p.line_count[2]; }
int64_t Tiles(const ConvProduct& p, int64_t rows) { return DivideUp(p.line_rows, rows) * Lines(p); }

PanelPlan GenericPanels(const PanelLaunch& launch, int64_t rows, const Capabilities& caps) {
  const ConvProduct& p = launch.shape;
  const Tuning& tuning = TuningOf(caps);
  const int64_t tiles = Tiles(p, rows);
  const double flops = 2.0 * static_cast<double>(rows * PanelColumns(caps) * p.depth());
  const auto worth = static_cast<int64_t>(
      std::clamp(tuning.panel_flops / std::max(flops, 1.0), 1.0, static_cast<double>(tiles)));
  // With few work-items, some cores would be idle at the end.
  const int64_t spread = tiles * DivideUp(p.columns, PanelColumns(caps)) * launch.products /
                         (tuning.panel_items_per_unit * caps.compute_units);
  return {rows, std::max<int64_t>(1, std::min(worth, spread))};
}

// The sizes that the kernel's VARIANT lines name, and those divisions of tiles among work-items
// that leave every core some work.
std::vector<PanelPlan> AllPanels(const PanelLaunch& launch, const Capabilities& caps) {
  std::vector<PanelPlan> plans;
  const ConvProduct& p = launch.shape;
  const int64_t panels = DivideUp(p.columns, PanelColumns(caps)) * launch.products;
  for (const int64_t rows : {1, 4, 6, 8}) {
    // Rows beyond the end of a line are computed for nothing.
    const bool idle_rows = rows > 4 ? rows >= 2 * p.line_rows : rows > 1 && p.line_rows == 1;
    if (rows > PanelOf(caps).most_rows || idle_rows) continue;
    const PanelPlan generic = GenericPanels(launch, rows, caps);
    plans.push_back(generic);
    const int64_t tiles = Tiles(p, rows);
    for (int64_t each = 1; each <= tiles; each *= 2) {
      const bool idle = DivideUp(tiles, each) * panels < caps.compute_units;
      if (each > 1 && idle) break;
      if (each != generic.per_item) plans.push_back({rows, each});
    }
  }
  return plans;
}

std::string SizesText(const PanelLaunch& launch) {
  const ConvProduct& p = launch.shape;
  const int64_t lines = Lines(p), taps = p.tap_count[0] * p.tap_count[1] * p.tap_count[2];
  std::string text = StrCat(p.line_rows, "x", p.columns, "x", p.run);
  if (lines > 1) text = StrCat(lines, "*", text);
  if (taps > 1) text += StrCat("*", taps);
  if (launch.products > 1) text += StrCat(" *", launch.products);
  return text;
}

}  // namespace

void AddPanels(const PanelLaunch& launch, Arg a, Arg b, const NodeView& node,
               const std::string& activation, const Capabilities& caps, Recipe& recipe) {
  const ConvProduct& p = launch.shape;
  const PanelShape& panel = PanelOf(caps);
  const int64_t usual = p.line_rows == 1 ? 1 : p.line_rows <= 4 ? 4 : panel.most_rows;
  const PanelPlan plan = Choose(
      LayerName("panels", SizesText(launch), node, activation), GenericPanels(launch, usual, caps),
      [&] { return AllPanels(launch, caps); }, caps, recipe.decision);
  const int64_t rows = plan.rows, per_item = plan.per_item;
  const int64_t per_line = DivideUp(p.line_rows, rows), tiles = Tiles(p, rows);
  const int64_t panels = DivideUp(p.columns, PanelColumns(caps));

  const IndexType index(launch.most);
  DispatchBuilder d(cl::kMatmulPanels, "panels", index);
  d.Define({{"V", StrCat(panel.vector)}, {"ROWS", StrCat(rows)}, {"IDX", index.name()}});
  AddStored(node.inputs[0].dtype, d);
  d.Arg("a", a).Arg("b", b);
  if (launch.partial) d.Define("PARTIAL", "1");
  if (launch.sums.has_value()) {
    d.Define("ACTIVATION", "ACT_none").Arg("y", *launch.sums);
  } else {
    AddEpilogue(node, activation, d);
    d.Arg("y", Out{0});
  }
  d.Index({{"columns", p.columns}, {"row_y", launch.row_y}, {"y_step", launch.y_step}});
  d.Index({{"bias_step", launch.bias_step}, {"tiles", tiles}});
  d.Index({{"tiles_per_item", per_item}, {"tiles_per_line", per_line}});
  d.Index({{"line_rows", p.line_rows}, {"lines1", p.line_count[1]}, {"lines2", p.line_count[2]}});
  for (size_t i = 0; i < 3; ++i) d.Index(StrCat("line_step", i), p.line_step[i]);
  d.Index({{"row_step", p.row_step}, {"run_step", launch.run_step}, {"run", p.run}});
  for (size_t i = 0; i < 3; ++i) d.Index(StrCat("taps", i), p.tap_count[i]);
  for (size_t i = 0; i < 3; ++i) d.Index(StrCat("tap_step", i), p.tap_step[i]);
  AddBatch(launch.batch, d);
  d.Groups({DivideUp(tiles, per_item), panels, launch.products});
  d.Loop(std::max({p.run, per_item, p.tap_count[0], p.tap_count[1], p.tap_count[2]}));
  d.AddTo(recipe);
}

Dispatch MakePack(Arg from, Arg to, DType dtype, const PackSource& source,
                  const Capabilities& caps) {
  const int64_t packed = PackedElements(source.depth, source.columns, caps);
  const IndexType index(
      SaturatingMul(source.count, std::max(packed, SaturatingMul(source.depth, source.columns))));
  DispatchBuilder b(cl::kMatmulPanels, "pack", index);
  b.Define({{"V", StrCat(PanelOf(caps).vector)},
            {"ROWS", "1"},
            {"IDX", index.name()},
            {"ACTIVATION", "ACT_none"},
            {"AXES", "0"}});
  AddStored(dtype, b);
  b.Arg("b", from).Arg("packed", to).Index({{"n", source.columns}, {"k", source.depth}});
  b.Index({{"b_row", source.row_step}, {"b_col", source.column_step}});
  b.Index("b_matrix", source.matrix_step);
  b.Groups({source.depth, DivideUp(source.columns, PanelColumns(caps)), source.count});
  return b.Loop(PanelColumns(caps)).Build();
}

}  // namespace oncilla::opencl
