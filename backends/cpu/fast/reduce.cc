// Reductions of f32 and of 16-bit floats on vectors. Along the innermost axis each run is a row;
// along other axes rows are added to each other, as wide as the innermost kept axis.
//
// Long reductions are cut into pieces of a fixed size whose results are combined in order, so the
// result does not depend on the threads.
#include "backends/cpu/fast/reduce.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/fast/element_lanes.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/row_lanes.h"

namespace oncilla::cpu {
namespace {

constexpr int64_t kPiece = 32768;  // elements

struct KindOf {
  std::string_view op;
  RowReduction kind;
};
constexpr KindOf kKinds[] = {
    {"ReduceSum", RowReduction::kSum},
    {"ReduceMean", RowReduction::kSum},
    {"ReduceMax", RowReduction::kMax},
    {"ReduceMin", RowReduction::kMin},
    {"ReduceL1", RowReduction::kSumAbs},
    {"ReduceL2", RowReduction::kSumSquare},
    {"ReduceSumSquare", RowReduction::kSumSquare},
    {"ReduceLogSum", RowReduction::kSum},
    {"ReduceProd", RowReduction::kProduct},
    {"ReduceLogSumExp", RowReduction::kLogSumExp},
};

// The same for rows of 16-bit floats, widened kWidened elements at a time.
constexpr int64_t kWidened = 2048;  // elements

double ReduceRowOf(RowReduction kind, const float* x, int64_t n) { return ReduceRow(kind, x, n); }
template <class T>
double ReduceRowOf(RowReduction kind, const T* x, int64_t n) {
  float wide[kWidened];
  double total = StartOf(kind);
  for (int64_t i = 0; i < n; i += kWidened) {
    const int64_t count = std::min(kWidened, n - i);
    ToFloats(kDTypeOf<T>, x + i, count, wide);
    total = Combine(kind, total, ReduceRow(kind, wide, count));
  }
  return total;
}

void ReduceColumnsOf(RowReduction kind, const float* x, int64_t rows, int64_t step, int64_t width,
                     double* total) {
  ReduceColumns(kind, x, rows, step, width, total);
}
// width <= kWidened.
template <class T>
void ReduceColumnsOf(RowReduction kind, const T* x, int64_t rows, int64_t step, int64_t width,
                     double* total) {
  float wide[kWidened];
  const int64_t together = kWidened / width;
  for (int64_t r = 0; r < rows; r += together) {
    const int64_t count = std::min(together, rows - r);
    for (int64_t i = 0; i < count; ++i) {
      ToFloats(kDTypeOf<T>, x + (r + i) * step, width, wide + i * width);
    }
    ReduceColumns(kind, wide, count, width, width, total);
  }
}

template <class T>
class FastReduce : public CpuKernel {
 public:
  FastReduce(const NodeView& node, RowReduction kind, ReduceLoops loops)
      : CpuKernel(node), kind_(kind), loops_(std::move(loops)) {
    rows_ = !loops_.reduced.empty() && loops_.reduced.back().stride == 1;
    auto& inner = rows_ ? loops_.reduced : loops_.kept;
    run_ = inner.back().size;
    inner.pop_back();
  }

  std::string description() const override {
    return rows_ ? "vectors along rows" : "vectors across rows";
  }

  Status Run(const Args& args) const override {
    const std::string_view op = args.node.op->name;
    const double count = static_cast<double>(loops_.count);
    auto finish = [&](double v) {
      if (op == "ReduceMean") v /= count;
      if (op == "ReduceL2") v = std::sqrt(v);
      if (op == "ReduceLogSum") v = std::log(v);
      return T(static_cast<float>(v));
    };
    if (rows_) {
      AlongRows(args, finish);
    } else {
      AcrossRows(args, finish);
    }
    return Status();
  }

 private:
  template <class F>
  void AlongRows(const Args& args, F&& finish) const {
    const T* x = args.In<T>(0);
    T* y = args.Out<T>(0);
    const int64_t runs = loops_.count / run_;  // per output
    const int64_t pieces = (run_ + kPiece - 1) / kPiece;
    auto piece = [&](int64_t output, int64_t i) {
      const int64_t from = i % pieces * kPiece;
      const T* row = x + OffsetOf(loops_.kept, output) + OffsetOf(loops_.reduced, i / pieces);
      return ReduceRowOf(kind_, row + from, std::min(kPiece, run_ - from));
    };
    auto whole = [&](int64_t output) {
      double total = StartOf(kind_);
      for (int64_t i = 0; i < runs * pieces; ++i) total = Combine(kind_, total, piece(output, i));
      return total;
    };
    if (loops_.outputs >= 8 || loops_.count <= kPiece) {
      const int64_t grain = std::max<int64_t>(1, kPiece / loops_.count);
      ParallelFor(args.threads, loops_.outputs, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = finish(whole(i));
      });
      return;
    }
    // Few long reductions: every piece is a task of its own, whose results are combined in order.
    const int64_t per_output = runs * pieces;
    std::vector<double> partial(static_cast<size_t>(loops_.outputs * per_output));
    const int64_t grain = std::max<int64_t>(1, kPiece / std::min(run_, kPiece));
    ParallelFor(args.threads, loops_.outputs * per_output, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) partial[i] = piece(i / per_output, i % per_output);
    });
    for (int64_t o = 0; o < loops_.outputs; ++o) {
      double total = StartOf(kind_);
      for (int64_t i = 0; i < per_output; ++i) {
        total = Combine(kind_, total, partial[o * per_output + i]);
      }
      y[o] = finish(total);
    }
  }

  template <class F>
  void AcrossRows(const Args& args, F&& finish) const {
    const T* x = args.In<T>(0);
    T* y = args.Out<T>(0);
    // A piece takes rows of the innermost reduced axis; blocks of columns fit a cache.
    const ReduceLoops::Axis rows = loops_.reduced.back();
    const std::span<const ReduceLoops::Axis> outer(loops_.reduced.data(),
                                                   loops_.reduced.size() - 1);
    const int64_t repeats = loops_.count / rows.size;
    const int64_t columns = std::min<int64_t>(run_, 512);
    const int64_t blocks = (run_ + columns - 1) / columns;
    const int64_t outputs = loops_.outputs / run_ * blocks;  // blocks of columns
    const int64_t piece_rows = std::max<int64_t>(128, kPiece / columns);
    const int64_t pieces = (rows.size + piece_rows - 1) / piece_rows;
    auto add = [&](int64_t output, int64_t i, double* total) {
      const int64_t first = output % blocks * columns, row = i % pieces * piece_rows;
      const T* from = x + OffsetOf(loops_.kept, output / blocks) + first +
                      OffsetOf(outer, i / pieces) + row * rows.stride;
      ReduceColumnsOf(kind_, from, std::min(piece_rows, rows.size - row), rows.stride,
                      std::min(columns, run_ - first), total);
    };
    auto store = [&](int64_t output, const double* total) {
      const int64_t first = output % blocks * columns;
      T* to = y + output / blocks * run_ + first;
      for (int64_t c = 0; c < std::min(columns, run_ - first); ++c) to[c] = finish(total[c]);
    };
    const int64_t per_output = repeats * pieces;
    if (outputs >= 8 || per_output == 1) {
      const int64_t grain = std::max<int64_t>(1, kPiece / (columns * loops_.count));
      ParallelFor(args.threads, outputs, grain, [&](int64_t begin, int64_t end) {
        std::vector<double> total(static_cast<size_t>(columns));
        for (int64_t o = begin; o < end; ++o) {
          std::fill(total.begin(), total.end(), StartOf(kind_));
          for (int64_t i = 0; i < per_output; ++i) add(o, i, total.data());
          store(o, total.data());
        }
      });
      return;
    }
    std::vector<double> partial(static_cast<size_t>(outputs * per_output * columns),
                                StartOf(kind_));
    const int64_t grain =
        std::max<int64_t>(1, kPiece / (columns * std::min(piece_rows, rows.size)));
    ParallelFor(args.threads, outputs * per_output, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        add(i / per_output, i % per_output, &partial[i * columns]);
      }
    });
    for (int64_t o = 0; o < outputs; ++o) {
      double* total = &partial[o * per_output * columns];
      for (int64_t i = 1; i < per_output; ++i) {
        for (int64_t c = 0; c < columns; ++c) {
          total[c] = Combine(kind_, total[c], total[i * columns + c]);
        }
      }
      store(o, total);
    }
  }

  const RowReduction kind_;
  ReduceLoops loops_;  // without the axis of the runs
  bool rows_ = false;
  int64_t run_ = 0;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastReduce(const NodeView& node) {
  std::unique_ptr<CpuKernel> none;
  const auto* row = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const auto& r) { return r.op == node.op->name; });
  const DType dtype = node.inputs[0].dtype;
  const bool integers = dtype == DType::kI32 && node.op->name == "ReduceSum";
  if (row == std::end(kKinds) || (!IsCarried(dtype) && !integers)) return none;
  const Shape shape = node.inputs[0].shape.ToShape();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ReduceAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const auto axes,
                 ReducedAxes(attrs, node.has_input(1) ? &node.inputs[1] : nullptr, shape.rank()));
  ReduceLoops loops = MakeReduceLoops(shape, axes);
  if (loops.count == 0 || loops.outputs == 0 || loops.reduced.empty()) return none;
  const bool along = loops.reduced.back().stride == 1;
  if ((along ? loops.reduced : loops.kept).back().size < 8) return none;
  if (integers) return MakeFastIntegerSum(node, std::move(loops));
  std::unique_ptr<CpuKernel> kernel;
  ForCarried(dtype, [&]<class T>(TypeTag<T>) {
    kernel = std::make_unique<FastReduce<T>>(node, row->kind, std::move(loops));
  });
  return kernel;
}

}  // namespace oncilla::cpu
