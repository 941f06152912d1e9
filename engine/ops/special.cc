// Special functions: inference and rows.
#include "engine/ops/special.h"

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

constexpr OpTraits kBinary = {.inputs = {2, 2}};

constexpr OpDef kSpecialOps[] = {
    Op<InferSpecial>("Lgamma", {}),         Op<InferSpecial>("Digamma", {}),
    Op<InferSpecial>("Erfinv", {}),         Op<InferSpecial>("Ndtri", {}),
    Op<InferSpecial>("BesselI0e", {}),      Op<InferSpecial>("BesselI1e", {}),
    Op<InferSpecial>("Igamma", kBinary),    Op<InferSpecial>("Igammac", kBinary),
    Op<InferSpecial>("Zeta", kBinary),      Op<InferSpecial>("Polygamma", kBinary),
    Op<InferSpecial>("NextAfter", kBinary), Op<InferSpecial>("Betainc", {.inputs = {3, 3}}),
};

}  // namespace

std::span<const OpDef> SpecialOps() { return kSpecialOps; }

}  // namespace oncilla
