// The system's memory: what is left of it, and what was freed and the C library keeps for later.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace oncilla {

// Gives it back to the system, where the C library can (glibc). A few milliseconds after much was
// freed; for ends of long work: a graph compiled, a model unloaded.
void ReturnFreeMemory();

// Asks the system to back new memory by pages of 2 MiB, as far as such pages fit into it: it finds
// them many times as fast as small ones. For memory that will be written to as a whole.
void AskForLargePages(void* data, int64_t bytes);
// Has it find the pages of less than that at once, rather than one by one when they are touched.
// Nothing happens where it cannot.
void AskForPages(void* data, int64_t bytes);

// What this process may still take before the system has to push something else out: MemAvailable
// of /proc/meminfo, or what its control group leaves when that is less; `source` says which. -1
// where the system tells neither.
int64_t AvailableHostMemory(std::string* source);
// MemAvailable of the text of /proc/meminfo, in bytes; -1: it is not there.
int64_t MemAvailableIn(std::string_view meminfo);

}  // namespace oncilla
