// Special functions: inference and rows.
#include "engine/ops/math/special.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Result<Facts> InferSpecial(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input 0"));
  ONCILLA_TRY(RequireSameDType(in));
  PartialShape shape = in[0].shape;
  for (size_t i = 1; i < in.size(); ++i) {
    ONCILLA_ASSIGN(shape, BroadcastShapes(shape, in[i].shape));
  }
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

constexpr OpTraits Function(int inputs) {
  return {.inputs = {inputs, inputs}, .axes = Elementwise(), .work = Work::kPerOutput};
}

constexpr OpDef kSpecialOps[] = {
    Op<InferSpecial>("Lgamma", Function(1)),    Op<InferSpecial>("Digamma", Function(1)),
    Op<InferSpecial>("Erfinv", Function(1)),    Op<InferSpecial>("Ndtri", Function(1)),
    Op<InferSpecial>("BesselI0e", Function(1)), Op<InferSpecial>("BesselI1e", Function(1)),
    Op<InferSpecial>("Igamma", Function(2)),    Op<InferSpecial>("Igammac", Function(2)),
    Op<InferSpecial>("Zeta", Function(2)),      Op<InferSpecial>("Polygamma", Function(2)),
    Op<InferSpecial>("NextAfter", Function(2)), Op<InferSpecial>("Betainc", Function(3)),
};

}  // namespace

std::span<const OpDef> SpecialOps() { return kSpecialOps; }

}  // namespace oncilla
