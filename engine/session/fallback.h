// Fallback: what a failure means for a run that may go on with another device. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/session/session_options.h"

namespace oncilla {

// InvalidArgument, with near names, for an entry of the chain that is no name of a device; a device
// that is not there is none.
Status CheckFallback(const FallbackPolicy& policy);

FallbackPolicy FallbackOnAll(std::vector<std::string> chain);

// Why a run failed, where another device could do better; nothing for what would fail everywhere.
std::optional<FallbackCause> CauseOf(const Status& failure);

}  // namespace oncilla
