// Removes comments, joins lines, executes directives, keeps the rest; see preprocess.h.
#include "tests/case_runner/preprocess.h"

#include <algorithm>
#include <cctype>

namespace oncilla::testing {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsName(std::string_view token) { return IsWord(token[0]) && std::isdigit(token[0]) == 0; }

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// A condition of #if, with C's precedence. Names without a definition count as 0.
class Condition {
 public:
  explicit Condition(const Tokens& tokens) : tokens_(tokens) {}
  Result<bool> Value() {
    const int64_t value = Binary(0);
    if (bad_ || at_ != tokens_.size()) return InvalidArgument("a condition of no known form");
    return value != 0;
  }

 private:
  static int LevelOf(std::string_view op) {
    static const std::vector<std::vector<std::string_view>> kLevels = {
        {"||"}, {"&&"}, {"==", "!="}, {"<", ">", "<=", ">="}, {"+", "-"}, {"*", "/", "%"}};
    for (size_t i = 0; i < kLevels.size(); ++i) {
      if (std::ranges::count(kLevels[i], op) > 0) return static_cast<int>(i);
    }
    return -1;
  }
  static int64_t Apply(std::string_view op, int64_t a, int64_t b) {
    if (op == "||") return a != 0 || b != 0;
    if (op == "&&") return a != 0 && b != 0;
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    if (op == "<") return a < b;
    if (op == ">") return a > b;
    if (op == "<=") return a <= b;
    if (op == ">=") return a >= b;
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    return b == 0 ? 0 : op == "/" ? a / b : a % b;
  }
  bool Take(std::string_view token) {
    if (at_ >= tokens_.size() || tokens_[at_] != token) return false;
    ++at_;
    return true;
  }
  int64_t Binary(int level) {
    int64_t value = Unary();
    while (at_ < tokens_.size() && LevelOf(tokens_[at_]) >= level) {
      const std::string op = tokens_[at_++];
      value = Apply(op, value, Binary(LevelOf(op) + 1));
    }
    return value;
  }
  int64_t Unary() {
    if (Take("!")) return Unary() == 0;
    if (Take("-")) return -Unary();
    if (Take("(")) {
      const int64_t value = Binary(0);
      bad_ |= !Take(")");
      return value;
    }
    if (at_ >= tokens_.size() || !IsWord(tokens_[at_][0])) {
      bad_ = true;
      return 0;
    }
    const std::string& token = tokens_[at_++];
    return IsName(token) ? 0 : std::strtoll(token.c_str(), nullptr, 0);
  }

  const Tokens& tokens_;
  size_t at_ = 0;
  bool bad_ = false;
};

}  // namespace

Tokens Tokenize(std::string_view text) {
  Tokens out;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t end = at + 1;
    if (IsWord(c)) {
      while (end < text.size() &&
             (IsWord(text[end]) || (std::isdigit(c) != 0 && text[end] == '.'))) {
        ++end;
      }
    } else if (c == '"') {
      end = std::min(text.find('"', end), text.size() - 1) + 1;
    } else if (end < text.size() &&
               ((c == text[end] && std::string_view("#&|=<>").find(c) != std::string_view::npos) ||
                (text[end] == '=' && std::string_view("!<>").find(c) != std::string_view::npos))) {
      ++end;
    }
    if (std::isspace(static_cast<unsigned char>(c)) == 0)
      out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

Status Preprocessor::Read(std::string text) {
  ReplaceAll(text, "\\\n", " ");
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    line = line.substr(0, line.find("//"));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.find("/*") != line.npos) return InvalidArgument("a comment of the kind /*");
    if (!line.empty() && line[0] == '#') {
      ONCILLA_TRY(Directive(line.substr(1)));
    } else if (conditions_.empty() || conditions_.back().now) {
      const Tokens more = Tokenize(line);
      tokens.insert(tokens.end(), more.begin(), more.end());
    }
  }
  return conditions_.empty() ? Status() : InvalidArgument("an #if has no #endif");
}

Status Preprocessor::Directive(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const size_t end = static_cast<size_t>(std::ranges::find_if_not(line, IsWord) - line.begin());
  const std::string_view word = line.substr(0, end), rest = line.substr(end);
  const bool reads = conditions_.empty() || conditions_.back().now;
  if (word == "if" || word == "ifdef" || word == "ifndef") {
    Tokens tokens = Tokenize(rest);
    if (word != "if") tokens.insert(tokens.begin(), "defined");
    bool holds = false;
    if (reads) {
      ONCILLA_ASSIGN(holds, Holds(tokens));
      holds ^= word == "ifndef";
    }
    conditions_.push_back({reads, holds, holds});
    return Status();
  }
  if (word == "elif" || word == "else" || word == "endif") {
    if (conditions_.empty()) return InvalidArgument("#", word, " without #if");
    Condition& c = conditions_.back();
    c.now = false;
    if (word == "endif") {
      conditions_.pop_back();
    } else if (c.outside && !c.taken) {
      c.now = true;
      if (word == "elif") {
        ONCILLA_ASSIGN(c.now, Holds(Tokenize(rest)));
      }
      c.taken = c.now;
    }
    return Status();
  }
  if (word == "undef") return InvalidArgument("#undef");
  if (reads && word == "define") Define(rest);
  return Status();
}

void Preprocessor::Define(std::string_view text) {
  text.remove_prefix(text.find_first_not_of(' '));
  const size_t end = static_cast<size_t>(std::ranges::find_if_not(text, IsWord) - text.begin());
  Macro macro;
  macro.function = end < text.size() && text[end] == '(';
  const size_t close = macro.function ? text.find(')') : end;
  if (macro.function) {
    macro.parameters = Tokenize(text.substr(end + 1, close - end - 1));
    std::erase(macro.parameters, ",");
  }
  macro.body = Tokenize(text.substr(std::min(text.size(), close + (macro.function ? 1 : 0))));
  macros_[std::string(text.substr(0, end))] = std::move(macro);
}

Result<bool> Preprocessor::Holds(const Tokens& condition) const {
  Tokens plain;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] != "defined") {
      plain.push_back(condition[i]);
      continue;
    }
    const bool parens = i + 3 < condition.size() && condition[i + 1] == "(";
    if (i + 1 >= condition.size()) return InvalidArgument("'defined' without a name");
    plain.emplace_back(macros_.contains(condition[i + (parens ? 2 : 1)]) ? "1" : "0");
    i += parens ? 3 : 1;
  }
  return testing::Condition(Expand(plain)).Value();
}

Tokens Preprocessor::Expand(const Tokens& in, const std::set<std::string>& hidden) const {
  Tokens out;
  for (size_t i = 0; i < in.size(); ++i) {
    const auto found = macros_.find(in[i]);
    const bool call = i + 1 < in.size() && in[i + 1] == "(";
    if (found == macros_.end() || hidden.contains(in[i]) || (found->second.function && !call)) {
      out.push_back(in[i]);
      continue;
    }
    std::vector<Tokens> arguments;
    if (found->second.function) {
      arguments.emplace_back();
      int depth = 1;
      for (i += 2; i < in.size(); ++i) {
        depth += in[i] == "(" ? 1 : in[i] == ")" ? -1 : 0;
        if (depth == 0) break;
        if (depth == 1 && in[i] == ",") {
          arguments.emplace_back();
        } else {
          arguments.back().push_back(in[i]);
        }
      }
    }
    std::set<std::string> inside = hidden;
    inside.insert(found->first);
    const Tokens more = Expand(Substitute(found->second, arguments, hidden), inside);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

// Arguments beside ## are inserted unchanged, others expanded.
Tokens Preprocessor::Substitute(const Macro& macro, const std::vector<Tokens>& arguments,
                                const std::set<std::string>& hidden) const {
  Tokens out;
  bool paste = false;
  for (size_t i = 0; i < macro.body.size(); ++i) {
    const std::string& token = macro.body[i];
    if (token == "##") {
      paste = true;
      continue;
    }
    Tokens piece = {token};
    const auto parameter = std::ranges::find(macro.parameters, token);
    const auto index = static_cast<size_t>(parameter - macro.parameters.begin());
    if (parameter != macro.parameters.end() && index < arguments.size()) {
      const bool raw = paste || (i + 1 < macro.body.size() && macro.body[i + 1] == "##");
      piece = raw ? arguments[index] : Expand(arguments[index], hidden);
    }
    if (paste && !out.empty() && !piece.empty()) {
      out.back() += piece.front();
      piece.erase(piece.begin());
    }
    paste = false;
    out.insert(out.end(), piece.begin(), piece.end());
  }
  return out;
}

}  // namespace oncilla::testing
