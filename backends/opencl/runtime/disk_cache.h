// DiskCache: results that are expensive to compute (program binaries, probe results), kept between
// processes.
//
// One file per entry, named by its key. An entry is returned only if magic, key, length and SHA-256
// are right, because drivers abort on damaged binaries; anything else is a miss. Files are written
// atomically, in a folder that only its owner may enter, and the oldest are removed when the folder
// exceeds its limit. While an entry is passed to a driver, an InUse exists: if the process dies
// meanwhile, the next one finds the mark and builds the entry again; if that one dies too, the
// entry is not used again for some time (Crashed). No failure here is an error: the cache is then
// off, and says why.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/temporary_files.h"

namespace oncilla::opencl {

// $ONCILLA_CACHE_DIR, else $XDG_CACHE_HOME/oncilla, else ~/.cache/oncilla. Empty when the user has
// no home folder.
std::string UserCacheFolder();

class DiskCache {
 public:
  static constexpr uint64_t kDefaultLimit = 256 << 20;

  // Creates the folder (0700) when it is not there. Never fails; see problem().
  explicit DiskCache(std::string folder, uint64_t limit_bytes = kDefaultLimit);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  const std::string& folder() const { return folder_; }
  // Why nothing is cached, with a remedy; empty when the cache works.
  const std::string& problem() const { return problem_; }

  // `key` is lower-case hex, 64 digits (SHA-256 of what the entry depends on). Thread-safe.
  std::optional<std::string> Load(const std::string& key);
  void Store(const std::string& key, std::string_view payload);
  void Drop(const std::string& key);
  // Whether two processes in a row died while their driver used this entry, the last one within the
  // last hour (after three deaths two hours, and so on, up to ten days).
  bool Crashed(const std::string& key) const;

  // Marks that a driver uses the entry, from construction to destruction; one at a time.
  class InUse {
   public:
    InUse(DiskCache& cache, const std::string& key);
    ~InUse();
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    DiskCache& cache_;
    const std::string key_;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  std::string EntryPath(const std::string& key) const;
  uint64_t Deaths(const std::string& key) const;  // in a row
  void ForgetCrashes();
  void OpenMark();
  void Shrink();

  const std::string folder_;
  const uint64_t limit_;
  std::string problem_;
  std::mutex mutex_;      // of the fields below
  uint64_t written_ = 0;  // since the folder was last measured
  bool measured_ = false;
  std::mutex use_mutex_;
  int mark_ = -1;
  std::string mark_path_;
  TemporaryFile mark_file_;  // removed when the program is interrupted
};

struct CacheEntry {
  std::string name;
  uint64_t bytes = 0;
  int64_t used_s = 0;  // when last written or loaded, seconds since 1970
};
// For the program: lists a folder, oldest first, and clears it. Only the cache's own files are
// touched.
Result<std::vector<CacheEntry>> ListCache(const std::string& folder);
Result<uint64_t> ClearCache(const std::string& folder);  // bytes freed

}  // namespace oncilla::opencl
