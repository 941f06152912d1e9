// Host memory and the system: how much is available, large pages, and giving freed memory back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace oncilla {

// Returns memory that was freed, but that the C library keeps for later, to the system (glibc
// only). Takes a few milliseconds after much was freed; meant for the end of long work: a graph
// compiled, a model unloaded.
void ReturnFreeMemory();

// Asks the system to back new memory by pages of 2 MiB where such pages fit into it: allocating
// them is many times as fast as allocating small ones. For memory that will be written to as a
// whole.
void AskForLargePages(void* data, int64_t bytes);
// Asks the system to allocate the pages of less memory than that at once, rather than one by one
// when they are touched. Has no effect where the system does not support it.
void AskForPages(void* data, int64_t bytes);

// How much this process may still allocate before the system runs short: MemAvailable of
// /proc/meminfo, or what its control group leaves if that is less; `source` is set to which of them
// it is. -1 if the system reports neither.
int64_t AvailableHostMemory(std::string* source);
// MemAvailable, in bytes, from the text of /proc/meminfo; -1 if it is not there.
int64_t MemAvailableIn(std::string_view meminfo);

}  // namespace oncilla
