// A library that only tells that it was loaded: it writes the file named by RECORDING_DRIVER_LOG.
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void Loaded(void) {
  const char* path = getenv("RECORDING_DRIVER_LOG");
  FILE* file = path == NULL ? NULL : fopen(path, "a");
  if (file != NULL) {
    fputs("loaded\n", file);
    fclose(file);
  }
}
