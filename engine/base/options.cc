// Reading and writing scalar options, and the messages of refusals.
#include "engine/base/options.h"

#include "engine/base/decimal.h"
#include "engine/base/format.h"
#include "engine/base/near_names.h"

namespace oncilla::options_internal {
namespace {

std::string Shown(const TextTree& from) {
  if (from.kind == TextTree::Kind::kMessage) return "a message";
  return from.scalar.kind == TextScalar::Kind::kString ? QuotedText(from.scalar.text, false)
                                                       : from.scalar.text;
}

Status Wrong(const Option& option, const TextTree& from, std::string_view wanted) {
  return RefuseText(from.at, StrCat(option.name, " is ", Shown(from), ", not ", wanted));
}

std::string Number(double value) { return GeneralText(value); }

Status CheckRange(const Option& option, const TextTree& from, double value) {
  if (value >= option.least && value <= option.most) return {};
  std::string range;
  if (std::isinf(option.most)) {
    range = StrCat("it must be at least ", Number(option.least));
  } else {
    range = StrCat("it must be in [", Number(option.least), ", ", Number(option.most), "]");
  }
  return RefuseText(from.at, StrCat(option.name, " is ", Shown(from), "; ", range));
}

TextTree Scalar(TextScalar::Kind kind, std::string text) {
  TextTree out;
  out.kind = TextTree::Kind::kScalar;
  out.scalar.kind = kind;
  out.scalar.text = std::move(text);
  return out;
}

}  // namespace

Status ReadScalar(const Option& option, const TextTree& from, bool& to) {
  const std::string_view text = from.scalar.text;
  const bool scalar = from.kind == TextTree::Kind::kScalar;
  if (!scalar || (text != "true" && text != "false" && text != "1" && text != "0")) {
    return Wrong(option, from, "true or false");
  }
  to = text == "true" || text == "1";
  return {};
}

Status ReadScalar(const Option& option, const TextTree& from, int64_t& to) {
  // Strings of digits count too: many JSON libraries hold numbers as doubles, so that programs
  // write large integers as strings.
  std::optional<int64_t> value;
  if (from.kind == TextTree::Kind::kScalar) value = TextToInt(from.scalar.text);
  if (!value.has_value() && option.bytes && from.kind == TextTree::Kind::kScalar) {
    value = BytesFromText(from.scalar.text);
  }
  if (!value.has_value()) {
    return Wrong(option, from, option.bytes ? "a number of bytes" : "a whole number");
  }
  ONCILLA_TRY(CheckRange(option, from, static_cast<double>(*value)));
  to = *value;
  return {};
}

Status ReadScalar(const Option& option, const TextTree& from, int& to) {
  int64_t value = 0;
  Option narrower = option;
  narrower.least = std::max(option.least, double{std::numeric_limits<int>::min()});
  narrower.most = std::min(option.most, double{std::numeric_limits<int>::max()});
  ONCILLA_TRY(ReadScalar(narrower, from, value));
  to = static_cast<int>(value);
  return {};
}

Status ReadScalar(const Option& option, const TextTree& from, double& to) {
  std::optional<double> value;
  if (from.kind == TextTree::Kind::kScalar) value = TextToDouble(from.scalar.text);
  if (!value.has_value()) return Wrong(option, from, "a number");
  ONCILLA_TRY(CheckRange(option, from, *value));
  to = *value;
  return {};
}

Status ReadScalar(const Option& option, const TextTree& from, std::string& to) {
  if (from.kind != TextTree::Kind::kScalar || from.scalar.kind != TextScalar::Kind::kString) {
    return Wrong(option, from, "a text in quotes");
  }
  to = from.scalar.text;
  return {};
}

Status ReadScalar(const Option& option, const TextTree& from, std::chrono::milliseconds& to) {
  int64_t value = 0;
  ONCILLA_TRY(ReadScalar(option, from, value));
  to = std::chrono::milliseconds(value);
  return {};
}

TextTree PrintScalar(bool value) {
  return Scalar(TextScalar::Kind::kWord, value ? "true" : "false");
}
TextTree PrintScalar(int64_t value) { return Scalar(TextScalar::Kind::kNumber, StrCat(value)); }
TextTree PrintScalar(int value) { return PrintScalar(int64_t{value}); }
TextTree PrintScalar(double value) {
  // Finds the shortest text that reads back as the same number.
  for (int digits = 6; digits < 17; ++digits) {
    const std::string text = GeneralText(value, digits);
    if (TextToDouble(text) == value) return Scalar(TextScalar::Kind::kNumber, text);
  }
  return Scalar(TextScalar::Kind::kNumber, GeneralText(value, 17));
}
TextTree PrintScalar(std::string_view value) {
  return Scalar(TextScalar::Kind::kString, std::string(value));
}
TextTree PrintScalar(std::chrono::milliseconds value) { return PrintScalar(value.count()); }

Status UnknownName(std::string_view what, const Option& option, const TextTree& from,
                   std::vector<std::string> names) {
  std::string all;
  for (const std::string& name : names) all += StrCat(all.empty() ? "" : ", ", name);
  return RefuseText(
      from.at, StrCat(option.name, " has '", what, "'; there are ", all, DidYouMean(what, names)));
}

Status UnknownMember(const TextMember& member, const std::vector<std::string>& names) {
  return RefuseText(
      member.at, StrCat("there is no option '", member.name, "'", DidYouMean(member.name, names)));
}

Status GivenTwice(const TextMember& member) {
  return RefuseText(member.at, StrCat(member.name, " is given twice"));
}

Status WantsMessage(const Option& option, const TextTree& from) {
  return Wrong(option, from, "a message in braces");
}

Status WantsName(const Option& option, const TextTree& from) {
  return Wrong(option, from, "a name");
}

MapEntry EntryOf(const TextTree& message) {
  static const TextTree kNothing;
  MapEntry entry;
  for (const TextMember& member : message.members) {
    if (member.name == "key") {
      entry.key = &member.value;
    } else if (member.name == "value") {
      entry.value = &member.value;
    } else {
      return {};
    }
  }
  if (entry.key == nullptr) return {};
  if (entry.value == nullptr) entry.value = &kNothing;
  return entry;
}

}  // namespace oncilla::options_internal
