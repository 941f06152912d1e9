// OpTraits: what is true of an op whatever its inputs are, as data of its row.
//
// Passes, planning, batch splitting, mixed precision and the bench read these instead of listing
// ops by name: an op that a family gains is known to all of them by its row alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oncilla {

inline constexpr int kVariadic = 1 << 20;

struct Arity {
  int min = 1;
  int max = 1;
};

// How an op treats the axes of its tensors; axes.h answers questions about a node with it.
enum class AxisRule : uint8_t {
  kNone,         // in a way of its own
  kElementwise,  // an element depends on those at its own place, after broadcasting
  kAxis,         // works along attribute `axis`
  kAxisToEnd,    // works along attribute `axis` and all axes behind it
  kArg,          // works along attribute `axis`, which goes away without keep_dims
  kAxisInput,    // works along the axis that an input holds
  kAxesInput,    // works along the axes that an input lists
  kReduce,       // along the axes that an input lists, all of them when absent; keep_dims
  kSlice,        // cuts axes listed in input 3, the leading ones when absent; steps in input 4
  kStrided,      // cuts the leading axes by begins, ends, strides and masks (StridedSlice)
  kPerAxis,      // repeats, by an input with one number for each axis
  kStretches,    // broadcasts to the shape that an input holds
  kPads,         // by an input with two numbers for each axis: all begins, then all ends
  kRegroups,     // the same elements in the same order, under another shape
  kPermutes,     // moves whole axes, as input 1 says
  kInserts,      // adds attribute `axis`, each element growing along it (OneHot)
  kLastTwo,      // works along the last two axes
  kSamples,      // axis 0 is the batch: each sample is computed by itself
  kGathers,      // takes entries of attribute `axis` by indices (Gather)
  kProduct,      // matrices in the last two axes, batches before them (MatMul)
};

struct Axes {
  AxisRule rule = AxisRule::kNone;
  // What attribute `axis` is when absent, or the input that names the axes.
  int8_t at = 0;
  // All inputs have the axes of the result (Concat), not input 0 alone.
  bool all_inputs = false;
  // Bit i: input i may hold a row for each sample.
  uint8_t rows = 1;
};

constexpr Axes Elementwise() { return {AxisRule::kElementwise, 0, true, 0xFF}; }
constexpr Axes AlongAxis(int8_t otherwise) { return {AxisRule::kAxis, otherwise}; }
constexpr Axes AlongAxisOfAll(int8_t otherwise) { return {AxisRule::kAxis, otherwise, true, 0xFF}; }
constexpr Axes AxesBy(AxisRule rule, int8_t at = 0) { return {rule, at}; }
constexpr Axes Samples(uint8_t rows = 1) { return {AxisRule::kSamples, 0, false, rows}; }

// What an op does to numbers, as far as storing its tensors in 16 bits goes (passes/precision.h).
enum class StorageRule : uint8_t {
  kUnknown,      // f32: it is not known to be safe in 16 bits
  kCarries,      // narrow if its data is: results are as large and as exact as what comes in
  kBounds,       // as kCarries, and numbers beyond what 16 bits hold come back into bounds
  kStarts,       // narrow also where only its weights are: most of the memory is theirs
  kGrows,        // f32: results may be far larger or smaller than what comes in
  kSums,         // f32: sums grow with the number of terms
  kSteps,        // f32: it jumps or compares, and a rounded number may fall elsewhere
  kState,        // f32: its state is fed back, and rounding would add up
  kCoordinates,  // f32: its numbers are coordinates, which 16 bits tell apart badly
  kConverts,     // f32: it makes floats of another type
};

// How many arithmetic operations a node takes, as the bench counts them.
enum class Work : uint8_t {
  kNone,           // moves or makes values
  kPerOutput,      // one for each element of the result
  kPerInput,       // one for each element of input 0
  kPerStep,        // one for each step of its program and element of the result
  kTaps,           // two for each weight of an output channel and element of the result (Conv)
  kTapsBackwards,  // two for each weight of an input channel and element of input 0
  kProduct,        // two for each term of each element (MatMul)
  kAttention,      // two for each term of each score and each result (Attention)
};

struct OpTraits {
  Arity inputs = {};
  // Bit i: the value of input i fixes a shape or geometry (Reshape's shape, Transpose's perm). Such
  // an operand is on the host and is known when a plan is made; devices never see it as a buffer.
  uint32_t plan_inputs = 0;
  // Output 0 may be written over input 0 (or over any input of the same desc) when that input dies
  // here: every element depends only on the elements at its own place.
  bool may_overwrite = false;
  // Output 0 may be written over input 0, and over no other: it is input 0 but for some elements,
  // which the other inputs give.
  bool may_overwrite_first = false;
  // Output 0 is input 0's bytes under another shape; it never needs a kernel when both share
  // memory.
  bool is_view = false;
  bool has_effects = false;     // never dropped, merged or folded; kept in order
  bool is_random = false;       // never merged or folded
  bool host_only = false;       // runs on host tensors (strings, lists)
  bool data_dependent = false;  // output sizes are known only after it ran
  Axes axes = {};
  StorageRule storage = StorageRule::kUnknown;
  Work work = Work::kNone;

  constexpr bool IsPlanInput(size_t i) const { return i < 32 && (plan_inputs >> i & 1) != 0; }
};

}  // namespace oncilla
