// Ops on strings with ONNX's semantics: inference and rows.
#include "engine/ops/data/text.h"

#include <algorithm>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int64_t kMaxColumns = int64_t{1} << 28;

Status RequireString(const Fact& fact, std::string_view what) {
  if (fact.dtype == DType::kString) return Status();
  return InvalidArgument(what, " must be strings, not ", fact.dtype);
}

Result<Facts> InferParseNumbers(const ParseNumbersAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  if (!IsFloat(attrs.to) && !IsInteger(attrs.to)) {
    return InvalidArgument("text cannot become ", attrs.to);
  }
  return Facts{Fact::Of(attrs.to, in[0].shape)};
}

Result<Facts> InferFormatNumbers(const NoAttrs&, std::span<const Fact> in) {
  if (in[0].dtype == DType::kString) return InvalidArgument("x is text already");
  return Facts{Fact::Of(DType::kString, in[0].shape)};
}

Result<Facts> InferNormalizeWords(const NormalizeWordsAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  const std::string& letter_case = attrs.letter_case;
  if (letter_case != "none" && letter_case != "lower" && letter_case != "upper") {
    return InvalidArgument("there is no letter_case '", letter_case, "'");
  }
  const PartialShape& shape = in[0].shape;
  if (!shape.ranked()) return Facts{Fact::Of(DType::kString, PartialShape())};
  if (shape.rank() == 1) return Facts{Fact::Of(DType::kString, PartialShape::OfRank(1))};
  if (shape.rank() != 2 || (shape[0].known() && shape[0].size != 1)) {
    return InvalidArgument("x must be [C] or [1, C], not ", shape);
  }
  return Facts{Fact::Of(DType::kString, PartialShape({Dim(1), Dim()}))};
}

Result<Facts> InferCountGrams(const CountGramsAttrs& attrs, std::span<const Fact> in) {
  if (attrs.mode != "tf" && attrs.mode != "idf" && attrs.mode != "tfidf") {
    return InvalidArgument("there is no mode '", attrs.mode, "'");
  }
  if (attrs.least < 1 || attrs.most < attrs.least || attrs.skip < 0) {
    return InvalidArgument("n-grams of ", attrs.least, " to ", attrs.most, " with ", attrs.skip,
                           " left out");
  }
  const bool strings = in[0].dtype == DType::kString;
  if (!strings) ONCILLA_TRY(RequireInteger(in[0], "x"));
  if (strings ? !attrs.pool_ints.empty() : !attrs.pool_strings.empty()) {
    return InvalidArgument("the pool has another type than x, ", in[0].dtype);
  }
  const auto pool =
      static_cast<int64_t>(strings ? attrs.pool_strings.size() : attrs.pool_ints.size());
  if (static_cast<int64_t>(attrs.counts.size()) < attrs.most) {
    return InvalidArgument("counts has ", attrs.counts.size(), " numbers, most is ", attrs.most);
  }
  int64_t grams = 0;
  for (size_t i = 0; i < attrs.counts.size(); ++i) {
    const int64_t begin = attrs.counts[i];
    const int64_t end = i + 1 < attrs.counts.size() ? attrs.counts[i + 1] : pool;
    const auto n = static_cast<int64_t>(i) + 1;
    if (begin < 0 || end < begin || end > pool || (end - begin) % n != 0) {
      return InvalidArgument("the pool's ", n, "-grams are from ", begin, " to ", end);
    }
    grams += (end - begin) / n;
  }
  if (grams != static_cast<int64_t>(attrs.indexes.size())) {
    return InvalidArgument("indexes has ", attrs.indexes.size(), " numbers for ", grams,
                           " n-grams");
  }
  if (!attrs.weights.empty() && attrs.weights.size() != attrs.indexes.size()) {
    return InvalidArgument("weights has ", attrs.weights.size(), " numbers for ", grams,
                           " n-grams");
  }
  int64_t columns = 0;
  for (int64_t index : attrs.indexes) {
    if (index < 0 || index >= kMaxColumns) return InvalidArgument("indexes contains ", index);
    columns = std::max(columns, index + 1);
  }
  const PartialShape& shape = in[0].shape;
  if (!shape.ranked()) return Facts{Fact::Of(DType::kF32, PartialShape())};
  if (shape.rank() == 1) return Facts{Fact::Of(DType::kF32, PartialShape({Dim(columns)}))};
  if (shape.rank() != 2) return InvalidArgument("x must have rank 1 or 2, not shape ", shape);
  return Facts{Fact::Of(DType::kF32, PartialShape({shape[0], Dim(columns)}))};
}

constexpr OpDef kTextOps[] = {
    Op<InferParseNumbers>("ParseNumbers", {.inputs = {1, 1}, .host_only = true}),
    Op<InferFormatNumbers>("FormatNumbers", {.inputs = {1, 1}, .host_only = true}),
    Op<InferNormalizeWords>("NormalizeWords",
                            {.inputs = {1, 1}, .host_only = true, .data_dependent = true}),
    Op<InferCountGrams>("CountGrams", {.inputs = {1, 1}, .host_only = true}),
};

}  // namespace

std::span<const OpDef> TextOps() { return kTextOps; }

}  // namespace oncilla
