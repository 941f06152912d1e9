// Pool: memory of one device for one session, or for one model's constants.
//
// Divides the device's regions by Bfc, writes every chunk to the ledger under its owner, and obeys
// a limit that is its own or shared through a MemoryBudget. It is the only thing that takes regions
// from a device and gives them back. It does not know when the device is done with a chunk: who
// frees one has waited for the work that uses it.
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

// A request that a pool could not meet, as it stood then.
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
  // What Trim leaves in the pool once it is there (Commit).
  int64_t reserve_bytes = 0;
  // Called when a request fails for lack of memory, without any lock of the pool; may be empty.
  std::function<void(const PoolShortage&)> on_shortage = nullptr;
  // Whose line holds what is in regions but not handed out, so that the ledger's total is what the
  // device gave. kNoOwner: nobody's.
  OwnerId owner = kNoOwner;
};

// What a session may use of a device when nobody says: all but 300 MiB or 6 %, whichever is more,
// and at least half. The driver's free memory is not asked, for most cannot tell.
int64_t DefaultLimitBytes(const DeviceInfo& info);

// A chunk of a pool, freed at the end of its life. Movable; not thread-safe.
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
  // Gives the bytes to another owner or category. On failure nothing changes.
  Status Transfer(Account to);
  // Frees it now; with a stamp (see Bfc::Free) once Pool::SetReached has told of it.
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

// Memory of a pool's device that does not come from the pool, on the ledger and under the limit all
// the same, until the end of its life. Not thread-safe; may outlive the pool, not the ledger.
class HeldMemory {
 public:
  HeldMemory() = default;
  HeldMemory(HeldMemory&& other) noexcept;
  HeldMemory& operator=(HeldMemory&& other) noexcept;
  ~HeldMemory() { (void)Set(0); }

  // What is held now. When it has grown and the limit leaves no room, even once empty regions have
  // gone back: ResourceExhausted, and what was counted before stays so. Never fails for less.
  Status Set(int64_t bytes);
  int64_t bytes() const { return bytes_; }

 private:
  friend class Pool;
  std::shared_ptr<Allocation::PoolState> state_;
  LedgerEntry line_;
  int64_t bytes_ = 0;  // of the limit; the ledger may refuse to show them
};

class Pool {
 public:
  Pool(Device* device, Ledger* ledger, PoolOptions options);
  ~Pool();  // Close()
  // Another face of this pool: its allocations come from the same regions, its Close does nothing.
  std::unique_ptr<Pool> Share();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // ResourceExhausted names what was asked, what is free, the limits and who holds the most; before
  // that, empty regions are given back, here and in the pools that share the budget.
  // Waits for a device that is to give another region, as long as `end` allows; others do not wait.
  Result<Allocation> Allocate(int64_t bytes, Account account, const EarlyEnd& end = {});
  // Takes regions from the device now until the pool has so many bytes, which it then keeps from
  // other pools that are short; returns what it has. ResourceExhausted when that is less.
  Result<int64_t> Commit(int64_t bytes);
  // Counts memory of this device that comes from elsewhere than pools: tensors that the host keeps.
  HeldMemory Hold(Account account) const;
  // See Bfc::SetReached.
  void SetReached(int64_t stamp);

  // Gives back regions in which nothing is in use, but for the reserve; returns the bytes.
  int64_t Trim();
  // Gives back every region and returns the bytes; what is still allocated is gone, and freeing it
  // later does nothing. Allocate fails from now on. Only the first call returns more than 0.
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
  // Bytes of regions that the device failed to take back: lost to the budget.
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
