// Diagonals of matrices: geometry, inference and rows.
#include "engine/ops/math/diagonal.h"

#include <algorithm>

#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;  // so that sums of a few sizes cannot overflow

Status CheckAlign(const DiagonalAttrs& attrs) {
  for (const char* known : {"right_left", "left_right", "left_left", "right_right"}) {
    if (attrs.align == known) return Status();
  }
  return InvalidArgument("there is no alignment '", attrs.align, "'");
}

// {lower, upper} of the band; nothing while k is unknown.
Result<std::vector<int64_t>> ReadBand(const Fact& fact) {
  ONCILLA_TRY(RequireInteger(fact, "k"));
  const Dim count = fact.shape.elements();
  if (count.known() && count.size != 1 && count.size != 2) {
    return InvalidArgument("k must be one or two numbers, not shape ", fact.shape);
  }
  if (!AllIntsKnown(fact)) return std::vector<int64_t>();
  ONCILLA_ASSIGN(std::vector<int64_t> k, NeedInts(fact, "k"));
  for (int64_t v : k) {
    if (v > kMost || v < -kMost) return InvalidArgument("k is ", v);
  }
  if (k.size() == 2 && k[0] > k[1]) {
    return InvalidArgument("the lower diagonal ", k[0], " is above the upper one, ", k[1]);
  }
  return k;
}

Status CheckPadding(const Fact& padding, const Fact& x) {
  ONCILLA_TRY(RequireSameDType(std::vector<Fact>{padding, x}));
  const Dim count = padding.shape.elements();
  if (count.known() && count.size != 1) {
    return InvalidArgument("the padding has ", count.size, " elements");
  }
  return Status();
}

Result<Facts> InferDiagPart(const DiagonalAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckAlign(attrs));
  ONCILLA_TRY(CheckPadding(in[2], in[0]));
  ONCILLA_ASSIGN(const auto k, ReadBand(in[1]));
  const PartialShape& x = in[0].shape;
  if (x.ranked() && x.rank() < 2) return InvalidArgument("x must hold matrices, not ", x);
  if (!x.ranked() || k.empty()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  std::vector<Dim> dims(x.dims().begin(), x.dims().end() - 2);
  const int64_t count = k.back() - k.front() + 1;
  if (count > 1) dims.emplace_back(count);
  const Dim &rows = x[x.rank() - 2], &columns = x[x.rank() - 1];
  Dim longest;
  if (rows.known() && columns.known()) {
    ONCILLA_ASSIGN(const Band band, BandOf(attrs, k, rows.size, columns.size));
    longest = Dim(band.longest);
  }
  dims.push_back(longest);
  return Facts{Fact::Of(in[0].dtype, PartialShape(std::move(dims)))};
}

Result<Facts> InferDiag(const DiagonalAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckAlign(attrs));
  ONCILLA_TRY(CheckPadding(in[4], in[0]));
  ONCILLA_ASSIGN(const auto k, ReadBand(in[1]));
  const PartialShape& x = in[0].shape;
  for (size_t i : {2, 3}) ONCILLA_TRY(RequireInteger(in[i], "a size"));
  if (!x.ranked() || k.empty()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  const int64_t count = k.back() - k.front() + 1;
  const int held = count > 1 ? 2 : 1;
  if (x.rank() < held) return InvalidArgument("diagonals of the shape ", x);
  if (count > 1 && x[x.rank() - 2].known() && x[x.rank() - 2].size != count) {
    return InvalidArgument("diagonals ", x, " for a band of ", count);
  }
  std::vector<Dim> dims(x.dims().begin(), x.dims().end() - held);
  if (dims.size() + 2 > kMaxRank) return Unsupported("rank ", dims.size() + 2);
  const Dim& longest = x[x.rank() - 1];
  Dim rows, columns;
  if (longest.known() && AllIntsKnown(in[2]) && AllIntsKnown(in[3])) {
    ONCILLA_ASSIGN(const auto asked_rows, NeedInts(in[2], "rows"));
    ONCILLA_ASSIGN(const auto asked_columns, NeedInts(in[3], "columns"));
    if (asked_rows.size() != 1 || asked_columns.size() != 1) {
      return InvalidArgument("rows and columns must be one number each");
    }
    ONCILLA_ASSIGN(const auto sizes, DiagSizes(k, longest.size, asked_rows[0], asked_columns[0]));
    rows = Dim(sizes.first);
    columns = Dim(sizes.second);
  }
  dims.insert(dims.end(), {rows, columns});
  return Facts{Fact::Of(in[0].dtype, PartialShape(std::move(dims)))};
}

Result<Facts> InferSetDiag(const DiagonalAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckAlign(attrs));
  ONCILLA_TRY(RequireSameDType(in.first(2)));
  ONCILLA_ASSIGN(const auto k, ReadBand(in[2]));
  const PartialShape &x = in[0].shape, &diagonals = in[1].shape;
  if (x.ranked() && x.rank() < 2) return InvalidArgument("x must hold matrices, not ", x);
  if (x.known() && diagonals.known() && !k.empty()) {
    ONCILLA_ASSIGN(const Band band, BandOf(attrs, k, x[x.rank() - 2].size, x[x.rank() - 1].size));
    Shape expected = x.ToShape();
    expected.Erase(expected.rank() - 1);
    expected.Erase(expected.rank() - 1);
    if (band.count() > 1) expected.push_back(band.count());
    expected.push_back(band.longest);
    if (diagonals.ToShape() != expected) {
      return InvalidArgument("diagonals ", diagonals, " for x ", x, ", which takes ", expected);
    }
  }
  return Facts{Fact::Of(in[0].dtype, x)};
}

constexpr OpDef kDiagonalOps[] = {
    Op<InferDiagPart>("MatrixDiagPart", {.inputs = {3, 3}, .plan_inputs = 0b10}),
    Op<InferDiag>("MatrixDiag", {.inputs = {5, 5}, .plan_inputs = 0b1110}),
    Op<InferSetDiag>("MatrixSetDiag", {.inputs = {3, 3}, .plan_inputs = 0b100}),
};

}  // namespace

int64_t Band::Length(int64_t k) const {
  return std::min(rows + std::min<int64_t>(k, 0), columns - std::max<int64_t>(k, 0));
}

int64_t Band::Begin(int64_t k) const {
  const bool left = (k >= 0 && left_above) || (k <= 0 && left_below);
  return left ? 0 : longest - Length(k);
}

Result<Band> BandOf(const DiagonalAttrs& attrs, const std::vector<int64_t>& k, int64_t rows,
                    int64_t columns) {
  Band band;
  band.lower = k.front();
  band.upper = k.back();
  band.rows = rows;
  band.columns = columns;
  // The diagonal just outside an empty matrix has no elements but is allowed, so that k = 0 always
  // works.
  for (int64_t d : {band.lower, band.upper}) {
    if (d != 0 && (d <= -rows || d >= columns)) {
      return InvalidArgument("diagonal ", d, " does not lie in a matrix of ", rows, " by ",
                             columns);
    }
  }
  band.longest =
      std::min(rows + std::min<int64_t>(band.upper, 0), columns - std::max<int64_t>(band.lower, 0));
  band.left_above = attrs.align.substr(0, 4) == "left";
  band.left_below = attrs.align.substr(attrs.align.find('_') + 1) == "left";
  return band;
}

Result<std::pair<int64_t, int64_t>> DiagSizes(const std::vector<int64_t>& k, int64_t longest,
                                              int64_t rows, int64_t columns) {
  const int64_t least_rows = longest - std::min<int64_t>(k.back(), 0);
  const int64_t least_columns = longest + std::max<int64_t>(k.front(), 0);
  if (rows == -1 && columns == -1) {
    const int64_t size = std::max(least_rows, least_columns);
    return std::pair{size, size};
  }
  const int64_t r = rows == -1 ? least_rows : rows;
  const int64_t c = columns == -1 ? least_columns : columns;
  if (r < least_rows || c < least_columns || (r != least_rows && c != least_columns)) {
    return InvalidArgument("diagonals of ", longest, " elements make ", least_rows, " by ",
                           least_columns, " or more on one side, not ", r, " by ", c);
  }
  return std::pair{r, c};
}

std::span<const OpDef> DiagonalOps() { return kDiagonalOps; }

}  // namespace oncilla
