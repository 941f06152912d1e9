// Writes protobuf messages with large parts that are stored elsewhere: a message is a list of small
// texts and of views, so that a graph with its weights is written without copying them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "engine/import/wire/wire.h"

namespace oncilla {

// Small parts are copied; large ones are views of bytes that the caller keeps alive.
class WireRope {
 public:
  void Varint(uint32_t field, uint64_t value);
  void Text(uint32_t field, Bytes text);   // copied
  void View(uint32_t field, Bytes bytes);  // a view when large
  void Message(uint32_t field, WireRope message);
  uint64_t bytes() const { return bytes_; }
  // In order; views of this rope's own parts and of others' bytes.
  std::vector<Bytes> Parts() const;

 private:
  struct Part {
    std::string text;
    Bytes view;  // used when not empty
  };
  void Head(uint32_t field, uint64_t length);
  std::string& Tail();

  std::deque<Part> parts_;
  uint64_t bytes_ = 0;
};

}  // namespace oncilla
