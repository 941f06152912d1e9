// Facts from the compiler and from CMake, which sets ONCILLA_VERSION and ONCILLA_BUILD_TYPE.
#include "engine/api/build_info.h"

namespace oncilla {

#if defined(__clang__)
#define ONCILLA_COMPILER "clang " __clang_version__
#else
#define ONCILLA_COMPILER "g++ " __VERSION__
#endif
#if defined(ONCILLA_OPENCL)
#define ONCILLA_OPENCL_STATE "OpenCL on"
#else
#define ONCILLA_OPENCL_STATE "OpenCL off"
#endif

const char kVersion[] = ONCILLA_VERSION;
const char kBuildInfo[] = "Oncilla " ONCILLA_VERSION ", " ONCILLA_COMPILER ", " ONCILLA_BUILD_TYPE
                          ", " ONCILLA_OPENCL_STATE;

}  // namespace oncilla
