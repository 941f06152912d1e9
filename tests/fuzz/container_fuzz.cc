// libFuzzer on the graph part of our own model files: a valid header is put before it, and weights
// of zeros after it, since their checksums would stop all other inputs.
#include <algorithm>

#include "engine/import/container/bytes.h"
#include "engine/import/container/container.h"
#include "tests/fuzz/fuzz_model.h"
#include "tests/fuzz/wire_mutator.h"

ONCILLA_FUZZ_MESSAGES()

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace container = oncilla::container;
  constexpr size_t kWeights = 1 << 16;
  const std::string_view graph(reinterpret_cast<const char*>(data), size);
  container::Header header;
  header.version = oncilla::kContainerVersion;
  header.graph_bytes = size;
  header.graph_hash = container::Hash(graph);
  header.weights_offset = container::RoundUp(container::kHeaderBytes + size, container::kPage);
  header.weights_bytes = kWeights;
  std::string bytes = container::WriteHeader(header);
  bytes += graph;
  bytes.resize(header.weights_offset + kWeights, '\0');
  static oncilla::fuzz::MemoryFile file;
  file.Write({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  oncilla::fuzz::ImportEverything(file.path());
  return 0;
}
