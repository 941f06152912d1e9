// An ONNX file as plain structs of views into the mapped bytes: model, graph, nodes, attributes.
//
// Names, nodes and attributes are parsed when the model is opened; tensors stay serialized until
// they are needed (tensor.h). Fields and numbers follow onnx.proto. The bytes must outlive
// everything here. The reader accepts models that the engine cannot run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/import/wire/wire.h"
#include "engine/tensor/shape.h"

namespace oncilla {

// The numbers of onnx.AttributeProto.AttributeType that are distinguished.
enum class OnnxAttrType {
  kUndefined,
  kFloat,
  kInt,
  kString,
  kTensor,
  kSparse,
  kGraph,
  kFloats,
  kInts,
  kStrings,
  kType,
  kOther
};

struct OnnxGraph;

// A tensor that is still serialized: a TensorProto, or a SparseTensorProto.
struct OnnxTensorData {
  Bytes message;
  bool sparse = false;
};

// The largest nesting depth of graphs in attributes; a file with deeper ones is refused.
inline constexpr int kMaxOnnxGraphDepth = 60;

enum class OnnxKind { kTensor, kSequence, kOptional, kOptionalSequence, kMap, kSparse, kUnknown };

// A TypeProto: of a tensor, of the tensors in a sequence or an optional value, or of the values of
// a map.
struct OnnxType {
  OnnxKind kind = OnnxKind::kUnknown;
  int64_t element_type = 0;
  int64_t key_type = 0;  // of a map
  // Sizes that are named in the file have that name.
  PartialShape shape;
};

struct OnnxAttr {
  std::string_view name;
  std::string_view reference;  // in a function's body: the function's own attribute that it takes
  OnnxAttrType type = OnnxAttrType::kUndefined;
  float f = 0;
  int64_t i = 0;
  Bytes s;  // a string
  OnnxTensorData tensor;
  OnnxType held;  // a TypeProto
  // One for kGraph; else the elements of a list of graphs.
  std::vector<std::shared_ptr<const OnnxGraph>> graphs;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<Bytes> strings;
};

struct OnnxNode {
  std::string_view name, op, domain;  // "ai.onnx" is read as the empty domain
  std::string_view overload;
  std::vector<std::string_view> inputs, outputs;  // empty: not given
  std::vector<OnnxAttr> attrs;
  // Names that its graphs read and do not compute, each once: those of enclosing graphs.
  std::vector<std::string_view> captures;

  const OnnxAttr* Find(std::string_view attr) const;
  bool has_subgraph() const;
  // Its name in messages: its own, or else its first output's.
  std::string_view label() const;
};

struct OnnxValueInfo : OnnxType {
  std::string_view name;
};

struct OnnxGraph {
  std::string_view name;
  std::vector<OnnxNode> nodes;
  std::vector<std::pair<std::string_view, OnnxTensorData>> initializers;  // with their names
  std::vector<OnnxValueInfo> inputs, outputs, values;
};

using OnnxOpsets = std::vector<std::pair<std::string_view, int64_t>>;  // domain, version

struct OnnxFunction {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<std::string_view> attrs;  // without a default
  std::vector<OnnxAttr> defaults;
  std::vector<OnnxNode> nodes;
  OnnxOpsets opsets;
};

struct OnnxModel {
  int64_t ir_version = 0;
  int64_t model_version = 0;
  std::string_view producer, producer_version, domain, doc;
  OnnxOpsets opsets;
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
};

// Whether the bytes begin like a ModelProto, damaged or not.
bool LooksLikeOnnx(Bytes bytes);

// `file` is for messages. DataLoss for bytes that are damaged or contain no graph.
Result<OnnxModel> ReadOnnxModel(Bytes bytes, std::string_view file);

// Names that a graph reads but does not compute, and that are neither its inputs nor its constants,
// each once, in order.
std::vector<std::string_view> FreeOnnxNames(const OnnxGraph& graph);

// The version of a domain ("" is ai.onnx), 0 when it is not imported.
int64_t VersionOf(const OnnxOpsets& opsets, std::string_view domain);

}  // namespace oncilla
