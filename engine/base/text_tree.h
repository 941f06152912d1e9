// A short text parsed into a tree: the common structure of protocol buffers' text format and JSON,
// with the position of each part. For configurations; models are read without a tree
// (text_format.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text_format.h"

namespace oncilla {

struct TextMember;

struct TextTree {
  // Reading gives scalars and messages: only the user of the tree knows whether members of one name
  // are a list, and whether a message is a map.
  enum class Kind { kScalar, kMessage, kList, kMap };
  Kind kind = Kind::kMessage;
  TextPosition at = {};  // of a scalar, or of the name of a message
  TextScalar scalar = {};
  std::vector<TextMember> members;  // of a list: without names
};

struct TextMember {
  std::string name;
  TextTree value;
  TextPosition at = {};  // of the name
};

enum class TextForm { kText, kJson };

// InvalidArgument, with line and column, for invalid text.
Result<TextTree> ReadTextTree(std::string_view text, TextForm form);

// Indented by two spaces. A map in the text format is a list of messages with a key and a value.
std::string PrintTextTree(const TextTree& message, TextForm form);

// InvalidArgument "line 3, column 7: WHAT", or WHAT alone for what comes from no text (line 0).
Status RefuseText(TextPosition at, std::string_view what);

}  // namespace oncilla
