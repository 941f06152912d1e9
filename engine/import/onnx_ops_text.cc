// ONNX's ops on strings.
#include "engine/import/onnx_lowering.h"

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
  AttrMap attrs = {{"letter_case", InLowerCase(action)}, {"case_sensitive", sensitive}};
  if (!words.empty()) {
    attrs.emplace("stopwords", std::vector<std::string>(words.begin(), words.end()));
  }
  return One(b.Add("NormalizeWords", std::move(attrs), {b.in(0)}));
}

Result<Values> LowerTfIdfVectorizer(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string mode, b.String("mode", ""));
  ONCILLA_ASSIGN(const int64_t least, b.NeedInt("min_gram_length"));
  ONCILLA_ASSIGN(const int64_t most, b.NeedInt("max_gram_length"));
  ONCILLA_ASSIGN(const int64_t skip, b.NeedInt("max_skip_count"));
  ONCILLA_ASSIGN(std::vector<int64_t> counts, b.IntList("ngram_counts"));
  ONCILLA_ASSIGN(std::vector<int64_t> indexes, b.IntList("ngram_indexes"));
  ONCILLA_ASSIGN(std::vector<int64_t> ints, b.IntList("pool_int64s"));
  ONCILLA_ASSIGN(const std::vector<Bytes> strings, b.StringList("pool_strings"));
  ONCILLA_ASSIGN(const std::vector<float> weights, b.FloatList("weights"));
  AttrMap attrs = {{"mode", InLowerCase(mode)},
                   {"least", least},
                   {"most", most},
                   {"skip", skip},
                   {"counts", std::move(counts)},
                   {"indexes", std::move(indexes)},
                   {"pool_ints", std::move(ints)}};
  if (!strings.empty()) {
    attrs.emplace("pool_strings", std::vector<std::string>(strings.begin(), strings.end()));
  }
  if (!weights.empty()) {
    attrs.emplace("weights", std::vector<double>(weights.begin(), weights.end()));
  }
  return One(b.Add("CountGrams", std::move(attrs), {b.in(0)}));
}

constexpr OnnxOpRow kRows[] = {
    {"StringNormalizer", 10, kNewestOnnxOpset, 1, "", LowerStringNormalizer},
    {"TfIdfVectorizer", 9, kNewestOnnxOpset, 1, "", LowerTfIdfVectorizer},
};

}  // namespace

std::span<const OnnxOpRow> OnnxTextRows() { return kRows; }

}  // namespace oncilla
