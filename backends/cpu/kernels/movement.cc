// Movement ops on the CPU. engine/ops computes where elements go; this file has the rows of the
// table, and the ops that are not copies of strided boxes.
#include "engine/ops/array/movement.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/empty_strings.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/move.h"

namespace oncilla::cpu {
namespace {

// Pad: rows of blocks. A block is the contiguous part behind the last padded axis.
class Padding {
 public:
  static Result<Padding> Of(const PadAttrs& attrs, const NodeView& node) {
    Padding p;
    ONCILLA_ASSIGN(p.mode_, ParsePadMode(attrs.mode));
    ONCILLA_ASSIGN(const auto axes, PadAxes(attrs, node));
    const Shape from = node.inputs[0].shape.ToShape(), to = node.outputs[0].shape.ToShape();
    int rank = to.rank();
    const auto whole = [&](int i) {
      return axes[i].before == 0 && axes[i].start == 0 && from[i] == to[i];
    };
    while (rank > 0 && whole(rank - 1)) --rank;
    p.block_ = to.Product(rank, to.rank());
    int64_t stride = p.block_;
    for (int i = rank; i-- > 0; stride *= from[i]) {
      std::vector<int64_t> sources(static_cast<size_t>(to[i]));
      for (int64_t at = 0; at < to[i]; ++at) {
        const int64_t source = PadSource(p.mode_, axes[i], at);
        sources[static_cast<size_t>(at)] = source < 0 ? -1 : source * stride;
      }
      p.sources_.insert(p.sources_.begin(), std::move(sources));
    }
    p.rows_ = to.Product(0, rank - 1);
    return p;
  }

  template <class T>
  void Run(const T* x, T* y, const T& value, const Threads& threads) const {
    if (sources_.empty()) {
      std::copy_n(x, block_, y);
      return;
    }
    const auto& row = sources_.back();
    const int64_t width = static_cast<int64_t>(row.size()) * block_;
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(width, 1));
    ParallelFor(threads, rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        T* to = y + r * width;
        const int64_t base = RowBase(r);
        if (base < 0) {
          std::fill_n(to, width, value);
          continue;
        }
        for (size_t i = 0; i < row.size();) {
          // A run of blocks that are neighbours in x, or that are all padding.
          size_t next = i + 1;
          const int64_t step = row[i] < 0 ? 0 : block_;
          while (next < row.size() && row[next] == row[next - 1] + step) ++next;
          const auto n = static_cast<int64_t>(next - i) * block_;
          if (row[i] < 0) {
            std::fill_n(to, n, value);
          } else {
            std::copy_n(x + base + row[i], n, to);
          }
          to += n;
          i = next;
        }
      }
    });
  }

 private:
  // Where the row begins in x; -1 when it is all padding.
  int64_t RowBase(int64_t row) const {
    int64_t base = 0;
    for (size_t i = sources_.size() - 1; i-- > 0;) {
      const auto size = static_cast<int64_t>(sources_[i].size());
      const int64_t source = sources_[i][static_cast<size_t>(row % size)];
      if (source < 0) return -1;
      base += source;
      row /= size;
    }
    return base;
  }

  PadMode mode_ = PadMode::kConstant;
  int64_t block_ = 1, rows_ = 1;
  std::vector<std::vector<int64_t>> sources_;  // per axis: offset in x, or -1 for pad
};

Status Pad(const PadAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const Padding padding, Padding::Of(attrs, args.node));
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T zero) {
    padding.Run<T>(args.In<T>(0), args.Out<T>(0), args.has_input(2) ? *args.In<T>(2) : zero,
                   args.threads);
  });
  return Status();
}

Result<std::vector<Tensor>> PadStrings(const PadAttrs& attrs, const NodeView& node,
                                       std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const Padding padding, Padding::Of(attrs, node));
  const Shape shape = node.outputs[0].desc().shape;
  ONCILLA_ASSIGN(std::vector<std::string> out, EmptyStrings(shape.elements()));
  padding.Run<std::string>(in[0].strings().data(), out.data(),
                           node.has_input(2) ? in[2].strings()[0] : std::string(), nullptr);
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

// Reverses the first elements of the time axis; `lengths` states how many for each index of the
// batch axis.
template <class T>
Status ReverseRows(const ReverseSequenceAttrs& attrs, const Shape& x,
                   std::span<const int64_t> lengths, const T* from, T* to) {
  ONCILLA_ASSIGN(const int time, NormalizeAxis(attrs.time_axis, x.rank()));
  ONCILLA_ASSIGN(const int batch, NormalizeAxis(attrs.batch_axis, x.rank()));
  for (int64_t length : lengths) {
    if (length < 0 || length > x[time]) {
      return InvalidArgument("length ", length, " is out of range for axis ", time, " of size ",
                             x[time]);
    }
  }
  const auto strides = RowMajorStrides(x);
  const int inner_axis = std::max(time, batch);
  const int64_t block = x.Product(inner_axis + 1, x.rank());
  const int64_t n = block == 0 ? 0 : x.elements() / block;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t place = i * block;
    const int64_t t = place / strides[time] % x[time];
    const int64_t length = lengths[static_cast<size_t>(place / strides[batch] % x[batch])];
    const int64_t source = t < length ? length - 1 - t : t;
    std::copy_n(from + place + (source - t) * strides[time], block, to + place);
  }
  return Status();
}

Status ReverseSequence(const ReverseSequenceAttrs& attrs, const Args& args) {
  const auto lengths = ReadInts(args.inputs[1], args.in(1).dtype, args.in(1).elements());
  Status status;
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T) {
    status = ReverseRows(attrs, args.in(0).shape, lengths, args.In<T>(0), args.Out<T>(0));
  });
  return status;
}

Result<std::vector<Tensor>> ReverseSequenceStrings(const ReverseSequenceAttrs& attrs,
                                                   const NodeView&, std::span<const Tensor> in) {
  const auto lengths = ReadInts(in[1].bytes().data(), in[1].dtype(), in[1].elements());
  std::vector<std::string> out(in[0].strings().size());
  ONCILLA_TRY(ReverseRows(attrs, in[0].shape(), lengths, in[0].strings().data(), out.data()));
  return std::vector<Tensor>{Tensor::Strings(in[0].shape(), std::move(out))};
}

Status Bitcast(const BitcastAttrs&, const Args& args) {
  const auto bytes = static_cast<size_t>(args.in(0).bytes());
  if (args.out(0).bytes() != args.in(0).bytes()) {
    return InvalidArgument(args.in(0), " has another number of bytes than ", args.out(0));
  }
  std::memcpy(args.outputs[0], args.inputs[0], bytes);
  return Status();
}

// Complex numbers occur only at the inputs and outputs of a model, where they become pairs of real
// numbers.
constexpr DTypeSet kComplex = Set(DType::kC64) | Set(DType::kC128);

const KernelRow kRows[] = {
    Row<Bitcast>("Bitcast", kNumbers | kSmall | kComplex),
    MoveRow<WholeMoves>("Reshape"),
    MoveRow<WholeMoves>("Squeeze"),
    MoveRow<WholeMoves>("Unsqueeze"),
    MoveRow<WholeMoves>("Flatten"),
    MoveRow<TransposeMoves>("Transpose"),
    MoveRow<ConcatMoves>("Concat"),
    MoveRow<SplitMoves>("Split"),
    MoveRow<SliceMoves>("Slice"),
    MoveRow<StridedSliceMoves>("StridedSlice"),
    MoveRow<TileMoves>("Tile"),
    MoveRow<ExpandMoves>("Expand"),
    BothRow<Pad, PadStrings>("Pad", kStorable),
    MoveRow<ReverseMoves>("Reverse"),
    MoveRow<RollMoves>("Roll"),
    BothRow<ReverseSequence, ReverseSequenceStrings>("ReverseSequence", kStorable),
    MoveRow<DepthToSpaceMoves>("DepthToSpace"),
    MoveRow<SpaceToDepthMoves>("SpaceToDepth"),
    MoveRow<SpaceToBatchMoves>("SpaceToBatch"),
    MoveRow<BatchToSpaceMoves>("BatchToSpace"),
    MoveRow<WholeMoves>("EnsureShape"),
};

}  // namespace

std::span<const KernelRow> MovementKernels() { return kRows; }

}  // namespace oncilla::cpu
