// Reads protobuf messages as views into a mapped file, without generated code and without copies: a
// thin layer on protozero, which has no 2 GB limit.
//
// A WireMessage iterates over the fields of one message; the reader of each format knows their
// numbers and meaning. Wire types are checked on every access, because the bytes are not trusted.
// Damage is thrown as protozero::exception and must be caught by ReadWire at the top of a reader:
// no exception leaves engine/import.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#define PROTOZERO_USE_VIEW std::string_view
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "engine/base/status.h"

namespace oncilla {

// Bytes of a file that another object keeps alive.
using Bytes = std::string_view;

class WireError : public protozero::exception {
 public:
  explicit WireError(const char* what) : what_(what) {}
  const char* what() const noexcept override { return what_; }

 private:
  const char* what_;
};

class WireMessage {
 public:
  explicit WireMessage(Bytes bytes) : reader_(bytes) {}

  // Moves to the next field, skipping the current one if it was not read. Returns false at the end.
  bool Next() {
    if (pending_) reader_.skip();
    pending_ = reader_.next();
    field_ = pending_ ? reader_.tag() : 0;
    return pending_;
  }
  uint32_t field() const { return field_; }
  bool is_varint() const { return reader_.has_wire_type(protozero::pbf_wire_type::varint); }
  bool is_view() const { return reader_.has_wire_type(protozero::pbf_wire_type::length_delimited); }

  // A string, bytes or an embedded message.
  Bytes View() {
    Take(protozero::pbf_wire_type::length_delimited);
    return reader_.get_view();
  }
  int64_t Int() {
    Take(protozero::pbf_wire_type::varint);
    return reader_.get_int64();
  }
  bool Bool() { return Int() != 0; }
  float Float() {
    Take(protozero::pbf_wire_type::fixed32);
    return reader_.get_float();
  }
  double Double() {
    Take(protozero::pbf_wire_type::fixed64);
    return reader_.get_double();
  }
  uint32_t Fixed32() {
    Take(protozero::pbf_wire_type::fixed32);
    return reader_.get_fixed32();
  }

  // Every value of a repeated number field, packed or not.
  template <class F>
  void EachInt(F&& fn) {
    if (is_varint()) return fn(Int());
    Take(protozero::pbf_wire_type::length_delimited);
    for (int64_t v : reader_.get_packed_int64()) fn(v);
  }
  template <class F>
  void EachFloat(F&& fn) {
    if (!is_view()) return fn(Float());
    Take(protozero::pbf_wire_type::length_delimited);
    for (float v : reader_.get_packed_float()) fn(v);
  }
  template <class F>
  void EachDouble(F&& fn) {
    if (!is_view()) return fn(Double());
    Take(protozero::pbf_wire_type::length_delimited);
    for (double v : reader_.get_packed_double()) fn(v);
  }

 private:
  void Take(protozero::pbf_wire_type type) {
    if (!pending_ || !reader_.has_wire_type(type)) throw WireError("a field has the wrong type");
    pending_ = false;
  }

  protozero::pbf_reader reader_;
  uint32_t field_ = 0;
  bool pending_ = false;
};

// Describes what is wrong with the bytes.
inline std::string_view WireDamage(const protozero::exception& e) {
  if (dynamic_cast<const protozero::end_of_buffer_exception*>(&e) != nullptr) {
    return "it ends within a message; was the file cut off?";
  }
  if (dynamic_cast<const protozero::varint_too_long_exception*>(&e) != nullptr) {
    return "a number has more bytes than any can have";
  }
  if (dynamic_cast<const protozero::unknown_pbf_wire_type_exception*>(&e) != nullptr) {
    return "a field has a wire type that does not exist";
  }
  if (dynamic_cast<const protozero::invalid_tag_exception*>(&e) != nullptr) {
    return "a field has a number that none can have";
  }
  if (dynamic_cast<const protozero::invalid_length_exception*>(&e) != nullptr) {
    return "the bytes of a list are not a whole number of elements";
  }
  return e.what();
}

// Calls `read`, which may throw WireError or return a failed Status; `what` (a file and a message)
// begins the message for damaged bytes.
template <class F>
Status ReadWire(std::string_view what, F&& read) {
  try {
    if constexpr (std::is_void_v<decltype(read())>) {
      read();
      return {};
    } else {
      return read();
    }
  } catch (const protozero::exception& e) {
    return DataLoss(what, " is damaged: ", WireDamage(e));
  }
}

}  // namespace oncilla
