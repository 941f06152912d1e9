// The layout of an entry: one header line "oncilla-cl 1 <key> <sha256 of payload> <length>\n", then
// the payload. The files: <key>.entry; <key>.crashed, with one byte for each process in a row that
// died while its driver worked on the key; using.<pid>, which that process keeps locked while it
// lives and which holds the key that its driver works on.
#include "backends/opencl/runtime/disk_cache.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "engine/base/file.h"
#include "engine/base/hash.h"

namespace oncilla::opencl {
namespace {

constexpr std::string_view kMagic = "oncilla-cl 1 ";
constexpr uint64_t kMostEntryBytes = 64 << 20;
// A process that was killed cannot be distinguished from one that its driver crashed, and a kill
// may hit any key once. A key is therefore banned only after this many deaths in a row, and not for
// good: an impatient user may press Ctrl-C twice in a first run. The ban's time doubles with each
// further death.
constexpr uint64_t kDeathsToBan = 2, kMostDeaths = 10;
constexpr int64_t kFirstBanSeconds = 3600;
constexpr std::string_view kEntry = ".entry", kCrashed = ".crashed", kUsing = "using.";

bool IsKey(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string Header(const std::string& key, std::string_view payload) {
  return StrCat(kMagic, key, " ", Sha256Hex(payload), " ", payload.size(), "\n");
}

// The cache's own files, oldest first.
std::vector<CacheEntry> Entries(const std::string& folder) {
  std::vector<CacheEntry> entries;
  auto listed = ListFolder(folder);
  if (!listed.ok()) return entries;
  for (const FolderEntry& file : *listed) {
    const size_t dot = std::min(file.name.find('.'), file.name.size());
    const std::string_view name = file.name;
    const std::string_view ending = name.substr(dot);
    // Drafts of entries count too, because a process may have died while it wrote one.
    const bool draft = ending.starts_with(kEntry) && ending.ends_with(".tmp");
    if (!IsKey(name.substr(0, dot)) || (ending != kEntry && ending != kCrashed && !draft)) continue;
    struct stat info = {};
    if (::stat(JoinPath(folder, file.name).c_str(), &info) != 0) continue;
    entries.push_back({file.name, file.bytes, info.st_mtim.tv_sec});
  }
  std::sort(entries.begin(), entries.end(), [](const CacheEntry& a, const CacheEntry& b) {
    return a.used_s != b.used_s ? a.used_s < b.used_s : a.name < b.name;
  });
  return entries;
}

// The reason why programs in the folder cannot be trusted; empty if they can.
std::string FolderProblem(const std::string& folder) {
  if (folder.empty()) return "there is no home folder; set ONCILLA_CACHE_DIR";
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    // Its parent folders may be missing.
    const size_t slash = folder.find_last_of('/');
    if (slash != folder.npos && slash > 0) (void)MakeFolder(folder.substr(0, slash)).ok();
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return StrCat("cannot create ", folder, ": ", std::strerror(errno));
    }
  }
  struct stat info = {};
  if (::lstat(folder.c_str(), &info) != 0) return StrCat(folder, ": ", std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return StrCat(folder, " is not a folder");
  if (info.st_uid != ::geteuid()) return StrCat(folder, " belongs to another user");
  if ((info.st_mode & 022) != 0) {
    return StrCat(folder, " can be written by others; chmod 700 it");
  }
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    return StrCat(folder, ": ", std::strerror(errno));
  }
  return "";
}

}  // namespace

std::string UserCacheFolder() {
  auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (std::string own = set("ONCILLA_CACHE_DIR"); !own.empty()) return own;
  if (std::string xdg = set("XDG_CACHE_HOME"); xdg.starts_with('/')) {
    return JoinPath(xdg, "oncilla");
  }
  std::string home = set("HOME");
  if (home.empty()) {
    passwd entry = {};
    passwd* found = nullptr;
    char text[4096];
    if (::getpwuid_r(::geteuid(), &entry, text, sizeof(text), &found) == 0 && found != nullptr) {
      home = found->pw_dir;
    }
  }
  return home.empty() ? "" : JoinPath(home, ".cache/oncilla");
}

DiskCache::DiskCache(std::string folder, uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_(limit_bytes), problem_(FolderProblem(folder_)) {
  if (problem_.empty()) ForgetCrashes();
}

DiskCache::~DiskCache() {
  if (mark_ < 0) return;
  ::unlink(mark_path_.c_str());
  mark_file_ = {};
  ::close(mark_);
}

std::string DiskCache::EntryPath(const std::string& key) const {
  return JoinPath(folder_, StrCat(key, kEntry));
}

uint64_t DiskCache::Deaths(const std::string& key) const {
  const std::string path = JoinPath(folder_, StrCat(key, kCrashed));
  const auto deaths = ReadFile(path, kMostDeaths);
  // The file is longer than that, or cannot be read: its existence bans the key.
  if (!deaths.ok()) return FileExists(path) ? kMostDeaths : 0;
  return deaths->size();
}

bool DiskCache::Crashed(const std::string& key) const {
  if (!problem_.empty()) return false;
  const uint64_t deaths = Deaths(key);
  struct stat file = {};
  if (deaths < kDeathsToBan ||
      ::stat(JoinPath(folder_, StrCat(key, kCrashed)).c_str(), &file) != 0) {
    return false;
  }
  const int64_t since = ::time(nullptr) - file.st_mtim.tv_sec;
  // A time in the future is of a clock that has been set back since.
  return since >= 0 && since < kFirstBanSeconds << (deaths - kDeathsToBan);
}

std::optional<std::string> DiskCache::Load(const std::string& key) {
  if (!problem_.empty() || !IsKey(key) || Crashed(key)) return std::nullopt;
  const std::string path = EntryPath(key);
  auto text = ReadFile(path, kMostEntryBytes);
  if (!text.ok()) return std::nullopt;
  const size_t end = text->find('\n');
  if (end == text->npos) return std::nullopt;
  std::string payload = text->substr(end + 1);
  if (text->substr(0, end + 1) != Header(key, payload)) {
    Drop(key);
    return std::nullopt;
  }
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // last used now, so not the oldest
  return payload;
}

void DiskCache::Store(const std::string& key, std::string_view payload) {
  if (!problem_.empty() || !IsKey(key)) return;
  if (payload.size() > std::min(limit_ / 4, kMostEntryBytes - 4096)) return;
  if (Crashed(key)) return;
  const std::string header = Header(key, payload);
  auto draft = FileDraft::Create(EntryPath(key));
  if (!draft.ok() || !draft->Append(header).ok() || !draft->Append(payload).ok() ||
      !draft->Commit().ok()) {
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  written_ += header.size() + payload.size();
  // Measuring the folder costs a few milliseconds, so it is done once, and again after every
  // sixteenth of the limit.
  if (!measured_ || written_ > limit_ / 16) Shrink();
}

void DiskCache::Drop(const std::string& key) {
  if (problem_.empty() && IsKey(key)) (void)RemoveFile(EntryPath(key)).ok();
}

void DiskCache::Shrink() {
  measured_ = true;
  written_ = 0;
  const std::vector<CacheEntry> entries = Entries(folder_);
  uint64_t total = 0;
  for (const CacheEntry& e : entries) total += e.bytes;
  // A sixteenth is left for what is written until the folder is measured again.
  const uint64_t bound = limit_ - limit_ / 16;
  if (total <= bound) return;
  for (const CacheEntry& e : entries) {
    if (total <= bound - bound / 4) break;
    if (RemoveFile(JoinPath(folder_, e.name)).ok()) total -= e.bytes;
  }
}

// A mark whose lock is free belongs to a process that died while its driver worked on the entry.
void DiskCache::ForgetCrashes() {
  auto listed = ListFolder(folder_);
  if (!listed.ok()) return;
  for (const FolderEntry& file : *listed) {
    if (!file.name.starts_with(kUsing)) continue;
    const std::string path = JoinPath(folder_, file.name);
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
      char key[64];
      if (::pread(fd, key, sizeof(key), 0) == sizeof(key) && IsKey({key, sizeof(key)})) {
        const std::string bad(key, sizeof(key));
        // The entry itself may have killed the process, so it is dropped, and will be compiled
        // again.
        Drop(bad);
        const std::string deaths(std::min(Deaths(bad) + 1, kMostDeaths), '+');
        (void)WriteFile(JoinPath(folder_, StrCat(bad, kCrashed)), deaths).ok();
      }
      ::unlink(path.c_str());
    }
    ::close(fd);
  }
}

void DiskCache::OpenMark() {
  // One mark per object: a process may have several caches, and a forked child must not share the
  // lock of its parent.
  std::string path = JoinPath(folder_, StrCat(kUsing, ::getpid(), ".XXXXXX"));
  mark_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (mark_ < 0) return;
  ::flock(mark_, LOCK_EX | LOCK_NB);
  mark_path_ = path;
  mark_file_ = TemporaryFile(path);
}

DiskCache::InUse::InUse(DiskCache& cache, const std::string& key)
    : cache_(cache), key_(key), lock_(cache.use_mutex_) {
  if (!cache_.problem_.empty()) return;
  if (cache_.mark_ < 0) cache_.OpenMark();
  // If the mark cannot be written, only this protection is lost.
  if (cache_.mark_ >= 0) (void)!::pwrite(cache_.mark_, key.data(), key.size(), 0);
}

DiskCache::InUse::~InUse() {
  if (cache_.mark_ >= 0) (void)!::ftruncate(cache_.mark_, 0);
  // The driver survived this time, so an earlier death had another cause.
  if (cache_.problem_.empty() && cache_.Deaths(key_) > 0) {
    (void)RemoveFile(JoinPath(cache_.folder_, StrCat(key_, kCrashed))).ok();
  }
}

Result<std::vector<CacheEntry>> ListCache(const std::string& folder) {
  if (!FolderExists(folder)) return std::vector<CacheEntry>();
  ONCILLA_TRY(ListFolder(folder).status());
  return Entries(folder);
}

Result<uint64_t> ClearCache(const std::string& folder) {
  ONCILLA_ASSIGN(const std::vector<CacheEntry> entries, ListCache(folder));
  uint64_t freed = 0;
  for (const CacheEntry& e : entries) {
    ONCILLA_TRY(RemoveFile(JoinPath(folder, e.name)));
    freed += e.bytes;
  }
  return freed;
}

}  // namespace oncilla::opencl
