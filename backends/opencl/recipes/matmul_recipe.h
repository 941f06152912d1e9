// Pieces of recipes that matrix products and convolutions share.
#pragma once

#include <optional>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/tuning.h"
#include "engine/ops/math/matmul.h"
#include "engine/ops/nn/conv_product.h"

namespace oncilla::opencl {

// The type that a dtype's sums are computed in by portable kernels: float, double or ulong.
std::string SumType(DType dtype);

// The optional operands of a product, as defines and arguments: BIAS, RESIDUAL, ACTIVATION.
void AddEpilogue(const NodeView& node, const std::string& activation, DispatchBuilder& b);

// Batch axes in the form that kernels expect (common/batch.clh): merged, the innermost first.
struct BatchAxes {
  struct Axis {
    int64_t size, a_step, b_step;
  };
  std::vector<Axis> axes;
  // AXES: 0, 1, 2 or 6; unused axes have size one.
  int count() const { return axes.size() <= 2 ? static_cast<int>(axes.size()) : 6; }
};
BatchAxes BatchOf(const MatMulGeometry& g);
void AddBatch(const BatchAxes& batch, DispatchBuilder& b);

// The panels of matmul/panels.cl on a device that uses them.
inline int64_t PanelColumns(const Capabilities& caps) { return 2 * PanelOf(caps).vector; }
int64_t PackedElements(int64_t depth, int64_t columns, const Capabilities& caps);
// The matrices of a constant of which element (k, n) stands at row_step * k + column_step * n.
struct PackSource {
  int64_t count, matrix_step, row_step, column_step, depth, columns;
};
// The layout of such a constant in panels; `mark` is part of the layout's name.
Packing PackedPanels(const TensorDesc& desc, const PackSource& from, std::string_view mark,
                     const Capabilities& caps);
// Dtypes that panels.cl and depthwise.cl take: sums are of float.
bool IsCarried(DType dtype);
// Adds their define, which is absent for f32.
void AddStored(DType dtype, DispatchBuilder& b);

// One launch of `panels`: products of `shape` (row and run strides are those of a), with `batch`;
// `b_step`s count packed elements.
struct PanelLaunch {
  ConvProduct shape;
  int64_t run_step = 1;
  int64_t row_y = 0, y_step = 0, bias_step = 0;
  BatchAxes batch;
  int64_t products = 1;
  int64_t most = 0;  // the largest index into any operand
  // The destination of the sums, instead of results; each run is summed separately if `partial` is
  // set.
  std::optional<Scratch> sums = {};
  bool partial = false;
};
// Rows of a tile, and tiles of a work-item.
struct PanelPlan {
  int64_t rows, per_item;
  std::string name() const { return StrCat("ROWS=", rows, " TILES=", per_item); }
};
PanelPlan UsualPanels(const PanelLaunch& launch, const Capabilities& caps);
// The launches of a product of matrices, and of a convolution with a packed filter that has so many
// elements per group. Neither sets `most`; the first sets no strides of packed matrices.
PanelLaunch PanelsOf(const MatMulGeometry& g);
PanelLaunch PanelsOf(const WindowGeometry& g, const ConvProduct& p, int64_t packed_elements);
// Adds the arguments from `columns` to the batch, and the groups.
void AddPanelSteps(const PanelLaunch& launch, const PanelPlan& plan, const Capabilities& caps,
                   DispatchBuilder& b);
void AddPanels(const PanelLaunch& launch, Arg a, Arg b, const NodeView& node,
               const std::string& activation, const Capabilities& caps, Recipe& recipe);
// Copies x into `to` and adds the padding around it: zeros, or a zero point.
Dispatch PadInput(const WindowGeometry& g, const ConvProduct& p, DType dtype, const Arg& to,
                  const std::optional<Arg>& zero = {});
// Whether a convolution is a plain product: a single tap that reads every pixel.
bool IsProduct(const WindowGeometry& g);
MatMulGeometry ProductGeometry(const WindowGeometry& g);
// The launch that packs on the device.
Dispatch MakePack(Arg from, Arg to, DType dtype, const PackSource& source,
                  const Capabilities& caps);

}  // namespace oncilla::opencl
