// Mutations of protobuf messages for libFuzzer, without a schema: the bytes are read as a tree of
// fields, fields are removed, doubled, copied, exchanged or given numbers that programs trip over,
// and the tree is written again with lengths that fit. Plain mutations of the bytes nearly always
// break an outer length, so that a reader never gets to look at what is inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace oncilla::fuzz {

// A mutation of `message` of at most `max_bytes`; the message itself when none fits. What bytes of
// strings become is left to libFuzzer.
std::string MutateMessage(std::string_view message, size_t max_bytes, unsigned seed);

// `into` with a field of `from` put somewhere.
std::string CrossMessages(std::string_view into, std::string_view from, size_t max_bytes,
                          unsigned seed);

}  // namespace oncilla::fuzz
