// Hashes against published vectors (FIPS 180-4 examples, RFC 3720 B.4), and against the same input
// in pieces.
#include "engine/base/hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace oncilla {
namespace {

TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                      "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesMakeTheWhole) {
  std::string text(300, '\0');
  std::iota(text.begin(), text.end(), '\1');
  for (size_t length = 0; length <= text.size(); ++length) {
    const std::string_view whole(text.data(), length);
    Sha256 hash;
    for (size_t at = 0, step = 1; at < length; at += step, step = step * 2 % 67 + 1) {
      hash.Update(whole.substr(at, step));
      (void)hash.FinishHex();  // looking at the digest does not disturb it
    }
    EXPECT_EQ(hash.FinishHex(), Sha256Hex(whole)) << length;
  }
}

TEST(Sha256, FieldsDoNotRunTogether) {
  Sha256 a, b;
  a.UpdateField("ab"), a.UpdateField("c");
  b.UpdateField("a"), b.UpdateField("bc");
  EXPECT_NE(a.FinishHex(), b.FinishHex());
}

TEST(Crc32c, PublishedVectors) {
  EXPECT_EQ(Crc32c(std::string_view("123456789")), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string up(32, '\0');
  std::iota(up.begin(), up.end(), '\0');
  EXPECT_EQ(Crc32c(up), 0x46dd794eu);
  EXPECT_EQ(Crc32c(std::string(up.rbegin(), up.rend())), 0x113fdb5cu);
  EXPECT_EQ(Crc32c(std::string_view()), 0u);
}

TEST(Crc32c, InstructionTableAndPiecesAgree) {
  std::vector<std::byte> bytes(1000);
  uint32_t seed = 1;
  for (std::byte& b : bytes) b = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{900}}) {
      const std::span<const std::byte> part = std::span(bytes).subspan(begin, length);
      const uint32_t whole = Crc32c(part);
      EXPECT_EQ(whole, Crc32cPortable(0, part));
      const size_t half = length / 3;
      EXPECT_EQ(whole, Crc32c(Crc32c(part.first(half)), part.subspan(half)));
    }
  }
}

TEST(Crc32c, MaskIsUndone) {
  EXPECT_EQ(MaskCrc(0), 0xa282ead8u);
  EXPECT_EQ(MaskCrc(0x00008000u), 0xa282ead9u);
  for (uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu}) EXPECT_EQ(UnmaskCrc(MaskCrc(crc)), crc);
}

}  // namespace
}  // namespace oncilla
