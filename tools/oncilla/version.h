// What --version prints: the version of the project and how this program was built.
#pragma once

#include <string>

namespace oncilla::tool {

inline constexpr char kVersion[] = ONCILLA_VERSION;

// "g++ 12.2.0, Release, OpenCL on, Abseil 20220623, ..."
std::string BuildFacts();

}  // namespace oncilla::tool
