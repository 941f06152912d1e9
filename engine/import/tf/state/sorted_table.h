// The sorted table file that a checkpoint's index is: LevelDB's format as TensorFlow writes it.
//
// Layout, from the end: a footer of 48 bytes (two block handles as varints, zeros to 40, a magic
// number); the index block, whose values are handles of data blocks; data blocks of entries with
// shared key prefixes. Each block is followed by a type byte (raw or Snappy) and a masked CRC-32C,
// always verified. Tables are small (one entry per variable), so all entries are read at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

struct TableEntry {
  std::string key;
  std::string value;
};

// All entries, in key order. `path` is for messages. Every failure is DataLoss.
Result<std::vector<TableEntry>> ReadSortedTable(std::string_view file, std::string_view path);

}  // namespace oncilla
