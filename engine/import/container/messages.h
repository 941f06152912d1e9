// The graph part of a .oncilla file, as protobuf messages: the signatures of a model and, for each,
// its module in the canonical IR. The bytes of its constants follow it, as blobs; container.h
// describes the file.
//
// Names are bytes: models may contain any. Fields are only ever added, and numbers never reused; a
// change to the meaning of existing ones increments kContainerVersion.
#pragma once

#include <optional>
#include <vector>

#include "engine/import/wire/wire_fields.h"

namespace oncilla::container {

// A size of a shape: known, named, or neither.
struct DimMessage {
  std::optional<uint64_t> known;
  std::optional<Bytes> name;
  static void Fields(auto& self, auto&& field) {
    field(1, self.known);
    field(2, self.name);
  }
};

struct TypeMessage {
  uint32_t kind = 0;  // 0 tensor, 1 list of such tensors
  Bytes dtype;        // as graphs are printed: f32, i64, string
  bool ranked = false;
  std::vector<DimMessage> dims;
  static void Fields(auto& self, auto&& field) {
    field(1, self.kind);
    field(2, self.dtype);
    field(3, self.ranked);
    field(4, self.dims);
  }
};

struct TensorInfoMessage {
  Bytes name, source;
  TypeMessage type;
  uint32_t kind = 0;  // TensorInfo::Kind
  static void Fields(auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.source);
    field(3, self.type);
    field(4, self.kind);
  }
};

struct SignatureMessage {
  Bytes key;
  std::vector<TensorInfoMessage> inputs, outputs;
  static void Fields(auto& self, auto&& field) {
    field(1, self.key);
    field(2, self.inputs);
    field(3, self.outputs);
  }
};

// A range of the weights: aligned; equal contents are stored once.
struct BlobMessage {
  uint64_t offset = 0;  // from the beginning of the weights
  uint64_t bytes = 0;
  WireFixed64 hash;  // XXH3, 64 bits
  static void Fields(auto& self, auto&& field) {
    field(1, self.offset);
    field(2, self.bytes);
    field(3, self.hash);
  }
};

struct TensorMessage {
  Bytes dtype;
  std::vector<uint64_t> dims;
  uint32_t blob = 0;           // the index of the blob with the numbers
  std::vector<Bytes> strings;  // all elements of a tensor of strings
  static void Fields(auto& self, auto&& field) {
    field(1, self.dtype);
    field(2, self.dims);
    field(3, self.blob);
    field(4, self.strings);
  }
};

template <class T>
struct ListMessage {
  std::vector<T> values;
  static void Fields(auto& self, auto&& field) { field(1, self.values); }
};

// Exactly one of the values is set.
struct AttrMessage {
  Bytes name;
  std::optional<WireSigned> i;
  std::optional<double> f;
  std::optional<bool> b;
  std::optional<Bytes> dtype, s;
  std::optional<ListMessage<WireSigned>> ints;
  std::optional<ListMessage<double>> floats;
  std::optional<ListMessage<Bytes>> strings;
  static void Fields(auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.i);
    field(3, self.f);
    field(4, self.b);
    field(5, self.dtype);
    field(6, self.s);
    field(7, self.ints);
    field(8, self.floats);
    field(9, self.strings);
  }
};

struct InputMessage {
  Bytes name;
  TypeMessage type;
  static void Fields(auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.type);
  }
};

struct ConstantMessage {
  Bytes name;
  TensorMessage value;
  static void Fields(auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.value);
  }
};

struct NodeMessage {
  Bytes name, op;
  std::vector<AttrMessage> attrs;
  std::vector<uint32_t> inputs;     // index of a value plus 1; 0: not given
  std::vector<Bytes> output_names;  // per output its source tensor, or empty
  std::vector<Bytes> sources;       // empty: only the node's name
  static void Fields(auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.op);
    field(3, self.attrs);
    field(4, self.inputs);
    field(5, self.output_names);
    field(6, self.sources);
  }
};

struct OutputMessage {
  Bytes name;
  uint32_t value = 0;
  static void Fields(auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.value);
  }
};

// Values are numbered: inputs, then constants, then outputs of nodes, in order.
struct GraphMessage {
  std::vector<InputMessage> inputs;
  std::vector<ConstantMessage> constants;
  std::vector<NodeMessage> nodes;
  std::vector<OutputMessage> outputs;
  static void Fields(auto& self, auto&& field) {
    field(1, self.inputs);
    field(2, self.constants);
    field(3, self.nodes);
    field(4, self.outputs);
  }
};

struct FunctionMessage {
  Bytes name;
  GraphMessage graph;
  static void Fields(auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.graph);
  }
};

struct VariableMessage {
  Bytes name, resource;
  std::optional<TensorMessage> initial;  // none until something assigns one
  static void Fields(auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.resource);
    field(3, self.initial);
  }
};

struct ModuleMessage {
  GraphMessage main;
  std::vector<FunctionMessage> functions;
  std::vector<VariableMessage> variables;
  static void Fields(auto& self, auto&& field) {
    field(1, self.main);
    field(2, self.functions);
    field(3, self.variables);
  }
};

struct EntryMessage {
  SignatureMessage signature;
  ModuleMessage module;
  static void Fields(auto& self, auto&& field) {
    field(1, self.signature);
    field(2, self.module);
  }
};

// A module with the name of what it is for: the variable or table that it initialises, or the node
// of the source that is run for its effects alone (a module without outputs).
struct NamedModuleMessage {
  Bytes name;
  ModuleMessage module;
  static void Fields(auto& self, auto&& field) {
    field(1, self.name);
    field(2, self.module);
  }
};

struct ModelMessage {
  Bytes producer;       // the program that wrote the file
  Bytes source_format;  // the format that the model was converted from
  std::vector<BlobMessage> blobs;
  std::vector<EntryMessage> entries;
  std::vector<NamedModuleMessage> initialisers, targets;
  static void Fields(auto& self, auto&& field) {
    field(1, self.producer);
    field(2, self.source_format);
    field(3, self.blobs);
    field(4, self.entries);
    field(5, self.initialisers);
    field(6, self.targets);
  }
};

}  // namespace oncilla::container
