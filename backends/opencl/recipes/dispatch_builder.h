// DispatchBuilder: builds a dispatch of a recipe.
//
//   const IndexType index(elements);
//   DispatchBuilder b(cl::kNormSoftmax, "softmax_rows", index);
//   b.Define({{"IDX", index.name()}, {"T", TypeName(dtype)}});
//   b.Arg("x", In{0}).Arg("y", Out{0}).Index("n", n);
//   return b.Items(n, group).Alone();
//
// Arguments are in the kernel's order and have the names of its parameters. Tests compare names,
// order and kinds with the kernel's own parameter list for every case and class of device
// (tests/case_runner/kernel_signature.h); a run does not.
#pragma once

#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "backends/opencl/recipes/recipe.h"

namespace oncilla::opencl {

// The type in which a kernel computes indices: int, or long if int may be too small.
class IndexType {
 public:
  // For kernels that add two indices, or go beyond the last one by a tile.
  static constexpr int64_t kSums = std::numeric_limits<int32_t>::max() / 2;
  // For kernels that go beyond the last index by less than a few groups.
  static constexpr int64_t kPlaces = (int64_t{1} << 31) - 4096;

  // `most`: the largest index, or number of work-items, that the kernel computes with.
  explicit IndexType(int64_t most = 0, int64_t limit = kSums) : wide_(most > limit) {}
  std::string name() const { return wide_ ? "long" : "int"; }
  Arg operator()(int64_t value) const {
    if (wide_) return value;
    return static_cast<int32_t>(value);
  }

 private:
  bool wide_;
};

class DispatchBuilder {
 public:
  template <class T>
  using Named = std::initializer_list<std::pair<std::string, T>>;

  DispatchBuilder(const Source& source, std::string entry, IndexType index = IndexType())
      : index_(index) {
    d_.source = &source;
    d_.entry = std::move(entry);
  }

  DispatchBuilder& Define(std::string name, std::string value);
  DispatchBuilder& Define(Named<std::string> defines);
  DispatchBuilder& Type(std::string name, const Fact& fact) {
    return Define(std::move(name), std::string(Name(fact.dtype)));
  }
  // OpenCL C that is inserted between the defines and the source.
  DispatchBuilder& Generated(std::string text);

  DispatchBuilder& Arg(std::string name, const opencl::Arg& value);
  DispatchBuilder& Arg(Named<opencl::Arg> args);
  DispatchBuilder& Index(std::string name, int64_t value);  // of the index type
  DispatchBuilder& Index(Named<int64_t> args);
  DispatchBuilder& Int(std::string name, int64_t value);
  DispatchBuilder& Int(Named<int64_t> args);
  DispatchBuilder& Float(std::string name, double value);
  DispatchBuilder& Error();  // ERROR_PARAMS

  // One work-item for each of `items`, in groups of `group`.
  DispatchBuilder& Items(int64_t items, int64_t group);
  // The same in groups of the usual size for work-items that do little work.
  DispatchBuilder& Flat(int64_t items, const Capabilities& caps);
  // `groups` groups of `local` work-items along each axis.
  DispatchBuilder& Groups(std::array<int64_t, 3> groups, std::array<int64_t, 3> local = {1, 1, 1});
  // The largest trip count of any loop of a work-item.
  DispatchBuilder& Loop(int64_t trips);

  const Dispatch& dispatch() const { return d_; }
  // These leave the builder empty.
  Dispatch Build() { return std::move(d_); }
  void AddTo(Recipe& recipe) { recipe.dispatches.push_back(Build()); }
  Recipe Alone() { return Recipe{{Build()}}; }

 private:
  Dispatch d_;
  IndexType index_;
};

// Values of defines.
inline std::string Flag(bool set) { return set ? "1" : "0"; }
inline std::string TypeName(DType dtype) { return std::string(Name(dtype)); }

// The type in which a dtype is computed, by the names of common/elementwise.clh: 'f' for float, 'd'
// for double, 'l' for long, 'u' for ulong.
char CarrierOf(DType dtype);
std::string CarrierType(char carrier);

// The three parts of a shape around one axis.
struct AroundAxis {
  int64_t outer, size, inner;
  int64_t lines() const { return outer * inner; }
  int64_t elements() const { return outer * size * inner; }
};
Result<AroundAxis> Around(const Shape& shape, int64_t axis);

}  // namespace oncilla::opencl
