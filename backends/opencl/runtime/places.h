// Places: rewrites kernels to take each operand as a buffer and an offset, for drivers whose
// sub-buffers cannot be used (quirks.cc). A kernel is written for operands at the start of their
// buffers:
//
//   __kernel void scale(__global const float* x, __global float* y, const int n) {
//
// and is passed to such a driver as
//
//   __kernel void scale(__global const float* x, __global float* y, const int n,
//                       const ulong place_of_x, const ulong place_of_y) {
//     x = (__global void*)((__global char*)x + place_of_x);  and so on
//
// on one line, so that the lines of the driver's messages are those of the source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace oncilla::opencl {

// A kernel and its operands in memory, in the order of its arguments. Without operands nothing
// changes.
struct Places {
  std::string entry;
  std::vector<std::string> operands;
};

// `text` with that kernel changed, in each of its conditional definitions. Internal when it has
// none.
Result<std::string> WithPlaces(std::string_view text, const Places& places);

}  // namespace oncilla::opencl
