// Segment sums, sorted insertion points and counts on the CPU: plain code. Sums are kept in double
// or 64-bit integers, in the order of x.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "engine/ops/array/segment.h"

namespace oncilla::cpu {
namespace {

// The type of a row's sums: integers wrap as their own type would.
template <class T>
using Wide = std::conditional_t<!std::is_integral_v<T>, double,
                                std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class T>
T Store(double v) {
  if constexpr (std::is_same_v<T, double>) return v;
  return static_cast<T>(static_cast<float>(v));
}
template <class T, class W>
T Store(W v) {
  return static_cast<T>(v);
}

template <class T>
T Lowest() {
  if constexpr (std::is_same_v<T, Half>) {
    return Half(-65504.0f);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    BFloat16 v;
    v.bits = 0xff7f;
    return v;
  } else {
    return std::numeric_limits<T>::lowest();
  }
}
template <class T>
T Highest() {
  if constexpr (std::is_same_v<T, Half>) {
    return Half(65504.0f);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    BFloat16 v;
    v.bits = 0x7f7f;
    return v;
  } else {
    return std::numeric_limits<T>::max();
  }
}

template <class W>
W Combined(SegmentReduction reduction, W a, W b) {
  using Unsigned = std::conditional_t<std::is_same_v<W, double>, double, uint64_t>;
  switch (reduction) {
    case SegmentReduction::kProd:
      return static_cast<W>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
    case SegmentReduction::kMax:
      return b > a || b != b ? b : a;
    case SegmentReduction::kMin:
      return b < a || b != b ? b : a;
    default:
      return static_cast<W>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  }
}

template <class T>
T EmptyRow(SegmentReduction reduction, bool identity) {
  if (identity && reduction == SegmentReduction::kMax) return Lowest<T>();
  if (identity && reduction == SegmentReduction::kMin) return Highest<T>();
  const bool one = identity && reduction == SegmentReduction::kProd;
  return static_cast<T>(one ? 1.0f : 0.0f);
}

// Reduces x[n, inner] by ids[n] into y[rows, inner]. The ids have been checked.
template <class T>
void Segments(SegmentReduction reduction, bool identity, std::span<const int64_t> ids,
              int64_t rows, int64_t inner, const T* x, T* y) {
  using W = Wide<T>;
  IntList counts(static_cast<size_t>(rows));
  HostVector<W> wide(static_cast<size_t>(rows * inner));
  for (size_t i = 0; i < ids.size(); ++i, x += inner) {
    if (ids[i] < 0) continue;
    W* row = wide.data() + ids[i] * inner;
    const bool first = counts[static_cast<size_t>(ids[i])]++ == 0;
    for (int64_t j = 0; j < inner; ++j) {
      const auto v = static_cast<W>(x[j]);
      row[j] = first ? v : Combined(reduction, row[j], v);
    }
  }
  const T empty = EmptyRow<T>(reduction, identity);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t count = counts[static_cast<size_t>(r)];
    for (int64_t j = 0; j < inner; ++j) {
      W v = wide[static_cast<size_t>(r * inner + j)];
      T& to = y[r * inner + j];
      if (count == 0) {
        to = empty;
        continue;
      }
      if (reduction == SegmentReduction::kMean) v /= static_cast<W>(count);
      if (reduction == SegmentReduction::kSqrtN) {
        v = static_cast<W>(static_cast<double>(v) / std::sqrt(static_cast<double>(count)));
      }
      to = Store<T>(v);
    }
  }
}

Status CheckSorted(std::span<const int64_t> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0)
      return InvalidArgument("segment ids must be >= 0, and ids[", i, "] is ", ids[i]);
    if (i > 0 && ids[i] < ids[i - 1]) {
      return InvalidArgument("segment ids are not increasing: ids[", i, "] is ", ids[i], " after ",
                             ids[i - 1]);
    }
  }
  return Status();
}

Status CheckPrefix(const Shape& x, const Shape& ids) {
  for (int i = 0; i < ids.rank(); ++i) {
    if (x.rank() < ids.rank() || x[i] != ids[i]) {
      return InvalidArgument("ids ", ids, " are not of the first axes of x ", x);
    }
  }
  return Status();
}

Status SegmentReduce(const SegmentAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const auto reduction, ParseSegmentReduction(attrs.reduction));
  ONCILLA_ASSIGN(const auto count, args.Ints(2, "the number of segments"));
  const TensorDesc x = args.in(0), ids = args.in(1);
  ONCILLA_TRY(CheckPrefix(x.shape, ids.shape));
  const auto at = ReadInts(args.inputs[1], ids.dtype, ids.elements());
  if (attrs.sorted) ONCILLA_TRY(CheckSorted(at));
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] >= count[0]) {
      return InvalidArgument("segment_ids[", i, "] = ", at[i], " is out of range [0, ", count[0],
                             ")");
    }
  }
  DispatchDType(x.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      Segments(reduction, attrs.identity, at, count[0], x.shape.Product(ids.shape.rank(), x.rank()),
               args.In<T>(0), args.Out<T>(0));
    }
  });
  return Status();
}

Result<std::vector<Tensor>> SortedSegmentReduce(const SegmentAttrs& attrs, const NodeView&,
                                                std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const auto reduction, ParseSegmentReduction(attrs.reduction));
  ONCILLA_TRY(CheckPrefix(in[0].shape(), in[1].shape()));
  const auto at = ReadInts(in[1].bytes().data(), in[1].dtype(), in[1].elements());
  ONCILLA_TRY(CheckSorted(at));
  Shape shape = in[0].shape();
  shape[0] = at.empty() ? 0 : SaturatingAdd(at.back(), 1);
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({in[0].dtype(), shape}));
  DispatchDType(in[0].dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      Segments(reduction, attrs.identity, at, shape[0], shape.Product(1, shape.rank()),
               in[0].As<T>().data(), out.MutableAs<T>().data());
    }
  });
  return std::vector<Tensor>{std::move(out)};
}

Status SearchSorted(const SearchSortedAttrs& attrs, const Args& args) {
  const Shape sorted = args.in(0).shape, values = args.in(1).shape;
  const int64_t n = sorted.back();
  const int64_t per_row = sorted.rank() == 1 ? std::max<int64_t>(values.elements(), 1)
                                             : std::max<int64_t>(values.back(), 1);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    ParallelFor(args.threads, values.elements(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = args.In<T>(0) + i / per_row * n;
        const T v = args.In<T>(1)[i];
        const T* at =
            attrs.right ? std::upper_bound(row, row + n, v) : std::lower_bound(row, row + n, v);
        if (attrs.to == DType::kI32) {
          args.Out<int32_t>(0)[i] = static_cast<int32_t>(at - row);
        } else {
          args.Out<int64_t>(0)[i] = at - row;
        }
      }
    });
  });
  return Status();
}

Status Bincount(const BincountAttrs& attrs, const Args& args) {
  const TensorDesc x = args.in(0), y = args.out(0);
  const int64_t size = y.shape.back(), columns = x.rank() == 2 ? x.shape[1] : x.elements();
  const auto at = ReadInts(args.inputs[0], x.dtype, x.elements());
  const bool weighted = args.has_input(2) && args.in(2).elements() > 0;
  if (weighted && args.in(2).elements() != x.elements()) {
    return InvalidArgument("there are ", args.in(2).elements(), " weights for ", x.elements(),
                           " numbers");
  }
  for (int64_t v : at) {
    if (v < 0) return InvalidArgument("the numbers to count must be non-negative, one is ", v);
  }
  DispatchDType(y.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      using W = Wide<T>;
      HostVector<W> sums(static_cast<size_t>(y.elements()));
      for (size_t i = 0; i < at.size(); ++i) {
        if (at[i] >= size) continue;
        const int64_t row = x.rank() == 2 ? static_cast<int64_t>(i) / columns : 0;
        W& sum = sums[static_cast<size_t>(row * size + at[i])];
        if (attrs.binary) {
          sum = 1;
        } else {
          sum = Combined(SegmentReduction::kSum, sum,
                         weighted ? static_cast<W>(args.In<T>(2)[i]) : static_cast<W>(1));
        }
      }
      for (size_t i = 0; i < sums.size(); ++i) args.Out<T>(0)[i] = Store<T>(sums[i]);
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<SegmentReduce>("SegmentReduce", kNumbers),
    HostRow<SortedSegmentReduce>("SortedSegmentReduce", kNumbers),
    Row<SearchSorted>("SearchSorted", kNumbers),
    Row<Bincount>("Bincount", kIntegers),
};

}  // namespace

std::span<const KernelRow> SegmentKernels() { return kRows; }

}  // namespace oncilla::cpu
