// Attributes of ops on strings. Strings live on the host, so these run there.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// Text to numbers: decimal or scientific ("-1.5", "1e-5"), blanks around it allowed, and inf and
// nan in any case. Integers are whole numbers. Anything else fails the run.
struct ParseNumbersAttrs {
  DType to = DType::kF32;
  void Fields(auto&& field) { field("to", to); }
};

// x is [C] or [1, C]: words that are `stopwords` are left out, the case of the others is changed
// by Unicode's mappings of one letter to one.
// Where none is left the result is one empty string.
struct NormalizeWordsAttrs {
  std::string letter_case = "none";  // none, lower, upper
  bool case_sensitive = false;       // of the comparison with stopwords
  std::vector<std::string> stopwords;
  void Fields(auto&& field) {
    field("letter_case", letter_case);
    field("case_sensitive", case_sensitive);
    field("stopwords", stopwords);
  }
};

// x[C] or [N, C] of strings or integers -> f32[.., columns]: how often n-grams from a pool are met
// in each row (ONNX's TfIdfVectorizer). An n-gram has n elements with as many as `skip` left out
// between each two. The pool lists all 1-grams, then all 2-grams, ..; counts[n - 1] says where the
// n-grams begin, indexes where each one is counted in the output.
struct CountGramsAttrs {
  std::string mode = "tf";  // tf: counts; idf: weight where met; tfidf: count * weight
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
