// A reader of FlatBuffers without that library: tables as views into a mapped file.
//
// A table is a list of numbered fields, each of which may be missing; a vtable contains their
// offsets. Every offset, length and count is checked against the file before it is used, at each
// access, so that reading a damaged file can fail but never reads outside of it. Nothing here
// recurses or copies more than what is requested. Numbers are little-endian and may be unaligned.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla {

class FlatTable {
 public:
  // An absent table: it has no fields, so that all of them have their defaults.
  FlatTable() = default;
  // The root table of a file. DataLoss for a file that cannot have one.
  static Result<FlatTable> Root(std::string_view file);

  bool valid() const { return !file_.empty(); }
  // One more than the highest field in the table's vtable.
  int fields() const { return valid() ? (vtable_bytes_ - 4) / 2 : 0; }
  bool Has(int field) const { return OffsetOf(field) != 0; }

  // A number of the file's type T; `otherwise` if the field is missing.
  template <class T>
  Result<T> Number(int field, T otherwise) const {
    const uint16_t offset = OffsetOf(field);
    if (offset == 0) return otherwise;
    if (offset + sizeof(T) > table_bytes_) return Damaged(field);
    T value;
    std::memcpy(&value, file_.data() + at_ + offset, sizeof(T));
    return value;
  }
  // These return an empty or absent value if the field is missing.
  Result<std::string_view> String(int field) const { return Vector(field, 1); }
  Result<std::string_view> Bytes(int field) const { return Vector(field, 1); }
  Result<FlatTable> Table(int field) const;
  Result<std::vector<FlatTable>> Tables(int field) const;
  template <class T>
  Result<std::vector<T>> Numbers(int field) const {
    ONCILLA_ASSIGN(const std::string_view bytes, Vector(field, sizeof(T)));
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // The number of elements of `size` bytes in a vector, without reading them.
  Result<size_t> Count(int field, size_t size) const;

 private:
  static Result<FlatTable> At(std::string_view file, uint64_t at);
  // The offset of a field from the table's start; 0 if it is missing.
  uint16_t OffsetOf(int field) const;
  // The position to which the offset in a field points; 0 if the field is missing.
  Result<uint64_t> Follow(int field) const;
  Result<std::string_view> Vector(int field, size_t element) const;
  static Status Damaged(int field);

  std::string_view file_;
  uint64_t at_ = 0, vtable_ = 0;
  uint16_t vtable_bytes_ = 0, table_bytes_ = 0;
};

}  // namespace oncilla
