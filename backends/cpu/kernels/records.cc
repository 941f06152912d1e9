// Records in strings to tensors: host functions.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/text/number_text.h"
#include "backends/cpu/text/strings.h"
#include "engine/ops/data/records.h"
#include "engine/records/csv.h"
#include "engine/records/example.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

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
  // Elements [begin, end) of a tensor; element 0 again and again where it is `single`.
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

class Batch {
 public:
  Batch(std::vector<Example> examples, bool single)
      : examples_(std::move(examples)), single_(single) {}

  // Null when the example has no such feature.
  Result<const Feature*> Find(size_t example, const std::string& key, DType dtype) const {
    const auto it = examples_[example].find(key);
    if (it == examples_[example].end() || it->second.kind == Feature::Kind::kNone) return nullptr;
    const Feature::Kind kind = it->second.kind;
    const DType own = kind == Feature::Kind::kFloat   ? DType::kF32
                      : kind == Feature::Kind::kInt64 ? DType::kI64
                                                      : DType::kString;
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

 private:
  const std::vector<Example> examples_;
  const bool single_;
};

DType TypeOf(const std::string& name) { return DTypeFromName(name).value_or(DType::kInvalid); }

Tensors ParseExamples(const ParseExamplesAttrs& attrs, const NodeView&,
                      std::span<const Tensor> in) {
  std::vector<Example> examples;
  for (const std::string& text : in[0].strings()) {
    auto example = ReadExample(text);
    if (!example.ok()) return In(example.status(), StrCat("example ", examples.size()));
    examples.push_back(*std::move(example));
  }
  const Batch batch(std::move(examples), in[0].shape().rank() == 0);
  const size_t sparse = attrs.sparse_keys.size(), ragged = attrs.ragged_keys.size();
  std::vector<Tensor> out(3 * sparse);
  for (size_t i = 0; i < sparse; ++i) {
    ONCILLA_TRY(batch.Sparse(attrs.sparse_keys[i], TypeOf(attrs.sparse_types[i]), out[i],
                             out[sparse + i], out[2 * sparse + i]));
  }
  auto dim = attrs.dense_dims.begin();
  for (size_t i = 0; i < attrs.dense_keys.size(); ++i) {
    const Shape shape(dim, dim + attrs.dense_ranks[i]);
    dim += attrs.dense_ranks[i];
    ONCILLA_ASSIGN(Tensor dense, batch.Dense(attrs.dense_keys[i], TypeOf(attrs.dense_types[i]),
                                             shape, in[1 + i]));
    out.push_back(std::move(dense));
  }
  std::vector<Tensor> splits(ragged);
  for (size_t i = 0; i < ragged; ++i) {
    Tensor values;
    ONCILLA_TRY(batch.Ragged(attrs.ragged_keys[i], TypeOf(attrs.ragged_types[i]),
                             TypeOf(attrs.ragged_splits[i]), values, splits[i]));
    out.push_back(std::move(values));
  }
  out.insert(out.end(), splits.begin(), splits.end());
  return out;
}

Tensors DecodeCsv(const DecodeCsvAttrs& attrs, const NodeView& node, std::span<const Tensor> in) {
  const Shape& shape = in[0].shape();
  const size_t columns = in.size() - 1;
  std::vector<std::vector<std::string>> fields(columns);
  size_t row = 0;
  for (const std::string& record : in[0].strings()) {
    auto split = SplitCsv(record, attrs.separator[0], attrs.quotes);
    const std::string where = StrCat("record ", row++);
    if (!split.ok()) return In(split.status(), where);
    const bool all = attrs.columns.empty();
    const size_t need = all ? columns : static_cast<size_t>(attrs.columns.back()) + 1;
    if (all ? split->size() != need : split->size() < need) {
      return In(InvalidArgument("Expect ", need, " fields but have ", split->size()), where);
    }
    for (size_t c = 0; c < columns; ++c) {
      fields[c].push_back(std::move((*split)[all ? c : static_cast<size_t>(attrs.columns[c])]));
    }
  }
  std::vector<Tensor> out;
  for (size_t c = 0; c < columns; ++c) {
    const Tensor& standard = in[c + 1];
    const DType dtype = node.inputs[c + 1].dtype;
    std::vector<std::string>& texts = fields[c];
    Status status;
    auto absent = [&](size_t i) {
      const bool is = texts[i].empty() || texts[i] == attrs.missing;
      if (is && standard.elements() == 0 && status.ok()) {
        status = InvalidArgument("Field ", c, " is required but missing in record ", i, "!");
      }
      return is;
    };
    if (dtype == DType::kString) {
      for (size_t i = 0; i < texts.size() && status.ok(); ++i) {
        if (absent(i) && status.ok()) texts[i] = standard.strings()[0];
      }
      ONCILLA_TRY(status);
      out.push_back(Tensor::Strings(shape, std::move(texts)));
      continue;
    }
    ONCILLA_ASSIGN(Tensor column, Tensor::Allocate({dtype, shape}));
    DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (!std::is_same_v<T, bool>) {
        const auto y = column.MutableAs<T>();
        for (size_t i = 0; i < texts.size() && status.ok(); ++i) {
          if (absent(i)) {
            if (status.ok()) y[i] = standard.As<T>()[0];
          } else if (!ParseNumber(texts[i], y[i])) {
            status = InvalidArgument("Field ", c, " in record ", i, " is not a valid ", dtype, ": ",
                                     texts[i].substr(0, 60));
          }
        }
      }
    });
    ONCILLA_TRY(status);
    out.push_back(std::move(column));
  }
  return out;
}

Tensors DecodeRaw(const DecodeRawAttrs& attrs, const NodeView& node, std::span<const Tensor> in) {
  const std::vector<std::string>& texts = in[0].strings();
  const auto width = static_cast<size_t>(BytesOf(attrs.to));
  size_t length = texts.empty() ? 0 : texts[0].size();
  const bool fixed = node.has_input(1);
  if (fixed) {
    ONCILLA_ASSIGN(const std::vector<int64_t> given, NeedInts(node.inputs[1], "length"));
    length = static_cast<size_t>(given[0]);
  } else {
    for (const std::string& text : texts) {
      if (text.size() == length) continue;
      return InvalidArgument(
          "DecodeRaw requires input strings to all be the same size, but "
          "elements of ",
          length, " and ", text.size(), " bytes are there");
    }
    if (length % width != 0) {
      return InvalidArgument("Input to DecodeRaw has length ", length,
                             " that is not a multiple of ", width, ", the size of ", attrs.to);
    }
  }
  Shape shape = in[0].shape();
  shape.push_back(static_cast<int64_t>(length / width));
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({attrs.to, shape}));
  std::byte* to = out.mutable_bytes().data();
  static_assert(std::endian::native == std::endian::little);
  for (const std::string& text : texts) {
    std::memcpy(to, text.data(), std::min(length, text.size()));
    if (!attrs.little_endian && width > 1) {
      for (size_t i = 0; i < length; i += width) std::reverse(to + i, to + i + width);
    }
    to += length;
  }
  if (attrs.to == DType::kBool) {
    for (std::byte& b : out.mutable_bytes()) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  return std::vector<Tensor>{std::move(out)};
}

Tensors PackBytes(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const Shape shape = in[0].shape();
  const Shape outer(shape.begin(), shape.end() - 1);
  const auto bytes = in[0].As<uint8_t>();
  const auto size = static_cast<size_t>(shape.back());
  std::vector<std::string> text;
  for (int64_t i = 0; i < outer.Product(0, outer.rank()); ++i) {
    const auto part = bytes.subspan(static_cast<size_t>(i) * size, size);
    text.emplace_back(part.begin(), part.end());
  }
  return std::vector<Tensor>{Tensor::Strings(outer, std::move(text))};
}

const KernelRow kRows[] = {
    HostRow<ParseExamples>("ParseExamples", kStrings),
    HostRow<DecodeCsv>("DecodeCsv", kStrings),
    HostRow<DecodeRaw>("DecodeRaw", kStrings),
    HostRow<PackBytes>("PackBytes", Set(DType::kU8)),
};

}  // namespace

std::span<const KernelRow> RecordKernels() { return kRows; }

}  // namespace oncilla::cpu
