// An elementwise program made ready for vectors of float: what the kernel of elementwise.cc runs.
#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/fast/element_lanes.h"
#include "backends/cpu/integer/element_bytes.h"
#include "backends/cpu/kernel.h"
#include "engine/ops/broadcast.h"
#include "engine/ops/math/elementwise_program.h"

namespace oncilla::cpu {

// One call of a lane function; operands and result are indices of values.
struct Instruction {
  LaneFunction function;
  int operands[3] = {0, 0, 0};
  int result = 0;
  float alpha = 0, beta = 0;
};

// How an input becomes a run of floats.
struct Stream {
  enum class Layout { kDense, kScalar, kRow, kStrided };
  Layout layout = Layout::kDense;
  DType dtype = DType::kF32;
  int64_t period = 0;              // of kRow
  bool repeated = false;           // a short kRow, laid out once per chunk
  std::optional<ByteScale> scale;  // of a dense stream of quantised numbers

  bool in_place() const {
    return dtype == DType::kF32 &&
           (layout == Layout::kDense || (layout == Layout::kRow && !repeated));
  }
  bool once_per_chunk() const { return layout == Layout::kScalar || repeated; }
};

// A program made ready: values are inputs, then constants, then tiles.
struct FastProgram {
  std::vector<Stream> streams;
  std::vector<float> constants;
  std::vector<Instruction> instructions;
  int tiles = 0;
  int result = 0;                         // an index of a value
  std::optional<ByteScale> result_scale;  // the last step quantises it
  // Inputs of one element that give the result's scale and zero point; -1 if these are constants.
  int scale_input = -1, zero_input = -1;
  double cost = 1;

  // Set if the program only adds two inputs of bytes; `terms` are these inputs.
  std::optional<ByteSum> byte_sum;
  size_t terms[2] = {0, 0};
};

// Nothing if the program cannot run on vectors of float.
std::optional<FastProgram> TranslateElementwise(const ElementwiseProgram& program,
                                                const NodeView& node, const BroadcastAxes& axes);

}  // namespace oncilla::cpu
