// Shapes of tensors: a Shape has known sizes only and is what kernels use; a PartialShape is what
// is known before a run: sizes, or the rank itself, may be unknown, and a size may have a name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/base/status.h"

namespace oncilla {

// The largest rank that the engine accepts.
inline constexpr int kMaxRank = 12;

// Product that saturates at INT64_MAX instead of overflowing; factors must not be negative. A later
// limit check then refuses the size.
int64_t SaturatingMul(int64_t a, int64_t b);
int64_t SaturatingAdd(int64_t a, int64_t b);

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  template <std::input_iterator It>
  Shape(It first, It last) : dims_(first, last) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  int64_t back() const { return dims_.back(); }
  void push_back(int64_t d) { dims_.push_back(d); }
  void Insert(int axis, int64_t d) { dims_.insert(dims_.begin() + axis, d); }
  void Erase(int axis) { dims_.erase(dims_.begin() + axis); }

  // Saturates at INT64_MAX.
  int64_t elements() const { return Product(0, rank()); }
  // Product of the sizes of axes [first, last).
  int64_t Product(int first, int last) const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  absl::InlinedVector<int64_t, 6> dims_;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape);  // [1,224,224,3]

// One size: known, or unknown with an optional name ("batch"). Equal names are equal sizes.
struct Dim {
  static constexpr int64_t kUnknown = -1;
  int64_t size = kUnknown;
  std::string name;

  Dim() = default;
  Dim(int64_t s) : size(s) {}  // NOLINT: a number is a size
  static Dim Named(std::string name) {
    Dim d;
    d.name = std::move(name);
    return d;
  }
  bool known() const { return size >= 0; }
  // True when both are known to be the same size.
  bool Same(const Dim& other) const {
    return known() ? size == other.size : !other.known() && !name.empty() && name == other.name;
  }
};
std::ostream& operator<<(std::ostream& out, const Dim& dim);

class PartialShape {
 public:
  PartialShape() = default;  // unknown rank
  PartialShape(const Shape& shape) : ranked_(true), dims_(shape.begin(), shape.end()) {}  // NOLINT
  explicit PartialShape(std::vector<Dim> dims) : ranked_(true), dims_(std::move(dims)) {}
  static PartialShape OfRank(int rank) { return PartialShape(std::vector<Dim>(rank)); }

  bool ranked() const { return ranked_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  const Dim& operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  Dim& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  const std::vector<Dim>& dims() const { return dims_; }

  bool known() const;
  // The sizes; call only when known().
  Shape ToShape() const;
  // Number of elements, unknown unless every size is known.
  Dim elements() const;
  // Whether a tensor of this exact shape is compatible with what is known.
  bool Accepts(const Shape& shape) const;

 private:
  bool ranked_ = false;
  std::vector<Dim> dims_;
};
std::ostream& operator<<(std::ostream& out, const PartialShape& shape);  // [batch,?,3] or [...]

// Converts an axis in [-rank, rank) to one in [0, rank); InvalidArgument, with the range, for
// others.
Result<int> NormalizeAxis(int64_t axis, int rank);

// NumPy's rule: axes are aligned at the right, and a size of one is broadcast. Unknown sizes stay
// unknown unless the other operand determines them.
Result<PartialShape> BroadcastShapes(const PartialShape& a, const PartialShape& b);

// Merges what two sources say about one tensor; fails if they contradict each other.
Result<PartialShape> MergeShapes(const PartialShape& a, const PartialShape& b);

}  // namespace oncilla
