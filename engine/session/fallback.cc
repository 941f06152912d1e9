// Causes by code and stage.
#include "engine/session/fallback.h"

namespace oncilla {

FallbackPolicy FallbackOnAll(std::vector<std::string> chain) {
  FallbackPolicy policy;
  for (const auto& [cause, name] : kFallbackCauseNames) policy.on.insert(cause);
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
