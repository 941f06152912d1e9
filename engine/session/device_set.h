// DeviceSet: the devices of one session: the visible ones, and those in use.
//
// The CPU and the preferred device are in use from the start; any other is opened when work is
// first placed on it. Devices in use keep their index until the set is destroyed, and spans of them
// stay valid, but do not contain devices added later. Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/memory/budget.h"
#include "engine/memory/ledger.h"
#include "engine/memory/pool.h"
#include "engine/run/device_tensor.h"
#include "engine/session/device_memory.h"
#include "engine/session/runtime.h"
#include "engine/session/session_options.h"

namespace oncilla {

class DeviceSet {
 public:
  // All must outlive the set.
  DeviceSet(Runtime& runtime, const SessionOptions& options, ThreadPool& threads, Ledger& ledger,
            OwnerId owner);

  // Determines the visible devices by the options and opens the CPU and the preferred device.
  // NotFound, with the list, if that one does not exist.
  Status Open();
  // The index, among the devices in use, of the device that `spec` names (see ResolveDevice). Opens
  // it if it was not in use; "" and "auto" are the preferred one.
  Result<int> Use(const std::string& spec);
  // The same for a device that is in use already: NotFound, with the list, for any other.
  Result<int> InUse(const std::string& spec) const;

  // The visible devices: the runtime's, filtered, divided and numbered as the options say.
  const std::vector<ListedDevice>& visible() const { return visible_; }
  int preferred() const { return preferred_; }
  // Why the preferred device is not the one that the options name; empty when it is.
  const std::string& preferred_note() const { return preferred_note_; }

  // The devices in use, the CPU first.
  size_t size() const;
  std::span<Device* const> devices() const;
  std::span<const std::string> names() const;              // full
  std::vector<std::shared_ptr<DeviceLink>> links() const;  // for tensors that stay on a device
  // Anything closed from now on waits for work that hangs no longer than this.
  void CloseBy(Deadline deadline);
  // Invalidates the memory of tensors and pools on the devices, and releases what the devices hold
  // of their drivers; no device is opened afterwards. Calls `count` with the pool bytes of each
  // device in use. No run may be in progress; handles of all kinds may be alive.
  void Close(const std::function<void(size_t device, int64_t bytes)>& count);
  Pool& pool(size_t device) const { return *in_use_[device].pool; }  // arenas and values
  MemoryBudget& budget(size_t device) const { return *in_use_[device].budget; }
  // If the session preallocated its memory, this shares the memory of pool().
  std::unique_ptr<Pool> MakePool(size_t device, std::string name, OwnerId owner) const;
  // The resolved memory options.
  const DeviceMemoryPlan& memory_plan(size_t device) const { return in_use_[device].plan; }
  // Describes the last request that found no memory; nothing if there was none.
  std::optional<PoolShortage> last_shortage() const;

  // A lost device accepts no further runs; its memory is still freed as far as that works.
  void MarkLost(size_t device, const Status& why);
  bool any_lost() const { return any_lost_; }
  // Unavailable, with the reason, for a device that was lost.
  Status CheckAlive(size_t device) const;

  // Copies a tensor of numbers to a device in use, given by any of its names, as a feed. If the
  // device uses host memory, the copy is a host tensor.
  Result<RunValue> ToDevice(const Tensor& tensor, std::string_view device);

 private:
  // A device in use, and everything that the session keeps for it.
  struct Opened {
    std::unique_ptr<Device> device;
    std::shared_ptr<MemoryBudget> budget;
    DeviceMemoryPlan plan;
    std::unique_ptr<Pool> pool;        // arenas and values
    std::shared_ptr<DeviceLink> link;  // for tensors that stay on it
    Status lost;                       // why it accepts no more runs; under mutex_
  };
  Status SeeDevices();
  // Warns of devices that the options name and that do not exist.
  void TellAbsent() const;
  // Warns, once, that only the CPU was found, in a session that would take any device.
  void TellOnlyCpu() const;
  // The visible GPUs, by name, in the order in which the options' policy prefers them.
  std::vector<std::string> GpusByPolicy() const;
  Status OpenPreferred() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result<int> UseVisible(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PoolOptions PoolOptionsFor(size_t device, std::string name, OwnerId owner) const;
  // Opens the listed device, with its budget and its resolved memory options; no pool yet.
  Result<Opened> OpenListed(const ListedDevice& listed) const;
  void NoteShortage(const PoolShortage& shortage) const;

  Runtime& runtime_;
  const SessionOptions& options_;
  ThreadPool& threads_;
  Ledger& ledger_;
  const OwnerId owner_;
  std::vector<ListedDevice> visible_;
  std::vector<std::string> notes_;  // why no further devices are visible
  bool knows_gpus_ = true;          // false: no driver was asked
  int preferred_ = 0;
  std::string preferred_note_;

  // Capacity for all visible devices is reserved from the start, so elements never move: an element
  // whose index is known may be read without the lock.
  std::vector<Opened> in_use_;
  std::vector<Device*> pointers_;   // of in_use_, as a contiguous list
  std::vector<std::string> names_;  // likewise
  std::map<std::string, DeviceMemoryOptions> memory_options_;
  mutable Mutex shortage_mutex_;
  mutable std::optional<PoolShortage> shortage_ ABSL_GUARDED_BY(shortage_mutex_);
  mutable int shortages_ ABSL_GUARDED_BY(shortage_mutex_) = 0;
  mutable Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const void> prefers_ ABSL_GUARDED_BY(mutex_);  // Runtime::Prefer()
  std::atomic<bool> any_lost_{false};
};

}  // namespace oncilla
