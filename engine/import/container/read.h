// Messages of a container back to modules. Nothing in them is trusted: every index and size is
// checked, every node passes through Graph::AddNode, and calls of functions must fit them, must not
// recurse, and must give what their caller says.
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

// A container's message and weights, checked on their own.
struct Opened {
  std::shared_ptr<const MappedFile> file;
  std::shared_ptr<const std::string> graph;   // the bytes of the graph part
  std::shared_ptr<const ModelMessage> model;  // views of `graph`
  std::span<const std::byte> weights;
};
// Header, checksum of the graph part, message, and that every blob lies in the weights.
Result<Opened> OpenParts(std::shared_ptr<const MappedFile> file);

Signature ReadSignature(const SignatureMessage& message);

// A view into the file.
Result<Tensor> ReadTensor(const Opened& opened, const TensorMessage& message);

// Which part of a module's main graph. No fetches: all outputs and nodes. No feeds: the inputs that
// the rest reads.
struct Part {
  std::vector<std::string> feeds, fetches;
  bool all_nodes = false, all_inputs = false;
};
// What the modules of a file take each variable for: they share the variables.
using VariableTypes = std::map<std::string, Fact, std::less<>>;

// Constants are views into the file, which they keep open. DataLoss when a variable is of another
// type than in `variables`, which gains those that are new.
Result<Module> ReadModule(const Opened& opened, const ModuleMessage& message, const Part& part,
                          const std::shared_ptr<const OpSet>& ops, VariableTypes* variables);

}  // namespace oncilla::container
