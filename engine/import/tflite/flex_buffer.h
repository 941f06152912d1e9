// A reader of FlexBuffers without that library: the untyped options of custom ops, as views.
//
// A value is a number, a text, a list or a map; its parent contains its offset and width. As in
// flat.h, every offset, width and count is checked at each access.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/status.h"

namespace oncilla {

class FlexValue {
 public:
  // The value in these bytes. DataLoss for bytes that cannot be one.
  static Result<FlexValue> Root(std::string_view bytes);
  FlexValue() = default;  // nothing

  bool nothing() const { return type_ == 0; }
  // The length of a list or map; 0 for anything else.
  Result<int64_t> Count() const;
  Result<FlexValue> Element(int64_t i) const;
  // An absent value if a map has no such key.
  Result<FlexValue> Find(std::string_view key) const;
  // Numbers of any kind; 0 for an absent value.
  Result<int64_t> Int() const;
  Result<double> Float() const;
  // Texts, keys and bytes.
  Result<std::string_view> Text() const;

 private:
  // An unsigned number of `width` bytes.
  Result<uint64_t> Unsigned(uint64_t at, int width) const;
  Result<uint64_t> Target() const;  // of a value that is an offset
  FlexValue As(uint64_t at, int parent, int type, int width) const;

  std::string_view bytes_;
  uint64_t at_ = 0;
  int parent_ = 0;  // the width of the value, or of the offset to it
  int type_ = 0;    // as in the format
  int width_ = 0;   // of what an offset points to
};

}  // namespace oncilla
