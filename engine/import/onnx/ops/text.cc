// ONNX's ops on strings.
#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

std::string InLowerCase(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return text;
}

Result<Values> LowerStringNormalizer(OnnxLowering& b) {
  // Only letters of ASCII change their case, which is the same in all locales that models name.
  b.Ignore("locale");
  ONCILLA_ASSIGN(const std::string action, b.String("case_change_action", "NONE"));
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

constexpr OnnxOpRow kRows[] = {
    {"StringNormalizer", 10, kNewestOnnxOpset, 1, "", LowerStringNormalizer},
    {"TfIdfVectorizer", 9, kNewestOnnxOpset, 1, "", LowerTfIdfVectorizer},
};

}  // namespace

std::span<const OnnxOpRow> OnnxTextRows() { return kRows; }

}  // namespace oncilla
