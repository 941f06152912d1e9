// Binding positions to a compiled graph, and calls.
#include "engine/session/callable.h"

#include <algorithm>

namespace oncilla {

Callable::Callable(std::shared_ptr<Model> model, CallableOptions options)
    : model_(std::move(model)), options_(std::move(options)) {}

Callable::~Callable() = default;

Result<std::shared_ptr<Callable>> Callable::Create(std::shared_ptr<Model> model,
                                                   CallableOptions options) {
  std::shared_ptr<Callable> callable(new Callable(std::move(model), std::move(options)));
  ONCILLA_ASSIGN(const auto use, callable->model_->EnterShared());
  ONCILLA_ASSIGN(const auto bound, callable->Bind());
  for (const NamedValue& output : bound->executor->compiled().graph.outputs()) {
    callable->outputs_.push_back(output.name);
  }
  callable->model_->AddCallable(callable->state_);
  return callable;
}

Result<std::shared_ptr<const Callable::Bound>> Callable::Bind() {
  auto bound = std::make_shared<Bound>();
  const ImportRequest names{options_.signature, options_.feeds, options_.fetches, options_.targets};
  ONCILLA_ASSIGN(const int preferred, model_->session().device_set().Use(options_.device));
  ONCILLA_ASSIGN(bound->executor, model_->ExecutableInUse(names, nullptr, preferred));
  const Graph& graph = bound->executor->compiled().graph;
  for (const NamedValue& input : graph.inputs()) {
    const auto it = std::find(options_.feeds.begin(), options_.feeds.end(), input.name);
    if (it == options_.feeds.end()) return model_->NotFed(input.name, graph.fact(input.value));
    bound->feed_of_input.push_back(static_cast<size_t>(it - options_.feeds.begin()));
  }
  ONCILLA_ASSIGN(bound->keep, Model::KeepMask(graph, options_.keep, options_.keep_all));
  MutexLock lock(&state_->mutex);
  state_->bound = bound;
  return std::shared_ptr<const Bound>(std::move(bound));
}

Result<std::vector<std::shared_ptr<DeviceLink>>> Callable::FeedLinks() {
  ONCILLA_ASSIGN(const auto use, model_->EnterShared());
  ONCILLA_ASSIGN(const auto bound, Bind());
  std::vector<std::shared_ptr<DeviceLink>> links(options_.feeds.size());
  const std::vector<int> devices = bound->executor->InputDevices();
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] == 0) continue;
    links[bound->feed_of_input[i]] =
        model_->session().device_set().links()[static_cast<size_t>(devices[i])];
  }
  return links;
}

Result<std::vector<RunValue>> Callable::Run(std::span<const RunValue> feeds,
                                            const CallOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  if (feeds.size() != options_.feeds.size()) {
    return WithStage(
        InvalidArgument("the callable takes ", options_.feeds.size(), " feeds, got ", feeds.size()),
        Stage::kOptions);
  }
  ONCILLA_ASSIGN(const auto use, model_->EnterShared());
  std::shared_ptr<const Bound> bound;
  {
    MutexLock lock(&state_->mutex);
    bound = state_->bound;
  }
  if (bound == nullptr) {
    ONCILLA_ASSIGN(bound, Bind());
  }
  std::vector<RunValue> inputs;
  inputs.reserve(bound->feed_of_input.size());
  for (const size_t feed : bound->feed_of_input) {
    if (!feeds[feed].valid()) {
      return WithStage(InvalidArgument("feed ", feed, " ('", options_.feeds[feed], "') is empty"),
                       Stage::kOptions);
    }
    inputs.push_back(feeds[feed]);
  }
  RunControl control = model_->ControlOf(begin, options.timeout, options.cancel);
  control.stats = options.stats;
  return model_->Execute(*bound->executor, inputs, bound->keep, control);
}

}  // namespace oncilla
