// Recipes of pools: one work-item per vector of channels and several pixels of a row, or one per
// element.
#include "engine/ops/nn/pool.h"

#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/tuning.h"
#include "backends/opencl/recipes/window_args.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// The lowest value of a dtype, as a token.
std::string Least(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return "SCHAR_MIN";
    case DType::kI16:
      return "SHRT_MIN";
    case DType::kI32:
      return "INT_MIN";
    case DType::kI64:
      return "LONG_MIN";
    default:
      return IsUnsigned(dtype) ? "0" : "-INFINITY";
  }
}

using Operands = std::initializer_list<std::pair<std::string, Arg>>;

// Adds the arguments that all kernels over windows share, up to WINDOW_PARAMS. `defines` ends with
// the index type.
DispatchBuilder Begin(const Source& source, const char* entry, Defines defines, Operands operands,
                      const WindowGeometry& g, const NodeView& node) {
  const int64_t elements = node.outputs[0].desc().elements();
  const IndexType index(std::max(node.inputs[0].desc().elements(), elements));
  DispatchBuilder b(source, entry, index);
  for (auto& [name, value] : defines) b.Define(std::move(name), std::move(value));
  b.Define("IDX", index.name()).Arg(operands);
  b.Index("total", elements).Int("channels", g.in_channels);
  AddWindow(g, b);
  return b;
}

// The same for a pool, whose own defines come first.
DispatchBuilder BeginPool(const char* entry, Defines defines, Operands operands,
                          const WindowGeometry& g, const NodeView& node, const Capabilities& caps) {
  const DType dtype = node.inputs[0].dtype;
  defines.insert(defines.end(), {{"T", TypeName(dtype)}, {"WIDE", CarrierType(CarrierOf(dtype))}});
  DispatchBuilder b = Begin(cl::kPoolWindow, entry, std::move(defines), operands, g, node);
  b.Items(node.outputs[0].desc().elements(), caps.Group(TuningOf(caps).loop_group));
  b.Loop(LongestAxis(g));
  return b;
}

// The window over x, with its sizes checked.
Result<WindowGeometry> GeometryOf(const PoolWindow& window, const NodeView& node) {
  ONCILLA_ASSIGN(const WindowGeometry g, PoolGeometry(window, node));
  ONCILLA_TRY(CheckSizes(g));
  return g;
}
bool IsEmpty(const NodeView& node) { return node.outputs[0].desc().elements() == 0; }

// Whether the pool uses vectors of channels: pools of floats, and maxima of bytes, without indices.
// On CPU devices a work-item computes whole rows, on GPUs a pixel.
bool TakesVectors(const NodeView& node) {
  return node.inputs[0].dtype == DType::kF32 || node.inputs[0].dtype == DType::kF16 ||
         node.inputs[0].dtype == DType::kBF16;
}
DispatchBuilder BeginVectors(const char* entry, const WindowGeometry& g, const NodeView& node,
                             const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  int64_t vector = tuning.lines ? PanelOf(caps).vector : 4;
  while (g.in_channels % vector != 0) vector /= 2;
  const int64_t vectors = g.in_channels / vector, width = g.axis[2].out;
  const int64_t stretch = tuning.lines ? width : 1, stretches = DivideUp(width, stretch);
  const int64_t items = vectors * stretches * g.batch * g.axis[0].out * g.axis[1].out;
  const IndexType index(
      std::max(node.inputs[0].desc().elements(), node.outputs[0].desc().elements()));
  DispatchBuilder b(cl::kPoolVectors, entry, index);
  b.Define({{"T", TypeName(node.inputs[0].dtype)}, {"VEC", StrCat(vector)}, {"IDX", index.name()}});
  // Small windows are unrolled and read at once.
  const int64_t rows = g.axis[1].kernel, columns = g.axis[2].kernel;
  if ((rows == 2 || rows == 3) && rows == columns) {
    b.Define({{"ROWS", StrCat(rows)}, {"COLUMNS", StrCat(columns)}});
  }
  b.Arg("x", In{0}).Arg("y", Out{0}).Index("items", items);
  b.Int({{"vectors", vectors}, {"stretches", stretches}, {"stretch", stretch}});
  b.Int("channels", g.in_channels);
  AddWindow(g, b);
  b.Items(items, tuning.lines ? 1 : caps.Group(tuning.loop_group));
  b.Loop(std::max(LongestAxis(g), stretch));
  return b;
}

Result<Recipe> MaxPool(const MaxPoolAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, GeometryOf(attrs, node));
  if (IsEmpty(node)) return Recipe();
  const DType dtype = node.inputs[0].dtype;
  const bool bytes = dtype == DType::kU8 || dtype == DType::kI8;
  if (!attrs.with_indices && (bytes || TakesVectors(node))) {
    return BeginVectors("max_pool_vectors", g, node, caps).Alone();
  }
  Defines defines = {{"LEAST", Least(dtype)}};
  if (attrs.with_indices) defines.emplace_back("INDICES", "1");
  if (attrs.index_order == "nchw") defines.emplace_back("CHANNELS_FIRST", "1");
  const Operands both = {{"x", In{0}}, {"y", Out{0}}, {"index", Out{1}}};
  const Operands one = {{"x", In{0}}, {"y", Out{0}}};
  return BeginPool("max_pool", std::move(defines), attrs.with_indices ? both : one, g, node, caps)
      .Alone();
}

Result<Recipe> AveragePool(const AveragePoolAttrs& attrs, const NodeView& node,
                           const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, GeometryOf(attrs, node));
  if (IsEmpty(node)) return Recipe();
  DispatchBuilder b = TakesVectors(node) ? BeginVectors("average_pool_vectors", g, node, caps)
                                         : BeginPool("average_pool", {},
                                                     {{"x", In{0}}, {"y", Out{0}}}, g, node, caps);
  if (attrs.count_pads) b.Define("COUNT_PADS", "1");
  for (size_t i = 0; i < 3; ++i) b.Int(StrCat("end", i), g.axis[i].in + g.axis[i].pad_end);
  return b.Alone();
}

Result<Recipe> LpPool(const LpPoolAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, GeometryOf(attrs, node));
  if (IsEmpty(node)) return Recipe();
  DispatchBuilder b = BeginPool("lp_pool", {}, {{"x", In{0}}, {"y", Out{0}}}, g, node, caps);
  return b.Float("p", static_cast<double>(attrs.p)).Alone();
}

// Copies channels-last windows of x to the rows of y.
Result<Recipe> ExtractPatches(const ExtractPatchesAttrs& attrs, const NodeView& node,
                              const Capabilities& caps) {
  ONCILLA_ASSIGN(const WindowGeometry g, GeometryOf(attrs, node));
  if (IsEmpty(node)) return Recipe();
  DispatchBuilder b = Begin(cl::kPoolPatches, "extract_patches",
                            {{"T", std::string(MoveType(node.inputs[0].dtype))}},
                            {{"x", In{0}}, {"y", Out{0}}}, g, node);
  return b.Flat(node.outputs[0].desc().elements(), caps).Alone();
}

// Integers are summed in their own type, where they wrap.
std::string OwnType(DType dtype) {
  if (IsFloat(dtype)) return CarrierType(CarrierOf(dtype));
  const std::string size = BytesOf(dtype) == 1   ? "char"
                           : BytesOf(dtype) == 2 ? "short"
                           : BytesOf(dtype) == 4 ? "int"
                                                 : "long";
  return IsUnsigned(dtype) ? "u" + size : size;
}

Result<Recipe> Dilation(const DilationAttrs& attrs, const NodeView& node,
                        const Capabilities& caps) {
  PoolWindow window = attrs;
  const Shape filter = node.inputs[1].shape.ToShape();
  window.kernel.assign(filter.begin(), filter.end() - 1);
  ONCILLA_ASSIGN(const WindowGeometry g, GeometryOf(window, node));
  if (IsEmpty(node)) return Recipe();
  const DType dtype = node.inputs[0].dtype;
  DispatchBuilder b = Begin(cl::kPoolPatches, "dilation",
                            {{"DILATION", "1"},
                             {"T", TypeName(dtype)},
                             {"WIDE", OwnType(dtype)},
                             {"LEAST", Least(dtype)}},
                            {{"x", In{0}}, {"w", In{1}}, {"y", Out{0}}}, g, node);
  return b.Flat(node.outputs[0].desc().elements(), caps).Loop(g.taps()).Alone();
}

const KernelRow kRows[] = {
    Row<MaxPool>("MaxPool", kNumbers),   Row<AveragePool>("AveragePool", kFloats),
    Row<LpPool>("LpPool", kFloats),      Row<ExtractPatches>("ExtractPatches", kFixedSize),
    Row<Dilation>("Dilation", kNumbers),
};

}  // namespace

std::span<const KernelRow> PoolKernels() { return kRows; }

}  // namespace oncilla::opencl
