// libFuzzer on ONNX files: reading, tensors, inlining of functions, lowering of every op.
#include <algorithm>

#include "tests/fuzz/fuzz_model.h"
#include "tests/fuzz/wire_mutator.h"

ONCILLA_FUZZ_MESSAGES()

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static oncilla::fuzz::MemoryFile file;
  file.Write({data, size});
  oncilla::fuzz::ImportEverything(file.path());
  return 0;
}
