// The version of the library and how it was built.
#pragma once

namespace oncilla {

extern const char kVersion[];
extern const char kBuildInfo[];

}  // namespace oncilla
