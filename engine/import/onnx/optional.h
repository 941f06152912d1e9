// Sequences and optional values in canonical graphs, whose only containers are lists.
#pragma once

#include <string>
#include <unordered_map>

#include "engine/graph/graph.h"
#include "engine/import/onnx/reader.h"

namespace oncilla {

// Which values of a graph are optional. An optional tensor is a list with it, or an empty list; an
// optional sequence is the sequence with an unwritten element after it, or an empty list. A
// sequence itself is a list without unwritten elements.
using OnnxKinds = std::unordered_map<uint32_t, OnnxKind>;

// kTensor, kSequence, kOptional or kOptionalSequence.
OnnxKind OnnxKindOf(const Graph& graph, const OnnxKinds& kinds, ValueId value);
// Records the kind if the value's fact does not tell it.
void MarkOnnxKind(const Graph& graph, OnnxKinds& kinds, ValueId value, OnnxKind kind);
// Whether a plain value of one kind can be used as an optional one of the other.
bool WrapsOnnxKind(OnnxKind plain, OnnxKind optional);

// Converts a plain value to an optional one that is present; the node's name is `name`.
Result<ValueId> WrapOnnxOptional(Graph& graph, OnnxKinds& kinds, ValueId value,
                                 const std::string& name);
// The value in an optional; fails the run if it is absent.
Result<ValueId> UnwrapOnnxOptional(Graph& graph, const OnnxKinds& kinds, ValueId optional,
                                   const std::string& name);

// An empty list of this type.
Result<ValueId> EmptyOnnxList(Graph& graph, const Fact& type, const std::string& name);

}  // namespace oncilla
