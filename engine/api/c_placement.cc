// The C interface: where nodes run, and which can run at all.
#include <algorithm>
#include <cstring>

#include "engine/api/handles.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

oncilla_status* oncilla_model_place(oncilla_model* model, const char* nodes, const char* op,
                                    const char* device) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    ONCILLA_TRY(NeedHandle(device, "device"));
    PlacementRequest request;
    if (nodes != nullptr) request.nodes = nodes;
    if (op != nullptr) request.op = op;
    request.device = device;
    return model->model->Place({std::move(request)});
  });
}

oncilla_status* oncilla_model_place_by(oncilla_model* model, oncilla_place_fn rule, void* user,
                                       void (*done)(void* user)) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    ONCILLA_TRY(NeedHandle(reinterpret_cast<const void*>(rule), "rule"));
    PlacementRequest request;
    const auto last = std::make_shared<LastCall>(done, user);
    request.rule = [rule, user, last](const NodeInQuestion& node) -> std::string {
      const std::string name(node.name), op(node.op), stored(node.device);
      const char* device = rule(user, name.c_str(), op.c_str(), stored.c_str());
      return device == nullptr ? "" : device;
    };
    const Status placed = model->model->Place({std::move(request)});
    last->succeeded = placed.ok();
    return placed;
  });
}

oncilla_status* oncilla_model_clear_placement(oncilla_model* model) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    model->model->ClearPlacement();
    return Status();
  });
}

oncilla_status* oncilla_model_placement(oncilla_model* model, const char* signature,
                                        const char* device, char* text, size_t size,
                                        size_t* needed) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    if (size > 0) ONCILLA_TRY(NeedHandle(text, "text"));
    ImportRequest request;
    if (signature != nullptr) request.signature = signature;
    ONCILLA_ASSIGN(const auto executor,
                   model->model->Executable(request, nullptr, device == nullptr ? "" : device));
    const std::string all = Print(executor->compiled().placement);
    if (needed != nullptr) *needed = all.size() + 1;
    if (size == 0) return Status();
    const size_t fits = std::min(all.size(), size - 1);
    std::memcpy(text, all.data(), fits);
    text[fits] = 0;
    return Status();
  });
}

oncilla_status* oncilla_model_judge_nodes(const oncilla_model* model, oncilla_judge_fn judge,
                                          void* user) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    ONCILLA_TRY(NeedHandle(reinterpret_cast<const void*>(judge), "judge"));
    Model& judged = *model->model;
    ONCILLA_ASSIGN(const std::vector<NodeJudgement> all,
                   judged.source().JudgeNodes(judged.session().runtime().ops()));
    for (size_t i = 0; i < all.size(); ++i) {
      judge(user, i, all[i].node.c_str(), all[i].op.c_str(), all[i].reason.c_str());
    }
    return Status();
  });
}
