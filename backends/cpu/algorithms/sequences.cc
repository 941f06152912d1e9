// Lists of features, one for each step of a sequence, as sparse, dense and ragged tensors.
#include "backends/cpu/algorithms/sequences.h"

#include <map>

#include "backends/cpu/algorithms/feature_batch.h"

namespace oncilla::cpu {
namespace {

using Steps = std::vector<Feature>;

class Lists {
 public:
  using Map = std::map<std::string_view, Steps>;
  Lists(std::vector<Map> lists, bool single) : lists_(std::move(lists)), single_(single) {}

  // Null when the message has no such list. A step without values matches any type.
  Result<const Steps*> Find(size_t example, const std::string& key, DType dtype) const {
    const auto it = lists_[example].find(key);
    if (it == lists_[example].end()) return nullptr;
    for (size_t t = 0; t < it->second.size(); ++t) {
      const Feature::Kind kind = it->second[t].kind;
      if (kind == Feature::Kind::kNone || TypeOf(kind) == dtype) continue;
      return InvalidArgument("Feature list: ", key, ", Index: ", t,
                             ".  Data types don't match. Expected type: ", dtype, " but got ",
                             TypeOf(kind), " (example ", example, ")");
    }
    return &it->second;
  }

  Status Sparse(const std::string& key, DType dtype, Tensor& places, Tensor& values,
                Tensor& sizes) const {
    Column column(dtype);
    HostVector<int64_t> index;
    int64_t longest = 0, widest = 0;
    for (size_t e = 0; e < lists_.size(); ++e) {
      ONCILLA_ASSIGN(const Steps* steps, Find(e, key, dtype));
      if (steps == nullptr) continue;
      longest = std::max<int64_t>(longest, std::ssize(*steps));
      for (size_t t = 0; t < steps->size(); ++t) {
        const Feature& f = (*steps)[t];
        ONCILLA_TRY(column.Append(f));
        widest = std::max(widest, f.size());
        for (int64_t i = 0; i < f.size(); ++i) {
          if (!single_) index.push_back(static_cast<int64_t>(e));
          index.push_back(static_cast<int64_t>(t));
          index.push_back(i);
        }
      }
    }
    const int64_t count = column.size();
    places = Tensor::Of<int64_t>(DType::kI64, {count, single_ ? 2 : 3}, index);
    values = column.Take({count});
    std::vector<int64_t> shape = {longest, widest};
    if (!single_) shape.insert(shape.begin(), std::ssize(lists_));
    sizes = Tensor::Int64s(shape);
    return {};
  }

  Status Dense(const std::string& key, DType dtype, Shape shape, bool may_miss, Tensor& out,
               Tensor& lengths) const {
    Column column(dtype);
    const int64_t row = shape.elements();
    std::vector<const Steps*> found;
    std::vector<int64_t> counts;
    int64_t longest = 0;
    for (size_t e = 0; e < lists_.size(); ++e) {
      ONCILLA_ASSIGN(const Steps* steps, Find(e, key, dtype));
      if (steps == nullptr && !may_miss) {
        return InvalidArgument("Feature list '", key,
                               "' is required but could not be found. (example ", e, ")");
      }
      found.push_back(steps);
      counts.push_back(steps == nullptr ? 0 : std::ssize(*steps));
      longest = std::max(longest, counts.back());
    }
    if (SaturatingMul(SaturatingMul(row, longest), std::ssize(lists_)) > (int64_t{1} << 31)) {
      return Exhausted("the list '", key, "' has too many elements");
    }
    ONCILLA_ASSIGN(const Tensor none, NoElement(dtype));
    for (size_t e = 0; e < lists_.size(); ++e) {
      for (int64_t t = 0; t < counts[e]; ++t) {
        const Feature& f = (*found[e])[static_cast<size_t>(t)];
        if (f.size() != row || f.kind == Feature::Kind::kNone) {
          return InvalidArgument("Key: ", key, ", Index: ", t,
                                 ".  Number of values != expected.  values size: ", f.size(),
                                 " but output shape: ", shape, " (example ", e, ")");
        }
        ONCILLA_TRY(column.Append(f));
      }
      ONCILLA_TRY(column.Append(none, (longest - counts[e]) * row, true));
    }
    shape.Insert(0, longest);
    if (!single_) shape.Insert(0, std::ssize(lists_));
    out = column.Take(std::move(shape));
    lengths = Tensor::Int64s(counts);
    if (single_) lengths = lengths.Reshaped({});
    return {};
  }

  Status Ragged(const std::string& key, DType dtype, DType split, Tensor& values, Tensor& outer,
                Tensor& inner) const {
    Column column(dtype);
    std::vector<int64_t> rows = {0}, steps_end = {0};
    for (size_t e = 0; e < lists_.size(); ++e) {
      ONCILLA_ASSIGN(const Steps* steps, Find(e, key, dtype));
      for (size_t t = 0; steps != nullptr && t < steps->size(); ++t) {
        ONCILLA_TRY(column.Append((*steps)[t]));
        steps_end.push_back(column.size());
      }
      rows.push_back(std::ssize(steps_end) - 1);
    }
    values = column.Take({column.size()});
    outer = WholeNumbers(split, rows);
    inner = WholeNumbers(split, steps_end);
    return {};
  }

 private:
  // Zero or "", to pad with.
  static Result<Tensor> NoElement(DType dtype) {
    if (dtype == DType::kString) return Tensor::Strings({}, {std::string()});
    return Tensor::Allocate({dtype, {}});
  }

  const std::vector<Map> lists_;
  const bool single_;
};

}  // namespace

Result<std::vector<Tensor>> ParseSequences(const ParseSequencesAttrs& attrs, const NodeView&,
                                           std::span<const Tensor> in) {
  std::vector<Example> contexts;
  std::vector<Lists::Map> maps;
  for (const std::string& text : in[0].strings()) {
    auto example = ReadSequenceExample(text);
    if (!example.ok()) return In(example.status(), StrCat("example ", contexts.size()));
    contexts.push_back(std::move(example->context));
    maps.push_back(std::move(example->lists));
  }
  const bool single = in[0].shape().rank() == 0;
  ONCILLA_ASSIGN(std::vector<Tensor> out,
                 Batch(std::move(contexts), single).Parse(attrs.context, in.subspan(1)));
  const Lists lists(std::move(maps), single);
  const size_t sparse = attrs.list_sparse_keys.size(), dense = attrs.list_dense_keys.size();
  const size_t ragged = attrs.list_ragged_keys.size(), first = out.size();
  out.resize(first + 3 * sparse + 2 * dense + 3 * ragged);
  Tensor* to = out.data() + first;
  for (size_t i = 0; i < sparse; ++i) {
    ONCILLA_TRY(lists.Sparse(attrs.list_sparse_keys[i], TypeOf(attrs.list_sparse_types[i]), to[i],
                             to[sparse + i], to[2 * sparse + i]));
  }
  to += 3 * sparse;
  auto dim = attrs.list_dense_dims.begin();
  for (size_t i = 0; i < dense; ++i) {
    const Shape shape(dim, dim + attrs.list_dense_ranks[i]);
    dim += attrs.list_dense_ranks[i];
    ONCILLA_TRY(lists.Dense(attrs.list_dense_keys[i], TypeOf(attrs.list_dense_types[i]), shape,
                            attrs.list_may_miss[i] != 0, to[i], to[dense + i]));
  }
  to += 2 * dense;
  for (size_t i = 0; i < ragged; ++i) {
    ONCILLA_TRY(lists.Ragged(attrs.list_ragged_keys[i], TypeOf(attrs.list_ragged_types[i]),
                             TypeOf(attrs.list_ragged_splits[i]), to[i], to[ragged + i],
                             to[2 * ragged + i]));
  }
  return out;
}

}  // namespace oncilla::cpu
