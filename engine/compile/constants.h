// ConstantStore: a model's constants on its devices, one packed copy per (device, content,
// packing), shared by all plans and signatures, and with other models of the session that have the
// same: two loads of one file hold their weights once. It keeps no hold on what it packed, so that
// the source may be let go. Belongs to the model; its memory goes back whole with it, but for what
// another model has too, which is that one's from then on.
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
  // `abandoned_bytes`, which may be null, gets what is given up with uploads that hang.
  ConstantStore(std::span<Device* const> devices, std::vector<Pool*> pools, OwnerId owner,
                std::shared_ptr<std::atomic<int64_t>> abandoned_bytes = nullptr);
  ~ConstantStore();
  // One more, behind those there are. The pool lives as long as a constant in it.
  void AddDevice(Device* device, std::shared_ptr<Pool> pool);
  // What other stores of the session have is taken from there, and found there by them. Before the
  // first Get().
  void ShareWith(std::shared_ptr<SharedConstants> shared) { shared_ = std::move(shared); }

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
    bool shared = false;  // another model has it too
  };
  std::vector<Kept> List() const;
  int64_t bytes() const;
  int64_t packings() const;  // copies made so far, for tests

 private:
  // A constant on its device, or on its way: whose run ends early does not wait for it, who wants
  // it next does.
  friend class SharedConstants;
  struct Entry {
    std::shared_ptr<Pool> pool;
    Allocation memory;
    std::vector<OwnerId> holders;  // under the lock of SharedConstants; the memory's owner first
    EventPtr on_its_way;           // null once it is there
    // What the upload reads until then.
    std::vector<std::byte> packed;
    Tensor constant;
  };
  Status Send(const Wanted& wanted, const RunControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for what was sent; an upload that failed is forgotten, so that the next may try again.
  Result<BufferView> Arrived(const Key& key, const RunControl& control)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether it is here, or another store has it, which is then here too.
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
};

// The constants that are on their devices, of all stores of a session. Thread-safe.
class SharedConstants {
 public:
  using Key = ConstantStore::Key;
  using EntryPtr = std::shared_ptr<ConstantStore::Entry>;
  // One that `owner` holds from now on; null when there is none.
  EntryPtr Find(const Key& key, OwnerId owner);
  // It has arrived, and changes no more.
  void Add(const Key& key, const EntryPtr& entry, OwnerId owner);
  // `owner` holds it no longer: the memory is another holder's, where there is one.
  void Leave(ConstantStore::Entry& entry, OwnerId owner);
  // `owner` is about to close its pool and holds nothing any more; false when nobody else holds
  // anything there, nor will.
  bool Leave(const Pool& pool, OwnerId owner);
  bool IsShared(const ConstantStore::Entry& entry) const;

 private:
  static void HandOn(ConstantStore::Entry& entry, OwnerId owner);
  mutable Mutex mutex_;
  std::map<Key, std::weak_ptr<ConstantStore::Entry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace oncilla
