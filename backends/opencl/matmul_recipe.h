// Pieces of recipes that matrix products and convolutions share.
#pragma once

#include "backends/opencl/recipe.h"
#include "engine/ops/conv_product.h"
#include "engine/ops/matmul.h"

namespace oncilla::opencl {

// "int" or "long": what indices up to `most` are computed in, with room for a work-group beyond.
std::string IndexType(int64_t most);
// An argument of that type.
Arg Index(int64_t value, bool wide);

// The type that a dtype's sums are computed in by portable kernels: float, double or ulong.
std::string SumType(DType dtype);

// The optional operands of a product, as defines and arguments: BIAS, RESIDUAL, ACTIVATION.
void AddEpilogue(const NodeView& node, const std::string& activation, Dispatch& d);

// Batch axes as kernels take them (common/batch.clh): merged, the innermost first.
struct BatchAxes {
  struct Axis {
    int64_t size, a_step, b_step;
  };
  std::vector<Axis> axes;
  // AXES: 0, 1, 2 or 6; axes that are too many have size one.
  int count() const { return axes.size() <= 2 ? static_cast<int>(axes.size()) : 6; }
};
BatchAxes BatchOf(const MatMulGeometry& g);
void AddBatch(const BatchAxes& batch, bool wide, Dispatch& d);

// A tile of a product in local memory (common/tile.clh).
struct TileChoice {
  int64_t threads_x = 0, threads_y = 0, per_item_m = 0, per_item_n = 0, slice = 16;
  int64_t rows() const { return threads_y * per_item_m; }
  int64_t columns() const { return threads_x * per_item_n; }
  int64_t local_bytes() const { return slice * (rows() + 1 + columns()) * 4; }
};
// The largest tile that fits the device and gives it enough groups; threads_x == 0 when none fits.
TileChoice ChooseTile(int64_t rows, int64_t columns, int64_t products, const Capabilities& caps);
void AddTile(const TileChoice& tile, Dispatch& d);

// The panels of matmul/panels.cl on a device that wants them.
int64_t PanelVector(const Capabilities& caps);  // V
inline int64_t PanelColumns(const Capabilities& caps) { return 2 * PanelVector(caps); }
int64_t PackedElements(int64_t depth, int64_t columns, const Capabilities& caps);
// What `write` of a Packing does with one matrix; element (k, n) stands at row_step * k +
// column_step * n. T: float, or uint16_t for any 16-bit element.
template <class T>
void PackPanels(const T* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns,
                int64_t panel_columns, T* to);
// Dtypes that panels.cl and depthwise.cl take: sums are of float.
bool IsCarried(DType dtype);
// Their define, which f32 goes without.
void AddStored(DType dtype, Dispatch& d);

// One launch of `panels`: products of `shape` (row and run steps are those of a), as many as
// `batch` says, `b_step`s of which count packed elements.
struct PanelLaunch {
  ConvProduct shape;
  int64_t run_step = 1;
  int64_t row_y = 0, y_step = 0, bias_step = 0;
  BatchAxes batch;
  int64_t products = 1;
  int64_t most = 0;  // the largest index into any operand
};
Dispatch MakePanels(const PanelLaunch& launch, Arg a, Arg b, const NodeView& node,
                    const std::string& activation, const Capabilities& caps);
// The launch that packs `matrices` matrices which lie b_matrix apart.
Dispatch MakePack(Arg from, Arg to, DType dtype, int64_t matrices, int64_t b_matrix,
                  int64_t row_step, int64_t column_step, int64_t depth, int64_t columns,
                  const Capabilities& caps);

}  // namespace oncilla::opencl
