// Reads tables of a FlatBuffers file; each offset is checked before it is followed.
#include "engine/import/tflite/flat.h"

namespace oncilla {
namespace {

// Reads a number at offset `at`; false if it is not within the file.
template <class T>
bool Load(std::string_view file, uint64_t at, T& value) {
  if (at > file.size() || file.size() - at < sizeof(T)) return false;
  std::memcpy(&value, file.data() + at, sizeof(T));
  return true;
}

}  // namespace

Status FlatTable::Damaged(int field) {
  return DataLoss("field ", field, " of a table leads out of the file");
}

Result<FlatTable> FlatTable::At(std::string_view file, uint64_t at) {
  int32_t back = 0;  // from the table to its vtable, which usually precedes it
  FlatTable table;
  table.file_ = file;
  table.at_ = at;
  if (!Load(file, at, back)) return DataLoss("a table lies outside of the file");
  const int64_t vtable = static_cast<int64_t>(at) - back;
  if (vtable < 0) return DataLoss("a table's layout lies outside of the file");
  table.vtable_ = static_cast<uint64_t>(vtable);
  if (!Load(file, table.vtable_, table.vtable_bytes_) ||
      !Load(file, table.vtable_ + 2, table.table_bytes_) || table.vtable_bytes_ < 4 ||
      table.vtable_bytes_ % 2 != 0 || table.vtable_bytes_ > file.size() - table.vtable_) {
    return DataLoss("a table's layout is damaged");
  }
  if (table.table_bytes_ < 4 || table.table_bytes_ > file.size() - at) {
    return DataLoss("a table is longer than the file");
  }
  return table;
}

Result<FlatTable> FlatTable::Root(std::string_view file) {
  uint32_t at = 0;
  if (!Load(file, 0, at)) return DataLoss("the file is too short");
  return At(file, at);
}

uint16_t FlatTable::OffsetOf(int field) const {
  if (field < 0 || field >= fields()) return 0;
  uint16_t offset = 0;
  Load(file_, vtable_ + 4 + 2 * static_cast<uint64_t>(field), offset);
  return offset;
}

Result<uint64_t> FlatTable::Follow(int field) const {
  const uint16_t offset = OffsetOf(field);
  if (offset == 0) return uint64_t{0};
  uint32_t to = 0;
  if (offset + sizeof(to) > table_bytes_ || !Load(file_, at_ + offset, to) || to == 0) {
    return Damaged(field);
  }
  return at_ + offset + to;
}

Result<FlatTable> FlatTable::Table(int field) const {
  ONCILLA_ASSIGN(const uint64_t at, Follow(field));
  if (at == 0) return FlatTable();
  return At(file_, at);
}

Result<std::string_view> FlatTable::Vector(int field, size_t element) const {
  ONCILLA_ASSIGN(const uint64_t at, Follow(field));
  if (at == 0) return std::string_view();
  uint32_t count = 0;
  if (!Load(file_, at, count)) return Damaged(field);
  const uint64_t begin = at + sizeof(count), bytes = uint64_t{count} * element;
  if (begin > file_.size() || file_.size() - begin < bytes) return Damaged(field);
  return file_.substr(begin, bytes);
}

Result<size_t> FlatTable::Count(int field, size_t size) const {
  ONCILLA_ASSIGN(const std::string_view bytes, Vector(field, size));
  return bytes.size() / size;
}

Result<std::vector<FlatTable>> FlatTable::Tables(int field) const {
  ONCILLA_ASSIGN(const std::string_view offsets, Vector(field, sizeof(uint32_t)));
  std::vector<FlatTable> tables;
  tables.reserve(offsets.size() / sizeof(uint32_t));
  for (size_t i = 0; i < offsets.size(); i += sizeof(uint32_t)) {
    const auto at = static_cast<uint64_t>(offsets.data() + i - file_.data());
    uint32_t to = 0;
    Load(file_, at, to);
    ONCILLA_ASSIGN(FlatTable table, At(file_, at + to));
    tables.push_back(table);
  }
  return tables;
}

}  // namespace oncilla
