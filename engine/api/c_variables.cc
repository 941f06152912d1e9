// The C interface to the variables of a model.
#include "engine/api/handles.h"

using namespace oncilla;
using namespace oncilla::api;

namespace {

// Variables are listed on first use, because that reads the model's graph.
Status List(const oncilla_model& model) {
  std::call_once(model.listed, [&] {
    model.variables_status = Fenced([&]() -> Status {
      ONCILLA_ASSIGN(model.variables, model.model->variables().List());
      for (const TensorInfo& info : model.variables) {
        model.variable_dims.push_back(DimsOf(info.shape));
      }
      return Status();
    });
  });
  return model.variables_status;
}

}  // namespace

size_t oncilla_model_variable_count(const oncilla_model* model) {
  return model != nullptr && List(*model).ok() ? model->variables.size() : 0;
}

oncilla_status* oncilla_model_variable(const oncilla_model* model, size_t index,
                                       oncilla_tensor_info* info) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    ONCILLA_TRY(List(*model));
    if (index >= model->variables.size()) {
      return InvalidArgument("there is no variable ", index, "; there are ",
                             model->variables.size());
    }
    return WriteTensorInfo(model->variables[index], model->variable_dims[index], info);
  });
}

oncilla_status* oncilla_model_read_variable(oncilla_model* model, const char* name,
                                            oncilla_tensor** tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    ONCILLA_TRY(NeedHandle(name, "name"));
    ONCILLA_TRY(NeedHandle(tensor, "tensor"));
    ONCILLA_ASSIGN(Tensor value, model->model->variables().Read(name));
    if (value.is_list()) return Unsupported("'", name, "' is a stack, which has no value to read");
    *tensor = new oncilla_tensor(MakeTensor(std::move(value)));
    return Status();
  });
}

oncilla_status* oncilla_model_assign_variable(oncilla_model* model, const char* name,
                                              const oncilla_tensor* tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    ONCILLA_TRY(NeedHandle(name, "name"));
    ONCILLA_TRY(NeedTensor(tensor, "tensor"));
    ONCILLA_ASSIGN(Tensor value, tensor->value().ToHost());
    return model->model->variables().Assign(name, std::move(value));
  });
}
