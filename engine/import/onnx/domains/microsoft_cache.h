// The cache of keys and values of GroupQueryAttention, in canonical ops: with all keys or the last
// ones alone, of numbers as they are or of few bits.
#pragma once

#include <string>

#include "engine/import/onnx/lowering.h"

namespace oncilla {

// How the cache stores keys, or values: as they are, or, of 8 or 4 bits, as the nearest integer to
// x / scale within the bits' range. Those of 4 bits stand in pairs in bytes, the first one in the
// lower half, with 8 added.
struct CacheForm {
  int64_t bits = 0;           // 0: as they are
  ValueId scale = kNoValue;   // f32, of rank 0 or [1, shared, 1, size]
  ValueId factor = kNoValue;  // 1 / scale
};

struct Grouped {
  int64_t heads = 0, shared = 0, size = 0;  // query heads, key and value heads; size of each
  DType wide = DType::kF32;                 // the type that is computed in
  ValueId q = kNoValue, k = kNoValue, v = kNoValue;  // [N, heads or shared, L, size]
  ValueId total = kNoValue;    // i64[]: keys including the past, of the longest sample
  ValueId lengths = kNoValue;  // i64[N]: the same for each sample
  ValueId start = kNoValue;    // i64[N]: position of its first query
  ValueId places = kNoValue;   // i64[N, L]: positions of the queries in the cache
  ValueId past_keys = kNoValue, past_values = kNoValue;  // what the cache holds, if anything
  ValueId bias = kNoValue;                               // of the scores, a column for each key
  CacheForm key_form, value_form;
};

// The form that an attribute names: "NONE", "PER_TENSOR" or "PER_CHANNEL".
Result<CacheForm> ReadCacheForm(OnnxLowering& b, const char* attribute, size_t scale_input,
                                const Grouped& g);

// What the queries attend to, and the cache that the node gives back.
struct Cache {
  ValueId present_keys = kNoValue, present_values = kNoValue;
  ValueId keys = kNoValue, values = kNoValue;  // [N, shared, rows, size], all of a sample in front
  ValueId lengths = kNoValue;                  // i64[N]: how many rows of each sample hold keys
  ValueId starts = kNoValue;                   // i64[N]: the row of its first query
  ValueId bias = kNoValue;                     // a column for each row
};

// A cache with all keys.
Result<Cache> AddWholeCache(OnnxLowering& b, const Grouped& g);
// A cache of the last keys alone, at least `window` of them (sliding_window_cache).
Result<Cache> AddWindowedCache(OnnxLowering& b, const Grouped& g, int64_t window);

}  // namespace oncilla
