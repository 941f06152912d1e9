// TensorFlow's checkpoint (tensor bundle): `PREFIX.index`, a sorted table from a tensor's name to
// its location, and `PREFIX.data-00000-of-00001`, ..., the raw bytes of the tensors.
//
// Tensors of numbers are views into the mapped shards: nothing is copied, except for partitioned
// variables that have to be assembled from slices. Shards are opened together with the index, since
// they belong together. It must be used by one thread at a time; tensors that it returned may
// outlive it. Implemented after tensor_bundle.proto and the rules of the format; files of the V1
// format and big-endian files are refused with that reason.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file.h"
#include "engine/import/tf/state/checkpoint_slices.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

class Checkpoint {
 public:
  struct Entry {
    std::string key;
    int64_t tf_type = 0;  // TensorFlow's DataType
    PartialShape shape;
    int64_t shard = 0, offset = 0, size = 0;
    uint32_t masked_crc = 0;
    bool has_crc = false;
    bool partitioned = false;  // stored as slices under keys of their own
  };

  // NotFound when there is no index; DataLoss when it is damaged.
  static Result<std::unique_ptr<Checkpoint>> Open(const std::string& prefix);

  // In key order, without the slices of partitioned tensors.
  std::span<const Entry> entries() const { return entries_; }
  const Entry* Find(std::string_view key) const;  // null when absent

  // The tensor of that key; strings are copied. NotFound for an unknown key or a missing shard,
  // DataLoss for a wrong size or checksum, Unimplemented for types and layouts that the engine does
  // not support.
  Result<Tensor> Read(std::string_view key);
  // The part of that tensor that RestoreV2's shape_and_slices describes; empty: all of it. DataLoss
  // when the stored tensor has other sizes than the text, or its slices do not cover the part.
  Result<Tensor> ReadSlice(std::string_view key, std::string_view shape_and_slice);
  // Compares the stored CRC-32C with that of the tensor's bytes, reading all of them.
  Status VerifyData(std::string_view key);

  // Bytes of the index and of all existing shards.
  int64_t file_bytes() const { return file_bytes_; }
  void AddTo(std::vector<std::shared_ptr<const MappedFile>>& files) const {
    for (const auto& shard : shards_) {
      if (shard != nullptr) files.push_back(shard);
    }
  }
  const std::string& prefix() const { return prefix_; }

 private:
  // A slice of a partitioned tensor: its entry's shape is the slice's own.
  struct Slice {
    SliceBox box;
    Entry entry;
  };

  Status OpenShard(int64_t number);
  Result<std::span<const std::byte>> Locate(const Entry& entry);
  Result<Tensor> ReadWhole(const Entry& entry);
  Result<Tensor> ReadBox(const Entry& entry, const SliceBox& box);
  Status VerifyEntry(const Entry& entry);
  Status ReadHeader(std::string_view value);
  std::string ShardPath(int64_t shard) const;

  std::string prefix_;
  std::vector<Entry> entries_;
  std::map<std::string, std::vector<Slice>, std::less<>> slices_;  // by the tensor's key
  int64_t shard_count_ = 0;
  std::vector<std::shared_ptr<const MappedFile>> shards_;  // null: missing
  int64_t file_bytes_ = 0;
};

}  // namespace oncilla
