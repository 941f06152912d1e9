// Shapes as values, and tensors made from a few numbers, on the CPU.
#include <algorithm>
#include <cstring>

#include "backends/cpu/empty_strings.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/move.h"
#include "engine/ops/array/indexing.h"

namespace oncilla::cpu {
namespace {

void WriteInts(DType dtype, std::span<const int64_t> values, std::byte* to) {
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      std::transform(values.begin(), values.end(), reinterpret_cast<T*>(to),
                     [](int64_t v) { return static_cast<T>(v); });
    }
  });
}

// The integers that Shape, Size or Rank returns.
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
    // All elements lie between start and limit, so arithmetic that wraps is exact.
    uint64_t start = 0, delta = 0;
    DispatchDType(args.out(0).dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_integral_v<T>) {
        // Values may be views into a mapped file, so they may be unaligned.
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
void WriteOneHot(const OneHotAttrs& attrs, const Shape& out, std::span<const int64_t> indices,
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
  ONCILLA_ASSIGN(std::vector<std::string> out, EmptyStrings(shape.elements()));
  WriteOneHot(attrs, shape, indices, in[2].strings().data(), out.data());
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

Status EyeLike(const EyeLikeAttrs& attrs, const Args& args) {
  const Shape shape = args.out(0).shape;
  DispatchDType(args.out(0).dtype, [&]<class T>(TypeTag<T>) {
    T* y = args.Out<T>(0);
    std::fill_n(y, shape.elements(), static_cast<T>(0.0f));
    for (int64_t i = 0; i < shape[0]; ++i) {
      const int64_t j = SaturatingAdd(i, attrs.k);
      if (j >= 0 && j < shape[1]) y[i * shape[1] + j] = static_cast<T>(1.0f);
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    BothRow<Count<ShapeAttrs>, CountStrings<ShapeAttrs>>("Shape", kStorable),
    BothRow<Count<SizeAttrs>, CountStrings<SizeAttrs>>("Size", kStorable),
    BothRow<Count<RankAttrs>, CountStrings<RankAttrs>>("Rank", kStorable),
    MoveRow<FillMoves>("Fill"),
    Row<Range>("Range", kNumbers),
    BothRow<OneHot, OneHotStrings>("OneHot", kIntegers),
    Row<EyeLike>("EyeLike", kFixedSize),
};

}  // namespace

std::span<const KernelRow> ShapeKernels() { return kRows; }

}  // namespace oncilla::cpu
