// Version information from the compiler, the build system and headers.
#include "tools/oncilla/version.h"

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include <CLI/Version.hpp>

#include "absl/base/config.h"
#include "engine/base/status.h"

namespace oncilla::tool {

std::string BuildFacts() {
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "g++ " __VERSION__;
#endif
#if defined(ONCILLA_OPENCL)
  const char* opencl = "OpenCL on";
#else
  const char* opencl = "OpenCL off";
#endif
  return StrCat(compiler, ", ", ONCILLA_BUILD_TYPE, ", ", opencl, ", Abseil ",
                ABSL_LTS_RELEASE_VERSION, ", CLI11 ", CLI11_VERSION, ", libpng ",
                PNG_LIBPNG_VER_STRING, ", libjpeg ", LIBJPEG_TURBO_VERSION_NUMBER / 1000000, ".",
                LIBJPEG_TURBO_VERSION_NUMBER / 1000 % 1000, ".",
                LIBJPEG_TURBO_VERSION_NUMBER % 1000, ", zlib ", ZLIB_VERSION);
}

}  // namespace oncilla::tool
