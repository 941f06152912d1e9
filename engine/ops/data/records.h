// Attributes of ops that read records from strings.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// ParseExamples(serialized, dense default..) -> sparse indices.., sparse values.., sparse shapes..,
// dense.., ragged values.., ragged splits..: tensorflow.Example messages as tensors. serialized is
// a vector, or one message, whose results then have no batch axis.
// Types by name: f32, i64, string. dense_dims concatenates all shapes, of dense_ranks axes each; a
// first size of -1 is that of the longest example, and shorter ones are padded with the default.
struct ParseExamplesAttrs {
  std::vector<std::string> sparse_keys, sparse_types;
  std::vector<std::string> dense_keys, dense_types;
  std::vector<int64_t> dense_ranks, dense_dims;
  std::vector<std::string> ragged_keys, ragged_types, ragged_splits;
  void Fields(auto&& field) {
    field("sparse_keys", sparse_keys);
    field("sparse_types", sparse_types);
    field("dense_keys", dense_keys);
    field("dense_types", dense_types);
    field("dense_ranks", dense_ranks);
    field("dense_dims", dense_dims);
    field("ragged_keys", ragged_keys);
    field("ragged_types", ragged_types);
    field("ragged_splits", ragged_splits);
  }
};

// DecodeCsv(records, default..) -> a column for each default: an empty one means that the field is
// required. `columns` selects fields, in ascending order (empty: all).
struct DecodeCsvAttrs {
  std::string separator = ",";
  std::string missing;
  bool quotes = true;
  std::vector<int64_t> columns;
  void Fields(auto&& field) {
    field("separator", separator);
    field("missing", missing);
    field("quotes", quotes);
    field("columns", columns);
  }
};

// PackBytes(x u8[.., n]) -> strings, each of the n bytes along the last axis.

// DecodeRaw(x) -> type `to`, with a last axis for the elements in each string's bytes. All strings
// have one length; or *length bytes of each are used, padded with zeros if it is shorter.
struct DecodeRawAttrs {
  DType to = DType::kU8;
  bool little_endian = true;
  void Fields(auto&& field) {
    field("to", to);
    field("little_endian", little_endian);
  }
};

}  // namespace oncilla
