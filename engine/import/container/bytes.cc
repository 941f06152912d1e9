// The header: magic (8 bytes), version (4), zeros (4), size of the graph (8) and its hash (8),
// offset and size of the weights (8 each), zeros (8), hash of all that (8).
#include "engine/import/container/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace oncilla::container {
namespace {

void Put(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t Get(std::string_view from, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= uint64_t{static_cast<uint8_t>(from[at + static_cast<size_t>(i)])} << (8 * i);
  }
  return value;
}

}  // namespace

uint64_t Hash(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
uint64_t Hash(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string WriteHeader(const Header& header) {
  std::string out(kMagic);
  Put(&out, header.version, 4);
  Put(&out, 0, 4);
  Put(&out, header.graph_bytes, 8);
  Put(&out, header.graph_hash, 8);
  Put(&out, header.weights_offset, 8);
  Put(&out, header.weights_bytes, 8);
  Put(&out, 0, 8);
  Put(&out, Hash(out), 8);
  return out;
}

std::optional<Header> ReadHeader(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  if (Get(bytes, 56, 8) != Hash(bytes.substr(0, 56))) return std::nullopt;
  Header header;
  header.version = static_cast<uint32_t>(Get(bytes, 8, 4));
  header.graph_bytes = Get(bytes, 16, 8);
  header.graph_hash = Get(bytes, 24, 8);
  header.weights_offset = Get(bytes, 32, 8);
  header.weights_bytes = Get(bytes, 40, 8);
  return header;
}

}  // namespace oncilla::container
