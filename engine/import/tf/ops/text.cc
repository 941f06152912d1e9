// TensorFlow's ops on strings, each lowered to a host op with the same semantics.
#include "engine/import/tf/lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerJoin(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string separator, b.attrs().String("separator"));
  const JoinStringsAttrs attrs = {separator};
  if (b.op() == "UnsortedSegmentJoin") return One(b.Add("SegmentJoin", attrs, b.all_inputs()));
  // The name of a file must be known at import, so short strings are joined here. Longer ones are
  // joined at run time, since repeated joins could grow without bound.
  constexpr size_t kLongestName = 4096;
  std::string joined;
  bool known = b.inputs() > 0;
  for (size_t i = 0; i < b.inputs() && known; ++i) {
    const Fact& fact = b.in_fact(i);
    known = fact.dtype == DType::kString && fact.has_value() && fact.value.shape().rank() == 0;
    known = known && joined.size() + fact.value.strings()[0].size() <= kLongestName;
    if (known) joined += StrCat(i == 0 ? "" : separator, fact.value.strings()[0]);
  }
  if (known) return Values{b.Constant(Tensor::Strings({}, {std::move(joined)}))};
  return One(b.Add("JoinStrings", attrs, b.all_inputs()));
}

Result<Values> LowerReduceJoin(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string separator, b.attrs().String("separator"));
  ONCILLA_ASSIGN(const bool keep_dims, b.attrs().Bool("keep_dims"));
  const PartialShape& axes = b.in_fact(1).shape;
  if (axes.ranked() && axes.elements().known() && axes.elements().size == 0) {
    return Values{b.in(0)};
  }
  return One(
      b.Add(ReduceJoinAttrs{.separator = separator, .keep_dims = keep_dims}, {b.in(0), b.in(1)}));
}

Result<Values> LowerSplit(TfLowering& b) {
  SplitStringsAttrs attrs = {.set = b.op() == "StringSplit"};
  if (attrs.set) {
    ONCILLA_ASSIGN(attrs.skip_empty, b.attrs().Bool("skip_empty"));
  } else {
    ONCILLA_ASSIGN(attrs.most, b.attrs().Int("maxsplit"));
  }
  return b.AddAll(attrs, {b.in(0), b.in(1)});
}

Result<Values> LowerCase(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string encoding, b.attrs().String("encoding"));
  if (!encoding.empty() && encoding != "utf-8") return Unsupported("encoding ", encoding);
  const ChangeCaseAttrs attrs = {b.op() == "StringUpper", encoding == "utf-8"};
  return One(b.Add(attrs, {b.in(0)}));
}

Result<StringUnitAttrs> Unit(const TfLowering& b) {
  ONCILLA_ASSIGN(const std::string unit, b.attrs().String("unit"));
  if (unit != "BYTE" && unit != "UTF8_CHAR") return InvalidArgument("there is no unit ", unit);
  return StringUnitAttrs{unit == "UTF8_CHAR"};
}

Result<Values> LowerLength(TfLowering& b) {
  ONCILLA_ASSIGN(const StringUnitAttrs unit, Unit(b));
  return One(b.Add("StringLength", unit, {b.in(0)}));
}

Result<Values> LowerSubstr(TfLowering& b) {
  ONCILLA_ASSIGN(const StringUnitAttrs unit, Unit(b));
  return One(b.Add("Substring", unit, {b.in(0), b.in(1), b.in(2)}));
}

Result<Values> LowerFormat(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string text, b.attrs().String("template"));
  ONCILLA_ASSIGN(const std::string placeholder, b.attrs().String("placeholder"));
  ONCILLA_ASSIGN(const int64_t ends, b.attrs().Int("summarize"));
  return One(b.Add(FormatStringsAttrs{.text = text, .placeholder = placeholder, .ends = ends},
                   b.all_inputs()));
}

Result<Values> LowerAsString(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t precision, b.attrs().Int("precision"));
  ONCILLA_ASSIGN(const int64_t width, b.attrs().Int("width"));
  ONCILLA_ASSIGN(const bool scientific, b.attrs().Bool("scientific"));
  ONCILLA_ASSIGN(const bool shortest, b.attrs().Bool("shortest"));
  ONCILLA_ASSIGN(const std::string fill, b.attrs().String("fill"));
  if (b.in_fact(0).dtype == DType::kString) return Unsupported("of strings");
  return One(b.Add(PrintNumbersAttrs{.precision = precision,
                                     .width = width,
                                     .scientific = scientific,
                                     .shortest = shortest,
                                     .fill = fill},
                   {b.in(0)}));
}

Result<Values> LowerToNumber(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_type"));
  return One(b.Add(ParseNumbersAttrs{.to = to}, {b.in(0)}));
}

Result<Values> LowerHash(TfLowering& b) {
  HashStringsAttrs attrs;
  ONCILLA_ASSIGN(attrs.buckets, b.attrs().Int("num_buckets"));
  if (b.op() == "StringToHashBucketStrong") {
    attrs.hash = "sip";
    ONCILLA_ASSIGN(attrs.key, b.attrs().Ints("key"));
  } else if (b.op() == "StringToHashBucket") {
    attrs.hash = "murmur";
  }
  return One(b.Add(attrs, {b.in(0)}));
}

ValueId Text(TfLowering& b, std::string text) {
  return b.Constant(Tensor::Strings({}, {std::move(text)}));
}

Result<Values> LowerRegexReplace(TfLowering& b) {
  ONCILLA_ASSIGN(const bool all, b.attrs().Bool("replace_global"));
  Values inputs = b.all_inputs();
  if (b.op() == "StaticRegexReplace") {
    ONCILLA_ASSIGN(std::string pattern, b.attrs().String("pattern"));
    ONCILLA_ASSIGN(std::string rewrite, b.attrs().String("rewrite"));
    inputs = {b.in(0), Text(b, std::move(pattern)), Text(b, std::move(rewrite))};
  }
  return One(b.Add(RegexReplaceAttrs{.all = all}, std::move(inputs)));
}

Result<Values> LowerRegexMatch(TfLowering& b) {
  Values inputs = b.all_inputs();
  if (b.op() == "StaticRegexFullMatch") {
    ONCILLA_ASSIGN(std::string pattern, b.attrs().String("pattern"));
    inputs = {b.in(0), Text(b, std::move(pattern))};
  }
  return One(b.Add("RegexMatch", {}, std::move(inputs)));
}

Result<Values> LowerNGrams(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string separator, b.attrs().String("separator"));
  ONCILLA_ASSIGN(const std::string left, b.attrs().String("left_pad"));
  ONCILLA_ASSIGN(const std::string right, b.attrs().String("right_pad"));
  ONCILLA_ASSIGN(std::vector<int64_t> widths, b.attrs().Ints("ngram_widths"));
  ONCILLA_ASSIGN(const int64_t pad, b.attrs().Int("pad_width"));
  ONCILLA_ASSIGN(const bool keep_short, b.attrs().Bool("preserve_short_sequences"));
  return b.AddAll(StringNGramsAttrs{.separator = separator,
                                    .left = left,
                                    .right = right,
                                    .widths = std::move(widths),
                                    .pad = pad,
                                    .keep_short = keep_short},
                  {b.in(0), b.in(1)});
}

std::string LowerCaseName(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (c == ' ' || c == '_') c = '-';
  }
  return name;
}

Result<UnicodeAttrs> Unicode(const TfLowering& b, bool input, bool output) {
  UnicodeAttrs attrs;
  ONCILLA_ASSIGN(attrs.errors, b.attrs().String("errors"));
  ONCILLA_ASSIGN(attrs.replacement, b.attrs().Int("replacement_char"));
  if (input) {
    ONCILLA_ASSIGN(const std::string from, b.attrs().String("input_encoding"));
    ONCILLA_ASSIGN(attrs.replace_control, b.attrs().Bool("replace_control_characters"));
    attrs.from = LowerCaseName(from);
    // The byte order that converters assume for these names.
    if (attrs.from == "utf-16") attrs.from = "utf-16-be";
    if (attrs.from == "utf-32") attrs.from = "utf-32-be";
  }
  if (output) {
    ONCILLA_ASSIGN(const std::string to, b.attrs().String("output_encoding"));
    attrs.to = LowerCaseName(to);
  }
  return attrs;
}

Result<Values> LowerUnicodeDecode(TfLowering& b) {
  ONCILLA_ASSIGN(UnicodeAttrs attrs, Unicode(b, true, false));
  ONCILLA_ASSIGN(attrs.splits, b.attrs().Type("Tsplits"));
  ONCILLA_ASSIGN(Values out, b.AddAll("DecodeUnicode", attrs, {b.in(0)}));
  if (b.op() == "UnicodeDecode") out.pop_back();
  return out;
}

Result<Values> LowerUnicodeEncode(TfLowering& b) {
  ONCILLA_ASSIGN(const UnicodeAttrs attrs, Unicode(b, false, true));
  return One(b.Add("EncodeUnicode", attrs, {b.in(0), b.in(1)}));
}

Result<Values> LowerUnicodeTranscode(TfLowering& b) {
  ONCILLA_ASSIGN(const UnicodeAttrs attrs, Unicode(b, true, true));
  return One(b.Add("TranscodeUnicode", attrs, {b.in(0)}));
}

Result<Values> LowerEncodeBase64(TfLowering& b) {
  ONCILLA_ASSIGN(const bool pad, b.attrs().Bool("pad"));
  return One(b.Add(Base64Attrs{.pad = pad}, {b.in(0)}));
}

constexpr TfOpRow kRows[] = {
    {"AsString", 1, "", LowerAsString},
    {"DecodeBase64", 1, "DecodeBase64"},
    {"EncodeBase64", 1, "", LowerEncodeBase64},
    {"ReduceJoin", 2, "", LowerReduceJoin},
    {"RegexFullMatch", 2, "", LowerRegexMatch},
    {"RegexReplace", 3, "", LowerRegexReplace},
    {"StaticRegexFullMatch", 1, "", LowerRegexMatch},
    {"StaticRegexReplace", 1, "", LowerRegexReplace},
    {"StringFormat", 0, "", LowerFormat},
    {"StringJoin", 1, "", LowerJoin},
    {"StringLength", 1, "", LowerLength},
    {"StringLower", 1, "", LowerCase},
    {"StringNGrams", 2, "", LowerNGrams},
    {"StringSplit", 2, "", LowerSplit},
    {"StringSplitV2", 2, "", LowerSplit},
    {"StringStrip", 1, "StripStrings"},
    {"StringToHashBucket", 1, "", LowerHash},
    {"StringToHashBucketFast", 1, "", LowerHash},
    {"StringToHashBucketStrong", 1, "", LowerHash},
    {"StringToNumber", 1, "", LowerToNumber},
    {"StringUpper", 1, "", LowerCase},
    {"Substr", 3, "", LowerSubstr},
    {"UnicodeDecode", 1, "", LowerUnicodeDecode},
    {"UnicodeScript", 1, "CharacterScripts"},
    {"UnicodeDecodeWithOffsets", 1, "", LowerUnicodeDecode},
    {"UnicodeEncode", 2, "", LowerUnicodeEncode},
    {"UnicodeTranscode", 1, "", LowerUnicodeTranscode},
    {"UnsortedSegmentJoin", 3, "", LowerJoin},
};

}  // namespace

std::span<const TfOpRow> TfTextRows() { return kRows; }

}  // namespace oncilla
