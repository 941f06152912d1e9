// Indexing kernels of the CPU: plain, exact code. Indices are checked before anything is written.
#include <algorithm>
#include <cstring>

#include "backends/cpu/indices.h"
#include "backends/cpu/move.h"
#include "engine/ops/indexing.h"

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
void CopySlices(const GatherSizes& s, const std::vector<int64_t>& at, const T* x, T* y,
                ThreadPool* threads) {
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(s.inner, 1));
  ParallelFor(threads, s.batch * s.outer * s.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t slice = i / s.count;  // which [size, inner] of x
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

Status Gather(const GatherAttrs& attrs, const Args& args) {
  const GatherSizes s = SizesOf(attrs, args.node);
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
  std::vector<std::string> out(static_cast<size_t>(shape.elements()));
  CopySlices<std::string>(s, at, in[0].strings().data(), out.data(), nullptr);
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

void WriteInts(DType dtype, std::span<const int64_t> values, std::byte* to) {
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      std::transform(values.begin(), values.end(), reinterpret_cast<T*>(to),
                     [](int64_t v) { return static_cast<T>(v); });
    }
  });
}

// The integers that each of Shape, Size and Rank gives.
std::vector<int64_t> Counts(const ShapeAttrs& attrs, const Shape& shape) {
  const int64_t rank = shape.rank();
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = clamp(attrs.start), end = std::max(start, clamp(attrs.end));
  return std::vector<int64_t>(shape.begin() + start, shape.begin() + end);
}
std::vector<int64_t> Counts(const SizeAttrs&, const Shape& shape) { return {shape.elements()}; }
std::vector<int64_t> Counts(const RankAttrs&, const Shape& shape) { return {shape.rank()}; }

template <class Attrs>
Status Count(const Attrs& attrs, const Args& args) {
  WriteInts(args.out(0).dtype, Counts(attrs, args.in(0).shape), args.outputs[0]);
  return Status();
}

template <class Attrs>
Result<std::vector<Tensor>> CountStrings(const Attrs& attrs, const NodeView& node,
                                         std::span<const Tensor> in) {
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate(node.outputs[0].desc()));
  WriteInts(out.dtype(), Counts(attrs, in[0].shape()), out.mutable_bytes().data());
  return std::vector<Tensor>{std::move(out)};
}

Status Range(const NoAttrs&, const Args& args) {
  const int64_t n = args.out(0).elements();
  if (IsInteger(args.out(0).dtype)) {
    // Elements lie between start and limit, so wrapping arithmetic is exact.
    uint64_t start = 0, delta = 0;
    DispatchDType(args.out(0).dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_integral_v<T>) {
        // The values may be views into a file, which need not be aligned.
        T first, step;
        std::memcpy(&first, args.node.inputs[0].value.bytes().data(), sizeof(T));
        std::memcpy(&step, args.node.inputs[2].value.bytes().data(), sizeof(T));
        start = static_cast<uint64_t>(first);
        delta = static_cast<uint64_t>(step);
        for (int64_t i = 0; i < n; ++i) {
          args.Out<T>(0)[i] = static_cast<T>(start + static_cast<uint64_t>(i) * delta);
        }
      }
    });
    return Status();
  }
  ONCILLA_ASSIGN(const auto start, ToDoubles(args.node.inputs[0].value));
  ONCILLA_ASSIGN(const auto delta, ToDoubles(args.node.inputs[2].value));
  DispatchDType(args.out(0).dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < n; ++i) {
      args.Out<T>(0)[i] = static_cast<T>(start[0] + static_cast<double>(i) * delta[0]);
    }
  });
  return Status();
}

template <class T>
void WriteOneHot(const OneHotAttrs& attrs, const Shape& out, const std::vector<int64_t>& indices,
                 const T* values, T* y) {
  const auto axis = static_cast<int>(attrs.axis < 0 ? attrs.axis + out.rank() : attrs.axis);
  const int64_t depth = out[axis], inner = out.Product(axis + 1, out.rank());
  std::fill_n(y, out.elements(), values[0]);
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t at = indices[i];
    if (at < 0 && attrs.negative_indices) at += depth;
    if (at < 0 || at >= depth) continue;
    const auto place = static_cast<int64_t>(i);
    y[(place / inner * depth + at) * inner + place % inner] = values[1];
  }
}

Status OneHot(const OneHotAttrs& attrs, const Args& args) {
  const auto indices = ReadInts(args.inputs[0], args.in(0).dtype, args.in(0).elements());
  DispatchBytes(BytesOf(args.out(0).dtype), [&]<class T>(T) {
    WriteOneHot(attrs, args.out(0).shape, indices, args.In<T>(2), args.Out<T>(0));
  });
  return Status();
}

Result<std::vector<Tensor>> OneHotStrings(const OneHotAttrs& attrs, const NodeView& node,
                                          std::span<const Tensor> in) {
  const auto indices = ReadInts(in[0].bytes().data(), in[0].dtype(), in[0].elements());
  const Shape shape = node.outputs[0].desc().shape;
  std::vector<std::string> out(static_cast<size_t>(shape.elements()));
  WriteOneHot(attrs, shape, indices, in[2].strings().data(), out.data());
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

const KernelRow kRows[] = {
    BothRow<Gather, GatherStrings>("Gather", kAll),
    BothRow<Count<ShapeAttrs>, CountStrings<ShapeAttrs>>("Shape", kAll),
    BothRow<Count<SizeAttrs>, CountStrings<SizeAttrs>>("Size", kAll),
    BothRow<Count<RankAttrs>, CountStrings<RankAttrs>>("Rank", kAll),
    MoveRow<FillMoves>("Fill"),
    Row<Range>("Range", kNumbers),
    BothRow<OneHot, OneHotStrings>("OneHot", kIntegers),
};

}  // namespace

std::span<const KernelRow> IndexingKernels() { return kRows; }

}  // namespace oncilla::cpu
