// Readers of two text forms of nested messages: protocol buffers' text format and JSON. Neither
// needs a schema: the sink that receives the members decides what a name means.
//
//   device: "gpu"                          {"device": "gpu",
//   device_memory {                         "device_memory": {
//     key: "GPU" value { limit: 5 }           "GPU": {"limit": 5}
//   }                                       }}
//
// Text format: https://protobuf.dev/reference/protobuf/textformat-spec. JSON: RFC 8259.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace oncilla {

struct TextPosition {
  int line = 1, column = 1;  // columns count bytes
};

struct TextScalar {
  enum class Kind { kString, kNumber, kWord };  // a word is true, false, inf or the name of an enum
  Kind kind = Kind::kWord;
  // The bytes of a string, without quotes and escapes; a number or a word as it is written, with
  // its sign.
  std::string text;
  TextPosition at = {};
};

// Receives each member in the order of the text. A list is passed as one member after another; a
// member that is null in JSON is left out. A failed Status ends the reading and is returned.
class TextSink {
 public:
  virtual ~TextSink() = default;
  virtual Status BeginMessage(std::string_view name, TextPosition at) = 0;
  virtual Status EndMessage() = 0;
  virtual Status Scalar(std::string_view name, TextPosition at, TextScalar value) = 0;
  // The failure for invalid text at position `at`: the sink knows which file it is.
  virtual Status Refuse(TextPosition at, std::string what) const = 0;
};

// Messages may be nested 100 deep. Only the text of one string at a time is held in memory.
Status ReadTextFormat(std::string_view text, TextSink& sink);
// The text must be one object; lists must not contain lists.
Status ReadJsonObject(std::string_view text, TextSink& sink);

// The value of a number in decimal or, as in C, octal or hexadecimal notation. Nothing if the text
// is not such a number, or if it is out of range.
std::optional<int64_t> TextToInt(std::string_view text);
std::optional<uint64_t> TextToUnsigned(std::string_view text);
// Also accepts "inf", "nan" and a trailing 'f'.
std::optional<double> TextToDouble(std::string_view text);
// `text` in double quotes, with the escapes that both forms share or, for other bytes below
// space and above 0x7e, those of `json` or of the text format.
std::string QuotedText(std::string_view text, bool json);

}  // namespace oncilla
