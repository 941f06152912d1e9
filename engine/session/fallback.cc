// Causes by code and stage.
#include "engine/session/fallback.h"

#include <array>

namespace oncilla {
namespace {

constexpr std::array<std::pair<FallbackCause, std::string_view>, 5> kNames = {{
    {FallbackCause::kNoDevice, "no_device"},
    {FallbackCause::kLoadOutOfMemory, "load_out_of_memory"},
    {FallbackCause::kRunOutOfMemory, "run_out_of_memory"},
    {FallbackCause::kDeviceLost, "device_lost"},
    {FallbackCause::kUnsupported, "unsupported"},
}};

}  // namespace

std::string_view Name(FallbackCause cause) {
  for (const auto& [known, name] : kNames) {
    if (known == cause) return name;
  }
  return "";
}

std::optional<FallbackCause> FallbackCauseNamed(std::string_view name) {
  for (const auto& [cause, known] : kNames) {
    if (known == name) return cause;
  }
  return std::nullopt;
}

std::string FallbackCauseNames() {
  std::string all;
  for (const auto& [cause, name] : kNames) all += StrCat(all.empty() ? "" : ", ", name);
  return all;
}

FallbackPolicy FallbackOnAll(std::vector<std::string> chain) {
  FallbackPolicy policy;
  for (const auto& [cause, name] : kNames) policy.on.insert(cause);
  policy.chain = std::move(chain);
  return policy;
}

std::optional<FallbackCause> CauseOf(const Status& failure) {
  const StatusDetails details = Details(failure);
  switch (failure.code()) {
    case Code::kNotFound:
      if (details.stage == Stage::kDevice) return FallbackCause::kNoDevice;
      return std::nullopt;
    case Code::kResourceExhausted:
      return details.stage == Stage::kRun ? FallbackCause::kRunOutOfMemory
                                          : FallbackCause::kLoadOutOfMemory;
    case Code::kUnavailable:
      // Files are unavailable too, on every device.
      if (details.device.empty()) return std::nullopt;
      return FallbackCause::kDeviceLost;
    case Code::kUnimplemented:
      if (details.stage == Stage::kCompile) return FallbackCause::kUnsupported;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace oncilla
