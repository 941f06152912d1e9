// Ops on lookup tables: inference and rows.
#include "engine/ops/data/table.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Status RequireKeys(const Fact& keys) {
  if (keys.dtype == DType::kString || IsInteger(keys.dtype)) return Status();
  return Unsupported("a table with keys of ", keys.dtype);
}

Status RequireSame(const Fact& a, const Fact& b, std::string_view what) {
  if (a.dtype == b.dtype) return Status();
  return InvalidArgument(what, " of the table are ", a.dtype, ", not ", b.dtype);
}

// Facts for keys [?] and values [?, ..].
Facts TableOf(const Fact& keys, const PartialShape& values, DType dtype) {
  PartialShape shape = values;
  if (shape.ranked() && shape.rank() > 0) shape[0] = Dim();
  return {Fact::Of(keys.dtype, PartialShape::OfRank(1)), Fact::Of(dtype, std::move(shape))};
}

Result<Facts> InferTableMake(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireKeys(in[0]));
  ONCILLA_TRY(RequireRank(in[0], 1, "keys"));
  return TableOf(in[0], in[1].shape, in[1].dtype);
}

Result<Facts> InferTableFind(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireKeys(in[0]));
  ONCILLA_TRY(RequireSame(in[0], in[2], "the keys"));
  ONCILLA_TRY(RequireSame(in[1], in[3], "the values"));
  if (!in[2].shape.ranked() || !in[1].shape.ranked()) {
    return Facts{Fact::Of(in[1].dtype, PartialShape())};
  }
  if (in[1].shape.rank() == 0) return InvalidArgument("the values have no axis for the keys");
  std::vector<Dim> dims = in[2].shape.dims();
  dims.insert(dims.end(), in[1].shape.dims().begin() + 1, in[1].shape.dims().end());
  if (dims.size() > kMaxRank) return InvalidArgument("a result of rank ", dims.size());
  return Facts{Fact::Of(in[1].dtype, PartialShape(std::move(dims)))};
}

Result<Facts> InferTableInsert(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireKeys(in[0]));
  ONCILLA_TRY(RequireSame(in[0], in[2], "the keys"));
  ONCILLA_TRY(RequireSame(in[1], in[3], "the values"));
  return TableOf(in[0], in[1].shape, in[1].dtype);
}

Result<Facts> InferTableRemove(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireKeys(in[0]));
  ONCILLA_TRY(RequireSame(in[0], in[2], "the keys"));
  return TableOf(in[0], in[1].shape, in[1].dtype);
}

constexpr OpTraits Host(int inputs) {
  OpTraits traits;
  traits.inputs = {inputs, inputs};
  traits.host_only = true;
  traits.data_dependent = true;
  return traits;
}

constexpr OpDef kTableOps[] = {
    Op<InferTableFind>("TableFind", Host(4)),
    Op<InferTableInsert>("TableInsert", Host(4)),
    Op<InferTableMake>("TableMake", Host(2)),
    Op<InferTableRemove>("TableRemove", Host(3)),
};

}  // namespace

std::span<const OpDef> TableOps() { return kTableOps; }

}  // namespace oncilla
