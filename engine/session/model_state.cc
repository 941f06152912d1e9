// What a model remembers between runs: how variables get their first values, and what applications
// read and assign.
#include <algorithm>
#include <list>

#include "engine/session/model.h"
#include "engine/session/session.h"

namespace oncilla {

// Called with compile_mutex_ held.
Status Model::PrepareVariables(const Module& module) {
  std::vector<std::string> resources, missing;
  for (const ModuleVariable& variable : module.variables) {
    resources.push_back(variable.resource);
    if (variable.initial.valid()) {
      ONCILLA_TRY(variables_.Initialise(variable.name, variable.initial));
    }
    if (!variables_.Has(variable.name)) missing.push_back(variable.resource);
  }
  BecomeState(resources);
  if (missing.empty()) return Status();
  auto initialiser = source_->ImportInitialiser(missing, session_->runtime().ops());
  if (!initialiser.ok()) return WithStage(initialiser.status(), Stage::kLoad);
  if (initialiser->main.nodes().empty()) return Status();
  for (const ModuleVariable& variable : initialiser->variables) {
    if (variable.initial.valid()) {
      ONCILLA_TRY(variables_.Initialise(variable.name, variable.initial));
    }
  }
  // Values that change live in host memory.
  ONCILLA_ASSIGN(const auto executor, Compile(*std::move(initialiser), 0, nullptr, Watched()));
  return executor->Run({}, ControlOf(std::chrono::steady_clock::now(), {}, {})).status();
}

void Model::BecomeState(const std::vector<std::string>& resources) {
  source_->NoteState(resources);
  std::list<Entry> dropped;  // their memory goes back after the lock
  {
    MutexLock lock(&mutex_);
    bool changed = false;
    for (const std::string& name : resources) changed |= state_.insert(name).second;
    if (!changed) return;
    dropped.swap(executors_);
  }
  ReleaseCallables();
}

Result<Tensor> Model::ReadVariable(const std::string& name) {
  ONCILLA_ASSIGN(const auto use, EnterShared());
  if (variables_.Has(name)) return variables_.Read(name);
  ONCILLA_TRY(source_->FindVariable(name).status());
  auto value = source_->VariableValue(name);
  if (!value.ok()) return WithStage(value.status(), Stage::kOptions);
  if (value->dtype() == DType::kString) return value;
  // A copy, since the files may change, or go with the model.
  ONCILLA_ASSIGN(Tensor copy, Tensor::Allocate(value->desc()));
  std::ranges::copy(value->bytes(), copy.mutable_bytes().begin());
  ONCILLA_TRY(FilesUnchanged());
  return copy;
}

Status Model::AssignVariable(const std::string& name, Tensor value) {
  ONCILLA_ASSIGN(const auto use, EnterShared());
  MutexLock compiling(&compile_mutex_);
  ONCILLA_ASSIGN(const TensorInfo variable, source_->FindVariable(name));
  const bool typed = variable.dtype != DType::kInvalid;
  if (!value.valid() ||
      (typed && (value.dtype() != variable.dtype || !variable.shape.Accepts(value.shape())))) {
    return WithStage(
        InvalidArgument("the variable '", name, "' is a ", Fact::Of(variable.dtype, variable.shape),
                        ", and ", value.valid() ? StrCat("a ", value.desc()) : "nothing",
                        " was to be assigned"),
        Stage::kOptions);
  }
  BecomeState({name});
  return WithStage(variables_.Assign(name, std::move(value)), Stage::kRun);
}

}  // namespace oncilla
