// Combinations of the features of several columns, as TensorFlow's crossed columns make them.
#include "backends/cpu/algorithms/crosses.h"

#include <farmhash.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/algorithms/places.h"
#include "backends/cpu/kernels/pick.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

// A column's features in one list. Rows without features take no memory, since a shape may state
// any number of them.
struct Column {
  Tensor values;
  int64_t rows = 0;
  IntList filled;  // the rows that have features, in ascending order
  IntList begins;  // where the features of each begin, and the end of the last

  // The range of a row's features.
  std::pair<int64_t, int64_t> Of(int64_t row) const {
    const auto at = std::lower_bound(filled.begin(), filled.end(), row);
    if (at == filled.end() || *at != row) return {0, 0};
    const auto i = static_cast<size_t>(at - filled.begin());
    return {begins[i], begins[i + 1]};
  }
};

Result<Column> ReadSparse(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  const IntList sizes = IntsOf(shape);
  if (sizes.size() != 2) return InvalidArgument("a column of ", sizes.size(), " axes instead of 2");
  ONCILLA_ASSIGN(const Places p, PlacesOf(indices, sizes, values.elements()));
  Column out{values, sizes[0], {}, {}};
  for (size_t i = 0; i < p.count; ++i) {
    const int64_t row = p[i][0];
    if (!out.filled.empty() && row < out.filled.back()) {
      return InvalidArgument("the entries of a column are not in the order of their rows");
    }
    if (!out.filled.empty() && row == out.filled.back()) continue;
    out.filled.push_back(row);
    out.begins.push_back(static_cast<int64_t>(i));
  }
  out.begins.push_back(static_cast<int64_t>(p.count));
  return out;
}

Result<Column> ReadDense(const Tensor& x) {
  if (x.shape().rank() != 2) {
    return InvalidArgument("a dense column ", x.desc(), " instead of one with two axes");
  }
  Column out{x, x.shape()[0], {}, {}};
  const int64_t width = x.shape()[1];
  for (int64_t at = 0; at < x.elements(); at += width) {
    out.filled.push_back(at / width);
    out.begins.push_back(at);
  }
  out.begins.push_back(x.elements());
  return out;
}

// The combination of two fingerprints, in their order, after TensorFlow's description.
uint64_t Chain(uint64_t first, uint64_t second) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  const auto mixed = [](uint64_t x) { return x ^ (x >> 47); };
  const uint64_t result = (first ^ kMul ^ (mixed(second * kMul) * kMul)) * kMul;
  return mixed(mixed(result) * kMul);
}

uint64_t NumberOf(const Column& column, size_t at) {
  if (column.values.dtype() != DType::kString) {
    return static_cast<uint64_t>(column.values.As<int64_t>()[at]);
  }
  const std::string& text = column.values.strings()[at];
  return util::Fingerprint64(text.data(), text.size());
}

std::string TextOf(const Column& column, size_t at) {
  if (column.values.dtype() == DType::kString) return column.values.strings()[at];
  return StrCat(column.values.As<int64_t>()[at]);
}

Result<std::vector<Column>> Read(const FeatureCrossAttrs& attrs, std::span<const Tensor> in) {
  const auto sparse = static_cast<size_t>(attrs.sparse);
  std::vector<Column> columns;
  for (size_t i = 0; i < sparse; ++i) {
    ONCILLA_ASSIGN(Column column, ReadSparse(in[i], in[sparse + i], in[2 * sparse + i]));
    columns.push_back(std::move(column));
  }
  for (const Tensor& dense : in.subspan(3 * sparse)) {
    ONCILLA_ASSIGN(Column column, ReadDense(dense));
    columns.push_back(std::move(column));
  }
  for (const Column& column : columns) {
    if (column.rows != columns[0].rows) {
      return InvalidArgument("columns of ", columns[0].rows, " and ", column.rows, " rows");
    }
  }
  return columns;
}

}  // namespace

Tensors FeatureCross(const FeatureCrossAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const std::vector<Column> columns, Read(attrs, in));
  IntList places;
  std::vector<int64_t> hashes;
  std::vector<std::string> texts;
  Growth growth;
  WorkLook look;
  const uint64_t buckets = attrs.buckets > 0 ? static_cast<uint64_t>(attrs.buckets)
                                             : uint64_t{std::numeric_limits<int64_t>::max()};
  int64_t most = 0;
  for (const int64_t row : columns[0].filled) {
    int64_t count = 1;
    std::vector<std::pair<int64_t, int64_t>> features;
    for (const Column& column : columns) {
      features.push_back(column.Of(row));
      count = SaturatingMul(count, features.back().second - features.back().first);
    }
    most = std::max(most, count);
    ONCILLA_TRY(growth.Add(SaturatingMul(count, int64_t{3 * sizeof(int64_t)})));
    ONCILLA_TRY(look.Go(std::ssize(columns)));
    auto chosen = features;  // the first feature of each column, as the next combination
    for (int64_t k = 0; k < count; ++k) {
      uint64_t hash = static_cast<uint64_t>(attrs.key);
      std::string text;
      for (size_t c = 0; c < columns.size(); ++c) {
        const auto at = static_cast<size_t>(chosen[c].first);
        if (attrs.hashed) {
          hash = Chain(hash, NumberOf(columns[c], at));
        } else {
          text += StrCat(c > 0 ? attrs.separator : "", TextOf(columns[c], at));
        }
      }
      places.insert(places.end(), {row, k});
      if (attrs.hashed) {
        hashes.push_back(static_cast<int64_t>(hash % buckets));
      } else {
        ONCILLA_TRY(growth.Add(std::ssize(text) + static_cast<int64_t>(sizeof(std::string))));
        texts.push_back(std::move(text));
      }
      for (size_t c = columns.size(); c-- > 0 && ++chosen[c].first == chosen[c].second;) {
        chosen[c].first = features[c].first;
      }
      ONCILLA_TRY(look.Go(std::ssize(columns)));
    }
  }
  growth.Clear();
  const Shape entries = {std::ssize(places) / 2};
  Tensor values = attrs.hashed ? Tensor::Of<int64_t>(DType::kI64, entries, hashes)
                               : Tensor::Strings(entries, std::move(texts));
  return SparseOf(places, std::move(values), {columns[0].rows, most});
}

}  // namespace oncilla::cpu
