// TensorFlow's ops on strings, each a host op of the same meaning.
#include "engine/import/tf_lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerJoin(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string separator, b.attrs().String("separator"));
  const AttrMap attrs = {{"separator", separator}};
  if (b.op() == "UnsortedSegmentJoin") return One(b.Add("SegmentJoin", attrs, b.all_inputs()));
  return One(b.Add("JoinStrings", attrs, b.all_inputs()));
}

Result<Values> LowerReduceJoin(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string separator, b.attrs().String("separator"));
  ONCILLA_ASSIGN(const bool keep_dims, b.attrs().Bool("keep_dims"));
  const PartialShape& axes = b.in_fact(1).shape;
  if (axes.ranked() && axes.elements().known() && axes.elements().size == 0) {
    return Values{b.in(0)};
  }
  return One(b.Add("ReduceJoin", {{"separator", separator}, {"keep_dims", keep_dims}},
                   {b.in(0), b.in(1)}));
}

Result<Values> LowerSplit(TfLowering& b) {
  AttrMap attrs;
  if (b.op() == "StringSplit") {
    ONCILLA_ASSIGN(const bool skip_empty, b.attrs().Bool("skip_empty"));
    attrs = {{"set", true}, {"skip_empty", skip_empty}};
  } else {
    ONCILLA_ASSIGN(const int64_t most, b.attrs().Int("maxsplit"));
    attrs = {{"most", most}};
  }
  return b.AddAll("SplitStrings", std::move(attrs), {b.in(0), b.in(1)});
}

Result<Values> LowerCase(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string encoding, b.attrs().String("encoding"));
  if (!encoding.empty() && encoding != "utf-8") return Unsupported("encoding ", encoding);
  const AttrMap attrs = {{"upper", b.op() == "StringUpper"}, {"unicode", encoding == "utf-8"}};
  return One(b.Add("ChangeCase", attrs, {b.in(0)}));
}

Result<AttrMap> Unit(const TfLowering& b) {
  ONCILLA_ASSIGN(const std::string unit, b.attrs().String("unit"));
  if (unit != "BYTE" && unit != "UTF8_CHAR") return InvalidArgument("there is no unit ", unit);
  return AttrMap{{"characters", unit == "UTF8_CHAR"}};
}

Result<Values> LowerLength(TfLowering& b) {
  ONCILLA_ASSIGN(AttrMap attrs, Unit(b));
  return One(b.Add("StringLength", std::move(attrs), {b.in(0)}));
}

Result<Values> LowerSubstr(TfLowering& b) {
  ONCILLA_ASSIGN(AttrMap attrs, Unit(b));
  return One(b.Add("Substring", std::move(attrs), {b.in(0), b.in(1), b.in(2)}));
}

Result<Values> LowerFormat(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string text, b.attrs().String("template"));
  ONCILLA_ASSIGN(const std::string placeholder, b.attrs().String("placeholder"));
  ONCILLA_ASSIGN(const int64_t ends, b.attrs().Int("summarize"));
  return One(b.Add("FormatStrings", {{"text", text}, {"placeholder", placeholder}, {"ends", ends}},
                   b.all_inputs()));
}

Result<Values> LowerAsString(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t precision, b.attrs().Int("precision"));
  ONCILLA_ASSIGN(const int64_t width, b.attrs().Int("width"));
  ONCILLA_ASSIGN(const bool scientific, b.attrs().Bool("scientific"));
  ONCILLA_ASSIGN(const bool shortest, b.attrs().Bool("shortest"));
  ONCILLA_ASSIGN(const std::string fill, b.attrs().String("fill"));
  if (b.in_fact(0).dtype == DType::kString) return Unsupported("of strings");
  return One(b.Add("PrintNumbers",
                   {{"precision", precision},
                    {"width", width},
                    {"scientific", scientific},
                    {"shortest", shortest},
                    {"fill", fill}},
                   {b.in(0)}));
}

Result<Values> LowerToNumber(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_type"));
  return One(b.Add("ParseNumbers", {{"to", to}}, {b.in(0)}));
}

Result<Values> LowerHash(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t buckets, b.attrs().Int("num_buckets"));
  AttrMap attrs = {{"buckets", buckets}};
  if (b.op() == "StringToHashBucketStrong") {
    ONCILLA_ASSIGN(std::vector<int64_t> key, b.attrs().Ints("key"));
    attrs.emplace("hash", std::string("sip"));
    attrs.emplace("key", std::move(key));
  } else {
    attrs.emplace("hash", std::string(b.op() == "StringToHashBucket" ? "murmur" : "farm"));
  }
  return One(b.Add("HashStrings", std::move(attrs), {b.in(0)}));
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
  return One(b.Add("RegexReplace", {{"all", all}}, std::move(inputs)));
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
  return b.AddAll("StringNGrams",
                  {{"separator", separator},
                   {"left", left},
                   {"right", right},
                   {"widths", std::move(widths)},
                   {"pad", pad},
                   {"keep_short", keep_short}},
                  {b.in(0), b.in(1)});
}

std::string LowerCaseName(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (c == ' ' || c == '_') c = '-';
  }
  return name;
}

Result<AttrMap> Unicode(const TfLowering& b, bool input, bool output) {
  ONCILLA_ASSIGN(const std::string errors, b.attrs().String("errors"));
  ONCILLA_ASSIGN(const int64_t replacement, b.attrs().Int("replacement_char"));
  AttrMap attrs = {{"errors", errors}, {"replacement", replacement}};
  if (input) {
    ONCILLA_ASSIGN(const std::string from, b.attrs().String("input_encoding"));
    ONCILLA_ASSIGN(const bool control, b.attrs().Bool("replace_control_characters"));
    std::string name = LowerCaseName(from);
    // What converters take these names for.
    if (name == "utf-16") name = "utf-16-be";
    if (name == "utf-32") name = "utf-32-be";
    attrs.emplace("from", name);
    attrs.emplace("replace_control", control);
  }
  if (output) {
    ONCILLA_ASSIGN(const std::string to, b.attrs().String("output_encoding"));
    attrs.emplace("to", LowerCaseName(to));
  }
  return attrs;
}

Result<Values> LowerUnicodeDecode(TfLowering& b) {
  ONCILLA_ASSIGN(AttrMap attrs, Unicode(b, true, false));
  ONCILLA_ASSIGN(const DType splits, b.attrs().Type("Tsplits"));
  attrs.emplace("splits", splits);
  ONCILLA_ASSIGN(Values out, b.AddAll("DecodeUnicode", std::move(attrs), {b.in(0)}));
  if (b.op() == "UnicodeDecode") out.pop_back();
  return out;
}

Result<Values> LowerUnicodeEncode(TfLowering& b) {
  ONCILLA_ASSIGN(AttrMap attrs, Unicode(b, false, true));
  return One(b.Add("EncodeUnicode", std::move(attrs), {b.in(0), b.in(1)}));
}

Result<Values> LowerUnicodeTranscode(TfLowering& b) {
  ONCILLA_ASSIGN(AttrMap attrs, Unicode(b, true, true));
  return One(b.Add("TranscodeUnicode", std::move(attrs), {b.in(0)}));
}

Result<Values> LowerEncodeBase64(TfLowering& b) {
  ONCILLA_ASSIGN(const bool pad, b.attrs().Bool("pad"));
  return One(b.Add("EncodeBase64", {{"pad", pad}}, {b.in(0)}));
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
