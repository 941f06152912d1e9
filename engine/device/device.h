// Device: the whole of what a backend must provide.
//
// A device has memory, prepares kernels, and executes recordings of them in order on queues. It
// decides nothing about graphs, memory policy or placement. Submit never blocks. All waiting is in
// Wait, with a deadline, and in AllocateRegion and Prepare, where a driver may block the caller;
// those two return early when their EarlyEnd says so. Calls on one device may come from several
// threads, except that a queue, and the recordings submitted to it, belong to one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/base/early_end.h"
#include "engine/ops/op_def.h"

namespace oncilla {

class ThreadPool;

// The description of a device, known without opening it.
struct DeviceInfo {
  std::string backend;  // "cpu", "opencl"
  std::string type;     // "CPU" or "GPU": its kind in device names
  std::string name;     // the driver's name for it
  std::string vendor;
  std::string driver;  // version text
  std::string platform;
  std::string id;   // stable across runs: PCI or UUID where the driver tells, else an ordinal
  int ordinal = 0;  // index in the backend's own list
  int64_t memory_bytes = 0;
  int64_t max_allocation_bytes = 0;
  int64_t alignment_bytes = 64;  // base alignment of a buffer or view
  int compute_units = 0;
  bool host_memory = false;    // Region::host() is not null
  bool is_opencl_cpu = false;  // an OpenCL device of type CPU: used only when asked for
  bool can_evaluate = false;   // Evaluate() works: the CPU
};

// One buffer allocated from a driver.
class Region {
 public:
  explicit Region(int64_t bytes) : bytes_(bytes) {}
  virtual ~Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  int64_t bytes() const { return bytes_; }
  // The address, where the host may read and write it directly; else null.
  virtual std::byte* host() const { return nullptr; }

 private:
  int64_t bytes_;
};

// Host memory that is not the device's own (a feed, a fetch) as a region of a host_memory device.
// Does not own the memory.
class HostRegion : public Region {
 public:
  HostRegion(void* data, int64_t bytes) : Region(bytes), data_(static_cast<std::byte*>(data)) {}
  std::byte* host() const override { return data_; }

 private:
  std::byte* data_;
};

// A part of a region. A null region is an operand that has no buffer: absent, or a plan input.
struct BufferView {
  Region* region = nullptr;
  int64_t offset = 0;
  int64_t bytes = 0;
  std::byte* host() const { return region->host() + offset; }
};

// The layout that a kernel wants a constant in (weight prepacking). Packings of one constant that
// have the same name share one copy.
struct Packing {
  std::string name = "dense";
  int64_t bytes = 0;
  // Writes the packed form; null copies the bytes as they are. Pure; runs on the host.
  std::function<Status(const Tensor& constant, std::span<std::byte> to)> write;
};

// A node prepared for one device at known shapes. Immutable.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int64_t scratch_bytes() const { return 0; }
  // What will run, in stable lines, for inspect and profiles: its name ("gemm 14x32 AVX3 packed"),
  // which begins with "plain" for exact code that is not meant to be fast; then details, if any.
  virtual std::string description() const = 0;
};

// An operand of a step: a fixed view, or with external >= 0 a slot that is filled at each Submit.
struct Operand {
  BufferView view;
  int external = -1;
};

struct Step {
  const Kernel* kernel = nullptr;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  BufferView scratch;
  std::string node;  // source name, for errors and profiles
};

class Queue {
 public:
  virtual ~Queue() = default;
};
class Recording {
 public:
  virtual ~Recording() = default;
};

// When one step ran, in nanoseconds on the device's clock; both 0 where the driver does not tell.
struct StepTime {
  int step = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

class Event {
 public:
  virtual ~Event() = default;
  // After a successful Wait: of a profiled submission; of a transfer, per copy, if at all.
  virtual std::vector<StepTime> step_times() const { return {}; }
};
using EventPtr = std::shared_ptr<Event>;

struct Upload {
  BufferView to;
  std::span<const std::byte> from;  // must stay until the event is done
};
struct Download {
  std::span<std::byte> to;  // must stay until the event is done
  BufferView from;
};

struct QueueOptions {
  bool stamps = false;  // its events may tell when each step ran, which costs each command something
};
struct SubmitOptions {
  bool profile = false;  // events tell when each step ran, if the queue has stamps
  // A device whose work is done by the host may stop it once this is reached; the work then fails
  // as MayGoOn says. A device that works by itself ignores it.
  EarlyEnd end = {};
};

// Counts of what the driver was asked for, for tests and reports.
struct DeviceCounters {
  int64_t flushes = 0;
  int64_t waits = 0;
  int64_t kernels_built = 0;  // programs compiled (OpenCL)
  int64_t live_objects = 0;   // driver objects alive now
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // Whether a node could run here. A pure function, also with partly known shapes. A refusal is a
  // sentence that placement shows: "opencl has no TopK for i8".
  virtual Status CanRun(const NodeView& node) const = 0;
  // The layout that constant input `input` of the node must have. It depends on attributes and
  // constants only, so that it is chosen once per layer.
  virtual Result<Packing> PackingFor(const NodeView& node, int input) const = 0;
  // Prepares a kernel. All facts must be fixed() and plan inputs must have values. The kernel gets
  // constants packed. When `end` is reached while a driver compiles, the call returns; the compiled
  // program is kept for a later call.
  virtual Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node, const EarlyEnd& end) = 0;
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node) { return Prepare(node, {}); }
  // Computes one node on host tensors and allocates the outputs: for constant folding, values
  // needed while planning, strings and sizes that depend on data. Only where info().can_evaluate.
  virtual Result<std::vector<Tensor>> Evaluate(const NodeView& node,
                                               std::span<const Tensor> inputs) = 0;

  // Allocates memory that is really there: where a driver allocates lazily, the memory is committed
  // or refused here, as ResourceExhausted. Unavailable for a device that hangs. ReleaseRegion fails
  // when views of the region are still in use.
  virtual Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd& end) = 0;
  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes) {
    return AllocateRegion(bytes, {});
  }
  virtual Status ReleaseRegion(std::unique_ptr<Region> region) = 0;

  virtual Result<std::unique_ptr<Queue>> OpenQueue(const QueueOptions& options) = 0;
  Result<std::unique_ptr<Queue>> OpenQueue() { return OpenQueue(QueueOptions()); }
  // Steps run in the order given. Kernels and regions must outlive the recording.
  virtual Result<std::unique_ptr<Recording>> Record(std::vector<Step> steps) = 0;
  // Starts after everything submitted to the queue before. `externals` fill the slots of operands.
  virtual Result<EventPtr> Submit(Queue& queue, const Recording& recording,
                                  std::span<const BufferView> externals,
                                  const SubmitOptions& options) = 0;
  virtual Result<EventPtr> Transfer(Queue& queue, std::span<const Upload> uploads,
                                    std::span<const Download> downloads) = 0;
  // True when Wait would return at once.
  virtual bool Poll(const EventPtr& event) = 0;
  // Waits for the work and returns its outcome: a failed kernel fails here and names the node. On
  // DeadlineExceeded the work continues.
  virtual Status Wait(const EventPtr& event, Deadline deadline) = 0;

  virtual DeviceCounters counters() const { return {}; }

  // From now on, closing this device or anything made with it waits for work in progress at most
  // until then.
  virtual void CloseBy(Deadline) {}
  // Called when everything made with the device is gone. Releases what it holds of the driver.
  // Afterwards it answers info() and counters(), and all other calls fail. Never waits for work
  // that hangs.
  virtual void Close() {}
};

struct DiscoverOptions {
  bool opencl_cpu_devices = false;
};
// The application's own allocator, for regions of the CPU.
struct HostMemory {
  // Memory aligned to `alignment`, or null when there is none. Thread-safe.
  std::function<void*(size_t bytes, size_t alignment)> allocate;
  std::function<void(void* memory, size_t bytes)> release;
};

// Objects that the devices of one Runtime share, as their backend sees fit: each has a name, which
// begins with the backend's, and lives as long as a device holds it. Thread-safe.
class SharedObjects {
 public:
  // The object held under this name, else the one that `make` returns; null when that fails.
  template <class T, class Make>
  std::shared_ptr<T> FindOrMake(const std::string& name, const Make& make) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::weak_ptr<void>& slot = objects_[name];
    if (auto found = std::static_pointer_cast<T>(slot.lock())) return found;
    std::shared_ptr<T> made = make();
    slot = made;
    return made;
  }
  // The next call of FindOrMake for this name makes the object anew.
  void Forget(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    objects_.erase(name);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<void>> objects_;
};

struct OpenOptions {
  ThreadPool* threads = nullptr;    // the CPU's; must outlive the device
  bool plain = false;               // CPU: exact code only
  SharedObjects* shared = nullptr;  // the runtime's; may be null
  std::string cache_dir;            // compiled programs; empty = the user's cache folder
  std::shared_ptr<const HostMemory> host_memory = nullptr;  // the CPU's; null: mmap
};

// A backend: a name, a function that lists its devices, and one that opens a device.
struct Backend {
  std::string_view name;
  // Never fails: on a machine without the driver it returns no devices, and `notes` says why.
  std::vector<DeviceInfo> (*discover)(const DiscoverOptions& options,
                                      std::vector<std::string>& notes);
  Result<std::unique_ptr<Device>> (*open)(const DeviceInfo& info, const OpenOptions& options);
};

}  // namespace oncilla
