// Kept blocks form a short list: runs have few results, and the newest blocks are tried first.
#include "engine/tensor/result_memory.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

namespace oncilla {

int64_t ResultMemory::Rounded(int64_t bytes) {
  if (bytes < kLeast || bytes > kMost) return bytes;
  // Eight sizes between a power of two and the next one.
  const int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 8;
  return (bytes + step - 1) / step * step;
}

void ResultMemory::Expect(int64_t bytes) {
  MutexLock lock(&mutex_);
  limit_ = bytes <= kMost ? bytes : 0;
  // Add room for the rounding of block sizes.
  limit_ += limit_ / 8;
  Shrink(limit_);
}

ResultMemory::Block ResultMemory::Take(int64_t bytes) {
  MutexLock lock(&mutex_);
  for (size_t i = blocks_.size(); i-- > 0;) {
    if (blocks_[i].bytes < bytes || blocks_[i].bytes > Rounded(bytes)) continue;
    const Block block = blocks_[i];
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
    bytes_ -= block.bytes;
    return block;
  }
  return {};
}

void ResultMemory::Keep(Block block) noexcept {
  MutexLock lock(&mutex_);
  if (block.bytes > limit_) {
    std::free(block.allocated);
    return;
  }
  Shrink(limit_ - block.bytes);
  try {
    blocks_.push_back(block);
    bytes_ += block.bytes;
  } catch (const std::bad_alloc&) {
    std::free(block.allocated);
  }
}

void ResultMemory::Clear() {
  MutexLock lock(&mutex_);
  Shrink(0);
}

int64_t ResultMemory::kept_bytes() const {
  MutexLock lock(&mutex_);
  return bytes_;
}

void ResultMemory::Shrink(int64_t most) {
  size_t gone = 0;
  for (; bytes_ > most; ++gone) {
    bytes_ -= blocks_[gone].bytes;
    std::free(blocks_[gone].allocated);
  }
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(gone));
}

}  // namespace oncilla
