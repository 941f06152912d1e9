// Lowering: converts one ONNX op to canonical nodes. A foreign op is one row: its name, the opset
// versions for which the row is valid, and either an equivalent canonical op or a small function
// that builds a few nodes through an OnnxLowering.
//
// Rows are in ops/<family>.cc; OnnxOpFamilies() lists the families and the domain of each. An op
// whose meaning changed between versions has several rows, or its function checks the version.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/import/lowering/lowering.h"
#include "engine/import/onnx/optional.h"
#include "engine/import/onnx/reader.h"

namespace oncilla {

// The newest version of ai.onnx that rows were written for, and of the other domains.
inline constexpr int64_t kNewestOnnxOpset = 28;
inline constexpr int64_t kNewestOnnxMl = 5;
inline constexpr int64_t kNewestOnnxPreview = 1;
inline constexpr int64_t kNewestOnnxTraining = 1;
inline constexpr int64_t kNewestOnnxMicrosoft = 1;

// What the lowering of a node needs from the model.
struct OnnxContext {
  // Reads a tensor of this model, dense. Throws nothing.
  std::function<Result<Tensor>(const OnnxTensorData&)> read_tensor;
};

// What is known outside a node: the ranks that the file states by name, and kinds by value.
struct OnnxSurroundings {
  const std::unordered_map<std::string_view, int>* ranks = nullptr;
  OnnxKinds* kinds = nullptr;
};

// One ONNX node being lowered.
class OnnxLowering : public Lowering {
 public:
  OnnxLowering(Graph& graph, const OnnxContext& context, const OnnxNode& node, std::string name,
               int64_t version, Values inputs, OnnxSurroundings around)
      : Lowering(graph, std::move(name), std::move(inputs)),
        context_(context),
        node_(node),
        version_(version),
        around_(around),
        asked_(node.attrs.size(), 0) {}

  std::string_view op() const { return node_.op; }
  // The opset version of the node's domain.
  int64_t version() const { return version_; }
  // How many outputs the node lists, and whether it names output i.
  size_t outputs() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < outputs() && !node_.outputs[i].empty(); }

  // Attributes. DataLoss when one has another type, or is required and missing. The importer
  // refuses a node with an attribute that was never read, so that none is silently ignored.
  bool HasAttr(std::string_view name) const;
  Result<int64_t> Int(std::string_view name, int64_t otherwise) const;
  Result<int64_t> NeedInt(std::string_view name) const;
  Result<bool> Flag(std::string_view name, bool otherwise) const;
  Result<float> Float(std::string_view name, float otherwise) const;
  Result<std::string> String(std::string_view name, std::string_view otherwise) const;
  Result<std::vector<int64_t>> IntList(std::string_view name) const;  // empty when missing
  Result<std::vector<float>> FloatList(std::string_view name) const;
  Result<std::vector<Bytes>> StringList(std::string_view name) const;
  Result<Tensor> TensorAttr(std::string_view name) const;
  Result<Tensor> SparseAttr(std::string_view name) const;  // dense
  Result<const OnnxGraph*> GraphAttr(std::string_view name) const;
  Result<OnnxType> TypeAttr(std::string_view name) const;
  // The dtype for a number of onnx.TensorProto.DataType in an attribute.
  Result<DType> Type(std::string_view name, DType otherwise) const;
  // Marks an attribute as read that has no effect on inference.
  void Ignore(std::string_view name) const { (void)HasAttr(name); }
  // An attribute that was never read; empty when there is none.
  std::string_view UnknownAttr() const;

  // kTensor, kSequence, kOptional or kOptionalSequence.
  OnnxKind kind(ValueId value) const;
  OnnxKind in_kind(size_t i) const { return kind(in(i)); }
  // Records that `value` is an optional tensor or sequence.
  ValueId Mark(ValueId value, OnnxKind kind);
  // Converts x to an optional value that is present, and back; the latter fails the run if it is
  // absent.
  Result<ValueId> Wrap(ValueId x, std::string_view role);
  Result<ValueId> Unwrap(ValueId optional, std::string_view role);
  // An empty list.
  Result<ValueId> EmptyList(const Fact& type, std::string_view role);
  // Converts x, which has one element, to a scalar.
  Result<ValueId> ToScalar(ValueId x, std::string_view role);

  // The ranks of inputs that were taken from the file, because the graph does not know them.
  const std::map<size_t, int>& believed() const { return believed_; }

  // A vector along the channels (axis 1) of a tensor of this rank: [C] to [C, 1, ..].
  Result<ValueId> PerChannel(ValueId vector, int rank, std::string_view role);
  // The numbers of a floating-point or integer input that is known at import.
  Result<std::vector<double>> KnownNumbers(size_t input, std::string_view what) const;

 private:
  int StatedRank(size_t input) const override;
  const OnnxAttr* Find(std::string_view name) const;
  Result<const OnnxAttr*> Find(std::string_view name, OnnxAttrType type) const;
  Result<Tensor> ReadTensorAttr(std::string_view name, OnnxAttrType type) const;

  const OnnxContext& context_;
  const OnnxNode& node_;
  const int64_t version_;
  const OnnxSurroundings around_;
  mutable std::vector<char> asked_;
  mutable std::map<size_t, int> believed_;
};

using OnnxLower = Result<Values> (*)(OnnxLowering&);

struct OnnxOpRow {
  std::string_view op;
  int64_t since = 1;  // the first and the last version for which the row is valid
  int64_t until = kNewestOnnxOpset;
  int min_inputs = 0;
  std::string_view canonical;  // a rename: same inputs, no attributes
  OnnxLower lower = nullptr;
  bool sequences = false;  // accepts sequences and optional values; else they are refused
};

std::span<const OnnxOpRow> OnnxElementwiseRows();
std::span<const OnnxOpRow> OnnxActivationRows();
std::span<const OnnxOpRow> OnnxReduceRows();
std::span<const OnnxOpRow> OnnxNormRows();
std::span<const OnnxOpRow> OnnxMatMulRows();
std::span<const OnnxOpRow> OnnxConvRows();
std::span<const OnnxOpRow> OnnxPoolRows();
std::span<const OnnxOpRow> OnnxMovementRows();
std::span<const OnnxOpRow> OnnxIndexingRows();
std::span<const OnnxOpRow> OnnxRecurrentRows();
std::span<const OnnxOpRow> OnnxResizeRows();
std::span<const OnnxOpRow> OnnxQuantRows();
std::span<const OnnxOpRow> OnnxLossRows();
std::span<const OnnxOpRow> OnnxSignalRows();
std::span<const OnnxOpRow> OnnxAttentionRows();
std::span<const OnnxOpRow> OnnxRotaryRows();
std::span<const OnnxOpRow> OnnxTextRows();
std::span<const OnnxOpRow> OnnxSequenceRows();
std::span<const OnnxOpRow> OnnxStateRows();
std::span<const OnnxOpRow> OnnxFlexRows();
std::span<const OnnxOpRow> OnnxRandomRows();
std::span<const OnnxOpRow> OnnxColumnsRows();
std::span<const OnnxOpRow> OnnxExperimentalRows();
std::span<const OnnxOpRow> OnnxTrainingRows();
std::span<const OnnxOpRow> OnnxMlRows();
std::span<const OnnxOpRow> OnnxMlSvmRows();
std::span<const OnnxOpRow> OnnxMlTreeRows();
std::span<const OnnxOpRow> MicrosoftStandardRows();
std::span<const OnnxOpRow> MicrosoftRows();
std::span<const OnnxOpRow> MicrosoftArrayRows();
std::span<const OnnxOpRow> MicrosoftAttentionRows();
std::span<const OnnxOpRow> MicrosoftConvRows();
std::span<const OnnxOpRow> MicrosoftDecoderRows();
std::span<const OnnxOpRow> MicrosoftPackedRows();
std::span<const OnnxOpRow> MicrosoftRefusedRows();
std::span<const OnnxOpRow> MicrosoftDiffusionRows();
std::span<const OnnxOpRow> MicrosoftFourBitRows();
std::span<const OnnxOpRow> MicrosoftIndexingRows();
std::span<const OnnxOpRow> MicrosoftLinearRows();
std::span<const OnnxOpRow> MicrosoftMovementRows();
std::span<const OnnxOpRow> MicrosoftPoolRows();
std::span<const OnnxOpRow> MicrosoftQLinearRows();
std::span<const OnnxOpRow> MicrosoftRecurrentRows();
std::span<const OnnxOpRow> MicrosoftSampleRows();
std::span<const OnnxOpRow> MicrosoftStateRows();
std::span<const OnnxOpRow> MicrosoftStreamRows();
std::span<const OnnxOpRow> MicrosoftTextRows();
std::span<const OnnxOpRow> MicrosoftTokenRows();
std::span<const OnnxOpRow> MicrosoftQuantRows();
std::span<const OnnxOpRow> MicrosoftRotaryRows();

// The rows of a family, and the domain that its ops belong to ("" is ai.onnx).
struct OnnxOpFamily {
  std::string_view domain;
  std::span<const OnnxOpRow> rows;
  bool refused = false;  // its rows only give the reason, and an alternative
};
std::vector<OnnxOpFamily> OnnxOpFamilies();
// The row for an op of a domain at a version, or Unimplemented with the version, and with the
// versions that are supported.
Result<const OnnxOpRow*> FindOnnxOp(std::string_view domain, std::string_view op, int64_t version);

}  // namespace oncilla
