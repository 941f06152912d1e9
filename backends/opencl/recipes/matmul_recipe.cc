// Products by panels, and functions that all products share.
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

// Packs one matrix. T is float, or uint16_t or uint8_t for any element of that size.
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
    } else if (BytesOf(dtype) == 1) {
      all(reinterpret_cast<uint8_t*>(to.data()));
    } else {
      all(reinterpret_cast<uint16_t*>(to.data()));
    }
    return Status();
  };
  return {StrCat("panels", width, mark), from.count * elements * BytesOf(desc.dtype), pack};
}

namespace {

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

// The panel sizes that the kernel's VARIANT lines name, with those divisions of tiles among
// work-items that leave some work for every core.
std::vector<PanelPlan> AllPanels(const PanelLaunch& launch, const Capabilities& caps) {
  std::vector<PanelPlan> plans;
  const ConvProduct& p = launch.shape;
  const int64_t panels = DivideUp(p.columns, PanelColumns(caps)) * launch.products;
  for (const int64_t rows : {1, 4, 6, 8}) {
    // Rows past the end of a line would be computed in vain.
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

PanelPlan UsualPanels(const PanelLaunch& launch, const Capabilities& caps) {
  const int64_t rows = launch.shape.line_rows;
  return GenericPanels(launch, rows == 1 ? 1 : rows <= 4 ? 4 : PanelOf(caps).most_rows, caps);
}

PanelLaunch PanelsOf(const MatMulGeometry& g) {
  PanelLaunch launch;
  launch.shape.run = g.k;
  launch.shape.tap_count = {1, 1, 1};
  launch.shape.tap_step = {0, 0, 0};
  launch.shape.line_rows = g.m;
  launch.shape.row_step = g.a_row;
  launch.shape.line_count = {1, 1, 1};
  launch.shape.line_step = {0, 0, 0};
  launch.shape.columns = g.n;
  launch.run_step = g.a_col;
  launch.row_y = g.n;
  launch.y_step = g.m * g.n;
  launch.batch = BatchOf(g);
  launch.products = g.batch;
  return launch;
}

PanelLaunch PanelsOf(const WindowGeometry& g, const ConvProduct& p, int64_t packed_elements) {
  PanelLaunch launch;
  launch.shape = p;
  launch.row_y = g.out_channels;
  launch.y_step = launch.bias_step = p.columns;
  if (g.groups > 1) {
    launch.batch.axes = {{g.groups, g.in_channels / g.groups, packed_elements}};
  }
  launch.products = g.groups;
  return launch;
}

void AddPanelSteps(const PanelLaunch& launch, const PanelPlan& plan, const Capabilities& caps,
                   DispatchBuilder& b) {
  const ConvProduct& p = launch.shape;
  const int64_t tiles = Tiles(p, plan.rows), panels = DivideUp(p.columns, PanelColumns(caps));
  b.Index({{"columns", p.columns}, {"row_y", launch.row_y}, {"y_step", launch.y_step}});
  b.Index({{"bias_step", launch.bias_step}, {"tiles", tiles}});
  b.Index("tiles_per_item", plan.per_item);
  b.Index({{"tiles_per_line", DivideUp(p.line_rows, plan.rows)}, {"line_rows", p.line_rows}});
  b.Index({{"lines1", p.line_count[1]}, {"lines2", p.line_count[2]}});
  for (size_t i = 0; i < 3; ++i) b.Index(StrCat("line_step", i), p.line_step[i]);
  b.Index({{"row_step", p.row_step}, {"run_step", launch.run_step}, {"run", p.run}});
  for (size_t i = 0; i < 3; ++i) b.Index(StrCat("taps", i), p.tap_count[i]);
  for (size_t i = 0; i < 3; ++i) b.Index(StrCat("tap_step", i), p.tap_step[i]);
  AddBatch(launch.batch, b);
  b.Groups({DivideUp(tiles, plan.per_item), panels, launch.products});
  b.Loop(std::max({p.run, plan.per_item, p.tap_count[0], p.tap_count[1], p.tap_count[2]}));
}

void AddPanels(const PanelLaunch& launch, Arg a, Arg b, const NodeView& node,
               const std::string& activation, const Capabilities& caps, Recipe& recipe) {
  const PanelPlan plan = Choose(
      LayerName("panels", SizesText(launch), node, activation), UsualPanels(launch, caps),
      [&] { return AllPanels(launch, caps); }, caps, recipe.decision);
  const IndexType index(launch.most);
  DispatchBuilder d(cl::kMatmulPanels, "panels", index);
  d.Define(
      {{"V", StrCat(PanelOf(caps).vector)}, {"ROWS", StrCat(plan.rows)}, {"IDX", index.name()}});
  AddStored(node.inputs[0].dtype, d);
  d.Arg("a", a).Arg("b", b);
  if (launch.partial) d.Define("PARTIAL", "1");
  if (launch.sums.has_value()) {
    d.Define("ACTIVATION", "ACT_none").Arg("y", *launch.sums);
  } else {
    AddEpilogue(node, activation, d);
    d.Arg("y", Out{0});
  }
  AddPanelSteps(launch, plan, caps, d);
  d.AddTo(recipe);
}

Dispatch PadInput(const WindowGeometry& g, const ConvProduct& p, DType dtype, const Arg& to,
                  const std::optional<Arg>& zero) {
  DispatchBuilder b(cl::kConvPad, "pad");
  b.Define("IDX", IndexType(p.in_floats).name());
  AddStored(dtype, b);
  b.Arg("x", In{0}).Arg("y", to);
  if (zero.has_value()) b.Define("ZERO", "1").Arg("zero", *zero);
  b.Int("channels", g.in_channels);
  for (size_t i = 0; i < 3; ++i) b.Int(StrCat("in", i), g.axis[i].in);
  for (size_t i = 0; i < 3; ++i) b.Int(StrCat("size", i), p.size[i]);
  for (size_t i = 0; i < 3; ++i) b.Int(StrCat("before", i), p.before[i]);
  b.Groups({g.batch * p.size[0] * p.size[1], 1, 1});
  return b.Loop(p.size[2] * g.in_channels).Build();
}

bool IsProduct(const WindowGeometry& g) {
  return g.groups == 1 && std::ranges::all_of(g.axis, [](const WindowAxis& a) {
           return a.kernel == 1 && a.stride == 1 && a.pad_begin == 0 && a.in == a.out;
         });
}

// The matrix product that IsProduct() has found.
MatMulGeometry ProductGeometry(const WindowGeometry& g) {
  MatMulGeometry product;
  product.m = g.batch * g.out_pixels();
  product.n = product.b_row = g.out_channels;
  product.k = product.a_row = g.in_channels;
  product.a_col = product.b_col = 1;
  return product;
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
