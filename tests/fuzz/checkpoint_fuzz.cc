// libFuzzer on checkpoints. The index is protected by checksums, which mutations would not get
// right, so the first byte selects what the rest is: a whole index file, one block of it (raw or
// compressed), or keys and values from which a valid table is made. The tensors are in a shard of 4
// KiB.
#include <snappy.h>

#include <cstdlib>
#include <map>

#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "engine/import/tf/state/checkpoint.h"
#include "tests/fuzz/fuzz_model.h"

namespace oncilla {
namespace {

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void PutFixed(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void PutEntry(std::string& block, std::string_view key, std::string_view value) {
  PutVarint(block, 0);
  PutVarint(block, key.size());
  PutVarint(block, value.size());
  block.append(key).append(value);
}

// Appends a block with its checksum and returns its handle.
std::string Append(std::string& file, std::string_view block, char compression) {
  std::string handle, stored(block);
  PutVarint(handle, file.size());
  PutVarint(handle, stored.size());
  stored.push_back(compression);
  file += stored;
  PutFixed(file, MaskCrc(Crc32c(stored)), 4);
  return handle;
}

std::string TableAround(std::string_view block, char compression) {
  std::string file, index, footer;
  PutEntry(index, "\xff", Append(file, block, compression));
  PutFixed(index, 0, 4);
  PutFixed(index, 1, 4);
  footer = Append(file, std::string(8, '\0'), 0) + Append(file, index, 0);
  footer.resize(40);
  PutFixed(footer, 0xdb4775248b80fb57u, 8);
  return file + footer;
}

// Entries as [key length][value length][key][value], sorted by key as in a table.
std::string BlockOf(std::string_view in) {
  std::map<std::string, std::string> entries;
  while (in.size() >= 2) {
    const size_t key = std::min<size_t>(static_cast<uint8_t>(in[0]) % 32, in.size() - 2);
    const size_t value = std::min<size_t>(static_cast<uint8_t>(in[1]), in.size() - 2 - key);
    entries[std::string(in.substr(2, key))] = in.substr(2 + key, value);
    in.remove_prefix(2 + key + value);
  }
  std::string block;
  for (const auto& [key, value] : entries) PutEntry(block, key, value);
  PutFixed(block, 0, 4);
  PutFixed(block, 1, 4);
  return block;
}

void ReadEverything(const std::string& prefix) {
  auto checkpoint = Checkpoint::Open(prefix);
  if (!checkpoint.ok()) return;
  for (const Checkpoint::Entry& entry : (*checkpoint)->entries()) {
    (void)(*checkpoint)->Read(entry.key);
    (void)(*checkpoint)->VerifyData(entry.key);
  }
}

}  // namespace
}  // namespace oncilla

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oncilla;  // NOLINT: an entry point
  static const fuzz::MemoryFolder& folder = *[] {
    static fuzz::MemoryFolder made;
    std::string shard(4096, '\0');
    for (size_t i = 0; i < shard.size(); ++i) shard[i] = static_cast<char>(i % 7);
    if (!WriteFile(made.File("v.data-00000-of-00001"), shard).ok()) std::abort();
    return &made;
  }();
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string index;
  switch (data[0] % 4) {
    case 0:
      index = rest;
      break;
    case 1:
      index = TableAround(rest, 0);
      break;
    case 2:
      index = TableAround(rest, 1);
      break;
    default:
      index = TableAround(BlockOf(rest), 0);
  }
  if (!WriteFile(folder.File("v.index"), index).ok()) std::abort();
  ReadEverything(folder.File("v"));
  return 0;
}
