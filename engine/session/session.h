// Session: devices in use, their memory pools and limits, and the models loaded into it.
// Nothing is shared with other sessions but the Runtime. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/base/cancellation.h"
#include "engine/base/mutex.h"
#include "engine/base/task_queue.h"
#include "engine/compile/constants.h"
#include "engine/import/model_source.h"
#include "engine/session/device_set.h"
#include "engine/session/session_memory.h"

namespace oncilla {

class Model;

// What happens to runs in progress when a session closes.
enum class CloseMode { kDrain, kCancel };
struct CloseOptions {
  CloseMode mode = CloseMode::kDrain;
  std::chrono::milliseconds timeout{0};  // of draining; then runs are cancelled. 0: none
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // NotFound, with the list, for a device that does not exist. Opens only the devices that it uses.
  static Result<std::shared_ptr<Session>> Create(std::shared_ptr<Runtime> runtime,
                                                 SessionOptions options);
  ~Session();

  Result<std::shared_ptr<Model>> Load(const std::string& path, const OpenModelOptions& options);

  // The same for a serialized GraphDef in memory (as graph_builder.h makes); `name` stands for the
  // file in messages. Devices stored on its nodes are followed as `options` say.
  Result<std::shared_ptr<Model>> LoadGraph(std::string graph_def, const std::string& name,
                                           const OpenModelOptions& options);

  // The same for the bytes of a model in one file: ONNX, a GraphDef, or our own format. `name`
  // stands for the file in messages; `owner` keeps the bytes alive.
  Result<std::shared_ptr<Model>> LoadBytes(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner,
                                           const std::string& name,
                                           const OpenModelOptions& options);

  // Releases everything; models of the session refuse to run afterwards. Waits for runs in
  // progress, including queued ones, or cancels them. Never waits for a device that hangs. Closes
  // also if no memory can be allocated; then by_device of what it returns may be empty.
  Released Close(const CloseOptions& options = {});

  Runtime& runtime() { return *runtime_; }
  // The pool for the CPU device's work: the session's own, a named one or the runtime's.
  ThreadPool& threads() { return threads_ != nullptr ? *threads_ : runtime_->threads(); }
  const SessionOptions& options() const { return options_; }
  // The visible devices (the runtime's, filtered, divided and numbered as the options say) and
  // those in use. A session that names the CPU, or allows no GPU, sees the CPU alone and loads no
  // driver.
  DeviceSet& device_set() { return devices_; }
  // Unloads all models; the session stays usable, with its devices open and its reserve.
  Released Reset();
  std::vector<std::shared_ptr<Model>> models() const;
  const DeviceSet& device_set() const { return devices_; }
  SessionMemory& memory() { return memory_; }
  const SessionMemory& memory() const { return memory_; }
  bool closed() const;
  // Cancelled when the session closes without waiting for runs.
  const CancellationToken& stop() const { return stop_; }

 private:
  friend class Model;        // its asynchronous runs are tasks of tasks_
  friend class Executables;  // its compilations may log warnings
  // Logs a warning in the runtime's log, the first time that it occurs in this session.
  void WarnOnce(const std::string& warning);
  void CloseCounting(const CloseOptions& options, const DeviceCounter& count);
  // Calls body(Model&) for each model that is still referenced; no more may be added meanwhile.
  // Unlike models(), allocates nothing.
  template <class F>
  void ForEachModel(F&& body);
  // `pool`: null for the runtime's.
  Session(std::shared_ptr<Runtime> runtime, SessionOptions options,
          std::shared_ptr<ThreadPool> pool);
  Result<std::shared_ptr<Model>> Adopt(Result<std::unique_ptr<ModelSource>> source,
                                       const std::string& name, const OpenModelOptions& options,
                                       std::shared_ptr<SharedConstants> constants);
  std::shared_ptr<SharedConstants> ConstantsOf(const std::string& path);
  const std::shared_ptr<Runtime> runtime_;
  const SessionOptions options_;
  const std::shared_ptr<ThreadPool> threads_;
  const CancellationToken stop_ = CancellationToken::Create();
  TaskQueue tasks_;
  SessionMemory memory_{*this};
  DeviceSet devices_;
  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Model>> models_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
  // By the identity of a model's files.
  std::map<std::string, std::weak_ptr<SharedConstants>> constants_ ABSL_GUARDED_BY(mutex_);
};

// The result of CloseSessions().
struct ResetReport {
  int64_t bytes = 0;  // freed
  // Objects that are still referenced: "model 'resnet' (2 times)".
  std::vector<std::string> still_referenced;
};
ResetReport CloseSessions(Runtime& runtime);

}  // namespace oncilla
