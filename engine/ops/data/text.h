// Attributes of ops on strings, which exist on the host only, so these ops run there.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// Text to numbers: decimal or scientific ("-1.5", "1e-5"), with optional whitespace around it, and
// inf and nan in any case. Integers must be whole numbers. Anything else fails the run.
struct ParseNumbersAttrs {
  DType to = DType::kF32;
  void Fields(auto&& field) { field("to", to); }
};

// x is [C] or [1, C]: removes words that are `stopwords`, and changes the case of the others by
// Unicode's one-to-one mappings. If no word remains, the result is one empty string.
struct NormalizeWordsAttrs {
  std::string letter_case = "none";  // none, lower, upper
  bool case_sensitive = false;       // whether stopwords must match in case
  std::vector<std::string> stopwords;
  void Fields(auto&& field) {
    field("letter_case", letter_case);
    field("case_sensitive", case_sensitive);
    field("stopwords", stopwords);
  }
};

// x[C] or [N, C] of strings or integers -> f32[.., columns]: counts the n-grams of a pool in each
// row (ONNX's TfIdfVectorizer). Between the n elements of an n-gram up to `skip` elements are
// skipped, equally many each time. The pool lists all 1-grams, then all 2-grams, ..; counts[n - 1]
// is the start of the n-grams, indexes are the output columns of the pool's n-grams.
struct CountGramsAttrs {
  std::string mode = "tf";  // tf: counts; idf: weight if found; tfidf: count * weight
  int64_t least = 1, most = 1, skip = 0;
  std::vector<int64_t> counts, indexes;
  std::vector<int64_t> pool_ints;
  std::vector<std::string> pool_strings;
  std::vector<double> weights;  // per n-gram; empty: ones
  void Fields(auto&& field) {
    field("mode", mode);
    field("least", least);
    field("most", most);
    field("skip", skip);
    field("counts", counts);
    field("indexes", indexes);
    field("pool_ints", pool_ints);
    field("pool_strings", pool_strings);
    field("weights", weights);
  }
};

}  // namespace oncilla
