// Opens, reads and writes registered regions of POSIX shared memory.
#include "server/core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "server/core/text.h"

namespace oncilla::server {
namespace {

constexpr size_t kMostRegions = 1024;

absl::Status CheckFits(int file, uint64_t offset, uint64_t bytes, const std::string& name) {
  struct stat info {};
  uint64_t end = 0;
  if (::fstat(file, &info) != 0 || __builtin_add_overflow(offset, bytes, &end) ||
      end > static_cast<uint64_t>(info.st_size)) {
    return absl::InvalidArgumentError(
        StrCat("shared memory region '", name, "' has fewer bytes than that"));
  }
  return absl::OkStatus();
}

}  // namespace

SharedMemory::~SharedMemory() { Unregister(""); }

absl::Status SharedMemory::Register(const MemoryRegion& region) {
  if (!enabled_) {
    return absl::FailedPreconditionError(
        "shared memory is off; the server takes it with --shared-memory");
  }
  if (region.name.empty()) return absl::InvalidArgumentError("a shared memory region needs a name");
  if (region.bytes == 0)
    return absl::InvalidArgumentError("a shared memory region needs a byte_size above 0");
  const bool plain = region.key.size() > 1 && region.key.size() < 255 && region.key[0] == '/' &&
                     region.key.find('/', 1) == std::string::npos &&
                     region.key.find('\0') == std::string::npos;
  if (!plain)
    return absl::InvalidArgumentError(
        "the key of shared memory is a slash and a name without slashes");
  const std::lock_guard lock(mutex_);
  if (regions_.count(region.name) != 0) {
    return absl::AlreadyExistsError(
        StrCat("shared memory region '", region.name, "' is registered already"));
  }
  if (regions_.size() >= kMostRegions)
    return absl::ResourceExhaustedError("too many regions are registered");
  const int file = ::shm_open(region.key.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (file < 0) {
    return absl::InvalidArgumentError(
        StrCat("shared memory '", region.key, "' cannot be opened: ", std::strerror(errno)));
  }
  const absl::Status fits = CheckFits(file, region.offset, region.bytes, region.name);
  if (!fits.ok()) {
    ::close(file);
    return fits;
  }
  regions_[region.name] = {region, file};
  return absl::OkStatus();
}

void SharedMemory::Unregister(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (auto it = regions_.begin(); it != regions_.end();) {
    if (!name.empty() && it->first != name) {
      ++it;
      continue;
    }
    ::close(it->second.file);
    it = regions_.erase(it);
  }
}

absl::StatusOr<std::vector<MemoryRegion>> SharedMemory::Regions(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<MemoryRegion> regions;
  for (const auto& [key, opened] : regions_) {
    if (name.empty() || key == name) regions.push_back(opened.region);
  }
  if (!name.empty() && regions.empty()) {
    return absl::NotFoundError(StrCat("no shared memory region '", name, "' is registered"));
  }
  return regions;
}

absl::StatusOr<std::pair<int, uint64_t>> SharedMemory::Locate(const MemoryTarget& target) const {
  const auto found = regions_.find(target.region);
  if (found == regions_.end()) {
    return absl::NotFoundError(
        StrCat("no shared memory region '", target.region, "' is registered"));
  }
  const MemoryRegion& region = found->second.region;
  uint64_t end = 0, begin = 0;
  if (__builtin_add_overflow(target.offset, target.bytes, &end) || end > region.bytes ||
      __builtin_add_overflow(region.offset, target.offset, &begin)) {
    return absl::InvalidArgumentError(StrCat("bytes ", target.offset, " to ", target.offset, " + ",
                                             target.bytes, " leave shared memory region '",
                                             target.region, "' of ", region.bytes));
  }
  const absl::Status fits = CheckFits(found->second.file, begin, target.bytes, target.region);
  if (!fits.ok()) return fits;
  return std::pair(found->second.file, begin);
}

absl::StatusOr<std::string> SharedMemory::Read(const MemoryTarget& source) const {
  const std::lock_guard lock(mutex_);
  const auto place = Locate(source);
  if (!place.ok()) return place.status();
  std::string bytes(source.bytes, '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pread(place->first, bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(place->second + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return absl::InvalidArgumentError(StrCat("shared memory region '", source.region, "' ended"));
    done += static_cast<size_t>(n);
  }
  return bytes;
}

absl::Status SharedMemory::Write(const MemoryTarget& target, const std::string& bytes) const {
  const std::lock_guard lock(mutex_);
  if (bytes.size() > target.bytes) {
    return absl::InvalidArgumentError(StrCat("an output has ", bytes.size(),
                                             " bytes, and its part of region '", target.region,
                                             "' only ", target.bytes));
  }
  const auto place = Locate(target);
  if (!place.ok()) return place.status();
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(place->first, bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(place->second + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return absl::InvalidArgumentError(StrCat("shared memory region '", target.region, "' ended"));
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace oncilla::server
