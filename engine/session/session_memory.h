// SessionMemory: what a session takes on its devices and for whom, and giving it back. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/compile/plan.h"
#include "engine/memory/ledger.h"
#include "engine/memory/pool.h"
#include "engine/session/runs_under_way.h"

namespace oncilla {

class Session;

// What closing or unloading gave back.
struct Released {
  int64_t bytes = 0;
  std::vector<std::pair<std::string, int64_t>> by_device;
};

// Told what a device, by its place in the session, gets back.
using DeviceCounter = std::function<void(size_t device, int64_t bytes)>;

struct DeviceMemory {
  std::string device;
  int64_t in_use_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t pool_bytes = 0;  // taken from the driver
  int64_t limit_bytes = 0;
  std::string limit_source;  // where the limit comes from, in words
  // For the pool of arenas: the largest free piece, and the share of the free bytes that is not in
  // it.
  int64_t largest_free_bytes = 0;
  double fragmentation = 0;
  int64_t reserve_bytes = 0;  // kept whatever is trimmed
  // What all sessions of the runtime take of the physical device, and may take.
  int64_t total_bytes = 0;
  int64_t total_limit_bytes = 0;
};

class SessionMemory {
 public:
  // The session's devices are used after its construction.
  explicit SessionMemory(Session& session);

  // Who holds what, and whose line of it holds what the session takes for itself.
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  OwnerId owner() const { return owner_; }
  RunsUnderWay& runs_under_way() { return runs_under_way_; }

  // What is taken and what the limits are, per device in use.
  std::vector<DeviceMemory> Devices() const;
  // Owners and lines as text; with everything there is to say as JSON (memory_report.h).
  std::string Report() const;
  std::string ReportJson() const;
  // What an instance of a plan takes from the pool of a device.
  int64_t ArenaBytes(const Plan& plan, int device) const;
  // Peaks become what is taken now.
  void ResetPeaks();

  // From now on the most bytes taken on a device in use, by any name that SessionOptions::device
  // may be. What is taken above it stays: Trim() first. NotFound; InvalidArgument below 1 and above
  // what the device has.
  Status SetLimit(std::string_view device, int64_t bytes);
  // Gives back what no run holds at the moment: memory of idle plans, which the next run takes
  // again, and empty regions. Constants stay.
  Released Trim();
  // Moves weights together: where a model's lie in more regions than they need, or beside constants
  // that no graph reads any more, its graphs are made anew, and what they leave is given back.
  // FailedPrecondition while runs are under way. A model whose graphs cannot be made anew is made
  // again by its next run.
  Result<Released> Defragment();
  // After a run: keeps the fragmentation of pools below the cap of the options, if there is one.
  void HoldFragmentation();

  // Memory that was abandoned because work on it hangs: a device may still write to it.
  const std::shared_ptr<std::atomic<int64_t>>& abandoned_account() const { return abandoned_; }
  int64_t abandoned_bytes() const { return *abandoned_; }

  // A pool of a model that is gone, with constants that other models have too.
  void KeepPool(size_t device, std::shared_ptr<Pool> pool);
  // Closes such pools that nobody uses, or all; the bytes given back on the device.
  int64_t CloseKeptPools(size_t device, bool all);

 private:
  // Per device, what is taken now; and, after trimming the pools, what is taken less than then.
  std::vector<int64_t> TakenBytes() const;
  Released GiveBackSince(const std::vector<int64_t>& taken);

  Session& session_;
  const std::shared_ptr<std::atomic<int64_t>> abandoned_ =
      std::make_shared<std::atomic<int64_t>>(0);
  Ledger ledger_;
  const OwnerId owner_;
  RunsUnderWay runs_under_way_;
  mutable Mutex mutex_;
  std::vector<std::pair<size_t, std::shared_ptr<Pool>>> kept_pools_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace oncilla
