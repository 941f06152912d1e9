// Attributes of ops that turn tensors into bytes and back: serialized tensors, compressed text,
// fingerprints, sequences of examples.
#pragma once

#include <string>
#include <vector>

#include "engine/ops/data/records.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// ParseTensor(serialized[]) -> the tensor that a tensorflow.TensorProto message holds, of any
// shape; another type than `to` fails the run. SerializeTensor(x) -> the message, to the byte as
// TensorFlow writes it.
struct ParseTensorAttrs {
  DType to = DType::kF32;
  void Fields(auto&& field) { field("to", to); }
};

// Decompress(x) -> what each string holds compressed.
struct DecompressAttrs {
  std::string container = "zlib";  // or gzip
  void Fields(auto&& field) { field("container", container); }
};

// Fingerprint(x[n, ..]) -> u8[n, 8]: FarmHash's Fingerprint64 of each row's bytes, low byte first.
// A row of several strings is hashed as their fingerprints, one behind the other.

// ParseSequences(serialized, context's dense default..) -> what ParseExamples gives of the context,
// then of lists with a feature for each step: sparse places.., values.., sizes.. with an axis of
// steps behind that of the batch; dense [batch, steps, ..].., padded with zeros, and how many steps
// there are i64[batch]..; ragged values.., splits of the batch.., splits of the steps... A dense
// list that may be missing counts as an empty one. serialized is a vector, or one message, whose
// results then have no batch axis.
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
