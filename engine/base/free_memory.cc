// glibc keeps freed memory below any block still in use until malloc_trim() is called.
#include "engine/base/free_memory.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>  // says whether this is glibc
#include <fstream>
#include <iterator>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

namespace oncilla {

void ReturnFreeMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void AskForLargePages(void* data, int64_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  const uintptr_t last = (begin + static_cast<uintptr_t>(bytes)) / kLargePage * kLargePage;
  // This is advice to the kernel: if it is refused, the memory works the same.
  if (first < last) (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
  (void)data, (void)bytes;
#endif
}

void AskForPages(void* data, int64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + static_cast<uintptr_t>(bytes)) / page * page;
  if (first < last) {
    (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
  }
#else
  (void)data, (void)bytes;
#endif
}

namespace {

std::string Contents(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The number at the front of a text, after leading spaces; -1 if there is none.
int64_t NumberIn(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : -1;
}

}  // namespace

int64_t MemAvailableIn(std::string_view meminfo) {
  constexpr std::string_view kKey = "MemAvailable:";
  const size_t at = meminfo.find(kKey);
  if (at == meminfo.npos || (at > 0 && meminfo[at - 1] != '\n')) return -1;
  const int64_t kilobytes = NumberIn(meminfo.substr(at + kKey.size()));
  return kilobytes < 0 || kilobytes > INT64_MAX / 1024 ? -1 : kilobytes * 1024;
}

int64_t AvailableHostMemory(std::string* source) {
  int64_t bytes = MemAvailableIn(Contents("/proc/meminfo"));
  if (source != nullptr) *source = "MemAvailable of /proc/meminfo";
  const int64_t most = NumberIn(Contents("/sys/fs/cgroup/memory.max"));  // "max": no limit
  const int64_t used = NumberIn(Contents("/sys/fs/cgroup/memory.current"));
  if (most >= 0 && used >= 0) {
    const int64_t left = std::max<int64_t>(most - used, 0);
    if (bytes < 0 || left < bytes) {
      bytes = left;
      if (source != nullptr) *source = "the control group's memory.max";
    }
  }
  return bytes;
}

}  // namespace oncilla
