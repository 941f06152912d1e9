// Names of tensors on the command line and in the file system: splitting NAME=FILE, and spelling
// a name as a file's name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/status.h"

namespace oncilla::tool {

// Splits NAME=REST at the last '=' whose left side is one of `names`: both names and file names may
// hold '='. InvalidArgument proposes near names. `what` says what a name is ("input").
Result<std::pair<std::string, std::string>> SplitAssignment(std::string_view text,
                                                            std::span<const std::string> names,
                                                            std::string_view what);

// Every byte outside [A-Za-z0-9_.-] as %XX, so that different names stay different.
std::string FileNameOf(std::string_view tensor_name);

}  // namespace oncilla::tool
