// Device: what a backend must provide, whole.
//
// A device is a thing with memory that prepares kernels and executes recordings of them in order on
// queues. It decides nothing about graphs, memory policy or placement. Submit never blocks; all
// waiting is in Wait, with a deadline, and in AllocateRegion and Prepare, where a driver may keep
// who calls waiting: they end early as they are told. Calls on one device may come from several
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

// What is known of a device without opening it.
struct DeviceInfo {
  std::string backend;  // "cpu", "opencl"
  std::string type;     // "CPU" or "GPU": its kind in device names
  std::string name;     // the driver's name for it
  std::string vendor;
  std::string driver;  // version text
  std::string platform;
  std::string id;   // stable across runs: PCI or UUID where the driver tells, else an ordinal
  int ordinal = 0;  // place in the backend's own list
  int64_t memory_bytes = 0;
  int64_t max_allocation_bytes = 0;
  int64_t alignment_bytes = 64;  // base alignment of a buffer or view
  int compute_units = 0;
  bool host_memory = false;    // Region::host() is not null
  bool is_opencl_cpu = false;  // an OpenCL device of type CPU: used only when asked for
  bool can_evaluate = false;   // Evaluate() works: the CPU
};

// One buffer got from a driver.
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

// Memory of the host's own (a feed, a fetch) as a region of a host_memory device. Borrowed.
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

// How a constant is laid out for a kernel. Equal names of one constant share one copy.
struct Packing {
  std::string name = "dense";
  int64_t bytes = 0;
  // Writes the packed form; null copies the bytes as they are. Pure; runs on the host.
  std::function<Status(const Tensor& constant, std::span<std::byte> to)> write;
};

// A node made ready for one device, at known shapes. Immutable.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int64_t scratch_bytes() const { return 0; }
  // What will run, in one stable line or more ("gemm_14x32 packed"), for inspect and profiles.
  virtual std::string description() const = 0;
};

// An operand of a step: a fixed view, or with external >= 0 the slot given at each Submit.
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

struct SubmitOptions {
  bool profile = false;  // events tell when each step ran
  // Where the host does the work, it may be left once this is reached: it then fails as MayGoOn
  // says. A device that works by itself does not look at it.
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

  // Whether a node could run here: a pure question, also with shapes partly known. The refusal is a
  // sentence that placement shows: "opencl has no TopK for i8".
  virtual Status CanRun(const NodeView& node) const = 0;
  // How constant input `input` of the node must be laid out. Depends on attributes and constants
  // only, so that it is chosen once per layer.
  virtual Result<Packing> PackingFor(const NodeView& node, int input) const = 0;
  // All facts must be fixed() and plan inputs have values. Constants come to the kernel packed.
  // A driver that compiles is left at the end given, and what it makes is there for a later call.
  virtual Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node, const EarlyEnd& end) = 0;
  Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node) { return Prepare(node, {}); }
  // Computes one node on host tensors, outputs allocated here: constant folding, values needed
  // while planning, strings and sizes that depend on data. Only where info().can_evaluate.
  virtual Result<std::vector<Tensor>> Evaluate(const NodeView& node,
                                               std::span<const Tensor> inputs) = 0;

  // Memory that is really there: a driver's lazy promise is committed or refused here, as
  // ResourceExhausted. Release fails when views of the region are still in use.
  // Unavailable for a device that hangs.
  virtual Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd& end) = 0;
  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes) {
    return AllocateRegion(bytes, {});
  }
  virtual Status ReleaseRegion(std::unique_ptr<Region> region) = 0;

  virtual Result<std::unique_ptr<Queue>> OpenQueue() = 0;
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
  // The outcome of the work: a failed kernel fails here, naming the node; DeadlineExceeded leaves
  // the work running.
  virtual Status Wait(const EventPtr& event, Deadline deadline) = 0;

  virtual DeviceCounters counters() const { return {}; }

  // From now on nothing that is closed waits for work under way beyond this.
  virtual void CloseBy(Deadline) {}
  // Everything made with the device is gone. What it holds of the driver goes back now; afterwards
  // it answers info() and counters(), and all else fails. Never waits for work that hangs.
  virtual void Close() {}
};

struct DiscoverOptions {
  bool opencl_cpu_devices = false;
};
// Host memory of the application's own making, for regions of the CPU.
struct HostMemory {
  // Memory aligned to `alignment`, or null when there is none. Thread-safe.
  std::function<void*(size_t bytes, size_t alignment)> allocate;
  std::function<void(void* memory, size_t bytes)> release;
};

// What devices that one Runtime opens have in common, as their backend sees fit: a name, which
// begins with the backend's, and what is kept as long as somebody holds it. Thread-safe.
class SharedObjects {
 public:
  // What is held under this name, or what `make` gives; null when it fails.
  template <class T, class Make>
  std::shared_ptr<T> FindOrMake(const std::string& name, const Make& make) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::weak_ptr<void>& slot = objects_[name];
    if (auto found = std::static_pointer_cast<T>(slot.lock())) return found;
    std::shared_ptr<T> made = make();
    slot = made;
    return made;
  }
  // The next who asks for it makes it anew.
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
  SharedObjects* shared = nullptr;  // of who opens; may be null
  std::string cache_dir;            // compiled programs; empty = the user's cache folder
  std::shared_ptr<const HostMemory> host_memory = nullptr;  // the CPU's; null: mmap
};

// A backend is code: a name, a list of what is there, and a way to open one.
struct Backend {
  std::string_view name;
  // Never fails: a machine without the driver has no devices, and `notes` says why.
  std::vector<DeviceInfo> (*discover)(const DiscoverOptions& options,
                                      std::vector<std::string>& notes);
  Result<std::unique_ptr<Device>> (*open)(const DeviceInfo& info, const OpenOptions& options);
};

}  // namespace oncilla
