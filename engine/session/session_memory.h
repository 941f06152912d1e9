// SessionMemory: what a session allocates on its devices and for whom, and freeing it. Thread-safe.
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

// What closing or unloading freed.
struct Released {
  int64_t bytes = 0;
  std::vector<std::pair<std::string, int64_t>> by_device;
};

// Called with the bytes freed on a device, given by its index in the session.
using DeviceCounter = std::function<void(size_t device, int64_t bytes)>;

struct DeviceMemory {
  std::string device;
  int64_t in_use_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t pool_bytes = 0;  // allocated from the driver
  int64_t limit_bytes = 0;
  std::string limit_source;  // the origin of the limit, for reports
  // For the pool of arenas: the largest free chunk, and the share of the free bytes outside it.
  int64_t largest_free_bytes = 0;
  double fragmentation = 0;
  int64_t reserve_bytes = 0;  // never freed by Trim
  // What all sessions of the runtime use of the physical device, and the limit on that.
  int64_t total_bytes = 0;
  int64_t total_limit_bytes = 0;
};

class SessionMemory {
 public:
  // The session's devices are used only after construction.
  explicit SessionMemory(Session& session);

  // The ledger, and the owner that is charged for what the session allocates for itself.
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  OwnerId owner() const { return owner_; }
  RunsUnderWay& runs_under_way() { return runs_under_way_; }

  // What is allocated and what the limits are, per device in use.
  std::vector<DeviceMemory> Devices() const;
  // Owners and lines as text; the complete report as JSON (memory_report.h).
  std::string Report() const;
  std::string ReportJson() const;
  // The bytes that an instance of a plan takes from the pool of a device.
  int64_t ArenaBytes(const Plan& plan, int device) const;
  // Resets peaks to the current values.
  void ResetPeaks();

  // Limits the bytes allocated on a device in use, given by any name that SessionOptions::device
  // accepts. What is allocated above the limit stays: call Trim() first. NotFound for another
  // device; InvalidArgument below 1 and above the device's memory.
  Status SetLimit(std::string_view device, int64_t bytes);
  // Frees what no run uses at the moment: memory of idle plans, which the next run allocates again,
  // and empty regions. Constants stay.
  Released Trim();
  // Compacts weights: if a model's weights lie in more regions than they need, or beside constants
  // that no graph reads any more, its graphs are compiled again, and the unused memory is freed.
  // FailedPrecondition while runs are in progress. If a model's graphs cannot be compiled again,
  // its next run retries that.
  Result<Released> Defragment();
  // Called after a run: keeps the fragmentation of pools below the limit of the options, if there
  // is one.
  void HoldFragmentation();

  // Memory that was abandoned because work on it hangs: a device may still write to it.
  const std::shared_ptr<std::atomic<int64_t>>& abandoned_account() const { return abandoned_; }
  int64_t abandoned_bytes() const { return *abandoned_; }

  // Keeps a pool of an unloaded model, because other models use constants in it.
  void KeepPool(size_t device, std::shared_ptr<Pool> pool);
  // Closes kept pools that are unused, or all of them; returns the bytes freed on the device.
  int64_t CloseKeptPools(size_t device, bool all);

 private:
  // Per device, what is allocated now; and, after trimming the pools, how much less than then.
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
