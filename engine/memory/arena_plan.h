// Arena packing: where each intermediate of a plan lives, from sizes and lifetimes alone.
//
// Buffers whose lifetimes do not overlap share bytes. Several orders of greedy placement are tried,
// then the best one is improved by moving the topmost buffers to the front of the order, all within
// a fixed amount of work; the result is the same on every machine. An arena is one block, or
// several where the device cannot allocate one that large. A pure function: it does not depend on
// device or graph. Values that share memory (views, in-place ops) must have been merged to one
// buffer before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

// A buffer that is live during the steps [first, last], both included.
struct BufferUse {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct ArenaOptions {
  int64_t alignment_bytes = 256;        // of every offset and block size
  int64_t max_block_bytes = INT64_MAX;  // the device's largest allocation
  // Buffers examined while placing others before the search ends; about 2 ns each. 0: one attempt.
  int64_t work = 20'000'000;

  // The largest buffer that can be placed.
  int64_t largest() const {
    return max_block_bytes - max_block_bytes % std::max<int64_t>(alignment_bytes, 1);
  }
};

// How a packing was found: the order in which buffers were placed, and whether the size of blocks
// was fixed to the lower bound from the start.
struct ArenaOrder {
  std::vector<int> order;  // indices of the uses
  bool capped = false;
  double excess = 1;  // bytes divided by the lower bound
};

struct ArenaPlan {
  struct Place {
    int block = -1;  // -1: a buffer of no bytes, which needs no place
    int64_t offset = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::vector<Place> places;         // one per use, in the order given
  std::vector<int64_t> block_bytes;  // one per block
  int64_t lower_bound = 0;           // MaxLiveBytes of the same uses
  ArenaOrder found;

  int64_t bytes() const;  // of all blocks
};

// ResourceExhausted when one buffer alone is above the largest block; InvalidArgument for negative
// sizes and lifetimes that end before they begin. Errors name the use by its index.
// `like` says how a packing of as many buffers of other sizes was found. If that order packs these
// buffers as tightly, no other is tried.
Result<ArenaPlan> PackArena(std::span<const BufferUse> uses, const ArenaOptions& options,
                            const ArenaOrder* like = nullptr);

// The most bytes live in one step, each buffer rounded up to the alignment: no arena is smaller.
// Saturates at INT64_MAX.
int64_t MaxLiveBytes(std::span<const BufferUse> uses, int64_t alignment_bytes);

// Internal, naming the buffers, when two that are live together share a byte, one lies outside its
// block, or an offset or block breaks the options.
Status CheckArena(const ArenaPlan& plan, std::span<const BufferUse> uses,
                  const ArenaOptions& options);

// One line per block and per buffer, by block, offset and first step.
std::string ArenaText(const ArenaPlan& plan, std::span<const BufferUse> uses);

}  // namespace oncilla
