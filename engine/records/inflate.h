// Compressed text: zlib's and gzip's containers of deflate.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace oncilla {

// What was compressed. A gzip file may have several members, one behind the other; behind a zlib
// stream nothing is read. Damage, also an early end, is InvalidArgument; the result is counted as
// memory of the work at hand while it grows.
Result<std::string> Inflate(std::string_view bytes, bool gzip);

}  // namespace oncilla
