// SHA-256 block by block; CRC-32C eight bytes at a time, by instruction or by eight tables.
#include "engine/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define ONCILLA_CRC_X86 1
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define ONCILLA_CRC_ARM 1
#endif

namespace oncilla {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t LoadBig32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 |
         static_cast<uint32_t>(p[2]) << 8 | p[3];
}

// Adds one 64-byte block (FIPS 180-4, 6.2.2).
void AddBlock(std::array<uint32_t, 8>& state, const uint8_t* block) {
  uint32_t w[64];
  for (int t = 0; t < 16; ++t) w[t] = LoadBig32(block + 4 * t);
  for (int t = 16; t < 64; ++t) {
    const uint32_t a = w[t - 15], b = w[t - 2];
    const uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
    const uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int t = 0; t < 64; ++t) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t choice = (e & f) ^ (~e & g);
    const uint32_t t1 = h + s1 + choice + kRound[t] + w[t];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + s0 + majority;
  }
  const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[static_cast<size_t>(i)] += sum[i];
}

// tables[k][b]: the CRC of byte b followed by k zero bytes, polynomial 0x1edc6f41 reflected.
struct CrcTables {
  uint32_t t[8][256];
};
constexpr CrcTables MakeCrcTables() {
  CrcTables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
    tables.t[0][b] = crc;
  }
  for (int k = 1; k < 8; ++k) {
    for (uint32_t b = 0; b < 256; ++b) {
      const uint32_t before = tables.t[k - 1][b];
      tables.t[k][b] = (before >> 8) ^ tables.t[0][before & 0xff];
    }
  }
  return tables;
}
constexpr CrcTables kCrc = MakeCrcTables();

#if defined(ONCILLA_CRC_X86)
__attribute__((target("sse4.2"))) uint32_t CrcByInstruction(uint32_t crc, const uint8_t* p,
                                                            size_t n) {
  uint64_t state = ~crc;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    state = _mm_crc32_u64(state, word);
  }
  uint32_t rest = static_cast<uint32_t>(state);
  for (; n > 0; ++p, --n) rest = _mm_crc32_u8(rest, *p);
  return ~rest;
}
bool HasCrcInstruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(ONCILLA_CRC_ARM)
uint32_t CrcByInstruction(uint32_t crc, const uint8_t* p, size_t n) {
  crc = ~crc;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    crc = __crc32cd(crc, word);
  }
  for (; n > 0; ++p, --n) crc = __crc32cb(crc, *p);
  return ~crc;
}
bool HasCrcInstruction() { return true; }
#else
uint32_t CrcByInstruction(uint32_t crc, const uint8_t*, size_t) { return crc; }
bool HasCrcInstruction() { return false; }
#endif

}  // namespace

void Sha256::Update(std::span<const std::byte> bytes) {
  const uint8_t* p = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t n = bytes.size();
  const size_t held = length_ % 64;
  length_ += n;
  if (held > 0) {
    const size_t take = std::min(n, 64 - held);
    std::memcpy(block_.data() + held, p, take);
    p += take, n -= take;
    if (held + take < 64) return;
    AddBlock(state_, block_.data());
  }
  for (; n >= 64; p += 64, n -= 64) AddBlock(state_, p);
  if (n > 0) std::memcpy(block_.data(), p, n);
}

void Sha256::UpdateField(std::string_view text) {
  uint64_t length = text.size();
  std::array<std::byte, 8> little;
  for (std::byte& b : little) b = static_cast<std::byte>(length & 0xff), length >>= 8;
  Update(little);
  Update(text);
}

Sha256::Digest Sha256::Finish() const {
  // The ending: a one bit, zeros, and the length in bits in the last eight bytes of a block.
  std::array<uint8_t, 128> tail = {};
  const size_t held = length_ % 64;
  std::memcpy(tail.data(), block_.data(), held);
  tail[held] = 0x80;
  const size_t end = held < 56 ? 64 : 128;
  const uint64_t bits = length_ * 8;
  for (size_t i = 0; i < 8; ++i) tail[end - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
  std::array<uint32_t, 8> state = state_;
  for (size_t at = 0; at < end; at += 64) AddBlock(state, tail.data() + at);
  Digest digest;
  for (size_t i = 0; i < 32; ++i) {
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

std::string Sha256::FinishHex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(64);
  for (uint8_t byte : Finish()) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string Sha256Hex(std::string_view text) {
  Sha256 hash;
  hash.Update(text);
  return hash.FinishHex();
}

uint32_t Crc32cPortable(uint32_t crc, std::span<const std::byte> bytes) {
  const uint8_t* p = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t n = bytes.size();
  crc = ~crc;
  for (; n >= 8; p += 8, n -= 8) {
    crc ^= static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 |
           static_cast<uint32_t>(p[2]) << 16 | static_cast<uint32_t>(p[3]) << 24;
    crc = kCrc.t[7][crc & 0xff] ^ kCrc.t[6][(crc >> 8) & 0xff] ^ kCrc.t[5][(crc >> 16) & 0xff] ^
          kCrc.t[4][crc >> 24] ^ kCrc.t[3][p[4]] ^ kCrc.t[2][p[5]] ^ kCrc.t[1][p[6]] ^
          kCrc.t[0][p[7]];
  }
  for (; n > 0; ++p, --n) crc = (crc >> 8) ^ kCrc.t[0][(crc ^ *p) & 0xff];
  return ~crc;
}

uint32_t Crc32c(uint32_t crc, std::span<const std::byte> bytes) {
  static const bool has_instruction = HasCrcInstruction();
  if (!has_instruction) return Crc32cPortable(crc, bytes);
  return CrcByInstruction(crc, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace oncilla
