// The reader of StableHLO modules on damaged files: a clear failure or a module, never a crash.
#include <gtest/gtest.h>

#include "engine/base/file.h"
#include "engine/import/stablehlo/builder.h"
#include "engine/import/stablehlo/bytecode.h"
#include "engine/import/stablehlo/cursor.h"

namespace oncilla {
namespace {

std::string ReadSample(const std::string& name) {
  auto text = ReadFile(StrCat(ONCILLA_SOURCE_DIR, "/testdata/stablehlo/", name), 1u << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

// Reads a module and lowers its main function for inputs of the types that it names.
Status ReadAndLower(std::string_view bytes) {
  // A copy of exactly this size, so that a read beyond it is seen.
  const auto own = std::make_shared<std::vector<char>>(bytes.begin(), bytes.end());
  ONCILLA_ASSIGN(const HloModule module, ReadHloModule({own->data(), own->size()}, own));
  const auto main = module.functions.find("main");
  if (main == module.functions.end()) return NotFound("no main");
  Module target{Graph(OpSet::Builtin())};
  Values arguments;
  for (int index : main->second.argument_types) {
    const HloType& type = module.types[static_cast<size_t>(index)];
    if (type.dtype == DType::kInvalid || type.sizes.size() > static_cast<size_t>(kMaxRank)) {
      return Unsupported("an argument");
    }
    arguments.push_back(
        target.main.AddInput(StrCat("x", arguments.size()), Fact::Of(type.dtype, type.shape())));
  }
  return LowerHloFunction(module, "main", target, target.main, "call", arguments).status();
}

class StableHlo : public ::testing::TestWithParam<const char*> {};

TEST_P(StableHlo, IsLowered) {
  const Status status = ReadAndLower(ReadSample(GetParam()));
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(StableHlo, CutAnywhereIsRefused) {
  const std::string whole = ReadSample(GetParam());
  for (size_t size = 0; size < whole.size(); ++size) {
    const Status status = ReadAndLower(std::string_view(whole).substr(0, size));
    EXPECT_FALSE(status.ok()) << "cut to " << size;
    EXPECT_FALSE(Message(status).empty());
  }
}

TEST_P(StableHlo, ChangedBytesDoNoHarm) {
  const std::string whole = ReadSample(GetParam());
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x02, 0x80, 0xFF, 0x3E}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const Status status = ReadAndLower(changed);
      if (!status.ok()) {
        EXPECT_FALSE(Message(status).empty());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, StableHlo,
                         ::testing::Values("net.mlirbc", "control.mlirbc", "open.mlirbc"));

TEST(BytecodeCursor, Numbers) {
  const std::string bytes("\x0d\x02\x01\x00\x01\x02\x03\x04\x05\x06\x07\x08\x05", 13);
  BytecodeCursor cursor(bytes);
  EXPECT_EQ(cursor.Number(), 6u);     // one byte
  EXPECT_EQ(cursor.Number(), 0x40u);  // two
  EXPECT_EQ(cursor.Number(), 0x0807060504030201u);
  EXPECT_EQ(cursor.Signed(), 1);
  EXPECT_TRUE(cursor.ok());
  EXPECT_EQ(cursor.Number(), 0u);
  EXPECT_FALSE(cursor.ok());
}

TEST(BytecodeCursor, CountsAreBoundedByWhatIsLeft) {
  BytecodeCursor cursor(std::string_view("\xff\x01\x01", 3));
  EXPECT_EQ(cursor.Count(), 0u);
  EXPECT_FALSE(cursor.ok());
}

TEST(StableHloModule, RefusesOtherVersionsAndFiles) {
  EXPECT_FALSE(IsMlirBytecode("module {}"));
  EXPECT_FALSE(ReadHloModule("", nullptr).ok());
  std::string newer = ReadSample("net.mlirbc");
  newer[4] = '\x41';
  const auto read = ReadHloModule(newer, nullptr);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), Code::kUnimplemented);
}

}  // namespace
}  // namespace oncilla
