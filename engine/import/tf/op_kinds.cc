// Kinds of TensorFlow ops, by name.
#include "engine/import/tf/op_kinds.h"

#include <algorithm>
#include <array>

namespace oncilla {
namespace {

template <size_t N>
bool OneOf(std::string_view op, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}
bool StartsWith(std::string_view op, std::string_view prefix) {
  return op.substr(0, prefix.size()) == prefix;
}

}  // namespace

bool IsTfVariable(std::string_view op) {
  static constexpr std::array<std::string_view, 3> kOps = {"VarHandleOp", "VariableV2", "Variable"};
  return OneOf(op, kOps);
}

bool IsTfTable(std::string_view op) {
  static constexpr std::array<std::string_view, 10> kOps = {"HashTable",
                                                            "HashTableV2",
                                                            "AnonymousHashTable",
                                                            "MutableHashTable",
                                                            "MutableHashTableV2",
                                                            "MutableHashTableOfTensors",
                                                            "MutableHashTableOfTensorsV2",
                                                            "MutableDenseHashTableV2",
                                                            "MutableDenseHashTable",
                                                            "AnonymousMutableHashTable"};
  return OneOf(op, kOps);
}

bool IsTfStack(std::string_view op) { return op == "StackV2" || op == "Stack"; }

bool IsTfPassThrough(std::string_view op) {
  static constexpr std::array<std::string_view, 7> kOps = {
      "Identity", "IdentityN",      "StopGradient",          "PreventGradient",
      "Snapshot", "ReadVariableOp", "PlaceholderWithDefault"};
  return OneOf(op, kOps);
}

bool IsTfWrite(std::string_view op) {
  static constexpr std::array<std::string_view, 17> kPrefixes = {
      "Assign",     "ResourceApply",     "ResourceSparseApply",  "ResourceScatter",
      "Apply",      "SparseApply",       "ResourceStridedSlice", "ResourceCountUpTo",
      "CountUpTo",  "LookupTableInsert", "ResourceAccumulator",  "LookupTableRemove",
      "Initialize", "LookupTableImport", "StridedSliceAssign",   "StackPush",
      "StackPop"};
  for (std::string_view prefix : kPrefixes) {
    if (StartsWith(op, prefix)) return true;
  }
  // ScatterNd computes a tensor; the other Scatter ops write to a reference variable.
  return StartsWith(op, "Scatter") && op != "ScatterNd" && op != "ScatterNdNonAliasingAdd";
}

bool IsTfEffect(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kOps = {"Assert", "CheckNumerics",
                                                           "CheckNumericsV2", "Print", "PrintV2"};
  return IsTfWrite(op) || OneOf(op, kOps);
}

bool IsTfRandom(std::string_view op) {
  return StartsWith(op, "Random") || op == "TruncatedNormal" || op == "Multinomial" ||
         op == "ParameterizedTruncatedNormal";
}

TfControlForm TfControlFormOf(std::string_view op) {
  if (op == "While" || op == "StatelessWhile" || op == "XlaWhile")
    return {{"cond", "body"}, {"cond", "body"}, 0};
  if (op == "If" || op == "StatelessIf" || op == "XlaIf") {
    return {{"then_branch", "else_branch"}, {"then", "else"}, 1};
  }
  if (op == "Case" || op == "StatelessCase") return {{"branches"}, {}, 1};
  if (op == "For") return {{"body"}, {"body"}, 2};  // argument 0 is the counter
  return {};
}

std::vector<std::string_view> TfElementFunctionsOf(std::string_view op) {
  if (op == "XlaReduce" || op == "XlaVariadicReduce" || op == "XlaVariadicReduceV2") {
    return {"reducer"};
  }
  if (op == "XlaReduceWindow") return {"computation"};
  if (op == "XlaScatter") return {"update_computation"};
  if (op == "XlaVariadicSort") return {"comparator"};
  return {};
}

}  // namespace oncilla
