// A chain or tree of elementwise ops in one node: the FusedElementwise op.
//
// Its attribute `program` is a list of steps, one text each, in the order of evaluation:
//   FusedElementwise(a, b) {program=[Mul 0 1, LeakyRelu alpha=0.2 t0, Add t1 #0.5]}
// "0" is input 0, "t0" the result of step 0, "#0.5" a number of the other operands' dtype, "-" an
// absent operand. The last step's result is the output; every input and every other step is used.
// Each step computes the same as its op alone, and has that op's dtype; so fusing never changes a
// value in plain code. Fast code, on every device, may keep 16-bit results in fp32 between steps;
// the result of a Cast is rounded.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/ops/math/elementwise.h"

namespace oncilla {

inline constexpr int kMaxProgramInputs = 16;
inline constexpr int kMaxProgramSteps = 64;

struct FusedElementwiseAttrs {
  std::vector<std::string> program;
  void Fields(auto&& field) { field("program", program); }
};

struct ElementwiseOperand {
  enum class Kind : uint8_t { kAbsent, kInput, kStep, kNumber };
  Kind kind = Kind::kAbsent;
  int index = 0;      // of the input or step
  double number = 0;  // of kNumber
};

struct ElementwiseStep {
  ElementwiseCall call;
  std::vector<ElementwiseOperand> operands;
  DType compute = DType::kInvalid;  // the dtype of the expression (for Where not x's)
  DType dtype = DType::kInvalid;    // of the result
};
// "LeakyRelu alpha=0.2 t0", which ParseProgram accepts; numbers have as many digits as needed.
std::string ToString(const ElementwiseStep& step);

struct ElementwiseProgram {
  std::vector<ElementwiseStep> steps;
};

// Checks names, attributes, operands and dtypes, and that nothing is unused.
Result<ElementwiseProgram> ParseProgram(std::span<const std::string> program,
                                        std::span<const DType> inputs);
// A program of one op. kInvalid is used for an absent input.
Result<ElementwiseProgram> SingleStep(const ElementwiseCall& call, std::span<const DType> inputs);

// The program of a node that is a FusedElementwise or an op of the table.
Result<ElementwiseProgram> ProgramOf(const NodeView& node);

}  // namespace oncilla
