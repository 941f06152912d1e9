// Lowering: converts one TFLite op to canonical nodes. A foreign op is one row: its name, the kind
// of its options, and either an equivalent canonical op or a small function that builds a few nodes
// through a TfliteLowering.
//
// Rows are in ops/<family>.cc; TfliteOpFamilies() lists the families.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/import/lowering/lowering.h"
#include "engine/import/tflite/tensor.h"

namespace oncilla {

struct TfliteImportState;

// One TFLite op being lowered.
class TfliteLowering : public Lowering {
 public:
  TfliteLowering(TfliteImportState& state, Graph& graph, const TfliteSubgraph& subgraph,
                 const TfliteOp& op, std::string name, Values inputs)
      : Lowering(graph, std::move(name), std::move(inputs)),
        state_(state),
        subgraph_(subgraph),
        op_(op),
        op_name_(TfliteOpName(op)) {}

  const std::string& op() const { return op_name_; }
  size_t outputs() const { return op_.outputs.size(); }
  int32_t version() const { return op_.version; }
  // The file's description of input i, empty if it is absent, and of output i, which must exist.
  const TfliteTensor& tensor(size_t i) const;
  const TfliteTensor& output_tensor(size_t i = 0) const { return TensorAt(op_.outputs[i]); }
  DType output_type(size_t i = 0) const { return DTypeFromTflite(output_tensor(i).type); }
  bool has_complex() const;
  bool any_quantised() const { return !QuantisedTensors().empty(); }
  // Their types, for messages: "i8".
  std::string QuantisedTypes() const;
  // Checks that the integers of all quantised tensors have the same meaning.
  Status CheckMoved() const;

  // Options by the number of their field; a missing one has the default of the schema. Numbers have
  // 32 bits, enumerations and flags 8. The importer refuses an op with an option that was never
  // read, so that none is silently ignored.
  Result<int64_t> Int(int field, int32_t otherwise = 0) const;
  Result<int64_t> Long(int field) const;
  Result<int64_t> Enum(int field, int8_t otherwise = 0) const;
  Result<bool> Flag(int field, bool otherwise = false) const;
  Result<float> Float(int field) const;
  Result<std::vector<int64_t>> IntList(int field) const;
  Result<std::vector<float>> Floats(int field) const;
  Result<std::string> String(int field) const;
  // The dtype for a number in the options.
  Result<DType> Type(int field, int8_t otherwise = 0) const;
  // Marks an option as read that has no effect on real numbers.
  void Ignore(int field) const { Ask(field); }
  // A field that the file sets and that was never read; -1 when there is none.
  int UnknownOption() const;
  std::string_view custom_options() const { return op_.custom_options; }

  // The ActivationFunctionType in field `field` of the options, which is applied to the result. An
  // op with one names its own node `Inner()`, and passes it to Activated().
  Result<int64_t> Activation(int field) const;
  static std::string_view Inner(int64_t activation) { return activation == 0 ? "" : "linear"; }
  Result<ValueId> Activated(ValueId y, int64_t activation);

  // A tensor that keeps its value from run to run, initially zero.
  Result<ValueId> ReadState(size_t input);
  Status AssignState(size_t input, ValueId value);

  // The numbers of an input that is known at import.
  Result<std::vector<double>> KnownNumbers(size_t input, std::string_view what) const;

 private:
  std::vector<const TfliteTensor*> QuantisedTensors() const;
  int StatedRank(size_t input) const override;
  const TfliteTensor& TensorAt(int32_t i) const {
    return subgraph_.tensors[static_cast<size_t>(i)];
  }
  void Ask(int field) const { asked_ |= uint64_t{1} << field; }
  Result<std::string> StateName(size_t input) const;

  TfliteImportState& state_;
  const TfliteSubgraph& subgraph_;
  const TfliteOp& op_;
  const std::string op_name_;
  mutable uint64_t asked_ = 0;
};

// The numbers of the schema's BuiltinOptions that rows read.
enum class TfliteOptions {
  kNone = 0,
  kConv2D = 1,
  kDepthwiseConv2D = 2,
  kPool2D = 5,
  kSvdf = 6,
  kRnn = 7,
  kFullyConnected = 8,
  kSoftmax = 9,
  kConcatenation = 10,
  kAdd = 11,
  kL2Norm = 12,
  kLocalResponseNormalization = 13,
  kResizeBilinear = 15,
  kReshape = 17,
  kSpaceToDepth = 19,
  kMul = 21,
  kGather = 23,
  kReducer = 27,
  kSub = 28,
  kDiv = 29,
  kSqueeze = 30,
  kSequenceRnn = 31,
  kStridedSlice = 32,
  kSplit = 35,
  kCast = 37,
  kArgMax = 40,
  kTransposeConv = 49,
  kSparseToDense = 50,
  kShape = 55,
  kArgMin = 57,
  kFakeQuant = 58,
  kPack = 59,
  kOneHot = 61,
  kUnpack = 64,
  kBidirectionalSequenceLstm = 69,
  kBidirectionalSequenceRnn = 70,
  kUnidirectionalSequenceLstm = 71,
  kResizeNearest = 74,
  kLeakyRelu = 75,
  kMirrorPad = 77,
  kSplitV = 79,
  kUnique = 80,
  kReverseSequence = 87,
  kIf = 92,
  kWhile = 93,
  kDepthToSpace = 94,
  kBatchMatMul = 101,
  kCumsum = 102,
  kCallOnce = 103,
  kConv3D = 106,
  kVarHandle = 111,
  kRandom = 114,
  kBucketize = 115,
  kGelu = 116,
};

// How an op treats quantised tensors.
enum class TfliteQuantised {
  kRefused,  // refuses them
  kMoved,    // the op moves integers, whose meaning does not change
  kTaken,    // the op's function handles them
};

struct TfliteOpRow {
  std::string_view op;
  int min_inputs = 0;
  TfliteOptions options = TfliteOptions::kNone;
  std::string_view canonical;  // a rename: same inputs, no attributes
  Result<Values> (*lower)(TfliteLowering&) = nullptr;
  TfliteQuantised quantised = TfliteQuantised::kRefused;
  // If set, used for nodes with quantised tensors.
  Result<Values> (*lower_quantised)(TfliteLowering&) = nullptr;
};

std::span<const TfliteOpRow> TfliteElementwiseRows();
std::span<const TfliteOpRow> TfliteConvRows();
std::span<const TfliteOpRow> TflitePoolRows();
std::span<const TfliteOpRow> TfliteMatMulRows();
std::span<const TfliteOpRow> TfliteNormRows();
std::span<const TfliteOpRow> TfliteReduceRows();
std::span<const TfliteOpRow> TfliteMovementRows();
std::span<const TfliteOpRow> TfliteIndexingRows();
std::span<const TfliteOpRow> TfliteImageRows();
std::span<const TfliteOpRow> TfliteQuantRows();
std::span<const TfliteOpRow> TfliteRecurrentRows();
std::span<const TfliteOpRow> TfliteSignalRows();
std::span<const TfliteOpRow> TfliteSvdfRows();
std::span<const TfliteOpRow> TfliteCustomRows();  // by the names of custom ops

std::vector<std::span<const TfliteOpRow>> TfliteOpFamilies();
// The row for an op; null when there is none.
const TfliteOpRow* FindTfliteOp(const TfliteOp& op);

}  // namespace oncilla
