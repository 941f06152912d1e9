// The state of an instance, for the files that make, run and enqueue it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/run/instance.h"

namespace oncilla {

// A part of a stretch that is submitted as a whole. Pieces are short, so that little is queued
// ahead of a cancelled run, and so that it is known at which nodes a device hangs.
struct Piece {
  std::unique_ptr<Recording> recording;
  int stretch = 0;
  size_t first_step = 0, steps = 0;
  bool last_of_stretch = false;
};

struct Instance::State {
  std::span<Device* const> devices;
  std::span<const std::shared_ptr<DeviceLink>> links;
  OwnerId owner = kNoOwner;
  std::vector<std::vector<Allocation>> arenas;  // [device][block]
  std::vector<std::unique_ptr<Queue>> queues;   // [device], null where nothing runs
  bool stamps = false;                          // the queues have them
  std::vector<Piece> pieces;                    // in the order of stretches and steps
  std::vector<std::vector<std::byte>> staging;  // per copy between two devices, in order
  std::vector<EventPtr> last;                   // [device]
  // For the run in progress. Kept when it is aborted, so that work that is still in progress has
  // valid memory to write to.
  std::vector<RunValue> inputs;
  std::vector<RunValue> outputs;
  std::vector<std::unique_ptr<HostRegion>> host_regions;
  std::shared_ptr<std::atomic<int64_t>> abandoned_bytes;
  std::shared_ptr<ResultMemory> results;

  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto& blocks : arenas) {
      for (const Allocation& block : blocks) sum = SaturatingAdd(sum, block.chunk_bytes());
    }
    for (const auto& copy : staging) sum = SaturatingAdd(sum, static_cast<int64_t>(copy.size()));
    return sum;
  }
  BufferView ViewOf(const Plan& plan, const Home& home, int64_t bytes) const {
    if (home.kind == Home::kConstant) return home.view;
    const Storage& storage = plan.storages[home.index];
    const BufferView block = arenas[storage.device][storage.block].view();
    return {block.region, block.offset + storage.offset, bytes};
  }
};

// Whether a copy's source is in host memory.
inline bool FromHost(const Plan& plan, std::span<Device* const> devices, const PlannedCopy& copy) {
  if (copy.from.kind == Home::kInput) return plan.input_devices[copy.from.index] == 0;
  return devices[copy.from_device]->info().host_memory;
}

// The slot of a home that is memory of the caller or of a result, filled in at each run; -1 for
// other homes.
inline int ExternalSlot(const Plan& plan, const Home& home) {
  if (home.kind == Home::kInput) return home.index;
  if (home.kind == Home::kStorage && plan.storages[home.index].output >= 0) {
    return static_cast<int>(plan.inputs.size()) + plan.storages[home.index].output;
  }
  return -1;
}

// For profiles: the live bytes of a device's arena while each step runs, by the plan's clock.
inline std::map<int, int64_t> LiveBytes(const Plan& plan, int device) {
  std::map<int, int64_t> changes;
  for (const Storage& storage : plan.storages) {
    if (storage.device != device || storage.output >= 0) continue;
    changes[storage.first] += storage.bytes;
    changes[storage.last + 1] -= storage.bytes;
  }
  int64_t live = 0;
  for (auto& [clock, bytes] : changes) bytes = live += bytes;
  return changes;
}

inline StepProfile ProfileOf(const Plan& plan, const PlannedStep& step, int device,
                             const std::map<int, int64_t>& live, int64_t begin_ns, int64_t end_ns) {
  const Node& node = plan.compiled->graph.node(step.node);
  int64_t bytes = 0;
  for (const Home& home : step.outputs) {
    if (home.kind == Home::kStorage) bytes += plan.storages[home.index].bytes;
  }
  const auto after = live.upper_bound(step.clock);
  return {node.name,
          std::string(node.op->name),
          step.kernel->description(),
          device,
          begin_ns,
          end_ns,
          bytes,
          after == live.begin() ? 0 : std::prev(after)->second};
}

}  // namespace oncilla
