// One tokenizer, and a grammar over it for each of the two forms.
#include "engine/base/text_format.h"

#include <absl/strings/charconv.h>

#include <charconv>
#include <limits>

namespace oncilla {
namespace {

constexpr int kMaxDepth = 100;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c); }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void AppendUtf8(uint32_t code, std::string& out) {
  const auto tail = [&](int shift) {
    out.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3f)));
  };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xc0 | code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | code >> 12));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xf0 | code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

struct Token {
  enum class Kind { kEnd, kWord, kNumber, kString, kSymbol, kBad };
  Kind kind = Kind::kEnd;
  std::string text;  // of kBad: what is wrong
  TextPosition at = {};

  bool Is(char symbol) const { return kind == Kind::kSymbol && text[0] == symbol; }
};

class Tokens {
 public:
  Tokens(std::string_view text, bool json) : text_(text), json_(json) { Next(); }

  const Token& now() const { return now_; }

  void Next() {
    SkipSpace();
    now_ = {};
    now_.at = at_;
    if (text_.empty()) return;
    const char c = text_[0];
    if (IsWordStart(c)) {
      now_.kind = Token::Kind::kWord;
      TakeWhile([](char part) { return IsWordPart(part); });
    } else if (IsDigit(c) || (c == '.' && text_.size() > 1 && IsDigit(text_[1]))) {
      now_.kind = Token::Kind::kNumber;
      TakeNumber();
    } else if (c == '"' || (c == '\'' && !json_)) {
      now_.kind = Token::Kind::kString;
      TakeString();
    } else {
      now_.kind = Token::Kind::kSymbol;
      now_.text.push_back(Take());
    }
  }

 private:
  char Take() {
    const char c = text_[0];
    text_.remove_prefix(1);
    if (c == '\n') {
      ++at_.line;
      at_.column = 1;
    } else {
      ++at_.column;
    }
    return c;
  }

  template <class F>
  void TakeWhile(F&& wanted) {
    while (!text_.empty() && wanted(text_[0])) now_.text.push_back(Take());
  }

  void SkipSpace() {
    while (!text_.empty()) {
      const char c = text_[0];
      if (c == '#' && !json_) {
        while (!text_.empty() && text_[0] != '\n') Take();
      } else if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        Take();
      } else {
        return;
      }
    }
  }

  // Takes every character that could belong to a number; the code that needs the value checks it.
  void TakeNumber() {
    const bool hex = text_.size() > 1 && text_[0] == '0' && (text_[1] | 0x20) == 'x';
    TakeWhile([&, last = '0'](char c) mutable {
      const bool sign = (c == '+' || c == '-') && (last | 0x20) == 'e' && !hex;
      last = c;
      return IsWordPart(c) || c == '.' || sign;
    });
  }

  void Fail(std::string what) {
    now_.kind = Token::Kind::kBad;
    now_.at = at_;
    now_.text = std::move(what);
  }

  void TakeString() {
    const char quote = Take();
    std::string out;
    while (true) {
      if (text_.empty() || text_[0] == '\n') return Fail("the string has no end");
      const char c = Take();
      if (c == quote) break;
      if (c != '\\') {
        out.push_back(c);
      } else if (!TakeEscape(out)) {
        return Fail("there is no such escape in a string");
      }
    }
    now_.text = std::move(out);
  }

  bool TakeEscape(std::string& out) {
    if (text_.empty()) return false;
    const char c = Take();
    constexpr std::string_view kNames = "abfnrtv\\\"'?/", kValues = "\a\b\f\n\r\t\v\\\"'?/";
    if (const size_t at = kNames.find(c); at != std::string_view::npos) {
      out.push_back(kValues[at]);
      return true;
    }
    if (c == 'u') return TakeCode(4, out);
    if (json_) return false;
    if (c == 'U') return TakeCode(8, out);
    uint32_t value = 0;
    if (c == 'x' || c == 'X') {
      if (!TakeHex(1, 2, value)) return false;
    } else if (c >= '0' && c <= '7') {
      value = static_cast<uint32_t>(c - '0');
      for (int i = 0; i < 2 && !text_.empty() && text_[0] >= '0' && text_[0] <= '7'; ++i) {
        value = value * 8 + static_cast<uint32_t>(Take() - '0');
      }
    } else {
      return false;
    }
    out.push_back(static_cast<char>(value));
    return value < 256;
  }

  bool TakeHex(int least, int most, uint32_t& value) {
    int taken = 0;
    for (; taken < most && !text_.empty() && HexDigit(text_[0]) >= 0; ++taken) {
      value = value * 16 + static_cast<uint32_t>(HexDigit(Take()));
    }
    return taken >= least;
  }

  // A code point, or the two halves of a surrogate pair.
  bool TakeCode(int digits, std::string& out) {
    uint32_t code = 0, low = 0;
    if (!TakeHex(digits, digits, code)) return false;
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(0, 2) == "\\u") {
      Take();
      Take();
      if (!TakeHex(4, 4, low) || low < 0xdc00 || low >= 0xe000) return false;
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    AppendUtf8(code, out);
    return true;
  }

  std::string_view text_;
  bool json_;
  TextPosition at_;
  Token now_;
};

class Grammar {
 public:
  Grammar(std::string_view text, bool json, TextSink& sink)
      : tokens_(text, json), json_(json), sink_(sink) {}

  Status Text() { return Members(Token::Kind::kEnd, 0, 0); }

  Status Json() {
    ONCILLA_TRY(Expect('{'));
    ONCILLA_TRY(JsonMembers(0));
    if (now().kind == Token::Kind::kEnd) return {};
    return Refuse("there is text after the object");
  }

 private:
  const Token& now() const { return tokens_.now(); }

  Status Refuse(std::string what) const {
    if (now().kind == Token::Kind::kBad) return sink_.Refuse(now().at, now().text);
    return sink_.Refuse(now().at, std::move(what));
  }
  // Refuses with "expected a value, found '}'" and the like.
  Status Expected(std::string_view what) const {
    const bool end = now().kind == Token::Kind::kEnd;
    return Refuse(StrCat("expected ", what, ", found ",
                         end ? std::string("the end") : StrCat("'", now().text, "'")));
  }

  bool Taken(char symbol) {
    if (!now().Is(symbol)) return false;
    tokens_.Next();
    return true;
  }
  Status Expect(char symbol) {
    return Taken(symbol) ? Status() : Expected(StrCat("'", symbol, "'"));
  }

  // The members of a message up to its closing bracket, which is consumed, or to the end of the
  // text.
  Status Members(Token::Kind end, char bracket, int depth) {
    while (true) {
      if (end == Token::Kind::kEnd ? now().kind == end : Taken(bracket)) return {};
      const TextPosition at = now().at;
      ONCILLA_ASSIGN(const std::string name, Name());
      ONCILLA_TRY(Member(name, at, depth));
      if (!Taken(',')) Taken(';');
    }
  }

  // A word, or the name of an extension in brackets; no extension is known here.
  Result<std::string> Name() {
    std::string name = now().text;
    if (now().kind == Token::Kind::kWord) {
      tokens_.Next();
      return name;
    }
    if (!Taken('[')) return Expected("the name of a field");
    while (!now().Is(']')) {
      const bool part = now().kind == Token::Kind::kWord || now().Is('.') || now().Is('/') ||
                        now().Is('-') || now().kind == Token::Kind::kNumber;
      if (!part) return Expected("']'");
      name += now().text;
      tokens_.Next();
    }
    tokens_.Next();
    return name + "]";
  }

  Status Member(const std::string& name, TextPosition at, int depth) {
    const bool colon = Taken(':');
    if (Taken('[')) {
      if (Taken(']')) return {};
      do {
        ONCILLA_TRY(Value(name, at, depth));
      } while (Taken(','));
      return Expect(']');
    }
    if (!colon && !now().Is('{') && !now().Is('<')) return Expected("':' or '{'");
    return Value(name, at, depth);
  }

  Status Value(const std::string& name, TextPosition at, int depth) {
    if (!now().Is('{') && !now().Is('<')) return Scalar(name, at);
    if (depth + 1 > kMaxDepth) return Refuse("messages nest too deeply");
    const char close = now().Is('{') ? '}' : '>';
    tokens_.Next();
    ONCILLA_TRY(sink_.BeginMessage(name, at));
    ONCILLA_TRY(Members(Token::Kind::kSymbol, close, depth + 1));
    return sink_.EndMessage();
  }

  Status Scalar(const std::string& name, TextPosition at) {
    TextScalar value;
    value.at = now().at;
    const bool minus = Taken('-');
    value.text = minus ? "-" : "";
    if (now().kind == Token::Kind::kString && !minus) {
      value.kind = TextScalar::Kind::kString;
      do {
        value.text += now().text;
        tokens_.Next();
      } while (now().kind == Token::Kind::kString && !json_);
      if (now().kind == Token::Kind::kBad) return Refuse("");
    } else if (now().kind == Token::Kind::kNumber ||
               (now().kind == Token::Kind::kWord && (!json_ || IsJsonWord(now().text)))) {
      value.kind =
          now().kind == Token::Kind::kNumber ? TextScalar::Kind::kNumber : TextScalar::Kind::kWord;
      value.text += now().text;
      tokens_.Next();
    } else {
      return Expected("a value");
    }
    return sink_.Scalar(name, at, std::move(value));
  }

  // The members of an object after its opening brace, up to and including the closing one.
  Status JsonMembers(int depth) {
    if (Taken('}')) return {};
    do {
      const TextPosition at = now().at;
      if (now().kind != Token::Kind::kString) return Expected("a name in double quotes");
      const std::string name = now().text;
      tokens_.Next();
      ONCILLA_TRY(Expect(':'));
      if (!Taken('[')) {
        ONCILLA_TRY(JsonValue(name, at, depth));
        continue;
      }
      if (Taken(']')) continue;
      do {
        ONCILLA_TRY(JsonValue(name, at, depth));
      } while (Taken(','));
      ONCILLA_TRY(Expect(']'));
    } while (Taken(','));
    return Expect('}');
  }

  Status JsonValue(const std::string& name, TextPosition at, int depth) {
    if (now().Is('{')) {
      if (depth + 1 > kMaxDepth) return Refuse("objects nest too deeply");
      tokens_.Next();
      ONCILLA_TRY(sink_.BeginMessage(name, at));
      ONCILLA_TRY(JsonMembers(depth + 1));
      return sink_.EndMessage();
    }
    if (now().kind == Token::Kind::kWord && now().text == "null") {
      tokens_.Next();
      return {};
    }
    return Scalar(name, at);
  }

  static bool IsJsonWord(std::string_view word) { return word == "true" || word == "false"; }

  Tokens tokens_;
  const bool json_;
  TextSink& sink_;
};

// The magnitude of a C literal, after its sign.
std::optional<uint64_t> Magnitude(std::string_view text) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Status ReadTextFormat(std::string_view text, TextSink& sink) {
  return Grammar(text, false, sink).Text();
}

Status ReadJsonObject(std::string_view text, TextSink& sink) {
  return Grammar(text, true, sink).Json();
}

std::optional<uint64_t> TextToUnsigned(std::string_view text) {
  return text.empty() || !IsDigit(text[0]) ? std::nullopt : Magnitude(text);
}

std::optional<int64_t> TextToInt(std::string_view text) {
  const bool negative = text.substr(0, 1) == "-";
  const auto magnitude = TextToUnsigned(text.substr(negative ? 1 : 0));
  if (!magnitude.has_value()) return std::nullopt;
  const uint64_t most = negative ? uint64_t{1} << 63 : (uint64_t{1} << 63) - 1;
  if (*magnitude > most) return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - *magnitude : *magnitude);
}

std::optional<double> TextToDouble(std::string_view text) {
  const bool negative = text.substr(0, 1) == "-";
  if (negative) text.remove_prefix(1);
  if (text.empty() || text[0] == '-' || text[0] == '+') return std::nullopt;
  const bool hex = text.size() > 1 && text[0] == '0' && (text[1] | 0x20) == 'x';
  double value = 0;
  if (hex || (text.size() > 1 && text[0] == '0' &&
              text.find_first_not_of("01234567") == std::string_view::npos)) {
    const auto whole = Magnitude(text);
    if (!whole.has_value()) return std::nullopt;
    value = static_cast<double>(*whole);
  } else {
    if (IsDigit(text[0]) && (text.back() | 0x20) == 'f') text.remove_suffix(1);
    const auto result = absl::from_chars(text.data(), text.data() + text.size(), value);
    const bool range = result.ec == std::errc::result_out_of_range;
    if ((result.ec != std::errc() && !range) || result.ptr != text.data() + text.size()) {
      return std::nullopt;
    }
    if (range && value > 1) value = std::numeric_limits<double>::infinity();
  }
  return negative ? -value : value;
}

std::string QuotedText(std::string_view text, bool json) {
  std::string out = "\"";
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (json && byte < 0x20) {
      out += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
    } else if (!json && (byte < 0x20 || byte >= 0x7f)) {
      const auto digit = [&](int shift) { return static_cast<char>('0' + ((byte >> shift) & 7)); };
      out += {'\\', digit(6), digit(3), digit(0)};
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

}  // namespace oncilla
