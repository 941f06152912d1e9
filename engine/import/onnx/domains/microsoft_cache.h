// The key/value cache of GroupQueryAttention in canonical ops: with all keys or only the last ones,
// as floating-point numbers or quantised.
#pragma once

#include <string>

#include "engine/import/onnx/lowering.h"

namespace oncilla {

// How the cache stores keys, or values: unquantised, or, in 8 or 4 bits, as the nearest integer to
// x / scale within the range. Integers of 4 bits are stored in pairs, the first one in the lower
// half of the byte, with an offset of 8.
struct CacheForm {
  int64_t bits = 0;           // 0: not quantised
  ValueId scale = kNoValue;   // f32, of rank 0 or [1, shared, 1, size]
  ValueId factor = kNoValue;  // 1 / scale
};

struct Grouped {
  int64_t heads = 0, shared = 0, size = 0;  // query heads, key and value heads; size of each
  DType wide = DType::kF32;                 // the type of the computation
  ValueId q = kNoValue, k = kNoValue, v = kNoValue;  // [N, heads or shared, L, size]
  ValueId total = kNoValue;    // i64[]: keys including the past, of the longest sample
  ValueId lengths = kNoValue;  // i64[N]: the same for each sample
  ValueId start = kNoValue;    // i64[N]: position of its first query
  ValueId places = kNoValue;   // positions of the queries in the cache
  ValueId past_keys = kNoValue, past_values = kNoValue;  // the cache's contents, if any
  ValueId bias = kNoValue;                               // for the scores, a column for each key
  CacheForm key_form, value_form;
};

// The form named by an attribute: "NONE", "PER_TENSOR" or "PER_CHANNEL".
Result<CacheForm> ReadCacheForm(OnnxLowering& b, const char* attribute, size_t scale_input,
                                const Grouped& g);

// What the queries attend to, and the cache that the node returns.
struct Cache {
  ValueId present_keys = kNoValue, present_values = kNoValue;
  ValueId keys = kNoValue, values = kNoValue;  // [N, shared, rows, size], of a sample's keys first
  ValueId lengths = kNoValue;  // i64[N]: number of rows of each sample that hold keys
  ValueId starts = kNoValue;   // i64[N]: the row of its first query
  ValueId bias = kNoValue;     // a column for each row
};

// A cache with all keys.
Result<Cache> AddWholeCache(OnnxLowering& b, const Grouped& g);
// A cache of the last keys only, at least `window` of them (sliding_window_cache).
Result<Cache> AddWindowedCache(OnnxLowering& b, const Grouped& g, int64_t window);

}  // namespace oncilla
