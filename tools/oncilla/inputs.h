// The tensors that are fed to a run: from files, from a folder, or generated.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/oncilla/files/image.h"
#include "tools/oncilla/flags.h"

namespace oncilla::tool {

struct InputFlags {
  std::vector<std::string> inputs;  // NAME=FILE
  std::string input_dir;
  bool random = false;
  uint64_t seed = 0;
  std::vector<std::string> shapes;  // NAME=1x3x224x224
  std::string resize, mean, scale, layout;

  void AddTo(CLI::App& app);
};

struct Inputs {
  std::vector<NamedTensor> feeds;
  std::string photo;  // the file that was the one image among them; empty when none or several
};

// Gives each name in `needed` its tensor, of the signature's type and shape where it says them.
// Every failure is of the command line or of the user's files. `files` may add to the flags'
// (--steps).
Result<Inputs> GatherInputs(const Signature& signature, const std::vector<std::string>& needed,
                            const InputFlags& flags);

// The signature with what --input gives beyond it: tensors inside the graph, named with their
// output ("scope/op:0"). Their types are those of the files.
Signature WithInnerInputs(const Signature& signature, const InputFlags& flags);

// The names of the inputs that some flag gives a value, in the signature's order; all of them with
// --random or --input-dir.
Result<std::vector<std::string>> GivenInputs(const Signature& signature, const InputFlags& flags);

// The shape of an input with the sizes the model leaves open taken from --shape, or 1 for the
// first axis. InvalidArgument when sizes stay open or contradict the model.
Result<Shape> SettledShape(const TensorInfo& info, const InputFlags& flags,
                           const Signature& signature);

}  // namespace oncilla::tool
