// A cursor over bytes of MLIR's bytecode: numbers of varying length, texts and parts.
//
// A read beyond the end gives zero and marks the cursor as failed, and so do all reads after it:
// callers check ok() once per entry. Counts are bounded by the bytes that are left, since whatever
// is counted takes at least one.
#pragma once

#include <cstdint>
#include <string_view>

namespace oncilla {

class BytecodeCursor {
 public:
  explicit BytecodeCursor(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  size_t left() const { return ok_ ? bytes_.size() - at_ : 0; }
  size_t at() const { return at_; }
  void Fail() { ok_ = false; }

  uint8_t Byte() {
    if (left() == 0) return Failed();
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  std::string_view Take(uint64_t size) {
    if (size > left()) {
      Fail();
      return {};
    }
    const std::string_view part = bytes_.substr(at_, static_cast<size_t>(size));
    at_ += part.size();
    return part;
  }
  // A text that ends with a zero byte.
  std::string_view Text() {
    const size_t end = ok_ ? bytes_.find('\0', at_) : std::string_view::npos;
    if (end == std::string_view::npos) {
      Fail();
      return {};
    }
    const std::string_view text = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

  // The zero bits at the low end of the first byte are the number of bytes that follow it.
  uint64_t Number() {
    const uint8_t first = Byte();
    if (!ok_) return 0;
    int more = 0;
    while (more < 8 && ((first >> more) & 1) == 0) ++more;
    uint64_t value = more == 8 ? 0 : first;
    const std::string_view rest = Take(static_cast<uint64_t>(more));
    for (size_t i = 0; i < rest.size(); ++i) {
      const uint64_t byte = static_cast<uint8_t>(rest[i]);
      value |= more == 8 ? byte << (8 * i) : byte << (8 * (i + 1));
    }
    return more == 8 ? value : value >> (more + 1);
  }
  int64_t Signed() {
    const uint64_t value = Number();
    return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  // A number whose lowest bit is a flag.
  uint64_t Flagged(bool& flag) {
    const uint64_t value = Number();
    flag = (value & 1) != 0;
    return value >> 1;
  }
  // A number of things that follow.
  size_t Count() { return Counted(Number()); }
  size_t Counted(uint64_t count) {
    if (count > left()) return Failed();
    return static_cast<size_t>(count);
  }
  // An index into a table of so many entries.
  int Index(size_t entries) { return Indexed(Number(), entries); }
  int Indexed(uint64_t index, size_t entries) {
    if (index >= entries) return Failed();
    return static_cast<int>(index);
  }
  // Skips the bytes before a multiple of so many, counted from the start of these bytes.
  void Align(uint64_t to) {
    while (ok_ && at_ % to != 0) {
      if (Byte() != 0xCB) Fail();
    }
  }

 private:
  uint8_t Failed() {
    ok_ = false;
    return 0;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace oncilla
