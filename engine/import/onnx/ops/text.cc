// ONNX's ops on strings, and decoding of image files.
#include "engine/import/onnx/lowering.h"
#include "engine/ops/check.h"

namespace oncilla {
namespace {

std::string InLowerCase(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return text;
}

Result<Values> LowerStringNormalizer(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string action, b.String("case_change_action", "NONE"));
  // Unicode's case mappings hold in all languages but these.
  ONCILLA_ASSIGN(const std::string locale, b.String("locale", "en_US"));
  for (const char* const language : {"az", "lt", "tr"}) {
    if (action != "NONE" && (locale == language || locale.starts_with(StrCat(language, "_")))) {
      return Unsupported("case_change_action with locale '", locale, "'");
    }
  }
  ONCILLA_ASSIGN(const bool sensitive, b.Flag("is_case_sensitive", false));
  ONCILLA_ASSIGN(const std::vector<Bytes> words, b.StringList("stopwords"));
  const NormalizeWordsAttrs attrs = {InLowerCase(action), sensitive, {words.begin(), words.end()}};
  return One(b.Add(attrs, {b.in(0)}));
}

Result<Values> LowerTfIdfVectorizer(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string mode, b.String("mode", ""));
  CountGramsAttrs attrs;
  attrs.mode = InLowerCase(mode);
  ONCILLA_ASSIGN(attrs.least, b.NeedInt("min_gram_length"));
  ONCILLA_ASSIGN(attrs.most, b.NeedInt("max_gram_length"));
  ONCILLA_ASSIGN(attrs.skip, b.NeedInt("max_skip_count"));
  ONCILLA_ASSIGN(attrs.counts, b.IntList("ngram_counts"));
  ONCILLA_ASSIGN(attrs.indexes, b.IntList("ngram_indexes"));
  ONCILLA_ASSIGN(attrs.pool_ints, b.IntList("pool_int64s"));
  ONCILLA_ASSIGN(const std::vector<Bytes> strings, b.StringList("pool_strings"));
  ONCILLA_ASSIGN(const std::vector<float> weights, b.FloatList("weights"));
  attrs.pool_strings.assign(strings.begin(), strings.end());
  attrs.weights.assign(weights.begin(), weights.end());
  return One(b.Add(attrs, {b.in(0)}));
}

Result<Values> LowerStringConcat(OnnxLowering& b) {
  // Strings are concatenated if shapes are equal or one is a scalar; otherwise they are broadcast
  // first.
  ONCILLA_ASSIGN(const PartialShape shape, BroadcastShapes(b.in_fact(0).shape, b.in_fact(1).shape));
  Values parts = {b.in(0), b.in(1)};
  for (ValueId& part : parts) {
    const PartialShape own = b.fact(part).shape;
    if (own.known() && shape.known() && own.ToShape() == shape.ToShape()) continue;
    const ValueId other = part == parts[0] ? b.in(1) : b.in(0);
    ONCILLA_ASSIGN(const ValueId sizes, b.Add("Shape", {}, {other}, "sizes_of_other"));
    ONCILLA_ASSIGN(part, b.Add("Expand", {}, {part, sizes}, "stretched"));
  }
  return One(b.Add("JoinStrings", {}, std::move(parts)));
}

Result<Values> LowerRegexFullMatch(OnnxLowering& b) {
  if (!b.HasAttr("pattern")) return DataLoss("attribute 'pattern' is missing");
  ONCILLA_ASSIGN(std::string pattern, b.String("pattern", ""));
  const ValueId text = b.Constant(Tensor::Strings({}, {std::move(pattern)}));
  return One(b.Add("RegexMatch", {}, {b.in(0), text}));
}

// 1 for each string that is not empty, else 0.
Result<ValueId> NotEmpty(OnnxLowering& b, ValueId strings, const std::string& name) {
  ONCILLA_ASSIGN(const ValueId length, b.Add("StringLength", {}, {strings}, name + "_lengths"));
  ONCILLA_ASSIGN(const ValueId most, b.Cast(length, DType::kI64, name + "_lengths_i64"));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  return b.Add("Min", {}, {most, one}, name + "_not_empty");
}

// The number of parts of each string. With blanks as separators, the rest after the last cut counts
// unless it is empty.
Result<ValueId> CountParts(OnnxLowering& b, const Values& split, bool by_blanks) {
  // Counts how often the row of each string occurs among the positions.
  ONCILLA_ASSIGN(const ValueId rows, b.Add("Gather", GatherAttrs{.axis = 1},
                                           {split[0], b.Constant(Tensor::ScalarInt64(0))}, "rows"));
  ONCILLA_ASSIGN(const ValueId count, b.Add("Size", SizeAttrs{}, {b.in(0)}, "strings"));
  Values inputs = {rows, count};
  if (by_blanks) {
    ONCILLA_ASSIGN(const ValueId some, NotEmpty(b, split[1], "parts"));
    inputs.push_back(some);
  }
  return b.Add(BincountAttrs{.to = DType::kI64}, std::move(inputs), "counts");
}

// Each string as its only part: without the blanks around it, and none where nothing is left.
Result<Values> LowerUnsplit(OnnxLowering& b, int rank) {
  ONCILLA_ASSIGN(const ValueId words, b.Add("StripStrings", {}, {b.in(0)}, "words"));
  ONCILLA_ASSIGN(const ValueId counts, NotEmpty(b, words, "counts"));
  ONCILLA_ASSIGN(const ValueId flat, b.Add(ReshapeAttrs{}, {counts, b.Ints({-1})}, "flat_counts"));
  ONCILLA_ASSIGN(const ValueId all,
                 b.Add(ConcatAttrs{.axis = 0}, {flat, b.Ints({0})}, "counts_or_none"));
  ONCILLA_ASSIGN(const ValueId width,
                 b.Add("ReduceMax", ReduceAttrs{.keep_dims = true}, {all}, "width"));
  ONCILLA_ASSIGN(const ValueId upright, b.Unsqueeze(words, {rank}, "words_upright"));
  ONCILLA_ASSIGN(const ValueId parts,
                 b.Add("Slice", {}, {upright, b.Ints({0}), width, b.Ints({rank})}));
  return Values{parts, counts};
}

// The parts of each string, padded to the largest number of parts, and the number of parts of each.
// Where blanks separate them, the rest after the last cut has none behind it, as in ONNX Runtime.
Result<Values> LowerStringSplit(OnnxLowering& b) {
  ONCILLA_ASSIGN(std::string delimiter, b.String("delimiter", ""));
  ONCILLA_ASSIGN(const int64_t most, b.Int("maxsplit", -1));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  const bool by_blanks = delimiter.empty();
  if (by_blanks && most == 0) return LowerUnsplit(b, rank);
  const ValueId separator = b.Constant(Tensor::Strings({}, {std::move(delimiter)}));
  ONCILLA_ASSIGN(ValueId flat,
                 b.Add(ReshapeAttrs{.zero_copies = true}, {b.in(0), b.Ints({-1})}, "flat"));
  if (by_blanks && most > 0) {
    ONCILLA_ASSIGN(flat, b.Add("StripStrings", {}, {flat}, "without_blanks_around"));
  }
  ONCILLA_ASSIGN(const Values split,
                 b.AddAll(SplitStringsAttrs{.most = most}, {flat, separator}, "split"));
  const ValueId none = b.Constant(Tensor::Strings({}, {""}));
  ONCILLA_ASSIGN(ValueId dense,
                 b.Add(SparseToDenseAttrs{}, {split[0], split[2], split[1], none}, "dense"));
  ONCILLA_ASSIGN(ValueId counts, CountParts(b, split, by_blanks));
  if (!by_blanks) {
    // An empty string has no part in ONNX Runtime.
    ONCILLA_ASSIGN(const ValueId some, NotEmpty(b, flat, "strings"));
    ONCILLA_ASSIGN(counts, b.Add("Mul", {}, {counts, some}, "counts_of_not_empty"));
  }
  ONCILLA_ASSIGN(ValueId width, b.Add("Slice", {}, {split[2], b.Ints({1}), b.Ints({2})}, "width"));
  if (!by_blanks || most > 0) {
    // An empty rest or string may take a last column of its own.
    ONCILLA_ASSIGN(const ValueId all,
                   b.Add(ConcatAttrs{.axis = 0}, {counts, b.Ints({0})}, "counts_or_none"));
    ONCILLA_ASSIGN(width, b.Add("ReduceMax", ReduceAttrs{.keep_dims = true}, {all}, "used_width"));
    ONCILLA_ASSIGN(dense, b.Add("Slice", {}, {dense, b.Ints({0}), width, b.Ints({1})}, "used"));
  }
  ONCILLA_ASSIGN(const ValueId shape, b.Sizes(b.in(0), 0, rank, "shape"));
  ONCILLA_ASSIGN(const ValueId sizes, b.Add(ConcatAttrs{.axis = 0}, {shape, width}, "sizes"));
  ONCILLA_ASSIGN(const ValueId parts, b.Add("Reshape", {}, {dense, sizes}));
  if (!b.wants(1)) return Values{parts, kNoValue};
  ONCILLA_ASSIGN(const ValueId by_string, b.Add("Reshape", {}, {counts, shape}, "by_string"));
  return Values{parts, by_string};
}

// Converts RGB to luma by ITU-R BT.601, with coefficients of 16 fractional bits.
Result<Values> AddLuma(OnnxLowering& b, ValueId rgb) {
  const int32_t factors[] = {19595, 38470, 7471}, half[] = {32768}, bits[] = {16};
  const ValueId parts = b.Constant(Tensor::Of<int32_t>(DType::kI32, {3}, factors));
  const ValueId offset = b.Constant(Tensor::Of<int32_t>(DType::kI32, {1}, half));
  const ValueId shift = b.Constant(Tensor::Of<int32_t>(DType::kI32, {1}, bits));
  ONCILLA_ASSIGN(ValueId y, b.Cast(rgb, DType::kI32, "wide"));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, parts}, "weighted"));
  ONCILLA_ASSIGN(y, b.Add("ReduceSum", ReduceAttrs{.keep_dims = true}, {y, b.Ints({-1})}, "luma"));
  ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, offset}, "rounded"));
  ONCILLA_ASSIGN(y, b.Add("ShiftRight", {}, {y, shift}, "whole"));
  return One(b.Cast(y, DType::kU8, ""));
}

// Decodes an image file. Formats that the engine does not read fail the run.
Result<Values> LowerImageDecoder(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string format, b.String("pixel_format", "RGB"));
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    return InvalidArgument("pixel_format is '", format, "'");
  }
  ONCILLA_ASSIGN(const ValueId file, b.Add("PackBytes", {}, {b.in(0)}, "file"));
  DecodeImageAttrs attrs;
  attrs.channels = 3;
  attrs.accurate_dct = true;
  if (format == "RGB") return One(b.Add(attrs, {file}));
  ONCILLA_ASSIGN(const ValueId rgb, b.Add(attrs, {file}, "rgb"));
  if (format == "Grayscale") return AddLuma(b, rgb);
  return One(b.Add("Reverse", {}, {rgb, b.Ints({-1})}));
}

// The expression of a word in a text in which separators were replaced by control characters, and
// how many separators there are to replace.
struct WordForm {
  std::string expression;
  std::vector<std::string> separators;
};
Result<WordForm> ReadWordForm(OnnxLowering& b) {
  constexpr int64_t kMost = 1000;  // what RE2 repeats at most
  ONCILLA_ASSIGN(const int64_t least, b.NeedInt("mincharnum"));
  ONCILLA_ASSIGN(std::string expression, b.String("tokenexp", ""));
  ONCILLA_ASSIGN(const auto separators, b.StringList("separators"));
  if (least < 1 || least > kMost) return InvalidArgument("mincharnum is ", least);
  if (separators.empty()) {
    if (expression.empty()) return DataLoss("tokenexp and separators are missing");
    return WordForm{std::move(expression), {}};
  }
  if (separators.size() == 1 && separators[0].empty()) {
    if (least > 1) return InvalidArgument("single letters with mincharnum ", least);
    return WordForm{"(?s).", {}};
  }
  WordForm form{StrCat("[^\x1]{", least, ",}"), {}};
  for (const Bytes& separator : separators) {
    if (separator.empty()) return InvalidArgument("one of several separators is empty");
    form.separators.emplace_back(separator);
  }
  return form;
}

// Strings [n] with what an expression matches in their parts, between control characters, replaced
// by such a character.
Result<ValueId> SeparateParts(OnnxLowering& b, ValueId x, const std::string& expression,
                              const std::string& name) {
  const std::string mark = "\x1";
  const ValueId by = b.Constant(Tensor::Strings({}, {mark}));
  const SplitStringsAttrs cut = {.set = true, .skip_empty = true};
  ONCILLA_ASSIGN(const Values split, b.AddAll(cut, {x, by}, name + "_split"));
  ONCILLA_ASSIGN(const ValueId rows,
                 b.Add(GatherAttrs{.axis = 1}, {split[0], b.Constant(Tensor::ScalarInt64(0))},
                       name + "_rows"));
  const ValueId what = b.Constant(Tensor::Strings({}, {expression}));
  // ONNX Runtime drops a letter where a separator is empty.
  const ValueId nothing = b.Constant(Tensor::Strings({}, {""}));
  ONCILLA_ASSIGN(ValueId some, b.Add("RegexMatch", {}, {nothing, what}, name + "_is_empty"));
  ONCILLA_ASSIGN(some, b.Add("Not", {}, {some}, name + "_is_something"));
  const ValueId text = b.Constant(
      Tensor::Strings({}, {StrCat("the separator '", expression, "' matches nothing at all")}));
  ONCILLA_TRY(b.AddAll(AssertAttrs{}, {some, text, nothing}, name + "_check").status());
  ONCILLA_ASSIGN(const ValueId parts,
                 b.Add(RegexReplaceAttrs{.longest = true}, {split[1], what, by}, name + "_parts"));
  ONCILLA_ASSIGN(const ValueId size, b.Sizes(x, 0, 1, name + "_size"));
  ONCILLA_ASSIGN(const ValueId count, b.ToScalar(size, name + "_count"));
  return b.Add("SegmentJoin", JoinStringsAttrs{.separator = mark}, {parts, rows, count},
               name + "_separated");
}

// com.microsoft's Tokenizer: the matches of an expression in each string, or what separators leave,
// without words that are too short, side by side, padded to the longest row; with `mark`, each row
// has a word of its own in front and behind. Matches are marked with two control characters, which
// no text contains, and everything outside the marks is removed.
Result<Values> LowerTokenizer(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool mark, b.Flag("mark", false));
  ONCILLA_ASSIGN(const int64_t least, b.NeedInt("mincharnum"));
  ONCILLA_ASSIGN(std::string pad, b.String("pad_value", ""));
  ONCILLA_ASSIGN(const WordForm form, ReadWordForm(b));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  const auto text = [&](std::string value) {
    return b.Constant(Tensor::Strings({}, {std::move(value)}));
  };
  const auto replace = [&](ValueId x, std::string what, const char* by, const char* name) {
    const RegexReplaceAttrs attrs = {.longest = true};
    return b.Add(attrs, {x, text(std::move(what)), text(by)}, name);
  };
  ONCILLA_ASSIGN(ValueId x, b.Add(ReshapeAttrs{}, {b.in(0), b.Ints({-1})}, "flat"));
  for (size_t i = 0; i < form.separators.size(); ++i) {
    // Each looks at what those before it leave, piece by piece.
    ONCILLA_ASSIGN(x, SeparateParts(b, x, form.separators[i], StrCat("separator", i)));
  }
  ONCILLA_ASSIGN(x, replace(x, form.expression, "\x2\\0\x3", "marked"));
  if (least > 1) {
    ONCILLA_ASSIGN(x, replace(x, StrCat("\x2[^\x2\x3]{0,", least - 1, "}\x3"), "", "long_enough"));
  }
  ONCILLA_ASSIGN(x, replace(x, "(^|\x3)[^\x2\x3]*(\x2|$)", "\x1", "found"));
  if (mark) {
    ONCILLA_ASSIGN(x, b.Add("JoinStrings", {}, {text("\x2\x1"), x, text("\x1\x3")}, "with_marks"));
  }
  const SplitStringsAttrs cut = {.set = true, .skip_empty = true};
  ONCILLA_ASSIGN(const Values split, b.AddAll(cut, {x, text("\x1")}, "split"));
  ONCILLA_ASSIGN(
      ValueId dense,
      b.Add(SparseToDenseAttrs{}, {split[0], split[2], split[1], text(std::move(pad))}, "dense"));
  ONCILLA_ASSIGN(ValueId width, b.Add("Slice", {}, {split[2], b.Ints({1}), b.Ints({2})}, "width"));
  if (mark) {
    // If no string has a word, the marker words are dropped too.
    ONCILLA_ASSIGN(const ValueId none, b.Add("Equal", {}, {width, b.Ints({2})}, "no_words"));
    ONCILLA_ASSIGN(width, b.Add("Where", {}, {none, b.Ints({0}), width}, "width_of_words"));
    ONCILLA_ASSIGN(dense, b.Add("Slice", {}, {dense, b.Ints({0}), width, b.Ints({1})}, "used"));
  }
  ONCILLA_ASSIGN(const ValueId shape, b.Sizes(b.in(0), 0, rank, "shape"));
  ONCILLA_ASSIGN(const ValueId sizes, b.Add(ConcatAttrs{.axis = 0}, {shape, width}, "sizes"));
  return One(b.Add("Reshape", {}, {dense, sizes}));
}

constexpr OnnxOpRow kMicrosoftRows[] = {
    {"Tokenizer", 1, kNewestOnnxMicrosoft, 1, "", LowerTokenizer},
};
constexpr OnnxOpRow kRows[] = {
    {"ImageDecoder", 20, kNewestOnnxOpset, 1, "", LowerImageDecoder},
    {"RegexFullMatch", 20, kNewestOnnxOpset, 1, "", LowerRegexFullMatch},
    {"StringConcat", 20, kNewestOnnxOpset, 2, "", LowerStringConcat},
    {"StringNormalizer", 10, kNewestOnnxOpset, 1, "", LowerStringNormalizer},
    {"StringSplit", 20, kNewestOnnxOpset, 1, "", LowerStringSplit},
    {"TfIdfVectorizer", 9, kNewestOnnxOpset, 1, "", LowerTfIdfVectorizer},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftTextRows() { return kMicrosoftRows; }
std::span<const OnnxOpRow> OnnxTextRows() { return kRows; }

}  // namespace oncilla
