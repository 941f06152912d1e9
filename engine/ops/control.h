// Control flow and state: ops that the executor itself executes, on functions of the Module and on
// the model's variables. No device has a kernel for them.
//
// An attribute declares the facts of their outputs as text ("f32[?,3]"), since inference of one
// node cannot examine functions; the importer imports those before it adds the node.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// selector[], arguments.. -> the results of one branch, which takes the arguments. A bool selects
// branch 0 when true and 1 when false; an integer selects by index, the last branch when it is out
// of range.
struct IfAttrs {
  std::vector<std::string> branches;  // names of functions
  std::vector<std::string> outputs;
  void Fields(auto&& field) {
    field("branches", branches);
    field("outputs", outputs);
  }
};

// values.. -> values..: body maps the values to new ones; it is repeated while cond, which takes
// the values and returns one bool[], is true.
struct WhileAttrs {
  std::string cond;
  std::string body;
  std::vector<std::string> outputs;
  void Fields(auto&& field) {
    field("cond", cond);
    field("body", body);
    field("outputs", outputs);
  }
};

// -> the variable's value at this point of the run.
struct ReadVariableAttrs {
  std::string variable;
  std::string output;
  void Fields(auto&& field) {
    field("variable", variable);
    field("output", output);
  }
};

// x -> nothing; x becomes the variable's value.
struct AssignVariableAttrs {
  std::string variable;
  void Fields(auto&& field) { field("variable", variable); }
};

bool IsControl(std::string_view op);

// The functions that a node calls, in the order of its attributes; none for other ops.
std::vector<std::string> CalledFunctions(std::string_view op, const AttrMap& attrs);

}  // namespace oncilla
