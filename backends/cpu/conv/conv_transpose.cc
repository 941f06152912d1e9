// The fast ConvTranspose for float and 16-bit floats: one convolution of stride 1 for each position
// of outputs within a stride, written to these outputs.
//
// Output o sees inputs (o + pad - k * dilation) / stride, for the taps k for which this is an
// integer. Outputs with the same remainder r = (o + pad) % stride therefore see the same taps, and
// from one such output to the next they see neighbouring inputs:
//
//   stride 2, kernel 4, pad 1:   o   0 1 2 3 4 5      r = 1: o = 0 2 4, taps 1 3
//                                r   1 0 1 0 1 0      r = 0: o = 1 3 5, taps 0 2
//
// Along three axes there is a phase for each triple of remainders: a product over the padded input
// (gemm.h) whose rows are the phase's outputs, `stride` apart in the result.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/conv/conv_parts.h"
#include "backends/cpu/conv/conv_transpose_depthwise.h"
#include "backends/cpu/conv/conv_transpose_fold.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/packed_form.h"
#include "backends/cpu/gemm/gemm.h"
#include "engine/ops/nn/conv.h"

namespace oncilla::cpu {
namespace {

// Plain code computes more phases than this.
constexpr int64_t kMostPhases = 64;

using Remainders = std::array<int64_t, kMaxSpatial>;

// The phases as far as attributes and the filter determine them, as a packing must know them.
class PhasedFilter {
 public:
  // `filter` is [spatial.., out channels of a group, in channels], and not empty.
  static Result<PhasedFilter> Of(const ConvTransposeAttrs& attrs, const Shape& filter) {
    const int spatial = filter.rank() - 2;
    ONCILLA_ASSIGN(const WindowSpec spec, MakeWindowSpec(spatial, attrs.strides, attrs.dilations,
                                                         attrs.pads, attrs.auto_pad));
    PhasedFilter f;
    f.groups_ = attrs.groups;
    f.out_group_ = filter[spatial];
    f.in_channels_ = filter.back();
    for (int i = 0; i < spatial; ++i) {
      WindowAxis& axis = f.axis_[static_cast<size_t>(kMaxSpatial - spatial + i)];
      axis.kernel = filter[i];
      axis.stride = spec.stride[static_cast<size_t>(i)];
      axis.dilation = spec.dilation[static_cast<size_t>(i)];
    }
    return f;
  }

  int64_t phases() const {
    return SaturatingMul(SaturatingMul(axis_[0].stride, axis_[1].stride), axis_[2].stride);
  }
  // Products of one column each, as depthwise filters have, would leave most of a tile empty.
  bool pays() const { return phases() <= kMostPhases && out_group_ > 1; }
  // Everything that decides what is packed, besides the shape of the filter.
  std::string name() const {
    std::string name = StrCat("phases g", groups_);
    for (const WindowAxis& axis : axis_) name += StrCat(' ', axis.stride, '/', axis.dilation);
    return name;
  }
  int64_t in_group() const { return in_channels_ / groups_; }
  int64_t out_group() const { return out_group_; }

  Remainders RemaindersOf(int64_t phase) const {
    Remainders r;
    for (size_t i = kMaxSpatial; i-- > 0; phase /= axis_[i].stride) r[i] = phase % axis_[i].stride;
    return r;
  }
  // Calls f(depth, height, width) with the taps that outputs of these remainders see, in order.
  template <class F>
  void ForTaps(const Remainders& r, F&& f) const {
    for (int64_t d = 0; d < axis_[0].kernel; ++d) {
      for (int64_t h = 0; Sees(0, d, r) && h < axis_[1].kernel; ++h) {
        for (int64_t w = 0; Sees(1, h, r) && w < axis_[2].kernel; ++w) {
          if (Sees(2, w, r)) f(d, h, w);
        }
      }
    }
  }
  int64_t DepthOf(const Remainders& r) const {
    int64_t taps = 0;
    ForTaps(r, [&](int64_t, int64_t, int64_t) { ++taps; });
    return taps * in_group();
  }
  // The size of all phases and groups, which are packed one after the other.
  template <class Packed>
  int64_t PackedElements() const {
    int64_t elements = 0;
    for (int64_t phase = 0; phase < phases(); ++phase) {
      elements += groups_ * PackedCount<Packed>(DepthOf(RemaindersOf(phase)), out_group_);
    }
    return elements;
  }
  template <class T, class Packed>
  void Pack(const Threads& threads, const T* filter, Packed* to) const {
    std::vector<T> dense;  // [column][depth] of a group
    for (int64_t phase = 0; phase < phases(); ++phase) {
      const Remainders r = RemaindersOf(phase);
      const int64_t depth = DepthOf(r);
      dense.resize(static_cast<size_t>(depth * out_group_));
      for (int64_t group = 0; group < groups_; ++group) {
        T* at = dense.data();
        ForTaps(r, [&](int64_t d, int64_t h, int64_t w) {
          const int64_t tap = (d * axis_[1].kernel + h) * axis_[2].kernel + w;
          const T* from = filter + tap * out_group_ * in_channels_ + group * in_group();
          for (int64_t n = 0; n < out_group_; ++n, from += in_channels_) {
            std::copy_n(from, in_group(), at + n * depth);
          }
          at += in_group();
        });
        cpu::Pack(threads, dense.data(), 1, depth, depth, out_group_, to);
        to += PackedCount<Packed>(depth, out_group_);
      }
    }
  }

 private:
  bool Sees(size_t axis, int64_t tap, const Remainders& r) const {
    return tap * axis_[axis].dilation % axis_[axis].stride == r[axis];
  }

  std::array<WindowAxis, kMaxSpatial> axis_;  // kernel, stride and dilation
  int64_t groups_ = 1, out_group_ = 1, in_channels_ = 1;
};

// The first output and the products of each phase, and the input with the zeros around it that they
// need.
class Phases {
 public:
  struct Phase {
    ProductSizes sizes;  // with `taps`
    std::vector<int64_t> taps;
    int64_t c = 0, packed = 0;  // elements of the result and of the packed filter before it
    Split split;
    int64_t first_task = 0;  // over all phases and groups
  };

  template <class Packed>
  static Phases Of(const PhasedFilter& filter, const WindowGeometry& g) {
    Phases all;
    all.Pad(filter, g);
    // Larger than any memory, so that the scratch will be refused.
    if (all.padding_.in_floats == std::numeric_limits<int64_t>::max()) return all;
    int64_t packed = 0;
    for (int64_t i = 0; i < filter.phases(); ++i) {
      const Remainders r = filter.RemaindersOf(i);
      Phase phase;
      phase.packed = packed;
      packed += g.groups * PackedCount<Packed>(filter.DepthOf(r), filter.out_group());
      if (all.Place(filter, g, r, &phase)) all.phases_.push_back(std::move(phase));
    }
    for (Phase& phase : all.phases_) {
      phase.sizes.taps = phase.taps.data();
      phase.split = SplitOf(phase.sizes, g.groups * std::ssize(all.phases_));
      phase.first_task = all.tasks_;
      all.tasks_ += g.groups * phase.split.tasks();
    }
    return all;
  }

  int64_t tasks() const { return tasks_; }
  int64_t count() const { return std::ssize(phases_); }
  const Phase& PhaseOf(int64_t task) const {
    const auto after =
        std::upper_bound(phases_.begin(), phases_.end(), task,
                         [](int64_t t, const Phase& phase) { return t < phase.first_task; });
    return *(after - 1);
  }
  // The input in the form that FillPadded takes, and its padding.
  const WindowGeometry& input() const { return input_; }
  const ConvProduct& padding() const { return padding_; }
  int64_t padded_elements() const { return padding_.pads ? padding_.in_floats : 0; }

 private:
  // The first output of remainder r, and the input that tap k of it sees.
  static int64_t FirstOutput(const WindowAxis& axis, int64_t r) {
    const int64_t o = (r - axis.pad_begin) % axis.stride;
    return o < 0 ? o + axis.stride : o;
  }
  static int64_t InputOf(const WindowAxis& axis, int64_t o, int64_t k) {
    return (o + axis.pad_begin - k * axis.dilation) / axis.stride;  // which is whole
  }

  void Pad(const PhasedFilter& filter, const WindowGeometry& g) {
    Remainders first{}, last{};  // of the inputs seen
    for (size_t i = 0; i < kMaxSpatial; ++i) last[i] = g.axis[i].out - 1;
    for (int64_t i = 0; i < filter.phases(); ++i) {
      const Remainders r = filter.RemaindersOf(i);
      filter.ForTaps(r, [&](int64_t d, int64_t h, int64_t w) {
        const int64_t tap[] = {d, h, w};
        for (size_t a = 0; a < kMaxSpatial; ++a) {
          const WindowAxis& axis = g.axis[a];
          const int64_t o = FirstOutput(axis, r[a]);
          if (o >= axis.in) return;
          const int64_t at = InputOf(axis, o, tap[a]);
          first[a] = std::min(first[a], at);
          last[a] = std::max(last[a], at + (axis.in - 1 - o) / axis.stride);
        }
      });
    }
    input_.batch = g.batch;
    input_.in_channels = g.in_channels;
    padding_.in_floats = SaturatingMul(g.batch, g.in_channels);
    for (size_t a = 0; a < kMaxSpatial; ++a) {
      input_.axis[a].in = g.axis[a].out;
      padding_.before[a] = -first[a];
      padding_.size[a] = last[a] + 1 - first[a];
      padding_.pads |= padding_.size[a] > g.axis[a].out;
      padding_.in_floats = SaturatingMul(padding_.in_floats, padding_.size[a]);
    }
  }

  // Returns false if no output has these remainders.
  bool Place(const PhasedFilter& filter, const WindowGeometry& g, const Remainders& r,
             Phase* phase) const {
    Remainders o, count;
    for (size_t a = 0; a < kMaxSpatial; ++a) {
      o[a] = FirstOutput(g.axis[a], r[a]);
      if (o[a] >= g.axis[a].in) return false;
      count[a] = (g.axis[a].in - 1 - o[a]) / g.axis[a].stride + 1;
    }
    const std::array<int64_t, kMaxSpatial>& size = padding_.size;
    const int64_t a_step[] = {size[1] * size[2] * g.in_channels, size[2] * g.in_channels,
                              g.in_channels};
    const int64_t c_step[] = {g.axis[1].in * g.axis[2].in * g.out_channels,
                              g.axis[2].in * g.out_channels, g.out_channels};
    filter.ForTaps(r, [&](int64_t d, int64_t h, int64_t w) {
      const int64_t tap[] = {d, h, w};
      int64_t at = 0;
      for (size_t a = 0; a < kMaxSpatial; ++a) {
        at += (InputOf(g.axis[a], o[a], tap[a]) + padding_.before[a]) * a_step[a];
      }
      phase->taps.push_back(at);
    });
    ProductSizes& p = phase->sizes;
    p.tap_count = std::ssize(phase->taps);
    p.run = filter.in_group();
    p.columns = filter.out_group();
    p.line_rows = count[2];
    p.row_step = a_step[2];
    p.c_step = g.axis[2].stride * c_step[2];
    const int64_t lines[] = {g.batch, count[0], count[1]};
    std::copy_n(lines, kMaxSpatial, p.line_count);
    p.line_step[0] = size[0] * a_step[0];
    p.c_line_step[0] = g.axis[0].in * c_step[0];
    for (size_t a = 0; a < 2; ++a) {
      p.line_step[a + 1] = a_step[a];
      p.c_line_step[a + 1] = g.axis[a].stride * c_step[a];
    }
    for (size_t a = 0; a < kMaxSpatial; ++a) phase->c += o[a] * c_step[a];
    return true;
  }

  std::vector<Phase> phases_;
  WindowGeometry input_;
  ConvProduct padding_;
  int64_t tasks_ = 0;
};

template <class T, class Packed>
class PhasedConvTranspose : public CpuKernel {
 public:
  PhasedConvTranspose(const NodeView& node, const PhasedFilter& filter, const WindowGeometry& g)
      : CpuKernel(node),
        g_(g),
        phases_(Phases::Of<Packed>(filter, g)),
        in_group_(filter.in_group()) {}

  int64_t scratch_bytes() const override {
    return SaturatingMul(sizeof(T), phases_.padded_elements());
  }
  std::string description() const override {
    return StrCat("gemm ", TileNameOf<Packed>(), Stored<T>(), " packed, ", phases_.count(),
                  phases_.count() == 1 ? " phase" : " phases",
                  phases_.padding().pads ? ", pads" : "",
                  g_.groups > 1 ? StrCat(", ", g_.groups, " groups") : "");
  }

  Status Run(const Args& args) const override {
    const T* x = args.In<T>(0);
    if (phases_.padding().pads) {
      T* padded = reinterpret_cast<T*>(args.scratch);
      FillPadded(args.threads, phases_.input(), phases_.padding(), x, padded);
      x = padded;
    }
    const T* bias = args.has_input(2) ? args.In<T>(2) : nullptr;
    ParallelFor(args.threads, phases_.tasks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Phases::Phase& phase = phases_.PhaseOf(i);
        const int64_t task = i - phase.first_task, group = task / phase.split.tasks();
        Product<T, Packed> p;
        static_cast<ProductSizes&>(p) = phase.sizes;
        p.a = x + group * in_group_;
        p.b = args.In<Packed>(1) + phase.packed + group * PackedCount<Packed>(p.depth(), p.columns);
        p.c = args.Out<T>(0) + phase.c + group * p.columns;
        if (bias != nullptr) p.epilogue.bias = bias + group * p.columns;
        RunTask(p, phase.split, task % phase.split.tasks());
      }
    });
    return Status();
  }

 private:
  const WindowGeometry g_;
  const Phases phases_;
  const int64_t in_group_;
};

// The way in which a node is computed. It depends on attributes and the filter alone, as packings
// do.
struct Way {
  bool folds = false, depthwise = false;
  std::optional<PhasedFilter> phased;  // none of them: plain code
};
Result<Way> WayOf(const NodeView& node, const ConvTransposeAttrs& attrs) {
  Way way;
  const Fact& fact = node.inputs[1];
  if (!IsCarried(fact.dtype) || !fact.fixed() || fact.desc().elements() == 0) return way;
  const Shape filter = fact.desc().shape;
  ONCILLA_ASSIGN(const PhasedFilter phased, PhasedFilter::Of(attrs, filter));
  way.depthwise = IsDepthwiseConvTranspose(filter, attrs.groups) && phased.phases() <= kMostPhases;
  if (way.depthwise || !fact.constant) return way;
  way.folds = fact.dtype == DType::kF32 && FoldsConvTranspose(filter, attrs.groups);
  if (!way.folds && phased.pays()) way.phased = phased;
  return way;
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastConvTranspose(const NodeView& node) {
  if (node.outputs[0].desc().elements() == 0) return nullptr;
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvTransposeAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const Way way, WayOf(node, attrs));
  ONCILLA_ASSIGN(const WindowGeometry g, ConvTransposeGeometry(attrs, node));
  if (way.folds) return MakeFoldedConvTranspose(node, g);
  if (way.depthwise) return MakeDepthwiseConvTranspose(node, g);
  if (!way.phased) return nullptr;
  return WithPackedForm(
      node.inputs[1].dtype, [&]<class T, class Packed>(TypeTag<T>, TypeTag<Packed>) {
        return std::unique_ptr<CpuKernel>(
            std::make_unique<PhasedConvTranspose<T, Packed>>(node, *way.phased, g));
      });
}

Result<CpuPacking> ConvTransposePacking(const NodeView& node, int input) {
  const TensorDesc desc = node.inputs[static_cast<size_t>(input)].desc();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvTransposeAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const Way way, WayOf(node, attrs));
  if (input == 1 && way.folds) return FoldedConvTransposePacking(desc, attrs.groups);
  if (input != 1 || !way.phased) return CpuPacking{"dense", desc.bytes(), nullptr};
  return WithPackedForm(desc.dtype, [&]<class T, class Packed>(TypeTag<T>, TypeTag<Packed>) {
    const PhasedFilter& filter = *way.phased;
    return CpuPacking{
        StrCat(PackedName<Packed>(), PanelColumns(), ' ', filter.name()),
        SaturatingMul(int64_t{sizeof(Packed)}, filter.template PackedElements<Packed>()),
        [filter](const Threads& threads, const Tensor& constant, std::span<std::byte> to) {
          filter.Pack(threads, constant.As<T>().data(), reinterpret_cast<Packed*>(to.data()));
          return Status();
        }};
  });
}

}  // namespace oncilla::cpu
