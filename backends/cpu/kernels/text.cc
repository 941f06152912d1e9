// Ops on strings: host functions.
#include "engine/ops/data/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "backends/cpu/kernel.h"
#include "backends/cpu/text/number_text.h"
#include "backends/cpu/text/unicode_case.h"
#include "backends/cpu/text/utf8.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

Result<std::string> InCase(const std::string& text, bool upper) {
  std::vector<int32_t> characters = CharactersOf(text);
  for (int32_t& c : characters) {
    if (c == kFault) return InvalidArgument("a word of ", text.size(), " bytes is no UTF-8");
    c = SimpleCase(c, upper);
  }
  return Utf8Of(characters);
}

Result<std::vector<Tensor>> ParseNumbers(const ParseNumbersAttrs& attrs, const NodeView&,
                                         std::span<const Tensor> in) {
  const std::vector<std::string>& text = in[0].strings();
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({attrs.to, in[0].shape()}));
  Status status;
  DispatchDType(attrs.to, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      const auto y = out.MutableAs<T>();
      for (size_t i = 0; i < text.size() && status.ok(); ++i) {
        if (ParseNumber(text[i], y[i])) continue;
        status =
            InvalidArgument("element ", i, ", '", text[i].substr(0, 60), "', is no ", attrs.to);
      }
    }
  });
  ONCILLA_TRY(status);
  return std::vector<Tensor>{std::move(out)};
}

// The fewest digits that read back as the same number; with an exponent outside 1e-4 .. 1e16.
template <class T>
std::string Format(T value) {
  char text[64];
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_integral_v<T>) {
    return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
  } else {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto wide = static_cast<Wide>(value);
    if (std::isnan(wide)) return "NaN";
    if (std::isinf(wide)) return wide > 0 ? "INF" : "-INF";
    const Wide size = std::fabs(wide);
    const bool plain = size == 0 || (size >= Wide(1e-4) && size < Wide(1e16));
    const auto form = plain ? std::chars_format::fixed : std::chars_format::scientific;
    return std::string(text, std::to_chars(text, text + sizeof(text), wide, form).ptr);
  }
}

Result<std::vector<Tensor>> FormatNumbers(const NoAttrs&, const NodeView&,
                                          std::span<const Tensor> in) {
  std::vector<std::string> text;
  DispatchDType(in[0].dtype(), [&]<class T>(TypeTag<T>) {
    for (const T& value : in[0].As<T>()) text.push_back(Format(value));
  });
  return std::vector<Tensor>{Tensor::Strings(in[0].shape(), std::move(text))};
}

Result<std::vector<Tensor>> NormalizeWords(const NormalizeWordsAttrs& attrs, const NodeView&,
                                           std::span<const Tensor> in) {
  const bool lower = attrs.letter_case == "lower", upper = attrs.letter_case == "upper";
  const bool folds = !attrs.case_sensitive && !attrs.stopwords.empty();
  std::vector<std::string> stopwords = attrs.stopwords;
  for (std::string& word : stopwords) {
    if (!folds) break;
    ONCILLA_ASSIGN(word, InCase(word, false));
  }
  std::vector<std::string> kept;
  for (const std::string& word : in[0].strings()) {
    std::string compared = word;
    if (folds) {
      ONCILLA_ASSIGN(compared, InCase(word, false));
    }
    if (std::find(stopwords.begin(), stopwords.end(), compared) != stopwords.end()) continue;
    kept.push_back(word);
    if (lower || upper) {
      ONCILLA_ASSIGN(kept.back(), InCase(word, upper));
    }
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = std::ssize(kept);
  const Shape shape = in[0].shape().rank() == 2 ? Shape{1, count} : Shape{count};
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(kept))};
}

// Counts the n-grams of rows of `columns` elements.
template <class T>
Status Count(const CountGramsAttrs& attrs, std::span<const T> x, std::span<const T> pool,
             int64_t columns, std::span<float> y, int64_t width) {
  std::map<std::vector<T>, std::vector<size_t>> grams;  // to their indices in the pool
  size_t id = 0;
  for (size_t i = 0; i < attrs.counts.size(); ++i) {
    const auto n = i + 1;
    const auto end =
        i + 1 < attrs.counts.size() ? static_cast<size_t>(attrs.counts[i + 1]) : pool.size();
    for (auto at = static_cast<size_t>(attrs.counts[i]); at < end; at += n, ++id) {
      const auto gram = pool.subspan(at, n);
      grams[std::vector<T>(gram.begin(), gram.end())].push_back(id);
    }
  }
  const int64_t rows = columns == 0 ? 0 : static_cast<int64_t>(x.size()) / columns;
  std::vector<T> gram;
  for (int64_t row = 0; row < rows; ++row) {
    const auto words = x.subspan(static_cast<size_t>(row * columns), static_cast<size_t>(columns));
    std::vector<int64_t> met(attrs.indexes.size(), 0);
    for (int64_t n = attrs.least; n <= std::min(attrs.most, columns); ++n) {
      // Single elements have no distance to skip.
      const int64_t skips = n == 1 ? 0 : std::min(attrs.skip, columns);
      for (int64_t step = 1; step <= skips + 1; ++step) {
        for (int64_t at = 0; at + (n - 1) * step < columns; ++at) {
          gram.clear();
          for (int64_t k = 0; k < n; ++k) gram.push_back(words[static_cast<size_t>(at + k * step)]);
          const auto found = grams.find(gram);
          if (found == grams.end()) continue;
          for (size_t place : found->second) ++met[place];
        }
      }
    }
    for (size_t i = 0; i < met.size(); ++i) {
      if (met[i] == 0) continue;
      const double weight = attrs.weights.empty() ? 1 : attrs.weights[i];
      const double count = attrs.mode == "idf" ? 1 : static_cast<double>(met[i]);
      y[static_cast<size_t>(row * width + attrs.indexes[i])] +=
          static_cast<float>(attrs.mode == "tf" ? count : count * weight);
    }
  }
  return Status();
}

Result<std::vector<Tensor>> CountGrams(const CountGramsAttrs& attrs, const NodeView& node,
                                       std::span<const Tensor> in) {
  const TensorDesc desc = node.outputs[0].desc();
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate(desc));
  const auto y = out.MutableAs<float>();
  std::fill(y.begin(), y.end(), 0.0f);
  const int64_t columns = in[0].shape().back(), width = desc.shape.back();
  if (in[0].dtype() == DType::kString) {
    ONCILLA_TRY(Count<std::string>(attrs, in[0].strings(), attrs.pool_strings, columns, y, width));
  } else {
    ONCILLA_ASSIGN(const std::vector<int64_t> x, ToInt64s(in[0]));
    ONCILLA_TRY(Count<int64_t>(attrs, x, attrs.pool_ints, columns, y, width));
  }
  return std::vector<Tensor>{std::move(out)};
}

const KernelRow kRows[] = {
    HostRow<ParseNumbers>("ParseNumbers", kStrings),
    HostRow<FormatNumbers>("FormatNumbers", kFixedSize),
    HostRow<NormalizeWords>("NormalizeWords", kStrings),
    HostRow<CountGrams>("CountGrams", kIntegers | kStrings),
};

}  // namespace

std::span<const KernelRow> TextKernels() { return kRows; }

}  // namespace oncilla::cpu
