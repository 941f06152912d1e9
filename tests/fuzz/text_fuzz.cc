// libFuzzer on TensorFlow's models in text form: parsing the text, and importing its graph.
#include "tests/fuzz/fuzz_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static oncilla::fuzz::MemoryFile file;
  file.Write({data, size});
  oncilla::fuzz::ImportEverything(file.path());
  return 0;
}
