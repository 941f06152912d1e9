// Functions with which the lowering rows of all formats add nodes.
#include "engine/import/lowering/lowering.h"

#include <algorithm>

#include "engine/ops/array/indexing.h"
#include "engine/ops/math/elementwise.h"
#include "engine/tensor/scalar.h"

namespace oncilla {

std::string Lowering::NameOf(std::string_view role) const {
  return role.empty() ? name_ : StrCat(name_, "/", role);
}

Result<Values> Lowering::AddAll(std::string_view op, AttrMap attrs, Values inputs,
                                std::string_view role) {
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  auto outputs = graph_.AddNode(NameOf(role), op, attrs, inputs, {name_});
  if (outputs.ok() || outputs.status().code() != Code::kUnimplemented) return outputs;
  // Refusals are grouped by op and reason. The message of AddNode also names the node, which would
  // separate the groups, so the reason is asked from the op's inference alone.
  const OpDef* def = graph_.ops().Find(op);
  if (def == nullptr) return Unsupported(op, ": there is no such op");
  return Unsupported(op, ": ", Message(def->infer(attrs, graph_.FactsOf(inputs)).status()));
}

Result<ValueId> Lowering::Add(std::string_view op, AttrMap attrs, Values inputs,
                              std::string_view role) {
  ONCILLA_ASSIGN(const Values outputs, AddAll(op, std::move(attrs), std::move(inputs), role));
  return outputs[0];
}

ValueId Lowering::Ints(std::vector<int64_t> values) {
  return graph_.AddConstant(Tensor::Int64s(values));
}

Result<ValueId> Lowering::Scalar(DType dtype, double value) {
  ONCILLA_ASSIGN(Tensor tensor, ScalarOf(dtype, value));
  return graph_.AddConstant(std::move(tensor));
}

Result<ValueId> Lowering::Cast(ValueId x, DType to, std::string_view role) {
  if (fact(x).dtype == to) return x;
  return Add(CastAttrs{to}, {x}, role);
}

Result<ValueId> Lowering::Transpose(ValueId x, std::vector<int64_t> perm, std::string_view role) {
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  return Add("Transpose", {}, {x, Ints(std::move(perm))}, role);
}

Result<ValueId> Lowering::Unsqueeze(ValueId x, std::vector<int64_t> axes, std::string_view role) {
  if (axes.empty()) return x;
  return Add("Unsqueeze", {}, {x, Ints(std::move(axes))}, role);
}

Result<ValueId> Lowering::ChannelsLast(ValueId x, int rank, std::string_view role) {
  std::vector<int64_t> perm = {0};
  for (int i = 2; i < rank; ++i) perm.push_back(i);
  if (rank > 1) perm.push_back(1);
  return Transpose(x, std::move(perm), role);
}

Result<ValueId> Lowering::ChannelsFirst(ValueId x, int rank, std::string_view role) {
  std::vector<int64_t> perm = {0};
  if (rank > 1) perm.push_back(rank - 1);
  for (int i = 1; i < rank - 1; ++i) perm.push_back(i);
  return Transpose(x, std::move(perm), role);
}

Result<ValueId> Lowering::Sizes(ValueId x, int start, int end, std::string_view role) {
  const PartialShape& shape = fact(x).shape;
  if (shape.ranked()) {
    std::vector<int64_t> sizes;
    for (int i = start; i < end && i < shape.rank() && shape[i].known(); ++i) {
      sizes.push_back(shape[i].size);
    }
    if (static_cast<int>(sizes.size()) == end - start) return Ints(std::move(sizes));
  }
  return Add(ShapeAttrs{.start = start, .end = end}, {x}, role);
}

Result<std::vector<int64_t>> Lowering::KnownInts(size_t input, std::string_view what) const {
  if (!has(input)) return DataLoss(what, " is missing");
  if (!AllIntsKnown(in_fact(input))) {
    return Unsupported(what, " is computed while running; it must be a constant");
  }
  return NeedInts(in_fact(input), what);
}

Result<int64_t> Lowering::KnownInt(size_t input, std::string_view what) const {
  ONCILLA_ASSIGN(const std::vector<int64_t> values, KnownInts(input, what));
  if (values.size() != 1) return InvalidArgument(what, " must be one number");
  return values[0];
}

Result<int> Lowering::Rank(size_t input, std::string_view what) const {
  if (!has(input)) return DataLoss(what, " is missing");
  if (in_fact(input).shape.ranked()) return in_fact(input).shape.rank();
  const int stated = StatedRank(input);
  if (stated < 0 || stated > kMaxRank) return Unsupported("the rank of ", what, " is not known");
  return stated;
}

}  // namespace oncilla
