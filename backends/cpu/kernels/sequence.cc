// Ops that go through sequences, on the CPU: plain code with sums in double.
#include "engine/ops/nn/sequence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/algorithms/audio.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/ctc_beam.h"
#include "backends/cpu/kernels/indices.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <class T>
void Steps(const BlockLstmAttrs& attrs, const Args& args, int64_t last) {
  const Shape shape = args.out(0).shape;
  const int64_t samples = shape[1], hidden = shape[2], step = samples * hidden;
  const T *gates = args.In<T>(0), *recurrent = args.In<T>(1);
  const T* peepholes = args.has_input(5) ? args.In<T>(5) : nullptr;
  for (size_t k = 0; k < 7; ++k) std::fill_n(args.Out<T>(k), shape.elements(), T{});
  ParallelFor(args.threads, samples, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> sum(static_cast<size_t>(4 * hidden));
    Lookout look(args.threads);
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t t = 0; t < last; ++t) {
        if (look.Ended(4 * hidden * hidden)) return;
        const int64_t now = t * step + n * hidden;
        const T* h = t == 0 ? args.In<T>(3) + n * hidden : args.Out<T>(6) + now - step;
        const T* c = t == 0 ? args.In<T>(4) + n * hidden : args.Out<T>(1) + now - step;
        const T* in = gates + (t * samples + n) * 4 * hidden;
        for (int64_t j = 0; j < 4 * hidden; ++j) {
          sum[static_cast<size_t>(j)] = static_cast<double>(in[j]);
        }
        for (int64_t k = 0; k < hidden; ++k) {
          const auto factor = static_cast<double>(h[k]);
          for (int64_t j = 0; j < 4 * hidden; ++j) {
            sum[static_cast<size_t>(j)] +=
                factor * static_cast<double>(recurrent[k * 4 * hidden + j]);
          }
        }
        for (int64_t j = 0; j < hidden; ++j) {
          const auto gate = [&](int64_t g) { return sum[static_cast<size_t>(g * hidden + j)]; };
          const auto peep = [&](int64_t g, double cell) {
            return peepholes == nullptr ? 0.0
                                        : static_cast<double>(peepholes[g * hidden + j]) * cell;
          };
          const auto before = static_cast<double>(c[j]);
          const double i = Sigmoid(gate(0) + peep(0, before));
          const double f = Sigmoid(gate(1) + attrs.forget + peep(1, before));
          const double g = std::tanh(gate(2));
          double cell = g * i + before * f;
          if (attrs.clip > 0) cell = std::clamp(cell, -attrs.clip, attrs.clip);
          const double o = Sigmoid(gate(3) + peep(2, cell)), y = std::tanh(cell);
          const double values[] = {i, cell, f, o, g, y, y * o};
          for (size_t k = 0; k < 7; ++k) {
            args.Out<T>(k)[now + j] = static_cast<T>(static_cast<float>(values[k]));
            if constexpr (std::is_same_v<T, double>) args.Out<T>(k)[now + j] = values[k];
          }
        }
      }
    }
  });
}

Status BlockLstm(const BlockLstmAttrs& attrs, const Args& args) {
  const int64_t steps = ReadInts(args.inputs[2], args.in(2).dtype, 1)[0];
  const int64_t all = args.out(0).shape[0];
  if (steps < 0 || steps > all) {
    return InvalidArgument("seq_len_max is ", steps, ", not between 0 and ", all);
  }
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) Steps<T>(attrs, args, steps);
  });
  return {};
}

Result<std::vector<Tensor>> CtcGreedy(const CtcGreedyAttrs& attrs, const NodeView&,
                                      std::span<const Tensor> in) {
  const Shape& x = in[0].shape();
  const int64_t steps = x[0], batch = x[1], classes = x[2];
  ONCILLA_ASSIGN(const std::vector<int64_t> lengths, ToInt64s(in[1]));
  for (int64_t length : lengths) {
    if (length < 0 || length > steps) {
      return InvalidArgument("sequence_length ", length, " is not between 0 and ", steps);
    }
  }
  const int64_t blank = attrs.blank < 0 ? attrs.blank + classes : attrs.blank;
  std::vector<int64_t> places, values;
  int64_t widest = 0;
  ONCILLA_ASSIGN(Tensor sums, Tensor::Allocate({in[0].dtype(), {batch, 1}}));
  DispatchDType(in[0].dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      for (int64_t n = 0; n < batch; ++n) {
        // Takes the best class of each step, merges repeats and drops blanks. The score is the
        // negated sum of the best classes' inputs.
        double sum = 0;
        int64_t before = -1, count = 0;
        for (int64_t t = 0; t < lengths[static_cast<size_t>(n)]; ++t) {
          const T* row = in[0].As<T>().data() + (t * batch + n) * classes;
          int64_t best = 0;
          for (int64_t k = 1; k < classes; ++k) {
            if (static_cast<double>(row[k]) > static_cast<double>(row[best])) best = k;
          }
          sum -= static_cast<double>(row[best]);
          if (best != blank && !(attrs.merge && best == before)) {
            places.insert(places.end(), {n, count++});
            values.push_back(best);
          }
          before = best;
        }
        widest = std::max(widest, count);
        sums.MutableAs<T>()[static_cast<size_t>(n)] = static_cast<T>(static_cast<float>(sum));
        if constexpr (std::is_same_v<T, double>) {
          sums.MutableAs<T>()[static_cast<size_t>(n)] = sum;
        }
      }
    }
  });
  const auto count = std::ssize(values);
  return std::vector<Tensor>{Tensor::Of<int64_t>(DType::kI64, {count, 2}, places),
                             Tensor::Int64s(values),
                             Tensor::Int64s(std::vector<int64_t>{batch, widest}), std::move(sums)};
}

Result<std::vector<Tensor>> CtcBeam(const CtcBeamAttrs& attrs, const NodeView&,
                                    std::span<const Tensor> in) {
  const Shape& x = in[0].shape();
  const int64_t steps = x[0], batch = x[1], classes = x[2];
  ONCILLA_ASSIGN(const std::vector<int64_t> lengths, ToInt64s(in[1]));
  ONCILLA_ASSIGN(const std::vector<double> logits, ToDoubles(in[0]));
  const auto paths = static_cast<size_t>(attrs.paths);
  std::vector<std::vector<int64_t>> places(paths), values(paths);
  std::vector<int64_t> widest(paths);
  std::vector<double> chances;
  for (int64_t n = 0; n < batch; ++n) {
    const int64_t length = lengths[static_cast<size_t>(n)];
    if (length < 0 || length > steps) {
      return InvalidArgument("sequence_length ", length, " is not between 0 and ", steps);
    }
    ONCILLA_ASSIGN(const std::vector<CtcPath> best, SearchCtcBeam(attrs, length, [&](int64_t t) {
                     return std::span(logits).subspan(
                         static_cast<size_t>((t * batch + n) * classes),
                         static_cast<size_t>(classes));
                   }));
    for (size_t p = 0; p < paths; ++p) {
      const auto count = std::ssize(best[p].classes);
      for (int64_t i = 0; i < count; ++i) places[p].insert(places[p].end(), {n, i});
      values[p].insert(values[p].end(), best[p].classes.begin(), best[p].classes.end());
      widest[p] = std::max(widest[p], count);
      chances.push_back(best[p].chance);
    }
  }
  std::vector<Tensor> out;
  for (size_t p = 0; p < paths; ++p) {
    out.push_back(Tensor::Of<int64_t>(DType::kI64, {std::ssize(values[p]), 2}, places[p]));
  }
  for (size_t p = 0; p < paths; ++p) out.push_back(Tensor::Int64s(values[p]));
  for (size_t p = 0; p < paths; ++p) {
    out.push_back(Tensor::Int64s(std::vector<int64_t>{batch, widest[p]}));
  }
  ONCILLA_ASSIGN(Tensor sums, Tensor::Allocate({in[0].dtype(), {batch, attrs.paths}}));
  DispatchDType(in[0].dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, double>) {
      std::copy(chances.begin(), chances.end(), sums.MutableAs<T>().begin());
    } else if constexpr (!std::is_integral_v<T>) {
      for (size_t i = 0; i < chances.size(); ++i) {
        sums.MutableAs<T>()[i] = static_cast<T>(static_cast<float>(chances[i]));
      }
    }
  });
  out.push_back(std::move(sums));
  return out;
}

Result<std::vector<Tensor>> WarpPath(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const int64_t rows = in[0].shape()[0], columns = in[0].shape()[1];
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (rows > kMost || columns > kMost) {
    return InvalidArgument("costs of the shape ", in[0].shape(), " have too many rows or columns");
  }
  const auto costs = in[0].As<float>();
  enum Step : uint8_t { kBoth, kRow, kColumn };
  // The step that leads to each element, and the sums of a row after its start.
  std::vector<uint8_t> steps(static_cast<size_t>(in[0].elements()));
  std::vector<float> sums(static_cast<size_t>(columns) + 1, INFINITY);
  sums[0] = 0;
  for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
    float corner = sums[0];
    sums[0] = INFINITY;
    for (size_t j = 0; j < static_cast<size_t>(columns); ++j) {
      const float above = sums[j + 1], before = sums[j];
      const size_t at = i * static_cast<size_t>(columns) + j;
      const bool both = corner < above && corner < before;
      const bool down = !both && above < corner && above < before;
      steps[at] = both ? kBoth : down ? kRow : kColumn;
      sums[j + 1] = (both ? corner : down ? above : before) + costs[at];
      corner = above;
    }
  }
  std::vector<int32_t> places[2];
  for (int64_t i = rows - 1, j = columns - 1; i >= 0 && j >= 0;) {
    places[0].push_back(static_cast<int32_t>(i));
    places[1].push_back(static_cast<int32_t>(j));
    const uint8_t step = steps[static_cast<size_t>(i * columns + j)];
    if (step != kColumn) --i;
    if (step != kRow) --j;
  }
  std::vector<int32_t> path;
  for (const auto& list : places) path.insert(path.end(), list.rbegin(), list.rend());
  return std::vector<Tensor>{Tensor::Of<int32_t>(DType::kI32, {2, std::ssize(places[0])}, path)};
}

const KernelRow kRows[] = {
    HostRow<CtcBeam>("CtcBeam", kFloats),
    Row<BlockLstm>("BlockLstm", kFloats),
    HostRow<CtcGreedy>("CtcGreedy", kFloats),
    HostRow<DecodeWav>("DecodeWav", kStrings),
    HostRow<EncodeWav>("EncodeWav", Set(DType::kF32)),
    Row<Spectrogram>("Spectrogram", Set(DType::kF32)),
    Row<Mfcc>("Mfcc", Set(DType::kF32)),
    HostRow<WarpPath>("WarpPath", Set(DType::kF32)),
};

}  // namespace

std::span<const KernelRow> SequenceKernels() { return kRows; }

}  // namespace oncilla::cpu
