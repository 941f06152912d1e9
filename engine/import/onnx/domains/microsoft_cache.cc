// The cache of keys and values of GroupQueryAttention: its stored form, which rows it keeps, and
// which of them the queries see.
#include "engine/import/onnx/domains/microsoft_cache.h"

#include "engine/import/onnx/ops/attention.h"
#include "engine/ops/array/indexing.h"
#include "engine/ops/array/movement.h"
#include "engine/ops/check.h"

namespace oncilla {
namespace {

int64_t StoredSize(const CacheForm& form, const Grouped& g) {
  return form.bits == 4 ? g.size / 2 : g.size;
}

// The shape of x [N, heads, rows, ..] with the axes after the rows replaced by `sizes`.
Result<ValueId> ShapeOfRows(OnnxLowering& b, ValueId x, std::vector<int64_t> sizes,
                            const std::string& name) {
  ONCILLA_ASSIGN(const ValueId rows, b.Sizes(x, 0, 3, name + "_rows"));
  return b.Add(ConcatAttrs{.axis = 0}, {rows, b.Ints(std::move(sizes))}, name + "_shape");
}

// Packs integers from 0 to 15 [.., size] in pairs as bytes [.., size / 2].
Result<ValueId> InPairs(OnnxLowering& b, ValueId x, int64_t size, const std::string& name) {
  ONCILLA_ASSIGN(const ValueId apart, ShapeOfRows(b, x, {size / 2, 2}, name + "_apart"));
  ONCILLA_ASSIGN(const ValueId pairs, b.Add(ReshapeAttrs{}, {x, apart}, name + "_of_two"));
  ONCILLA_ASSIGN(const Values halves, b.AddAll(SplitAttrs{.axis = 4, .parts = 2},
                                               {pairs, b.Ints({1, 1})}, name + "_halves"));
  ONCILLA_ASSIGN(const ValueId four, b.Scalar(DType::kU8, 4));
  ONCILLA_ASSIGN(const ValueId high, b.Add("ShiftLeft", {}, {halves[1], four}, name + "_high"));
  ONCILLA_ASSIGN(const ValueId both, b.Add("BitOr", {}, {halves[0], high}, name + "_both"));
  ONCILLA_ASSIGN(const ValueId shape, ShapeOfRows(b, x, {size / 2}, name + "_pairs"));
  return b.Add(ReshapeAttrs{}, {both, shape}, name);
}
// The reverse of InPairs.
Result<ValueId> OutOfPairs(OnnxLowering& b, ValueId x, int64_t size, const std::string& name) {
  ONCILLA_ASSIGN(const ValueId low_bits, b.Scalar(DType::kU8, 15));
  ONCILLA_ASSIGN(const ValueId four, b.Scalar(DType::kU8, 4));
  ONCILLA_ASSIGN(ValueId low, b.Add("BitAnd", {}, {x, low_bits}, name + "_lower"));
  ONCILLA_ASSIGN(ValueId high, b.Add("ShiftRight", {}, {x, four}, name + "_higher"));
  ONCILLA_ASSIGN(low, b.Unsqueeze(low, {4}, name + "_low"));
  ONCILLA_ASSIGN(high, b.Unsqueeze(high, {4}, name + "_high"));
  ONCILLA_ASSIGN(const ValueId pairs, b.Add(ConcatAttrs{.axis = 4}, {low, high}, name + "_pairs"));
  ONCILLA_ASSIGN(const ValueId shape, ShapeOfRows(b, x, {size}, name + "_single"));
  return b.Add(ReshapeAttrs{}, {pairs, shape}, name + "_singles");
}

// Rows [N, shared, L, size] in the form that the cache stores. (ONNX Runtime, too, multiplies by 1
// / scale.)
Result<ValueId> Store(OnnxLowering& b, const CacheForm& form, int64_t size, ValueId rows,
                      const std::string& name) {
  if (form.bits == 0) return rows;
  const double half = form.bits == 8 ? 128 : 8;
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(DType::kF32, -half));
  ONCILLA_ASSIGN(const ValueId most, b.Scalar(DType::kF32, half - 1));
  ONCILLA_ASSIGN(ValueId x, b.Cast(rows, DType::kF32, name + "_real"));
  ONCILLA_ASSIGN(x, b.Add("Mul", {}, {x, form.factor}, name + "_scaled"));
  ONCILLA_ASSIGN(x, b.Add("Round", {}, {x}, name + "_rounded"));
  ONCILLA_ASSIGN(x, b.Add("Clip", {}, {x, least, most}, name + "_bounded"));
  if (form.bits == 8) return b.Cast(x, DType::kI8, name + "_bytes");
  ONCILLA_ASSIGN(const ValueId eight, b.Scalar(DType::kF32, 8));
  ONCILLA_ASSIGN(x, b.Add("Add", {}, {x, eight}, name + "_positive"));
  ONCILLA_ASSIGN(x, b.Cast(x, DType::kU8, name + "_bits"));
  return InPairs(b, x, size, name + "_packed");
}

// The cache [N, shared, rows, ..] dequantised to the op's type.
Result<ValueId> Load(OnnxLowering& b, const CacheForm& form, int64_t size, ValueId x,
                     const std::string& name) {
  if (form.bits == 0) return x;
  if (form.bits == 4) {
    ONCILLA_ASSIGN(x, OutOfPairs(b, x, size, name + "_unpacked"));
  }
  ONCILLA_ASSIGN(x, b.Cast(x, DType::kF32, name + "_integers"));
  if (form.bits == 4) {
    ONCILLA_ASSIGN(const ValueId eight, b.Scalar(DType::kF32, 8));
    ONCILLA_ASSIGN(x, b.Add("Sub", {}, {x, eight}, name + "_signed"));
  }
  ONCILLA_ASSIGN(x, b.Add("Mul", {}, {x, form.scale}, name + "_real"));
  return b.Cast(x, b.dtype(), name);
}

// The cache with the new rows written to it. It has its old length, or what the longest sample
// needs if that is more. Rows after those of a sample are kept, as in a buffer that past and
// present share.
Result<ValueId> AddPresent(OnnxLowering& b, const Grouped& g, const CacheForm& form, ValueId past,
                           ValueId rows, const std::string& name) {
  const ValueId none = b.Ints({0});
  ONCILLA_ASSIGN(rows, Store(b, form, g.size, rows, name));
  if (past == kNoValue) {
    ONCILLA_ASSIGN(past, b.Add("Slice", {}, {rows, none, none, b.Ints({2})}, name + "_empty"));
  } else {
    ONCILLA_ASSIGN(past, b.Add(EnsureShapeAttrs{.dims = {-1, g.shared, -1, StoredSize(form, g)}},
                               {past}, name + "_past"));
  }
  ONCILLA_ASSIGN(const ValueId size, b.Sizes(past, 2, 3, name + "_size"));
  ONCILLA_ASSIGN(ValueId more, b.Add("Sub", {}, {g.total, size}, name + "_lacking"));
  ONCILLA_ASSIGN(more, b.Add("Max", {}, {more, none}, name + "_added"));
  const ValueId before = b.Ints({0, 0, 0, 0, 0, 0});
  ONCILLA_ASSIGN(const ValueId pads,
                 b.Add(ConcatAttrs{.axis = 0}, {before, more, none}, name + "_pads"));
  ONCILLA_ASSIGN(const ValueId room, b.Add(PadAttrs{}, {past, pads}, name + "_room"));
  // A negative position does not count from the end; it must fail like any outside the cache.
  ONCILLA_ASSIGN(const ValueId all, SizeOf(b, room, 2, name + "_rows_in_all"));
  ONCILLA_ASSIGN(const ValueId wrong, b.Add("Less", {}, {g.places, none}, name + "_wrong"));
  ONCILLA_ASSIGN(ValueId places, b.Add("Where", {}, {wrong, all, g.places}, name + "_checked"));
  ONCILLA_ASSIGN(places, b.Unsqueeze(places, {1, 3}, name + "_along"));
  ONCILLA_ASSIGN(const ValueId shape, b.Sizes(rows, 0, 4, name + "_shape"));
  ONCILLA_ASSIGN(places, b.Add("Expand", {}, {places, shape}, name + "_places"));
  return b.Add(ScatterElementsAttrs{.axis = 2}, {room, places, rows}, name);
}

// A cache of only the last keys (sliding_window_cache). It has C rows; the first L(T) hold, in
// order, the last keys of a sample that has had T keys. When they are full, G of them are dropped
// at once, so that L depends on T alone and at least the window of W keys remains:
//   G = C - W + 1,  L(T) = T - G * ceil(max(T - C, 0) / G)
// The queries attend to the rows held before, followed by their own. (See "Windowed KV Cache" in
// the op's documentation. It leaves the rows after L(T) open; here they repeat the last one.)
class WindowedCache {
 public:
  WindowedCache(OnnxLowering& b, const Grouped& g) : b_(b), g_(g) {}

  Result<Cache> Make(int64_t window) {
    zero_ = b_.Constant(Tensor::ScalarInt64(0));
    one_ = b_.Constant(Tensor::ScalarInt64(1));
    ONCILLA_TRY(Measure(window));
    Cache cache;
    ONCILLA_ASSIGN(const ValueId held, Held(g_.start, "held_before"));
    ONCILLA_ASSIGN(const ValueId first, Sub(g_.start, held, "first_before"));
    ONCILLA_ASSIGN(const ValueId held_now, Held(g_.lengths, "held"));
    ONCILLA_ASSIGN(const ValueId first_now, Sub(g_.lengths, held_now, "first"));
    ONCILLA_ASSIGN(cache.lengths, Sub(g_.lengths, first, "rows_with_keys"));
    cache.starts = held;
    ONCILLA_ASSIGN(const ValueId places, PlacesInOrder(held));
    ONCILLA_ASSIGN(ValueId kept, Sub(first_now, first, "rows_let_go"));
    ONCILLA_ASSIGN(kept, From(kept, capacity_, last_, "kept"));
    ONCILLA_ASSIGN(const ValueId keys, InOrder(g_.key_form, g_.past_keys, g_.k, places, "key"));
    ONCILLA_ASSIGN(const ValueId values,
                   InOrder(g_.value_form, g_.past_values, g_.v, places, "value"));
    ONCILLA_ASSIGN(cache.present_keys, Rows(keys, kept, 2, "present_key"));
    ONCILLA_ASSIGN(cache.present_values, Rows(values, kept, 2, "present_value"));
    ONCILLA_ASSIGN(cache.keys, Load(b_, g_.key_form, g_.size, keys, "keys"));
    ONCILLA_ASSIGN(cache.values, Load(b_, g_.value_form, g_.size, values, "values"));
    if (g_.bias != kNoValue) {
      ONCILLA_ASSIGN(cache.bias, Bias(first));
    }
    return cache;
  }

 private:
  Result<ValueId> Sub(ValueId x, ValueId y, const std::string& name) {
    return b_.Add("Sub", {}, {x, y}, name);
  }
  Status Check(ValueId condition, const char* what, ValueId number, const std::string& name) {
    const ValueId text = b_.Constant(Tensor::Strings({}, {what}));
    return b_.AddAll(AssertAttrs{}, {condition, text, number}, name).status();
  }

  // Sets C, G and the number of rows, and checks that the window fits in the cache and that no
  // sample has fewer keys than queries.
  Status Measure(int64_t window) {
    ONCILLA_ASSIGN(capacity_, SizeOf(b_, g_.past_keys, 2, "cache_capacity"));
    const ValueId within = b_.Constant(Tensor::ScalarInt64(window - 1));
    ONCILLA_ASSIGN(step_, Sub(capacity_, within, "let_go_at_once"));
    ONCILLA_ASSIGN(const ValueId fits, b_.Add("Greater", {}, {step_, zero_}, "window_fits"));
    ONCILLA_TRY(Check(fits, "the cache must have at least local_window_size rows; it has",
                      capacity_, "check_window"));
    // Keeps the step positive, since the nodes that divide by it may run before the check.
    ONCILLA_ASSIGN(step_, b_.Add("Max", {}, {step_, one_}, "step"));
    ONCILLA_ASSIGN(const ValueId known, b_.Add("GreaterEqual", {}, {g_.start, zero_}, "started"));
    ONCILLA_ASSIGN(const ValueId all, b_.Add("ReduceAll", {}, {known}, "all_started"));
    ONCILLA_TRY(Check(all, "a sample has fewer keys than queries; its queries start at", g_.start,
                      "check_lengths"));
    ONCILLA_ASSIGN(const ValueId fresh, SizeOf(b_, g_.k, 2, "new_keys"));
    ONCILLA_ASSIGN(rows_, b_.Add("Add", {}, {capacity_, fresh}, "rows"));
    ONCILLA_ASSIGN(last_, Sub(rows_, one_, "last_row"));
    return {};
  }

  // L(T) for samples that have had T = `keys` keys.
  Result<ValueId> Held(ValueId keys, const std::string& name) {
    ONCILLA_ASSIGN(ValueId beyond, Sub(keys, capacity_, name + "_beyond"));
    ONCILLA_ASSIGN(beyond, b_.Add("Max", {}, {beyond, zero_}, name + "_lacking"));
    ONCILLA_ASSIGN(const ValueId less, Sub(step_, one_, name + "_rounding"));
    ONCILLA_ASSIGN(beyond, b_.Add("Add", {}, {beyond, less}, name + "_rounded"));
    ONCILLA_ASSIGN(const ValueId times, b_.Add("Div", {}, {beyond, step_}, name + "_times"));
    ONCILLA_ASSIGN(const ValueId gone, b_.Add("Mul", {}, {times, step_}, name + "_gone"));
    return Sub(keys, gone, name);
  }

  // i64[N, count]: count consecutive numbers from each sample's `start`, limited to `last`.
  Result<ValueId> From(ValueId start, ValueId count, ValueId last, const std::string& name) {
    ONCILLA_ASSIGN(ValueId row, b_.Add("Range", {}, {zero_, count, one_}, name + "_row"));
    ONCILLA_ASSIGN(row, b_.Unsqueeze(row, {0}, name + "_row_of_all"));
    ONCILLA_ASSIGN(const ValueId each, b_.Unsqueeze(start, {1}, name + "_start"));
    ONCILLA_ASSIGN(row, b_.Add("Add", {}, {each, row}, name + "_numbers"));
    return b_.Add("Min", {}, {row, last}, name + "_places");
  }

  // The indices, in past rows followed by new rows, of the held rows and then the new ones.
  Result<ValueId> PlacesInOrder(ValueId held) {
    ONCILLA_ASSIGN(ValueId row, b_.Add("Range", {}, {zero_, rows_, one_}, "row"));
    ONCILLA_ASSIGN(row, b_.Unsqueeze(row, {0}, "row_of_all"));
    ONCILLA_ASSIGN(const ValueId each, b_.Unsqueeze(held, {1}, "held_of_rows"));
    ONCILLA_ASSIGN(const ValueId before, b_.Add("Less", {}, {row, each}, "is_held"));
    ONCILLA_ASSIGN(ValueId fresh, Sub(capacity_, held, "skipped"));
    ONCILLA_ASSIGN(fresh, From(fresh, rows_, last_, "new"));
    return b_.Add("Where", {}, {before, row, fresh}, "row_places");
  }

  // The held rows and then the new ones, in the form that the cache stores.
  Result<ValueId> InOrder(const CacheForm& form, ValueId past, ValueId rows, ValueId places,
                          const std::string& name) {
    const EnsureShapeAttrs shape = {.dims = {-1, g_.shared, -1, StoredSize(form, g_)}};
    ONCILLA_ASSIGN(past, b_.Add(shape, {past}, name + "_past"));
    ONCILLA_ASSIGN(rows, Store(b_, form, g_.size, rows, name + "_new"));
    ONCILLA_ASSIGN(const ValueId both,
                   b_.Add(ConcatAttrs{.axis = 2}, {past, rows}, name + "_past_and_new"));
    return Rows(both, places, 2, name + "_rows");
  }

  Result<ValueId> Rows(ValueId x, ValueId places, int64_t axis, const std::string& name) {
    return b_.Add(GatherAttrs{.axis = axis, .batch_dims = 1, .negative_indices = false},
                  {x, places}, name);
  }

  // The columns of the bias that belong to the rows; the bias has a column for every key so far.
  Result<ValueId> Bias(ValueId first) {
    ONCILLA_ASSIGN(const ValueId samples, b_.Sizes(g_.q, 0, 1, "samples"));
    ONCILLA_ASSIGN(const ValueId rest, b_.Sizes(g_.bias, 1, 4, "bias_sizes"));
    ONCILLA_ASSIGN(const ValueId shape,
                   b_.Add(ConcatAttrs{.axis = 0}, {samples, rest}, "bias_shape"));
    ONCILLA_ASSIGN(const ValueId bias, b_.Add("Expand", {}, {g_.bias, shape}, "bias_of_all"));
    ONCILLA_ASSIGN(const ValueId end, Sub(g_.total, one_, "last_column"));
    ONCILLA_ASSIGN(const ValueId columns, From(first, rows_, end, "column"));
    return Rows(bias, columns, 3, "bias_of_rows");
  }

  OnnxLowering& b_;
  const Grouped& g_;
  ValueId zero_ = kNoValue, one_ = kNoValue;
  ValueId capacity_ = kNoValue, step_ = kNoValue;  // C and G
  ValueId rows_ = kNoValue, last_ = kNoValue;      // of past and new keys together
};

}  // namespace

Result<CacheForm> ReadCacheForm(OnnxLowering& b, const char* attribute, size_t scale_input,
                                const Grouped& g) {
  ONCILLA_ASSIGN(const std::string kind, b.String(attribute, "NONE"));
  ONCILLA_ASSIGN(const int64_t bits, b.Int("kv_cache_bit_width", 0));
  CacheForm form;
  if (kind == "NONE") return form;
  const bool each = kind == "PER_CHANNEL";
  if (!each && kind != "PER_TENSOR") return Unsupported("with ", attribute, " ", kind);
  if (bits != 8 && bits != 4) return Unsupported("with kv_cache_bit_width ", bits);
  if (bits == 4 && g.size % 2 != 0) return InvalidArgument("4 bits for heads of size ", g.size);
  if (!b.has(scale_input)) return DataLoss("the scale of a quantised cache is missing");
  form.bits = bits;
  const std::string name = StrCat(attribute, "_scale");
  ONCILLA_ASSIGN(form.scale, b.Cast(b.in(scale_input), DType::kF32, name + "_wide"));
  const ValueId shape = each ? b.Ints({1, g.shared, 1, g.size}) : b.Ints({});
  ONCILLA_ASSIGN(form.scale, b.Add(ReshapeAttrs{}, {form.scale, shape}, name));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF32, 1));
  ONCILLA_ASSIGN(form.factor, b.Add("Div", {}, {one, form.scale}, name + "_reciprocal"));
  return form;
}

Result<Cache> AddWholeCache(OnnxLowering& b, const Grouped& g) {
  Cache cache{.lengths = g.lengths, .starts = g.start, .bias = g.bias};
  ONCILLA_ASSIGN(cache.present_keys, AddPresent(b, g, g.key_form, g.past_keys, g.k, "present_key"));
  ONCILLA_ASSIGN(cache.present_values,
                 AddPresent(b, g, g.value_form, g.past_values, g.v, "present_value"));
  cache.keys = cache.present_keys, cache.values = cache.present_values;
  if (g.bias != kNoValue) {
    // A bias covers only the first `total` rows, so the others are cut off.
    ONCILLA_ASSIGN(const ValueId end, b.Unsqueeze(g.total, {0}, "cache_end"));
    for (ValueId* x : {&cache.keys, &cache.values}) {
      const std::string name = x == &cache.keys ? "keys_seen" : "values_seen";
      ONCILLA_ASSIGN(*x, b.Add("Slice", {}, {*x, b.Ints({0}), end, b.Ints({2})}, name));
    }
  }
  ONCILLA_ASSIGN(cache.keys, Load(b, g.key_form, g.size, cache.keys, "keys"));
  ONCILLA_ASSIGN(cache.values, Load(b, g.value_form, g.size, cache.values, "values"));
  return cache;
}

Result<Cache> AddWindowedCache(OnnxLowering& b, const Grouped& g, int64_t window) {
  if (window < 1) return InvalidArgument("sliding_window_cache with local_window_size ", window);
  if (g.past_keys == kNoValue) {
    return DataLoss("sliding_window_cache without past_key and past_value");
  }
  return WindowedCache(b, g).Make(window);
}

}  // namespace oncilla
