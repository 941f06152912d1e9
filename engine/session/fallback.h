// Fallback: what a failure means for a run that may go on with another device. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/session/session_options.h"

namespace oncilla {

// "no_device", "load_out_of_memory", "run_out_of_memory", "device_lost", "unsupported".
std::string_view Name(FallbackCause cause);
std::optional<FallbackCause> FallbackCauseNamed(std::string_view name);
std::string FallbackCauseNames();  // all, separated by commas
FallbackPolicy FallbackOnAll(std::vector<std::string> chain);

// Why a run failed, where another device could do better; nothing for what would fail everywhere.
std::optional<FallbackCause> CauseOf(const Status& failure);

}  // namespace oncilla
