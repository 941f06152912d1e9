// The OpenCL device that the unit tests run on: the first usable one, or the first whose platform
// or name contains $ONCILLA_TEST_OPENCL.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "backends/opencl/runtime/discovery.h"

namespace oncilla::opencl {

struct TestDevice {
  std::optional<FoundDevice> found;
  std::string reason;
};

inline const TestDevice& TheTestDevice() {
  static const TestDevice device = [] {
    TestDevice result;
    Discovery discovery = Discover(LibraryOptions::FromEnvironment());
    const char* wanted = std::getenv("ONCILLA_TEST_OPENCL");
    result.reason = discovery.reason.empty() ? "no device fits" : discovery.reason;
    for (FoundDevice& d : discovery.devices) {
      const bool fits = wanted == nullptr || d.facts.platform.find(wanted) != std::string::npos ||
                        d.facts.name.find(wanted) != std::string::npos;
      if (fits && d.problem.empty() && !result.found) result.found = std::move(d);
    }
    return result;
  }();
  return device;
}

}  // namespace oncilla::opencl

// Skips the rest of a test, in the words that the check script counts.
#define ONCILLA_NEEDS_OPENCL()                                                                  \
  if (!::oncilla::opencl::TheTestDevice().found) {                                              \
    GTEST_SKIP() << "not run: no OpenCL (" << ::oncilla::opencl::TheTestDevice().reason << ")"; \
  }
