// Numbers as people read them. For machines, print the number itself.
#pragma once

#include <cstdint>
#include <string>

namespace oncilla {

// "0 B", "999 B", "1.50 KiB", "2.00 GiB". Negative numbers keep their sign.
std::string HumanBytes(int64_t bytes);

}  // namespace oncilla
