// Gathers and scatters on the CPU: plain, exact code. Every index is checked before it is used;
// updates are applied in order.
#include "engine/ops/array/indexing.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "backends/cpu/empty_strings.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/move.h"

namespace oncilla::cpu {
namespace {

// x as [batch, outer, size, inner], indices as [batch, count].
struct GatherSizes {
  int64_t batch, outer, size, inner, count;
  int axis;
};

GatherSizes SizesOf(const GatherAttrs& attrs, const NodeView& node) {
  const Shape x = node.inputs[0].shape.ToShape(), indices = node.inputs[1].shape.ToShape();
  const auto axis = static_cast<int>(attrs.axis < 0 ? attrs.axis + x.rank() : attrs.axis);
  const auto batch =
      static_cast<int>(attrs.batch_dims < 0 ? attrs.batch_dims + indices.rank() : attrs.batch_dims);
  return {x.Product(0, batch),
          x.Product(batch, axis),
          x[axis],
          x.Product(axis + 1, x.rank()),
          indices.Product(batch, indices.rank()),
          axis};
}

template <class T>
void CopySlices(const GatherSizes& s, std::span<const int64_t> at, const T* x, T* y,
                const Threads& threads) {
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(s.inner, 1));
  ParallelFor(threads, s.batch * s.outer * s.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t slice = i / s.count;  // the [size, inner] slice of x
      const int64_t index = at[static_cast<size_t>(slice / s.outer * s.count + i % s.count)];
      const T* from = x + (slice * s.size + index) * s.inner;
      if (s.inner == 1) {
        y[i] = *from;
      } else {
        std::copy_n(from, s.inner, y + i * s.inner);
      }
    }
  });
}

// Gathers single numbers of one row, as lookup tables do. It makes no list of indices, which would
// take many times the memory of the numbers.
template <class I>
Status PickNumbers(const GatherAttrs& attrs, const GatherSizes& s, const Args& args) {
  const I* at = args.In<I>(1);
  const auto place = [&](I index) {
    const auto i = static_cast<int64_t>(index);
    return i < 0 && attrs.negative_indices ? i + s.size : i;
  };
  for (int64_t i = 0; i < s.count; ++i) {
    const int64_t index = place(at[i]);
    if (index < 0 || index >= s.size) return IndexError(int64_t{at[i]}, s.axis, s.size);
  }
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T) {
    const T* x = args.In<T>(0);
    T* y = args.Out<T>(0);
    ParallelFor(args.threads, s.count, 1 << 15, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = x[place(at[i])];
    });
  });
  return Status();
}

Status Gather(const GatherAttrs& attrs, const Args& args) {
  const GatherSizes s = SizesOf(attrs, args.node);
  if (s.batch * s.outer == 1 && s.inner == 1) {
    if (args.in(1).dtype == DType::kU8) return PickNumbers<uint8_t>(attrs, s, args);
    if (args.in(1).dtype == DType::kU16) return PickNumbers<uint16_t>(attrs, s, args);
    if (args.in(1).dtype == DType::kI32) return PickNumbers<int32_t>(attrs, s, args);
  }
  ONCILLA_ASSIGN(const auto at, ReadIndices(args.inputs[1], args.in(1).dtype, s.batch * s.count,
                                            s.axis, s.size, attrs.negative_indices));
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T) {
    CopySlices(s, at, args.In<T>(0), args.Out<T>(0), args.threads);
  });
  return Status();
}

Result<std::vector<Tensor>> GatherStrings(const GatherAttrs& attrs, const NodeView& node,
                                          std::span<const Tensor> in) {
  const GatherSizes s = SizesOf(attrs, node);
  ONCILLA_ASSIGN(const auto at, ReadIndices(in[1].bytes().data(), in[1].dtype(), s.batch * s.count,
                                            s.axis, s.size, attrs.negative_indices));
  const Shape shape = node.outputs[0].desc().shape;
  ONCILLA_ASSIGN(std::vector<std::string> out, EmptyStrings(shape.elements()));
  // Bounds the memory of the copies before they are made: one long string may be asked for many
  // times.
  const std::vector<std::string>& from = in[0].strings();
  int64_t longest = 0;
  for (const std::string& text : from) longest = std::max(longest, std::ssize(text));
  HostCharge charge;
  ONCILLA_TRY(charge.Grow(SaturatingMul(longest, shape.elements())));
  CopySlices<std::string>(s, at, from.data(), out.data(), nullptr);
  charge.Clear();
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

// The slices of one axis whose condition is true.
Result<IntList> Selected(const bool* condition, int64_t count, const GatherSizes& s) {
  if (count > s.size) {
    return InvalidArgument("condition has ", count, " elements for axis ", s.axis, " of size ",
                           s.size);
  }
  IntList at;
  for (int64_t i = 0; i < count; ++i) {
    if (condition[i]) at.push_back(i);
  }
  return at;
}

Result<std::vector<Tensor>> Compress(const CompressAttrs& attrs, const NodeView&,
                                     std::span<const Tensor> in) {
  Shape shape = in[0].shape();
  if (attrs.axis == kFlatAxis) shape = {shape.elements()};
  ONCILLA_ASSIGN(const int axis,
                 NormalizeAxis(attrs.axis == kFlatAxis ? 0 : attrs.axis, shape.rank()));
  GatherSizes s{1,   shape.Product(0, axis), shape[axis], shape.Product(axis + 1, shape.rank()), 0,
                axis};
  ONCILLA_ASSIGN(const auto at, Selected(in[1].As<bool>().data(), in[1].elements(), s));
  s.count = static_cast<int64_t>(at.size());
  shape[axis] = s.count;
  if (in[0].dtype() == DType::kString) {
    ONCILLA_ASSIGN(std::vector<std::string> out, EmptyStrings(shape.elements()));
    CopySlices<std::string>(s, at, in[0].strings().data(), out.data(), nullptr);
    return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
  }
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({in[0].dtype(), shape}));
  DispatchBytes(BytesOf(in[0].dtype()), [&]<class T>(T) {
    CopySlices(s, at, in[0].As<T>().data(), out.MutableAs<T>().data(), nullptr);
  });
  return std::vector<Tensor>{std::move(out)};
}

// Calls fn(index in x, index in indices) for every element of `indices`. The element's own
// coordinates are its place in x, except along `axis`, where the element of `at` gives the
// coordinate. An index out of range ends it with an error.
template <class I, class F>
Status ForElements(const Shape& x, const Shape& indices, int axis, const I* at,
                   const Threads& threads, F&& fn) {
  const auto strides = RowMajorStrides(x);
  const int last = indices.rank() - 1;
  const int64_t columns = indices[last], rows = indices.Product(0, last);
  const int64_t size = x[axis], stride = strides[axis], step = axis == last ? 0 : 1;
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(columns, 1));
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> wrong = kNone;  // the first place of an index that is out of range
  ParallelFor(threads, rows, grain, [&, at, fn, size, stride](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end && r * columns < wrong; ++r) {
      int64_t base = 0, left = r;
      for (int i = last; i-- > 0; left /= indices[i]) {
        if (i != axis) base += left % indices[i] * strides[i];
      }
      for (int64_t i = r * columns; i < (r + 1) * columns; ++i, base += step) {
        int64_t along = at[i];
        along += along < 0 ? size : 0;
        if (along < 0 || along >= size) [[unlikely]] {
          for (int64_t first = wrong; i < first && !wrong.compare_exchange_weak(first, i);) {
          }
          return;
        }
        fn(base + along * stride, i);
      }
    }
  });
  if (wrong != kNone) return IndexError(int64_t{at[wrong]}, axis, size);
  return Status();
}

// The same for the types that indices have.
template <class F>
Status ForElements(const TensorDesc& x, const TensorDesc& indices, int axis, const std::byte* at,
                   const Threads& threads, F&& fn) {
  if (indices.dtype == DType::kI32) {
    return ForElements(x.shape, indices.shape, axis, reinterpret_cast<const int32_t*>(at), threads,
                       fn);
  }
  if (indices.dtype == DType::kI64) {
    return ForElements(x.shape, indices.shape, axis, reinterpret_cast<const int64_t*>(at), threads,
                       fn);
  }
  const IntList list = ReadInts(at, indices.dtype, indices.elements());
  return ForElements(x.shape, indices.shape, axis, list.data(), threads, fn);
}

Status GatherElements(const GatherElementsAttrs& attrs, const Args& args) {
  const TensorDesc x = args.in(0);
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.rank()));
  Status gathered;
  DispatchBytes(BytesOf(x.dtype), [&]<class T>(T) {
    const T* from = args.In<T>(0);
    T* to = args.Out<T>(0);
    gathered = ForElements(x, args.in(1), axis, args.inputs[1], args.threads,
                           [from, to](int64_t place, int64_t i) { to[i] = from[place]; });
  });
  return gathered;
}

Result<std::vector<Tensor>> GatherElementsStrings(const GatherElementsAttrs& attrs, const NodeView&,
                                                  std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, in[0].shape().rank()));
  std::vector<std::string> out(static_cast<size_t>(in[1].elements()));
  ONCILLA_TRY(ForElements(in[0].desc(), in[1].desc(), axis, in[1].bytes().data(), nullptr,
                          [&](int64_t place, int64_t i) {
                            out[static_cast<size_t>(i)] =
                                in[0].strings()[static_cast<size_t>(place)];
                          }));
  return std::vector<Tensor>{Tensor::Strings(in[1].shape(), std::move(out))};
}

// The slices of x that index tuples name: where each begins, and their size.
struct Slices {
  std::vector<int64_t> starts;
  int64_t size = 1;
};

// A tuple is a row of the last axis of `indices` and names the axes of x from `batch` on.
Result<Slices> SlicesOf(const std::byte* data, const TensorDesc& indices, const Shape& x, int batch,
                        bool negative) {
  const auto depth = static_cast<int>(indices.shape.back());
  const IntList index = ReadInts(data, indices.dtype, indices.elements());
  const auto strides = RowMajorStrides(x);
  Slices out;
  out.size = x.Product(batch + depth, x.rank());
  out.starts.resize(static_cast<size_t>(indices.shape.Product(0, indices.rank() - 1)));
  const int64_t per_batch = indices.shape.Product(batch, indices.rank() - 1);
  for (size_t i = 0; i < out.starts.size(); ++i) {
    int64_t start = static_cast<int64_t>(i) / per_batch * x.Product(batch, x.rank());
    for (int j = 0; j < depth; ++j) {
      const int64_t size = x[batch + j];
      const int64_t named = index[i * static_cast<size_t>(depth) + static_cast<size_t>(j)];
      const int64_t at = named < 0 && negative ? named + size : named;
      if (at < 0 || at >= size) return IndexError(named, batch + j, size);
      start += at * strides[batch + j];
    }
    out.starts[i] = start;
  }
  return out;
}

Status GatherND(const GatherNDAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const Slices slices,
                 SlicesOf(args.inputs[1], args.in(1), args.in(0).shape,
                          static_cast<int>(attrs.batch_dims), attrs.negative_indices));
  const auto n = static_cast<int64_t>(slices.starts.size());
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T) {
    const int64_t grain = std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(slices.size, 1));
    ParallelFor(args.threads, n, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::copy_n(args.In<T>(0) + slices.starts[static_cast<size_t>(i)], slices.size,
                    args.Out<T>(0) + i * slices.size);
      }
    });
  });
  return Status();
}

Result<std::vector<Tensor>> GatherNDStrings(const GatherNDAttrs& attrs, const NodeView& node,
                                            std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const Slices slices,
                 SlicesOf(in[1].bytes().data(), in[1].desc(), in[0].shape(),
                          static_cast<int>(attrs.batch_dims), attrs.negative_indices));
  std::vector<std::string> out;
  for (int64_t start : slices.starts) {
    const auto first = in[0].strings().begin() + start;
    out.insert(out.end(), first, first + slices.size);
  }
  return std::vector<Tensor>{Tensor::Strings(node.outputs[0].desc().shape, std::move(out))};
}

// Integers wrap; 16-bit floats are computed in float; a NaN wins over any number.
template <class T>
T Reduced(Reduction reduction, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return b;
  } else if constexpr (std::is_integral_v<T>) {
    const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
    switch (reduction) {
      case Reduction::kNone:
        return b;
      case Reduction::kAdd:
        return static_cast<T>(ua + ub);
      case Reduction::kMul:
        return static_cast<T>(ua * ub);
      case Reduction::kMax:
        return std::max(a, b);
      case Reduction::kMin:
        return std::min(a, b);
    }
  } else {
    switch (reduction) {
      case Reduction::kNone:
        return b;
      case Reduction::kAdd:
        return static_cast<T>(a + b);
      case Reduction::kMul:
        return static_cast<T>(a * b);
      case Reduction::kMax:
        return b > a || b != b ? b : a;
      case Reduction::kMin:
        return b < a || b != b ? b : a;
    }
  }
  return b;
}

// Calls fn with a type to set and reduce elements by. Floats of 8 bits are only stored, so that
// they can be set, as bytes, and not reduced.
template <class F>
Status DispatchReduced(DType dtype, Reduction reduction, F&& fn) {
  if (DispatchDType(dtype, fn)) return Status();
  if (reduction != Reduction::kNone || BitsOf(dtype) != 8) {
    return Unsupported("a reduction of ", dtype);
  }
  DispatchDType(DType::kU8, fn);
  return Status();
}

void CopyInput(const Args& args) {
  const auto bytes = static_cast<size_t>(args.in(0).bytes());
  if (args.inputs[0] != args.outputs[0]) std::memcpy(args.outputs[0], args.inputs[0], bytes);
}

Status ScatterElements(const ScatterElementsAttrs& attrs, const Args& args) {
  const TensorDesc x = args.in(0);
  ONCILLA_ASSIGN(const Reduction reduction, ParseReduction(attrs.reduction));
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.rank()));
  CopyInput(args);
  Status scattered;
  ONCILLA_TRY(DispatchReduced(x.dtype, reduction, [&]<class T>(TypeTag<T>) {
    const T* updates = args.In<T>(2);
    T* to = args.Out<T>(0);
    scattered = ForElements(
        x, args.in(1), axis, args.inputs[1], nullptr,
        [&](int64_t place, int64_t i) { to[place] = Reduced(reduction, to[place], updates[i]); });
  }));
  return scattered;
}

// A sum of strings is one behind the other; they have no other reductions.
void SetString(const std::string& reduction, std::string& to, const std::string& update) {
  if (reduction == "add") {
    to += update;
  } else {
    to = update;
  }
}

Result<std::vector<Tensor>> ScatterElementsStrings(const ScatterElementsAttrs& attrs,
                                                   const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, in[0].shape().rank()));
  std::vector<std::string> out = in[0].strings();
  ONCILLA_TRY(ForElements(in[0].desc(), in[1].desc(), axis, in[1].bytes().data(), nullptr,
                          [&](int64_t place, int64_t i) {
                            SetString(attrs.reduction, out[static_cast<size_t>(place)],
                                      in[2].strings()[static_cast<size_t>(i)]);
                          }));
  return std::vector<Tensor>{Tensor::Strings(in[0].shape(), std::move(out))};
}

Status ScatterND(const ScatterNDAttrs& attrs, const Args& args) {
  const TensorDesc x = args.in(0);
  ONCILLA_ASSIGN(const Reduction reduction, ParseReduction(attrs.reduction));
  ONCILLA_ASSIGN(const Slices slices,
                 SlicesOf(args.inputs[1], args.in(1), x.shape, 0, attrs.negative_indices));
  CopyInput(args);
  return DispatchReduced(x.dtype, reduction, [&]<class T>(TypeTag<T>) {
    const T* updates = args.In<T>(2);
    for (size_t i = 0; i < slices.starts.size(); ++i, updates += slices.size) {
      T* to = args.Out<T>(0) + slices.starts[i];
      for (int64_t j = 0; j < slices.size; ++j) to[j] = Reduced(reduction, to[j], updates[j]);
    }
  });
}

Result<std::vector<Tensor>> ScatterNDStrings(const ScatterNDAttrs& attrs, const NodeView&,
                                             std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const Slices slices, SlicesOf(in[1].bytes().data(), in[1].desc(), in[0].shape(), 0,
                                               attrs.negative_indices));
  std::vector<std::string> out = in[0].strings();
  auto update = in[2].strings().begin();
  for (int64_t start : slices.starts) {
    for (int64_t i = 0; i < slices.size; ++i, ++update) {
      SetString(attrs.reduction, out[static_cast<size_t>(start + i)], *update);
    }
  }
  return std::vector<Tensor>{Tensor::Strings(in[0].shape(), std::move(out))};
}

const KernelRow kRows[] = {
    BothRow<Gather, GatherStrings>("Gather", kStorable),
    BothRow<GatherElements, GatherElementsStrings>("GatherElements", kStorable),
    BothRow<GatherND, GatherNDStrings>("GatherND", kStorable),
    BothRow<ScatterElements, ScatterElementsStrings>("ScatterElements", kStorable),
    BothRow<ScatterND, ScatterNDStrings>("ScatterND", kStorable),
    HostRow<Compress>("Compress", kStorable),
};

}  // namespace

std::span<const KernelRow> IndexingKernels() { return kRows; }

}  // namespace oncilla::cpu
