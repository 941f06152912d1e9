// Normalisation ops: inference and rows.
#include "engine/ops/norm.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Result<Facts> InferSoftmax(const SoftmaxAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  if (in[0].shape.ranked()) ONCILLA_TRY(NormalizeAxis(attrs.axis, in[0].shape.rank()).status());
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

constexpr OpDef kNormOps[] = {
    Op<InferSoftmax>("Softmax", {}),
};

}  // namespace

std::span<const OpDef> NormOps() { return kNormOps; }

}  // namespace oncilla
