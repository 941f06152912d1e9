// Control flow and state: ops that the executor itself carries out, on functions of the Module and
// on the model's variables. No device has a kernel for them.
//
// The facts of their outputs are declared in an attribute, as text ("f32[?,3]"), since inference of
// one node cannot look into functions; the importer has imported those before it adds the node.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// selector[], arguments.. -> the results of one branch, which takes the arguments. A bool chooses
// branch 0 when true and 1 when false; an integer chooses by number, the last one when it is out of
// range.
struct IfAttrs {
  std::vector<std::string> branches;  // names of functions
  std::vector<std::string> outputs;
  void Fields(auto&& field) {
    field("branches", branches);
    field("outputs", outputs);
  }
};

// values.. -> values..: body takes the values and gives as many; it runs while cond, which takes
// the same and gives one bool[], says so.
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
