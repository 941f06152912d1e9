// tensorflow.TensorProto: one tensor as a message, read as views into its bytes, and written.
//
// Fields after TensorFlow's tensor.proto and tensor_shape.proto. The elements stand as one block of
// bytes, or as values of the list of their type, of which the last one repeats up to the end.
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
  std::vector<int64_t> sizes;  // -1: not known
  bool unknown_rank = false;
  std::string_view content;  // the elements' bytes; empty: they stand in a list
};

// Lists of values by their field numbers.
enum class TensorValues : uint32_t {
  kFloats = 5,
  kDoubles = 6,
  kInts = 7,  // of 32 bits and fewer, but u32
  kStrings = 8,
  kInt64s = 10,
  kBools = 11,
  kHalves = 13,  // the bits of floats of 16
  kUint32s = 16,
  kUint64s = 17,
};

// InvalidArgument when the bytes are no TensorProto.
Result<TensorHeader> ReadTensorHeader(std::string_view bytes);
// The first `most` values of a list as they stand in memory: the low bits of each number.
Result<HostVector<uint64_t>> ReadTensorBits(std::string_view bytes, TensorValues list,
                                            int64_t most);
Result<std::vector<std::string_view>> ReadTensorStrings(std::string_view bytes, int64_t most);

// The message as TensorFlow writes it, to the byte: numbers as one block, strings (with `content`
// empty) as a list.
std::string WriteTensorMessage(int64_t type, std::span<const int64_t> sizes,
                               std::string_view content, std::span<const std::string> strings);

}  // namespace oncilla
