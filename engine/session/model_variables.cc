// Reading and assigning variables by name.
#include "engine/session/model_variables.h"

#include <algorithm>

#include "engine/session/model.h"

namespace oncilla {

VariableStore& ModelVariables::store() { return model_.executables().variables(); }

Result<std::vector<TensorInfo>> ModelVariables::List() const { return source_.Variables(); }

Result<Tensor> ModelVariables::Read(const std::string& name) {
  ONCILLA_ASSIGN(const auto use, model_.Enter());
  if (store().Has(name)) return store().Read(name);
  ONCILLA_TRY(source_.FindVariable(name).status());
  auto value = source_.VariableValue(name);
  if (!value.ok()) return WithStage(value.status(), Stage::kOptions);
  if (value->dtype() == DType::kString) return value;
  // A copy, since the files may change or be closed with the model.
  ONCILLA_ASSIGN(Tensor copy, Tensor::Allocate(value->desc()));
  std::ranges::copy(value->bytes(), copy.mutable_bytes().begin());
  ONCILLA_TRY(model_.executables().FilesUnchanged());
  return copy;
}

Status ModelVariables::Assign(const std::string& name, Tensor value) {
  ONCILLA_ASSIGN(const auto use, model_.Enter());
  ONCILLA_ASSIGN(const TensorInfo variable, source_.FindVariable(name));
  const bool typed = variable.dtype != DType::kInvalid;
  if (!value.valid() ||
      (typed && (value.dtype() != variable.dtype || !variable.shape.Accepts(value.shape())))) {
    return WithStage(
        InvalidArgument("the variable '", name, "' is a ", Fact::Of(variable.dtype, variable.shape),
                        ", and ", value.valid() ? StrCat("a ", value.desc()) : "nothing",
                        " was to be assigned"),
        Stage::kOptions);
  }
  return WithStage(model_.executables().Assign(name, std::move(value)), Stage::kRun);
}

}  // namespace oncilla
