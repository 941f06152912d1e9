// Arithmetic on shapes: saturating products, broadcasting, merging of partial knowledge.
#include "engine/tensor/shape.h"

#include <algorithm>

namespace oncilla {

int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

int64_t Shape::Product(int first, int last) const {
  // A zero size makes the product zero, even where the other sizes overflow.
  int64_t n = 1;
  for (int i = first; i < last; ++i) {
    if ((*this)[i] == 0) return 0;
    n = SaturatingMul(n, (*this)[i]);
  }
  return n;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int i = 0; i < shape.rank(); ++i) out << (i ? "," : "") << shape[i];
  return out << ']';
}

std::ostream& operator<<(std::ostream& out, const Dim& dim) {
  if (dim.known()) return out << dim.size;
  return out << (dim.name.empty() ? "?" : dim.name);
}

bool PartialShape::known() const {
  return ranked_ && std::all_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.known(); });
}

Shape PartialShape::ToShape() const {
  Shape shape;
  for (const Dim& d : dims_) shape.push_back(d.size);
  return shape;
}

Dim PartialShape::elements() const { return known() ? Dim(ToShape().elements()) : Dim(); }

bool PartialShape::Accepts(const Shape& shape) const {
  if (!ranked_) return true;
  if (rank() != shape.rank()) return false;
  for (int i = 0; i < rank(); ++i) {
    if (dims_[i].known() && dims_[i].size != shape[i]) return false;
  }
  return true;
}

std::ostream& operator<<(std::ostream& out, const PartialShape& shape) {
  if (!shape.ranked()) return out << "[...]";
  out << '[';
  for (int i = 0; i < shape.rank(); ++i) out << (i ? "," : "") << shape[i];
  return out << ']';
}

Result<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis ", axis, " is out of range for rank ", rank);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

namespace {

Result<Dim> BroadcastDims(const Dim& a, const Dim& b) {
  if (a.Same(b)) return a;
  if (a.known() && b.known()) {
    if (a.size == 1) return b;
    if (b.size == 1) return a;
    return InvalidArgument("sizes ", a.size, " and ", b.size, " do not broadcast");
  }
  // A known size other than one decides: an unknown partner must be the same size or one.
  if (a.known() && a.size != 1) return a;
  if (b.known() && b.size != 1) return b;
  if (a.known()) return b;
  if (b.known()) return a;
  return Dim();
}

}  // namespace

Result<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.ranked() || !b.ranked()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Dim> out(rank);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    auto dim = BroadcastDims(ia < 0 ? Dim(1) : a[ia], ib < 0 ? Dim(1) : b[ib]);
    if (!dim.ok()) return InvalidArgument("shapes ", a, " and ", b, " do not broadcast");
    out[i] = *std::move(dim);
  }
  return PartialShape(std::move(out));
}

Result<PartialShape> MergeShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.ranked()) return b;
  if (!b.ranked()) return a;
  if (a.rank() != b.rank()) return InvalidArgument("shapes ", a, " and ", b, " differ in rank");
  PartialShape out = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i].known() && b[i].known() && a[i].size != b[i].size) {
      return InvalidArgument("shapes ", a, " and ", b, " differ");
    }
    if (b[i].known() || (!a[i].known() && a[i].name.empty())) out[i] = b[i];
  }
  return out;
}

}  // namespace oncilla
