// Oncilla for C++17: the devices of this machine, and what sessions share. Included by oncilla.hpp.
#ifndef ONCILLA_RUNTIME_HPP_
#define ONCILLA_RUNTIME_HPP_

#include <functional>
#include <memory>
#include <oncilla/oncilla_tensor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace oncilla {
inline namespace v0 {

// The version of the library ("0.1.0"), and one line that says how it was built.
inline std::string Version() { return oncilla_version(); }
inline std::string BuildInfo() { return oncilla_build_info(); }

struct DeviceInfo {
  std::string name;  // "/job:localhost/replica:0/task:0/device:GPU:0"; empty when not usable
  std::string note;  // why it is not usable, else empty
  std::string id;    // stable between processes
  std::string driver_name, vendor, driver_version, backend;
  int64_t memory_bytes = 0, max_allocation_bytes = 0;
  int compute_units = 0;
  bool on_processor = false;  // computes on the host's processors
};

// Host memory for weights and intermediate values of the CPU. Both may be called from any thread,
// until the runtime, its sessions and all that they made are gone.
struct HostAllocator {
  // Memory aligned to `alignment`, or null if there is none.
  std::function<void*(size_t bytes, size_t alignment)> allocate;
  std::function<void(void* memory, size_t bytes)> release;
};

struct RuntimeOptions {
  // List OpenCL devices of type CPU as GPU:n too, to use OpenCL on a machine without a GPU.
  bool opencl_cpu_devices = false;
  // Threads of the pool that sessions share; 0: one for each processor that this process may use.
  int threads = 0;
  // Where compiled OpenCL programs are kept; empty: the user's cache folder.
  std::string cache_dir = {};
  // Gets what the library has to say, from any thread, one call at a time; it must not call the
  // library. None: warnings and errors are written to standard error.
  std::function<void(oncilla_log_level level, const std::string& message)> log = nullptr;
  oncilla_log_level log_level = ONCILLA_LOG_WARNING;  // the lowest that is logged
  HostAllocator allocator = {};                       // the application's own; none: the system's
};

// What was left when all sessions of a runtime were closed.
struct ClosedSessions {
  int64_t released_bytes = 0;
  std::string still_held;  // a line for each session and model handle that the program still holds
};

// The devices of this machine. Sessions of one runtime share its thread pool, and a limit on what
// they take of a device together. Listing devices opens none. Copies refer to the same runtime.
class Runtime {
 public:
  static Result<Runtime> Create(const RuntimeOptions& options = {}) {
    oncilla_runtime_options r{};
    r.size = sizeof(r);
    r.opencl_cpu_devices = options.opencl_cpu_devices;
    r.threads = options.threads;
    if (!options.cache_dir.empty()) r.cache_dir = options.cache_dir.c_str();
    std::unique_ptr<RuntimeOptions> kept;  // the functions
    if (options.log || options.allocator.allocate || options.allocator.release) {
      kept = std::make_unique<RuntimeOptions>(options);
      SetFunctions(*kept, r);
    }
    oncilla_runtime* runtime = nullptr;
    Status status(oncilla_runtime_create(&r, &runtime));
    if (!status.ok()) return status;
    (void)kept.release();  // `done` has it
    return Runtime(runtime);
  }
  // The CPU first, then the GPUs, then devices that are not usable, with the reason.
  std::vector<DeviceInfo> Devices() const {
    std::vector<DeviceInfo> all(oncilla_runtime_device_count(get()));
    for (size_t i = 0; i < all.size(); ++i) {
      oncilla_device_info c{};
      c.size = sizeof(c);
      if (!Status(oncilla_runtime_device(get(), i, &c)).ok()) continue;
      all[i] = {
          c.name,           c.note,    c.id,           c.driver_name,          c.vendor,
          c.driver_version, c.backend, c.memory_bytes, c.max_allocation_bytes, c.compute_units,
          c.on_processor != 0};
    }
    return all;
  }
  // Whether there is a usable device of that name: "/GPU:0", "gpu:0", "/device:GPU:0", the full
  // name, or a type ("GPU").
  bool HasDevice(const std::string& name) const {
    return oncilla_runtime_has_device(get(), name.c_str()) != 0;
  }
  // Closes all sessions after waiting for their runs. Handles that are still held stay valid, and
  // refuse to run.
  Result<ClosedSessions> CloseSessions() const {
    ClosedSessions closed;
    closed.still_held.resize(1 << 16);
    size_t needed = 0;
    Status status(oncilla_runtime_close_sessions(get(), &closed.released_bytes,
                                                 closed.still_held.data(), closed.still_held.size(),
                                                 &needed));
    if (!status.ok()) return status;
    closed.still_held.resize(closed.still_held.find('\0'));
    return closed;
  }
  // Takes ownership of a handle of the C interface.
  static Runtime Adopt(oncilla_runtime* runtime) { return Runtime(runtime); }
  oncilla_runtime* get() const { return runtime_.get(); }

 private:
  explicit Runtime(oncilla_runtime* owned) : runtime_(owned, oncilla_runtime_free) {}

  static void SetFunctions(RuntimeOptions& kept, oncilla_runtime_options& r) {
    if (kept.log) {
      r.log = [](void* user, oncilla_log_level level, const char* message) {
        static_cast<RuntimeOptions*>(user)->log(level, message);
      };
      r.log_level = kept.log_level;
    }
    if (kept.allocator.allocate) {
      r.allocate = [](void* user, size_t bytes, size_t alignment) {
        return static_cast<RuntimeOptions*>(user)->allocator.allocate(bytes, alignment);
      };
    }
    if (kept.allocator.release) {
      r.release = [](void* user, void* memory, size_t bytes) {
        static_cast<RuntimeOptions*>(user)->allocator.release(memory, bytes);
      };
    }
    r.log_user = r.memory_user = r.done_user = &kept;
    r.done = [](void* user) { delete static_cast<RuntimeOptions*>(user); };
  }

  std::shared_ptr<oncilla_runtime> runtime_;
};

}  // namespace v0
}  // namespace oncilla

#endif  // ONCILLA_RUNTIME_HPP_
