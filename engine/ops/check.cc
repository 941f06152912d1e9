// Assertions, checks and printed messages: inference and rows.
#include "engine/ops/check.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Result<Facts> InferAssert(const AssertAttrs&, std::span<const Fact> in) {
  if (in[0].dtype != DType::kBool) {
    return InvalidArgument("the condition must be bool, not ", in[0].dtype);
  }
  const Dim count = in[0].shape.elements();
  if (count.known() && count.size != 1) {
    return InvalidArgument("the condition must be one bool, not shape ", in[0].shape);
  }
  return Facts{};
}

Result<Facts> InferCheckNumerics(const CheckNumericsAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "x"));
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

Result<Facts> InferPrint(const PrintAttrs&, std::span<const Fact>) { return Facts{}; }

constexpr OpDef kCheckOps[] = {
    Op<InferAssert>("Assert", {.inputs = {1, kVariadic}, .has_effects = true, .host_only = true}),
    Op<InferCheckNumerics>("CheckNumerics",
                           {.inputs = {1, 1}, .may_overwrite = true, .has_effects = true}),
    Op<InferPrint>("Print", {.inputs = {0, kVariadic}, .has_effects = true, .host_only = true}),
};

}  // namespace

std::span<const OpDef> CheckOps() { return kCheckOps; }

}  // namespace oncilla
