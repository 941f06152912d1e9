// OpTraits: properties of an op that do not depend on its inputs, as data of its row.
//
// Passes, planning, batch splitting, mixed precision and the bench read these instead of listing
// ops by name: they support a new op by its row alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oncilla {

inline constexpr int kVariadic = 1 << 20;

struct Arity {
  int min = 1;
  int max = 1;
};

// How an op treats the axes of its tensors; axes.h uses it to answer questions about a node.
enum class AxisRule : uint8_t {
  kNone,         // in none of the ways below
  kElementwise,  // an element depends on those at the same index, after broadcasting
  kAxis,         // works along attribute `axis`
  kAxisToEnd,    // works along attribute `axis` and all later axes
  kArg,          // works along attribute `axis`, which is removed unless keep_dims
  kAxisInput,    // works along the axis that an input holds
  kAxesInput,    // works along the axes that an input lists
  kReduce,       // along the axes that an input lists, all of them when absent; keep_dims
  kSlice,        // slices axes listed in input 3, the leading ones when absent; steps in input 4
  kStrided,      // slices the leading axes by begins, ends, strides and masks (StridedSlice)
  kPerAxis,      // repeats, by an input with one number for each axis
  kStretches,    // broadcasts to the shape that an input holds
  kPads,         // by an input with two numbers for each axis: all begins, then all ends
  kRegroups,     // the same elements in the same order, in another shape
  kPermutes,     // permutes whole axes by input 1
  kInserts,      // inserts attribute `axis`, along which each element is expanded (OneHot)
  kLastTwo,      // works along the last two axes
  kSamples,      // axis 0 is the batch: samples are computed independently
  kGathers,      // takes entries of attribute `axis` by indices (Gather)
  kProduct,      // matrices in the last two axes, batches before them (MatMul)
};

struct Axes {
  AxisRule rule = AxisRule::kNone;
  // The default of attribute `axis`, or the input that names the axes.
  int8_t at = 0;
  // All inputs have the axes of the result (Concat), not only input 0.
  bool all_inputs = false;
  // Bit i: input i may have a row for each sample.
  uint8_t rows = 1;
};

constexpr Axes Elementwise() { return {AxisRule::kElementwise, 0, true, 0xFF}; }
constexpr Axes AlongAxis(int8_t otherwise) { return {AxisRule::kAxis, otherwise}; }
constexpr Axes AlongAxisOfAll(int8_t otherwise) { return {AxisRule::kAxis, otherwise, true, 0xFF}; }
constexpr Axes AxesBy(AxisRule rule, int8_t at = 0) { return {rule, at}; }
constexpr Axes Samples(uint8_t rows = 1) { return {AxisRule::kSamples, 0, false, rows}; }

// How an op affects numbers, for the decision to store its tensors in 16 bits (passes/precision.h).
enum class StorageRule : uint8_t {
  kUnknown,  // f32: not known to be safe in 16 bits
  kCarries,  // narrow if its data is: results are as large and as exact as its inputs
  kBounds,   // as kCarries, and brings numbers beyond the range of 16 bits back into it
  kStarts,   // narrow also if only its weights are: most of the memory is theirs
  kGrows,    // f32: results may be far larger or smaller than inputs
  kSums,     // f32: sums grow with the number of terms
  kSteps,    // f32: discontinuous or comparing, so that a rounded number may give another result
  kState,    // f32: its state is fed back, and rounding errors would add up
  kCoordinates,  // f32: its numbers are coordinates, for which 16 bits are too coarse
  kConverts,     // f32: it converts to another floating-point type
};

// The number of arithmetic operations of a node, as the bench counts them.
enum class Work : uint8_t {
  kNone,           // moves or creates values
  kPerOutput,      // one per element of the result
  kPerInput,       // one per element of input 0
  kPerStep,        // one per step of its program and element of the result
  kTaps,           // two per weight of an output channel and element of the result (Conv)
  kTapsBackwards,  // two per weight of an input channel and element of input 0
  kProduct,        // two per term of each element (MatMul)
  kAttention,      // two per term of each score and each result (Attention)
};

struct OpTraits {
  Arity inputs = {};
  // Bit i: the value of input i fixes a shape or geometry (Reshape's shape, Transpose's perm). Such
  // an operand is on the host and is known when a plan is made; devices never see it as a buffer.
  uint32_t plan_inputs = 0;
  // Output 0 may overwrite input 0 (or any input of the same desc) if that input is not used later:
  // every element depends only on the elements at its own index.
  bool may_overwrite = false;
  // Output 0 may overwrite input 0, and no other: it equals input 0 except for some elements, which
  // the other inputs give.
  bool may_overwrite_first = false;
  // Output 0 is input 0's bytes in another shape; no kernel is needed if both share memory.
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
