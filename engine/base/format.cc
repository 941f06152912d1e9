// Powers of 1024, two decimals above a byte.
#include "engine/base/format.h"

#include <cmath>
#include <cstdio>

namespace oncilla {

std::string HumanBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  // 1023.995 would print as 1024.00.
  while (std::fabs(value) >= 1023.995 && unit < 6) value /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}

}  // namespace oncilla
