// Attributes of ops that convert tensors to bytes and back: serialized tensors, compressed text,
// fingerprints, sequences of examples.
#pragma once

#include <string>
#include <vector>

#include "engine/ops/data/records.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// ParseTensor(serialized[]) -> the tensor in a tensorflow.TensorProto message, of any shape;
// another type than `to` fails the run. SerializeTensor(x) -> the message, byte for byte as
// TensorFlow writes it.
struct ParseTensorAttrs {
  DType to = DType::kF32;
  void Fields(auto&& field) { field("to", to); }
};

// Decompress(x) -> each string decompressed.
struct DecompressAttrs {
  std::string container = "zlib";  // or gzip
  void Fields(auto&& field) { field("container", container); }
};

// Fingerprint(x[n, ..]) -> u8[n, 8]: FarmHash's Fingerprint64 of each row's bytes, little-endian. A
// row of several strings is hashed as the concatenation of their fingerprints.

// ParseSequences(serialized, context's dense default..) -> the results of ParseExamples for the
// context, followed by those of lists with one feature per step: sparse indices.., values..,
// shapes.. with an axis of steps after that of the batch; dense [batch, steps, ..].., padded with
// zeros, and the number of steps i64[batch]..; ragged values.., splits of the batch.., splits of
// the steps... A missing dense list that may be missing counts as empty. serialized is a vector, or
// one message, whose results then have no batch axis.
struct ParseSequencesAttrs {
  ParseExamplesAttrs context;
  std::vector<std::string> list_sparse_keys, list_sparse_types;
  std::vector<std::string> list_dense_keys, list_dense_types;
  std::vector<int64_t> list_dense_ranks, list_dense_dims, list_may_miss;
  std::vector<std::string> list_ragged_keys, list_ragged_types, list_ragged_splits;
  void Fields(auto&& field) {
    context.Fields(field);
    field("list_sparse_keys", list_sparse_keys);
    field("list_sparse_types", list_sparse_types);
    field("list_dense_keys", list_dense_keys);
    field("list_dense_types", list_dense_types);
    field("list_dense_ranks", list_dense_ranks);
    field("list_dense_dims", list_dense_dims);
    field("list_may_miss", list_may_miss);
    field("list_ragged_keys", list_ragged_keys);
    field("list_ragged_types", list_ragged_types);
    field("list_ragged_splits", list_ragged_splits);
  }
};

}  // namespace oncilla
