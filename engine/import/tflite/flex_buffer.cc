// FlexBuffers' type numbers: 0 null, 1 to 3 inline numbers, 4 a key, 5 a string, 6 to 8 indirect
// numbers, 9 a map, 10 an untyped vector, 11 to 15 and 36 typed vectors, 16 to 24 typed vectors of
// two, three or four numbers, 25 a blob, 26 a bool.
#include "engine/import/tflite/flex_buffer.h"

#include <cmath>
#include <cstring>

namespace oncilla {
namespace {

constexpr int kInt = 1, kUnsigned = 2, kFloat = 3, kKey = 4, kText = 5, kMap = 9, kList = 10;
constexpr int kBytes = 25, kBool = 26, kBools = 36;

Status Damaged() { return DataLoss("its options are damaged"); }

bool IsTypedList(int type) { return (type >= 11 && type <= 15) || type == kBools; }
bool IsFixedList(int type) { return type >= 16 && type <= 24; }
int ElementType(int type) {
  if (type == kBools) return kBool;
  if (IsFixedList(type)) return (type - 16) % 3 + 1;
  return type == 15 ? kKey : type - 10;
}

}  // namespace

Result<FlexValue> FlexValue::Root(std::string_view bytes) {
  if (bytes.size() < 3) return Damaged();
  const auto width = static_cast<uint8_t>(bytes[bytes.size() - 1]);
  const auto packed = static_cast<uint8_t>(bytes[bytes.size() - 2]);
  const bool known = width == 1 || width == 2 || width == 4 || width == 8;
  if (!known || bytes.size() < size_t{width} + 2) return Damaged();
  FlexValue root;
  root.bytes_ = bytes;
  return root.As(bytes.size() - 2 - width, width, packed >> 2, 1 << (packed & 3));
}

FlexValue FlexValue::As(uint64_t at, int parent, int type, int width) const {
  FlexValue out;
  out.bytes_ = bytes_;
  out.at_ = at;
  out.parent_ = parent;
  out.type_ = type;
  out.width_ = width;
  return out;
}

Result<uint64_t> FlexValue::Unsigned(uint64_t at, int width) const {
  if (at > bytes_.size() || bytes_.size() - at < static_cast<uint64_t>(width)) return Damaged();
  uint64_t value = 0;
  std::memcpy(&value, bytes_.data() + at, static_cast<size_t>(width));
  return value;
}

Result<uint64_t> FlexValue::Target() const {
  ONCILLA_ASSIGN(const uint64_t back, Unsigned(at_, parent_));
  if (back > at_) return Damaged();
  return at_ - back;
}

Result<int64_t> FlexValue::Count() const {
  if (IsFixedList(type_)) return int64_t{(type_ - 16) / 3 + 2};
  if (type_ != kMap && type_ != kList && !IsTypedList(type_)) return int64_t{0};
  ONCILLA_ASSIGN(const uint64_t to, Target());
  if (to < static_cast<uint64_t>(width_)) return Damaged();
  ONCILLA_ASSIGN(const uint64_t count, Unsigned(to - static_cast<uint64_t>(width_), width_));
  if (count > (bytes_.size() - to) / static_cast<uint64_t>(width_)) return Damaged();
  return static_cast<int64_t>(count);
}

Result<FlexValue> FlexValue::Element(int64_t i) const {
  ONCILLA_ASSIGN(const int64_t count, Count());
  if (i < 0 || i >= count) return DataLoss("its options have no value ", i);
  ONCILLA_ASSIGN(const uint64_t to, Target());
  const auto width = static_cast<uint64_t>(width_), place = static_cast<uint64_t>(i);
  if (type_ != kMap && type_ != kList) {
    return As(to + place * width, width_, ElementType(type_), 1);
  }
  ONCILLA_ASSIGN(const uint64_t packed,
                 Unsigned(to + static_cast<uint64_t>(count) * width + place, 1));
  return As(to + place * width, width_, static_cast<int>(packed >> 2), 1 << (packed & 3));
}

Result<FlexValue> FlexValue::Find(std::string_view key) const {
  if (type_ != kMap) return DataLoss("its options are not a map");
  ONCILLA_ASSIGN(const int64_t count, Count());
  ONCILLA_ASSIGN(const uint64_t to, Target());
  const auto width = static_cast<uint64_t>(width_);
  if (to < 3 * width) return Damaged();
  ONCILLA_ASSIGN(const uint64_t keys_width, Unsigned(to - 2 * width, width_));
  if (keys_width != 1 && keys_width != 2 && keys_width != 4 && keys_width != 8) return Damaged();
  // The keys are in a separate vector, in the order of the values.
  const FlexValue keys = As(to - 3 * width, width_, 14, static_cast<int>(keys_width));
  ONCILLA_ASSIGN(const int64_t known, keys.Count());
  if (known != count) return Damaged();
  for (int64_t i = 0; i < count; ++i) {
    ONCILLA_ASSIGN(const FlexValue name, keys.Element(i));
    ONCILLA_ASSIGN(const std::string_view text, name.Text());
    if (text == key) return Element(i);
  }
  return FlexValue();
}

Result<double> FlexValue::Float() const {
  const bool direct = type_ == kFloat, indirect = type_ == 8;
  if (!direct && !indirect) {
    ONCILLA_ASSIGN(const int64_t whole, Int());
    return static_cast<double>(whole);
  }
  const int width = direct ? parent_ : width_;
  uint64_t at = at_;
  if (indirect) {
    ONCILLA_ASSIGN(at, Target());
  }
  ONCILLA_ASSIGN(const uint64_t bits, Unsigned(at, width));
  if (width == 8) {
    double value = 0;
    std::memcpy(&value, &bits, 8);
    return value;
  }
  if (width != 4) return Unsupported("options with floats of ", width, " bytes");
  float value = 0;
  std::memcpy(&value, &bits, 4);
  return double{value};
}

Result<int64_t> FlexValue::Int() const {
  if (nothing()) return int64_t{0};
  if (type_ == kFloat || type_ == 8) {
    ONCILLA_ASSIGN(const double value, Float());
    if (!(std::abs(value) < 9e15)) return DataLoss("a number in its options is ", value);
    return static_cast<int64_t>(value);
  }
  const bool direct = type_ == kInt || type_ == kUnsigned || type_ == kBool;
  if (!direct && type_ != 6 && type_ != 7) return DataLoss("its options have no number there");
  const int width = direct ? parent_ : width_;
  uint64_t at = at_;
  if (!direct) {
    ONCILLA_ASSIGN(at, Target());
  }
  ONCILLA_ASSIGN(const uint64_t bits, Unsigned(at, width));
  const int unused = 64 - 8 * width;
  if (type_ == kInt || type_ == 6) return static_cast<int64_t>(bits << unused) >> unused;
  if (bits > static_cast<uint64_t>(INT64_MAX)) return DataLoss("a number in its options is ", bits);
  return static_cast<int64_t>(bits);
}

Result<std::string_view> FlexValue::Text() const {
  if (type_ != kKey && type_ != kText && type_ != kBytes) {
    return DataLoss("its options have no text there");
  }
  ONCILLA_ASSIGN(const uint64_t to, Target());
  if (type_ == kKey) {
    const size_t end = bytes_.find('\0', to);
    if (end == std::string_view::npos) return Damaged();
    return bytes_.substr(to, end - to);
  }
  if (to < static_cast<uint64_t>(width_)) return Damaged();
  ONCILLA_ASSIGN(const uint64_t size, Unsigned(to - static_cast<uint64_t>(width_), width_));
  if (size > bytes_.size() - to) return Damaged();
  return bytes_.substr(to, size);
}

}  // namespace oncilla
