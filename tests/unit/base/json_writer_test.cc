// JSON text: separators, escapes, bytes that are no text.
#include "engine/base/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>

namespace oncilla {
namespace {

TEST(JsonWriter, PlacesCommasAndNests) {
  JsonWriter json;
  json.Open('{').Field("a", 1).Key("b").Open('[').Value("x").Value(true).Value(0.5).Close(']');
  json.Key("c").Open('{').Close('}').Key("d").Open('[').Open('{').Field("e", int64_t{-7});
  json.Close('}').Open('{').Close('}').Close(']').Key("f").Raw("null").Close('}');
  EXPECT_EQ(json.Take(), R"({"a":1,"b":["x",true,0.5],"c":{},"d":[{"e":-7},{}],"f":null})");
}

TEST(JsonWriter, EscapesTextAndReplacesWhatIsNone) {
  const auto quoted = [](std::string_view text) {
    JsonWriter json;
    json.Value(text);
    return json.Take();
  };
  EXPECT_EQ(quoted("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
  EXPECT_EQ(quoted("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
  EXPECT_EQ(quoted("\xff|\xc3|\xc0\x80|\xed\xa0\x80|\xf5\x80\x80\x80"), "\"?|?|?\?|?\?\?|?\??\?\"");
  EXPECT_EQ(quoted(""), "\"\"");
}

TEST(JsonWriter, NumbersThatAreNoneAreNull) {
  JsonWriter json;
  json.Open('[').Value(std::nan("")).Value(HUGE_VAL).Close(']');
  EXPECT_EQ(json.Take(), "[null,null]");
}

}  // namespace
}  // namespace oncilla
