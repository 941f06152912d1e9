// libFuzzer on the saved_model.pb of a SavedModel: signatures, object graph, restore graph, nodes.
// Its variables are those of a small model, so that unmutated names can be read.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "engine/base/file.h"
#include "tests/fuzz/fuzz_model.h"
#include "tests/fuzz/wire_mutator.h"

ONCILLA_FUZZ_MESSAGES()

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const oncilla::fuzz::MemoryFolder& folder = *[] {
    static oncilla::fuzz::MemoryFolder made;
    std::filesystem::copy(
        std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/models/mlp/variables",
        made.File("variables"));
    return &made;
  }();
  const oncilla::Status written = oncilla::WriteFile(folder.File("saved_model.pb"),
                                                     {reinterpret_cast<const char*>(data), size});
  if (!written.ok()) std::abort();
  oncilla::fuzz::ImportEverything(folder.path());
  return 0;
}
