// Allocations share the pool's state, so an allocation that outlives its pool does nothing when it
// is destroyed. Locks are taken in the order budget, pool, ledger.
#include "engine/memory/pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "engine/base/caught.h"
#include "engine/base/format.h"
#include "engine/memory/report.h"

namespace oncilla {
namespace {

constexpr size_t kOwnersInError = 5;

// Packs an owner and a category into the one number that a chunk carries.
int64_t TagOf(Account account) {
  return account.owner * kMemoryCategories + static_cast<int64_t>(account.category);
}
Account AccountOf(int64_t tag) {
  return {tag / kMemoryCategories, static_cast<MemoryCategory>(tag % kMemoryCategories)};
}

// The device's regions by number, each reserved in the budget. A device may be slow to provide one,
// so the pool's lock is released during that call, which Bfc makes before it changes anything.
class DeviceRegions : public RegionSource {
 public:
  DeviceRegions(Device* device, MemoryBudget* budget, std::mutex* mutex, const bool* closed)
      : device_(device), budget_(budget), mutex_(mutex), closed_(closed) {}

  Result<int> Allocate(int64_t bytes) override {
    if (!budget_->TryReserve(bytes)) return Exhausted("the shared limit leaves no room");
    const EarlyEnd* const end = end_;  // other threads set theirs while the lock is released
    mutex_->unlock();
    auto region =
        Fenced([&] { return device_->AllocateRegion(bytes, end == nullptr ? EarlyEnd() : *end); });
    mutex_->lock();
    end_ = end;
    if (region.ok() && *closed_) {
      (void)device_->ReleaseRegion(*std::move(region)).ok();
      region = Error(Code::kFailedPrecondition, "the pool was closed");
    }
    const Status kept = Fenced([&]() -> Status {
      ONCILLA_TRY(region.status());
      regions_[next_];  // allocates the map's node, so that the insertion below cannot fail
      return {};
    });
    if (!kept.ok()) {
      regions_.erase(next_);
      if (region.ok()) (void)device_->ReleaseRegion(*std::move(region)).ok();
      budget_->Release(bytes);
      return kept;
    }
    regions_[next_] = {*std::move(region), bytes};
    return next_++;
  }

  void Free(int id) override {
    auto found = regions_.find(id);
    auto [region, bytes] = std::move(found->second);
    regions_.erase(found);
    if (device_->ReleaseRegion(std::move(region)).ok()) {
      budget_->Release(bytes);
    } else {
      abandoned_bytes_ += bytes;  // the device may still use it: never count it as free again
    }
  }

  int64_t available_bytes() const override { return budget_->available_bytes(); }
  Region* region(int id) const { return regions_.at(id).region.get(); }
  int64_t abandoned_bytes() const { return abandoned_bytes_; }
  // Sets what ends the waits of the next Bfc call, made under the same lock.
  void EndWith(const EarlyEnd* end) { end_ = end; }

 private:
  Device* device_;
  MemoryBudget* budget_;
  std::mutex* mutex_;
  const bool* closed_;
  const EarlyEnd* end_ = nullptr;
  int next_ = 0;
  int64_t abandoned_bytes_ = 0;
  struct Held {
    std::unique_ptr<Region> region;
    int64_t bytes = 0;  // as reserved
  };
  std::map<int, Held> regions_;
};

BfcOptions ToBfcOptions(const PoolOptions& options, const DeviceInfo& info) {
  return {.limit_bytes = options.limit_bytes,
          .max_region_bytes = info.max_allocation_bytes > 0 ? info.max_allocation_bytes : INT64_MAX,
          .alignment_bytes = info.alignment_bytes,
          .growth = options.growth,
          .first_region_bytes = options.first_region_bytes,
          .growth_factor = options.growth_factor,
          .growth_cap_bytes = options.growth_cap_bytes,
          .fragmentation_fraction = options.fragmentation_fraction,
          .exact = options.exact};
}

PoolOptions Complete(PoolOptions options, const DeviceInfo& info) {
  if (options.device_name.empty()) options.device_name = info.name;
  if (options.limit_bytes <= 0) {
    options.limit_bytes = options.budget ? INT64_MAX : DefaultLimitBytes(info);
  }
  if (!options.budget) options.budget = std::make_shared<MemoryBudget>(options.limit_bytes);
  return options;
}

}  // namespace

struct Allocation::PoolState {
  PoolState(Device* device, Ledger* ledger_in, PoolOptions options_in)
      : options(Complete(std::move(options_in), device->info())),
        own_limit(options.limit_bytes),
        ledger(ledger_in),
        regions(device, options.budget.get(), &mutex, &closed),
        bfc(ToBfcOptions(options, device->info()), &regions),
        slack(ledger, options.device_name, {options.owner, MemoryCategory::kPool}) {}

  // The smaller of the two limits applies; both may have changed.
  void FollowLimit() {
    const int64_t limit = std::min(own_limit, options.budget->limit_bytes());
    if (limit != bfc_limit) bfc.SetLimit(bfc_limit = limit);
  }
  void CountSlack() {
    if (options.owner == kNoOwner) return;
    const BfcStats stats = bfc.stats();
    slack.Set(stats.free_in_pool());
  }
  Status Count(Account account, int64_t bytes) {
    return ledger->Add(options.device_name, account, bytes);
  }
  void Discount(Account account, int64_t bytes) {
    // Fails only if the ledger no longer holds these bytes; its record is then left as it is.
    (void)ledger->Remove(options.device_name, account, bytes);
  }

  Result<BfcChunk> Allocate(int64_t bytes, Account account, const EarlyEnd& end) {
    FollowLimit();
    regions.EndWith(&end);
    const Result<BfcChunk> allocated = bfc.Allocate(bytes, TagOf(account));
    regions.EndWith(nullptr);
    ONCILLA_ASSIGN(const BfcChunk chunk, allocated);
    if (Status counted = Fenced([&] { return Count(account, chunk.bytes); }); !counted.ok()) {
      (void)bfc.Free(chunk);
      return counted;
    }
    CountSlack();
    return chunk;
  }

  // Adds the pool's name and the largest holders of memory to the allocator's message.
  Status Explain(Status status) {
    std::string text =
        StrCat(options.device_name, ", pool '", options.name, "': ", Message(status));
    const MemoryBudget& budget = *options.budget;
    if (budget.used_bytes() > bfc.stats().pool_bytes) {
      text += StrCat("; with other pools ", budget.used_bytes(), " of ", budget.limit_bytes(),
                     " bytes are taken");
    }
    if (const MemoryBudget* total = budget.parent();
        total != nullptr && total->used_bytes() > budget.used_bytes()) {
      text += StrCat("; with other sessions ", total->used_bytes(), " of the device's ",
                     total->limit_bytes(), " bytes are taken");
    }
    const char* before = "; the most is held by ";
    for (const OwnerTotal& owner : ledger->TopOwners(kOwnersInError, options.device_name)) {
      text += StrCat(before, owner.owner_name, " (", HumanBytes(owner.bytes), ")");
      before = ", ";
    }
    return WithDevice(Error(status.code(), text), options.device_name);
  }

  PoolReportRequest Request() const {
    return {.pool = {}, .asked_bytes = 0, .asked_by = {}, .tag_name = [this](int64_t tag) {
              return ledger->AccountName(AccountOf(tag));
            }};
  }

  const PoolOptions options;
  int budget_id = 0;
  int64_t own_limit, bfc_limit = -1;
  Ledger* const ledger;
  std::mutex mutex;  // guards all below
  bool closed = false;
  int64_t committed = 0;  // reserved for this pool
  DeviceRegions regions;
  Bfc bfc;
  LedgerEntry slack;
};

int64_t DefaultLimitBytes(const DeviceInfo& info) {
  if (info.memory_bytes <= 0) return INT64_MAX;
  const int64_t reserve = std::max(int64_t{300} << 20, info.memory_bytes / 100 * 6);
  return std::max(info.memory_bytes - reserve, info.memory_bytes / 2);
}

Allocation::Allocation(Allocation&& other) noexcept
    : state_(std::move(other.state_)),
      chunk_(std::exchange(other.chunk_, BfcChunk())),
      view_(std::exchange(other.view_, BufferView())),
      account_(other.account_) {}

Allocation& Allocation::operator=(Allocation&& other) noexcept {
  if (this != &other) {
    Release();
    state_ = std::move(other.state_);
    chunk_ = std::exchange(other.chunk_, BfcChunk());
    view_ = std::exchange(other.view_, BufferView());
    account_ = other.account_;
  }
  return *this;
}

void Allocation::Release(int64_t stamp) {
  if (state_ == nullptr) return;
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->closed && state_->bfc.Free(chunk_, stamp).ok()) {
      state_->Discount(account_, chunk_.bytes);
      state_->CountSlack();
    }
  }
  state_.reset();
  chunk_ = BfcChunk();
  view_ = BufferView();
}

Status Allocation::Transfer(Account to) {
  if (state_ != nullptr) {
    std::lock_guard lock(state_->mutex);
    if (!state_->closed) {
      ONCILLA_TRY(state_->Count(to, chunk_.bytes));
      state_->Discount(account_, chunk_.bytes);
      state_->bfc.SetTag(chunk_, TagOf(to));
    }
  }
  account_ = to;
  return Status();
}

Pool::Pool(Device* device, Ledger* ledger, PoolOptions options)
    : state_(std::make_shared<Allocation::PoolState>(device, ledger, std::move(options))) {
  state_->budget_id = state_->options.budget->AddPool([this] {
    int64_t committed;
    {
      std::lock_guard lock(state_->mutex);
      committed = state_->committed;
    }
    return TrimTo(std::max(committed, state_->options.reserve_bytes));
  });
}

Pool::Pool(std::shared_ptr<Allocation::PoolState> state)
    : state_(std::move(state)), shared_(true) {}

Pool::~Pool() {
  if (shared_) return;
  state_->options.budget->RemovePool(state_->budget_id);
  Close();
}

std::unique_ptr<Pool> Pool::Share() { return std::unique_ptr<Pool>(new Pool(state_)); }

Result<int64_t> Pool::Commit(int64_t bytes) {
  int64_t has = 0;
  for (bool last = false;; last = true) {
    {
      std::lock_guard lock(state_->mutex);
      if (state_->closed) {
        return Error(Code::kFailedPrecondition, "pool '", name(), "' of ", device_name(),
                     " is closed");
      }
      state_->FollowLimit();
      ONCILLA_ASSIGN(has, state_->bfc.Grow(bytes));
      state_->committed = std::max(state_->committed, std::min(has, bytes));
      state_->CountSlack();
    }
    if (has >= bytes) return has;
    if (last || budget()->TrimOthers(state_->budget_id) == 0) break;
  }
  return WithDevice(Exhausted(device_name(), ", pool '", name(), "': ", bytes,
                              " bytes were to be taken beforehand, but there are only ", has,
                              " (limit ", budget()->limit_bytes(), ", of which ",
                              budget()->available_bytes(), " are still free)"),
                    device_name());
}

HeldMemory Pool::Hold(Account account) const {
  HeldMemory held;
  held.state_ = state_;
  held.line_ = LedgerEntry(state_->ledger, state_->options.device_name, account);
  return held;
}

HeldMemory::HeldMemory(HeldMemory&& other) noexcept
    : state_(std::move(other.state_)),
      line_(std::move(other.line_)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HeldMemory& HeldMemory::operator=(HeldMemory&& other) noexcept {
  if (this != &other) {
    (void)Set(0);
    state_ = std::move(other.state_);
    line_ = std::move(other.line_);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Status HeldMemory::Set(int64_t bytes) {
  if (state_ == nullptr) return Status();
  MemoryBudget& budget = *state_->options.budget;
  const int64_t more = bytes - bytes_;
  if (more > 0 && !budget.TryReserve(more)) {
    constexpr int kNoPool = -1;  // all of them may be asked
    if (budget.TrimOthers(kNoPool) == 0 || !budget.TryReserve(more)) {
      std::lock_guard lock(state_->mutex);
      return state_->Explain(Exhausted("asked for ", more, " bytes for values; ",
                                       budget.available_bytes(), " are free, limit ",
                                       budget.limit_bytes()));
    }
  }
  line_.Set(bytes);
  bytes_ = bytes;
  if (more < 0) budget.Release(-more);
  return Status();
}

void Pool::SetReached(int64_t stamp) {
  std::lock_guard lock(state_->mutex);
  state_->bfc.SetReached(stamp);
}

Result<Allocation> Pool::Allocate(int64_t bytes, Account account, const EarlyEnd& end) {
  Allocation allocation;
  allocation.account_ = account;
  Status shortage;
  PoolShortage explained;
  for (bool last = false;; last = true) {
    {
      std::lock_guard lock(state_->mutex);
      if (state_->closed) {
        return Error(Code::kFailedPrecondition, "pool '", name(), "' of ", device_name(),
                     " is closed");
      }
      Result<BfcChunk> chunk = state_->Allocate(bytes, account, end);
      if (chunk.ok()) {
        if (chunk->region < 0) return allocation;
        allocation.state_ = state_;
        allocation.chunk_ = *chunk;
        allocation.view_ = {state_->regions.region(chunk->region), chunk->offset, bytes};
        return allocation;
      }
      if (chunk.status().code() != Code::kResourceExhausted) {
        return WithDevice(chunk.status(), device_name());
      }
      shortage = state_->Explain(chunk.status());
      if (bytes > state_->bfc.stats().max_region_bytes) last = true;
    }
    // Called without this pool's lock: another pool may be trimming this one at the same time.
    if (last || budget()->TrimOthers(state_->budget_id) == 0) break;
  }
  if (state_->options.on_shortage != nullptr) {
    const BfcSnapshot snapshot = Snapshot();
    PoolReportRequest request = state_->Request();
    const std::string title = StrCat(device_name(), ", pool '", name(), "'");
    explained.asked_bytes = bytes;
    explained.asked_by = state_->ledger->AccountName(account);
    explained.device_name = device_name();
    request.pool = title;
    request.asked_bytes = bytes;
    request.asked_by = explained.asked_by;
    explained.text = PoolReport(snapshot, request);
    explained.json = PoolReportJson(snapshot, request);
    state_->options.on_shortage(explained);
  }
  return shortage;
}

int64_t Pool::Rounded(int64_t bytes) const {
  std::lock_guard lock(state_->mutex);
  return bytes <= 0 ? 0 : state_->bfc.Rounded(bytes);
}

int64_t Pool::Trim() { return TrimTo(state_->options.reserve_bytes); }

int64_t Pool::TrimTo(int64_t keep_bytes) {
  std::lock_guard lock(state_->mutex);
  const int64_t lost_before = state_->regions.abandoned_bytes();
  const int64_t bytes = state_->bfc.Trim(keep_bytes);
  state_->committed = std::min(state_->committed, state_->bfc.stats().pool_bytes);
  state_->CountSlack();
  return bytes - (state_->regions.abandoned_bytes() - lost_before);
}

int64_t Pool::Close() {
  if (shared_) return 0;
  std::lock_guard lock(state_->mutex);
  if (state_->closed) return 0;
  state_->bfc.ForEachInUse(
      [&](int64_t tag, int64_t bytes) { state_->Discount(AccountOf(tag), bytes); });
  const int64_t lost_before = state_->regions.abandoned_bytes();
  const int64_t bytes = state_->bfc.Close();
  state_->slack.Set(0);
  state_->closed = true;
  return bytes - (state_->regions.abandoned_bytes() - lost_before);
}

void Pool::SetLimit(int64_t bytes) {
  std::lock_guard lock(state_->mutex);
  state_->own_limit = bytes;
  state_->FollowLimit();
  state_->CountSlack();
}

int64_t Pool::idle_committed_bytes() const {
  std::lock_guard lock(state_->mutex);
  return std::min(state_->committed, state_->bfc.stats().free_in_pool());
}

BfcStats Pool::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->bfc.stats();
}

void Pool::ClearStats() {
  std::lock_guard lock(state_->mutex);
  state_->bfc.ClearStats();
}

BfcSnapshot Pool::Snapshot() const {
  std::lock_guard lock(state_->mutex);
  return state_->bfc.Snapshot();
}

std::string Pool::Report() const {
  const std::string title = StrCat(device_name(), ", pool '", name(), "'");
  PoolReportRequest request = state_->Request();
  request.pool = title;
  return PoolReport(Snapshot(), request);
}

std::string Pool::ReportJson() const {
  const std::string title = StrCat(device_name(), ", pool '", name(), "'");
  PoolReportRequest request = state_->Request();
  request.pool = title;
  return PoolReportJson(Snapshot(), request);
}

int64_t Pool::abandoned_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->regions.abandoned_bytes();
}

const std::string& Pool::name() const { return state_->options.name; }
const std::string& Pool::device_name() const { return state_->options.device_name; }
const std::shared_ptr<MemoryBudget>& Pool::budget() const { return state_->options.budget; }

}  // namespace oncilla
