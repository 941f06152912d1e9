// Lowering: one ONNX op to canonical nodes. A foreign op is one row: its name, the opset versions
// it is right for, and either a canonical op of the same meaning or a small function that builds a
// few nodes through an OnnxLowering.
//
// Rows stand in onnx_ops_<family>.cc; OnnxOpFamilies() lists the families. An op whose meaning
// changed between versions has several rows, or asks for the version where it builds.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/import/onnx_reader.h"

namespace oncilla {

using Values = std::vector<ValueId>;

// The versions of ai.onnx that rows were written for.
inline constexpr int64_t kNewestOnnxOpset = 23;

// What a node needs from the model around it.
struct OnnxContext {
  // The bytes of a tensor message of this model. Throws nothing.
  std::function<Result<Tensor>(Bytes tensor_proto)> read_tensor;
  // The rank that the file states for a tensor, or -1.
  std::function<int(std::string_view name)> stated_rank;
};

// One node being lowered: its inputs and attributes, and the graph that grows. A failure of any
// call that adds to the graph names the node.
class OnnxLowering {
 public:
  OnnxLowering(Graph& graph, const OnnxContext& context, const OnnxNode& node, std::string name,
               int64_t version, Values inputs)
      : graph_(graph),
        context_(context),
        node_(node),
        name_(std::move(name)),
        version_(version),
        inputs_(std::move(inputs)),
        asked_(node.attrs.size(), 0) {}

  std::string_view op() const { return node_.op; }
  // The opset version of the node's domain.
  int64_t version() const { return version_; }

  // Inputs as the node lists them; an optional one that is not given is kNoValue.
  size_t inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return in(i) != kNoValue; }
  ValueId in(size_t i) const { return i < inputs_.size() ? inputs_[i] : kNoValue; }
  const Values& all_inputs() const { return inputs_; }
  const Fact& fact(ValueId id) const { return graph_.fact(id); }
  const Fact& in_fact(size_t i) const { return graph_.fact(in(i)); }
  DType dtype(size_t i = 0) const { return in_fact(i).dtype; }
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

  // Adds a canonical node with one output. The node's own name goes to the one without a `role`;
  // those that prepare its inputs or finish its output are called name/role.
  Result<ValueId> Add(std::string_view op, AttrMap attrs, Values inputs,
                      std::string_view role = "");
  Result<Values> AddAll(std::string_view op, AttrMap attrs, Values inputs,
                        std::string_view role = "");

  ValueId Constant(Tensor value) { return graph_.AddConstant(std::move(value)); }
  ValueId Ints(std::vector<int64_t> values);          // i64, rank 1
  Result<ValueId> Scalar(DType dtype, double value);  // a number of any type, rank 0
  // These return x itself where there is nothing to do.
  Result<ValueId> Cast(ValueId x, DType to, std::string_view role);
  Result<ValueId> Transpose(ValueId x, std::vector<int64_t> perm, std::string_view role);
  Result<ValueId> Unsqueeze(ValueId x, std::vector<int64_t> axes, std::string_view role);
  // [batch, channels, spatial..] to [batch, spatial.., channels] and back.
  Result<ValueId> ChannelsLast(ValueId x, int rank, std::string_view role = "channels_last");
  Result<ValueId> ChannelsFirst(ValueId x, int rank, std::string_view role = "");
  // Sizes of x along [start, end) as an i64 vector: a constant where they are known.
  Result<ValueId> Sizes(ValueId x, int start, int end, std::string_view role);
  // A vector along the channels (axis 1) of a tensor of this rank: [C] to [C, 1, ..].
  Result<ValueId> PerChannel(ValueId vector, int rank, std::string_view role);

  // The integers of an input, which must be known while importing: they become attributes.
  Result<std::vector<int64_t>> KnownInts(size_t input, std::string_view what) const;
  Result<int64_t> KnownInt(size_t input, std::string_view what) const;
  // The numbers of a floating-point or integer input, known while importing.
  Result<std::vector<double>> KnownNumbers(size_t input, std::string_view what) const;
  // The input's rank, which must be known, if only because the file states it.
  Result<int> Rank(size_t input, std::string_view what = "the input") const;

  const std::string& name() const { return name_; }

 private:
  const OnnxAttr* Find(std::string_view name) const;
  Result<const OnnxAttr*> Find(std::string_view name, OnnxAttrType type) const;

  Graph& graph_;
  const OnnxContext& context_;
  const OnnxNode& node_;
  const std::string name_;
  const int64_t version_;
  const Values inputs_;
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
std::span<const OnnxOpRow> OnnxTextRows();

std::vector<std::span<const OnnxOpRow>> OnnxOpFamilies();
// The row for an op of domain ai.onnx at a version, or Unimplemented with the version, and with
// those that there are.
Result<const OnnxOpRow*> FindOnnxOp(std::string_view op, int64_t version);

// {value}, or the failure.
inline Result<Values> One(Result<ValueId> value) {
  if (!value.ok()) return value.status();
  return Values{*value};
}

}  // namespace oncilla
