// Splits one record of comma-separated values (RFC 4180 with any separator) into fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

// Quoted fields may contain the separator and, doubled, quotes; without `quotes` a quote is an
// ordinary character. InvalidArgument for misplaced quotes.
Result<std::vector<std::string>> SplitCsv(std::string_view record, char separator, bool quotes);

}  // namespace oncilla
