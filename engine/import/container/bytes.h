// The header of a container and its checksums, shared by the writer and the reader. All numbers are
// little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace oncilla::container {

inline constexpr std::string_view kMagic{"\x8fOncilla", 8};
inline constexpr size_t kHeaderBytes = 64;
inline constexpr uint64_t kPage = 4096;     // the weights begin at a multiple of this
inline constexpr uint64_t kAlignment = 64;  // of each constant

struct Header {
  uint32_t version = 0;
  uint64_t graph_bytes = 0;  // the graph part follows the header
  uint64_t graph_hash = 0;
  uint64_t weights_offset = 0;
  uint64_t weights_bytes = 0;
};

std::string WriteHeader(const Header& header);
// Nothing when the bytes are not a header or its own checksum differs. `bytes` must have
// kHeaderBytes.
std::optional<Header> ReadHeader(std::string_view bytes);

// XXH3, 64 bits, seed 0.
uint64_t Hash(std::span<const std::byte> bytes);
uint64_t Hash(std::string_view text);

constexpr uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace oncilla::container
