// ModelVariables: a model's variables for applications: those that change between runs, and trained
// weights. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "engine/import/model_source.h"
#include "engine/run/variables.h"

namespace oncilla {

class Model;

class ModelVariables {
 public:
  ModelVariables(Model& model, ModelSource& source) : model_(model), source_(source) {}

  // All variables, trained weights too.
  Result<std::vector<TensorInfo>> List() const;
  // A copy of what the variable is now: what was last assigned, else what the model's files give
  // it. NotFound with near names; FailedPrecondition when nothing has given it a value yet.
  Result<Tensor> Read(const std::string& name);
  // For the runs that begin later. InvalidArgument for another type or shape than the variable's.
  // To assign to one that no graph changes makes it one that changes, which costs the graphs that
  // read it another compilation.
  Status Assign(const std::string& name, Tensor value);

  // Those that some graph of the model changes, and tables.
  VariableStore& store();

 private:
  Model& model_;
  ModelSource& source_;
};

}  // namespace oncilla
