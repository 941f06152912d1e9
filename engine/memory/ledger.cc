// Totals of an owner and all below it are updated along the chain of parents on every change. A
// query therefore never walks the tree, and peaks are exact.
#include "engine/memory/ledger.h"

#include <algorithm>
#include <sstream>

#include "absl/container/inlined_vector.h"
#include "engine/base/caught.h"
#include "engine/base/format.h"

namespace oncilla {

std::string_view Name(OwnerKind kind) {
  switch (kind) {
    case OwnerKind::kSession:
      return "session";
    case OwnerKind::kModel:
      return "model";
    case OwnerKind::kPlan:
      return "plan";
    case OwnerKind::kRun:
      return "run";
    case OwnerKind::kOp:
      return "op";
  }
  return "unknown";
}

std::string_view Name(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kConstants:
      return "constants";
    case MemoryCategory::kVariables:
      return "variables";
    case MemoryCategory::kArena:
      return "arena";
    case MemoryCategory::kValues:
      return "values";
    case MemoryCategory::kScratch:
      return "scratch";
    case MemoryCategory::kStaging:
      return "staging";
    case MemoryCategory::kPrograms:
      return "programs";
    case MemoryCategory::kQueues:
      return "queues";
    case MemoryCategory::kPool:
      return "pool, not handed out";
  }
  return "unknown";
}

bool IsEstimate(MemoryCategory category) {
  return category == MemoryCategory::kStaging || category == MemoryCategory::kPrograms ||
         category == MemoryCategory::kQueues;
}

void Ledger::Amount::Change(int64_t by) {
  bytes += by;
  peak = std::max(peak, bytes);
}

int64_t Ledger::OnDevice::own() const {
  int64_t sum = 0;
  for (const Amount& line : lines) sum += line.bytes;
  return sum;
}

OwnerId Ledger::AddOwner(OwnerKind kind, std::string name, OwnerId parent) {
  std::lock_guard lock(mutex_);
  if (auto found = owners_.find(parent); found != owners_.end()) {
    ++found->second.parts;
  } else {
    parent = kNoOwner;
  }
  const OwnerId id = next_++;
  Record& record = owners_[id];
  record.kind = kind;
  record.name = std::move(name);
  record.parent = parent;
  return id;
}

int64_t Ledger::EndOwner(OwnerId owner) {
  std::lock_guard lock(mutex_);
  auto found = owners_.find(owner);
  if (found == owners_.end()) return 0;
  found->second.ended = true;
  const int64_t bytes = TotalOf(owner, found->second, {}).bytes_with_parts;
  ForgetIfDone(owner);
  return bytes;
}

// Removes an ended owner that holds nothing, then its parent if that was waiting for it.
void Ledger::ForgetIfDone(OwnerId owner) {
  while (true) {
    auto found = owners_.find(owner);
    if (found == owners_.end() || !found->second.ended || found->second.parts > 0) return;
    for (const auto& [device, on] : found->second.devices) {
      if (on.with_parts.bytes != 0) return;
    }
    owner = found->second.parent;
    owners_.erase(found);
    if (auto parent = owners_.find(owner); parent != owners_.end()) --parent->second.parts;
  }
}

Status Ledger::Add(std::string_view device, Account account, int64_t bytes) {
  return Change(device, account, bytes, +1);
}
Status Ledger::Remove(std::string_view device, Account account, int64_t bytes) {
  return Change(device, account, bytes, -1);
}

Status Ledger::Change(std::string_view device, Account account, int64_t bytes, int sign) {
  std::lock_guard lock(mutex_);
  auto found = owners_.find(account.owner);
  const size_t category = static_cast<size_t>(account.category);
  if (found == owners_.end() || category >= kMemoryCategories) {
    return Internal("ledger: owner ", account.owner, " is unknown");
  }
  if (bytes < 0) return Internal("ledger: ", bytes, " bytes");
  auto on = found->second.devices.find(device);
  const int64_t held = on == found->second.devices.end() ? 0 : on->second.lines[category].bytes;
  if (sign < 0 && bytes > held) {
    return Internal("ledger: ", NameOf(account.owner), " gives back ", bytes, " bytes of ",
                    Name(account.category), " on ", device, " but holds ", held);
  }
  if (bytes == 0) return Status();
  if (sign > 0) {
    // The root's sum is the largest of those that grow, so checking it covers the whole chain.
    const Record* root = &found->second;
    while (root->parent != kNoOwner) root = &owners_[root->parent];
    int64_t room = INT64_MAX;
    for (const auto& [name, part] : root->devices) room -= part.with_parts.bytes;
    if (bytes > room) return Internal("ledger: the bytes of '", root->name, "' overflow");
  }
  // What has to be allocated comes first: if memory is refused, nothing has changed.
  absl::InlinedVector<OnDevice*, 8> chain;
  for (OwnerId id = account.owner; id != kNoOwner;) {
    Record& record = owners_[id];
    auto part = record.devices.find(device);
    if (part == record.devices.end()) part = record.devices.emplace(device, OnDevice()).first;
    chain.push_back(&part->second);
    id = record.parent;
  }
  for (OnDevice* part : chain) part->with_parts.Change(sign * bytes);
  chain.front()->lines[category].Change(sign * bytes);
  // Without memory for it, an event is missing from the timeline.
  if (timeline_ != nullptr) {
    (void)Fenced([&] { return Keep(device, account, sign * bytes), Status(); });
  }
  if (sign < 0) ForgetIfDone(account.owner);
  return Status();
}

void Ledger::StartTimeline(size_t capacity) {
  std::lock_guard lock(mutex_);
  if (capacity == 0) {
    timeline_.reset();
    return;
  }
  timeline_ = std::make_unique<TimelineState>();
  timeline_->start = std::chrono::steady_clock::now();
  timeline_->capacity = capacity;
  for (const auto& [id, record] : owners_) {
    for (const auto& [device, on] : record.devices) {
      TimelineState::Sums& sums = timeline_->devices[device];
      sums.taken += on.own();
      sums.slack += on.lines[static_cast<size_t>(MemoryCategory::kPool)].bytes;
    }
  }
}

void Ledger::Keep(std::string_view device, Account account, int64_t change) {
  auto found = timeline_->devices.find(device);
  if (found == timeline_->devices.end()) {
    found = timeline_->devices.emplace(device, TimelineState::Sums()).first;
  }
  TimelineState::Sums& sums = found->second;
  sums.taken += change;
  if (account.category == MemoryCategory::kPool) sums.slack += change;
  MemoryEvent event;
  event.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::steady_clock::now() - timeline_->start)
                      .count();
  event.device = device;
  event.in_use_bytes = sums.taken - sums.slack;
  event.taken_bytes = sums.taken;
  event.change_bytes = change;
  event.what = StrCat(NameOf(account.owner), " ", Name(account.category));
  const size_t place = static_cast<size_t>(timeline_->seen++) % timeline_->capacity;
  if (place == timeline_->ring.size()) {
    timeline_->ring.push_back(std::move(event));
  } else {
    timeline_->ring[place] = std::move(event);
  }
}

std::vector<MemoryEvent> Ledger::Timeline(int64_t* dropped) const {
  std::lock_guard lock(mutex_);
  if (dropped != nullptr) *dropped = 0;
  if (timeline_ == nullptr) return {};
  std::vector<MemoryEvent> events = timeline_->ring;
  const int64_t gone = timeline_->seen - static_cast<int64_t>(events.size());
  if (dropped != nullptr) *dropped = gone;
  if (gone > 0) {
    const size_t oldest = static_cast<size_t>(timeline_->seen) % timeline_->capacity;
    std::rotate(events.begin(), events.begin() + static_cast<int64_t>(oldest), events.end());
  }
  return events;
}

void Ledger::ResetPeaks() {
  std::lock_guard lock(mutex_);
  for (auto& [id, record] : owners_) {
    for (auto& [device, on] : record.devices) {
      for (Amount& line : on.lines) line.peak = line.bytes;
      on.with_parts.peak = on.with_parts.bytes;
    }
  }
}

int64_t Ledger::TotalBytes(std::string_view device) const {
  std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& [id, record] : owners_) sum += TotalOf(id, record, device).bytes;
  return sum;
}

int64_t Ledger::EstimatedBytes(std::string_view device) const {
  int64_t sum = 0;
  for (const LedgerLine& line : Lines(device)) sum += IsEstimate(line.category) ? line.bytes : 0;
  return sum;
}

OwnerTotal Ledger::TotalOf(OwnerId owner, const Record& record, std::string_view device) const {
  OwnerTotal total{.owner = owner, .owner_name = NameOf(owner)};
  for (const auto& [name, on] : record.devices) {
    if (!device.empty() && name != device) continue;
    total.bytes += on.own();
    total.bytes_with_parts += on.with_parts.bytes;
    total.peak_bytes += on.with_parts.peak;
  }
  return total;
}

OwnerTotal Ledger::Total(OwnerId owner, std::string_view device) const {
  std::lock_guard lock(mutex_);
  auto found = owners_.find(owner);
  return found == owners_.end() ? OwnerTotal{} : TotalOf(owner, found->second, device);
}

std::vector<OwnerTotal> Ledger::TopOwners(size_t count, std::string_view device) const {
  std::vector<OwnerTotal> totals;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, record] : owners_) {
      OwnerTotal total = TotalOf(id, record, device);
      if (total.bytes > 0) totals.push_back(std::move(total));
    }
  }
  std::ranges::stable_sort(totals, std::greater{}, &OwnerTotal::bytes);
  if (totals.size() > count) totals.resize(count);
  return totals;
}

std::vector<LedgerLine> Ledger::Lines(std::string_view device, bool past) const {
  std::vector<LedgerLine> lines;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, record] : owners_) {
      for (const auto& [name, on] : record.devices) {
        if (!device.empty() && name != device) continue;
        for (size_t i = 0; i < kMemoryCategories; ++i) {
          if (on.lines[i].bytes == 0 && (!past || on.lines[i].peak == 0)) continue;
          lines.push_back({.device = name,
                           .owner = id,
                           .owner_name = NameOf(id),
                           .category = static_cast<MemoryCategory>(i),
                           .bytes = on.lines[i].bytes,
                           .peak_bytes = on.lines[i].peak});
        }
      }
    }
  }
  std::ranges::stable_sort(lines, [](const LedgerLine& a, const LedgerLine& b) {
    return a.device != b.device ? a.device < b.device : a.bytes > b.bytes;
  });
  return lines;
}

std::string Ledger::NameOf(OwnerId owner) const {
  auto found = owners_.find(owner);
  if (found == owners_.end()) return "no owner";
  const Record& record = found->second;
  return StrCat(Name(record.kind), " '", record.name, "'", record.ended ? " (ended)" : "");
}

std::string Ledger::OwnerName(OwnerId owner) const {
  std::lock_guard lock(mutex_);
  return NameOf(owner);
}

std::string Ledger::AccountName(Account account) const {
  return StrCat(OwnerName(account.owner), " ", Name(account.category));
}

std::string Ledger::Report(std::string_view device) const {
  const std::vector<LedgerLine> lines = Lines(device);
  std::ostringstream out;
  for (size_t i = 0; i < lines.size();) {
    const std::string& name = lines[i].device;
    size_t end = i;
    int64_t bytes = 0, estimated = 0;
    for (; end < lines.size() && lines[end].device == name; ++end) {
      bytes += lines[end].bytes;
      estimated += IsEstimate(lines[end].category) ? lines[end].bytes : 0;
    }
    out << name << ": " << HumanBytes(bytes);
    if (estimated > 0) out << ", " << HumanBytes(estimated) << " of it estimated";
    out << "\n";
    for (; i < end; ++i) {
      const LedgerLine& line = lines[i];
      out << "  " << HumanBytes(line.bytes) << " " << line.owner_name << " " << Name(line.category)
          << (IsEstimate(line.category) ? " (estimate)" : "") << ", peak "
          << HumanBytes(line.peak_bytes) << "\n";
    }
  }
  return std::move(out).str();
}

LedgerEntry::LedgerEntry(Ledger* ledger, std::string device, Account account)
    : ledger_(ledger), device_(std::move(device)), account_(account) {}

LedgerEntry::LedgerEntry(LedgerEntry&& other) noexcept
    : ledger_(other.ledger_),
      device_(std::move(other.device_)),
      account_(other.account_),
      bytes_(std::exchange(other.bytes_, 0)) {}

LedgerEntry& LedgerEntry::operator=(LedgerEntry&& other) noexcept {
  if (this != &other) {
    Set(0);
    ledger_ = other.ledger_;
    device_ = std::move(other.device_);
    account_ = other.account_;
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void LedgerEntry::Set(int64_t bytes) noexcept {
  if (ledger_ == nullptr || bytes == bytes_) return;
  const Status changed = Fenced([&] {
    return bytes > bytes_ ? ledger_->Add(device_, account_, bytes - bytes_)
                          : ledger_->Remove(device_, account_, bytes_ - bytes);
  });
  if (changed.ok()) bytes_ = bytes;
}

}  // namespace oncilla
