// A table of ranges that the signal handler reads without locks. A slot's range is set before the
// slot is switched on, and does not change while it is on.
#include "engine/base/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <iterator>
#include <mutex>

namespace oncilla {
namespace {

struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<bool> on{false};
  std::atomic<bool> damaged{false};
  uintptr_t begin = 0, end = 0;
};
Slot g_slots[1024];
uintptr_t g_page = 4096;
struct sigaction g_before;

// Maps zeros in place of the page at `address`. Returns false if that is not within a guarded
// mapping.
bool Patch(uintptr_t address) {
  for (Slot& slot : g_slots) {
    if (!slot.on.load() || address < slot.begin || address >= slot.end) continue;
    slot.damaged.store(true);
    void* const page = reinterpret_cast<void*>(address / g_page * g_page);
    return ::mmap(page, g_page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
  }
  return false;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const bool of_memory = info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR;
  if (of_memory && Patch(reinterpret_cast<uintptr_t>(info->si_addr))) return;
  if ((g_before.sa_flags & SA_SIGINFO) != 0 && g_before.sa_sigaction != nullptr) {
    return g_before.sa_sigaction(signal, info, context);
  }
  if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN &&
      g_before.sa_handler != nullptr) {
    return g_before.sa_handler(signal);
  }
  // The default action: on return the instruction runs again and this time ends the process.
  ::sigaction(SIGBUS, &g_before, nullptr);
}

void InstallOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &g_before);
  });
}

}  // namespace

MappingGuard::MappingGuard(const void* data, size_t size) {
  InstallOnce();
  for (int i = 0; i < static_cast<int>(std::size(g_slots)); ++i) {
    Slot& slot = g_slots[i];
    if (slot.taken.exchange(true)) continue;
    slot.begin = reinterpret_cast<uintptr_t>(data);
    // The system maps whole pages.
    slot.end = slot.begin + (size + g_page - 1) / g_page * g_page;
    slot.damaged.store(false);
    slot.on.store(true);
    slot_ = i;
    return;
  }
}

MappingGuard::~MappingGuard() {
  if (slot_ < 0) return;
  g_slots[slot_].on.store(false);
  g_slots[slot_].taken.store(false);
}

bool MappingGuard::damaged() const { return slot_ >= 0 && g_slots[slot_].damaged.load(); }

}  // namespace oncilla
