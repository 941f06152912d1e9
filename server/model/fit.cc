// Plans against limits.
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

// The largest arena of a run on each device. A run whose graph has several plans takes their arenas
// in turn.
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

}  // namespace

absl::Status CheckFit(const Session& session, int64_t rows, int runs) {
  const auto text = session.MemoryReport(/*json=*/true);
  if (!text.ok()) return FromEngine(text.status());
  const Json report = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object()) return absl::InternalError("the memory report cannot be read");
  const std::map<std::string, int64_t> arenas = ArenasOf(report);
  for (const Json& device : report["devices"]) {
    const std::string name = device["device"].get<std::string>();
    const auto found = arenas.find(name);
    if (found == arenas.end() || found->second == 0) continue;
    const int64_t limit = device["limit_bytes"].get<int64_t>(),
                  weights = device["in_use_bytes"].get<int64_t>();
    const int64_t room = std::max<int64_t>(limit - weights, 0), arena = found->second;
    int64_t all = 0;
    if (!__builtin_mul_overflow(arena, int64_t{runs}, &all) && all <= room) continue;
    const std::string what =
        StrCat("a batch of ", rows, " takes ", Mib(arena), " on ", name.substr(name.rfind('/') + 1),
               " beside ", Mib(weights), " of weights, and the limit is ", Mib(limit));
    if (arena <= room) {
      return absl::ResourceExhaustedError(
          StrCat(what, ": of ", runs, " instances ", room / arena, " would fit"));
    }
    const auto fits = static_cast<int64_t>(static_cast<double>(rows) * static_cast<double>(room) /
                                           static_cast<double>(arena));
    return absl::ResourceExhaustedError(fits < 1 ? StrCat(what, ": no batch would fit")
                                                 : StrCat(what, ": a batch of about ", fits,
                                                          " would fit (max_batch, memory_limit)"));
  }
  return absl::OkStatus();
}

}  // namespace oncilla::server
