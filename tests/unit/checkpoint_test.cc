// The checkpoint reader on the quickstart model's own files, and on damaged copies of them.
#include "engine/import/checkpoint.h"

#include <gtest/gtest.h>
#include <snappy.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "engine/base/hash.h"
#include "engine/import/sorted_table.h"
#include "tests/unit/temporary.h"

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
    // The metaindex block, which nobody reads, is the exception: then nothing else has changed.
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

}  // namespace
}  // namespace oncilla
