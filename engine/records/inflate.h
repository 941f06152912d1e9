// Decompresses deflate streams in zlib's and gzip's containers.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace oncilla {

// The decompressed bytes. A gzip file may have several members in sequence; bytes after a zlib
// stream are ignored. InvalidArgument for damaged or truncated input; the result is counted as
// memory of the current work while it grows.
Result<std::string> Inflate(std::string_view bytes, bool gzip);

}  // namespace oncilla
