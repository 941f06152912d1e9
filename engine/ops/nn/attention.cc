// Attention: inference, geometry, the row.
#include "engine/ops/nn/attention.h"

#include <cmath>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int64_t kMostHeads = int64_t{1} << 20;
constexpr const char* kNames[] = {"q", "k", "v", "mask", "lengths", "starts", "sink"};
using In = AttentionInput;

bool Has(std::span<const Fact> in, size_t i) { return i < in.size() && !in[i].absent(); }

// The sizes of one operand (q, k or v), as far as they are known.
struct Operand {
  Dim batch, heads, rows, size;
};

// A size that may also be given by an attribute; both must agree.
Result<Dim> Given(int64_t attribute, const Dim& dim, std::string_view what) {
  if (attribute == 0) return dim;
  if (attribute < 0 || (dim.known() && dim.size != attribute)) {
    return InvalidArgument(what, " is ", attribute, " by attribute and ", dim, " by shape");
  }
  return Dim(attribute);
}

Result<Operand> OperandOf(const AttentionAttrs& attrs, std::span<const Fact> in, size_t i) {
  const PartialShape& shape = in[i].shape;
  const int64_t heads = i == In::kQuery       ? attrs.heads
                        : attrs.kv_heads != 0 ? attrs.kv_heads
                                              : attrs.heads;
  const int64_t size = i == In::kValue ? attrs.value_size : attrs.size;
  const int64_t column = attrs.columns.empty() ? 0 : attrs.columns[i];
  Operand out;
  if (heads > 0) out.heads = Dim(heads);
  if (size > 0) out.size = Dim(size);
  if (!shape.ranked()) {
    // Of rank 4, keys and values have as many heads as their shape says.
    if (i != In::kQuery && attrs.kv_heads == 0) out.heads = Dim();
    return out;
  }
  if (shape.rank() != 3 && shape.rank() != 4) {
    return InvalidArgument(kNames[i], " must have rank 3 or 4, not shape ", shape);
  }
  out.batch = shape[0];
  if (shape.rank() == 4) {
    if (column != 0) return InvalidArgument(kNames[i], " of rank 4 begins at column ", column);
    out.rows = shape[2];
    const int64_t own = i != In::kQuery && attrs.kv_heads == 0 ? 0 : heads;
    ONCILLA_ASSIGN(out.heads, Given(own, shape[1], "the number of heads"));
    ONCILLA_ASSIGN(out.size, Given(size, shape[3], "the size of a head"));
    return out;
  }
  out.rows = shape[1];
  if (heads < 1) return InvalidArgument("the number of heads of ", kNames[i], " is missing");
  const Dim& width = shape[2];
  if (!width.known()) return out;
  if (size == 0 && (column != 0 || width.size % heads != 0)) {
    return InvalidArgument(kNames[i], " has ", width.size, " columns from ", column, " on for ",
                           heads, " heads");
  }
  if (size == 0) out.size = Dim(width.size / heads);
  if (column > width.size || SaturatingMul(heads, out.size.size) > width.size - column) {
    return InvalidArgument(kNames[i], " has ", width.size, " columns, and ", heads, " heads of ",
                           out.size, " begin at ", column);
  }
  return out;
}

// Merges two sizes that must be equal.
Result<Dim> Common(const Dim& a, const Dim& b, std::string_view what) {
  if (!a.known()) return b;
  if (b.known() && a.size != b.size) return InvalidArgument(what, " differ: ", a, " and ", b);
  return a;
}

Status CheckAttributes(const AttentionAttrs& attrs) {
  if (attrs.heads < 0 || attrs.heads > kMostHeads || attrs.kv_heads < 0 ||
      attrs.kv_heads > kMostHeads || attrs.size < 0 || attrs.value_size < 0) {
    return InvalidArgument(attrs.heads, " and ", attrs.kv_heads, " heads of sizes ", attrs.size,
                           " and ", attrs.value_size);
  }
  if (!attrs.columns.empty() &&
      (attrs.columns.size() != 3 ||
       *std::min_element(attrs.columns.begin(), attrs.columns.end()) < 0)) {
    return InvalidArgument("attribute 'columns' must be three places");
  }
  if (!std::isfinite(attrs.scale)) return InvalidArgument("attribute 'scale' is ", attrs.scale);
  if (!(attrs.softcap >= 0) || !std::isfinite(attrs.softcap)) {
    return InvalidArgument("attribute 'softcap' is ", attrs.softcap);
  }
  if (attrs.left < -1 || attrs.right < -1) {
    return InvalidArgument("a window of ", attrs.left, " and ", attrs.right, " keys");
  }
  return Status();
}

// Checks an input with one integer per sample: lengths or starts.
Status CheckPerSample(std::span<const Fact> in, size_t i, const Dim& batch) {
  if (!Has(in, i)) return Status();
  if (in[i].dtype != DType::kI64) {
    return InvalidArgument(kNames[i], " must be i64, not ", in[i].dtype);
  }
  ONCILLA_TRY(RequireRank(in[i], 1, kNames[i]));
  if (!in[i].shape.ranked()) return Status();
  return Common(batch, in[i].shape[0], "samples and their numbers").status();
}

Result<Facts> InferAttention(const AttentionAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckAttributes(attrs));
  for (size_t i : {size_t{0}, size_t{1}, size_t{2}, size_t{In::kMask}, size_t{In::kSink}}) {
    if (!Has(in, i)) continue;
    ONCILLA_TRY(RequireFloat(in[i], kNames[i]));
    if (in[i].dtype != in[0].dtype) {
      return InvalidArgument(kNames[i], " is ", in[i].dtype, ", q is ", in[0].dtype);
    }
  }
  ONCILLA_ASSIGN(const Operand q, OperandOf(attrs, in, In::kQuery));
  ONCILLA_ASSIGN(const Operand k, OperandOf(attrs, in, In::kKey));
  ONCILLA_ASSIGN(const Operand v, OperandOf(attrs, in, In::kValue));
  ONCILLA_ASSIGN(Dim batch, Common(q.batch, k.batch, "the samples of q and k"));
  ONCILLA_ASSIGN(batch, Common(batch, v.batch, "the samples of q and v"));
  ONCILLA_ASSIGN(const Dim keys, Common(k.rows, v.rows, "the rows of k and v"));
  ONCILLA_ASSIGN(const Dim shared, Common(k.heads, v.heads, "the heads of k and v"));
  ONCILLA_TRY(Common(q.size, k.size, "the sizes of heads of q and k").status());
  if (q.heads.known() && shared.known() &&
      (q.heads.size > kMostHeads || (shared.size == 0 && q.heads.size != 0) ||
       (shared.size != 0 && q.heads.size % shared.size != 0))) {
    return InvalidArgument(q.heads, " heads of queries cannot share ", shared);
  }
  if (Has(in, In::kMask)) {
    ONCILLA_TRY(RequireRank(in[In::kMask], 4, "mask"));
    const PartialShape scores({batch, q.heads, q.rows, keys}), &mask = in[In::kMask].shape;
    for (int a = 0; mask.ranked() && a < 4; ++a) {
      if (mask[a].known() && mask[a].size != 1 && scores[a].known() &&
          mask[a].size != scores[a].size) {
        return InvalidArgument("mask of shape ", mask, " does not fit scores of shape ", scores);
      }
    }
  }
  ONCILLA_TRY(CheckPerSample(in, In::kLengths, batch));
  ONCILLA_TRY(CheckPerSample(in, In::kStarts, batch));
  if (Has(in, In::kStarts) && attrs.from_end) {
    return InvalidArgument("starts do not go together with from_end");
  }
  if (Has(in, In::kSink)) {
    ONCILLA_TRY(RequireRank(in[In::kSink], 1, "sink"));
    if (in[In::kSink].shape.ranked()) {
      ONCILLA_TRY(Common(q.heads, in[In::kSink].shape[0], "heads and their sinks").status());
    }
  }
  PartialShape y({batch, q.heads, q.rows, v.size});
  if (attrs.joined) {
    Dim width;
    if (q.heads.known() && v.size.known()) width = Dim(SaturatingMul(q.heads.size, v.size.size));
    y = PartialShape({batch, q.rows, width});
  }
  return Facts{Fact::Of(in[0].dtype, std::move(y))};
}

constexpr OpDef kAttentionOps[] = {
    Op<InferAttention>("Attention", {.inputs = {3, 7},
                                     .axes = Samples(0b111111),
                                     .storage = StorageRule::kBounds,
                                     .work = Work::kAttention}),
};

}  // namespace

AttentionGeometry GeometryOf(const AttentionAttrs& attrs, std::span<const Fact> in) {
  const auto shape = [&](size_t i) { return in[i].desc().shape; };
  const Shape q = shape(In::kQuery), k = shape(In::kKey), v = shape(In::kValue);
  AttentionGeometry g;
  g.batch = q[0];
  g.heads = q.rank() == 4 ? q[1] : attrs.heads;
  const int64_t by_attribute = attrs.kv_heads != 0 ? attrs.kv_heads : attrs.heads;
  g.kv_heads = k.rank() == 4 ? k[1] : v.rank() == 4 ? v[1] : by_attribute;
  g.rows = q[q.rank() - 2];
  g.keys = k[k.rank() - 2];
  const auto part = [](const Shape& s, int64_t heads, int64_t given) {
    return s.rank() == 4 ? s[3] : given != 0 ? given : s[2] / heads;
  };
  g.size = part(q, g.heads, attrs.size);
  g.value_size = part(v, g.kv_heads, attrs.value_size);
  const auto steps = [&](const Shape& s, size_t i, int64_t size) {
    if (s.rank() == 4) {
      return AttentionGeometry::Steps{0, s[1] * s[2] * s[3], s[2] * s[3], s[3]};
    }
    return AttentionGeometry::Steps{attrs.columns.empty() ? 0 : attrs.columns[i], s[1] * s[2], size,
                                    s[2]};
  };
  g.q = steps(q, In::kQuery, g.size);
  g.k = steps(k, In::kKey, g.size);
  g.v = steps(v, In::kValue, g.value_size);
  const int64_t width = g.heads * g.value_size;
  g.y = attrs.joined
            ? AttentionGeometry::Steps{0, g.rows * width, g.value_size, width}
            : AttentionGeometry::Steps{0, g.rows * width, g.rows * g.value_size, g.value_size};
  if (Has(in, In::kMask)) {
    const Shape mask = shape(In::kMask);
    int64_t step = 1;
    for (int a = 3; a >= 0; --a) {
      g.mask[a] = mask[a] == 1 ? 0 : step;
      step *= mask[a];
    }
  }
  g.scale = attrs.scale != 0 ? attrs.scale
                             : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(g.size, 1)));
  g.left = attrs.left;
  g.right = attrs.right;
  g.from_end = attrs.from_end;
  return g;
}

std::span<const OpDef> AttentionOps() { return kAttentionOps; }

}  // namespace oncilla
