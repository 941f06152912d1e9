// JsonWriter: writes JSON text member by member. It places commas and quotes and escapes text;
// bytes that are not UTF-8 become '?'. It does not check nesting: wrong calls give wrong JSON.
//
//   JsonWriter json;
//   json.Open('{').Key("devices").Open('[').Value("CPU:0").Close(']').Close('}');
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace oncilla {

class JsonWriter {
 public:
  JsonWriter& Open(char bracket);  // '{' or '['
  JsonWriter& Close(char bracket);
  JsonWriter& Key(std::string_view name);
  JsonWriter& Value(std::string_view text);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  JsonWriter& Value(int64_t number);
  JsonWriter& Value(int number) { return Value(int64_t{number}); }
  JsonWriter& Value(bool truth);
  JsonWriter& Value(double number);  // what is not finite becomes null
  JsonWriter& Raw(std::string_view json);

  template <class T>
  JsonWriter& Field(std::string_view name, const T& value) {
    return Key(name).Value(value);
  }
  std::string Take() { return std::move(out_); }

 private:
  void Separate();

  std::string out_;
  bool first_ = true;  // nothing has been written yet at this level
};

}  // namespace oncilla
