// Ops on tables: host functions. A table is its sorted keys and values, and a lookup is a binary
// search.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cpu/kernel.h"
#include "engine/ops/data/table.h"

namespace oncilla::cpu {
namespace {

using Tensors = std::vector<Tensor>;

// The keys of a tensor, as numbers or as strings.
class Keys {
 public:
  static Result<Keys> Read(const Tensor& t) {
    Keys keys;
    if (t.dtype() == DType::kString) {
      keys.strings_ = &t.strings();
    } else {
      ONCILLA_ASSIGN(keys.ints_, ToInt64s(t));
    }
    return keys;
  }
  size_t size() const { return strings_ != nullptr ? strings_->size() : ints_.size(); }
  // Compares key i of this to key j of `other`: negative, zero or positive.
  int Compare(size_t i, const Keys& other, size_t j) const {
    if (strings_ != nullptr) return (*strings_)[i].compare((*other.strings_)[j]);
    return ints_[i] < other.ints_[j] ? -1 : ints_[i] > other.ints_[j] ? 1 : 0;
  }
  std::string Text(size_t i) const {
    return strings_ != nullptr ? (*strings_)[i] : std::to_string(ints_[i]);
  }
  // The index of a key, or size() when it is not there. Keys are sorted.
  size_t Find(const Keys& other, size_t j) const {
    size_t low = 0, high = size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (Compare(middle, other, j) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < size() && Compare(low, other, j) == 0 ? low : size();
  }

 private:
  const std::vector<std::string>* strings_ = nullptr;
  std::vector<int64_t> ints_;
};

// A row of one of several tensors.
struct Row {
  const Tensor* from;
  int64_t row;
};

bool SameRow(const Row& a, const Row& b, int64_t width) {
  if (a.from->dtype() == DType::kString) {
    const auto first = a.from->strings().begin() + a.row * width;
    return std::equal(first, first + width, b.from->strings().begin() + b.row * width);
  }
  const auto bytes = static_cast<size_t>(width * BytesOf(a.from->dtype()));
  return std::memcmp(a.from->bytes().data() + static_cast<size_t>(a.row) * bytes,
                     b.from->bytes().data() + static_cast<size_t>(b.row) * bytes, bytes) == 0;
}

// Collects the rows, of `width` elements each, into a tensor of a shape.
Result<Tensor> Collect(std::span<const Row> rows, DType dtype, int64_t width, Shape shape) {
  if (dtype == DType::kString) {
    std::vector<std::string> strings;
    for (const Row& row : rows) {
      const auto first = row.from->strings().begin() + row.row * width;
      strings.insert(strings.end(), first, first + width);
    }
    return Tensor::Strings(std::move(shape), std::move(strings));
  }
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({dtype, std::move(shape)}));
  const auto bytes = static_cast<size_t>(width * BytesOf(dtype));
  std::byte* to = out.mutable_bytes().data();
  for (const Row& row : rows) {
    std::memcpy(to, row.from->bytes().data() + static_cast<size_t>(row.row) * bytes, bytes);
    to += bytes;
  }
  return out;
}

int64_t WidthOf(const Tensor& values) { return values.shape().Product(1, values.shape().rank()); }

Status CheckTable(const Tensor& keys, const Tensor& values) {
  if (values.shape().rank() > 0 && values.shape()[0] == keys.elements()) return Status();
  return InvalidArgument("keys ", keys.desc(), " and values ", values.desc(),
                         " are not a table: one value per key is needed");
}

Result<Tensors> TableFrom(std::span<const Row> keys, std::span<const Row> values,
                          const Tensor& key_like, const Tensor& value_like) {
  const auto count = static_cast<int64_t>(keys.size());
  Shape shape = value_like.shape();
  shape[0] = count;
  ONCILLA_ASSIGN(Tensor k, Collect(keys, key_like.dtype(), 1, Shape{count}));
  ONCILLA_ASSIGN(Tensor v, Collect(values, value_like.dtype(), WidthOf(value_like), shape));
  return Tensors{std::move(k), std::move(v)};
}

std::vector<size_t> InOrder(const Keys& keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys.Compare(a, keys, b) < 0; });
  return order;
}

Result<Tensors> TableMake(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_TRY(CheckTable(in[0], in[1]));
  ONCILLA_ASSIGN(const Keys keys, Keys::Read(in[0]));
  std::vector<Row> key_rows, value_rows;
  size_t last = 0;
  for (size_t i : InOrder(keys)) {
    const Row value{&in[1], static_cast<int64_t>(i)};
    if (!key_rows.empty() && keys.Compare(last, keys, i) == 0) {
      if (SameRow(value_rows.back(), value, WidthOf(in[1]))) continue;
      return InvalidArgument("the key '", keys.Text(i), "' has two different values");
    }
    key_rows.push_back({&in[0], static_cast<int64_t>(i)});
    value_rows.push_back(value);
    last = i;
  }
  return TableFrom(key_rows, value_rows, in[0], in[1]);
}

Result<Tensors> TableFind(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const Tensor &values = in[1], &missing = in[3];
  ONCILLA_TRY(CheckTable(in[0], values));
  ONCILLA_ASSIGN(const Keys keys, Keys::Read(in[0]));
  ONCILLA_ASSIGN(const Keys query, Keys::Read(in[2]));
  const int64_t width = WidthOf(values);
  // There is one default for all keys, or one for each.
  const auto count = static_cast<int64_t>(query.size());
  if (missing.elements() != width && missing.elements() != SaturatingMul(count, width)) {
    return InvalidArgument("the default is ", missing.desc(), " for values of ", width,
                           " elements");
  }
  const bool each = missing.elements() != width;
  std::vector<Row> rows;
  for (int64_t j = 0; j < count; ++j) {
    const size_t at = keys.Find(query, static_cast<size_t>(j));
    rows.push_back(at < keys.size() ? Row{&values, static_cast<int64_t>(at)}
                                    : Row{&missing, each ? j : 0});
  }
  Shape shape = in[2].shape();
  for (int axis = 1; axis < values.shape().rank(); ++axis) shape.push_back(values.shape()[axis]);
  ONCILLA_ASSIGN(Tensor out, Collect(rows, values.dtype(), width, std::move(shape)));
  return Tensors{std::move(out)};
}

Result<Tensors> TableInsert(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_TRY(CheckTable(in[0], in[1]));
  ONCILLA_TRY(CheckTable(in[2], in[3]));
  ONCILLA_ASSIGN(const Keys old, Keys::Read(in[0]));
  ONCILLA_ASSIGN(const Keys added, Keys::Read(in[2]));
  if (WidthOf(in[1]) != WidthOf(in[3]) && old.size() > 0) {
    return InvalidArgument("values ", in[3].desc(), " do not fit a table of ", in[1].desc());
  }
  std::vector<Row> keys, values;
  const std::vector<size_t> order = InOrder(added);
  size_t o = 0, a = 0;
  while (o < old.size() || a < order.size()) {
    // Where new keys are equal, the last one counts.
    while (a + 1 < order.size() && added.Compare(order[a], added, order[a + 1]) == 0) ++a;
    const int side = o == old.size() ? 1 : a == order.size() ? -1 : old.Compare(o, added, order[a]);
    if (side < 0) {
      keys.push_back({&in[0], static_cast<int64_t>(o)});
      values.push_back({&in[1], static_cast<int64_t>(o)});
    } else {
      keys.push_back({&in[2], static_cast<int64_t>(order[a])});
      values.push_back({&in[3], static_cast<int64_t>(order[a])});
    }
    if (side <= 0) ++o;
    if (side >= 0) ++a;
  }
  return TableFrom(keys, values, in[0], in[3]);
}

Result<Tensors> TableRemove(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_TRY(CheckTable(in[0], in[1]));
  ONCILLA_ASSIGN(const Keys old, Keys::Read(in[0]));
  ONCILLA_ASSIGN(const Keys removed, Keys::Read(in[2]));
  std::vector<bool> gone(old.size());
  for (size_t j = 0; j < removed.size(); ++j) {
    const size_t at = old.Find(removed, j);
    if (at < old.size()) gone[at] = true;
  }
  std::vector<Row> keys, values;
  for (size_t i = 0; i < old.size(); ++i) {
    if (gone[i]) continue;
    keys.push_back({&in[0], static_cast<int64_t>(i)});
    values.push_back({&in[1], static_cast<int64_t>(i)});
  }
  return TableFrom(keys, values, in[0], in[1]);
}

constexpr DTypeSet kKeys = kIntegers | kStrings;
const KernelRow kRows[] = {
    HostRow<TableFind>("TableFind", kKeys),
    HostRow<TableInsert>("TableInsert", kKeys),
    HostRow<TableMake>("TableMake", kKeys),
    HostRow<TableRemove>("TableRemove", kKeys),
};

}  // namespace

std::span<const KernelRow> TableKernels() { return kRows; }

}  // namespace oncilla::cpu
