// OpDef: the whole contract of one operation, as data.
//
// An op is a typed inference function plus one row in its family's table:
//   Result<Facts> InferSoftmax(const SoftmaxAttrs&, std::span<const Fact> in);
//   constexpr OpDef kNormOps[] = {Op<InferSoftmax>("Softmax", {})};
// Ops know nothing of graphs, devices or kernels. See README.md for how to add one.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "engine/ops/attrs.h"
#include "engine/ops/fact.h"
#include "engine/ops/op_traits.h"

namespace oncilla {

struct OpDef {
  std::string_view name;
  OpTraits traits;
  // Facts of the outputs from attributes and the facts of the inputs. Must accept partly known
  // facts, and refuse with InvalidArgument what is never valid. It need not compute values when all
  // inputs are known: planning runs the CPU kernel for that.
  Result<Facts> (*infer)(const AttrMap&, std::span<const Fact>);
  // Elementwise ops: their row in the table of expressions (see elementwise.h), else null.
  const struct ElementwiseRow* elementwise = nullptr;
};

namespace internal {
template <class>
struct FirstArg;
template <class R, class A, class... Rest>
struct FirstArg<R (*)(A, Rest...)> {
  using type = std::remove_cvref_t<A>;
};
// The attribute struct that is the first parameter of a typed function.
template <auto F>
using AttrsOf = typename FirstArg<decltype(F)>::type;

template <auto Infer>
Result<Facts> InferErased(const AttrMap& map, std::span<const Fact> in) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<AttrsOf<Infer>>(map));
  return Infer(attrs, in);
}
}  // namespace internal

template <auto Infer>
constexpr OpDef Op(std::string_view name, OpTraits traits) {
  return {name, traits, &internal::InferErased<Infer>};
}

// One node in isolation: all that inference, placement and kernels may use. Facts of plan inputs
// have values; when a kernel is prepared every fact is fixed().
struct NodeView {
  const OpDef* op = nullptr;
  const AttrMap* attrs = nullptr;
  std::span<const Fact> inputs;
  std::span<const Fact> outputs;
  std::string_view name;  // for messages

  bool has_input(size_t i) const { return i < inputs.size() && !inputs[i].absent(); }
};

}  // namespace oncilla
