// Fields of a protobuf message with a check of their wire types, which protozero leaves to the
// caller.
#pragma once

#define PROTOZERO_USE_VIEW std::string_view
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <string_view>

namespace oncilla::records {

using Reader = protozero::pbf_reader;

// Throws protozero's exception for damaged messages if the field has another wire type.
inline void Require(const Reader& message, protozero::pbf_wire_type type) {
  if (!message.has_wire_type(type)) throw protozero::unknown_pbf_wire_type_exception();
}

inline std::string_view View(Reader& message) {
  Require(message, protozero::pbf_wire_type::length_delimited);
  const protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}
inline uint64_t Number(Reader& message) {
  Require(message, protozero::pbf_wire_type::varint);
  return message.get_uint64();
}
inline uint32_t Fixed32(Reader& message) {
  Require(message, protozero::pbf_wire_type::fixed32);
  return message.get_fixed32();
}
inline uint64_t Fixed64(Reader& message) {
  Require(message, protozero::pbf_wire_type::fixed64);
  return message.get_fixed64();
}

}  // namespace oncilla::records
