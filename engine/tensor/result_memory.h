// ResultMemory: memory of results that nobody has any more, kept for the results of the next runs.
//
// The system finds and clears the pages of new memory at about 12 GB/s, which takes longer than
// many a kernel that writes them. A result is the application's, which lets go of it whenever it
// likes; its memory then comes here instead of being freed. As much is kept as the results of the
// latest run took, and nothing once this object is gone: memory that is let go of later is freed.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/mutex.h"

namespace oncilla {

// Thread-safe.
class ResultMemory {
 public:
  // Results that are smaller are left to malloc, which keeps such memory by itself.
  static constexpr int64_t kLeast = int64_t{128} << 10;
  // Results of runs that are larger together are not kept.
  static constexpr int64_t kMost = int64_t{256} << 20;

  struct Block {
    void* allocated = nullptr;  // by malloc; null: no block
    void* data = nullptr;       // aligned, within it
    int64_t bytes = 0;          // behind data
  };

  ResultMemory() = default;
  ~ResultMemory() { Clear(); }
  ResultMemory(const ResultMemory&) = delete;
  ResultMemory& operator=(const ResultMemory&) = delete;

  // How large a block for so many bytes is: a little larger, so that it also fits results that grow
  // from run to run. What nothing is written to takes no memory of the machine.
  static int64_t Rounded(int64_t bytes);
  // The results of a run take so many bytes together. No more is kept from now on.
  void Expect(int64_t bytes);
  // A kept block that fits, and is not much larger than that. Its contents are of an older result.
  Block Take(int64_t bytes);
  // Keeps the block or frees it.
  void Keep(Block block) noexcept;
  // Frees what is kept.
  void Clear();
  int64_t kept_bytes() const;

 private:
  void Shrink(int64_t most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  int64_t limit_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Block> blocks_ ABSL_GUARDED_BY(mutex_);  // the oldest first
};

}  // namespace oncilla
