// Reads a sorted table file (LevelDB's format). Every length and offset in it is checked before
// use.
#include "engine/import/tf/state/sorted_table.h"

#include <snappy.h>

#include <algorithm>
#include <cstring>

#include "engine/base/hash.h"

namespace oncilla {
namespace {

using Bytes = std::string_view;

constexpr size_t kFooterBytes = 48;
constexpr size_t kHandleBytes = 40;  // space for the two handles in the footer
constexpr size_t kTrailerBytes = 5;  // type byte and CRC after every block
constexpr uint64_t kMagic = 0xdb4775248b80fb57u;
// Snappy's densest token expands 3 bytes to 64.
constexpr uint64_t kMaxExpansion = 32;

uint64_t ReadFixed(Bytes bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return value;
}

// Takes a varint from the front; false if it is cut off or longer than 64 bits.
bool TakeVarint(Bytes& bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80u) == 0) return true;
  }
  return false;
}

struct Handle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

bool TakeHandle(Bytes& bytes, Handle* handle) {
  return TakeVarint(bytes, &handle->offset) && TakeVarint(bytes, &handle->size);
}

// The contents of a block, verified and decompressed: a view of the file or of `storage`.
Result<Bytes> ReadBlock(Bytes file, Handle handle, std::string* storage) {
  if (handle.size > file.size() || file.size() - handle.size < kTrailerBytes ||
      handle.offset > file.size() - handle.size - kTrailerBytes) {
    return DataLoss("a block at ", handle.offset, " of ", handle.size,
                    " bytes reaches beyond the end of the file (", file.size(), " bytes)");
  }
  const Bytes content = file.substr(handle.offset, handle.size);
  const Bytes trailer = file.substr(handle.offset + handle.size, kTrailerBytes);
  const auto stored = static_cast<uint32_t>(ReadFixed(trailer.substr(1), 4));
  const uint32_t computed = MaskCrc(Crc32c(file.substr(handle.offset, handle.size + 1)));
  if (stored != computed) {
    return DataLoss("the checksum of the block at ", handle.offset, " does not match");
  }
  if (trailer[0] == 0) return content;
  if (trailer[0] != 1) {
    return DataLoss("the block at ", handle.offset, " has the unknown compression ",
                    static_cast<int>(static_cast<uint8_t>(trailer[0])));
  }
  size_t length = 0;
  if (!snappy::GetUncompressedLength(content.data(), content.size(), &length) ||
      length > content.size() * kMaxExpansion ||
      !snappy::Uncompress(content.data(), content.size(), storage)) {
    return DataLoss("the block at ", handle.offset, " does not uncompress");
  }
  return Bytes(*storage);
}

// Appends a block's entries. `room` bounds the total bytes of keys and values: because keys share
// prefixes, a small file could otherwise expand to very many long keys.
Status ReadEntries(Bytes block, int64_t& room, std::vector<TableEntry>* out) {
  if (block.size() < 4) return DataLoss("a block is too short");
  const uint64_t restarts = ReadFixed(block.substr(block.size() - 4), 4);
  if (restarts > (block.size() - 4) / 4) return DataLoss("a block has too many restart points");
  Bytes rest = block.substr(0, block.size() - 4 - 4 * restarts);
  std::string key;
  while (!rest.empty()) {
    uint64_t shared, own, value;
    if (!TakeVarint(rest, &shared) || !TakeVarint(rest, &own) || !TakeVarint(rest, &value) ||
        shared > key.size() || own > rest.size() || value > rest.size() - own) {
      return DataLoss("an entry reaches beyond its block");
    }
    key.resize(shared);
    key.append(rest.substr(0, own));
    room -= static_cast<int64_t>(key.size() + value);
    if (room < 0) return DataLoss("the keys are too long for the size of the file");
    if (!out->empty() && key <= out->back().key) return DataLoss("the keys are not in order");
    out->push_back({key, std::string(rest.substr(own, value))});
    rest.remove_prefix(own + value);
  }
  return {};
}

Result<std::vector<TableEntry>> Read(Bytes file) {
  if (file.size() < kFooterBytes || ReadFixed(file.substr(file.size() - 8), 8) != kMagic) {
    return DataLoss("not a checkpoint index (the magic number at its end is missing)");
  }
  Bytes footer = file.substr(file.size() - kFooterBytes, kHandleBytes);
  Handle meta, index;
  if (!TakeHandle(footer, &meta) || !TakeHandle(footer, &index)) {
    return DataLoss("the footer is damaged");
  }
  const Bytes body = file.substr(0, file.size() - kFooterBytes);
  int64_t room = (int64_t{64} << 20) + 16 * static_cast<int64_t>(file.size());
  std::string storage;
  ONCILLA_ASSIGN(Bytes block, ReadBlock(body, index, &storage));
  std::vector<TableEntry> blocks, entries;
  ONCILLA_TRY(ReadEntries(block, room, &blocks));
  for (const TableEntry& entry : blocks) {
    Bytes value = entry.value;
    Handle handle;
    if (!TakeHandle(value, &handle)) return DataLoss("the index block is damaged");
    ONCILLA_ASSIGN(block, ReadBlock(body, handle, &storage));
    ONCILLA_TRY(ReadEntries(block, room, &entries));
  }
  return entries;
}

}  // namespace

Result<std::vector<TableEntry>> ReadSortedTable(std::string_view file, std::string_view path) {
  auto entries = Read(file);
  if (!entries.ok()) return In(entries.status(), path);
  return entries;
}

}  // namespace oncilla
