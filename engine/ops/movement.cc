// Movement ops: inference and rows.
#include "engine/ops/movement.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

// The size that -1 stands for, when every other size of both shapes is settled: known, or the same
// named size on both sides.
Dim LeftOver(const PartialShape& from, const std::vector<Dim>& to, size_t hole) {
  std::vector<Dim> rest;
  int64_t divisor = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    if (i == hole) continue;
    if (to[i].known()) {
      divisor = SaturatingMul(divisor, to[i].size);
    } else {
      rest.push_back(to[i]);
    }
  }
  int64_t total = 1;
  for (const Dim& d : from.dims()) {
    if (d.known()) {
      total = SaturatingMul(total, d.size);
      continue;
    }
    // Cancel a named size that stands on both sides.
    bool cancelled = false;
    for (auto it = rest.begin(); it != rest.end(); ++it) {
      if (it->Same(d)) {
        rest.erase(it);
        cancelled = true;
        break;
      }
    }
    if (cancelled) continue;
    // Exactly one name left over and nothing else to divide it by: the hole is that size.
    if (rest.empty() && total == divisor && &d == &from.dims().back()) return d;
    return Dim();
  }
  if (!rest.empty() || divisor == 0 || total % divisor != 0) return Dim();
  return Dim(total / divisor);
}

Result<Facts> InferReshape(const ReshapeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[1], "shape"));
  const auto asked = KnownInts(in[1]);
  if (!asked.has_value()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  if (asked->size() > kMaxRank) {
    return Unsupported("rank ", asked->size(), " is above ", kMaxRank);
  }
  std::vector<Dim> dims = *asked;
  const bool exact = in[1].has_value();  // only then does a negative size mean what it says
  int hole = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    Dim& d = dims[i];
    if (exact && d.size < -1) return InvalidArgument("shape has the size ", d.size);
    if (exact && d.size == -1) {
      if (hole >= 0) return InvalidArgument("shape has more than one -1");
      hole = static_cast<int>(i);
    }
    if (d.size == 0 && attrs.zero_copies) {
      if (!in[0].shape.ranked()) {
        d = Dim();
      } else if (static_cast<int>(i) >= in[0].shape.rank()) {
        return InvalidArgument("shape has a 0 at ", i, " but the input is ", in[0].shape);
      } else {
        d = in[0].shape[static_cast<int>(i)];
      }
    }
  }
  if (hole >= 0) {
    dims[hole] = in[0].shape.ranked() ? LeftOver(in[0].shape, dims, hole) : Dim();
  }
  PartialShape shape(std::move(dims));
  if (in[0].shape.known() && (shape.known() || hole >= 0)) {
    if (!shape.known() || shape.ToShape().elements() != in[0].shape.ToShape().elements()) {
      return InvalidArgument("cannot reshape ", in[0].shape, " to ", ToString(AttrValue([&] {
                               std::vector<int64_t> text;
                               for (const Dim& d : *asked) text.push_back(d.size);
                               return text;
                             }())));
    }
  }
  Fact out = Fact::Of(in[0].dtype, shape);
  if (in[0].has_value() && shape.known()) {
    out.value = in[0].value.Reshaped(shape.ToShape());
  } else if (in[0].elements.has_value() && shape.ranked() && shape.rank() <= 1) {
    out.elements = in[0].elements;
  }
  return Facts{std::move(out)};
}

constexpr OpDef kMovementOps[] = {
    Op<InferReshape>("Reshape", {.inputs = {2, 2}, .plan_inputs = 0b10, .is_view = true}),
};

}  // namespace

std::span<const OpDef> MovementOps() { return kMovementOps; }

}  // namespace oncilla
