// The contents of a TensorFlow model file, for inspection: tag sets, signatures with TensorFlow's
// own names, functions, ops with counts, stored devices, variables.
//
// Everything is read from the serialized bytes, whether the engine supports it or not; nothing is
// imported and no variable's bytes are read, so that a model of any size takes milliseconds.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/import/model_source.h"

namespace oncilla {

struct TfContents {
  struct Tensor {
    std::string key;     // in the signature; empty for a frozen graph
    std::string tensor;  // the tensor's name; empty for sparse and composite ones
    std::string dtype;   // TensorFlow's name, "float"
    PartialShape shape;
  };
  struct SignatureDef {
    std::string key, method;
    std::vector<Tensor> inputs, outputs;  // sorted by key
  };
  // A function of the object that tf.saved_model.load returns, with each way in which it can be
  // called: "(x: f32[?,3], training: False)".
  struct Function {
    std::string name;
    std::vector<std::string> calls;
  };
  struct OpCount {
    std::string op;
    int64_t nodes = 0;
  };
  struct Device {
    std::string device;  // as stored
    int64_t nodes = 0;
    std::vector<OpCount> ops;  // most frequent first
  };
  struct Variable {
    std::string name, dtype;
    PartialShape shape;
    int64_t bytes = 0;  // -1 if the shape or the type's size is unknown
  };

  std::string format;                          // "SavedModel" or "GraphDef"
  std::vector<std::vector<std::string>> tags;  // all sets of tags; empty for a GraphDef
  std::vector<std::string> chosen;             // the set to which the rest belongs
  std::string tensorflow_version;              // that wrote it; empty when unknown
  std::vector<SignatureDef> signatures;  // TensorFlow's internal ones included; none: GraphDef
  std::vector<Function> functions;
  std::vector<OpCount> ops;  // of the graph and of all functions, most frequent first
  int64_t nodes = 0, function_nodes = 0, library_functions = 0;
  std::vector<Device> devices;      // of nodes that name one, most nodes first
  std::vector<Variable> variables;  // of all nodes of the graph that are variables, read or not
  int64_t checkpoint_tensors = -1, checkpoint_bytes = 0;  // of numbers; -1: no checkpoint
};

// `path`: a SavedModel's folder or a file, in any form that OpenModel reads. Unimplemented for
// models of other formats.
Result<TfContents> ReadTfContents(const std::string& path, std::span<const std::string> tags);

}  // namespace oncilla
