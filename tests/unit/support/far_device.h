// A far device for tests: computes on the CPU, with memory that the host cannot access, on threads
// of its own, one per queue. It can be told to be slow or to hang, and records what it did when.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/thread_pool.h"
#include "engine/device/device.h"

namespace oncilla::testing {

// What tests set and read; shared by all far devices created with it. Thread-safe.
struct FarScript {
  std::string refused_op;                 // set before anything is compiled
  std::atomic<bool> hang = false;         // work begun from now on does not end until this is false
  std::atomic<int> hang_before_node = 0;  // hangs at the so manyth step from now; 0: never
  std::atomic<int> step_us = 0;           // how long a step takes at least
  std::atomic<int> transfer_us = 0;       // and a transfer
  std::atomic<int> flushed = 0;           // submissions
  std::atomic<int64_t> uploaded_bytes = 0, downloaded_bytes = 0;
  std::atomic<int> steps = 0;
  std::atomic<int> lost_queues = 0;  // closed with work that hangs

  struct Span {
    char kind;  // 'u'pload, 's'tep, 'd'ownload
    int64_t begin_ns, end_ns;
  };
  void Note(char kind, int64_t begin_ns, int64_t end_ns) {
    std::lock_guard lock(mutex);
    spans.push_back({kind, begin_ns, end_ns});
  }
  std::vector<Span> Spans() const {
    std::lock_guard lock(mutex);
    return spans;
  }
  mutable std::mutex mutex;
  std::vector<Span> spans;
};

std::unique_ptr<Device> MakeFarDevice(ThreadPool* threads, std::shared_ptr<FarScript> script,
                                      const std::string& name = "far");

// One far device as a backend, for RuntimeOptions::more_backends, and its script.
const Backend* FarBackend();
// The script of devices that FarBackend() opens from now on.
std::shared_ptr<FarScript> NewFarScript();

}  // namespace oncilla::testing
