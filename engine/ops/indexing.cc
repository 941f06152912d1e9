// Ops with indices in a tensor: inference and rows. Shapes as values are in indexing_shape.cc.
#include "engine/ops/indexing.h"

#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

// The picked elements of a list of carried integers, when indices are known and right.
std::optional<std::vector<Dim>> Picked(const GatherAttrs& attrs, const Fact& x,
                                       const Fact& indices) {
  const auto elements = CarriedElements(x);
  if (!elements || !indices.shape.ranked() || indices.shape.rank() > 1 || !AllIntsKnown(indices)) {
    return std::nullopt;
  }
  const auto at = NeedInts(indices, "indices");
  if (!at.ok()) return std::nullopt;
  const auto size = static_cast<int64_t>(elements->size());
  std::vector<Dim> out;
  for (int64_t i : *at) {
    if (i < 0 && attrs.negative_indices) i += size;
    if (i < 0 || i >= size) return std::nullopt;
    out.push_back((*elements)[static_cast<size_t>(i)]);
  }
  return out;
}

Result<Facts> InferGather(const GatherAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "indices"));
  const PartialShape &x = in[0].shape, &indices = in[1].shape;
  if (!x.ranked() || !indices.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.rank()));
  const int64_t batch = attrs.batch_dims < 0 ? attrs.batch_dims + indices.rank() : attrs.batch_dims;
  if (batch < 0 || batch > axis || batch > indices.rank()) {
    return InvalidArgument("batch_dims ", attrs.batch_dims, " does not fit axis ", axis,
                           " and indices of rank ", indices.rank());
  }
  std::vector<Dim> dims;
  for (int i = 0; i < axis; ++i) dims.push_back(x[i]);
  for (int i = 0; i < batch; ++i) {
    if (x[i].known() && indices[i].known() && x[i].size != indices[i].size) {
      return InvalidArgument("x ", x, " and indices ", indices, " differ in batch axis ", i);
    }
    if (indices[i].known() || dims[i].name.empty()) dims[i] = x[i].known() ? x[i] : indices[i];
  }
  for (int i = static_cast<int>(batch); i < indices.rank(); ++i) dims.push_back(indices[i]);
  for (int i = axis + 1; i < x.rank(); ++i) dims.push_back(x[i]);
  if (dims.size() > kMaxRank) return Unsupported("rank ", dims.size(), " is above ", kMaxRank);
  Fact out = Fact::Of(in[0].dtype, PartialShape(std::move(dims)));
  if (x.rank() == 1 && batch == 0) out = WithCarried(std::move(out), Picked(attrs, in[0], in[1]));
  return Facts{std::move(out)};
}

constexpr OpDef kIndexingOps[] = {
    Op<InferGather>("Gather", {.inputs = {2, 2}}),
};

}  // namespace

std::span<const OpDef> IndexingOps() { return kIndexingOps; }

}  // namespace oncilla
