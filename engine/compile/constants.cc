// Packing and uploading constants.
#include "engine/compile/constants.h"

#include <algorithm>
#include <set>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/base/format.h"

namespace oncilla {
namespace {

// Packing functions read numbers through typed pointers, but a view into a mapped file may be
// unaligned. `room` receives the aligned copy; its memory is reused for the next constant.
Tensor AtItsAlignment(const Tensor& t, std::vector<std::byte>& room) {
  const auto size = static_cast<uintptr_t>(std::max<int64_t>(BytesOf(t.dtype()), 1));
  const bool aligned = reinterpret_cast<uintptr_t>(t.bytes().data()) % size == 0;
  if (aligned) return t;
  room.assign(t.bytes().begin(), t.bytes().end());
  return Tensor::View(t.desc(), room, nullptr);
}

}  // namespace

ConstantStore::ConstantStore(std::span<Device* const> devices, std::vector<Pool*> pools,
                             OwnerId owner, std::shared_ptr<std::atomic<int64_t>> abandoned_bytes)
    : owner_(owner),
      abandoned_bytes_(std::move(abandoned_bytes)),
      devices_(devices.begin(), devices.end()),
      queues_(devices.size()) {
  // These pools belong to the caller, who keeps them alive.
  for (Pool* pool : pools) pools_.emplace_back(std::shared_ptr<Pool>(), pool);
}

void ConstantStore::AddDevice(Device* device, std::shared_ptr<Pool> pool) {
  MutexLock lock(&mutex_);
  const size_t count = devices_.size() + 1;  // a failed reserve leaves all unchanged
  devices_.reserve(count);
  pools_.reserve(count);
  queues_.reserve(count);
  devices_.push_back(device);
  pools_.push_back(std::move(pool));
  queues_.emplace_back();
}

ConstantStore::Wanted::Wanted(int on, Tensor what, Packing how)
    : device(on), constant(std::move(what)), packing(std::move(how)) {
  const XXH128_hash_t hash = XXH3_128bits(constant.bytes().data(), constant.bytes().size());
  key = {device, hash.high64, hash.low64, StrCat(constant.desc(), ' ', packing.name)};
}

Result<BufferView> ConstantStore::Get(const Wanted& wanted, const RunControl& control) {
  MutexLock lock(&mutex_);
  if (!Has(wanted.key)) ONCILLA_TRY(Send(wanted, control));
  return Arrived(wanted.key, control);
}

bool ConstantStore::Has(const Key& key) {
  if (entries_.count(key) != 0) return true;
  auto entry = shared_ == nullptr ? nullptr : shared_->Find(key, owner_);
  if (entry == nullptr) return false;
  bytes_ += entry->memory.bytes();
  entries_.emplace(key, std::move(entry));
  return true;
}

Status ConstantStore::Send(const Wanted& wanted, const RunControl& control) {
  const auto& [device, constant, packing, key] = wanted;
  auto made = std::make_shared<Entry>();
  Entry& entry = *made;
  entry.pool = pools_[device];
  ONCILLA_ASSIGN(entry.memory, pools_[device]->Allocate(
                                   packing.bytes, {owner_, MemoryCategory::kConstants}, control));
  const BufferView view = entry.memory.view();
  Device& to = *devices_[device];
  std::span<const std::byte> bytes = constant.bytes();
  if (packing.bytes == 0) {
    bytes = {};
  } else if (packing.write == nullptr) {
    entry.constant = constant;
  } else {
    const Tensor source = AtItsAlignment(constant, aligned_);
    std::span<std::byte> into;
    if (to.info().host_memory) {
      into = {view.host(), static_cast<size_t>(packing.bytes)};
      bytes = {};
    } else {
      entry.packed.resize(static_cast<size_t>(packing.bytes));
      bytes = into = entry.packed;
    }
    ONCILLA_TRY(packing.write(source, into));
  }
  if (!bytes.empty()) {
    if (queues_[device] == nullptr) {
      ONCILLA_ASSIGN(queues_[device], to.OpenQueue());
    }
    const Upload upload{view, bytes};
    ONCILLA_ASSIGN(entry.on_its_way, to.Transfer(*queues_[device], {&upload, 1}, {}));
  }
  bytes_ += packing.bytes;
  if (shared_ != nullptr && entry.on_its_way == nullptr) shared_->Add(key, made, owner_);
  entries_.emplace(key, std::move(made));
  return Status();
}

Result<BufferView> ConstantStore::Arrived(const Key& key, const RunControl& control) {
  constexpr std::chrono::milliseconds kMoment(20);
  const auto at = entries_.find(key);
  Entry& entry = *at->second;
  if (entry.on_its_way == nullptr) return entry.memory.view();
  Device& device = *devices_[std::get<0>(key)];
  // Even after its deadline a run waits a moment for each upload, so that a model whose loading
  // takes longer than its runs may take becomes ready after a few runs. An upload that takes longer
  // continues for the next run.
  RunControl patient = control;
  patient.deadline = std::max(control.deadline, std::chrono::steady_clock::now() + kMoment);
  const Status arrived = AwaitUpload(device, entry.on_its_way, patient);
  if (device.Poll(entry.on_its_way)) {
    entry.on_its_way = nullptr;
    entry.packed = std::vector<std::byte>();  // assigning {} would keep the capacity
    entry.constant = Tensor();
    if (!arrived.ok()) {
      bytes_ -= entry.memory.bytes();
      entries_.erase(at);
      return arrived;
    }
    if (shared_ != nullptr) shared_->Add(key, at->second, owner_);
  }
  ONCILLA_TRY(arrived);
  return entry.memory.view();
}

ConstantStore::~ConstantStore() {
  MutexLock lock(&mutex_);
  queues_.clear();  // waits a bounded time for work under way
  for (auto& [key, entry] : entries_) {
    if (entry->on_its_way == nullptr) {
      if (shared_ != nullptr) shared_->Leave(*entry, owner_);
      continue;
    }
    if (!WasGivenUp(*devices_[std::get<0>(key)], entry->on_its_way)) continue;
    if (abandoned_bytes_ != nullptr) *abandoned_bytes_ += entry->memory.chunk_bytes();
    KeepForever(std::move(entry));
  }
  entries_.clear();  // their memory goes back before the pools go
}

void ConstantStore::LetGoOfScratch() {
  MutexLock lock(&mutex_);
  aligned_ = std::vector<std::byte>();
}

Status ConstantStore::Reserve(std::span<const Wanted> wanted, const RunControl& control) {
  MutexLock lock(&mutex_);
  std::set<Key> counted;
  std::vector<std::vector<int64_t>> groups(devices_.size());  // sizes of regions to take
  for (const Wanted& w : wanted) {
    if (Has(w.key) || !counted.insert(w.key).second) continue;
    const int64_t most = devices_[w.device]->info().max_allocation_bytes;
    const int64_t bytes = pools_[w.device]->Rounded(w.packing.bytes);
    std::vector<int64_t>& group = groups[w.device];
    if (group.empty() || (most > 0 && SaturatingAdd(group.back(), bytes) > most)) {
      group.push_back(0);
    }
    group.back() = SaturatingAdd(group.back(), bytes);
  }
  std::vector<Allocation> held;  // all at once; the pools then keep the regions
  for (size_t d = 0; d < groups.size(); ++d) {
    for (int64_t bytes : groups[d]) {
      auto memory = pools_[d]->Allocate(bytes, {owner_, MemoryCategory::kConstants}, control);
      if (memory.ok()) {
        held.push_back(*std::move(memory));
      } else if (const Code code = memory.status().code(); code == Code::kUnavailable ||
                                                           code == Code::kDeadlineExceeded ||
                                                           code == Code::kCancelled) {
        return memory.status();  // Get would only wait again
      } else if (bytes > SaturatingAdd(pools_[d]->budget()->available_bytes(),
                                       pools_[d]->stats().free_in_pool())) {
        int64_t all = 0;
        for (int64_t b : groups[d]) all = SaturatingAdd(all, b);
        return In(memory.status(), StrCat("the constants take ", HumanBytes(all), " of a limit of ",
                                          HumanBytes(pools_[d]->budget()->limit_bytes())));
      }
    }
  }
  return Status();
}

std::vector<ConstantStore::Kept> ConstantStore::List() const {
  MutexLock lock(&mutex_);
  std::vector<Kept> out;
  for (const auto& [key, entry] : entries_) {
    out.push_back({std::get<0>(key), std::get<3>(key), entry->memory.bytes(),
                   shared_ != nullptr && shared_->IsShared(*entry)});
  }
  return out;
}

int64_t ConstantStore::bytes() const {
  MutexLock lock(&mutex_);
  return bytes_;
}

int64_t ConstantStore::packings() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(entries_.size());
}

SharedConstants::EntryPtr SharedConstants::Find(const Key& key, OwnerId owner) {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  EntryPtr entry = found->second.lock();
  // An entry without holders is being destroyed.
  if (entry == nullptr || entry->holders.empty()) return nullptr;
  entry->holders.push_back(owner);
  return entry;
}

void SharedConstants::Add(const Key& key, const EntryPtr& entry, OwnerId owner) {
  MutexLock lock(&mutex_);
  std::erase_if(entries_, [](const auto& item) { return item.second.expired(); });
  entry->holders = {owner};
  entries_[key] = entry;
}

void SharedConstants::Leave(ConstantStore::Entry& entry, OwnerId owner) {
  MutexLock lock(&mutex_);
  const auto at = std::find(entry.holders.begin(), entry.holders.end(), owner);
  if (at == entry.holders.end()) return;
  entry.holders.erase(at);
  HandOn(entry, owner);
}

bool SharedConstants::Leave(const Pool& pool, OwnerId owner) {
  MutexLock lock(&mutex_);
  bool stays = false;
  for (const auto& [key, weak] : entries_) {
    const EntryPtr entry = weak.lock();
    if (entry == nullptr) continue;
    std::erase(entry->holders, owner);
    HandOn(*entry, owner);
    stays |= entry->pool.get() == &pool && !entry->holders.empty();
  }
  return stays;
}

// Moves the memory's ledger account from the owner that left to one of those that remain.
void SharedConstants::HandOn(ConstantStore::Entry& entry, OwnerId owner) {
  if (entry.holders.empty() || entry.memory.account().owner != owner) return;
  // Fails only if the ledger no longer knows the account; the bytes then stay where they are.
  (void)entry.memory.Transfer({entry.holders.front(), MemoryCategory::kConstants}).ok();
}

bool SharedConstants::IsShared(const ConstantStore::Entry& entry) const {
  MutexLock lock(&mutex_);
  return entry.holders.size() > 1;
}

}  // namespace oncilla
