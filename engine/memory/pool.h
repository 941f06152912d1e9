// Pool: memory of one device for one session, or for one model's constants.
//
// Divides the device's regions by Bfc, records every chunk in the ledger under its owner, and obeys
// a limit that is its own or shared through a MemoryBudget. Only pools allocate and free regions of
// a device. A pool does not know when the device is done with a chunk: the caller frees it after
// waiting for the work that uses it.
// Thread-safe. The device and the ledger must outlive the pool; allocations may outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/device/device.h"
#include "engine/memory/bfc.h"
#include "engine/memory/budget.h"
#include "engine/memory/ledger.h"

namespace oncilla {

// A request that a pool could not satisfy, and the pool's state at that time.
struct PoolShortage {
  int64_t asked_bytes = 0;
  std::string asked_by;    // "model 'resnet' arena"
  std::string text, json;  // PoolReport() and PoolReportJson()
  std::string device_name;
};

struct PoolOptions {
  std::string name = {};         // in reports: "arenas"
  std::string device_name = {};  // in reports and the ledger; empty: the driver's name for it
  int64_t limit_bytes = 0;       // 0: DefaultLimitBytes, or the budget's where there is one
  std::shared_ptr<MemoryBudget> budget = nullptr;  // shared with other pools; null: one of its own
  bool growth = true;                              // false: the first request takes the whole limit
  double fragmentation_fraction = 0;               // see BfcOptions
  bool exact = false;                              // see BfcOptions; for arenas and constants
  int64_t first_region_bytes = int64_t{2} << 20;   // with the two below: see BfcOptions
  double growth_factor = 2;
  int64_t growth_cap_bytes = INT64_MAX;
  // The bytes that Trim leaves in the pool, once they were allocated (Commit).
  int64_t reserve_bytes = 0;
  // Called when a request fails for lack of memory, without any lock of the pool; may be empty.
  std::function<void(const PoolShortage&)> on_shortage = nullptr;
  // The owner that is charged for what is in regions but not handed out, so that the ledger's total
  // is what the device allocated. kNoOwner: it is not recorded.
  OwnerId owner = kNoOwner;
};

// The default limit of a session on a device: all of its memory but 300 MiB or 6 %, whichever is
// more, and at least half. The driver's free memory is not considered, since most drivers cannot
// report it.
int64_t DefaultLimitBytes(const DeviceInfo& info);

// A chunk of a pool, freed on destruction. Movable; not thread-safe.
class Allocation {
 public:
  Allocation() = default;
  Allocation(Allocation&& other) noexcept;
  Allocation& operator=(Allocation&& other) noexcept;
  ~Allocation() { Release(); }

  // The bytes asked for. A request for no bytes has no region. Not valid once the pool is closed.
  const BufferView& view() const { return view_; }
  int64_t bytes() const { return view_.bytes; }
  int64_t chunk_bytes() const { return chunk_.bytes; }  // with padding: what the ledger counts
  Account account() const { return account_; }
  // Charges the bytes to another owner or category. On failure nothing changes.
  Status Transfer(Account to);
  // Frees it now; with a stamp (see Bfc::Free), once Pool::SetReached has reported that stamp.
  void Release(int64_t stamp = 0);

 private:
  friend class Pool;
  friend class HeldMemory;
  struct PoolState;
  std::shared_ptr<PoolState> state_;
  BfcChunk chunk_;
  BufferView view_;
  Account account_;
};

// Memory of a pool's device that does not come from the pool, but is in the ledger and under the
// limit until destruction. Not thread-safe; may outlive the pool, not the ledger.
class HeldMemory {
 public:
  HeldMemory() = default;
  HeldMemory(HeldMemory&& other) noexcept;
  HeldMemory& operator=(HeldMemory&& other) noexcept;
  ~HeldMemory() { (void)Set(0); }

  // Sets what is held now. ResourceExhausted when it grows and the limit leaves no room, even after
  // empty regions were freed; the count then stays as it was. Never fails when it shrinks.
  Status Set(int64_t bytes);
  int64_t bytes() const { return bytes_; }

 private:
  friend class Pool;
  std::shared_ptr<Allocation::PoolState> state_;
  LedgerEntry line_;
  int64_t bytes_ = 0;  // counted under the limit; the ledger's line may differ if it refused them
};

class Pool {
 public:
  Pool(Device* device, Ledger* ledger, PoolOptions options);
  ~Pool();  // Close()
  // Another handle of this pool: its allocations come from the same regions, and its Close does
  // nothing.
  std::unique_ptr<Pool> Share();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // ResourceExhausted, naming what was asked, what is free, the limits and who holds the most;
  // before that, empty regions are freed, here and in the pools that share the budget.
  // Waits for a device that allocates another region, as long as `end` allows; calls that need no
  // region do not wait.
  Result<Allocation> Allocate(int64_t bytes, Account account, const EarlyEnd& end = {});
  // Allocates regions now until the pool has so many bytes, which it does not free for other pools
  // that are short; returns what it has. ResourceExhausted when that is less.
  Result<int64_t> Commit(int64_t bytes);
  // Counts memory of this device that does not come from a pool: tensors that the host keeps.
  HeldMemory Hold(Account account) const;
  // See Bfc::SetReached.
  void SetReached(int64_t stamp);

  // Frees regions in which no chunk is in use, except for the reserve; returns the bytes.
  int64_t Trim();
  // Frees every region and returns the bytes; allocations that are still alive become invalid, and
  // freeing them later does nothing. Allocate fails from now on. Only the first call returns more
  // than 0.
  int64_t Close();
  // A chunk's size for so many bytes.
  int64_t Rounded(int64_t bytes) const;
  // Limits this pool; a shared budget has its own limit. If exceeded, empty regions are given back.
  void SetLimit(int64_t bytes);

  // The bytes kept by Commit() that are not in use at the moment.
  int64_t idle_committed_bytes() const;
  BfcStats stats() const;
  void ClearStats();
  BfcSnapshot Snapshot() const;
  std::string Report() const;
  std::string ReportJson() const;
  // Bytes of regions that the device failed to free: they stay reserved in the budget.
  int64_t abandoned_bytes() const;
  const std::string& name() const;
  const std::string& device_name() const;
  const std::shared_ptr<MemoryBudget>& budget() const;

 private:
  explicit Pool(std::shared_ptr<Allocation::PoolState> state);
  int64_t TrimTo(int64_t keep_bytes);

  std::shared_ptr<Allocation::PoolState> state_;
  bool shared_ = false;
};

}  // namespace oncilla
