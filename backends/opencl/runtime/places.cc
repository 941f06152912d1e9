// Finds a kernel's parameter list and body in its source, and adds the offsets; see places.h.
#include "backends/opencl/runtime/places.h"

#include <cctype>

#include "engine/base/format.h"

namespace oncilla::opencl {
namespace {

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The position after "void entry(", searched from `from` on; npos if there is none.
size_t ListOf(std::string_view text, std::string_view entry, size_t from) {
  constexpr std::string_view kVoid = "void";
  for (size_t at = from; (at = text.find(kVoid, at)) != text.npos;) {
    const bool word = at == 0 || IsSpace(text[at - 1]);
    at += kVoid.size();
    size_t name = at;
    while (name < text.size() && IsSpace(text[name])) ++name;
    if (!word || name == at || !text.substr(name).starts_with(entry)) continue;
    const size_t list = name + entry.size();
    if (list < text.size() && text[list] == '(') return list + 1;
  }
  return text.npos;
}

}  // namespace

Result<std::string> WithPlaces(std::string_view text, const Places& places) {
  if (places.operands.empty()) return std::string(text);
  std::string parameters, moves;
  for (const std::string& name : places.operands) {
    if (name.empty()) return Internal("kernel ", places.entry, " has an operand without a name");
    parameters += StrCat(", const ulong place_of_", name);
    moves +=
        StrCat(" ", name, " = (__global void*)((__global char*)", name, " + place_of_", name, ");");
  }
  std::string out;
  size_t done = 0;  // up to this position of the text
  for (size_t end; (end = ListOf(text, places.entry, done)) != text.npos;) {
    for (int depth = 1; end < text.size(); ++end) {
      depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    const size_t body = text.find('{', end);
    if (body == text.npos) return Internal("kernel ", places.entry, " has no body");
    out +=
        StrCat(text.substr(done, end - done), parameters, text.substr(end, body + 1 - end), moves);
    done = body + 1;
  }
  if (done == 0) return Internal("kernel ", places.entry, " is not defined");
  return out += text.substr(done);
}

}  // namespace oncilla::opencl
