// ProgramCache: compiled programs of one device, in memory and, through a DiskCache, on disk.
//
// On disk the key is a SHA-256 over the cache's format, the whole source text (defines included),
// the build options, the device and its platform's and driver's versions. In memory, where only the
// text differs, it is what the text is put together from: each kernel of each plan asks for its
// program. A binary that the driver refuses is dropped and built from source again.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/opencl/cl_objects.h"
#include "backends/opencl/discovery.h"
#include "backends/opencl/disk_cache.h"
#include "backends/opencl/source.h"

namespace oncilla::opencl {

// What a kernel takes for itself, as the driver says once it is compiled.
struct KernelLimits {
  int64_t work_group = 0;   // the most work-items of a group
  int64_t local_bytes = 0;  // of local memory, without what is given as arguments
};

struct BuiltProgram {
  // Asks the driver once per kernel; thread-safe.
  Result<KernelLimits> LimitsOf(const Api& api, cl_device_id device,
                                const std::string& kernel) const;

  Program program;
  std::string name;   // "norm/softmax.cl -DT=float", for messages
  int64_t bytes = 0;  // estimate of what it costs the host: text and binary

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::string, KernelLimits> limits_;
};

class ProgramCache {
 public:
  static constexpr size_t kMostPrograms = 1024;

  // `disk` may be null; it, `api` and `context` must outlive the cache.
  ProgramCache(const Api& api, cl_context context, const FoundDevice& device, bool keep_binaries,
               DiskCache* disk, size_t most_programs = kMostPrograms);

  // `source` lives as long as the program (source.h); `generated` is OpenCL C put between the
  // defines and the source. Thread-safe; two threads that
  // want one program build it once. A program lives as long as someone holds it, even after the
  // cache dropped it.
  Result<std::shared_ptr<const BuiltProgram>> Get(const Source& source, std::string_view generated,
                                                  const Defines& defines);

  int64_t built() const { return built_; }    // compiled from source
  int64_t loaded() const { return loaded_; }  // made from a binary on disk
  int64_t bytes() const;                      // of the programs held now
  size_t size() const;

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const BuiltProgram> program;
  };
  struct Entry {
    std::shared_ptr<Slot> slot;
    std::list<std::string>::iterator place;
  };

  Result<std::shared_ptr<const BuiltProgram>> Make(const Source& source, const std::string& text,
                                                   std::string name);

  const Api& api_;
  const cl_context context_;
  const cl_device_id device_;
  const std::string identity_;  // of device and driver
  const std::string options_;
  const bool keep_binaries_;
  DiskCache* const disk_;
  const size_t most_programs_;
  std::atomic<int64_t> built_{0}, loaded_{0};
  mutable std::mutex mutex_;
  std::list<std::string> used_;  // keys, least recently used first
  std::map<std::string, Entry> entries_;
};

// What the driver is given to compile, with these options. Internal for a define of several lines.
Result<std::string> ProgramText(const Source& source, std::string_view generated,
                                const Defines& defines);
std::string_view ProgramOptions();

// What every cached thing of a device depends on; part of each key.
std::string CacheIdentity(const DeviceFacts& facts);

}  // namespace oncilla::opencl
