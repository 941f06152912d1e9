// Causes by code and stage.
#include "engine/session/fallback.h"

#include <algorithm>
#include <iterator>

#include "engine/base/near_names.h"
#include "engine/placement/device_name.h"

namespace oncilla {

Status CheckFallback(const FallbackPolicy& policy) {
  const std::string words[] = {"auto", "cpu", "cpu:plain", "gpu", "gpu:0", "gpu:1"};
  for (const std::string& spec : policy.chain) {
    if (std::find(std::begin(words), std::end(words), spec) != std::end(words)) continue;
    const auto name = DeviceName::Parse(spec);
    if (!spec.empty() && name.ok()) continue;
    return WithStage(InvalidArgument("fallback: '", spec, "' is no name of a device",
                                     DidYouMeanAmong(spec, words,
                                                     "auto, cpu, cpu:plain, gpu, gpu:1, .. and "
                                                     "TensorFlow's names of devices")),
                     Stage::kOptions);
  }
  return {};
}

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
