// ConstantStore: a model's constants on its devices, one packed copy per (device, content,
// packing). All plans and signatures share it, and so do other models of the session with the same
// contents: two loads of one file hold their weights once. It keeps no reference to the tensors
// that it packed, so that the source may be released. It belongs to the model, and its memory is
// freed with the model, except for copies that another model uses too, which then belong to that
// one.
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

class SharedConstants;

class ConstantStore {
 public:
  // One pool per device, in the session's order; pools and devices must outlive the store.
  // `abandoned_bytes`, which may be null, counts memory that is abandoned because uploads hang.
  ConstantStore(std::span<Device* const> devices, std::vector<Pool*> pools, OwnerId owner,
                std::shared_ptr<std::atomic<int64_t>> abandoned_bytes = nullptr);
  ~ConstantStore();
  // Appends a device. Its pool lives as long as a constant in it.
  void AddDevice(Device* device, std::shared_ptr<Pool> pool);
  // Shares constants with the other stores of the session. To be called before the first Get().
  void ShareWith(std::shared_ptr<SharedConstants> shared) { shared_ = std::move(shared); }

  // Device, hash of the bytes, "f32[3,3,16,32] dense".
  using Key = std::tuple<int, uint64_t, uint64_t, std::string>;
  // A constant on device `device`, laid out by `packing`. Constants are the same when their
  // descriptor and bytes are (by a 128-bit hash).
  struct Wanted {
    Wanted(int device, Tensor constant, Packing packing);
    int device;
    Tensor constant;
    Packing packing;
    Key key;
  };
  // Returns the constant, uploading it when it is new. The upload ends early with the run that
  // wants it: DeadlineExceeded or Cancelled, and Unavailable for a device that finishes nothing for
  // as long as the watchdog allows. Thread-safe.
  Result<BufferView> Get(const Wanted& wanted, const RunControl& control = {});

  // Allocates the memory for constants that Get will be asked for, in as few regions as the device
  // allows, so that the pool holds just them. Fails when they exceed what the limit leaves; where
  // the driver refuses, Get allocates them one by one.
  Status Reserve(std::span<const Wanted> wanted, const RunControl& control = {});

  // Frees the buffer that Get reuses from one constant to the next.
  void LetGoOfScratch();

  // The constants that are there now ("f32[3,3,16,32] dense"), by device.
  struct Kept {
    int device = 0;
    std::string what;
    int64_t bytes = 0;
    bool shared = false;  // another model has it too
  };
  std::vector<Kept> List() const;
  int64_t bytes() const;
  int64_t packings() const;  // copies made so far, for tests

 private:
  // A constant on its device, or being uploaded: a run that ends early does not wait for the
  // upload; the next one that wants the constant does.
  friend class SharedConstants;
  struct Entry {
    std::shared_ptr<Pool> pool;
    Allocation memory;
    std::vector<OwnerId> holders;  // under the lock of SharedConstants; the memory's owner first
    EventPtr on_its_way;           // the upload; null once it is done
    // What the upload reads until then.
    std::vector<std::byte> packed;
    Tensor constant;
  };
  Status Send(const Wanted& wanted, const RunControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the upload. A constant whose upload failed is forgotten, so that the next call tries
  // again.
  Result<BufferView> Arrived(const Key& key, const RunControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether this store has the constant, or another one, from which it is then taken.
  bool Has(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OwnerId owner_;
  std::shared_ptr<SharedConstants> shared_;
  const std::shared_ptr<std::atomic<int64_t>> abandoned_bytes_;
  mutable Mutex mutex_;
  std::vector<Device*> devices_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Pool>> pools_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Queue>> queues_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::byte> aligned_ ABSL_GUARDED_BY(mutex_);  // a copy of what lies unaligned
};

// The constants of all stores of a session whose uploads are done. Thread-safe.
class SharedConstants {
 public:
  using Key = ConstantStore::Key;
  using EntryPtr = std::shared_ptr<ConstantStore::Entry>;
  // The constant, which `owner` holds from now on; null when there is none.
  EntryPtr Find(const Key& key, OwnerId owner);
  // Adds a constant whose upload is done; it does not change any more.
  void Add(const Key& key, const EntryPtr& entry, OwnerId owner);
  // `owner` no longer holds it: its memory is charged to another holder, where there is one.
  void Leave(ConstantStore::Entry& entry, OwnerId owner);
  // `owner` is about to close its pool and holds nothing in it any more. False when no other owner
  // holds anything there, or will.
  bool Leave(const Pool& pool, OwnerId owner);
  bool IsShared(const ConstantStore::Entry& entry) const;

 private:
  static void HandOn(ConstantStore::Entry& entry, OwnerId owner);
  mutable Mutex mutex_;
  std::map<Key, std::weak_ptr<ConstantStore::Entry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace oncilla
