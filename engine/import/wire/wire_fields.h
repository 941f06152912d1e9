// Protobuf messages of our own as plain structs: a struct lists its fields once, by number, and
// that list reads and writes it.
//
//   struct Blob {
//     uint64_t offset = 0;
//     WireFixed64 hash;
//     static void Fields(auto& self, auto&& field) {
//       field(1, self.offset);
//       field(3, self.hash);
//     }
//   };
//
// Types of fields: bool, uint32_t, uint64_t, WireFixed64, Bytes (a view of the bytes read, or of
// bytes that the writer keeps alive), a message; std::optional of double, bool, Bytes, WireSigned
// or a message (written if it has a value); std::vector of uint32_t, uint64_t, WireSigned or double
// (packed), of Bytes, or of messages. As in proto3 a plain field that is zero is not written, and
// fields that the struct does not have are skipped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/import/wire/wire.h"

namespace oncilla {

struct WireFixed64 {
  uint64_t value = 0;
};

// A sint64: small magnitudes are short, whatever their sign.
struct WireSigned {
  int64_t value = 0;
};

namespace wire_internal {

template <class T>
concept IsMessage = requires(T& t) {
  T::Fields(t, [](uint32_t, auto&) {});
};
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsPacked = std::is_arithmetic_v<T> || std::is_same_v<T, WireSigned>;

// Reads one number of a packed list or of a field of its own.
template <class T>
T ReadNumber(protozero::pbf_reader& from) {
  if constexpr (std::is_same_v<T, bool>) {
    return from.get_bool();
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    return from.get_uint32();
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return from.get_uint64();
  } else if constexpr (std::is_same_v<T, double>) {
    return from.get_double();
  } else if constexpr (std::is_same_v<T, WireSigned>) {
    return {from.get_sint64()};
  } else {
    static_assert(std::is_same_v<T, WireFixed64>);
    return {from.get_fixed64()};
  }
}

template <class T>
protozero::pbf_wire_type WireTypeOf() {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, WireFixed64>) {
    return protozero::pbf_wire_type::fixed64;
  } else if constexpr (kIsPacked<T>) {
    return protozero::pbf_wire_type::varint;
  } else {
    return protozero::pbf_wire_type::length_delimited;
  }
}

template <class T>
void ReadPacked(protozero::pbf_reader& from, std::vector<T>& to) {
  const auto append = [&](const auto& range) {
    for (const auto value : range) to.push_back(T{value});
  };
  if constexpr (std::is_same_v<T, uint32_t>) {
    append(from.get_packed_uint32());
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    append(from.get_packed_uint64());
  } else if constexpr (std::is_same_v<T, double>) {
    append(from.get_packed_double());
  } else {
    append(from.get_packed_sint64());
  }
}

}  // namespace wire_internal

// Adds the fields in `bytes` to `message`. Throws protozero::exception (see ReadWire).
template <class Message>
void ReadMessage(Bytes bytes, Message& message);

namespace wire_internal {

template <class T>
void ReadField(protozero::pbf_reader& from, T& to) {
  const auto expect = [&](protozero::pbf_wire_type type) {
    if (!from.has_wire_type(type)) throw WireError("a field has the wrong type");
  };
  if constexpr (kIsOptional<T>) {
    if (!to.has_value()) to.emplace();
    ReadField(from, *to);
  } else if constexpr (kIsVector<T>) {
    using Item = typename T::value_type;
    if constexpr (kIsPacked<Item>) {
      if (from.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
        return ReadPacked(from, to);
      }
    }
    ReadField(from, to.emplace_back());
  } else {
    expect(WireTypeOf<T>());
    if constexpr (std::is_same_v<T, Bytes>) {
      to = from.get_view();
    } else if constexpr (IsMessage<T>) {
      ReadMessage(from.get_view(), to);
    } else {
      to = ReadNumber<T>(from);
    }
  }
}

}  // namespace wire_internal

template <class Message>
void ReadMessage(Bytes bytes, Message& message) {
  protozero::pbf_reader reader(bytes);
  while (reader.next()) {
    bool known = false;
    Message::Fields(message, [&](uint32_t number, auto& field) {
      if (known || number != reader.tag()) return;
      wire_internal::ReadField(reader, field);
      known = true;
    });
    if (!known) reader.skip();
  }
}

template <class Message>
std::string WriteMessage(const Message& message);

namespace wire_internal {

template <class T>
void WriteField(protozero::pbf_writer& out, uint32_t number, const T& value, bool always) {
  if constexpr (kIsOptional<T>) {
    if (value.has_value()) WriteField(out, number, *value, true);
  } else if constexpr (std::is_same_v<T, std::vector<uint32_t>>) {
    out.add_packed_uint32(number, value.begin(), value.end());
  } else if constexpr (std::is_same_v<T, std::vector<uint64_t>>) {
    out.add_packed_uint64(number, value.begin(), value.end());
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    out.add_packed_double(number, value.begin(), value.end());
  } else if constexpr (std::is_same_v<T, std::vector<WireSigned>>) {
    std::vector<int64_t> plain;
    for (const WireSigned item : value) plain.push_back(item.value);
    out.add_packed_sint64(number, plain.begin(), plain.end());
  } else if constexpr (kIsVector<T>) {
    for (const auto& item : value) WriteField(out, number, item, true);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    if (always || !value.empty()) out.add_bytes(number, value.data(), value.size());
  } else if constexpr (IsMessage<T>) {
    out.add_message(number, WriteMessage(value));
  } else if constexpr (std::is_same_v<T, WireSigned>) {
    if (always || value.value != 0) out.add_sint64(number, value.value);
  } else if constexpr (std::is_same_v<T, WireFixed64>) {
    if (always || value.value != 0) out.add_fixed64(number, value.value);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (always || value) out.add_bool(number, value);
  } else if constexpr (std::is_same_v<T, double>) {
    if (always || value != 0) out.add_double(number, value);
  } else {
    if (always || value != 0) out.add_uint64(number, value);
  }
}

}  // namespace wire_internal

template <class Message>
std::string WriteMessage(const Message& message) {
  std::string out;
  protozero::pbf_writer writer(out);
  Message::Fields(message, [&](uint32_t number, const auto& field) {
    wire_internal::WriteField(writer, number, field, false);
  });
  return out;
}

}  // namespace oncilla
