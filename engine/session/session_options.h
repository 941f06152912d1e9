// SessionOptions: how a session is set up, as a value given to its constructor. proto/config.proto
// has the same as text, and docs/config.md the words for users.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/passes/precision.h"
#include "engine/session/memory_options.h"

namespace oncilla {

// A part of a device that is a device of its own: with its own pool, queues and hard limit.
struct LogicalDevice {
  std::string physical;            // as the session would see it otherwise: "GPU:0", "CPU:0"
  int64_t memory_limit_bytes = 0;  // 0: the physical device's
};

// Why a run may go on elsewhere.
enum class FallbackCause {
  kNoDevice,         // the device is not there
  kLoadOutOfMemory,  // constants do not fit
  kRunOutOfMemory,   // intermediates do not fit
  kDeviceLost,       // the driver fails, or hangs
  kUnsupported,      // a strict session's device lacks a kernel
};

// What to do when a device fails: nothing, unless asked for. A run that changed variables before it
// failed is never repeated.
struct FallbackPolicy {
  std::set<FallbackCause> on;
  std::vector<std::string> chain;  // devices to go on with, in order; see ResolveDevice
};

struct SessionOptions {
  std::string device = "auto";  // see Runtime::Resolve
  bool strict = false;          // refuse where a node would fall back to another device
  int threads = 0;              // > 0: a pool of so many, the session's own unless it has a name
  // One name, one pool: shared by the runtime's sessions that give it.
  std::string thread_pool = {};
  // The short forms of device_memory for every device; at most one is given. Everything that the
  // engine takes there counts. 0: the device's.
  int64_t memory_limit_bytes = 0;
  double memory_limit_fraction = 0;  // of the device's memory, in (0, 1]
  // By a device's name ("GPU:0" or longer), a type ("GPU") or "*"; the closest one holds, alone.
  std::map<std::string, DeviceMemoryOptions> device_memory = {};
  OutOfMemoryPolicy on_out_of_memory = {};
  bool auto_split_batch = false;  // kSplit as the last step, if it is not among them
  // Where memory runs out, the pool is written to PREFIX.DEVICE.NUMBER.txt and .json; empty: no.
  std::string memory_dump = {};
  // The most devices of a type that take part; "GPU": 0 means that no driver is loaded, "CPU": n
  // that the CPU is seen as n devices.
  std::map<std::string, int> device_count = {};
  // Only these GPUs, numbered anew (SeeOnly in visible_devices.h); empty: all.
  std::vector<std::string> visible_devices = {};
  // Divides devices (Divide in visible_devices.h): those named are seen as their parts, the others
  // as they are, all numbered anew.
  std::vector<LogicalDevice> logical_devices = {};
  FallbackPolicy fallback = {};
  PrecisionOptions precision = {};    // of weights and intermediate values; docs/precision.md
  bool log_device_placement = false;  // where each node of a plan runs, in TensorFlow's words
  bool verify = false;  // check every pass and device call; ONCILLA_VERIFY=1 has the same effect
  int max_concurrent_runs = 4;  // per model and shape; bounds the memory of overlapping runs
  int64_t run_timeout_ms = 0;   // of runs that give none themselves; 0: none
  // A run without a deadline ends when a device has finished nothing for so long; 0: never.
  int64_t watchdog_ms = 60000;
};

}  // namespace oncilla
