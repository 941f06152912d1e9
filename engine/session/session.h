// Session: devices opened for use, their memory pools and limits, and the models loaded into it.
// Nothing is shared with other sessions but the Runtime. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/cancellation.h"
#include "engine/base/mutex.h"
#include "engine/base/task_queue.h"
#include "engine/compile/device_tensor.h"
#include "engine/compile/plan.h"
#include "engine/import/model_source.h"
#include "engine/memory/budget.h"
#include "engine/memory/ledger.h"
#include "engine/memory/pool.h"
#include "engine/session/runtime.h"

namespace oncilla {

class Model;

struct SessionOptions {
  std::string device = "auto";  // see Runtime::Resolve
  bool strict = false;          // refuse where a node would fall back to another device
  int threads = 0;              // > 0: a pool of the session's own
  int64_t memory_limit_bytes =
      0;  // per device, for everything the engine takes there; 0: the device's
  // The same as a share of the device's memory, in (0, 1]; the smaller of both holds. 0: none.
  double memory_limit_fraction = 0;
  // The most devices of a type that take part; "GPU": 0 means that no driver is loaded.
  std::map<std::string, int> device_count = {};
  // Only these GPUs, numbered anew (SeeOnly in visible_devices.h); empty: all.
  std::vector<std::string> visible_devices = {};
  bool log_device_placement = false;  // where each node of a plan runs, in TensorFlow's words
  bool verify = false;  // check every pass and device call; ONCILLA_VERIFY=1 has the same effect
  int max_concurrent_runs = 4;  // per model and shape; bounds the memory of overlapping runs
  // A run without a deadline ends when a device has finished nothing for so long; 0: never.
  int64_t watchdog_ms = 60000;
};

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

struct DeviceMemory {
  std::string device;
  int64_t in_use_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t pool_bytes = 0;  // taken from the driver
  int64_t limit_bytes = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // NotFound for a device that is not there, with the list; nothing is opened that is not used.
  static Result<std::shared_ptr<Session>> Create(std::shared_ptr<Runtime> runtime,
                                                 SessionOptions options);
  ~Session();

  Result<std::shared_ptr<Model>> Load(const std::string& path, const OpenModelOptions& options);

  // Releases everything; models of the session refuse to run afterwards. Waits for runs under way,
  // those that are queued included, or cancels them. It never waits for a device that hangs.
  Released Close(const CloseOptions& options = {});

  // Gives back what no run holds at the moment: memory of idle plans, which the next run takes
  // again, and empty regions. Constants stay.
  Released Trim();
  // From now on the most bytes taken on a device in use. What is taken above it stays until it is
  // let go: Trim() first. NotFound for another device, InvalidArgument below 1.
  Status SetMemoryLimit(std::string_view device, int64_t bytes);

  Runtime& runtime() { return *runtime_; }
  // What this session sees: the runtime's devices, filtered and numbered as its options say. Who
  // names the CPU, or allows no GPU, sees the CPU alone, and no driver is loaded.
  const std::vector<ListedDevice>& visible() const { return visible_; }
  const SessionOptions& options() const { return options_; }
  // The devices in use: the CPU first, then the preferred one when that is another.
  std::span<Device* const> devices() const { return device_ptrs_; }
  std::span<const std::string> device_names() const { return device_names_; }
  int preferred() const { return static_cast<int>(device_ptrs_.size()) - 1; }
  Ledger& ledger() { return ledger_; }
  std::vector<DeviceMemory> Memory() const;
  // What an instance of a plan takes from the pool of a device.
  int64_t ArenaBytes(const Plan& plan, int device) const;
  std::string MemoryReport() const;
  // Memory that was given up with work that hangs: a device may still write to it.
  int64_t abandoned_bytes() const { return *abandoned_bytes_; }
  // Cancelled when the session closes in a hurry.
  const CancellationToken& stop() const { return stop_; }
  // Copies a tensor of numbers to a device in use, by its full name, to be fed to runs.
  Result<DeviceTensor> ToDevice(const Tensor& tensor, std::string_view device);
  const std::vector<std::shared_ptr<DeviceLink>>& links() const { return links_; }
  // Where asynchronous runs are done.
  TaskQueue& tasks() { return tasks_; }

 private:
  friend class Model;
  Session(std::shared_ptr<Runtime> runtime, SessionOptions options);
  Status Open();
  Status SeeDevices();
  std::unique_ptr<Pool> MakePool(size_t device, std::string name, OwnerId owner);

  const std::shared_ptr<Runtime> runtime_;
  const SessionOptions options_;
  std::unique_ptr<ThreadPool> own_threads_;
  const CancellationToken stop_ = CancellationToken::Create();
  TaskQueue tasks_;
  const std::shared_ptr<std::atomic<int64_t>> abandoned_bytes_ =
      std::make_shared<std::atomic<int64_t>>(0);
  Ledger ledger_;
  OwnerId owner_ = kNoOwner;
  std::vector<ListedDevice> visible_;
  std::vector<std::string> notes_;  // on why no more are
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Device*> device_ptrs_;
  std::vector<std::string> device_names_;
  std::vector<std::shared_ptr<MemoryBudget>> budgets_;  // per device
  std::vector<std::unique_ptr<Pool>> pools_;            // per device: arenas and values
  std::vector<std::shared_ptr<DeviceLink>> links_;      // per device, for tensors that stay there
  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Model>> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace oncilla
