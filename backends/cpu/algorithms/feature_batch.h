// Features of Example messages, collected as columns of values and returned as tensors.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cpu/text/strings.h"
#include "engine/base/work_limits.h"
#include "engine/ops/data/records.h"
#include "engine/records/example.h"

namespace oncilla::cpu {

inline DType TypeOf(const std::string& name) {
  return DTypeFromName(name).value_or(DType::kInvalid);
}
inline DType TypeOf(Feature::Kind kind) {
  return kind == Feature::Kind::kFloat   ? DType::kF32
         : kind == Feature::Kind::kInt64 ? DType::kI64
                                         : DType::kString;
}

// Values of one of the three types that examples have.
struct Column {
  DType dtype;
  HostVector<float> floats;
  HostVector<int64_t> ints;
  std::vector<std::string> texts;
  Growth growth;  // of the texts

  explicit Column(DType t) : dtype(t) {}
  int64_t size() const {
    return dtype == DType::kF32   ? std::ssize(floats)
           : dtype == DType::kI64 ? std::ssize(ints)
                                  : std::ssize(texts);
  }
  Status Append(const Feature& f) {
    floats.insert(floats.end(), f.floats.begin(), f.floats.end());
    ints.insert(ints.end(), f.ints.begin(), f.ints.end());
    for (const auto& text : f.bytes) {
      ONCILLA_TRY(growth.Add(std::ssize(text) + static_cast<int64_t>(sizeof(std::string))));
      texts.emplace_back(text);
    }
    return WorkLook::Ask();
  }
  // Appends elements [begin, end) of a tensor, or element 0 repeatedly if it is `single`.
  Status Append(const Tensor& t, int64_t count, bool single) {
    if (dtype == DType::kF32) floats.reserve(floats.size() + static_cast<size_t>(count));
    if (dtype == DType::kI64) ints.reserve(ints.size() + static_cast<size_t>(count));
    WorkLook look;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(single ? 0 : i);
      ONCILLA_TRY(look.Go(1));
      if (dtype == DType::kF32) floats.push_back(t.As<float>()[at]);
      if (dtype == DType::kI64) ints.push_back(t.As<int64_t>()[at]);
      if (dtype != DType::kString) continue;
      const std::string& text = t.strings()[at];
      ONCILLA_TRY(growth.Add(std::ssize(text) + static_cast<int64_t>(sizeof(std::string))));
      texts.push_back(text);
    }
    return Status();
  }
  Tensor Take(Shape shape) {
    if (dtype == DType::kF32) return Tensor::Of<float>(dtype, std::move(shape), floats);
    if (dtype == DType::kI64) return Tensor::Of<int64_t>(dtype, std::move(shape), ints);
    growth.Clear();
    return Tensor::Strings(std::move(shape), std::move(texts));
  }
};

// The features of a batch of messages, or of a single one, whose results have no batch axis.
class Batch {
 public:
  Batch(std::vector<Example> examples, bool single)
      : examples_(std::move(examples)), single_(single) {}

  // Null when the example has no such feature.
  Result<const Feature*> Find(size_t example, const std::string& key, DType dtype) const {
    const auto it = examples_[example].find(key);
    if (it == examples_[example].end() || it->second.kind == Feature::Kind::kNone) return nullptr;
    const DType own = TypeOf(it->second.kind);
    if (own == dtype) return &it->second;
    return InvalidArgument("Key: ", key, ".  Data types don't match. Expected type: ", dtype,
                           " but got ", own, " (example ", example, ")");
  }

  Status Sparse(const std::string& key, DType dtype, Tensor& places, Tensor& values,
                Tensor& sizes) const {
    Column column(dtype);
    std::vector<int64_t> index;
    int64_t widest = 0;
    for (size_t e = 0; e < examples_.size(); ++e) {
      ONCILLA_ASSIGN(const Feature* f, Find(e, key, dtype));
      if (f == nullptr) continue;
      ONCILLA_TRY(column.Append(*f));
      widest = std::max(widest, f->size());
      for (int64_t i = 0; i < f->size(); ++i) {
        if (!single_) index.push_back(static_cast<int64_t>(e));
        index.push_back(i);
      }
    }
    const int64_t count = column.size();
    places = Tensor::Of<int64_t>(DType::kI64, {count, single_ ? 1 : 2}, index);
    values = column.Take({count});
    std::vector<int64_t> shape;
    if (!single_) shape.push_back(std::ssize(examples_));
    shape.push_back(widest);
    sizes = Tensor::Int64s(shape);
    return {};
  }

  Result<Tensor> Dense(const std::string& key, DType dtype, Shape shape,
                       const Tensor& missing) const {
    Column column(dtype);
    const bool variable = shape.rank() > 0 && shape[0] < 0;
    std::vector<const Feature*> found;
    int64_t widest = 0;
    const int64_t row = variable ? shape.Product(1, shape.rank()) : shape.elements();
    for (size_t e = 0; e < examples_.size(); ++e) {
      ONCILLA_ASSIGN(const Feature* f, Find(e, key, dtype));
      found.push_back(f);
      if (f == nullptr) {
        if (!variable && missing.elements() == 0 && row != 0) {
          return InvalidArgument("Feature: ", key, " (data type: ", dtype,
                                 ") is required but could not be found. (example ", e, ")");
        }
        if (!variable && missing.elements() != row && missing.elements() != 1) {
          return InvalidArgument("the default of '", key, "' has ", missing.elements(),
                                 " elements instead of ", row);
        }
        continue;
      }
      if (variable ? (row == 0 || f->size() % row != 0) : f->size() != row) {
        return InvalidArgument("Key: ", key, ".  Number of ", dtype,
                               " values != expected.  Values size: ", f->size(),
                               " but output shape: ", Shape(shape), " (example ", e, ")");
      }
      if (variable) widest = std::max(widest, f->size() / row);
    }
    if (variable) shape[0] = widest;
    const int64_t elements = shape.elements();
    if (SaturatingMul(elements, std::ssize(examples_)) > (int64_t{1} << 31)) {
      return Exhausted("the dense feature '", key, "' has too many elements");
    }
    for (const Feature* f : found) {
      if (f == nullptr && !variable) {
        ONCILLA_TRY(column.Append(missing, elements, missing.elements() == 1));
        continue;
      }
      int64_t have = 0;
      if (f != nullptr) {
        ONCILLA_TRY(column.Append(*f));
        have = f->size();
      }
      if (have == elements) continue;
      if (missing.elements() != 1) {
        return InvalidArgument("the default of '", key, "' that pads must be one element");
      }
      ONCILLA_TRY(column.Append(missing, elements - have, true));
    }
    if (!single_) shape.Insert(0, std::ssize(examples_));
    return column.Take(std::move(shape));
  }

  Status Ragged(const std::string& key, DType dtype, DType split, Tensor& values,
                Tensor& splits) const {
    Column column(dtype);
    std::vector<int64_t> ends = {0};
    for (size_t e = 0; e < examples_.size(); ++e) {
      ONCILLA_ASSIGN(const Feature* f, Find(e, key, dtype));
      if (f != nullptr) ONCILLA_TRY(column.Append(*f));
      ends.push_back(column.size());
    }
    values = column.Take({column.size()});
    splits = WholeNumbers(split, ends);
    return {};
  }

  // The outputs of ParseExamples.
  Result<std::vector<Tensor>> Parse(const ParseExamplesAttrs& attrs,
                                    std::span<const Tensor> defaults) const {
    const size_t sparse = attrs.sparse_keys.size(), ragged = attrs.ragged_keys.size();
    std::vector<Tensor> out(3 * sparse);
    for (size_t i = 0; i < sparse; ++i) {
      ONCILLA_TRY(Sparse(attrs.sparse_keys[i], TypeOf(attrs.sparse_types[i]), out[i],
                         out[sparse + i], out[2 * sparse + i]));
    }
    auto dim = attrs.dense_dims.begin();
    for (size_t i = 0; i < attrs.dense_keys.size(); ++i) {
      const Shape shape(dim, dim + attrs.dense_ranks[i]);
      dim += attrs.dense_ranks[i];
      ONCILLA_ASSIGN(Tensor dense,
                     Dense(attrs.dense_keys[i], TypeOf(attrs.dense_types[i]), shape, defaults[i]));
      out.push_back(std::move(dense));
    }
    std::vector<Tensor> splits(ragged);
    for (size_t i = 0; i < ragged; ++i) {
      Tensor values;
      ONCILLA_TRY(Ragged(attrs.ragged_keys[i], TypeOf(attrs.ragged_types[i]),
                         TypeOf(attrs.ragged_splits[i]), values, splits[i]));
      out.push_back(std::move(values));
    }
    out.insert(out.end(), splits.begin(), splits.end());
    return out;
  }

 private:
  const std::vector<Example> examples_;
  const bool single_;
};

}  // namespace oncilla::cpu
