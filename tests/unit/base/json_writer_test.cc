// JSON text: separators, escapes, bytes that are not valid text.
#include "engine/base/json_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "engine/base/format.h"
#include "engine/base/options.h"

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

// Sets a locale with a decimal comma; one that is not installed is built in the test's folder.
bool SetCommaLocale() {
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) return true;
  }
  const std::string folder = StrCat(testing::TempDir(), "oncilla_locales_", getpid());
  std::filesystem::create_directories(folder);
  const std::string command =
      "localedef -i de_DE -f UTF-8 '" + folder + "/de_DE.UTF-8' >/dev/null 2>&1";
  (void)!std::system(command.c_str());
  setenv("LOCPATH", folder.c_str(), 1);
  const bool set = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  unsetenv("LOCPATH");
  std::filesystem::remove_all(folder);
  return set;
}

TEST(JsonWriter, NumbersDoNotFollowTheLocale) {
  if (!SetCommaLocale()) GTEST_SKIP() << "no locale with a decimal comma, and localedef makes none";
  char usual[8];
  std::snprintf(usual, sizeof(usual), "%.1f", 0.5);
  JsonWriter json;
  json.Open('[').Value(0.315789).Value(1e-7).Value(1234567.0).Value(-2.0).Close(']');
  const std::string bytes = HumanBytes(23762000000);
  const std::string option = options_internal::PrintScalar(0.1).scalar.text;
  std::setlocale(LC_ALL, "C");
  EXPECT_STREQ(usual, "0,5");
  EXPECT_EQ(json.Take(), "[0.315789,1e-07,1.23457e+06,-2]");
  EXPECT_EQ(bytes, "22.13 GiB");
  EXPECT_EQ(option, "0.1");
}

}  // namespace
}  // namespace oncilla
