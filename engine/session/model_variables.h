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
  // A copy of the variable's current value: what was last assigned, else the value in the model's
  // files. NotFound with near names; FailedPrecondition when it has no value yet.
  Result<Tensor> Read(const std::string& name);
  // Assigns for the runs that begin later. InvalidArgument for another type or shape than the
  // variable's. A variable that no graph changes thereby becomes one that changes, and the graphs
  // that read it are compiled again.
  Status Assign(const std::string& name, Tensor value);

  // The variables that some graph of the model changes, and tables.
  VariableStore& store();

 private:
  Model& model_;
  ModelSource& source_;
};

}  // namespace oncilla
