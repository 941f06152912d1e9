// Converts messages of a container to modules. Nothing in them is trusted: every index and size is
// checked, every node passes through Graph::AddNode, and calls of functions must have the right
// arguments, must not recurse, and must return what their caller declares.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/import/container/messages.h"
#include "engine/import/model_source.h"

namespace oncilla::container {

// A container's message and weights, after the checks of OpenParts.
struct Opened {
  std::shared_ptr<const MappedFile> file;
  std::shared_ptr<const std::string> graph;   // the bytes of the graph part
  std::shared_ptr<const ModelMessage> model;  // views of `graph`
  std::span<const std::byte> weights;
};
// Checks header, checksum of the graph part, message, and that every blob lies within the weights.
Result<Opened> OpenParts(std::shared_ptr<const MappedFile> file);

Signature ReadSignature(const SignatureMessage& message);

// A view into the file.
Result<Tensor> ReadTensor(const Opened& opened, const TensorMessage& message);

// The part of a module's main graph to read. No fetches: all outputs and nodes. No feeds: the
// inputs that this part uses.
struct Part {
  std::vector<std::string> feeds, fetches;
  bool all_nodes = false, all_inputs = false;
};
// The types of variables in the modules of a file, which share the variables.
using VariableTypes = std::map<std::string, Fact, std::less<>>;

// Constants are views into the file, which they keep open. DataLoss when a variable has another
// type than in `variables`, to which new ones are added.
Result<Module> ReadModule(const Opened& opened, const ModuleMessage& message, const Part& part,
                          const std::shared_ptr<const OpSet>& ops, VariableTypes* variables);

}  // namespace oncilla::container
