// An ONNX file as plain structs of views into the mapped bytes: model, graph, nodes, attributes.
//
// Names, nodes and attributes are parsed when the model is opened; tensors stay messages until
// somebody needs them (onnx_tensor.h). Fields and numbers after onnx.proto. The bytes must outlive
// everything here. Nothing is judged: what the engine cannot run is read all the same.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/import/wire/wire.h"
#include "engine/tensor/shape.h"

namespace oncilla {

// The numbers of onnx.AttributeProto.AttributeType that are told apart.
enum class OnnxAttrType {
  kUndefined,
  kFloat,
  kInt,
  kString,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kStrings,
  kOther
};

struct OnnxAttr {
  std::string_view name;
  std::string_view reference;  // in a function's body: the function's own attribute that it takes
  OnnxAttrType type = OnnxAttrType::kUndefined;
  float f = 0;
  int64_t i = 0;
  Bytes s;       // a string
  Bytes tensor;  // a TensorProto
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<Bytes> strings;
};

struct OnnxNode {
  std::string_view name, op, domain;  // "ai.onnx" is read as the empty domain
  std::string_view overload;
  std::vector<std::string_view> inputs, outputs;  // empty: not given
  std::vector<OnnxAttr> attrs;

  const OnnxAttr* Find(std::string_view attr) const;
  bool has_subgraph() const;
  // What messages call it: its name, else its first output's.
  std::string_view label() const;
};

enum class OnnxKind { kTensor, kSequence, kOptional, kMap, kSparse, kUnknown };

struct OnnxValueInfo {
  std::string_view name;
  OnnxKind kind = OnnxKind::kUnknown;
  int64_t element_type = 0;
  // Sizes with a name in the file carry it.
  PartialShape shape;
};

struct OnnxGraph {
  std::string_view name;
  std::vector<OnnxNode> nodes;
  std::vector<std::pair<std::string_view, Bytes>> initializers;  // name, TensorProto
  std::vector<std::string_view> sparse_initializers;
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

// True for what begins as a ModelProto does, damaged or not.
bool LooksLikeOnnx(Bytes bytes);

// `file` is for messages. DataLoss for what is damaged or holds no graph.
Result<OnnxModel> ReadOnnxModel(Bytes bytes, std::string_view file);

// The version of a domain ("" is ai.onnx), 0 when it is not imported.
int64_t VersionOf(const OnnxOpsets& opsets, std::string_view domain);

}  // namespace oncilla
