// Products by tiles (cl_kernels/common/tile.clh, cl_kernels/matmul/sub_group.cl): the tile, whether
// K is divided among groups, and the launches.
//
// A sum is computed in the order of K whatever the tile, so the tile may depend on all properties
// of the device. Dividing K changes the order: the number of parts depends only on the sizes of the
// product, the device's class (Tuning, and the number of its cores to the nearest power of two) and
// its table of measured choices, never on a run.
#pragma once

#include <optional>

#include "backends/opencl/recipes/choices.h"
#include "backends/opencl/recipes/matmul_recipe.h"
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::opencl {

// `products` products of so many rows, columns and k's. `sub_groups`: the operands have the layout
// of matmul/sub_group.cl. A part of K is at most `longest_part` unless that is 0. `apart`: a later
// launch, which exists anyway, adds the parts up. `bytes`: for integers; K counts words of four
// bytes; `row_sums`: with sums of rows (common/byte_tile.clh), which matrix units do not compute,
// and K is not divided. `halves`: operands have 16 bits, which a matrix unit accepts.
struct ProductSizes {
  int64_t rows, columns, depth, products;
  bool sub_groups = false;
  int64_t longest_part = 0;
  bool apart = false;
  bool bytes = false, row_sums = false;
  bool halves = false;
};

struct TilePlan {
  Tile tile;
  int64_t parts = 1;         // groups among which the k's of a sum are divided
  int64_t part_k = 0;        // of each, a multiple of 16; the last may have fewer
  std::string name() const;  // "TM=8 TN=8 WARPS_M=2 WARPS_N=4 LANES_M=8 TILE_K=8 PARTS=1"
};

// The tile and the division with the least expected time, by the costs in tuning.cc.
TilePlan PlanTiles(const ProductSizes& p, const Capabilities& caps);
// All tiles of the device's family that fit it, with all divisions that justify a launch.
std::vector<TilePlan> AllPlans(const ProductSizes& p, const Capabilities& caps);
// The clock cycles that this is expected to take on a device with NominalCores.
double ExpectedClocks(const ProductSizes& p, const Capabilities& caps);
// Cores of the device to the nearest power of two, by ratio: devices of one class divide sums in
// the same way.
int64_t NominalCores(const Capabilities& caps);

// The launch that adds up the parts of K of a product: `sums` as in matmul/join.cl. The fields are
// the strides of products of y and bias, and of rows of y.
struct JoinSteps {
  int64_t y, y_row, bias;
};
void AddJoin(const ProductSizes& p, int64_t parts, Scratch sums, const JoinSteps& steps,
             const std::string& activation, const NodeView& node, IndexType index,
             const Capabilities& caps, Recipe& recipe);
// Whether some tile fits the device, for any operands.
bool HasTiles(const Capabilities& caps);
bool HasByteTiles(const Capabilities& caps);
// The defines of common/matrix_unit.clh, for kernels on a matrix unit.
void DefineMatrixUnit(const Capabilities& caps, DispatchBuilder& b);
// The defines of common/tile_shape.clh.
void AddTileShape(const Tile& tile, const Capabilities& caps, DispatchBuilder& b);
// The largest index that a convolution by tiles computes, with a filter of `depth` rows. Indices of
// pixels may be in the padding on any side.
int64_t MostPlace(const WindowGeometry& g, int64_t depth, int64_t tile_rows, const NodeView& node);
// Adds a mask with one bit per tap of each axis, if that fits.
void AddSeen(const WindowGeometry& g, DispatchBuilder& b);

// `most`: the largest index in an operand or the result.
Recipe TiledMatMul(const std::string& activation, const MatMulGeometry& g, const TilePlan& plan,
                   const NodeView& node, int64_t most, const Capabilities& caps);
ProductSizes SizesOf(const MatMulGeometry& g, DType dtype);
// The same with the plan that the device's table names, or the generic one.
Recipe PlannedMatMul(const std::string& activation, const MatMulGeometry& g, const NodeView& node,
                     int64_t most, const Capabilities& caps);
// The parts of a product of floats, in the layout of matmul/tiled.cl, for a later launch that adds
// them up. `most` is the largest index in an operand.
Scratch AddParts(const ProductSizes& sizes, const MatMulGeometry& g, const TilePlan& plan,
                 const Arg& a, const Arg& b, const NodeView& node, int64_t most,
                 const Capabilities& caps, Recipe& recipe);

// Conv with its filter [tap][run][out_channels], where run is ChannelRun; `packed` says that it has
// this layout already. Groups are at most kMostGroups / most_parts.
Recipe TiledConv(const std::string& activation, const WindowGeometry& g, const TilePlan& plan,
                 bool packed, const NodeView& node, const Capabilities& caps);
ProductSizes SizesOf(const WindowGeometry& g, DType dtype);
Recipe PlannedConv(const std::string& activation, const WindowGeometry& g, bool packed,
                   const NodeView& node, const Capabilities& caps);
// Whether to compute products from registers alone (common/register_tile.clh): if the device's
// class does so and its groups are large enough.
bool TakesRegisters(const ProductSizes& p, const Capabilities& caps);
Recipe RegisterMatMul(const std::string& activation, const MatMulGeometry& g, const NodeView& node,
                      int64_t most, const Capabilities& caps);
Recipe RegisterConv(const std::string& activation, const WindowGeometry& g, bool packed,
                    const NodeView& node, const Capabilities& caps);

// Channels of a filter group rounded up to a multiple of four, so that no quad of K spans two taps;
// unchanged if there is one tap.
int64_t ChannelRun(int64_t group_channels, int64_t taps);

}  // namespace oncilla::opencl
