// Text in Unicode's encodings: host functions. Invalid bytes are replaced one
// error at a time (utf8.h).
#include "backends/cpu/kernel.h"
#include "backends/cpu/text/strings.h"
#include "backends/cpu/text/unicode_case.h"
#include "backends/cpu/text/utf8.h"
#include "engine/ops/data/strings.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

bool IsScalar(int64_t c) { return c >= 0 && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF); }

uint32_t Unit(std::string_view text, size_t bytes, bool big) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value = value << 8 | static_cast<uint8_t>(text[big ? i : bytes - 1 - i]);
  }
  return value;
}

Decoded NextUtf16(std::string_view text, bool big) {
  if (text.size() < 2) return {kFault, text.size()};
  const uint32_t first = Unit(text, 2, big);
  if (first < 0xD800 || first > 0xDFFF) return {static_cast<int32_t>(first), 2};
  if (first > 0xDBFF) return {kFault, 2};
  if (text.size() < 4) return {kFault, text.size()};
  const uint32_t second = Unit(text.substr(2), 2, big);
  if (second < 0xDC00 || second > 0xDFFF) return {kFault, 2};
  return {static_cast<int32_t>(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)), 4};
}

Decoded NextUtf32(std::string_view text, bool big) {
  if (text.size() < 4) return {kFault, text.size()};
  const uint32_t value = Unit(text, 4, big);
  return {IsScalar(value) ? static_cast<int32_t>(value) : kFault, 4};
}

Decoded Next(std::string_view text, const std::string& encoding) {
  if (encoding == "utf-8") return NextUtf8(text);
  if (encoding == "utf-16-be" || encoding == "utf-16-le") {
    return NextUtf16(text, encoding == "utf-16-be");
  }
  if (encoding == "utf-32-be" || encoding == "utf-32-le") {
    return NextUtf32(text, encoding == "utf-32-be");
  }
  const auto byte = static_cast<uint8_t>(text[0]);
  return {encoding == "us-ascii" && byte > 127 ? kFault : int32_t{byte}, 1};
}

struct Text {
  std::vector<int32_t> characters;
  std::vector<int64_t> begins;
};

Status Decode(std::string_view text, const UnicodeAttrs& attrs, Text& out) {
  for (size_t at = 0; at < text.size();) {
    Decoded next = Next(text.substr(at), attrs.from);
    const auto begin = static_cast<int64_t>(at);
    at += next.bytes;
    if (next.character == kFault) {
      if (attrs.errors == "strict") return InvalidArgument("Invalid formatting on input string");
      if (attrs.errors == "ignore") continue;
      next.character = static_cast<int32_t>(attrs.replacement);
    } else if (attrs.replace_control && next.character < 0x20) {
      if (attrs.errors == "ignore") continue;
      next.character = static_cast<int32_t>(attrs.replacement);
    }
    out.characters.push_back(next.character);
    out.begins.push_back(begin);
  }
  return {};
}

void AppendUnit(std::string& out, uint32_t value, int bytes, bool big) {
  for (int i = 0; i < bytes; ++i) {
    out += static_cast<char>(value >> (8 * (big ? bytes - 1 - i : i)) & 255);
  }
}

void Append(std::string& out, uint32_t c, const std::string& encoding) {
  const bool big = encoding.ends_with("be");
  if (encoding == "utf-8") {
    AppendUtf8(out, c);
  } else if (encoding.starts_with("utf-32")) {
    AppendUnit(out, c, 4, big);
  } else if (c < 0x10000) {
    AppendUnit(out, c, 2, big);
  } else {
    AppendUnit(out, 0xD800 + ((c - 0x10000) >> 10), 2, big);
    AppendUnit(out, 0xDC00 + ((c - 0x10000) & 0x3FF), 2, big);
  }
}

Tensors DecodeUnicode(const UnicodeAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  Text text;
  std::vector<int64_t> splits = {0};
  for (const std::string& x : in[0].strings()) {
    ONCILLA_TRY(Decode(x, attrs, text));
    splits.push_back(std::ssize(text.characters));
  }
  const auto count = std::ssize(text.characters);
  return std::vector<Tensor>{WholeNumbers(attrs.splits, splits),
                             Tensor::Of<int32_t>(DType::kI32, {count}, text.characters),
                             Tensor::Int64s(text.begins)};
}

Tensors EncodeUnicode(const UnicodeAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const std::vector<int64_t> characters, ToInt64s(in[0]));
  ONCILLA_ASSIGN(const std::vector<int64_t> splits, ToInt64s(in[1]));
  ONCILLA_TRY(CheckSplits(splits, std::ssize(characters)));
  std::vector<std::string> out(splits.size() - 1);
  for (size_t row = 0; row < out.size(); ++row) {
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
      int64_t c = characters[static_cast<size_t>(i)];
      if (!IsScalar(c)) {
        if (attrs.errors == "strict") {
          return InvalidArgument("Code point is out of range for Unicode, or a noncharacter.");
        }
        if (attrs.errors == "ignore") continue;
        c = attrs.replacement;
      }
      Append(out[row], static_cast<uint32_t>(c), attrs.to);
    }
  }
  const auto rows = std::ssize(out);
  return std::vector<Tensor>{Tensor::Strings({rows}, std::move(out))};
}

Tensors TranscodeUnicode(const UnicodeAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  return MapStrings(in[0], [&](const std::string& x) -> Result<std::string> {
    Text text;
    ONCILLA_TRY(Decode(x, attrs, text));
    std::string out;
    for (int32_t c : text.characters) Append(out, static_cast<uint32_t>(c), attrs.to);
    return out;
  });
}

// Invalid bytes become the replacement character.
Tensors ChangeCase(const ChangeCaseAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  return MapStrings(in[0], [&](std::string x) -> Result<std::string> {
    const bool ascii = std::all_of(x.begin(), x.end(), [](char c) { return (c & 0x80) == 0; });
    if (!attrs.unicode || ascii) {
      for (char& c : x) {
        if (attrs.upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c ^= 0x20;
      }
      return x;
    }
    return Utf8Of(WithCase(CharactersOf(x, 0xFFFD), attrs.upper));
  });
}

Status CharacterScripts(const NoAttrs&, const Args& args) {
  const int64_t count = args.out(0).elements();
  for (int64_t i = 0; i < count; ++i) {
    args.Out<int32_t>(0)[i] = ScriptOf(args.In<int32_t>(0)[i]);
  }
  return {};
}

const KernelRow kRows[] = {
    HostRow<ChangeCase>("ChangeCase", kStrings),
    Row<CharacterScripts>("CharacterScripts", Set(DType::kI32)),
    HostRow<DecodeUnicode>("DecodeUnicode", kStrings),
    HostRow<EncodeUnicode>("EncodeUnicode", kIntegers),
    HostRow<TranscodeUnicode>("TranscodeUnicode", kStrings),
};

}  // namespace

std::span<const KernelRow> UnicodeKernels() { return kRows; }

}  // namespace oncilla::cpu
