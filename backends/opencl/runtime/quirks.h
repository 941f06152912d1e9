// Quirks: every workaround for a known driver fault, in one table, with its reason and range. Code
// elsewhere asks Capabilities and never names a vendor.
#pragma once

#include <span>
#include <string_view>

#include "backends/opencl/runtime/capabilities.h"

namespace oncilla::opencl {

struct Quirk {
  std::string_view platform;  // exact platform name
  int first_major = 0;        // driver versions [first_major, end_major)
  int end_major = 1 << 30;
  std::string_view reason;
  void (*apply)(Capabilities&);
};

std::span<const Quirk> Quirks();
bool Applies(const Quirk& quirk, const DeviceFacts& facts);

}  // namespace oncilla::opencl
