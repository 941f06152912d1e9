// ProgramCache: compiled programs of one device, in memory and, through a DiskCache, on disk.
//
// On disk the key is a SHA-256 over the cache's format, the whole source text (defines included),
// the build options, the device and its platform's and driver's versions. In memory, where only the
// text differs, the key is made of the parts of the text: each kernel of each plan requests its
// program. A binary that the driver refuses is dropped and built from source again.
//
// A driver cannot be stopped while it compiles. For a caller that may not wait to the end, a
// separate thread compiles; it continues when the caller or the cache is gone, and its result is
// available to later requests. The end of the process waits a few seconds for such threads.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/opencl/recipes/source.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/discovery.h"
#include "backends/opencl/runtime/disk_cache.h"
#include "backends/opencl/runtime/places.h"
#include "engine/base/early_end.h"
#include "engine/base/mutex.h"

namespace oncilla::opencl {

// The resources of a kernel, as the driver reports them once it is compiled.
struct KernelLimits {
  int64_t work_group = 0;   // the most work-items of a group
  int64_t local_bytes = 0;  // of local memory, without what is given as arguments
};

struct BuiltProgram {
  // Asks the driver once per kernel; thread-safe.
  Result<KernelLimits> LimitsOf(const Api& api, cl_device_id device,
                                const std::string& kernel) const;

  std::shared_ptr<DeviceContext> context;  // goes after the program
  Program program;
  std::string name;   // "norm/softmax.cl -DT=float", for messages
  int64_t bytes = 0;  // estimate of its host memory: text and binary

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::string, KernelLimits> limits_;
};

class ProgramCache {
 public:
  static constexpr size_t kMostPrograms = 1024;

  // `disk` may be null.
  ProgramCache(std::shared_ptr<DeviceContext> context, const FoundDevice& device,
               bool keep_binaries, std::shared_ptr<DiskCache> disk,
               size_t most_programs = kMostPrograms);
  ~ProgramCache();

  // `source` lives as long as the process (source.h); `generated` is OpenCL C put between the
  // defines and the source; `places` changes one kernel, whose program is then another one.
  // Thread-safe; two threads that want one program build it once. A program lives as long as
  // someone holds it, even after the cache dropped it. DeadlineExceeded, Cancelled, or Unavailable
  // for a driver that compiles longer than the watchdog allows.
  Result<std::shared_ptr<const BuiltProgram>> Get(const Source& source, std::string_view generated,
                                                  const Defines& defines, const EarlyEnd& end = {},
                                                  const Places& places = {});

  int64_t built() const { return maker_->built; }    // compiled from source
  int64_t loaded() const { return maker_->loaded; }  // made from a binary on disk
  int64_t bytes() const;                             // of the programs held now
  size_t size() const;

 private:
  struct Slot {
    Mutex mutex;
    bool making ABSL_GUARDED_BY(mutex) = false;
    Deadline since ABSL_GUARDED_BY(mutex) = {};
    Status failure ABSL_GUARDED_BY(mutex);  // of the last attempt
    std::shared_ptr<const BuiltProgram> program ABSL_GUARDED_BY(mutex);
  };
  struct Entry {
    std::shared_ptr<Slot> slot;
    std::list<std::string>::iterator place;
  };
  // What compiling needs; kept by the compiling thread.
  struct Maker {
    std::shared_ptr<DeviceContext> context;
    cl_device_id device = nullptr;
    std::string identity;             // of device and driver
    std::shared_ptr<DiskCache> disk;  // of binaries; may be null
    std::atomic<int64_t> built{0}, loaded{0};

    Result<std::shared_ptr<const BuiltProgram>> Make(std::string_view path, const std::string& text,
                                                     std::string name);
  };
  std::shared_ptr<Slot> SlotOf(const std::string& key);
  // Publishes the result of a slot to the threads that wait for it.
  static void Publish(Slot& slot, Result<std::shared_ptr<const BuiltProgram>> made);

  const std::shared_ptr<Maker> maker_;
  const size_t most_programs_;
  mutable std::mutex mutex_;
  std::list<std::string> used_;  // keys, least recently used first
  std::map<std::string, Entry> entries_;
};

// The text that the driver compiles, with these options. Internal for a define of several lines.
Result<std::string> ProgramText(const Source& source, std::string_view generated,
                                const Defines& defines, const Places& places = {});
std::string_view ProgramOptions();

// The identity of a device on which cached entries depend; part of each key.
std::string CacheIdentity(const DeviceFacts& facts);

}  // namespace oncilla::opencl
