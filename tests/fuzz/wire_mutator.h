// Mutations of protobuf messages for libFuzzer, without a schema: the bytes are parsed as a tree of
// fields; fields are removed, doubled, copied, exchanged or given extreme numbers, and the tree is
// serialized with correct lengths. Plain mutations of the bytes nearly always invalidate an outer
// length, so that a reader never gets to the contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace oncilla::fuzz {

// A mutation of `message` of at most `max_bytes`; the message itself when none fits. libFuzzer
// mutates the contents of strings.
std::string MutateMessage(std::string_view message, size_t max_bytes, unsigned seed);

// `into` with a field of `from` inserted somewhere.
std::string CrossMessages(std::string_view into, std::string_view from, size_t max_bytes,
                          unsigned seed);

}  // namespace oncilla::fuzz
