// A StableHLO module in memory: functions of ops, whose regions hold ops, with attributes and
// types in tables that ops refer to by index.
//
// Texts and the bytes of tensors are views into the file. Every index is checked when the module is
// read (bytecode.h), so the code that lowers it may follow them; entries of tables refer to each
// other by index, never deeper than the reader follows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tensor/tensor.h"

namespace oncilla {

struct HloType {
  // kElement: a number alone, which is the type of an attribute or of a tensor's elements.
  enum class Kind : uint8_t { kOther, kElement, kTensor, kToken };
  Kind kind = Kind::kOther;
  DType dtype = DType::kInvalid;  // kInvalid also for element types that the engine lacks
  std::vector<int64_t> sizes;     // kTensor; -1 where open

  PartialShape shape() const;
  bool fixed() const;
};

struct HloAttr {
  // kNumber: integers, booleans and enumerations; kPairs: names and values in turn.
  enum class Kind : uint8_t { kOther, kNumber, kReal, kText, kTensor, kList, kPairs, kType };
  Kind kind = Kind::kOther;
  int64_t number = 0;
  double real = 0;
  std::string_view text;   // kText; kTensor: the stored bytes
  int type = -1;           // kTensor, kType
  std::vector<int> items;  // kList, kPairs: indices of attributes
};

struct HloRegion;

struct HloOp {
  std::string_view name;  // without dialect and version: "dot_general"
  // Values are numbered within their function. Regions beside each other share numbers.
  std::vector<int> operands, results;
  std::vector<int> result_types;  // indices of types
  std::vector<std::pair<std::string_view, int>> attrs;
  std::vector<HloRegion> regions;
  bool isolated = false;  // the regions see no values from outside, and number theirs from zero
};

struct HloRegion {
  std::vector<int> arguments, argument_types;
  std::vector<HloOp> ops;  // the last one returns
};

struct HloModule {
  std::vector<HloAttr> attrs;
  std::vector<HloType> types;
  std::map<std::string_view, HloRegion> functions;
  std::shared_ptr<const void> owner;  // of the bytes

  // The attribute of an op, or null.
  const HloAttr* Find(const HloOp& op, std::string_view name) const;
  // Null when there is no such attribute; failures name the attribute.
  Result<int64_t> Int(const HloOp& op, std::string_view name) const;
  Result<std::string_view> Text(const HloOp& op, std::string_view name) const;
  // A list, or a tensor, of integers.
  Result<std::vector<int64_t>> Ints(const HloOp& op, std::string_view name) const;
  Result<std::vector<int64_t>> IntsOf(const HloAttr& attr, std::string_view name) const;
  // A value of an attribute that holds names and values; null when it is missing.
  const HloAttr* Entry(const HloAttr& pairs, std::string_view name) const;
  // The tensor of an attribute; with `splat` set one element stands for all.
  struct Elements {
    Tensor tensor;
    bool splat = false;
  };
  Result<Elements> ElementsOf(const HloAttr& attr) const;

  // For each result of a function, the argument that it is, unchanged; else -1. Empty when there is
  // no such function.
  std::vector<int> PassedThrough(std::string_view function) const;

 private:
  int ArgumentBehind(const HloRegion& region, int value, int depth, int64_t& budget) const;
};

}  // namespace oncilla
