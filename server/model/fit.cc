// Compares the memory of planned runs with memory limits.
#include "server/model/fit.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "server/core/status.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

using Json = nlohmann::json;

std::string Mib(int64_t bytes) {
  constexpr int64_t kMib = 1 << 20;
  return StrCat((bytes + kMib - 1) / kMib, " MiB");
}

// The largest arena of a run on each device. If the graph has several plans, a run holds their
// arenas one after the other.
std::map<std::string, int64_t> ArenasOf(const Json& report) {
  std::map<std::string, int64_t> arenas;
  for (const Json& model : report["models"]) {
    for (const Json& plan : model["plans"]) {
      for (const Json& device : plan["devices"]) {
        int64_t& largest = arenas[device["device"].get<std::string>()];
        largest = std::max(largest, device["arena_bytes"].get<int64_t>());
      }
    }
  }
  return arenas;
}

// A device of a session, and its memory.
struct Room {
  std::string device;      // "CPU:0"
  int64_t limit = 0;       // of the session
  int64_t weights = 0;     // what it holds before any run
  int64_t others = 0;      // what other models hold, or were promised
  int64_t total = 0;       // of all sessions
  int64_t bytes() const {  // for runs
    return std::max<int64_t>(std::min(limit, total - others) - weights, 0);
  }
};

absl::Status Refusal(const Room& room, int64_t rows, int runs, int64_t arena) {
  const bool crowded = room.total - room.others < room.limit;
  std::string what = StrCat("a batch of ", rows, " takes ", Mib(arena), " on ", room.device,
                            " beside ", Mib(room.weights), " of weights, and ");
  if (crowded)
    StrAppend(&what, "other models have ", Mib(room.others), " of ", Mib(room.total));
  else
    StrAppend(&what, "the limit is ", Mib(room.limit));
  if (arena <= room.bytes()) {
    return absl::ResourceExhaustedError(
        StrCat(what, ": of ", runs, " instances ", room.bytes() / arena, " would fit"));
  }
  const auto fits = static_cast<int64_t>(
      static_cast<double>(rows) * static_cast<double>(room.bytes()) / static_cast<double>(arena));
  if (fits < 1) return absl::ResourceExhaustedError(StrCat(what, ": no batch would fit"));
  return absl::ResourceExhaustedError(
      StrCat(what, ": a batch of about ", fits, " would fit (max_batch, memory_limit)"));
}

}  // namespace

absl::Status Promises::Make(const void* owner, const Session& session, int64_t rows, int runs) {
  const auto text = session.MemoryReport(/*json=*/true);
  if (!text.ok()) return FromEngine(text.status());
  const Json report = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object()) return absl::InternalError("the memory report cannot be read");
  std::map<std::string, int64_t> arenas = ArenasOf(report);
  std::map<std::string, int64_t> promised;
  const std::lock_guard lock(mutex_);
  for (const Json& device : report["devices"]) {
    const std::string name = device["device"].get<std::string>();
    const auto info = session.MemoryInfo(name);
    if (!info.ok()) return FromEngine(info.status());
    Room room{name.substr(name.rfind('/') + 1), info->limit_bytes, info->in_use_bytes, 0,
              info->total_limit_bytes};
    for (const auto& [other, devices] : bytes_) {
      const auto found = devices.find(name);
      if (other != owner && found != devices.end()) room.others += found->second;
    }
    // Sessions that are being closed count too, and so do models whose runs cannot be planned
    // beforehand.
    room.others = std::max(room.others, info->total_bytes - info->pool_bytes);
    const int64_t arena = arenas[name];
    int64_t all = 0;
    const bool fits = !__builtin_mul_overflow(arena, int64_t{runs}, &all) && all <= room.bytes();
    if (arena > 0 && !fits) return Refusal(room, rows, runs, arena);
    promised[name] = room.weights + all;
  }
  bytes_[owner] = std::move(promised);
  return absl::OkStatus();
}

void Promises::End(const void* owner) {
  const std::lock_guard lock(mutex_);
  bytes_.erase(owner);
}

}  // namespace oncilla::server
