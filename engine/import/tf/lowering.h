// Lowering: converts one TensorFlow op to canonical nodes. A foreign op is one row: its name, the
// least number of inputs, and either an equivalent canonical op or a small function that builds a
// few nodes through a TfLowering.
//
// Rows are in ops/<family>.cc; TfOpFamilies() lists the families.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/import/lowering/lowering.h"
#include "engine/import/tf/graph/functions.h"

namespace oncilla {

struct HloModule;
struct TfImportState;

// One TensorFlow node being lowered.
class TfLowering : public Lowering {
 public:
  TfLowering(TfImportState& state, Graph& graph, const TfFlatNode& node, Values inputs,
             std::vector<const TfFlatNode*> producers);

  std::string_view op() const { return node_.op(); }
  TfAttrs attrs() const { return source_.Attrs(*node_.source); }
  TfAttrs AttrsOf(const TfFlatNode& node) const { return source_.Attrs(*node.source); }
  // The tensor attribute "value" of a constant.
  Result<Tensor> ConstantValue() { return source_.TensorAttr(*node_.source, "value"); }

  // The variable or table of which input i is a handle; fails when it is not a handle, or is a
  // constant.
  Result<const TfFlatNode*> State(size_t i) const;
  Result<ValueId> ReadVariable(const TfFlatNode& variable, std::string_view role = "");
  Status AssignVariable(std::string_view variable, ValueId value, std::string_view role = "");
  // Whether a variable that changes has an initial value.
  bool HasFirstValue(std::string_view variable) const;
  // Reads a variable that this node needs but the source does not have; `first` is its initial
  // value.
  Result<ValueId> ReadOwnVariable(const std::string& variable, Tensor first, std::string_view role);

  // Whether importing again for the feeds of a run would give no further ranks (no further sizes).
  bool RanksStayOpen() const override;
  bool SizesStayOpen() const;

  // A function of the node, lowered for arguments of these types.
  Result<Graph> Body(size_t function, const Facts& arguments);
  // The results of the function "main" of a StableHLO module.
  Result<Values> CallHlo(const HloModule& module, const Values& arguments);

  // Opens a file of the model by the path in its graph.
  Result<std::shared_ptr<const MappedFile>> OpenAsset(const std::string& path) const {
    return source_.OpenAsset(path);
  }

 private:
  TfImportState& state_;
  Module& module_;
  TfGraph& source_;
  const TfFlatNode& node_;
  std::vector<const TfFlatNode*> producers_;  // of the inputs
};

struct TfOpRow {
  std::string_view op;
  int min_inputs = 0;
  std::string_view canonical;  // a rename: same inputs, no attributes
  Result<Values> (*lower)(TfLowering&) = nullptr;
  // Whether the op works on variables or tables themselves; others get a variable's value.
  bool takes_handles = false;
};

std::span<const TfOpRow> TfElementwiseRows();
std::span<const TfOpRow> TfReduceRows();
std::span<const TfOpRow> TfNormRows();
std::span<const TfOpRow> TfMatMulRows();
std::span<const TfOpRow> TfLinalgRows();
std::span<const TfOpRow> TfSegmentRows();
std::span<const TfOpRow> TfLossRows();
std::span<const TfOpRow> TfSparseRows();
std::span<const TfOpRow> TfCheckRows();
std::span<const TfOpRow> TfWindowRows();
std::span<const TfOpRow> TfConvRows();
std::span<const TfOpRow> TfMovementRows();
std::span<const TfOpRow> TfIndexingRows();
std::span<const TfOpRow> TfRecordRows();
std::span<const TfOpRow> TfTextRows();
std::span<const TfOpRow> TfImageRows();
std::span<const TfOpRow> TfRandomRows();
std::span<const TfOpRow> TfQuantRows();
std::span<const TfOpRow> TfRecurrentRows();
std::span<const TfOpRow> TfResizeRows();
std::span<const TfOpRow> TfListRows();
std::span<const TfOpRow> TfStateRows();
std::span<const TfOpRow> TfGradientRows();
std::span<const TfOpRow> TfWindowGradientRows();
std::span<const TfOpRow> TfXlaRows();
std::span<const TfOpRow> TfXlaCallRows();

// Rows for nodes with complex tensors, which are represented by real numbers with a last axis of
// two: these replace all other rows there.
std::span<const TfOpRow> TfComplexRows();
const TfOpRow* FindTfComplexOp(std::string_view op);
// Whether an attribute of the node is a complex type.
bool HasComplexType(const TfNode& node);
// Whether a node that was lowered by one of these rows has a complex result.
bool GivesComplex(const TfNode& node, const TfAttrs& attrs);

// Searches the rows of all families. Null when none has the op.
const TfOpRow* FindTfOp(std::string_view op);
std::vector<std::span<const TfOpRow>> TfOpFamilies();

// The masks of StridedSlice among the node's attributes.
Result<StridedSliceAttrs> ReadSliceMasks(const TfLowering& b);
// x with a slice set to `value`, which broadcasts; inputs 1 to 3 (begin, end, strides) and the
// node's masks define the slice.
Result<ValueId> UpdateTfSlice(TfLowering& b, ValueId x, ValueId value, std::string_view role);

// TensorFlow's layouts of images: channels last (NHWC, NDHWC) or first (NCHW, NCDHW).
struct TfLayout {
  bool channels_first = false;
  int rank = 4;
  int spatial() const { return rank - 2; }
  int channel_axis() const { return channels_first ? 1 : rank - 1; }
};
// From attribute data_format; Unimplemented for vectorised layouts.
Result<TfLayout> ReadLayout(const TfLowering& b);

}  // namespace oncilla
