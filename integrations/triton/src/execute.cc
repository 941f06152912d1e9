// Executes requests: those of equal shapes are joined along the first axis, run once, and their
// results divided again.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "integrations/triton/src/border.h"
#include "integrations/triton/src/model.h"

namespace oncilla::triton {
namespace {

// How often a run checks whether any client still wants its result.
constexpr std::chrono::milliseconds kLook{5};

// Signals the end of a run from the thread that ends it.
class Ended {
 public:
  void Set() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return ended_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

uint64_t Now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// A failure of Triton's own objects is only logged, since no client is left to report it to.
void LogIfFailed(TRITONSERVER_Error* error) noexcept {
  if (error == nullptr) return;
  Log(kError, std::string("oncilla: ") + TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
}

// Sends the response. `error` may be null, and is consumed.
void Send(Request& request, TRITONSERVER_Error* error) noexcept {
  if (request.response != nullptr) {
    LogIfFailed(TRITONBACKEND_ResponseSend(request.response, kResponseFinal, error));
  }
  request.response = nullptr;
  if (error != nullptr) TRITONSERVER_ErrorDelete(error);
}

void Fail(TRITONBACKEND_ModelInstance* instance, Request& request, const Failure& failure,
          uint64_t begin) noexcept {
  const uint64_t now = Now();
  Send(request, ErrorOf(failure));
  LogIfFailed(TRITONBACKEND_ModelInstanceReportStatistics(instance, request.handle, false, begin,
                                                          begin, now, now));
}

// A request must not fail only because it was joined with others in a batch.
bool IsWorthRepeating(const Failure& failure) {
  return failure.code() == kInvalidArgument || failure.out_of_memory();
}

// The outputs that at least one of the requests wants.
std::vector<std::string> OutputsOf(const std::vector<Request*>& group) {
  std::vector<std::string> names;
  for (const Request* request : group) {
    for (const std::string& name : request->outputs) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// The longest timeout among the requests; 0 if one has none.
int64_t TimeoutMsOf(const std::vector<Request*>& group) {
  int64_t longest = 0;
  for (const Request* request : group) {
    if (request->timeout_us == 0) return 0;
    longest = std::max(longest, request->timeout_us);
  }
  return (longest + 999) / 1000;
}

bool AllCancelled(const std::vector<Request*>& group) noexcept {
  return std::all_of(group.begin(), group.end(), [](const Request* r) { return IsCancelled(*r); });
}

}  // namespace

RunResult ServedModel::Run(const std::string& device, const Group& group,
                           const Model::Inputs& inputs,
                           const std::vector<std::string>& outputs) const {
  RunOptions options;
  options.signature = options_.signature;
  options.outputs = outputs;
  options.device = device;
  options.timeout_ms = TimeoutMsOf(group);
  const auto ended = std::make_shared<Ended>();
  const AsyncRun run = Value(model_->RunAsync(inputs, options, [ended] { ended->Set(); }));
  // The inputs are in buffers of the requests, so this always waits until the run has ended. A
  // cancelled run ends within milliseconds.
  for (bool cancelled = false; !ended->WaitFor(kLook);) {
    if (cancelled || !AllCancelled(group)) continue;
    cancelled = true;
    run.Cancel();
  }
  return Value(run.Wait());
}

void ServedModel::RunJoined(TRITONBACKEND_ModelInstance* instance, const std::string& device,
                            const Group& group, uint64_t begin) const {
  Model::Inputs inputs;
  for (size_t i = 0; i < group[0]->inputs.size(); ++i) {
    std::vector<const InputView*> parts;
    for (const Request* request : group) parts.push_back(&request->inputs[i]);
    inputs.emplace_back(parts[0]->name, Join(parts));
  }
  const std::vector<std::string> names = OutputsOf(group);
  int64_t rows = 0;
  for (const Request* request : group) rows += request->rows;
  const uint64_t compute_begin = Now();
  const RunResult result = Run(device, group, inputs, names);
  const uint64_t compute_end = Now();
  for (const std::string& name : names) {
    const std::vector<int64_t> dims = result[name].dims();
    if (!batches_ || (!dims.empty() && dims[0] == rows)) continue;
    throw Failure(kInvalidArgument,
                  "oncilla: output '" + name + "' has the shape " + ShapeText(dims) +
                      " for a batch of " + std::to_string(rows) +
                      ": its first axis is not a batch, and max_batch_size must be 0");
  }
  int64_t first = 0;
  for (Request* request : group) {
    try {
      for (const std::string& name : request->outputs) {
        Write(request->response, name, result[name], first, batches_ ? request->rows : -1);
      }
      Send(*request, nullptr);
      LogIfFailed(TRITONBACKEND_ModelInstanceReportStatistics(
          instance, request->handle, true, begin, compute_begin, compute_end, Now()));
    } catch (const Failure& failure) {
      Fail(instance, *request, failure, begin);
    } catch (const std::exception& e) {
      Fail(instance, *request, Failure(kInternal, e.what()), begin);
    }
    first += request->rows;
  }
  LogIfFailed(TRITONBACKEND_ModelInstanceReportBatchStatistics(
      instance, static_cast<uint64_t>(batches_ ? rows : 1), begin, compute_begin, compute_end,
      Now()));
}

void ServedModel::RunGroup(TRITONBACKEND_ModelInstance* instance, const std::string& device,
                           const Group& group, uint64_t begin) const {
  try {
    RunJoined(instance, device, group, begin);
    return;
  } catch (const Failure& failure) {
    if (group.size() == 1 || !IsWorthRepeating(failure)) {
      for (Request* request : group) Fail(instance, *request, failure, begin);
      return;
    }
  } catch (const std::exception& e) {
    for (Request* request : group) Fail(instance, *request, Failure(kInternal, e.what()), begin);
    return;
  }
  for (Request* request : group) RunGroup(instance, device, {request}, begin);
}

void ServedModel::Execute(TRITONBACKEND_ModelInstance* instance, const std::string& device,
                          TRITONBACKEND_Request** requests, uint32_t count) const {
  const uint64_t begin = Now();
  std::vector<Request> all(count);
  std::map<std::string, Group> groups;  // requests that can be joined
  for (uint32_t i = 0; i < count; ++i) {
    Request& request = all[i];
    request.handle = requests[i];
    try {
      Check(TRITONBACKEND_ResponseNew(&request.response, request.handle));
      if (IsCancelled(request)) throw Failure(kCancelled, "oncilla: the request was cancelled");
      Read(request, batches_);
      for (InputView& input : request.inputs) {
        if (input.dims.size() == 1 && scalars_.count(input.name) > 0) input.dims.clear();
      }
      // Without batches, each request runs separately.
      groups[batches_ ? request.key : std::to_string(i)].push_back(&request);
    } catch (const Failure& failure) {
      Fail(instance, request, failure, begin);
    } catch (const std::exception& e) {
      Fail(instance, request, Failure(kInternal, e.what()), begin);
    }
  }
  for (const auto& [key, group] : groups) RunGroup(instance, device, group, begin);
  for (Request& request : all) {
    LogIfFailed(TRITONBACKEND_RequestRelease(request.handle, kReleaseAll));
  }
}

}  // namespace oncilla::triton
