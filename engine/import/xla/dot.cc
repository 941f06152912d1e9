// The general product as one MatMul, with reshapes and transposes where the axes need them.
#include "engine/import/xla/dot.h"

#include "engine/import/xla/shape.h"

namespace oncilla {
namespace {

struct Operand {
  ValueId value = kNoValue;
  std::vector<int64_t> batch, summed, free;
  bool summed_first = false;  // its last two groups are (summed, free), not (free, summed)
};

std::vector<int64_t> Joined(const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                            const std::vector<int64_t>& c) {
  std::vector<int64_t> all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// Transposes an operand unless its groups are in an order that MatMul takes.
Status Arrange(Lowering& b, Operand& x, bool wants_summed_first, std::string_view role) {
  const int rank = b.fact(x.value).shape.rank();
  const std::vector<int64_t> as_is = OtherAxes(rank, {});
  if (Joined(x.batch, x.free, x.summed) == as_is) return {};
  if (Joined(x.batch, x.summed, x.free) == as_is) {
    x.summed_first = true;
    return {};
  }
  x.summed_first = wants_summed_first;
  ONCILLA_ASSIGN(x.value, b.Transpose(x.value,
                                      wants_summed_first ? Joined(x.batch, x.summed, x.free)
                                                         : Joined(x.batch, x.free, x.summed),
                                      role));
  return {};
}

XlaSize ProductOf(ValueId of, size_t first, size_t count) {
  XlaSize size{of, {}, 1};
  for (size_t i = 0; i < count; ++i) size.axes.push_back(static_cast<int>(first + i));
  if (count == 0) size.of = kNoValue;
  return size;
}

// [batch.., rows, columns] of an arranged operand. `keep_free`: its free axes stay apart.
Result<ValueId> AsMatrices(Lowering& b, const Operand& x, bool keep_free, std::string_view role) {
  const size_t batch = x.batch.size();
  std::vector<XlaSize> sizes;
  for (size_t i = 0; i < batch; ++i) {
    sizes.push_back(XlaSize::Axis(x.value, static_cast<int64_t>(i)));
  }
  const size_t first = x.summed_first ? x.summed.size() : x.free.size();
  const size_t second = x.summed_first ? x.free.size() : x.summed.size();
  if (keep_free) {
    for (size_t i = 0; i < first; ++i) {
      sizes.push_back(XlaSize::Axis(x.value, static_cast<int64_t>(batch + i)));
    }
  } else {
    sizes.push_back(ProductOf(x.value, batch, first));
  }
  sizes.push_back(ProductOf(x.value, batch + first, second));
  if (first == 1 && second == 1) return x.value;
  if (keep_free && second == 1) return x.value;
  return ReshapeTo(b, x.value, sizes, role);
}

Status CheckDot(const Lowering& b, ValueId lhs, ValueId rhs, const XlaDotAxes& axes) {
  const PartialShape &x = b.fact(lhs).shape, &y = b.fact(rhs).shape;
  if (!x.ranked() || !y.ranked()) return Unsupported("a product of tensors of unknown rank");
  if (axes.lhs_batch.size() != axes.rhs_batch.size() ||
      axes.lhs_summed.size() != axes.rhs_summed.size()) {
    return DataLoss("the operands have different numbers of batch or summed axes");
  }
  ONCILLA_TRY(CheckAxes(Joined(axes.lhs_batch, axes.lhs_summed, {}), x.rank(), "the left axes"));
  return CheckAxes(Joined(axes.rhs_batch, axes.rhs_summed, {}), y.rank(), "the right axes");
}

}  // namespace

Result<ValueId> LowerXlaDot(Lowering& b, ValueId lhs, ValueId rhs, const XlaDotAxes& axes,
                            DType to) {
  ONCILLA_TRY(CheckDot(b, lhs, rhs, axes));
  ONCILLA_ASSIGN(lhs, b.Cast(lhs, to, "lhs"));
  ONCILLA_ASSIGN(rhs, b.Cast(rhs, to, "rhs"));
  const int lhs_rank = b.fact(lhs).shape.rank(), rhs_rank = b.fact(rhs).shape.rank();
  Operand x{lhs, axes.lhs_batch, axes.lhs_summed, {}, false};
  x.free = OtherAxes(lhs_rank, Joined(x.batch, x.summed, {}));
  Operand y{rhs, axes.rhs_batch, axes.rhs_summed, {}, false};
  y.free = OtherAxes(rhs_rank, Joined(y.batch, y.summed, {}));
  ONCILLA_TRY(Arrange(b, x, false, "lhs_axes"));
  ONCILLA_TRY(Arrange(b, y, true, "rhs_axes"));
  // Where one matrix multiplies all rows, the rows stay as they are.
  const bool rows = x.batch.empty() && !x.summed_first && x.free.size() >= 1;
  ONCILLA_ASSIGN(const ValueId left, AsMatrices(b, x, rows, "lhs_matrix"));
  ONCILLA_ASSIGN(const ValueId right, AsMatrices(b, y, false, "rhs_matrix"));
  const bool simple = (rows || x.free.size() == 1) && y.free.size() == 1;
  const MatMulAttrs attrs = {.transpose_a = x.summed_first, .transpose_b = !y.summed_first};
  ONCILLA_ASSIGN(const ValueId product, b.Add(attrs, {left, right}, simple ? "" : "product"));
  if (simple) return product;
  const size_t x_free = x.batch.size() + (x.summed_first ? x.summed.size() : 0);
  const size_t y_free = y.batch.size() + (y.summed_first ? y.summed.size() : 0);
  std::vector<XlaSize> sizes;
  for (size_t i = 0; i < x.batch.size(); ++i) {
    sizes.push_back(XlaSize::Axis(x.value, static_cast<int64_t>(i)));
  }
  for (size_t i = 0; i < x.free.size(); ++i) {
    sizes.push_back(XlaSize::Axis(x.value, static_cast<int64_t>(x_free + i)));
  }
  for (size_t i = 0; i < y.free.size(); ++i) {
    sizes.push_back(XlaSize::Axis(y.value, static_cast<int64_t>(y_free + i)));
  }
  return ReshapeTo(b, product, sizes, "");
}

}  // namespace oncilla
