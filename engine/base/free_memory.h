// Memory that was freed and that the C library keeps for later.
#pragma once

namespace oncilla {

// Gives it back to the system, where the C library can (glibc). A few milliseconds after much was
// freed; for ends of long work: a graph compiled, a model unloaded.
void ReturnFreeMemory();

}  // namespace oncilla
