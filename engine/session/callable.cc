// Binding positions to a compiled graph, and calling it.
#include "engine/session/callable.h"

#include <algorithm>

#include "engine/session/run.h"

namespace oncilla {

Callable::Callable(std::shared_ptr<Model> model, CallableOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      names_{options_.signature, options_.feeds, options_.fetches, options_.targets} {}

Callable::~Callable() = default;

Result<std::shared_ptr<Callable>> Callable::Create(std::shared_ptr<Model> model,
                                                   CallableOptions options) {
  std::shared_ptr<Callable> callable(new Callable(std::move(model), std::move(options)));
  Model& of = *callable->model_;
  ONCILLA_ASSIGN(const auto use, of.Enter());
  const auto bound = callable->Bind(Watched(of.session()));
  callable->for_any_ = bound.ok() || !NeedsFeeds(bound.status()) || callable->names_.feeds.empty();
  if (callable->for_any_) {
    ONCILLA_TRY(bound.status());
    for (const NamedValue& output : (*bound)->executor->compiled().graph.outputs()) {
      callable->outputs_.push_back(output.name);
    }
    of.executables().AddCallable(callable->state_);
    return callable;
  }
  // Results keep their positions, independently of the graph that computes them.
  ImportRequest& names = callable->names_;
  if (names.fetches.empty() && names.targets.empty()) {
    ONCILLA_ASSIGN(const Signature* signature, of.source().FindSignature(names.signature));
    names.fetches = NamesOf(signature->outputs);
  }
  callable->outputs_ = names.fetches;
  for (const std::string& kept : callable->options_.keep) {
    if (std::ranges::find(names.fetches, kept) == names.fetches.end()) return NoOutputToKeep(kept);
  }
  return callable;
}

Result<std::shared_ptr<const Callable::Bound>> Callable::Bind(const RunControl& control) {
  ONCILLA_ASSIGN(const int preferred, model_->session().device_set().Use(options_.device));
  ONCILLA_ASSIGN(auto executor, model_->executables().Find(names_, preferred, control));
  ONCILLA_ASSIGN(auto bound, BoundTo(std::move(executor)));
  MutexLock lock(&state_->mutex);
  state_->bound = bound;
  return bound;
}

Result<std::shared_ptr<const Callable::Bound>> Callable::BoundTo(
    std::shared_ptr<Executor> executor) const {
  auto bound = std::make_shared<Bound>();
  bound->executor = std::move(executor);
  const Graph& graph = bound->executor->compiled().graph;
  for (const NamedValue& input : graph.inputs()) {
    const auto it = std::find(options_.feeds.begin(), options_.feeds.end(), input.name);
    if (it == options_.feeds.end())
      return model_->source().NotFed(input.name, graph.fact(input.value));
    bound->feed_of_input.push_back(static_cast<size_t>(it - options_.feeds.begin()));
  }
  ONCILLA_ASSIGN(bound->keep, KeepMask(graph, options_.keep, options_.keep_all));
  return std::shared_ptr<const Bound>(std::move(bound));
}

Result<std::shared_ptr<const Callable::Bound>> Callable::BoundFor(std::span<const RunValue> feeds,
                                                                  const RunControl& control) {
  if (!for_any_) {
    ONCILLA_ASSIGN(const int preferred, model_->session().device_set().Use(options_.device));
    const auto fed = [&] { return FactsOfFeeds(Named(feeds)); };
    ONCILLA_ASSIGN(auto executor,
                   model_->executables().Find(names_, preferred, control, nullptr, fed));
    return BoundTo(std::move(executor));
  }
  {
    MutexLock lock(&state_->mutex);
    if (state_->bound != nullptr) return state_->bound;
  }
  return Bind(control);
}

std::vector<NamedRunValue> Callable::Named(std::span<const RunValue> feeds) const {
  std::vector<NamedRunValue> named;
  for (size_t i = 0; i < feeds.size(); ++i) named.emplace_back(options_.feeds[i], feeds[i]);
  return named;
}

Status Callable::CheckFeeds(std::span<const RunValue> feeds) const {
  if (feeds.size() == options_.feeds.size()) return Status();
  return WithStage(
      InvalidArgument("the callable takes ", options_.feeds.size(), " feeds, got ", feeds.size()),
      Stage::kOptions);
}

template <class Given, class Work>
Result<Given> Callable::WithBound(std::span<const RunValue> feeds, const RunControl& control,
                                  const Work& work) {
  ONCILLA_TRY(CheckFeeds(feeds));
  // In the order of the graph's inputs.
  const auto in_order = [&](const Bound& bound) -> Result<std::vector<RunValue>> {
    std::vector<RunValue> inputs;
    inputs.reserve(bound.feed_of_input.size());
    const Graph& graph = bound.executor->compiled().graph;
    for (size_t i = 0; i < bound.feed_of_input.size(); ++i) {
      const RunValue& feed = feeds[bound.feed_of_input[i]];
      const std::string& name = graph.inputs()[i].name;
      if (!feed.valid()) {
        return WithStage(
            InvalidArgument("feed ", bound.feed_of_input[i], " ('", name, "') is empty"),
            Stage::kOptions);
      }
      if (feed.on_device() || !feed.host().is_list()) {
        inputs.push_back(feed);
        continue;
      }
      const Fact& wanted = graph.fact(graph.inputs()[i].value);
      ONCILLA_ASSIGN(RunValue list, CheckedFeed(model_->source(), name, wanted, feed.host()));
      inputs.push_back(std::move(list));
    }
    return inputs;
  };
  ONCILLA_ASSIGN(const auto bound, BoundFor(feeds, control));
  ONCILLA_ASSIGN(auto inputs, in_order(*bound));
  Result<Given> result = work(*bound, inputs);
  if (!NeedsNarrower(result.status())) return result;
  ONCILLA_ASSIGN(const int preferred, model_->session().device_set().Use(options_.device));
  const std::vector<NamedRunValue> named = Named(feeds);
  auto narrower = model_->executables().FindNarrower(names_, preferred, control, *bound->executor,
                                                     named, FactsOfFeeds(named));
  if (narrower == nullptr) return result;
  ONCILLA_ASSIGN(const auto own, BoundTo(std::move(narrower)));
  ONCILLA_ASSIGN(inputs, in_order(*own));
  return work(*own, inputs);
}

Result<std::vector<std::shared_ptr<DeviceLink>>> Callable::FeedLinks() {
  ONCILLA_ASSIGN(const auto use, model_->Enter());
  std::vector<std::shared_ptr<DeviceLink>> links(options_.feeds.size());
  if (!for_any_) return links;  // where a feed is read depends on the feeds
  ONCILLA_ASSIGN(const auto bound, Bind(Watched(model_->session())));
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
  ONCILLA_ASSIGN(const auto use, model_->Enter());
  RunControl control = ControlOf(model_->session(), begin, options.timeout, options.cancel);
  control.stats = options.stats;
  const auto run = [&](const Bound& bound,
                       std::span<const RunValue> inputs) -> Result<std::vector<RunValue>> {
    if (!options.into.empty()) return RunInto(bound, inputs, options.into, control);
    return Execute(model_->session(), model_->variables().store(), *bound.executor, inputs,
                   bound.keep, control);
  };
  return WithBound<std::vector<RunValue>>(feeds, control, run);
}

namespace {

HostObjects::Staged StagedOn(std::span<const DeviceTensor> tensors) {
  for (const DeviceTensor& tensor : tensors) {
    if (tensor.valid() && tensor.link()->objects() != nullptr) {
      return tensor.link()->objects()->staged();
    }
  }
  return {};
}

}  // namespace

Result<std::vector<RunValue>> Callable::RunInto(const Bound& bound,
                                                std::span<const RunValue> inputs,
                                                std::span<const DeviceTensor> into,
                                                RunControl control) {
  const auto refuse = [](Status status) { return WithStage(std::move(status), Stage::kOptions); };
  if (into.size() != outputs_.size()) {
    return refuse(InvalidArgument("the callable has ", outputs_.size(), " outputs, and ",
                                  into.size(), " tensors were given for them"));
  }
  RunStats own;
  if (control.stats == nullptr) control.stats = &own;
  const auto links = model_->session().device_set().links();
  std::vector<DeviceTensor> direct(into.begin(), into.end());
  std::vector<bool> keep = bound.keep;
  for (size_t i = 0; i < into.size(); ++i) {
    if (!into[i].valid()) continue;
    const std::string what = StrCat("output '", outputs_[i], "'");
    if (std::find(links.begin(), links.end(), into[i].link()) == links.end()) {
      return refuse(InvalidArgument(what, " is on a device of another session"));
    }
    if (into[i].link()->closed()) {
      return Error(Code::kFailedPrecondition, what, ": the session is closed");
    }
    if (!into[i].wrapped()) {
      return refuse(InvalidArgument(what, " must be in a buffer of the application's"));
    }
    if (!into[i].writable()) {
      return refuse(InvalidArgument(what, " is in a buffer that kernels may only read ",
                                    "(CL_MEM_READ_ONLY)"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (into[j].valid() && into[i].link()->Overlap(into[i], into[j])) {
        return refuse(
            InvalidArgument("outputs '", outputs_[j], "' and '", outputs_[i], "' overlap"));
      }
    }
    keep[i] = true;
    bool alone = !control.may_end_early();  // a device may outlive a run that ends early
    for (const RunValue& input : inputs) {
      alone &= !input.on_device() || !into[i].link()->Overlap(into[i], input.device());
    }
    if (!alone) direct[i] = DeviceTensor();
  }
  const OutputTargets targets{&bound.executor->compiled(), direct};
  control.into = &targets;
  const HostObjects::Staged before = StagedOn(into);
  ONCILLA_ASSIGN(auto results, Execute(model_->session(), model_->variables().store(),
                                       *bound.executor, inputs, keep, control));
  for (size_t i = 0; i < into.size(); ++i) {
    if (!into[i].valid()) continue;
    if (results[i].on_device() && results[i].device().SameMemory(into[i])) continue;
    if (!results[i].on_device() && results[i].host().is_list()) {
      return refuse(InvalidArgument("output '", outputs_[i], "' is a sequence, and a tensor is ",
                                    "given for it"));
    }
    const TensorDesc& desc = results[i].desc();
    if (desc.dtype != into[i].desc().dtype || desc.shape != into[i].desc().shape) {
      return refuse(InvalidArgument("output '", outputs_[i], "' is ", desc,
                                    ", and the tensor given for it ", into[i].desc()));
    }
    ONCILLA_ASSIGN(const bool on_device, into[i].link()->Fill(into[i], results[i]));
    (on_device ? control.stats->device_copies : control.stats->copies) += 1;
    (on_device ? control.stats->device_copied_bytes : control.stats->copied_bytes) += desc.bytes();
    results[i] = into[i];
  }
  const HostObjects::Staged after = StagedOn(into);
  control.stats->device_copies += after.copies - before.copies;
  control.stats->device_copied_bytes += after.bytes - before.bytes;
  return results;
}

Result<EnqueuedRun> Callable::Enqueue(void* queue, std::span<const RunValue> feeds,
                                      std::span<const DeviceTensor> into,
                                      std::span<void* const> wait_for, bool profile) {
  ONCILLA_ASSIGN(const auto use, model_->Enter());
  const auto enqueue = [&](const Bound& bound, std::span<const RunValue> inputs) {
    return bound.executor->Enqueue({queue, inputs, into, wait_for, profile});
  };
  return WithBound<EnqueuedRun>(feeds, Watched(model_->session()), enqueue);
}

}  // namespace oncilla
