// Reports, limits, and returning memory.
#include "engine/session/session_memory.h"

#include <algorithm>

#include "engine/base/free_memory.h"
#include "engine/placement/device_name.h"
#include "engine/session/device_memory.h"
#include "engine/session/memory_report.h"
#include "engine/session/model.h"
#include "engine/session/run.h"
#include "engine/session/session.h"

namespace oncilla {

SessionMemory::SessionMemory(Session& session)
    : session_(session), owner_(ledger_.AddOwner(OwnerKind::kSession, "session")) {}

void SessionMemory::KeepPool(size_t device, std::shared_ptr<Pool> pool) {
  MutexLock lock(&mutex_);
  kept_pools_.emplace_back(device, std::move(pool));
}

int64_t SessionMemory::CloseKeptPools(size_t device, bool all) {
  int64_t bytes = 0;
  // One at a time, since a list of those to close would have to be allocated.
  for (std::shared_ptr<Pool> over;; over.reset()) {
    {
      MutexLock lock(&mutex_);
      const auto found =
          std::find_if(kept_pools_.begin(), kept_pools_.end(), [&](const auto& left) {
            return left.first == device && (all || left.second.use_count() == 1);
          });
      if (found == kept_pools_.end()) break;
      over = std::move(found->second);
      kept_pools_.erase(found);
    }
    bytes += over->Close();
  }
  MutexLock lock(&mutex_);
  for (const auto& [d, pool] : kept_pools_) {
    if (d == device) bytes += pool->Trim();
  }
  return bytes;
}

std::vector<int64_t> SessionMemory::TakenBytes() const {
  const DeviceSet& devices = session_.device_set();
  std::vector<int64_t> taken;
  for (size_t d = 0; d < devices.size(); ++d) taken.push_back(devices.budget(d).used_bytes());
  return taken;
}

Released SessionMemory::GiveBackSince(const std::vector<int64_t>& taken) {
  DeviceSet& devices = session_.device_set();
  Released released;
  for (size_t d = 0; d < taken.size(); ++d) {
    devices.pool(d).Trim();
    const int64_t bytes = std::max<int64_t>(0, taken[d] - devices.budget(d).used_bytes());
    released.bytes += bytes;
    released.by_device.emplace_back(devices.names()[d], bytes);
  }
  ReturnFreeMemory();
  return released;
}

Released SessionMemory::Trim() {
  if (session_.closed()) return {};
  const std::vector<int64_t> taken = TakenBytes();
  for (const auto& model : session_.models()) model->executables().DropIdle();
  return GiveBackSince(taken);
}

Status SessionMemory::SetLimit(std::string_view device, int64_t bytes) {
  DeviceSet& devices = session_.device_set();
  if (bytes < 1) return WithStage(InvalidArgument("the limit is ", bytes), Stage::kOptions);
  ONCILLA_ASSIGN(const int used, devices.InUse(std::string(device)));
  const auto d = static_cast<size_t>(used);
  ONCILLA_TRY(CheckLimit(bytes, devices.devices()[d]->info(),
                         StrCat("memory of '", ShortDeviceName(devices.names()[d]), "'")));
  devices.budget(d).SetLimit(bytes);
  return Status();
}

std::vector<DeviceMemory> SessionMemory::Devices() const {
  const DeviceSet& devices = session_.device_set();
  std::vector<DeviceMemory> out;
  for (size_t d = 0; d < devices.size(); ++d) {
    const MemoryBudget& budget = devices.budget(d);
    DeviceMemory memory;
    memory.device = devices.names()[d];
    memory.in_use_bytes = ledger_.TotalBytes(memory.device);
    memory.pool_bytes = budget.used_bytes();
    memory.peak_bytes = budget.peak_bytes();
    memory.limit_bytes = budget.limit_bytes();
    const DeviceMemoryPlan& plan = devices.memory_plan(d);
    memory.limit_source = memory.limit_bytes == plan.limit_bytes ? plan.limit_source : "set later";
    memory.reserve_bytes = plan.reserve_bytes;
    const BfcStats stats = devices.pool(d).stats();
    memory.largest_free_bytes = stats.largest_free_bytes;
    memory.fragmentation = stats.fragmentation();
    if (const MemoryBudget* total = budget.parent()) {
      memory.total_bytes = total->used_bytes();
      memory.total_limit_bytes = total->limit_bytes();
    }
    out.push_back(std::move(memory));
  }
  return out;
}

int64_t SessionMemory::ArenaBytes(const Plan& plan, int device) const {
  const DeviceSet& devices = session_.device_set();
  int64_t sum = 0;
  for (int64_t bytes : plan.arenas[static_cast<size_t>(device)].block_bytes) {
    sum = SaturatingAdd(sum, devices.pool(static_cast<size_t>(device)).Rounded(bytes));
  }
  return sum;
}

Result<Released> SessionMemory::Defragment() {
  if (session_.closed()) return Error(Code::kFailedPrecondition, "the session is closed");
  if (const int running = runs_under_way_.running(); running > 0) {
    return Error(Code::kFailedPrecondition, running, running == 1 ? " run is" : " runs are",
                 " under way: weights are moved between runs only");
  }
  const std::vector<int64_t> taken = TakenBytes();
  Status failure;
  for (const auto& model : session_.models()) {
    if (model->unloaded()) continue;
    model->executables().DropIdle();
    if (Status s = model->executables().Repack(Watched(session_)); !s.ok() && failure.ok())
      failure = s;
  }
  const Released released = GiveBackSince(taken);
  if (!failure.ok()) return failure;
  return released;
}

void SessionMemory::ResetPeaks() {
  DeviceSet& devices = session_.device_set();
  ledger_.ResetPeaks();
  for (size_t d = 0; d < devices.size(); ++d) {
    devices.budget(d).ResetPeak();
    devices.pool(d).ClearStats();
  }
}

void SessionMemory::HoldFragmentation() {
  DeviceSet& devices = session_.device_set();
  for (size_t d = 0; d < devices.size(); ++d) {
    const double most = devices.memory_plan(d).fragmentation;
    Pool& pool = devices.pool(d);
    if (most <= 0 || pool.stats().fragmentation() <= most) continue;
    pool.Trim();
    if (pool.stats().fragmentation() <= most) continue;
    for (const auto& model : session_.models()) model->executables().DropIdle();
    pool.Trim();
  }
}

std::string SessionMemory::Report() const { return MemoryReportText(session_); }
std::string SessionMemory::ReportJson() const { return MemoryReportJson(session_); }

}  // namespace oncilla
