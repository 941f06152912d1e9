// ConstantStore: a model's constants on its devices, one packed copy per (device, constant,
// packing), shared by all plans. Belongs to the model; its memory goes back whole with it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/device/device.h"
#include "engine/memory/pool.h"

namespace oncilla {

class ConstantStore {
 public:
  // One pool per device, in the session's order; pools and devices must outlive the store.
  ConstantStore(std::span<Device* const> devices, std::vector<Pool*> pools, OwnerId owner);

  // The constant on device `device` in the form `packing` asks for; uploaded when new. Constants
  // are the same when they view the same bytes. Thread-safe.
  Result<BufferView> Get(int device, const Tensor& constant, const Packing& packing);

  // Takes the memory for constants that Get will be asked for, in as few regions as the device
  // allows, so that the pool holds just them. Fails when they are more than the limit leaves; what
  // the driver refuses is left to Get, piece by piece.
  struct Wanted {
    int device = 0;
    Tensor constant;
    Packing packing;
  };
  Status Reserve(std::span<const Wanted> wanted);

  int64_t bytes() const;
  int64_t packings() const;  // copies made so far, for tests

 private:
  struct Entry {
    Tensor source_owner;  // keeps the key's address from being reused
    Allocation memory;
  };
  using Key = std::tuple<int, const std::byte*, std::string>;

  std::span<Device* const> devices_;
  std::vector<Pool*> pools_;
  const OwnerId owner_;
  mutable absl::Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Queue>> queues_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace oncilla
