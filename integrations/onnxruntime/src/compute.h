// A part of a graph that the engine runs: ONNX Runtime calls it instead of its nodes.
#pragma once

#include <oncilla/oncilla.hpp>
#include <string>
#include <vector>

#include "integrations/onnxruntime/src/abi.h"

namespace oncilla::ort {

class Compute : public OrtNodeComputeInfo {
 public:
  struct Input {
    size_t index;  // of the node that replaces the part
    std::string name;
  };
  // `outputs` in the order of that node.
  Compute(Model model, std::vector<Input> inputs, std::vector<std::string> outputs);

 private:
  static OrtStatus* Run(OrtNodeComputeInfo* self, void* state, OrtKernelContext* context);
  void Run(OrtKernelContext* context) const;

  const Model model_;
  const std::vector<Input> inputs_;
  const std::vector<std::string> outputs_;
};

}  // namespace oncilla::ort
