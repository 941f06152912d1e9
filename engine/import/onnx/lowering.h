// Lowering: one ONNX op to canonical nodes. A foreign op is one row: its name, the opset versions
// it is right for, and either a canonical op of the same meaning or a small function that builds a
// few nodes through an OnnxLowering.
//
// Rows stand in ops/<family>.cc; OnnxOpFamilies() lists the families and the domain of each. An op
// whose meaning changed between versions has several rows, or asks for the version where it builds.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/import/lowering/lowering.h"
#include "engine/import/onnx/reader.h"

namespace oncilla {

// The newest version of ai.onnx that rows were written for, and of the other domains.
inline constexpr int64_t kNewestOnnxOpset = 28;
inline constexpr int64_t kNewestOnnxMl = 5;
inline constexpr int64_t kNewestOnnxPreview = 1;
inline constexpr int64_t kNewestOnnxTraining = 1;
inline constexpr int64_t kNewestOnnxMicrosoft = 1;

// What a node needs from the model around it.
struct OnnxContext {
  // The bytes of a tensor message of this model. Throws nothing.
  std::function<Result<Tensor>(Bytes tensor_proto)> read_tensor;
  // The rank that the file states for a tensor, or -1.
  std::function<int(std::string_view name)> stated_rank;
};

// One ONNX node being lowered.
class OnnxLowering : public Lowering {
 public:
  OnnxLowering(Graph& graph, const OnnxContext& context, const OnnxNode& node, std::string name,
               int64_t version, Values inputs)
      : Lowering(graph, std::move(name), std::move(inputs)),
        context_(context),
        node_(node),
        version_(version),
        asked_(node.attrs.size(), 0) {}

  std::string_view op() const { return node_.op; }
  // The opset version of the node's domain.
  int64_t version() const { return version_; }
  // How many outputs the node lists, and whether it names output i.
  size_t outputs() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < outputs() && !node_.outputs[i].empty(); }

  // Attributes. DataLoss when one has another type, or is needed and missing. Attributes that
  // nobody asks for make the importer refuse the node, so that none is silently ignored.
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
  // The type that a number of onnx.TensorProto.DataType in an attribute means.
  Result<DType> Type(std::string_view name, DType otherwise) const;
  // Attributes that mean nothing for inference.
  void Ignore(std::string_view name) const { (void)HasAttr(name); }
  // An attribute that nobody asked for; empty when there is none.
  std::string_view UnknownAttr() const;

  // A vector along the channels (axis 1) of a tensor of this rank: [C] to [C, 1, ..].
  Result<ValueId> PerChannel(ValueId vector, int rank, std::string_view role);
  // The numbers of a floating-point or integer input, known while importing.
  Result<std::vector<double>> KnownNumbers(size_t input, std::string_view what) const;

 private:
  int StatedRank(size_t input) const override { return context_.stated_rank(node_.inputs[input]); }
  const OnnxAttr* Find(std::string_view name) const;
  Result<const OnnxAttr*> Find(std::string_view name, OnnxAttrType type) const;

  const OnnxContext& context_;
  const OnnxNode& node_;
  const int64_t version_;
  mutable std::vector<char> asked_;
};

using OnnxLower = Result<Values> (*)(OnnxLowering&);

struct OnnxOpRow {
  std::string_view op;
  int64_t since = 1;  // the first and the last version that the row is right for
  int64_t until = kNewestOnnxOpset;
  int min_inputs = 0;
  std::string_view canonical;  // a rename: same inputs, no attributes
  OnnxLower lower = nullptr;
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
std::span<const OnnxOpRow> OnnxStateRows();
std::span<const OnnxOpRow> OnnxFlexRows();
std::span<const OnnxOpRow> OnnxRandomRows();
std::span<const OnnxOpRow> OnnxColumnsRows();
std::span<const OnnxOpRow> OnnxTrainingRows();
std::span<const OnnxOpRow> OnnxMlRows();
std::span<const OnnxOpRow> OnnxMlTreeRows();
std::span<const OnnxOpRow> MicrosoftStandardRows();
std::span<const OnnxOpRow> MicrosoftRows();
std::span<const OnnxOpRow> MicrosoftAttentionRows();
std::span<const OnnxOpRow> MicrosoftQuantRows();
std::span<const OnnxOpRow> MicrosoftRotaryRows();

// The rows of a family, and the domain that its ops belong to ("" is ai.onnx).
struct OnnxOpFamily {
  std::string_view domain;
  std::span<const OnnxOpRow> rows;
};
std::vector<OnnxOpFamily> OnnxOpFamilies();
// The row for an op of a domain at a version, or Unimplemented with the version, and with those
// that there are.
Result<const OnnxOpRow*> FindOnnxOp(std::string_view domain, std::string_view op, int64_t version);

}  // namespace oncilla
