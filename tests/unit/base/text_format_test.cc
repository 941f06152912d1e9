// Texts as trees: protocol buffers' text format and JSON, and invalid texts.
#include "engine/base/text_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text_tree.h"

namespace oncilla {
namespace {

using testing::HasSubstr;

std::string Again(std::string_view text, TextForm from, TextForm to) {
  const auto tree = ReadTextTree(text, from);
  EXPECT_TRUE(tree.ok()) << tree.status();
  return tree.ok() ? PrintTextTree(*tree, to) : "";
}

std::string Refusal(std::string_view text, TextForm form = TextForm::kText) {
  const auto tree = ReadTextTree(text, form);
  EXPECT_FALSE(tree.ok()) << text;
  return tree.ok() ? "" : std::string(Message(tree.status()));
}

TEST(TextFormat, TakesWhatTheSpecificationHas) {
  const std::string all =
      "a: 1 b:-2.5e3, c : inf; # a comment\n"
      "d: 'single' \"and\" 'double'  e <f: true>  g {}\n"
      "h: [1, 2,3] i: [] j [{k: 1}, {k: 2}] [some.extension]: 5 l: NAME";
  EXPECT_EQ(Again(all, TextForm::kText, TextForm::kText),
            "a: 1\nb: -2.5e3\nc: inf\nd: \"singleanddouble\"\ne {\n  f: true\n}\ng {\n}\n"
            "h: 1\nh: 2\nh: 3\nj {\n  k: 1\n}\nj {\n  k: 2\n}\n[some.extension]: 5\nl: NAME\n");
}

TEST(TextFormat, Escapes) {
  const auto tree = ReadTextTree(R"(a: "\101\x42\t\"\\\u00e9\U0001F600")", TextForm::kText);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->members[0].value.scalar.text, "AB\t\"\\\xc3\xa9\xf0\x9f\x98\x80");
  const auto pair = ReadTextTree(R"({"a": "\ud83d\ude00\/"})", TextForm::kJson);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(pair->members[0].value.scalar.text, "\xf0\x9f\x98\x80/");
  for (const char* bad : {R"(a: "\q")", R"(a: "\xg")", R"(a: "\777")", R"(a: "\ud83d")"}) {
    EXPECT_THAT(Refusal(bad), HasSubstr("no such escape")) << bad;
  }
}

TEST(TextFormat, RefusesWithThePlace) {
  EXPECT_EQ(Refusal("a: 1\nb 2"), "line 2, column 3: expected ':' or '{', found '2'");
  EXPECT_EQ(Refusal("a {\n b: 1"), "line 2, column 6: expected the name of a field, found the end");
  EXPECT_EQ(Refusal("a: {"), "line 1, column 5: expected the name of a field, found the end");
  EXPECT_EQ(Refusal("a: -"), "line 1, column 5: expected a value, found the end");
  EXPECT_EQ(Refusal("a: -'x'"), "line 1, column 5: expected a value, found 'x'");
  EXPECT_EQ(Refusal("1: 2"), "line 1, column 1: expected the name of a field, found '1'");
  EXPECT_THAT(Refusal(std::string(1 << 20, '[')), HasSubstr("expected"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "a{";
  EXPECT_THAT(Refusal(deep), HasSubstr("nest too deeply"));
  for (size_t i = 0, at; i < 100'000 && (at = deep.find("a{", 5 * i)) != deep.npos; ++i) {
    deep.replace(at, 2, "{\"a\":");
  }
  EXPECT_THAT(Refusal(deep, TextForm::kJson), HasSubstr("line 1"));
}

TEST(Json, IsStrict) {
  EXPECT_EQ(Again(R"({"a": [1, "x", true], "b": {"c": null, "d": -1e5}})", TextForm::kJson,
                  TextForm::kText),
            "a: 1\na: \"x\"\na: true\nb {\n  d: -1e5\n}\n");
  for (const char* bad :
       {"{'a': 1}", "{a: 1}", "{\"a\": 1,}", "{\"a\": word}", "{\"a\": <b: 1>}", "{\"a\" 1}", "[1]",
        "{\"a\": [[1]]}", "{\"a\": 1} {}", "{\"a\": \"x\" \"y\"}", "{\"a\": 1 # c\n}"}) {
    EXPECT_THAT(Refusal(bad, TextForm::kJson), HasSubstr("line 1, column")) << bad;
  }
}

TEST(TextNumbers, AsTheyAreWritten) {
  EXPECT_EQ(TextToInt("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(TextToInt("9223372036854775808"), std::nullopt);
  EXPECT_EQ(TextToUnsigned("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(TextToInt("0x1F"), 31);
  EXPECT_EQ(TextToInt("017"), 15);
  for (const char* bad : {"", "-", "1.0", "1e3", "0x", "08", "--1", "+1"}) {
    EXPECT_EQ(TextToInt(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(TextToDouble("1.5f"), 1.5);
  EXPECT_EQ(TextToDouble("-inf"), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(*TextToDouble("nan")));
  EXPECT_EQ(TextToDouble("0x10"), 16.0);
  EXPECT_EQ(TextToDouble("1e999"), HUGE_VAL);
  EXPECT_EQ(TextToDouble("1.5g"), std::nullopt);
}

}  // namespace
}  // namespace oncilla
