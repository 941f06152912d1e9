// The checkpoint reader on the quickstart model's own files, and on damaged copies of them.
#include "engine/import/tf/state/checkpoint.h"

#include <gtest/gtest.h>
#include <snappy.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>

#include "engine/base/hash.h"
#include "engine/import/tf/state/sorted_table.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

const std::string kPrefix =
    std::string(ONCILLA_SOURCE_DIR) + "/testdata/quickstart/efficientnet_lite0/variables/variables";

std::string ReadAll(const std::string& path) { return *ReadFile(path, 1u << 30); }

// A folder that is removed with its files at the end of a test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/oncilla_checkpoint_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() {
    const auto entries = ListFolder(path_);
    for (const FolderEntry& entry : *entries) (void)RemoveFile(path_ + "/" + entry.name);
    rmdir(path_.c_str());
  }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}
void AppendFixed(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// Writes a table with one data block, optionally compressed.
std::string WriteTable(const std::vector<TableEntry>& entries, bool compress) {
  const auto block_of = [](const std::vector<TableEntry>& list) {
    std::string block, last;
    for (const TableEntry& e : list) {
      size_t shared = 0;
      while (shared < last.size() && shared < e.key.size() && last[shared] == e.key[shared]) {
        ++shared;
      }
      AppendVarint(&block, shared);
      AppendVarint(&block, e.key.size() - shared);
      AppendVarint(&block, e.value.size());
      block += e.key.substr(shared) + e.value;
      last = e.key;
    }
    AppendFixed(&block, 0, 4);
    AppendFixed(&block, 1, 4);
    return block;
  };
  std::string file;
  const auto append = [&](std::string block, bool snap) {
    std::string stored = block;
    if (snap) snappy::Compress(block.data(), block.size(), &stored);
    std::string handle;
    AppendVarint(&handle, file.size());
    AppendVarint(&handle, stored.size());
    stored.push_back(snap ? 1 : 0);
    const uint32_t crc = MaskCrc(Crc32c(stored));
    file += stored;
    AppendFixed(&file, crc, 4);
    return handle;
  };
  const std::string data = append(block_of(entries), compress);
  const std::string meta = append(block_of({}), false);
  const std::string index = append(block_of({{entries.back().key + "~", data}}), false);
  std::string footer = meta + index;
  footer.resize(40);
  AppendFixed(&footer, 0xdb4775248b80fb57u, 8);
  return file + footer;
}

TEST(Checkpoint, ReadsTheQuickstartVariables) {
  auto checkpoint = Checkpoint::Open(kPrefix);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  Checkpoint& c = **checkpoint;
  // 3 variables for each of the 50 layers, and the object graph.
  EXPECT_EQ(c.entries().size(), 151u);
  int kernels = 0;
  for (const Checkpoint::Entry& entry : c.entries()) {
    auto tensor = c.Read(entry.key);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_TRUE(c.VerifyData(entry.key).ok()) << entry.key;
    if (tensor->dtype() == DType::kString) continue;
    EXPECT_TRUE(tensor->mapped());
    EXPECT_EQ(static_cast<int64_t>(tensor->bytes().size()), tensor->desc().bytes());
    kernels += tensor->dtype() == DType::kI8;
  }
  EXPECT_EQ(kernels, 50);
  auto graph = c.Read("_CHECKPOINTABLE_OBJECT_GRAPH");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->shape().rank(), 0);
  EXPECT_EQ(c.Read("no such key").status().code(), Code::kNotFound);
}

TEST(Checkpoint, TensorsOutliveTheReader) {
  Tensor tensor;
  {
    auto checkpoint = Checkpoint::Open(kPrefix);
    ASSERT_TRUE(checkpoint.ok());
    for (const auto& entry : (*checkpoint)->entries()) {
      if (entry.tf_type == 1) tensor = *(*checkpoint)->Read(entry.key);
    }
  }
  ASSERT_TRUE(tensor.valid());
  const auto values = ToDoubles(tensor);
  for (double v : *values) EXPECT_TRUE(std::isfinite(v));
}

TEST(Checkpoint, NoPrefixOfTheIndexIsAccepted) {
  const std::string index = ReadAll(kPrefix + ".index");
  for (size_t n = 0; n < index.size(); ++n) {
    // A copy of exactly n bytes, so that a read beyond them is seen by AddressSanitizer.
    const std::vector<char> prefix(index.begin(), index.begin() + static_cast<long>(n));
    EXPECT_EQ(ReadSortedTable({prefix.data(), n}, "prefix").status().code(), Code::kDataLoss) << n;
  }
  EXPECT_TRUE(ReadSortedTable(index, "whole").ok());
}

TEST(Checkpoint, NoFlippedBitOfABlockIsAccepted) {
  const std::string index = ReadAll(kPrefix + ".index");
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    // Everything but the footer is under a checksum.
    std::string flipped = index;
    flipped[random() % (index.size() - 48)] ^= static_cast<char>(1 << (random() % 8));
    const auto entries = ReadSortedTable(flipped, "flipped");
    // The flipped bit may be in the metaindex block, which is never read: then the entries are
    // intact.
    if (entries.ok()) {
      EXPECT_EQ(entries->size(), ReadSortedTable(index, "")->size());
    }
  }
}

TEST(Checkpoint, DamageUnderAValidChecksumDoesNotCrash) {
  auto entries = ReadSortedTable(ReadAll(kPrefix + ".index"), "index");
  ASSERT_TRUE(entries.ok());
  const Folder folder;
  const std::string prefix = folder.File("v");
  ASSERT_TRUE(WriteFile(prefix + ".data-00000-of-00001", std::string(4096, '\x7f')).ok());
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    std::vector<TableEntry> damaged = *entries;
    for (int k = 0; k < 20; ++k) {
      std::string& value = damaged[random() % damaged.size()].value;
      if (!value.empty()) value[random() % value.size()] ^= static_cast<char>(1 << (random() % 8));
    }
    ASSERT_TRUE(
        ::oncilla::testing::WriteQuickly(prefix + ".index", WriteTable(damaged, i % 2 == 0)));
    auto checkpoint = Checkpoint::Open(prefix);
    if (!checkpoint.ok()) continue;
    for (const auto& entry : (*checkpoint)->entries()) {
      (void)(*checkpoint)->Read(entry.key);
      (void)(*checkpoint)->VerifyData(entry.key);
    }
  }
}

TEST(Checkpoint, ReadsASnappyIndex) {
  auto entries = ReadSortedTable(ReadAll(kPrefix + ".index"), "index");
  ASSERT_TRUE(entries.ok());
  const std::string compressed = WriteTable(*entries, true);
  EXPECT_LT(compressed.size(), WriteTable(*entries, false).size());
  auto again = ReadSortedTable(compressed, "compressed");
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->size(), entries->size());
  for (size_t i = 0; i < again->size(); ++i) {
    EXPECT_EQ((*again)[i].key, (*entries)[i].key);
    EXPECT_EQ((*again)[i].value, (*entries)[i].value);
  }
  for (size_t at = 0; at < compressed.size(); at += 7) {
    std::string flipped = compressed;
    flipped[at] ^= 0x10;
    (void)ReadSortedTable(flipped, "flipped");
  }
}

TEST(Checkpoint, KeysThatUnfoldWithoutEndAreRefused) {
  // Each entry is a few bytes long and spells out a key of 200 KB.
  std::vector<TableEntry> entries;
  for (int i = 0; i < 400; ++i) {
    std::string key(200000, 'k');
    key += {static_cast<char>(1 + i / 200), static_cast<char>(1 + i % 200)};
    entries.push_back({key, ""});
  }
  std::sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.key < b.key; });
  const std::string table = WriteTable(entries, false);
  EXPECT_LT(table.size(), 500000u);
  EXPECT_EQ(ReadSortedTable(table, "bomb").status().code(), Code::kDataLoss);
}

TEST(Checkpoint, NamesWhatIsMissingOrWrong) {
  const Folder folder;
  const std::string prefix = folder.File("variables");
  EXPECT_EQ(Checkpoint::Open(prefix).status().code(), Code::kNotFound);

  ASSERT_TRUE(WriteFile(prefix, "an old checkpoint").ok());
  const Status old = Checkpoint::Open(prefix).status();
  EXPECT_EQ(old.code(), Code::kUnimplemented);
  EXPECT_NE(Message(old).find("V1 format"), std::string::npos);

  ASSERT_TRUE(WriteFile(prefix + ".index", ReadAll(kPrefix + ".index")).ok());
  auto checkpoint = Checkpoint::Open(prefix);
  ASSERT_TRUE(checkpoint.ok());
  const std::string key = (*checkpoint)->entries().back().key;
  const Status missing = (*checkpoint)->Read(key).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(Message(missing).find("variables.data-00000-of-00001"), std::string::npos) << missing;

  const std::string data = ReadAll(kPrefix + ".data-00000-of-00001");
  ASSERT_TRUE(WriteFile(prefix + ".data-00000-of-00001", data.substr(0, 100)).ok());
  const Status cut = (*checkpoint)->Read(key).status();
  EXPECT_EQ(cut.code(), Code::kDataLoss);
  EXPECT_NE(Message(cut).find("100 bytes"), std::string::npos) << cut;
}

TEST(Checkpoint, VerifyFindsAChangedByte) {
  const Folder folder;
  const std::string prefix = folder.File("variables");
  ASSERT_TRUE(WriteFile(prefix + ".index", ReadAll(kPrefix + ".index")).ok());
  std::string data = ReadAll(kPrefix + ".data-00000-of-00001");
  data[data.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFile(prefix + ".data-00000-of-00001", data).ok());
  auto checkpoint = Checkpoint::Open(prefix);
  ASSERT_TRUE(checkpoint.ok());
  int bad = 0;
  for (const auto& entry : (*checkpoint)->entries()) {
    bad += (*checkpoint)->VerifyData(entry.key).code() == Code::kDataLoss;
  }
  EXPECT_EQ(bad, 1);
}

// TensorFlow's ordered code of a number from -64 to 63, or of -8192 to 8191 in two bytes.
std::string Signed(int value) {
  if (value >= -64 && value < 64) return {static_cast<char>(0x80 ^ value)};
  const int bits = value ^ (value < 0 ? ~0xc000 : 0xc000);
  return {static_cast<char>(bits >> 8), static_cast<char>(bits)};
}

std::string KeyOfSlice(const std::string& name, const std::vector<std::array<int, 2>>& box) {
  std::string key(1, '\0');
  for (const char c : name) {
    key.push_back(c);
    if (c == '\0') key.push_back('\xff');
    if (c == '\xff') key.push_back('\0');
  }
  key += {'\0', '\1', '\1', static_cast<char>(box.size())};
  for (const auto& [start, length] : box) key += Signed(start) + Signed(length);
  return key;
}

// BundleEntryProto of floats; no offset: a partitioned tensor's.
std::string EntryOf(const std::vector<int>& shape, int shard, int offset,
                    bool partitioned = false) {
  std::string dims, entry = {8, 1};
  int bytes = 4;
  for (const int size : shape) {
    std::string dim = {8};
    AppendVarint(&dim, static_cast<uint64_t>(size));
    dims += {0x12, static_cast<char>(dim.size())};
    dims += dim;
    bytes *= size;
  }
  entry += {0x12, static_cast<char>(dims.size())};
  entry += dims;
  if (partitioned) return entry + std::string{0x3a, 0};
  entry += {0x18, static_cast<char>(shard), 0x20};
  AppendVarint(&entry, static_cast<uint64_t>(offset));
  entry += 0x28;
  AppendVarint(&entry, static_cast<uint64_t>(bytes));
  return entry;
}

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
}

TEST(CheckpointSlices, ReadsTheOrderedCode) {
  const std::string name("a\0b\xff", 4);
  for (const int start : {0, 1, 63, 64, 1000, 8191}) {
    auto key = ParseSliceKey(KeyOfSlice(name, {{start, -1}, {0, 200}}));
    ASSERT_TRUE(key.ok()) << key.status() << start;
    EXPECT_EQ(key->tensor, name);
    EXPECT_EQ(key->box, (SliceBox{{start, -1}, {0, 200}}));
  }
  // 2^40 takes six bytes: six one bits, a zero, then 41 bits.
  auto wide = ParseSliceKey(std::string("\0w\0\1\1\1\xfd\0\0\0\0\0\x80", 13));
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(wide->box, (SliceBox{{int64_t{1} << 40, 0}}));
  const std::string whole = KeyOfSlice("weights", {{1000, 3}, {0, -1}});
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(ParseSliceKey(whole.substr(0, n)).status().code(), Code::kDataLoss) << n;
  }
  EXPECT_FALSE(ParseSliceKey(whole + "x").ok());
  EXPECT_FALSE(ParseSliceKey(KeyOfSlice("w", {{-3, 3}})).ok());
  EXPECT_FALSE(ParseSliceKey(KeyOfSlice("w", {{0, -2}})).ok());
}

TEST(CheckpointSlices, ReadsTheTextOfARestore) {
  auto spec = ParseSliceSpec("30 8 10,5:-");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->whole, Shape({30, 8}));
  EXPECT_EQ(ToString(*Settled(spec->box, spec->whole)), "10,5:0,8");
  for (const char* wrong :
       {"30 8 10,5", "30", "30 8 10,5:-:-", "30 8 -1,5:-", "30 8 10;5:-", "30 8 "}) {
    EXPECT_EQ(ParseSliceSpec(wrong).status().code(), Code::kDataLoss) << wrong;
  }
  EXPECT_EQ(Settled({{10, 21}}, Shape({30})).status().code(), Code::kDataLoss);
  EXPECT_EQ(Settled({{31, SliceExtent::kAll}}, Shape({30})).status().code(), Code::kDataLoss);
}

// A tensor [4,3] of 0..11: columns 0 and 1 in one shard, column 2, in two slices, in another.
class PartitionedCheckpoint : public ::testing::Test {
 protected:
  void Write(std::vector<TableEntry> entries) {
    entries.push_back({"", std::string{8, 2}});
    entries.push_back({"w", EntryOf({4, 3}, 0, 0, true)});
    std::sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.key < b.key; });
    ASSERT_TRUE(WriteFile(prefix_ + ".index", WriteTable(entries, false)).ok());
    ASSERT_TRUE(
        WriteFile(prefix_ + ".data-00000-of-00002", Floats({0, 1, 3, 4, 6, 7, 9, 10})).ok());
    ASSERT_TRUE(WriteFile(prefix_ + ".data-00001-of-00002", Floats({-1, 2, 5, 8, 11})).ok());
  }
  std::vector<TableEntry> Entries() {
    return {{KeyOfSlice("w", {{0, -1}, {0, 2}}), EntryOf({4, 2}, 0, 0)},
            {KeyOfSlice("w", {{0, 3}, {2, 1}}), EntryOf({3, 1}, 1, 4)},
            {KeyOfSlice("w", {{3, 1}, {2, 1}}), EntryOf({1, 1}, 1, 16)}};
  }
  Result<Tensor> ReadPart(const std::string& slice) {
    auto checkpoint = Checkpoint::Open(prefix_);
    if (!checkpoint.ok()) return checkpoint.status();
    return (*checkpoint)->ReadSlice("w", slice);
  }
  std::vector<double> Values(const std::string& slice) {
    const auto tensor = ReadPart(slice);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return tensor.ok() ? *ToDoubles(*tensor) : std::vector<double>();
  }

  const Folder folder_;
  const std::string prefix_ = folder_.File("v");
};

TEST_F(PartitionedCheckpoint, SlicesAreViewsOrCopiedTogether) {
  Write(Entries());
  using List = std::vector<double>;
  EXPECT_EQ(Values(""), (List{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(Values("4 3 1,2:-"), (List{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(Values("4 3 2,2:1,2"), (List{7, 8, 10, 11}));
  EXPECT_EQ(Values("4 3 0,0:-"), (List{}));
  EXPECT_FALSE(ReadPart("")->mapped());
  // The stored tensor, and rows of it, are views.
  EXPECT_EQ(Values("4 3 -:0,2"), (List{0, 1, 3, 4, 6, 7, 9, 10}));
  EXPECT_TRUE(ReadPart("4 3 -:0,2")->mapped());
  EXPECT_EQ(Values("4 3 1,2:2,1"), (List{5, 8}));
  EXPECT_TRUE(ReadPart("4 3 1,2:2,1")->mapped());
  EXPECT_EQ(Values("4 3 2,2:0,2"), (List{6, 7, 9, 10}));
  EXPECT_TRUE(ReadPart("4 3 2,2:0,2")->mapped());
  EXPECT_EQ(Values("4 3 2,1:1,1"), (List{7}));
  // A column is copied from two slices.
  EXPECT_EQ(Values("4 3 -:1,1"), (List{1, 4, 7, 10}));
  EXPECT_FALSE(ReadPart("4 3 -:1,1")->mapped());
  const Status other = ReadPart("4 4 -:-").status();
  EXPECT_EQ(other.code(), Code::kDataLoss);
  EXPECT_NE(Message(other).find("[4,4]"), std::string::npos) << other;
}

TEST_F(PartitionedCheckpoint, WhatIsMissingOrOverlapsIsRefused) {
  auto entries = Entries();
  entries.pop_back();
  Write(entries);
  const Status missing = ReadPart("").status();
  EXPECT_EQ(missing.code(), Code::kDataLoss);
  EXPECT_NE(Message(missing).find("11 of the 12"), std::string::npos) << missing;
  EXPECT_TRUE(ReadPart("4 3 0,3:-").ok());

  entries = Entries();
  entries[2].key = KeyOfSlice("w", {{0, 1}, {2, 1}});
  Write(entries);
  const Status overlap = ReadPart("").status();
  EXPECT_EQ(overlap.code(), Code::kDataLoss);
  EXPECT_NE(Message(overlap).find("overlap"), std::string::npos) << overlap;

  entries = Entries();
  entries[2].key = KeyOfSlice("w", {{3, 2}, {2, 1}});
  Write(entries);
  EXPECT_EQ(ReadPart("").status().code(), Code::kDataLoss);

  Write({});
  EXPECT_EQ(ReadPart("").status().code(), Code::kDataLoss);

  entries = Entries();
  entries[0].key = entries[0].key.substr(0, entries[0].key.size() - 1);
  Write(entries);
  EXPECT_EQ(Checkpoint::Open(prefix_).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace oncilla
