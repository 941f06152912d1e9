// pool_bench: what a request and its return cost in a pool that is well used.
//
//   pool_bench [--live CHUNKS] [--waves WAVES]
//
// So many chunks are live while random ones are freed and others asked for, sizes spread evenly
// over the powers of two from 256 B to 1 MiB. Each line is the median, and the worst in a hundred,
// of the rounds' means; a round is 64 calls of one kind, since a clock costs as much as a call.
// Beside Bfc stands the shape in which TensorFlow publishes its allocator: bins that are std::sets
// of handles by (size, address), and regions that find a handle by its address. Both are asked for
// the same in turns and must give the same places; neither touches memory or asks a driver.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "engine/memory/bfc.h"

namespace oncilla {
namespace {

constexpr int64_t kRegionBytes = int64_t{16} << 30;
constexpr int kCallsPerRound = 64;
constexpr int kCallsPerWave = 32 * kCallsPerRound;

// As published: one region that holds everything, a lock around every call, addresses as names.
class SetsOfHandles {
 public:
  SetsOfHandles() : handle_at_(static_cast<size_t>(kRegionBytes >> 8), -1) {
    for (int bin = 0; bin < Bfc::kBins; ++bin) bins_.emplace_back(BySize{this});
    const int all = NewChunk();
    chunks_[all].size = kRegionBytes;
    handle_at_[0] = all;
    Insert(all);
  }

  int64_t Allocate(int64_t bytes) {
    const int64_t rounded = (bytes + 255) / 256 * 256;
    std::lock_guard lock(mutex_);
    for (int bin = Bfc::BinOf(rounded); bin < Bfc::kBins; ++bin) {
      for (auto it = bins_[bin].begin(); it != bins_[bin].end(); ++it) {
        const int handle = *it;
        if (chunks_[handle].size < rounded) continue;
        bins_[bin].erase(it);
        chunks_[handle].bin = -1;
        if (chunks_[handle].size >= 2 * rounded ||
            chunks_[handle].size - rounded >= (int64_t{128} << 20)) {
          Split(handle, rounded);
        }
        Chunk& chunk = chunks_[handle];
        chunk.requested = bytes;
        chunk.id = next_id_++;
        ++allocations_;
        in_use_ += chunk.size;
        peak_ = std::max(peak_, in_use_);
        largest_ = std::max(largest_, chunk.size);
        return chunk.address;
      }
    }
    return -1;
  }

  void Free(int64_t address) {
    std::lock_guard lock(mutex_);
    int handle = handle_at_[static_cast<size_t>(address >> 8)];
    chunks_[handle].id = -1;
    in_use_ -= chunks_[handle].size;
    const int next = chunks_[handle].next;
    if (next >= 0 && chunks_[next].id < 0) {
      Remove(next);
      Merge(handle, next);
    }
    const int prev = chunks_[handle].prev;
    if (prev >= 0 && chunks_[prev].id < 0) {
      Remove(prev);
      Merge(prev, handle);
      handle = prev;
    }
    Insert(handle);
  }

 private:
  struct Chunk {
    int64_t size = 0, requested = 0, id = -1, address = 0;
    int prev = -1, next = -1, bin = -1;
  };
  struct BySize {
    const SetsOfHandles* owner;
    bool operator()(int a, int b) const {
      const Chunk &x = owner->chunks_[a], &y = owner->chunks_[b];
      return x.size != y.size ? x.size < y.size : x.address < y.address;
    }
  };

  int NewChunk() {
    if (unused_ < 0) {
      chunks_.emplace_back();
      return static_cast<int>(chunks_.size()) - 1;
    }
    const int handle = unused_;
    unused_ = chunks_[handle].next;
    chunks_[handle] = Chunk();
    return handle;
  }
  void Insert(int handle) {
    chunks_[handle].bin = Bfc::BinOf(chunks_[handle].size);
    bins_[chunks_[handle].bin].insert(handle);
  }
  void Remove(int handle) {
    bins_[chunks_[handle].bin].erase(handle);
    chunks_[handle].bin = -1;
  }
  void Split(int handle, int64_t bytes) {
    const int rest = NewChunk();
    chunks_[rest].address = chunks_[handle].address + bytes;
    chunks_[rest].size = chunks_[handle].size - bytes;
    chunks_[handle].size = bytes;
    handle_at_[static_cast<size_t>(chunks_[rest].address >> 8)] = rest;
    chunks_[rest].prev = handle;
    chunks_[rest].next = chunks_[handle].next;
    if (chunks_[rest].next >= 0) chunks_[chunks_[rest].next].prev = rest;
    chunks_[handle].next = rest;
    Insert(rest);
  }
  void Merge(int left, int right) {
    chunks_[left].size += chunks_[right].size;
    chunks_[left].next = chunks_[right].next;
    if (chunks_[left].next >= 0) chunks_[chunks_[left].next].prev = left;
    handle_at_[static_cast<size_t>(chunks_[right].address >> 8)] = -1;
    chunks_[right].next = unused_;
    unused_ = right;
  }

  std::mutex mutex_;
  std::vector<Chunk> chunks_;
  int unused_ = -1;
  std::vector<int> handle_at_;
  std::vector<std::set<int, BySize>> bins_;
  int64_t next_id_ = 0, allocations_ = 0, in_use_ = 0, peak_ = 0, largest_ = 0;
};

class OneRegion : public RegionSource {
 public:
  Result<int> Allocate(int64_t) override { return 0; }
  void Free(int) override {}
};

// Bfc behind a lock, as a pool has it.
class Ours {
 public:
  Ours() : bfc_({.limit_bytes = kRegionBytes, .growth = false}, &source_) {}
  BfcChunk Allocate(int64_t bytes) {
    std::lock_guard lock(mutex_);
    Result<BfcChunk> chunk = bfc_.Allocate(bytes);
    return chunk.ok() ? *chunk : BfcChunk{};
  }
  void Free(const BfcChunk& chunk) {
    std::lock_guard lock(mutex_);
    (void)bfc_.Free(chunk);
  }
  size_t chunks() const { return bfc_.Snapshot().regions[0].chunks.size(); }

 private:
  OneRegion source_;
  std::mutex mutex_;
  Bfc bfc_;
};

struct Times {
  std::vector<double> allocate, free;
};

void Print(const char* name, const char* call, std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  std::printf("%-16s %-9s median %5.0f ns, 99 of 100 below %5.0f ns\n", name, call,
              ns[ns.size() / 2], ns[ns.size() * 99 / 100]);
}

int Main(int live, int waves) {
  using Clock = std::chrono::steady_clock;
  Ours ours;
  SetsOfHandles theirs;
  std::mt19937 random(1);
  const auto size = [&] {
    const int64_t power = int64_t{256} << random() % 12;
    return power + static_cast<int64_t>(random() % static_cast<uint32_t>(power));
  };
  std::vector<BfcChunk> our_live;
  std::vector<int64_t> their_live;
  for (int i = 0; i < live + kCallsPerWave; ++i) {
    const int64_t bytes = size();
    our_live.push_back(ours.Allocate(bytes));
    their_live.push_back(theirs.Allocate(bytes));
  }
  Times our_times, their_times;
  const auto time = [](std::vector<double>& to, int first, auto&& call) {
    const auto begin = Clock::now();
    for (int i = first; i < first + kCallsPerRound; ++i) call(static_cast<size_t>(i));
    const std::chrono::duration<double, std::nano> all = Clock::now() - begin;
    to.push_back(all.count() / kCallsPerRound);
  };
  size_t free_chunks = 0;
  for (int wave = 0; wave < waves; ++wave) {
    std::vector<int64_t> bytes;
    for (int i = 0; i < kCallsPerWave; ++i) bytes.push_back(size());
    // Those that go stand at the end.
    for (int i = 0; i < kCallsPerWave; ++i) {
      const size_t last = our_live.size() - 1 - static_cast<size_t>(i);
      const size_t victim = random() % (last + 1);
      std::swap(our_live[victim], our_live[last]);
      std::swap(their_live[victim], their_live[last]);
    }
    BfcChunk* const our_end = our_live.data() + live;
    int64_t* const their_end = their_live.data() + live;
    for (int i = 0; i < kCallsPerWave; i += kCallsPerRound) {
      time(our_times.free, i, [&](size_t k) { ours.Free(our_end[k]); });
      time(their_times.free, i, [&](size_t k) { theirs.Free(their_end[k]); });
    }
    free_chunks = std::max(free_chunks, ours.chunks() - static_cast<size_t>(live));
    for (int i = 0; i < kCallsPerWave; i += kCallsPerRound) {
      time(our_times.allocate, i, [&](size_t k) { our_end[k] = ours.Allocate(bytes[k]); });
      time(their_times.allocate, i, [&](size_t k) { their_end[k] = theirs.Allocate(bytes[k]); });
    }
    for (size_t i = 0; i < our_live.size(); ++i) {
      if (our_live[i].offset == their_live[i] && our_live[i].region == 0) continue;
      std::printf("wave %d: the two differ: %lld and %lld\n", wave,
                  static_cast<long long>(our_live[i].offset),
                  static_cast<long long>(their_live[i]));
      return 1;
    }
  }
  std::printf("%d live chunks, %d at the crest of a wave; at most %zu free ones; %d waves\n", live,
              live + kCallsPerWave, free_chunks, waves);
  Print("Bfc", "allocate", our_times.allocate);
  Print("Bfc", "free", our_times.free);
  Print("sets of handles", "allocate", their_times.allocate);
  Print("sets of handles", "free", their_times.free);
  return 0;
}

}  // namespace
}  // namespace oncilla

int main(int argc, char** argv) {
  int live = 10'000, waves = 400;
  for (int i = 1; i + 1 < argc; i += 2) {
    int* const to = std::strcmp(argv[i], "--live") == 0    ? &live
                    : std::strcmp(argv[i], "--waves") == 0 ? &waves
                                                           : nullptr;
    if (to == nullptr || std::atoi(argv[i + 1]) < 100) {
      std::fprintf(stderr, "usage: pool_bench [--live CHUNKS] [--waves WAVES]\n");
      return 2;
    }
    *to = std::atoi(argv[i + 1]);
  }
  return oncilla::Main(live, waves);
}
