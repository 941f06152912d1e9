// Hashes: SHA-256 for content keys (compiled programs, plans, model fingerprints), CRC-32C for
// the checksums inside TensorFlow's checkpoints and records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace oncilla {

// SHA-256 as FIPS 180-4 states it. A plain value: copy it to hash several texts with a common
// prefix.
class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text) {
    Update(std::as_bytes(std::span<const char>(text.data(), text.size())));
  }
  // Hashes the length first, so that different lists of fields never hash the same bytes.
  void UpdateField(std::string_view text);

  // The digest of everything hashed so far; more may be added afterwards.
  Digest Finish() const;
  std::string FinishHex() const;  // 64 digits, lower case

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_ = {};
  uint64_t length_ = 0;  // bytes fed
};

std::string Sha256Hex(std::string_view text);

// Continues the CRC-32C (Castagnoli) `crc` of preceding bytes over `bytes`; start with 0. Uses the
// CPU's instruction where it has one.
uint32_t Crc32c(uint32_t crc, std::span<const std::byte> bytes);
inline uint32_t Crc32c(std::span<const std::byte> bytes) { return Crc32c(0, bytes); }
inline uint32_t Crc32c(std::string_view text) {
  return Crc32c(0, std::as_bytes(std::span<const char>(text.data(), text.size())));
}
// The same from tables only, for checking the other.
uint32_t Crc32cPortable(uint32_t crc, std::span<const std::byte> bytes);

// TensorFlow and LevelDB store a CRC masked, so that the CRC of data that holds CRCs stays useful:
// rotated right by 15 bits, plus a constant.
inline constexpr uint32_t MaskCrc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
inline constexpr uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace oncilla
