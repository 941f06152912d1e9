// ResultMemory: memory of results that were released, kept for the results of the next runs.
//
// The system allocates and clears the pages of new memory at about 12 GB/s, which takes longer than
// many a kernel that writes them. A result belongs to the application, which may release it at any
// time; its memory then comes here instead of being freed. At most as much is kept as the results
// of the latest run took, and nothing after this object is destroyed: memory that is released later
// is freed.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/mutex.h"

namespace oncilla {

// Thread-safe.
class ResultMemory {
 public:
  // Smaller results are left to malloc, which keeps such memory by itself.
  static constexpr int64_t kLeast = int64_t{128} << 10;
  // When the results of one run are larger in total, nothing is kept.
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

  // The size of the block for so many bytes: a little larger, so that it also fits results that
  // grow from run to run. The part that is never written takes no physical memory.
  static int64_t Rounded(int64_t bytes);
  // Announces the total bytes of a run's results. From now on about as much is kept at most.
  void Expect(int64_t bytes);
  // Takes a kept block that fits and is not much larger; a null block if there is none. Its
  // contents are those of an older result.
  Block Take(int64_t bytes);
  // Keeps the block, freeing older ones to stay within the limit; frees it if it alone is larger.
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
