// Runtime: the machine's devices, and what all sessions share: the op set and one thread pool.
//
// The CPU is known from the start. Drivers of other devices are loaded once, when first needed: if
// only the CPU is named, no driver is loaded. The runtime opens no device. Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/log.h"
#include "engine/base/mutex.h"
#include "engine/base/thread_pool.h"
#include "engine/device/host_objects.h"
#include "engine/memory/budget.h"
#include "engine/ops/op_set.h"
#include "engine/session/visible_devices.h"

namespace oncilla {

class Session;

struct RuntimeOptions {
  // OpenCL devices of type CPU are listed as GPU:n too, so that the OpenCL backend can be used and
  // tested on a machine without a GPU.
  bool opencl_cpu_devices = false;
  int threads = 0;        // of the shared pool; 0: the processors this process may use
  std::string cache_dir;  // compiled programs; empty: the user's cache folder
  // Entries of SeeOnly(): the GPUs that this process sees. Not given: all; empty: none, and no
  // driver is loaded. An invalid entry is reported in notes(), and entries after it are ignored.
  std::optional<std::vector<std::string>> visible_devices = std::nullopt;
  std::shared_ptr<const Log> log = nullptr;                 // null: DefaultLog()
  std::shared_ptr<const HostMemory> host_memory = nullptr;  // null: the system's
  // The most memory that all sessions together use of a physical device, by its name ("GPU:0"), its
  // type or "*"; by default all but 300 MiB or 6 %.
  std::map<std::string, int64_t> device_total_bytes = {};
  std::vector<const Backend*> more_backends = {};  // besides the linked ones; must outlive it
  // Devices of the application. If any are given, they and the CPU are the runtime's only devices,
  // and no driver is loaded.
  std::vector<HostDevice> host_devices = {};
};

// The defaults as the environment sets them: ONCILLA_OPENCL_CPU_DEVICES=1, ONCILLA_CACHE_DIR,
// ONCILLA_VISIBLE_DEVICES=ENTRY,..
RuntimeOptions RuntimeOptionsFromEnvironment();

class Runtime {
 public:
  static std::shared_ptr<Runtime> Create(RuntimeOptions options);

  // The CPU first, then GPUs in the order their backends found them, then unusable devices.
  const std::vector<ListedDevice>& devices() const { return All().devices; }
  // devices()[index]; loads no driver if it is the CPU.
  const ListedDevice& device(size_t index) const { return index == 0 ? cpu_ : devices()[index]; }
  // Messages of the discovery: "no OpenCL: libOpenCL.so.1 was not found".
  const std::vector<std::string>& notes() const { return All().notes; }
  const std::shared_ptr<const OpSet>& ops() const { return ops_; }
  ThreadPool& threads() { return threads_; }
  // Shared by the devices that sessions open.
  SharedObjects& shared() { return shared_; }
  const Log& log() const { return options_.log != nullptr ? *options_.log : DefaultLog(); }
  const RuntimeOptions& options() const { return options_; }

  // The pool of this name, created on first use and destroyed with its last holder. `threads` 0: as
  // many as it has, or as the shared pool would have. InvalidArgument for another number than it
  // was created with.
  Result<std::shared_ptr<ThreadPool>> NamedThreads(const std::string& name, int threads);

  // Counts the sessions that prefer a physical device. Prefer() adds one, until its result is
  // destroyed.
  std::shared_ptr<const void> Prefer(const ListedDevice& device);
  int Preferring(const ListedDevice& device);
  // 0, 1, 2, .. with each call.
  size_t NextTurn() { return turn_++; }

  // Logs a warning, the first time only, that sessions which would take any device find only the
  // CPU.
  void WarnOfNoGpu(const std::string& why);

  // The memory that all sessions of this runtime use of the physical device together, its parts
  // included.
  std::shared_ptr<MemoryBudget> DeviceTotal(const ListedDevice& device);
  // Registers a session for CloseSessions().
  void Note(std::weak_ptr<Session> session);
  std::vector<std::weak_ptr<Session>> TakeSessions();

  // FailedPrecondition in a process that was forked after the runtime was made: its threads and the
  // drivers' stayed in the parent, so a wait for them would never end.
  Status CheckProcess() const;

  // ResolveDevice() among devices(); loads no driver to find the CPU.
  Result<size_t> Resolve(const std::string& spec) const;

 private:
  struct Found {
    std::vector<ListedDevice> devices;
    std::vector<std::string> notes;
  };

  explicit Runtime(RuntimeOptions options);
  const Found& All() const;
  void Discover() const;
  void Hide(std::vector<std::string> visible) const;
  void Tell(const ListedDevice& found) const;

  const int64_t process_;
  RuntimeOptions options_;
  std::shared_ptr<const OpSet> ops_;
  ThreadPool threads_;
  SharedObjects shared_;
  ListedDevice cpu_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<MemoryBudget>> totals_
      ABSL_GUARDED_BY(mutex_);  // by backend and stable id
  struct NamedPool {
    int threads;
    std::weak_ptr<ThreadPool> pool;
  };
  std::map<std::string, NamedPool> named_pools_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::weak_ptr<const void>> preferring_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> turn_{0};
  std::once_flag warned_of_no_gpu_;
  mutable std::once_flag discovered_;
  mutable Found found_;  // set by Discover()
};

}  // namespace oncilla
