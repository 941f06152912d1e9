// A table without locks, because a signal handler reads it: each slot has a version that is odd
// while its path is valid, and that changes whenever the path does.
#include "engine/base/temporary_files.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <utility>

namespace oncilla {
namespace {

constexpr size_t kLongest = 1000;

struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<unsigned> version{0};
  pid_t process = 0;  // a forked child inherits its parent's table, but none of its files
  char path[kLongest + 1] = {};
};
Slot g_slots[64];

}  // namespace

TemporaryFile::TemporaryFile(const std::string& path) {
  if (path.size() > kLongest) return;
  for (int i = 0; i < static_cast<int>(std::size(g_slots)); ++i) {
    if (g_slots[i].taken.exchange(true)) continue;
    g_slots[i].process = ::getpid();
    std::memcpy(g_slots[i].path, path.c_str(), path.size() + 1);
    g_slots[i].version.fetch_add(1);
    slot_ = i;
    return;
  }
}

TemporaryFile::~TemporaryFile() {
  if (slot_ < 0) return;
  g_slots[slot_].version.fetch_add(1);
  g_slots[slot_].taken.store(false);
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : slot_(std::exchange(other.slot_, -1)) {}

TemporaryFile& TemporaryFile::operator=(TemporaryFile&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

void RemoveTemporaryFiles() {
  for (Slot& slot : g_slots) {
    const unsigned version = slot.version.load();
    if (version % 2 == 0 || slot.process != ::getpid()) continue;
    char path[sizeof(slot.path)];
    std::memcpy(path, slot.path, sizeof(path));
    // Another thread may have reused the slot for another path in the meantime.
    if (slot.version.load() == version) ::unlink(path);
  }
}

}  // namespace oncilla
