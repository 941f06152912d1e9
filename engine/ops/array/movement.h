// Attributes and geometry of the movement family: ops that only rearrange elements.
#pragma once

#include <span>

#include "engine/ops/array/moves.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// Inputs: x, shape (plan input). One size may be -1 (inferred); with zero_copies, a 0 copies the
// size of x at that index (ONNX's rule unless allowzero is set).
struct ReshapeAttrs {
  bool zero_copies = false;
  void Fields(auto&& field) { field("zero_copies", zero_copies); }
};

// Squeeze(x, *axes?): without axes, every axis of size 1; an empty list removes none.
// Unsqueeze(x, *axes): axes of the output. Both have no attributes.

// Bitcast(x): the same bytes as numbers of another type. A wider type removes the last axis, whose
// size must be the ratio of the widths; a narrower one adds an axis.
struct BitcastAttrs {
  DType to = DType::kInvalid;
  void Fields(auto&& field) { field("to", to); }
};

// x -> a matrix: the axes before `axis` merged, and the rest merged.
struct FlattenAttrs {
  int64_t axis = 1;
  void Fields(auto&& field) { field("axis", axis); }
};

// Transpose(x, *perm?) without attributes: axis i of the output is axis perm[i] of x; without perm
// the axes are reversed.

struct ConcatAttrs {
  int64_t axis = 0;
  void Fields(auto&& field) { field("axis", axis); }
};

// Split(x, *sizes?): `parts` is the number of outputs; it may be 0 if sizes is known at import. One
// size may be -1 (inferred). Without sizes the parts are equal, except that the last one is smaller
// if the axis cannot be divided evenly (ONNX's rule).
struct SplitAttrs {
  int64_t axis = 0;
  int64_t parts = 0;
  void Fields(auto&& field) {
    field("axis", axis);
    field("parts", parts);
  }
};

// Slice(x, *starts, *ends, *axes?, *steps?) without attributes: ONNX's rules.
// StridedSlice(x, *begin, *end, *strides): TensorFlow's rules; bit i of a mask refers to entry i.
struct StridedSliceAttrs {
  int64_t begin_mask = 0;        // ignore begin: start at the edge
  int64_t end_mask = 0;          // ignore end: stop at the edge
  int64_t ellipsis_mask = 0;     // as many whole axes as are missing; at most one bit
  int64_t new_axis_mask = 0;     // a new axis of size 1
  int64_t shrink_axis_mask = 0;  // only the element at begin; the axis is removed
  void Fields(auto&& field) {
    field("begin_mask", begin_mask);
    field("end_mask", end_mask);
    field("ellipsis_mask", ellipsis_mask);
    field("new_axis_mask", new_axis_mask);
    field("shrink_axis_mask", shrink_axis_mask);
  }
};

// Pad(x, *pads, value?): pads are all begins, then all ends; a negative one crops, before the
// others are added. value has one element; without it constant pads are zero (or false, or ""). In
// the other modes a pad that is longer than what it mirrors or wraps continues periodically; with
// `once` such a pad, and one that crops, is refused, as in TensorFlow.
struct PadAttrs {
  std::string mode = "constant";  // or reflect, symmetric, edge, wrap
  bool once = false;
  void Fields(auto&& field) {
    field("mode", mode);
    field("once", once);
  }
};
enum class PadMode { kConstant, kReflect, kSymmetric, kEdge, kWrap };
Result<PadMode> ParsePadMode(std::string_view text);

// One axis of a pad: `before` elements of padding, then [start, start + size) of x, then padding.
struct PadAxis {
  int64_t before = 0, start = 0, size = 0;
};
Result<std::vector<PadAxis>> PadAxes(const PadAttrs& attrs, const NodeView& node);
// The index of x for index `at` of the output; -1 is the pad value.
int64_t PadSource(PadMode mode, const PadAxis& axis, int64_t at);

// Reverse(x, *axes) and Roll(x, *shifts, *axes) have no attributes: element i of a rolled axis
// moves to index i + shift, wrapping around; an axis may be rolled more than once.

// ReverseSequence(x, lengths): reverses the first lengths[b] elements of the time axis, for each
// index b of the batch axis.
struct ReverseSequenceAttrs {
  int64_t time_axis = 0;
  int64_t batch_axis = 1;
  void Fields(auto&& field) {
    field("time_axis", time_axis);
    field("batch_axis", batch_axis);
  }
};

// DepthToSpace(x[N, spatial.., C]): channels become blocks of block x block pixels (likewise for
// one or three axes). dcr: a channel is (position in the block, depth); crd: (depth, position in
// the block).
struct DepthToSpaceAttrs {
  int64_t block = 1;
  std::string order = "dcr";
  void Fields(auto&& field) {
    field("block", block);
    field("order", order);
  }
};

// SpaceToDepth(x[N, spatial.., C]): undoes DepthToSpace with order dcr.
struct SpaceToDepthAttrs {
  int64_t block = 1;
  void Fields(auto&& field) { field("block", block); }
};

// SpaceToBatch(x, *block[n], *pads[n,2]) and BatchToSpace(x, *block[n], *crops[n,2]) have no
// attributes: axes 1 to n are spatial, any others follow. A batch index is (position in the block,
// batch).

// Tile(x, *repeats) and Expand(x, *shape) have no attributes; Expand broadcasts both ways.

// The moves of each op; all facts must be fixed, plan inputs known.
Result<Moves> WholeMoves(const NodeView& node);  // ops whose output is x's bytes
Result<Moves> TransposeMoves(const NodeView& node);
Result<Moves> ConcatMoves(const ConcatAttrs&, const NodeView& node);
Result<Moves> SplitMoves(const SplitAttrs&, const NodeView& node);
Result<Moves> SliceMoves(const NodeView& node);
Result<Moves> StridedSliceMoves(const StridedSliceAttrs&, const NodeView& node);
Result<Moves> TileMoves(const NodeView& node);
Result<Moves> ExpandMoves(const NodeView& node);
Result<Moves> ReverseMoves(const NodeView& node);
Result<Moves> RollMoves(const NodeView& node);
Result<Moves> DepthToSpaceMoves(const DepthToSpaceAttrs&, const NodeView& node);
Result<Moves> SpaceToDepthMoves(const SpaceToDepthAttrs&, const NodeView& node);
Result<Moves> SpaceToBatchMoves(const NodeView& node);
Result<Moves> BatchToSpaceMoves(const NodeView& node);

// EnsureShape(x) -> x: fails when a size is not the one in `dims`, where -1 stands for any.
struct EnsureShapeAttrs {
  std::vector<int64_t> dims;
  void Fields(auto&& field) { field("dims", dims); }
};

}  // namespace oncilla
