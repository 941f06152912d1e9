// TensorFlow's tensor bundle on top of the sorted table: header, entries, numeric and string
// tensors.
#include "engine/import/tf/state/checkpoint.h"

#include <algorithm>
#include <cstdio>

#include "engine/base/hash.h"
#include "engine/import/tf/state/sorted_table.h"
#include "engine/import/tf/tensor.h"
#include "engine/import/wire/wire.h"

namespace oncilla {
namespace {

constexpr int64_t kMaxShards = 99999;  // file names have five digits

Status ParseEntry(Bytes proto, Checkpoint::Entry* entry) {
  entry->shape = PartialShape(Shape());
  WireMessage message(proto);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        entry->tf_type = message.Int();
        break;
      case 2: {
        ONCILLA_ASSIGN(entry->shape, ShapeFromTf(message.View()));
        break;
      }
      case 3:
        entry->shard = message.Int();
        break;
      case 4:
        entry->offset = message.Int();
        break;
      case 5:
        entry->size = message.Int();
        break;
      case 6:
        entry->masked_crc = message.Fixed32();
        entry->has_crc = true;
        break;
      case 7:
        entry->partitioned = true;
        break;
    }
  }
  return {};
}

// The length of a string enters the checksum as a little-endian number of 4 bytes, or 8 if it does
// not fit.
uint32_t CrcOfLength(uint32_t crc, uint64_t length) {
  std::byte bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(length >> (8 * i));
  return Crc32c(crc, {bytes, length > 0xffffffffu ? size_t{8} : size_t{4}});
}

struct StringBlock {
  std::vector<uint64_t> lengths;
  std::span<const std::byte> checksum;  // masked CRC-32C of the lengths
  std::span<const std::byte> text;
  uint32_t lengths_crc = 0;
};

// Splits a string tensor: lengths as varints, their checksum, then all bytes.
Result<StringBlock> ParseStrings(std::span<const std::byte> bytes, int64_t count) {
  StringBlock block;
  // Each length takes at least one byte, so a larger count is refused before it allocates.
  if (count < 0 || static_cast<uint64_t>(count) > bytes.size()) {
    return DataLoss(count, " strings do not fit into ", bytes.size(), " bytes");
  }
  block.lengths.reserve(static_cast<size_t>(count));
  size_t at = 0;
  uint64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
      if (at == bytes.size() || shift > 63)
        return DataLoss("the lengths of the strings are cut off");
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      length |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80u) == 0) break;
    }
    if (length > bytes.size()) return DataLoss("a string is longer than the file");
    total += length;
    block.lengths.push_back(length);
    block.lengths_crc = CrcOfLength(block.lengths_crc, length);
  }
  if (bytes.size() - at < 4 || bytes.size() - at - 4 != total) {
    return DataLoss("the strings do not fill their place");
  }
  block.checksum = bytes.subspan(at, 4);
  block.text = bytes.subspan(at + 4);
  uint32_t stored = 0;
  for (int i = 0; i < 4; ++i) stored |= static_cast<uint32_t>(block.checksum[i]) << (8 * i);
  if (stored != MaskCrc(block.lengths_crc)) {
    return DataLoss("the checksum of the lengths of the strings does not match");
  }
  return block;
}

Result<Shape> StoredShape(const Checkpoint::Entry& entry) {
  if (!entry.shape.known()) return DataLoss("has the unknown shape ", entry.shape);
  if (entry.shape.rank() > kMaxRank) {
    return Unsupported("has the rank ", entry.shape.rank(), "; at most ", kMaxRank);
  }
  return entry.shape.ToShape();
}

}  // namespace

std::string Checkpoint::ShardPath(int64_t shard) const {
  char suffix[40];
  std::snprintf(suffix, sizeof(suffix), ".data-%05d-of-%05d", static_cast<int>(shard),
                static_cast<int>(shard_count_));
  return prefix_ + suffix;
}

// A BundleHeaderProto message.
Status Checkpoint::ReadHeader(std::string_view value) {
  int64_t endianness = 0, min_consumer = 0;
  WireMessage message(value);
  while (message.Next()) {
    if (message.field() == 1) shard_count_ = message.Int();
    if (message.field() == 2) endianness = message.Int();
    if (message.field() != 3 || !message.is_view()) continue;
    WireMessage version(message.View());
    while (version.Next()) {
      if (version.field() == 2) min_consumer = version.Int();
    }
  }
  if (shard_count_ < 0 || shard_count_ > kMaxShards) {
    return DataLoss("the header counts ", shard_count_, " shards");
  }
  if (endianness != 0) return Unsupported("the checkpoint is big-endian");
  if (min_consumer > 1) {
    return Unsupported("the checkpoint needs a reader of version ", min_consumer,
                       "; this one is 1");
  }
  return {};
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& prefix) {
  auto checkpoint = std::make_unique<Checkpoint>();
  checkpoint->prefix_ = prefix;
  const std::string path = prefix + ".index";
  if (!FileExists(path) && FileExists(prefix)) {
    return WithStage(Unsupported(prefix,
                                 ": a checkpoint of TensorFlow's old V1 format (one file without "
                                 ".index); save it again with a current Saver"),
                     Stage::kFile);
  }
  ONCILLA_ASSIGN(auto file, MappedFile::Open(path));
  ONCILLA_ASSIGN(const std::vector<TableEntry> table, ReadSortedTable(file->text(), path));
  Status status = ReadWire("an entry", [&]() -> Status {
    if (table.empty() || !table[0].key.empty()) return DataLoss("the header is missing");
    ONCILLA_TRY(checkpoint->ReadHeader(table[0].value));
    for (size_t i = 1; i < table.size(); ++i) {
      Entry entry;
      // Keys of slices of partitioned tensors are encoded differently, and begin with a zero byte.
      if (table[i].key[0] == '\0') {
        ONCILLA_ASSIGN(SliceKey key, ParseSliceKey(table[i].key));
        ONCILLA_TRY(
            In(ParseEntry(table[i].value, &entry), StrCat("a slice of '", key.tensor, "'")));
        checkpoint->slices_[std::move(key.tensor)].push_back({std::move(key.box), entry});
        continue;
      }
      entry.key = table[i].key;
      ONCILLA_TRY(In(ParseEntry(table[i].value, &entry), StrCat("entry '", entry.key, "'")));
      checkpoint->entries_.push_back(std::move(entry));
    }
    return {};
  });
  if (!status.ok()) return In(std::move(status), path);
  checkpoint->shards_.resize(static_cast<size_t>(checkpoint->shard_count_));
  checkpoint->file_bytes_ = static_cast<int64_t>(file->text().size());
  // Shards are opened now, so that the tensors are those that the index was written for, even if
  // the files are replaced later. A missing shard is reported when a tensor in it is read.
  for (int64_t i = 0; i < checkpoint->shard_count_; ++i) {
    if (!checkpoint->OpenShard(i).ok()) break;
  }
  return checkpoint;
}

const Checkpoint::Entry* Checkpoint::Find(std::string_view key) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), key,
                                   [](const Entry& e, std::string_view k) { return e.key < k; });
  return it == entries_.end() || it->key != key ? nullptr : &*it;
}

Status Checkpoint::OpenShard(int64_t number) {
  auto& shard = shards_[static_cast<size_t>(number)];
  if (shard != nullptr) return Status();
  ONCILLA_ASSIGN(shard, MappedFile::Open(ShardPath(number)));
  file_bytes_ += static_cast<int64_t>(shard->bytes().size());
  return Status();
}

Result<std::span<const std::byte>> Checkpoint::Locate(const Entry& entry) {
  if (entry.shard < 0 || entry.shard >= shard_count_) {
    return DataLoss("is in shard ", entry.shard, " of ", shard_count_);
  }
  ONCILLA_TRY(OpenShard(entry.shard));
  const auto& shard = shards_[static_cast<size_t>(entry.shard)];
  const auto bytes = shard->bytes();
  if (entry.offset < 0 || entry.size < 0 || static_cast<uint64_t>(entry.size) > bytes.size() ||
      static_cast<uint64_t>(entry.offset) > bytes.size() - static_cast<uint64_t>(entry.size)) {
    return DataLoss("lies at ", entry.offset, " with ", entry.size, " bytes, but ", shard->path(),
                    " has only ", bytes.size(), " bytes");
  }
  return bytes.subspan(static_cast<size_t>(entry.offset), static_cast<size_t>(entry.size));
}

Result<Tensor> Checkpoint::ReadWhole(const Entry& entry) {
  TensorDesc desc;
  desc.dtype = DTypeFromTf(entry.tf_type);
  if (desc.dtype == DType::kInvalid) {
    return Unsupported("is a tensor of ", TfTypeName(entry.tf_type));
  }
  ONCILLA_ASSIGN(desc.shape, StoredShape(entry));
  if (desc.dtype != DType::kString && desc.bytes() != entry.size) {
    return DataLoss("has ", entry.size, " bytes; ", desc, " needs ", desc.bytes());
  }
  ONCILLA_ASSIGN(const std::span<const std::byte> bytes, Locate(entry));
  if (entry.has_crc) ONCILLA_TRY(VerifyEntry(entry));
  if (desc.dtype != DType::kString) {
    Tensor tensor = Tensor::View(desc, bytes, shards_[static_cast<size_t>(entry.shard)]);
    tensor.set_mapped();
    return tensor;
  }
  ONCILLA_ASSIGN(const StringBlock block, ParseStrings(bytes, desc.elements()));
  std::vector<std::string> values;
  values.reserve(block.lengths.size());
  size_t at = 0;
  for (uint64_t length : block.lengths) {
    values.emplace_back(reinterpret_cast<const char*>(block.text.data()) + at, length);
    at += length;
  }
  return Tensor::Strings(desc.shape, std::move(values));
}

Result<Tensor> Checkpoint::ReadBox(const Entry& entry, const SliceBox& box) {
  ONCILLA_ASSIGN(const Shape whole, StoredShape(entry));
  ONCILLA_ASSIGN(const SliceBox wanted, Settled(box, whole));
  if (!entry.partitioned) {
    ONCILLA_ASSIGN(const SliceBox all, Settled(SliceBox(box.size()), whole));
    ONCILLA_ASSIGN(Tensor tensor, ReadWhole(entry));
    const StoredSlice stored[] = {{all, std::move(tensor)}};
    return Assemble(wanted, stored);
  }
  const auto found = slices_.find(entry.key);
  if (found == slices_.end()) return DataLoss("is partitioned but no slice of it is stored");
  std::vector<StoredSlice> parts;
  int64_t bytes = 0;
  for (const Slice& slice : found->second) {
    ONCILLA_ASSIGN(SliceBox at, Settled(slice.box, whole));
    const std::string where = StrCat("its slice ", ToString(at));
    auto tensor = ReadWhole(slice.entry);
    if (!tensor.ok()) return In(tensor.status(), where);
    if (slice.entry.tf_type != entry.tf_type || tensor->shape() != ShapeOf(at)) {
      return DataLoss(where, " is a ", tensor->desc());
    }
    if (at == wanted) return tensor;
    // Slices that share bytes of the file would expand to more than the files hold.
    bytes = SaturatingAdd(bytes, slice.entry.size);
    if (bytes > file_bytes_) return DataLoss("its slices overlap in the files");
    parts.push_back({std::move(at), *std::move(tensor)});
  }
  return Assemble(wanted, parts);
}

Result<Tensor> Checkpoint::Read(std::string_view key) { return ReadSlice(key, ""); }

Result<Tensor> Checkpoint::ReadSlice(std::string_view key, std::string_view shape_and_slice) {
  const Entry* entry = Find(key);
  if (entry == nullptr) {
    return NotFound(prefix_, ": key '", key, "' is not in the checkpoint");
  }
  const auto read = [&]() -> Result<Tensor> {
    if (shape_and_slice.empty()) {
      if (!entry->partitioned) return ReadWhole(*entry);
      ONCILLA_ASSIGN(const Shape whole, StoredShape(*entry));
      return ReadBox(*entry, SliceBox(static_cast<size_t>(whole.rank())));
    }
    ONCILLA_ASSIGN(const SliceSpec spec, ParseSliceSpec(shape_and_slice));
    if (!entry->shape.Accepts(spec.whole)) {
      return DataLoss("has the shape ", entry->shape, "; a slice of ", spec.whole, " is asked for");
    }
    return ReadBox(*entry, spec.box);
  };
  Result<Tensor> tensor = read();
  if (!tensor.ok()) return In(tensor.status(), StrCat(prefix_, ": key '", key, "'"));
  return tensor;
}

Status Checkpoint::VerifyEntry(const Entry& entry) {
  ONCILLA_ASSIGN(const std::span<const std::byte> bytes, Locate(entry));
  uint32_t crc = 0;
  if (entry.tf_type == tf_type::kString) {
    ONCILLA_ASSIGN(const Shape shape, StoredShape(entry));
    ONCILLA_ASSIGN(const StringBlock block, ParseStrings(bytes, shape.elements()));
    crc = Crc32c(Crc32c(block.lengths_crc, block.checksum), block.text);
  } else {
    crc = Crc32c(bytes);
  }
  if (MaskCrc(crc) == entry.masked_crc) return {};
  return DataLoss("the checksum of its bytes does not match the stored one");
}

Status Checkpoint::VerifyData(std::string_view key) {
  const Entry* entry = Find(key);
  if (entry == nullptr) return NotFound(prefix_, ": key '", key, "' is not in the checkpoint");
  const std::string where = StrCat(prefix_, ": key '", key, "'");
  if (!entry->partitioned) return In(VerifyEntry(*entry), where);
  const auto found = slices_.find(key);
  if (found == slices_.end()) return {};
  for (const Slice& slice : found->second) {
    ONCILLA_TRY(In(VerifyEntry(slice.entry), StrCat(where, ", slice ", ToString(slice.box))));
  }
  return {};
}

}  // namespace oncilla
