// tensorflow.TensorProto: one tensor as a message, read as views into its bytes, or written.
//
// Fields follow TensorFlow's tensor.proto and tensor_shape.proto. The elements are one block of
// bytes, or values of the list for their type, of which the last one repeats up to the end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/work_limits.h"

namespace oncilla {

struct TensorHeader {
  int64_t type = 0;            // of TensorFlow's DataType enum
  std::vector<int64_t> sizes;  // -1: unknown
  bool unknown_rank = false;
  std::string_view content;  // the elements' bytes; empty: they are in a list
};

// Lists of values by their field numbers.
enum class TensorValues : uint32_t {
  kFloats = 5,
  kDoubles = 6,
  kInts = 7,  // of 32 bits and fewer, except u32
  kStrings = 8,
  kInt64s = 10,
  kBools = 11,
  kHalves = 13,  // the bits of 16-bit floats
  kUint32s = 16,
  kUint64s = 17,
};

// InvalidArgument when the bytes are not a TensorProto.
Result<TensorHeader> ReadTensorHeader(std::string_view bytes);
// The first `most` values of a list, each as its bit pattern in the low bits of a number.
Result<HostVector<uint64_t>> ReadTensorBits(std::string_view bytes, TensorValues list,
                                            int64_t most);
Result<std::vector<std::string_view>> ReadTensorStrings(std::string_view bytes, int64_t most);

// The message as TensorFlow writes it, byte for byte: numbers as one block, strings (with empty
// `content`) as a list.
std::string WriteTensorMessage(int64_t type, std::span<const int64_t> sizes,
                               std::string_view content, std::span<const std::string> strings);

}  // namespace oncilla
