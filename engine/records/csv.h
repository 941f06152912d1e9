// One record of comma-separated values (RFC 4180 with any separator), cut into fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

// Quoted fields may hold the separator and, doubled, quotes; without `quotes` a quote is a
// character like others. InvalidArgument where quotes stand wrong.
Result<std::vector<std::string>> SplitCsv(std::string_view record, char separator, bool quotes);

}  // namespace oncilla
