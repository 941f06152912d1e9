// A message as a list of parts, and the lengths that precede them.
#include "engine/import/wire/wire_rope.h"

namespace oncilla {

void WireRope::Head(uint32_t field, uint64_t length) {
  std::string& tail = Tail();
  const size_t before = tail.size();
  protozero::write_varint(std::back_inserter(tail), (field << 3) | 2);
  protozero::write_varint(std::back_inserter(tail), length);
  bytes_ += tail.size() - before;
}

std::string& WireRope::Tail() {
  if (parts_.empty() || !parts_.back().view.empty()) parts_.emplace_back();
  return parts_.back().text;
}

void WireRope::Varint(uint32_t field, uint64_t value) {
  std::string& tail = Tail();
  const size_t before = tail.size();
  protozero::write_varint(std::back_inserter(tail), field << 3);
  protozero::write_varint(std::back_inserter(tail), value);
  bytes_ += tail.size() - before;
}

void WireRope::Text(uint32_t field, Bytes text) {
  Head(field, text.size());
  Tail().append(text);
  bytes_ += text.size();
}

void WireRope::View(uint32_t field, Bytes bytes) {
  constexpr size_t kLarge = 4096;
  if (bytes.size() < kLarge) return Text(field, bytes);
  Head(field, bytes.size());
  parts_.push_back({"", bytes});
  bytes_ += bytes.size();
}

void WireRope::Message(uint32_t field, WireRope message) {
  Head(field, message.bytes_);
  for (Part& part : message.parts_) {
    if (part.view.empty()) {
      Tail().append(part.text);
    } else {
      parts_.push_back(std::move(part));
    }
  }
  bytes_ += message.bytes_;
}

std::vector<Bytes> WireRope::Parts() const {
  std::vector<Bytes> out;
  for (const Part& part : parts_) out.push_back(part.view.empty() ? Bytes(part.text) : part.view);
  return out;
}

}  // namespace oncilla
