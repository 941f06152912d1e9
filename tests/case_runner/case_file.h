// Case files: the tests of ops as text, one block per case, for every device.
//
//   # softmax over the last axis
//   Softmax axis=1
//   in f32[2,3] 1 2 3 1 2 3
//   out f32[2,3] 0.09003057 0.24472848 0.66524094 0.09003057 0.24472848 0.66524094
//
// A block ends at an empty line. Lines after the op:
//   in TYPE[SHAPE] DATA    an input;  "in -" is one that is not given
//   const TYPE[SHAPE] DATA an input whose value is known beforehand (a weight), so it is packed
//   out TYPE[SHAPE] DATA   an expected output
//   out cpu                outputs are compared with the CPU's plain code
//   tol 1e-4               instead of 1e-5 (see Agree)
//   error TEXT             must be refused with a message that contains TEXT
// DATA: numbers (inf, nan, true, false too), "strings", or one of
//   rand seed=7 [lo=-1] [hi=1]   the same numbers on every machine, uniform in [lo, hi)
//   iota [from=0]   fill V
// Inputs that the op declares as plan inputs need no "const".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/ops/op_set.h"

namespace oncilla::testing {

struct CaseInput {
  bool absent = false;
  bool constant = false;
  Tensor value;
};

struct Case {
  std::string file;
  int line = 0;
  std::string op;
  AttrMap attrs;
  std::vector<CaseInput> inputs;
  std::vector<Tensor> outputs;
  bool same_as_cpu = false;
  double tolerance = 1e-5;
  std::optional<std::string> error;
  // Made by mutate.h: it may be refused. If the CPU's plain code gives a result, the device gives
  // the same, and if it fails, so does the device, unless the device's memory does not suffice.
  bool mutant = false;
  bool may_be_rough = false;  // a mutant whose sums may be far larger than its results

  std::string Where() const { return StrCat(file, ":", line, " ", op, ToString(attrs)); }
};

// The cases of one file; a mistake in it names file and line.
Result<std::vector<Case>> ReadCases(const std::string& path, const OpSet& ops);

// The op and inputs of a case as its file would have them, large inputs cut.
std::string ToText(const Case& c);

// Equal dtype, shape and NaN positions, and |a - b| <= tol * (|b| + 0.1 * max|b|) for each element;
// integers, booleans and strings equal. The failure shows the worst element.
Status Agree(const Tensor& actual, const Tensor& expected, double tolerance);

}  // namespace oncilla::testing
