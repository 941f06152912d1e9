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

// What becomes of runs under way when a session closes.
enum class CloseMode { kDrain, kCancel };
struct CloseOptions {
  CloseMode mode = CloseMode::kDrain;
  std::chrono::milliseconds timeout{0};  // of draining; what then still runs is cancelled. 0: none
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // NotFound for a device that is not there, with the list; nothing is opened that is not used.
  static Result<std::shared_ptr<Session>> Create(std::shared_ptr<Runtime> runtime,
                                                 SessionOptions options);
  ~Session();

  Result<std::shared_ptr<Model>> Load(const std::string& path, const OpenModelOptions& options);

  // The same from a serialized GraphDef in memory (graph_builder.h makes such); `name` stands for
  // the file in messages. Devices stored on its nodes are followed as `options` say.
  Result<std::shared_ptr<Model>> LoadGraph(std::string graph_def, const std::string& name,
                                           const OpenModelOptions& options);

  // The same from the bytes of a model in one file: ONNX, a GraphDef, or our own. `name` stands for
  // the file in messages; `owner` keeps the bytes.
  Result<std::shared_ptr<Model>> LoadBytes(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner,
                                           const std::string& name,
                                           const OpenModelOptions& options);

  // Releases everything; models of the session refuse to run afterwards. Waits for runs under way,
  // those that are queued included, or cancels them. It never waits for a device that hangs.
  Released Close(const CloseOptions& options = {});

  Runtime& runtime() { return *runtime_; }
  // Where the CPU device's work is divided: the session's own pool, a named one or the runtime's.
  ThreadPool& threads() { return threads_ != nullptr ? *threads_ : runtime_->threads(); }
  const SessionOptions& options() const { return options_; }
  // What it sees: the runtime's devices, filtered, divided and numbered as its options say; and
  // which of them are in use. Who names the CPU, or allows no GPU, sees the CPU alone, and no
  // driver is loaded.
  DeviceSet& device_set() { return devices_; }
  // Unloads all models; the session goes on, with its devices open and its reserve.
  Released Reset();
  std::vector<std::shared_ptr<Model>> models() const;
  const DeviceSet& device_set() const { return devices_; }
  SessionMemory& memory() { return memory_; }
  const SessionMemory& memory() const { return memory_; }
  bool closed() const;
  // Cancelled when the session closes in a hurry.
  const CancellationToken& stop() const { return stop_; }

 private:
  friend class Model;        // its asynchronous runs are done on tasks_
  friend class Executables;  // what it compiles may be worth a warning
  // A warning in the runtime's log, the first time that the session has it.
  void WarnOnce(const std::string& warning);
  void CloseCounting(const CloseOptions& options, const DeviceCounter& count);
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

// Closes all sessions of a runtime, waiting for their runs.
struct ResetReport {
  int64_t bytes = 0;  // given back
  // What somebody still holds on to: "model 'resnet' (2 times)".
  std::vector<std::string> still_referenced;
};
ResetReport CloseSessions(Runtime& runtime);

}  // namespace oncilla
