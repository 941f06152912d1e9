// Bfc: best fit with coalescing, as arithmetic on (region, offset, bytes).
//
// The allocator that TensorFlow's users know, without pointers: an OpenCL buffer has no address, so
// a chunk is an offset in a region, and regions are allocated and freed through a RegionSource.
// Free chunks are kept in 21 bins by size and merged with free neighbours at once; a pool grows by
// regions of doubling size, and frees empty regions only before it would fail, in Trim or in Close.
// A chunk may be freed before the device is done with it, with a stamp: it is then not reused until
// that stamp is reached. The class holds no memory itself, is not thread-safe, and knows nothing of
// devices or owners: Pool adds those. All sizes are in bytes; a chunk's size is rounded up to the
// granularity.
// those. All sizes are in bytes; a chunk's size is rounded up to the granularity.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

// Allocates and frees regions. Ids are the source's own, unique among the regions alive.
class RegionSource {
 public:
  virtual ~RegionSource() = default;
  // On ResourceExhausted the allocator asks for less; any other failure ends the request. Other
  // calls to the allocator are allowed during this call: its state is consistent then.
  virtual Result<int> Allocate(int64_t bytes) = 0;
  virtual void Free(int region) = 0;
  // What the source could still allocate by its own accounting (a budget shared with other pools).
  virtual int64_t available_bytes() const { return INT64_MAX; }
};

struct BfcOptions {
  int64_t limit_bytes = INT64_MAX;       // on the sum of regions
  int64_t max_region_bytes = INT64_MAX;  // the device's largest allocation
  int64_t alignment_bytes = 256;         // of every chunk; at least 256, a power of two
  // Regions of first_region_bytes, then each growth_factor times the one before, at most
  // growth_cap_bytes, or as large as the request where that is more. Without growth the first
  // request takes the whole limit, in as few regions as max_region_bytes allows.
  bool growth = true;
  int64_t first_region_bytes = int64_t{2} << 20;
  double growth_factor = 2;  // at least 1
  int64_t growth_cap_bytes = INT64_MAX;
  // A free chunk of less than twice the request is handed out whole, unless that wastes more than
  // this share of the limit. 0: unless it wastes more than 128 MiB.
  double fragmentation_fraction = 0;
  // Each region has the size of the request that needs it, and one chunk fills it: for few
  // allocations whose sizes are known beforehand, so that the pool's peak is known too.
  bool exact = false;
};

// An allocated chunk. `handle` and `id` are the allocator's own. The result of a request for no
// bytes has no region and needs no Free.
struct BfcChunk {
  int region = -1;
  int64_t offset = 0;
  int64_t bytes = 0;
  int handle = -1;
  int64_t id = -1;
};

struct BfcStats {
  int64_t allocations = 0;   // so far
  int64_t bytes_in_use = 0;  // of chunks, padding included
  int64_t peak_bytes_in_use = 0;
  int64_t requested_bytes = 0;  // what clients asked for, of what is in use
  int64_t waiting_bytes = 0;    // freed with a stamp that is not reached
  int64_t largest_allocation_bytes = 0;
  int64_t pool_bytes = 0;  // of regions
  int64_t peak_pool_bytes = 0;
  int64_t largest_free_bytes = 0;  // the largest free chunk
  int64_t limit_bytes = 0;
  int64_t max_region_bytes = 0;
  int64_t growable_bytes = 0;  // what the limit and the source still allow
  int64_t next_region_bytes = 0;
  int chunks_in_use = 0;
  int regions = 0;

  int64_t free_in_pool() const { return pool_bytes - bytes_in_use; }
  // The share of the free bytes that is not in the largest free chunk; 0 when nothing is free.
  double fragmentation() const;
};

// The complete state, for reports and tests.
struct BfcSnapshot {
  struct Chunk {
    int64_t offset = 0, bytes = 0;
    int64_t requested = 0, id = -1, tag = 0;  // of a chunk in use
    int64_t stamp = 0;                        // of a free chunk that waits
    int bin = 0;
    bool in_use = false;
  };
  struct Region {
    int id = 0;
    int64_t bytes = 0;
    std::vector<Chunk> chunks;  // by offset
  };
  BfcStats stats;
  bool growth = true;
  int64_t granularity = 0;
  std::vector<Region> regions = {};  // by id
};

class Bfc {
 public:
  static constexpr int kBins = 21;
  static constexpr int64_t kLeastGranularity = 256;
  // Bin b holds free chunks of [256 << b, 512 << b); the last one everything above.
  static int BinOf(int64_t bytes);
  static int64_t BinBytes(int bin) { return kLeastGranularity << bin; }

  // `source` must outlive this. Nothing is taken from it before the first request.
  Bfc(BfcOptions options, RegionSource* source);
  ~Bfc();  // Close()
  Bfc(const Bfc&) = delete;
  Bfc& operator=(const Bfc&) = delete;

  // ResourceExhausted with the numbers that explain it. `tag` is the caller's, kept with the chunk.
  // Chunks that wait for a stamp above `freed_before` are not used. kAnyStamp: the caller's work
  // runs after all work that still uses them (on the same in-order queue), so they are used like
  // any other, and before failing, neighbours among them are merged, oldest first.
  static constexpr int64_t kAnyStamp = INT64_MAX;
  Result<BfcChunk> Allocate(int64_t bytes, int64_t tag = 0, int64_t freed_before = 0);
  // Internal when the chunk is not (or no longer) in use. With a stamp above 0 the device may use
  // the chunk until that stamp is reached: until then it is not merged, and its region is not
  // freed.
  Status Free(const BfcChunk& chunk, int64_t stamp = 0);
  // The device has completed all work up to and including this stamp. A stamp below an earlier one
  // has no effect.
  void SetReached(int64_t stamp);
  void SetTag(const BfcChunk& chunk, int64_t tag);

  // Frees regions in which no chunk is in use or waiting, the largest first, as long as the pool
  // keeps `keep_bytes`; returns the bytes freed. The size of the next region then follows from
  // those that are left.
  int64_t Trim(int64_t keep_bytes = 0);
  // Allocates regions now until the pool has so many bytes, in as few regions as possible; less if
  // the limit or the source allows less. Returns what the pool then has. Fails if the source fails
  // for a reason other than memory.
  Result<int64_t> Grow(int64_t bytes);
  // Frees every region, including those in use, whose chunks become invalid; returns the bytes.
  int64_t Close();
  // Limits growth from now on. When the pool is larger, empty regions are freed first; anything
  // still above the limit stays until it is freed.
  void SetLimit(int64_t bytes);

  // The next multiple of the granularity, and at least one; saturates at the largest there is.
  int64_t Rounded(int64_t bytes) const;
  int64_t granularity() const { return granularity_; }
  BfcStats stats() const;
  // Resets counts; peaks become the current values.
  void ClearStats();
  BfcSnapshot Snapshot() const;
  // Calls fn(tag, bytes) for each chunk in use.
  template <class F>
  void ForEachInUse(F&& fn) const {
    for (const Chunk& chunk : chunks_) {
      if (chunk.id >= 0) fn(chunk.tag, chunk.bytes);
    }
  }

 private:
  struct Chunk {
    int region = 0;
    int64_t offset = 0, bytes = 0, requested = 0;
    int64_t id = -1;  // -1: free
    int64_t tag = 0;
    int64_t stamp = 0;         // > 0: free, and waits
    int prev = -1, next = -1;  // neighbours in the region
  };
  // Preallocated nodes of sets, so that elements are inserted and removed without allocating: Free
  // must work when memory is exhausted.
  template <class T>
  struct SpareNodes {
    using Set = std::set<T>;
    std::vector<typename Set::node_type> nodes;
    size_t made = 0;

    void Make(size_t count) {
      nodes.reserve(count);
      for (; made < count; ++made) {
        Set maker{T{}};
        nodes.push_back(maker.extract(maker.begin()));
      }
    }
    void Insert(Set& into, const T& value) {
      auto node = std::move(nodes.back());
      nodes.pop_back();
      node.value() = value;
      into.insert(std::move(node));
    }
    void Erase(Set& from, typename Set::iterator at) {
      if (at != from.end()) nodes.push_back(from.extract(at));
    }
  };
  struct RegionState {
    int64_t bytes = 0;
    int first = -1;   // its chunk at offset 0
    int in_use = 0;   // chunks
    int waiting = 0;  // chunks
    bool empty() const { return in_use == 0 && waiting == 0; }
  };
  struct FreeKey {
    int64_t bytes;
    int region;
    int64_t offset;
    int handle;
    friend auto operator<=>(const FreeKey&, const FreeKey&) = default;
  };

  Chunk& At(int handle) { return chunks_[static_cast<size_t>(handle)]; }
  const Chunk& At(int handle) const { return chunks_[static_cast<size_t>(handle)]; }
  void ReserveChunks(size_t more);
  int NewChunk();
  void InsertFree(int handle);
  void RemoveFree(int handle);
  void MergeWithNext(int handle);
  void Split(int handle, int64_t bytes);
  int TakeBestFit(int64_t rounded, int64_t freed_before);  // -1: none
  void SetStamp(int handle, int64_t stamp);
  int MergeAround(int handle, bool stamped);
  bool MergeWaiting(int64_t rounded);
  bool InUse(const BfcChunk& chunk) const;

  int64_t FirstRegionBytes() const;
  int64_t Grown(int64_t region_bytes) const;
  int64_t Growable() const;
  Status Extend(int64_t rounded);
  Status AddRegion(int64_t wanted, int64_t least);
  bool CollectFor(int64_t rounded);
  void DropRegion(int region);
  Status Shortage(int64_t asked, const Status& driver) const;

  BfcOptions options_;
  RegionSource* source_;
  int64_t granularity_;
  int64_t cap_bytes_ = 0;  // the most that an unsplit chunk may waste
  int64_t next_region_bytes_ = 0;
  int64_t next_id_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<int> unused_chunks_;
  std::set<FreeKey> bins_[kBins];
  SpareNodes<FreeKey> spare_free_;
  int64_t reached_ = 0;
  std::set<std::pair<int64_t, int>> waiting_;  // (stamp, handle)
  SpareNodes<std::pair<int64_t, int>> spare_waiting_;
  std::map<int, RegionState> regions_;
  BfcStats stats_;
};

}  // namespace oncilla
