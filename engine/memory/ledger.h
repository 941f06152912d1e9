// Ledger: every byte has an owner, on every device.
//
// Owners form a tree (a run belongs to a plan, a plan to a model, a model to a session), and each
// has lines: so many bytes of one category on one device. Pools record what they hand out; the
// lines of programs, queues and staging are estimates, because drivers do not report them. The
// ledger allocates nothing and enforces nothing; it answers who holds what.
// Thread-safe throughout. A session has one.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

enum class OwnerKind { kSession, kModel, kPlan, kRun, kOp };
std::string_view Name(OwnerKind kind);

enum class MemoryCategory {
  kConstants,  // a model's weights, packed
  kVariables,  // values of variables
  kArena,      // a plan instance's intermediates
  kValues,     // a run's tensors of data-dependent size, and lists
  kScratch,    // a kernel's own workspace outside the arena
  kStaging,    // host memory for transfers
  kPrograms,   // compiled kernels
  kQueues,     // queues and events
  kPool,       // in a pool's regions, not handed out
};
inline constexpr int kMemoryCategories = 9;
std::string_view Name(MemoryCategory category);
// True where the bytes are an estimate of what the driver uses.
bool IsEstimate(MemoryCategory category);

using OwnerId = int64_t;
inline constexpr OwnerId kNoOwner = 0;

// What bytes are charged to.
struct Account {
  OwnerId owner = kNoOwner;
  MemoryCategory category = MemoryCategory::kValues;
};

struct LedgerLine {
  std::string device;
  OwnerId owner = kNoOwner;
  std::string owner_name;  // "model 'resnet'"
  MemoryCategory category = MemoryCategory::kValues;
  int64_t bytes = 0;
  int64_t peak_bytes = 0;
};

struct OwnerTotal {
  OwnerId owner = kNoOwner;
  std::string owner_name;
  int64_t bytes = 0;             // of its own lines
  int64_t bytes_with_parts = 0;  // and those of its plans, runs and ops
  int64_t peak_bytes = 0;        // of bytes_with_parts
};

// The state of a device after one change.
struct MemoryEvent {
  int64_t time_ns = 0;  // since the timeline was started
  std::string device;
  int64_t in_use_bytes = 0;  // handed out
  int64_t taken_bytes = 0;   // with what is in pools and not handed out
  int64_t change_bytes = 0;
  std::string what;  // "model 'resnet' constants"
};

class Ledger {
 public:
  // `parent` kNoOwner: a root. Names need not be unique.
  OwnerId AddOwner(OwnerKind kind, std::string name, OwnerId parent = kNoOwner);
  // The owner has ended. It is forgotten once it has no bytes and no parts left; until then it is
  // listed as ended. Returns the bytes it still holds, parts included: 0 when nothing leaked.
  int64_t EndOwner(OwnerId owner);

  // Internal for an unknown owner, negative bytes, or more removed than there is.
  Status Add(std::string_view device, Account account, int64_t bytes);
  Status Remove(std::string_view device, Account account, int64_t bytes);

  // Resets peaks to what is held now.
  void ResetPeaks();

  // An empty device stands for all devices in every query.
  int64_t TotalBytes(std::string_view device = {}) const;
  int64_t EstimatedBytes(std::string_view device = {}) const;  // the estimated part
  // Sums over devices have no common peak: peak_bytes is then the sum of the peaks, an upper bound.
  OwnerTotal Total(OwnerId owner, std::string_view device = {}) const;
  // The owners with the most bytes of their own, largest first; those without any are left out.
  std::vector<OwnerTotal> TopOwners(size_t count, std::string_view device = {}) const;
  // Lines that hold bytes now, by device, then largest first; with `past`, also those that held
  // some.
  std::vector<LedgerLine> Lines(std::string_view device = {}, bool past = false) const;

  // Records the last `capacity` changes from now on, discarding earlier ones; 0 stops recording.
  // While it is off, changes cost nothing extra.
  void StartTimeline(size_t capacity);
  // Oldest first; `dropped` gets how many older ones are no longer there.
  std::vector<MemoryEvent> Timeline(int64_t* dropped = nullptr) const;

  // "model 'resnet'", followed by "(ended)" if it has ended; "no owner" for kNoOwner.
  std::string OwnerName(OwnerId owner) const;
  // "model 'resnet' constants".
  std::string AccountName(Account account) const;
  // The lines in a stable text form, devices and owners with their sums.
  std::string Report(std::string_view device = {}) const;

 private:
  struct Amount {
    int64_t bytes = 0, peak = 0;
    void Change(int64_t by);
  };
  struct OnDevice {
    Amount lines[kMemoryCategories];
    Amount with_parts;
    int64_t own() const;
  };
  struct Record {
    OwnerKind kind = OwnerKind::kSession;
    std::string name;
    OwnerId parent = kNoOwner;
    int parts = 0;
    bool ended = false;
    std::map<std::string, OnDevice, std::less<>> devices;
  };

  struct TimelineState {
    std::chrono::steady_clock::time_point start;
    size_t capacity = 0;
    std::vector<MemoryEvent> ring;
    int64_t seen = 0;
    struct Sums {
      int64_t taken = 0, slack = 0;
    };
    std::map<std::string, Sums, std::less<>> devices;
  };
  void Keep(std::string_view device, Account account, int64_t change);

  std::string NameOf(OwnerId owner) const;
  OwnerTotal TotalOf(OwnerId owner, const Record& record, std::string_view device) const;
  void ForgetIfDone(OwnerId owner);
  Status Change(std::string_view device, Account account, int64_t bytes, int sign);

  mutable std::mutex mutex_;
  OwnerId next_ = 1;
  std::map<OwnerId, Record> owners_;
  std::unique_ptr<TimelineState> timeline_;
};

// A line of a fixed owner that follows a changing size, and is removed on destruction. For
// estimates (programs, staging). `ledger` must live while bytes() is not 0; it may be null. Not
// thread-safe; movable.
class LedgerEntry {
 public:
  LedgerEntry() = default;
  LedgerEntry(Ledger* ledger, std::string device, Account account);
  LedgerEntry(LedgerEntry&& other) noexcept;
  LedgerEntry& operator=(LedgerEntry&& other) noexcept;
  ~LedgerEntry() { Set(0); }

  // If the change cannot be recorded, for lack of memory, the line keeps its size until the next.
  void Set(int64_t bytes) noexcept;
  int64_t bytes() const { return bytes_; }

 private:
  Ledger* ledger_ = nullptr;
  std::string device_;
  Account account_;
  int64_t bytes_ = 0;
};

}  // namespace oncilla
