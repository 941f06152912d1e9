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
#include "engine/compile/device_tensor.h"
#include "engine/compile/plan.h"
#include "engine/import/model_source.h"
#include "engine/session/device_set.h"
#include "engine/session/runs_under_way.h"

namespace oncilla {

class Model;

// What becomes of runs under way when a session closes.
enum class CloseMode { kDrain, kCancel };
struct CloseOptions {
  CloseMode mode = CloseMode::kDrain;
  std::chrono::milliseconds timeout{0};  // of draining; what then still runs is cancelled. 0: none
};

// What closing or unloading gave back.
struct Released {
  int64_t bytes = 0;
  std::vector<std::pair<std::string, int64_t>> by_device;
};

// Told what a device, by its place in the session, gets back.
using DeviceCounter = std::function<void(size_t device, int64_t bytes)>;

struct DeviceMemory {
  std::string device;
  int64_t in_use_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t pool_bytes = 0;  // taken from the driver
  int64_t limit_bytes = 0;
  std::string limit_source;  // where the limit comes from, in words
  // Of the pool of arenas: what is not handed out in one piece, and the share of the free bytes
  // that lies elsewhere.
  int64_t largest_free_bytes = 0;
  double fragmentation = 0;
  int64_t reserve_bytes = 0;  // kept whatever is trimmed
  // What all sessions of the runtime take of the physical device, and may take.
  int64_t total_bytes = 0;
  int64_t total_limit_bytes = 0;
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

  // A warning in the runtime's log, the first time that the session has it.
  void WarnOnce(const std::string& warning);

  // Releases everything; models of the session refuse to run afterwards. Waits for runs under way,
  // those that are queued included, or cancels them. It never waits for a device that hangs.
  Released Close(const CloseOptions& options = {});

  // Whose line of the ledger holds what the session takes for itself.
  OwnerId owner() const { return owner_; }

  // Gives back what no run holds at the moment: memory of idle plans, which the next run takes
  // again, and empty regions. Constants stay.
  Released Trim();
  // From now on the most bytes taken on a device in use, by any name that SessionOptions::device
  // may be. What is taken above it stays: Trim() first. NotFound; InvalidArgument below 1 and above
  // what the device has.
  Status SetMemoryLimit(std::string_view device, int64_t bytes);

  Runtime& runtime() { return *runtime_; }
  // Where the CPU device's work is divided: the session's own pool, a named one or the runtime's.
  ThreadPool& threads() { return threads_ != nullptr ? *threads_ : runtime_->threads(); }
  const SessionOptions& options() const { return options_; }
  // What this session sees: the runtime's devices, filtered, divided and numbered as its options
  // say. Who names the CPU, or allows no GPU, sees the CPU alone, and no driver is loaded.
  const std::vector<ListedDevice>& visible() const { return devices_.visible(); }
  // The devices in use, which never become fewer: the CPU first, then the preferred one when that
  // is another, then those that something was asked to run on.
  std::span<Device* const> devices() const { return devices_.devices(); }
  std::span<const std::string> device_names() const { return devices_.names(); }
  int preferred() const { return devices_.preferred(); }
  DeviceSet& device_set() { return devices_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  std::vector<DeviceMemory> Memory() const;
  // What an instance of a plan takes from the pool of a device.
  int64_t ArenaBytes(const Plan& plan, int device) const;

  // Moves weights together: where a model's lie in more regions than they need, or beside constants
  // that no graph reads any more, its graphs are made anew, and what they leave is given back.
  // FailedPrecondition while runs are under way. A model whose graphs cannot be made anew is made
  // again by its next run.
  Result<Released> Defragment();
  // Unloads all models; the session goes on, with its devices open and its reserve.
  Released Reset();
  // Peaks become what is taken now.
  void ResetPeaks();
  // After a run: keeps the fragmentation of pools below the cap of the options, if there is one.
  void HoldFragmentation();

  // Owners and lines as text; with everything there is to say as JSON (memory_report.h).
  std::string MemoryReport() const;
  std::string MemoryReportJson() const;
  std::vector<std::shared_ptr<Model>> models() const;
  RunsUnderWay& runs_under_way() { return runs_under_way_; }
  const DeviceSet& device_set() const { return devices_; }
  // Memory that was given up with work that hangs: a device may still write to it.
  int64_t abandoned_bytes() const { return *abandoned_bytes_; }
  // Cancelled when the session closes in a hurry.
  const CancellationToken& stop() const { return stop_; }
  // Copies a tensor of numbers to a device in use, by any of its names, to be fed to runs.
  Result<DeviceTensor> ToDevice(const Tensor& tensor, std::string_view device);
  // Where asynchronous runs are done.
  TaskQueue& tasks() { return tasks_; }

 private:
  friend class Model;
  void CloseCounting(const CloseOptions& options, const DeviceCounter& count);
  // `pool`: null for the runtime's.
  Session(std::shared_ptr<Runtime> runtime, SessionOptions options,
          std::shared_ptr<ThreadPool> pool);
  Result<std::shared_ptr<Model>> Adopt(Result<std::unique_ptr<ModelSource>> source,
                                       const std::string& name, const OpenModelOptions& options,
                                       std::shared_ptr<SharedConstants> constants);
  bool closed() const;
  std::shared_ptr<SharedConstants> ConstantsOf(const std::string& path);
  void KeepPool(size_t device, std::shared_ptr<Pool> pool);
  // Closes those that nobody uses, or all; the bytes given back on the device.
  int64_t CloseLeftPools(size_t device, bool all);
  // Per device, what is taken now; and, after trimming the pools, what is taken less than then.
  std::vector<int64_t> TakenBytes() const;
  Released GiveBackSince(const std::vector<int64_t>& taken);

  const std::shared_ptr<Runtime> runtime_;
  const SessionOptions options_;
  const std::shared_ptr<ThreadPool> threads_;
  const CancellationToken stop_ = CancellationToken::Create();
  TaskQueue tasks_;
  const std::shared_ptr<std::atomic<int64_t>> abandoned_bytes_ =
      std::make_shared<std::atomic<int64_t>>(0);
  Ledger ledger_;
  OwnerId owner_ = kNoOwner;
  DeviceSet devices_;
  RunsUnderWay runs_under_way_;
  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Model>> models_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
  // By the identity of a model's files.
  std::map<std::string, std::weak_ptr<SharedConstants>> constants_ ABSL_GUARDED_BY(mutex_);
  // Of models that are gone, with constants that others have too: device and pool.
  std::vector<std::pair<size_t, std::shared_ptr<Pool>>> left_pools_ ABSL_GUARDED_BY(mutex_);
};

// Closes all sessions of a runtime, waiting for their runs.
struct ResetReport {
  int64_t bytes = 0;  // given back
  // What somebody still holds on to: "model 'resnet' (2 times)".
  std::vector<std::string> still_referenced;
};
ResetReport CloseSessions(Runtime& runtime);

}  // namespace oncilla
