// What flattening needs to know about TensorFlow's ops: which ones pass a value on, hold state,
// change it, or call functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oncilla {

// Ops whose value is a variable, or a handle of one; and the same for tables.
bool IsTfVariable(std::string_view op);
bool IsTfTable(std::string_view op);
// TensorFlow 1's stacks, which loops push to and pop from; each run creates its own.
bool IsTfStack(std::string_view op);
// Ops whose output equals their input.
bool IsTfPassThrough(std::string_view op);
// Ops that change a variable, a table or another resource.
bool IsTfWrite(std::string_view op);
// Ops that are run for their effects, even if their outputs are not read: they change something,
// may fail the run, or write a message.
bool IsTfEffect(std::string_view op);

// Ops that return different values each time they run: within a loop or branch, such an op runs in
// each iteration, even if it reads nothing of the loop.
bool IsTfRandom(std::string_view op);

// The functions of an op of functional control flow, and how its inputs map to their arguments.
struct TfControlForm {
  std::vector<std::string_view> attrs;  // that name the functions; empty for other ops
  std::vector<std::string> names;       // names for the functions, within the names of their nodes
  int shift = 0;                        // input i is argument i - shift of each
};
TfControlForm TfControlFormOf(std::string_view op);

// The functions of numbers that an op applies to elements, such as how XlaReduce folds two of them:
// attributes that name them. They take none of the op's inputs. Empty for other ops.
std::vector<std::string_view> TfElementFunctionsOf(std::string_view op);

// TensorFlow's number for the type of a handle.
inline constexpr int64_t kTfResourceType = 20;

}  // namespace oncilla
