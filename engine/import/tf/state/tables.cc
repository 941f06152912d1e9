// The initial contents of tables that change: those of the checkpoint, as TensorFlow's own loader
// restores them, or none.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/import/tf/graph/control.h"

namespace oncilla {
namespace {

// Selects rows of a tensor; the result has the given shape.
Result<Tensor> Rows(const Tensor& x, std::span<const size_t> rows, Shape shape) {
  const auto all = static_cast<size_t>(std::max<int64_t>(1, x.shape()[0]));
  if (x.dtype() == DType::kString) {
    const size_t width = x.strings().size() / all;
    std::vector<std::string> strings;
    for (size_t row : rows) {
      for (size_t i = 0; i < width; ++i) strings.push_back(x.strings()[row * width + i]);
    }
    return Tensor::Strings(std::move(shape), std::move(strings));
  }
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({x.dtype(), std::move(shape)}));
  const size_t bytes = x.bytes().size() / all;
  for (size_t i = 0; i < rows.size() && bytes > 0; ++i) {
    std::memcpy(out.mutable_bytes().data() + i * bytes, x.bytes().data() + rows[i] * bytes, bytes);
  }
  return out;
}

Result<TfTableContents> Sorted(const TfTableContents& table) {
  std::vector<size_t> order(static_cast<size_t>(table.keys.elements()));
  std::iota(order.begin(), order.end(), size_t{0});
  if (table.keys.dtype() == DType::kString) {
    const auto& keys = table.keys.strings();
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  } else {
    ONCILLA_ASSIGN(const std::vector<int64_t> keys, ToInt64s(table.keys));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  }
  TfTableContents sorted;
  ONCILLA_ASSIGN(sorted.keys, Rows(table.keys, order, table.keys.shape()));
  ONCILLA_ASSIGN(sorted.values, Rows(table.values, order, table.values.shape()));
  return sorted;
}

// The single element of a constant input of a node.
Result<Tensor> ConstantInput(TfImportState& state, const TfNode& node, size_t input) {
  const TfBody& main = state.source.main();
  const int id = input < node.inputs.size() ? main.Find(node.inputs[input].node) : -1;
  if (id < 0 || main.nodes[static_cast<size_t>(id)].op != "Const") {
    return Unsupported("its empty or deleted key is not a constant");
  }
  ONCILLA_ASSIGN(Tensor key, state.source.TensorAttr(main.nodes[static_cast<size_t>(id)], "value"));
  if (key.elements() != 1) return Unsupported("keys of ", key.desc());
  return key;
}

// A dense hash table is stored as all its buckets, keys [n, 1]; buckets with the empty or deleted
// key are free.
Result<TfTableContents> WithoutFreeBuckets(TfImportState& state, const TfNode& node,
                                           const TfTableContents& all, const Shape& row) {
  const Shape &keys = all.keys.shape(), &values = all.values.shape();
  const int64_t buckets = keys.rank() < 1 ? 0 : keys[0];
  if (keys.rank() < 1 || keys.elements() != buckets || values.rank() < 1 || values[0] != buckets ||
      values.Product(1, values.rank()) != row.elements()) {
    return DataLoss("its buckets are ", all.keys.desc(), " and ", all.values.desc());
  }
  ONCILLA_ASSIGN(const Tensor empty, ConstantInput(state, node, 0));
  ONCILLA_ASSIGN(const Tensor deleted, ConstantInput(state, node, 1));
  const bool text = all.keys.dtype() == DType::kString;
  std::vector<int64_t> numbers;
  int64_t none[2] = {};
  if (!text) {
    ONCILLA_ASSIGN(numbers, ToInt64s(all.keys));
    for (int i = 0; i < 2; ++i) {
      ONCILLA_ASSIGN(const auto key, ToInt64s(i == 0 ? empty : deleted));
      none[i] = key[0];
    }
  }
  std::vector<size_t> kept;
  for (size_t i = 0; i < static_cast<size_t>(buckets); ++i) {
    const bool is_free = text ? all.keys.strings()[i] == empty.strings()[0] ||
                                    all.keys.strings()[i] == deleted.strings()[0]
                              : numbers[i] == none[0] || numbers[i] == none[1];
    if (!is_free) kept.push_back(i);
  }
  Shape shape = row;
  shape.Insert(0, static_cast<int64_t>(kept.size()));
  TfTableContents out;
  ONCILLA_ASSIGN(out.keys, Rows(all.keys, kept, Shape{static_cast<int64_t>(kept.size())}));
  ONCILLA_ASSIGN(out.values, Rows(all.values, kept, std::move(shape)));
  return out;
}

Result<Tensor> Nothing(DType dtype, Shape shape) {
  if (dtype == DType::kString) return Tensor::Strings(std::move(shape), {});
  return Tensor::Allocate({dtype, std::move(shape)});
}

}  // namespace

Result<TfTableContents> FirstTfTable(TfImportState& state, const TfFlatNode& node) {
  const TfAttrs attrs = state.source.Attrs(*node.source);
  ONCILLA_ASSIGN(const DType key_dtype, attrs.Type("key_dtype"));
  ONCILLA_ASSIGN(const DType value_dtype, attrs.Type("value_dtype"));
  Shape row;
  if (attrs.Has("value_shape")) {
    ONCILLA_ASSIGN(const PartialShape shape, attrs.Shape("value_shape"));
    if (!shape.known()) return Unsupported("the shape of the values is ", shape);
    row = shape.ToShape();
  }
  std::optional<TfTableContents> found;
  if (state.table) {
    ONCILLA_ASSIGN(found, state.table(*node.source));
  }
  if (!found.has_value()) {
    row.Insert(0, 0);
    TfTableContents empty;
    ONCILLA_ASSIGN(empty.keys, Nothing(key_dtype, Shape{0}));
    ONCILLA_ASSIGN(empty.values, Nothing(value_dtype, row));
    return empty;
  }
  if (node.op().find("Dense") != std::string_view::npos) {
    ONCILLA_ASSIGN(found, WithoutFreeBuckets(state, *node.source, *found, row));
  }
  const Shape &keys = found->keys.shape(), &values = found->values.shape();
  const bool fits = keys.rank() == 1 && values.rank() >= 1 && values[0] == keys[0] &&
                    Shape(values.begin() + 1, values.end()) == row;
  if (!fits || found->keys.dtype() != key_dtype || found->values.dtype() != value_dtype) {
    return DataLoss("the table '", node.name, "' is of ", key_dtype, " to ", value_dtype, row,
                    ", and the checkpoint holds ", found->keys.desc(), " and ",
                    found->values.desc());
  }
  return Sorted(*found);
}

}  // namespace oncilla
