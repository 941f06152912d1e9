// Sequences and optional values in canonical graphs, which have lists and no other containers.
#pragma once

#include <string>
#include <unordered_map>

#include "engine/graph/graph.h"
#include "engine/import/onnx/reader.h"

namespace oncilla {

// Which values of a graph are optional. An optional tensor is a list of it, or of nothing; an
// optional sequence is the sequence with an unwritten element behind it, or an empty list. A
// sequence itself is a list without unwritten elements.
using OnnxKinds = std::unordered_map<uint32_t, OnnxKind>;

// kTensor, kSequence, kOptional or kOptionalSequence.
OnnxKind OnnxKindOf(const Graph& graph, const OnnxKinds& kinds, ValueId value);
// Notes the kind where the value's fact does not say it.
void MarkOnnxKind(const Graph& graph, OnnxKinds& kinds, ValueId value, OnnxKind kind);
// True when a plain value of one kind can stand for an optional one of the other.
bool WrapsOnnxKind(OnnxKind plain, OnnxKind optional);

// A plain value, which is there, as an optional one; the node's name is `name`.
Result<ValueId> WrapOnnxOptional(Graph& graph, OnnxKinds& kinds, ValueId value,
                                 const std::string& name);
// What an optional value holds; fails the run where it holds nothing.
Result<ValueId> UnwrapOnnxOptional(Graph& graph, const OnnxKinds& kinds, ValueId optional,
                                   const std::string& name);

// A list of no elements, of this type.
Result<ValueId> EmptyOnnxList(Graph& graph, const Fact& type, const std::string& name);

}  // namespace oncilla
