// SessionOptions: the options of a session. config.h reads them from text and JSON by the lists of
// fields here; docs/config.md describes them for users.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/passes/precision.h"
#include "engine/session/memory_options.h"

namespace oncilla {

// A part of a device that acts as a device of its own: with its own pool, queues and hard limit.
struct LogicalDevice {
  std::string physical;            // by the name that it would have otherwise: "GPU:0", "CPU:0"
  int64_t memory_limit_bytes = 0;  // 0: the physical device's

  static void Fields(auto& self, auto&& field) {
    field({.name = "physical", .doc = "The device that it is a part of: GPU:0, CPU:0"},
          self.physical);
    field({.name = "memory_limit_bytes",
           .doc = "The most that is taken of it; 0: the physical device's limit",
           .least = 0,
           .bytes = true},
          self.memory_limit_bytes);
  }
  friend bool operator==(const LogicalDevice&, const LogicalDevice&) = default;
};

// Failures after which a run may be retried on another device.
enum class FallbackCause {
  kNoDevice,         // the device does not exist
  kLoadOutOfMemory,  // constants do not fit
  kRunOutOfMemory,   // intermediates do not fit
  kDeviceLost,       // the driver fails, or hangs
  kUnsupported,      // a strict session's device lacks a kernel
};
inline constexpr std::pair<FallbackCause, std::string_view> kFallbackCauseNames[] = {
    {FallbackCause::kNoDevice, "no_device"},
    {FallbackCause::kLoadOutOfMemory, "load_out_of_memory"},
    {FallbackCause::kRunOutOfMemory, "run_out_of_memory"},
    {FallbackCause::kDeviceLost, "device_lost"},
    {FallbackCause::kUnsupported, "unsupported"},
};

// What to do when a device fails; by default nothing. A run that changed variables before it failed
// is never repeated.
struct FallbackPolicy {
  std::set<FallbackCause> on;
  std::vector<std::string> chain;  // devices to retry on, in order; see ResolveDevice

  static void Fields(auto& self, auto&& field) {
    field({.name = "on",
           .doc = "Failures after which a run goes on elsewhere: no_device, load_out_of_memory, "
                  "run_out_of_memory, device_lost, unsupported"},
          self.on, kFallbackCauseNames);
    field({.name = "chain", .doc = "The devices to go on with, in order", .flag = "--fallback"},
          self.chain);
  }
  friend bool operator==(const FallbackPolicy&, const FallbackPolicy&) = default;
};

// Which of several GPUs a session uses when its options name none. The choice is made when the
// session is opened, among all sessions of one runtime.
enum class DevicePolicy {
  kFirst,        // the first visible one
  kLeastLoaded,  // with the fewest sessions that prefer it; then the one with the most free memory
  kRoundRobin,   // the one after that of the previous session
};
inline constexpr std::pair<DevicePolicy, std::string_view> kDevicePolicyNames[] = {
    {DevicePolicy::kFirst, "first"},
    {DevicePolicy::kLeastLoaded, "least_loaded"},
    {DevicePolicy::kRoundRobin, "round_robin"},
};

struct SessionOptions {
  std::string device = "auto";  // see Runtime::Resolve
  bool strict = false;          // refuse where a node would fall back to another device
  // Nodes that may fall back even if `strict`: patterns of names in the model's file, or "op:" and
  // an op type.
  std::vector<std::string> strict_except = {};
  DevicePolicy device_policy = DevicePolicy::kFirst;  // which one "auto" and "gpu" mean
  int threads = 0;  // > 0: a pool of that size, the session's own unless it has a name
  // Sessions of a runtime that give the same name share one pool.
  std::string thread_pool = {};
  // The short forms of device_memory for every device; at most one is given. Everything that the
  // engine allocates there counts. 0: the default of the device.
  int64_t memory_limit_bytes = 0;
  double memory_limit_fraction = 0;  // of the device's memory, in (0, 1]
  // By a device's name ("GPU:0" or longer), a type ("GPU") or "*"; only the most specific one
  // applies.
  std::map<std::string, DeviceMemoryOptions> device_memory = {};
  OutOfMemoryPolicy on_out_of_memory = {};
  bool auto_split_batch = false;  // kSplit as the last step, if it is not among them
  // When memory runs out, the pool's state is written to PREFIX.DEVICE.NUMBER.txt and .json; empty:
  // no.
  std::string memory_dump = {};
  // The most devices of a type that are used; "GPU": 0 means that no driver is loaded, "CPU": n
  // that the CPU is seen as n devices.
  std::map<std::string, int> device_count = {};
  // Only these GPUs, numbered anew (SeeOnly in visible_devices.h); empty: all.
  std::vector<std::string> visible_devices = {};
  // Divides devices (Divide in visible_devices.h): those named are seen as their parts, the others
  // as they are, all numbered anew.
  std::vector<LogicalDevice> logical_devices = {};
  FallbackPolicy fallback = {};
  PrecisionOptions precision = {};  // of weights and intermediate values; docs/precision.md
  // Measured choices of launches: "auto", "off" or a file of `oncilla tune`; docs/tuning.md.
  std::string tuning = "auto";
  bool log_device_placement = false;  // log where each node of a plan runs, in TensorFlow's format
  bool verify = false;  // check every pass and device call; ONCILLA_VERIFY=1 has the same effect
  int max_concurrent_runs = 4;  // per model and shape; bounds the memory of overlapping runs
  int64_t run_timeout_ms = 0;   // of runs that set none themselves; 0: none
  // A run without a deadline ends when a device has finished nothing for so long; 0: never.
  int64_t watchdog_ms = 60000;

  // Longer times would overflow clocks.
  static constexpr double kLongestMs = 366.0 * 24 * 3600 * 1000;
  static void Fields(auto& self, auto&& field) {
    field({.name = "device",
           .doc = "Where nodes run unless they ask for another device: auto, cpu, cpu:plain (exact "
                  "code only), gpu, gpu:1 or a TensorFlow device name",
           .flag = "--device"},
          self.device);
    field({.name = "strict",
           .doc = "Refuse where a node would fall back to another device",
           .flag = "--strict"},
          self.strict);
    field({.name = "strict_except",
           .doc = "With strict, nodes that may fall back even so: patterns of their names in the "
                  "model's file, or op: and an op"},
          self.strict_except);
    field({.name = "device_policy",
           .doc = "Which GPU auto and gpu mean: first, least_loaded (the one with the fewest "
                  "sessions of this runtime, then the most free memory) or round_robin"},
          self.device_policy, kDevicePolicyNames);
    field({.name = "threads",
           .doc = "Threads of the CPU device; 0: all processors, shared with other sessions",
           .least = 0,
           .most = 1024,
           .flag = "--threads"},
          self.threads);
    field({.name = "thread_pool",
           .doc = "Sessions that give the same name share one pool of threads"},
          self.thread_pool);
    field({.name = "memory_limit_bytes",
           .doc = "The most that is taken on each device; lower it to leave room for others",
           .least = 0,
           .bytes = true,
           .flag = "--memory-limit"},
          self.memory_limit_bytes);
    field({.name = "memory_limit_fraction",
           .doc = "The same as a share of each device's memory",
           .least = 0,
           .most = 1},
          self.memory_limit_fraction);
    field({.name = "device_memory",
           .doc = "Memory by a device's name (GPU:0), a type (GPU) or *: the closest one holds, "
                  "alone"},
          self.device_memory);
    field({.name = "on_out_of_memory", .doc = "What a run does when its memory is not there"},
          self.on_out_of_memory);
    field({.name = "auto_split_batch",
           .doc = "Run a batch that does not fit in parts: split as the last step"},
          self.auto_split_batch);
    field(
        {.name = "memory_dump",
         .doc = "Where memory runs out, the pool is written to PREFIX.DEVICE.NUMBER.txt and .json"},
        self.memory_dump);
    field({.name = "max_concurrent_runs",
           .doc = "The most runs at once per model and shape; each takes memory of its own",
           .least = 1,
           .most = 1 << 20},
          self.max_concurrent_runs);
    field({.name = "run_timeout_ms",
           .doc = "The time limit of runs that give none themselves; 0: none",
           .least = 0,
           .most = kLongestMs},
          self.run_timeout_ms);
    field({.name = "watchdog_ms",
           .doc = "A run without a time limit ends when a device has finished nothing for so long; "
                  "0: never. Raise it for kernels that take minutes",
           .least = 0,
           .most = kLongestMs},
          self.watchdog_ms);
    field({.name = "device_count",
           .doc = "The most devices of a type that take part: GPU 0 loads no driver, CPU n divides "
                  "the CPU in n",
           .least = 0,
           .most = 1024},
          self.device_count);
    field({.name = "visible_devices",
           .doc = "Only these GPUs, numbered anew: by number, name, stable id or a part of the "
                  "driver's name"},
          self.visible_devices);
    field({.name = "logical_devices", .doc = "Parts of devices that are devices of their own"},
          self.logical_devices);
    field({.name = "fallback", .doc = "What to do when a device fails; nothing unless given"},
          self.fallback);
    field({.name = "precision", .doc = "How weights and intermediate values are stored"},
          self.precision);
    field({.name = "tuning",
           .doc = "Measured choices of launches on OpenCL devices: auto (what oncilla tune has "
                  "written, over what the library knows), off, or a file",
           .flag = "--tuning"},
          self.tuning);
    field({.name = "log_device_placement",
           .doc = "Tell in the log where each node runs, in TensorFlow's words"},
          self.log_device_placement);
  }
};

}  // namespace oncilla
