// Ragged tensors on the CPU: lists of values cut into rows by splits. Host functions.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/kernels/pick.h"
#include "engine/ops/array/sparse.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

constexpr int64_t kMostElements = int64_t{1} << 40;

// Splits begin at 0, do not descend and end at `values` (unless that is negative).
Status CheckSplits(const IntList& splits, int64_t values) {
  if (splits.empty()) return InvalidArgument("row_splits must have at least one element");
  if (splits[0] != 0) return InvalidArgument("row_splits must begin with 0, not ", splits[0]);
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1]) return InvalidArgument("row_splits must be sorted");
  }
  if (values >= 0 && splits.back() > values) {
    return InvalidArgument("row_splits end at ", splits.back(), " of ", values, " rows");
  }
  return Status();
}

// The number of elements of a range; -1 for an impossible one.
template <class T>
int64_t RangeSize(T start, T limit, T delta) {
  if constexpr (std::is_integral_v<T>) {
    if (delta == 0) return -1;
    const auto a = static_cast<__int128>(start), b = static_cast<__int128>(limit);
    const auto d = static_cast<__int128>(delta);
    if ((d > 0 && a >= b) || (d < 0 && a <= b)) return 0;
    const __int128 size = d > 0 ? (b - a + d - 1) / d : (a - b - d - 1) / -d;
    return size > kMostElements ? -1 : static_cast<int64_t>(size);
  } else {
    const double size = std::ceil(std::fabs(
        (static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta)));
    const bool towards = (delta > 0) == (limit > start);
    if (static_cast<double>(delta) == 0) return -1;
    if (limit == start || !towards) return 0;
    return size >= 0 && size < static_cast<double>(kMostElements) ? static_cast<int64_t>(size) : -1;
  }
}

Tensors RaggedRange(const RaggedRangeAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  int64_t rows = 1;
  for (const Tensor& x : in) {
    if (x.shape().rank() == 0) continue;
    if (rows != 1 && x.elements() != rows) {
      return InvalidArgument("starts, limits, and deltas must have the same shape");
    }
    rows = x.elements();
  }
  for (const Tensor& x : in) {
    if (x.shape().rank() == 1 && x.elements() != rows) {
      return InvalidArgument("starts, limits, and deltas must have the same shape");
    }
  }
  IntList splits = {0};
  Tensor values;
  Status status;
  DispatchDType(in[0].dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      auto at = [&](size_t k, int64_t r) {
        return in[k].As<T>()[in[k].shape().rank() == 0 ? 0 : static_cast<size_t>(r)];
      };
      HostVector<T> list;
      WorkLook look;
      for (int64_t r = 0; r < rows; ++r) {
        const T start = at(0, r), delta = at(2, r);
        const int64_t size = RangeSize(start, at(1, r), delta);
        if (size < 0 || SaturatingAdd(size, splits.back()) > kMostElements) {
          status = static_cast<double>(delta) == 0
                       ? InvalidArgument("Requires delta != 0")
                       : InvalidArgument("a range of too many elements");
          return;
        }
        // Added step by step in its own type, as TensorFlow does; rounding errors of floats are
        // part of the result.
        T value = start;
        list.reserve(list.size() + static_cast<size_t>(size));
        for (int64_t i = 0; i < size; ++i) {
          if (status = look.Go(1); !status.ok()) return;
          list.push_back(value);
          if constexpr (std::is_integral_v<T>) {
            value = static_cast<T>(static_cast<uint64_t>(value) + static_cast<uint64_t>(delta));
          } else {
            value = static_cast<T>(value + delta);
          }
        }
        splits.push_back(splits.back() + size);
      }
      values = Tensor::Of<T>(in[0].dtype(), {static_cast<int64_t>(list.size())}, list);
    }
  });
  ONCILLA_TRY(status);
  ONCILLA_ASSIGN(Tensor cut, IntTensor(attrs.splits, {rows + 1}, splits));
  return std::vector<Tensor>{std::move(cut), std::move(values)};
}

Tensors RaggedGather(const RaggedGatherAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const auto ragged = static_cast<size_t>(attrs.ragged_rank);
  const Tensor &values = in[ragged], &indices = in[ragged + 1];
  std::vector<IntList> splits;
  for (size_t i = 0; i < ragged; ++i) splits.push_back(IntsOf(in[i]));
  for (size_t i = 0; i < ragged; ++i) {
    const int64_t below =
        i + 1 < ragged ? static_cast<int64_t>(splits[i + 1].size()) - 1 : values.shape()[0];
    ONCILLA_TRY(CheckSplits(splits[i], below));
  }
  const auto rows = static_cast<int64_t>(splits[0].size()) - 1;
  IntList at = IntsOf(indices);
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0 || at[i] >= rows) {
      return InvalidArgument("indices[", i, "] = ", at[i], " is not in [0, ", rows, ")");
    }
  }
  std::vector<Tensor> out;
  auto add = [&](const IntList& list) -> Status {
    ONCILLA_ASSIGN(Tensor cut, IntTensor(in[0].dtype(), {static_cast<int64_t>(list.size())}, list));
    out.push_back(std::move(cut));
    return Status();
  };
  // All axes of the indices but the last are regular: their rows have one length.
  for (int k = 0; k + 1 < indices.shape().rank(); ++k) {
    const int64_t before = indices.shape().Product(0, k + 1), size = indices.shape()[k + 1];
    IntList list;
    for (int64_t r = 0; r <= before; ++r) list.push_back(r * size);
    ONCILLA_TRY(add(list));
  }
  // Rows of one axis become ranges of rows of the next axis.
  for (size_t i = 0; i < ragged; ++i) {
    IntList list = {0}, next;
    for (int64_t r : at) {
      const int64_t begin = splits[i][static_cast<size_t>(r)];
      const int64_t end = splits[i][static_cast<size_t>(r) + 1];
      for (int64_t j = begin; j < end; ++j) next.push_back(j);
      list.push_back(static_cast<int64_t>(next.size()));
    }
    ONCILLA_TRY(add(list));
    at = std::move(next);
  }
  Shape shape = values.shape();
  const int64_t inner = shape.Product(1, shape.rank());
  shape[0] = static_cast<int64_t>(at.size());
  ONCILLA_ASSIGN(Tensor picked, Pick(values, at, inner, shape));
  out.push_back(std::move(picked));
  return out;
}

// The splits of `rows` rows, from the row number of each value.
Result<IntList> SplitsOf(const IntList& rowids, int64_t rows) {
  if (rows < 0 || rows > kMostElements) return InvalidArgument("there cannot be ", rows, " rows");
  IntList splits(static_cast<size_t>(rows) + 1);
  for (size_t i = 0; i < rowids.size(); ++i) {
    if (rowids[i] < 0 || rowids[i] >= rows || (i > 0 && rowids[i] < rowids[i - 1])) {
      return InvalidArgument("value_rowids[", i, "] = ", rowids[i],
                             " is out of order or not in [0, ", rows, ")");
    }
    ++splits[static_cast<size_t>(rowids[i]) + 1];
  }
  for (size_t r = 1; r < splits.size(); ++r) splits[r] += splits[r - 1];
  return splits;
}

// The partitions of a ragged tensor as splits, and the number of rows of the first.
struct Partitions {
  std::vector<IntList> splits;
  int64_t rows = 0;
};

// `in` has one tensor for each type. The partitions must end at the number of values.
Result<Partitions> ReadPartitions(std::span<const std::string> types, std::span<const Tensor> in,
                                  int64_t values) {
  Partitions out;
  int64_t rows = -1;
  for (size_t i = 0; i < types.size(); ++i) {
    const IntList list = IntsOf(in[i]);
    if (types[i] == "first_dim_size") {
      if (list.size() != 1) return InvalidArgument("first_dim_size must be one number");
      rows = list[0];
      continue;
    }
    if (types[i] == "row_splits") {
      out.splits.push_back(list);
    } else {
      ONCILLA_ASSIGN(IntList cut, SplitsOf(list, rows));
      out.splits.push_back(std::move(cut));
    }
    const IntList& cut = out.splits.back();
    ONCILLA_TRY(CheckSplits(cut, -1));
    if (rows >= 0 && static_cast<int64_t>(cut.size()) != rows + 1) {
      return InvalidArgument("partition ", i, " has ", cut.size() - 1, " rows, not ", rows);
    }
    rows = cut.back();
  }
  if (rows != values) {
    return InvalidArgument("the partitions end at ", rows, " of ", values, " values");
  }
  out.rows = out.splits.empty() ? rows : static_cast<int64_t>(out.splits[0].size()) - 1;
  return out;
}

// The sizes of the result: the requested ones, and where these are -1, those of the values or of
// the longest row.
Result<Shape> DenseShape(const Tensor& asked_for, const Partitions& partitions,
                         const Shape& values) {
  const size_t ragged = partitions.splits.size();
  const auto rank = static_cast<size_t>(values.rank()) + ragged;
  IntList asked = IntsOf(asked_for);
  if (asked_for.shape().rank() == 0) {
    if (asked[0] != -1) return InvalidArgument("a shape of one number must be -1");
    asked.assign(rank, -1);
  }
  if (asked.size() != rank) {
    return InvalidArgument("shape has ", asked.size(), " sizes for rank ", rank);
  }
  Shape shape;
  for (size_t d = 0; d < rank; ++d) {
    int64_t size = asked[d];
    if (d > ragged) {
      const int64_t own = values[static_cast<int>(d - ragged)];
      if (size >= 0 && size != own) {
        return InvalidArgument("shape asks for ", size, " where the values have ", own);
      }
      size = own;
    } else if (size < 0 && d == 0) {
      size = partitions.rows;
    } else if (size < 0) {
      size = 0;
      const IntList& cut = partitions.splits[d - 1];
      for (size_t r = 1; r < cut.size(); ++r) size = std::max(size, cut[r] - cut[r - 1]);
    }
    shape.push_back(size);
  }
  return shape;
}

// The index of the value at each position of the result, not counting the axes of the values; -1 if
// there is none.
IntList ValuesAt(const Partitions& partitions, const Shape& shape, int64_t places) {
  // The position of each row in the result, axis by axis; -1 for a row that is cut off.
  IntList to(static_cast<size_t>(partitions.rows));
  for (int64_t r = 0; r < partitions.rows; ++r) {
    to[static_cast<size_t>(r)] = r < shape[0] ? r : -1;
  }
  for (size_t d = 0; d < partitions.splits.size(); ++d) {
    const IntList& splits = partitions.splits[d];
    const int64_t size = shape[static_cast<int>(d) + 1];
    IntList next(static_cast<size_t>(splits.back()), -1);
    for (size_t r = 0; r + 1 < splits.size(); ++r) {
      for (int64_t j = splits[r]; j < splits[r + 1]; ++j) {
        const int64_t column = j - splits[r];
        if (to[r] >= 0 && column < size) next[static_cast<size_t>(j)] = to[r] * size + column;
      }
    }
    to = std::move(next);
  }
  IntList from(static_cast<size_t>(places), -1);
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] >= 0) from[static_cast<size_t>(to[i])] = static_cast<int64_t>(i);
  }
  return from;
}

Tensors RaggedToDense(const RaggedToDenseAttrs& attrs, const NodeView&,
                      std::span<const Tensor> in) {
  const Tensor &values = in[1], &otherwise = in[2];
  ONCILLA_ASSIGN(const Partitions partitions,
                 ReadPartitions(attrs.types, in.subspan(3), values.shape()[0]));
  ONCILLA_ASSIGN(const Shape shape, DenseShape(in[0], partitions, values.shape()));
  int64_t outer = 1;
  for (size_t d = 0; d <= partitions.splits.size(); ++d) {
    outer = SaturatingMul(outer, shape[static_cast<int>(d)]);
  }
  const int64_t inner = values.shape().Product(1, values.shape().rank());
  if (SaturatingMul(outer, std::max<int64_t>(inner, 1)) > kMostElements) {
    return Exhausted("a tensor of the shape ", shape);
  }
  const IntList from = ValuesAt(partitions, shape, outer);
  ONCILLA_ASSIGN(Tensor out, Pick(values, from, inner, shape, &otherwise));
  return std::vector<Tensor>{std::move(out)};
}

Tensors RaggedToSparse(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const Tensor& values = in.back();
  const size_t ragged = in.size() - 1;
  std::vector<IntList> splits;
  for (size_t i = 0; i < ragged; ++i) splits.push_back(IntsOf(in[i]));
  for (size_t i = 0; i < ragged; ++i) {
    const int64_t below =
        i + 1 < ragged ? static_cast<int64_t>(splits[i + 1].size()) - 1 : values.shape()[0];
    ONCILLA_TRY(CheckSplits(splits[i], below));
    if (splits[i].back() != below) {
      return InvalidArgument("row_splits end at ", splits[i].back(), " of ", below, " rows");
    }
  }
  // The coordinates of each row, extended axis by axis.
  const auto rows = static_cast<int64_t>(splits[0].size()) - 1;
  std::vector<IntList> at(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) at[static_cast<size_t>(r)] = {r};
  IntList sizes = {rows};
  for (const IntList& cut : splits) {
    std::vector<IntList> next;
    int64_t longest = 0;
    for (size_t r = 0; r + 1 < cut.size(); ++r) {
      longest = std::max(longest, cut[r + 1] - cut[r]);
      for (int64_t j = 0; j < cut[r + 1] - cut[r]; ++j) {
        next.push_back(at[r]);
        next.back().push_back(j);
      }
    }
    sizes.push_back(longest);
    at = std::move(next);
  }
  for (int i = 1; i < values.shape().rank(); ++i) sizes.push_back(values.shape()[i]);
  const int64_t inner = values.shape().Product(1, values.shape().rank());
  IntList out;
  for (const IntList& row : at) {
    for (int64_t k = 0; k < inner; ++k) {
      out.insert(out.end(), row.begin(), row.end());
      int64_t left = k;
      out.resize(out.size() + sizes.size() - row.size());
      for (size_t axis = sizes.size(); axis-- > row.size(); left /= sizes[axis]) {
        out[out.size() - (sizes.size() - axis)] = left % sizes[axis];
      }
    }
  }
  const int64_t count = values.elements(), rank = static_cast<int64_t>(sizes.size());
  return std::vector<Tensor>{Tensor::Int64s(out).Reshaped({count, rank}), values.Reshaped({count}),
                             Tensor::Int64s(sizes)};
}

const KernelRow kRows[] = {
    HostRow<RaggedRange>("RaggedRange", kNumbers),
    HostRow<RaggedGather>("RaggedGather", kIntegers),
    HostRow<RaggedToSparse>("RaggedToSparse", kIntegers),
    HostRow<RaggedToDense>("RaggedToDense", kIntegers),
};

}  // namespace

std::span<const KernelRow> RaggedKernels() { return kRows; }

}  // namespace oncilla::cpu
