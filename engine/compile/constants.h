// ConstantStore: a model's constants on its devices, one packed copy per (device, content,
// packing), shared by all plans and signatures. It keeps no hold on what it packed, so that the
// source may be let go. Belongs to the model; its memory goes back whole with it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/compile/run_control.h"
#include "engine/device/device.h"
#include "engine/memory/pool.h"

namespace oncilla {

class ConstantStore {
 public:
  // One pool per device, in the session's order; pools and devices must outlive the store.
  // `abandoned_bytes`, which may be null, gets what is given up with uploads that hang.
  ConstantStore(std::span<Device* const> devices, std::vector<Pool*> pools, OwnerId owner,
                std::shared_ptr<std::atomic<int64_t>> abandoned_bytes = nullptr);
  ~ConstantStore();
  // One more, behind those there are.
  void AddDevice(Device* device, Pool* pool);

  // Device, hash of the bytes, "f32[3,3,16,32] dense".
  using Key = std::tuple<int, uint64_t, uint64_t, std::string>;
  // A constant on device `device` in the form `packing` asks for. Constants are the same when their
  // desc and bytes are (by a 128-bit hash).
  struct Wanted {
    Wanted(int device, Tensor constant, Packing packing);
    int device;
    Tensor constant;
    Packing packing;
    Key key;
  };
  // Uploaded when new, which ends early with the run that wants it: DeadlineExceeded or Cancelled,
  // and Unavailable for a device that finishes nothing as long as the watchdog allows. Thread-safe.
  Result<BufferView> Get(const Wanted& wanted, const RunControl& control = {});

  // Takes the memory for constants that Get will be asked for, in as few regions as the device
  // allows, so that the pool holds just them. Fails when they are more than the limit leaves; what
  // the driver refuses is left to Get, piece by piece.
  Status Reserve(std::span<const Wanted> wanted, const RunControl& control = {});

  // What is there now: "f32[3,3,16,32] dense", by device.
  struct Kept {
    int device = 0;
    std::string what;
    int64_t bytes = 0;
  };
  std::vector<Kept> List() const;
  int64_t bytes() const;
  int64_t packings() const;  // copies made so far, for tests

 private:
  // A constant on its device, or on its way: whose run ends early does not wait for it, who wants
  // it next does.
  struct Entry {
    Allocation memory;
    EventPtr on_its_way;  // null once it is there
    // What the upload reads until then.
    std::vector<std::byte> packed;
    Tensor constant;
  };
  Status Send(const Wanted& wanted, const RunControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for what was sent; an upload that failed is forgotten, so that the next may try again.
  Result<BufferView> Arrived(const Key& key, const RunControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OwnerId owner_;
  const std::shared_ptr<std::atomic<int64_t>> abandoned_bytes_;
  mutable Mutex mutex_;
  std::vector<Device*> devices_ ABSL_GUARDED_BY(mutex_);
  std::vector<Pool*> pools_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Queue>> queues_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace oncilla
