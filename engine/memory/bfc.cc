// The rules are those of TensorFlow's BFC allocator: bins, best fit, the rule for splitting,
// regions that double, a request reduced by a tenth when the device refuses it, and freeing empty
// regions as the last resort.
#include "engine/memory/bfc.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace oncilla {
namespace {

constexpr int64_t kDefaultCapBytes = int64_t{128} << 20;

int64_t FloorTo(int64_t bytes, int64_t granularity) { return bytes - bytes % granularity; }

}  // namespace

double BfcStats::fragmentation() const {
  const int64_t free = free_in_pool();
  if (free <= 0) return 0;
  return static_cast<double>(free - largest_free_bytes) / static_cast<double>(free);
}

int Bfc::BinOf(int64_t bytes) {
  const uint64_t units = static_cast<uint64_t>(std::max(bytes, kLeastGranularity)) / 256;
  return std::min(kBins - 1, static_cast<int>(std::bit_width(units)) - 1);
}

Bfc::Bfc(BfcOptions options, RegionSource* source) : options_(options), source_(source) {
  const uint64_t alignment = static_cast<uint64_t>(
      std::clamp(options.alignment_bytes, kLeastGranularity, int64_t{1} << 40));
  granularity_ = static_cast<int64_t>(std::bit_ceil(alignment));
  options_.max_region_bytes = FloorTo(std::max<int64_t>(options.max_region_bytes, 0), granularity_);
  stats_.max_region_bytes = options_.max_region_bytes;
  SetLimit(options.limit_bytes);
}

Bfc::~Bfc() { Close(); }

void Bfc::SetLimit(int64_t bytes) {
  const bool first = regions_.empty();
  stats_.limit_bytes = options_.limit_bytes = std::max<int64_t>(bytes, 0);
  cap_bytes_ = kDefaultCapBytes;
  if (options_.fragmentation_fraction > 0) {
    cap_bytes_ = static_cast<int64_t>(std::min(1.0, options_.fragmentation_fraction) *
                                      static_cast<double>(options_.limit_bytes));
  }
  if (first) next_region_bytes_ = FirstRegionBytes();
  if (stats_.pool_bytes > options_.limit_bytes) Trim();
}

int64_t Bfc::FirstRegionBytes() const {
  return Rounded(options_.growth ? std::min(options_.limit_bytes, options_.first_region_bytes)
                                 : options_.limit_bytes);
}

// The size of the next region after one of this size.
int64_t Bfc::Grown(int64_t region_bytes) const {
  const double next = static_cast<double>(region_bytes) * std::max(1.0, options_.growth_factor);
  const int64_t cap = std::max(options_.growth_cap_bytes, int64_t{1});
  return next < static_cast<double>(cap) ? Rounded(static_cast<int64_t>(next))
                                         : std::max(region_bytes, FloorTo(cap, granularity_));
}

int64_t Bfc::Rounded(int64_t bytes) const {
  // Rounding up would overflow. The largest multiple stands for all sizes that cannot be served.
  if (bytes > INT64_MAX - granularity_) return FloorTo(INT64_MAX, granularity_);
  return std::max(granularity_, (bytes + granularity_ - 1) / granularity_ * granularity_);
}

Result<BfcChunk> Bfc::Allocate(int64_t bytes, int64_t tag, int64_t freed_before) {
  if (bytes < 0) return InvalidArgument("cannot allocate ", bytes, " bytes");
  if (bytes == 0) return BfcChunk{};
  if (bytes > options_.max_region_bytes) return Shortage(bytes, Status());
  const int64_t rounded = Rounded(bytes);             // not above the maximum, also a multiple
  freed_before = std::max<int64_t>(freed_before, 0);  // chunks with no pending stamp always qualify
  ReserveChunks(1);                                   // for the remainder of a split
  int handle = TakeBestFit(rounded, freed_before);
  // The source releases the lock while it obtains a region, so other threads may take chunks from
  // that region, or the records reserved here, meanwhile. Each round gets a region or ends the
  // loop.
  for (bool collected = false; handle < 0;) {
    Status refusal = Extend(rounded);
    const bool short_of_room = refusal.code() == Code::kResourceExhausted;
    if (short_of_room && freed_before == kAnyStamp && MergeWaiting(rounded)) {
      refusal = Status();
    } else if (short_of_room && !collected && CollectFor(rounded)) {
      collected = true;
      continue;
    }
    if (refusal.code() == Code::kResourceExhausted) return Shortage(bytes, refusal);
    ONCILLA_TRY(refusal);  // an error such as a lost device is reported, not the shortage
    ReserveChunks(1);
    handle = TakeBestFit(rounded, freed_before);
  }
  Chunk& chunk = At(handle);
  chunk.requested = bytes;
  chunk.id = next_id_++;
  chunk.tag = tag;
  ++regions_[chunk.region].in_use;
  ++stats_.chunks_in_use;
  ++stats_.allocations;
  stats_.requested_bytes += bytes;
  stats_.bytes_in_use += chunk.bytes;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  stats_.largest_allocation_bytes = std::max(stats_.largest_allocation_bytes, chunk.bytes);
  return BfcChunk{chunk.region, chunk.offset, chunk.bytes, handle, chunk.id};
}

bool Bfc::InUse(const BfcChunk& chunk) const {
  return chunk.handle >= 0 && static_cast<size_t>(chunk.handle) < chunks_.size() && chunk.id >= 0 &&
         At(chunk.handle).id == chunk.id;
}

Status Bfc::Free(const BfcChunk& freed, int64_t stamp) {
  if (freed.region < 0) return Status();
  if (!InUse(freed)) {
    return Internal("the chunk at offset ", freed.offset, " of region ", freed.region,
                    " is freed but not in use");
  }
  const int handle = freed.handle;
  Chunk& chunk = At(handle);
  --regions_[chunk.region].in_use;
  --stats_.chunks_in_use;
  stats_.bytes_in_use -= chunk.bytes;
  stats_.requested_bytes -= chunk.requested;
  chunk.id = -1, chunk.requested = 0, chunk.tag = 0;
  if (stamp > reached_) {
    SetStamp(handle, stamp);
    InsertFree(handle);
  } else {
    InsertFree(MergeAround(handle, false));
  }
  return Status();
}

// Merges a free chunk that is in no bin with its free neighbours. Neighbours that still wait for a
// stamp join only if `stamped`; the result then waits for the latest stamp. Returns its handle.
int Bfc::MergeAround(int handle, bool stamped) {
  auto joins = [&](int other) {
    return other >= 0 && At(other).id < 0 && (stamped || At(other).stamp == 0);
  };
  auto absorb = [&](int left, int other) {
    RemoveFree(other);
    const int64_t stamp = std::max(At(left).stamp, At(At(left).next).stamp);
    SetStamp(At(left).next, 0);
    SetStamp(left, 0);
    MergeWithNext(left);
    SetStamp(left, stamp);
  };
  while (joins(At(handle).next)) absorb(handle, At(handle).next);
  while (joins(At(handle).prev)) {
    handle = At(handle).prev;
    absorb(handle, handle);
  }
  return handle;
}

void Bfc::SetStamp(int handle, int64_t stamp) {
  Chunk& chunk = At(handle);
  if (chunk.stamp == stamp) return;
  RegionState& region = regions_[chunk.region];
  if (chunk.stamp > 0) {
    spare_waiting_.Erase(waiting_, waiting_.find({chunk.stamp, handle}));
    stats_.waiting_bytes -= chunk.bytes;
    --region.waiting;
  }
  chunk.stamp = stamp;
  if (stamp > 0) {
    spare_waiting_.Insert(waiting_, {stamp, handle});
    stats_.waiting_bytes += chunk.bytes;
    ++region.waiting;
  }
}

void Bfc::SetReached(int64_t stamp) {
  reached_ = std::max(reached_, stamp);
  while (!waiting_.empty() && waiting_.begin()->first <= reached_) {
    const int handle = waiting_.begin()->second;
    RemoveFree(handle);
    SetStamp(handle, 0);
    InsertFree(MergeAround(handle, false));
  }
}

// Merges waiting chunks with their neighbours, oldest first, until one is large enough.
bool Bfc::MergeWaiting(int64_t rounded) {
  std::vector<int> handles;
  for (const auto& [stamp, handle] : waiting_) handles.push_back(handle);
  for (int handle : handles) {
    if (At(handle).stamp == 0) continue;  // merged already
    RemoveFree(handle);
    const int whole = MergeAround(handle, true);
    InsertFree(whole);
    if (At(whole).bytes >= rounded) return true;
  }
  return false;
}

void Bfc::SetTag(const BfcChunk& chunk, int64_t tag) {
  if (InUse(chunk)) At(chunk.handle).tag = tag;
}

// Allocates all the memory that `more` calls of NewChunk, and freeing those chunks later, will
// need. If that fails, nothing has changed.
void Bfc::ReserveChunks(size_t more) {
  if (unused_chunks_.size() >= more) return;
  const size_t missing = more - unused_chunks_.size(), count = chunks_.size() + missing;
  unused_chunks_.reserve(count);
  spare_free_.Make(count);
  spare_waiting_.Make(count);
  chunks_.resize(count);
  for (size_t i = 0; i < missing; ++i) unused_chunks_.push_back(static_cast<int>(count - 1 - i));
}

int Bfc::NewChunk() {
  const int handle = unused_chunks_.back();
  unused_chunks_.pop_back();
  At(handle) = Chunk();
  return handle;
}

void Bfc::InsertFree(int handle) {
  const Chunk& c = At(handle);
  spare_free_.Insert(bins_[BinOf(c.bytes)], {c.bytes, c.region, c.offset, handle});
}

void Bfc::RemoveFree(int handle) {
  const Chunk& c = At(handle);
  std::set<FreeKey>& bin = bins_[BinOf(c.bytes)];
  spare_free_.Erase(bin, bin.find({c.bytes, c.region, c.offset, handle}));
}

void Bfc::MergeWithNext(int handle) {
  Chunk& chunk = At(handle);
  const int gone = chunk.next;
  chunk.bytes += At(gone).bytes;
  chunk.next = At(gone).next;
  if (chunk.next >= 0) At(chunk.next).prev = handle;
  At(gone).id = -1;
  unused_chunks_.push_back(gone);
}

// Cuts a chunk that is in no bin down to `bytes`; the remainder goes to a bin.
void Bfc::Split(int handle, int64_t bytes) {
  const int rest = NewChunk();
  Chunk& chunk = At(handle);  // looked up after NewChunk, which may reallocate the chunks
  Chunk& tail = At(rest);
  tail.region = chunk.region;
  tail.offset = chunk.offset + bytes;
  tail.bytes = chunk.bytes - bytes;
  tail.prev = handle;
  tail.next = chunk.next;
  if (tail.next >= 0) At(tail.next).prev = rest;
  chunk.next = rest;
  chunk.bytes = bytes;
  InsertFree(rest);
}

int Bfc::TakeBestFit(int64_t rounded, int64_t freed_before) {
  for (int bin = BinOf(rounded); bin < kBins; ++bin) {
    auto found = bins_[bin].lower_bound({rounded, INT32_MIN, 0, 0});
    while (found != bins_[bin].end() && At(found->handle).stamp > freed_before) ++found;
    if (found == bins_[bin].end()) continue;
    const int handle = found->handle;
    spare_free_.Erase(bins_[bin], found);
    const int64_t stamp = At(handle).stamp;
    SetStamp(handle, 0);
    const int64_t spare = At(handle).bytes - rounded;
    const bool split = options_.exact || spare >= rounded || spare >= cap_bytes_;
    if (spare >= granularity_ && split) {
      Split(handle, rounded);
      SetStamp(At(handle).next, stamp);
    }
    return handle;
  }
  return -1;
}

int64_t Bfc::Growable() const {
  const int64_t room =
      std::min(options_.limit_bytes - stats_.pool_bytes, source_->available_bytes());
  return FloorTo(std::max<int64_t>(room, 0), granularity_);
}

Status Bfc::Extend(int64_t rounded) {
  if (rounded > Growable()) return Exhausted("the limit leaves no room for another region");
  if (options_.exact) return AddRegion(rounded, rounded);
  bool raised = false;
  while (rounded > next_region_bytes_ && Grown(next_region_bytes_) > next_region_bytes_) {
    next_region_bytes_ = Grown(next_region_bytes_);
    raised = true;
  }
  const int64_t wanted =
      std::min({std::max(next_region_bytes_, rounded), Growable(), options_.max_region_bytes});
  ONCILLA_TRY(AddRegion(FloorTo(wanted, granularity_), rounded));
  if (!raised) next_region_bytes_ = Grown(next_region_bytes_);
  // Without growth the first request takes the whole limit; each further region is as large as
  // possible.
  while (!options_.growth) {
    const int64_t more = std::min(Growable(), options_.max_region_bytes);
    if (more < granularity_ || !AddRegion(more, std::max(granularity_, more / 4)).ok()) break;
  }
  return Status();
}

Status Bfc::AddRegion(int64_t wanted, int64_t least) {
  ReserveChunks(2);  // one for the region, one to split it
  for (;;) {
    Result<int> region = source_->Allocate(wanted);
    if (region.ok()) {
      try {
        regions_[*region];
        ReserveChunks(2);  // other threads may have used those reserved above
      } catch (...) {
        regions_.erase(*region);
        source_->Free(*region);
        throw;
      }
      const int handle = NewChunk();
      At(handle).region = *region;
      At(handle).bytes = wanted;
      regions_[*region] = RegionState{.bytes = wanted, .first = handle};
      InsertFree(handle);
      stats_.pool_bytes += wanted;
      stats_.peak_pool_bytes = std::max(stats_.peak_pool_bytes, stats_.pool_bytes);
      return Status();
    }
    if (region.status().code() != Code::kResourceExhausted) return region.status();
    const int64_t less = std::min(Rounded(wanted - wanted / 10), wanted - granularity_);
    if (less < least) return region.status();
    wanted = less;
  }
}

bool Bfc::CollectFor(int64_t rounded) {
  int64_t empty = 0;
  for (const auto& [id, region] : regions_) empty += region.empty() ? region.bytes : 0;
  if (empty == 0 || Growable() < rounded - empty) return false;
  Trim();
  return true;
}

int64_t Bfc::Trim(int64_t keep_bytes) {
  std::vector<std::pair<int64_t, int>> empty;  // bytes and id
  for (const auto& [id, region] : regions_) {
    if (region.empty()) empty.emplace_back(region.bytes, id);
  }
  if (keep_bytes > 0) {
    std::sort(empty.begin(), empty.end(), std::greater<>());
    int64_t left = stats_.pool_bytes;
    std::erase_if(empty, [&](const auto& region) {
      if (left - region.first < keep_bytes) return true;
      left -= region.first;
      return false;
    });
  }
  int64_t bytes = 0;
  for (const auto& [size, id] : empty) {
    bytes += size;
    DropRegion(id);
  }
  if (empty.empty()) return 0;
  // Growth restarts from the largest region left. Otherwise a pool that fills and empties in turn
  // would request twice as much each time.
  int64_t largest = 0;
  for (const auto& [id, region] : regions_) largest = std::max(largest, region.bytes);
  next_region_bytes_ =
      largest == 0 ? FirstRegionBytes() : std::min(next_region_bytes_, Grown(largest));
  return bytes;
}

Result<int64_t> Bfc::Grow(int64_t bytes) {
  while (stats_.pool_bytes < bytes) {
    const int64_t wanted =
        std::min({Rounded(bytes - stats_.pool_bytes), Growable(), options_.max_region_bytes});
    if (wanted < granularity_) break;
    const Status added =
        AddRegion(wanted, std::max(granularity_, FloorTo(wanted / 4, granularity_)));
    if (added.code() == Code::kResourceExhausted) break;
    ONCILLA_TRY(added);
  }
  return stats_.pool_bytes;
}

int64_t Bfc::Close() {
  const int64_t bytes = stats_.pool_bytes;
  while (!regions_.empty()) DropRegion(regions_.begin()->first);
  return bytes;
}

void Bfc::DropRegion(int id) {
  const RegionState region = regions_[id];
  for (int handle = region.first; handle >= 0;) {
    Chunk& chunk = At(handle);
    const int next = chunk.next;
    if (chunk.id < 0) {
      RemoveFree(handle);
      SetStamp(handle, 0);
    } else {
      stats_.bytes_in_use -= chunk.bytes;
      stats_.requested_bytes -= chunk.requested;
      --stats_.chunks_in_use;
      chunk.id = -1;
    }
    unused_chunks_.push_back(handle);
    handle = next;
  }
  stats_.pool_bytes -= region.bytes;
  regions_.erase(id);
  source_->Free(id);
}

BfcStats Bfc::stats() const {
  BfcStats stats = stats_;
  for (int bin = kBins - 1; bin >= 0; --bin) {
    if (bins_[bin].empty()) continue;
    stats.largest_free_bytes = bins_[bin].rbegin()->bytes;
    break;
  }
  stats.growable_bytes = Growable();
  stats.next_region_bytes = next_region_bytes_;
  stats.regions = static_cast<int>(regions_.size());
  return stats;
}

void Bfc::ClearStats() {
  stats_.allocations = 0;
  stats_.largest_allocation_bytes = 0;
  stats_.peak_bytes_in_use = stats_.bytes_in_use;
  stats_.peak_pool_bytes = stats_.pool_bytes;
}

BfcSnapshot Bfc::Snapshot() const {
  BfcSnapshot snapshot{.stats = stats(), .growth = options_.growth, .granularity = granularity_};
  for (const auto& [id, state] : regions_) {
    BfcSnapshot::Region& region = snapshot.regions.emplace_back();
    region.id = id;
    region.bytes = state.bytes;
    for (int handle = state.first; handle >= 0; handle = At(handle).next) {
      const Chunk& c = At(handle);
      region.chunks.push_back({.offset = c.offset,
                               .bytes = c.bytes,
                               .requested = c.requested,
                               .id = c.id,
                               .tag = c.tag,
                               .stamp = c.stamp,
                               .bin = BinOf(c.bytes),
                               .in_use = c.id >= 0});
    }
  }
  return snapshot;
}

Status Bfc::Shortage(int64_t asked, const Status& driver) const {
  const BfcStats s = stats();
  std::string text;
  if (asked > options_.max_region_bytes) {
    text = StrCat("asked for ", asked, " bytes, but the device's largest allocation is ",
                  options_.max_region_bytes, " bytes (", s.free_in_pool() + s.growable_bytes,
                  " bytes are free)");
  } else {
    text = StrCat("out of memory: asked for ", asked, " bytes; free in the pool ", s.free_in_pool(),
                  ", largest free chunk ", s.largest_free_bytes, ", could still be added ",
                  s.growable_bytes, ", pool ", s.pool_bytes, ", limit ", s.limit_bytes,
                  ", largest allocation ", s.max_region_bytes);
    if (s.waiting_bytes > 0) {
      text += StrCat("; of the free bytes the device may still use ", s.waiting_bytes);
    }
    if (Rounded(asked) <= s.growable_bytes) text += StrCat("; refused: ", Message(driver));
  }
  return Error(Code::kResourceExhausted, text);
}

}  // namespace oncilla
