// The fast InvertedResidual of f32: intermediate tensors between its convolutions stay in the
// second-level cache. Rows of the result are computed in strips, each from start to end:
//
//            x                  ring                middle              y
//     +-------------+      +-------------+     +-------------+    +-------------+
//     |             | ---> | rows that   | --> | a strip of  | -> | a strip of  |
//     |  next rows  |      | the windows |     | the filters'|    | rows, with  |
//     |             |      | still see   |     | results     |    | residual    |
//     +-------------+      +-------------+     +-------------+    +-------------+
//          expand: a product    depthwise           project: a product
//
// A strip adds `chunk_` rows of the expanded tensor to the ring, which holds them as long as later
// strips need them. Every worker has a ring and a middle of its own; where its strips begin, it
// computes rows again that another worker computes as well. How strips are divided changes no sum,
// so results do not depend on it; means are added up strip by strip.
#include <algorithm>
#include <optional>

#include "backends/cpu/conv/conv_parts.h"
#include "backends/cpu/conv/depthwise.h"
#include "backends/cpu/conv/fused_convs.h"
#include "backends/cpu/fast/row_lanes.h"
#include "backends/cpu/shares_scratch.h"
#include "engine/ops/nn/fused_conv.h"

namespace oncilla::cpu {
namespace {

using In = InvertedResidualInput;

// The least number of pixels of a strip: two tiles of a product. More pixels read the weights less
// often; fewer pixels stay closer in the cache.
constexpr int64_t kStripPixels = 28;
// With several workers, strips are divided into this many parts per worker. More parts balance the
// load better, but the rows at their borders are computed twice.
constexpr int64_t kPartsPerWorker = 2;
constexpr int64_t kMostSumsPerPart = int64_t{1} << 29;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

class FusedResidual : public CpuKernel, public SharesScratch {
 public:
  FusedResidual(const NodeView& node, const InvertedResidualGeometry& g, Activation of_expand,
                Activation of_depthwise, Activation of_y, bool mean)
      : CpuKernel(node),
        g_(g),
        of_expand_(of_expand),
        of_depthwise_(of_depthwise),
        of_y_(of_y),
        mean_(mean),
        batch_(g.depthwise.batch),
        channels_(g.depthwise.in_channels) {
    const WindowAxis &height = g.depthwise.axis[1], &width = g.depthwise.axis[2];
    // Two rows of windows that overlap share what they read (depthwise.cc).
    const int64_t least_rows = height.stride == 1 && height.kernel > 1 ? 2 : 1;
    rows_ = std::clamp<int64_t>(CeilDiv(kStripPixels, width.out), least_rows,
                                std::max(least_rows, height.out));
    strips_ = CeilDiv(height.out, rows_);
    if (g.expands) {
      expand_.emplace(g.expand);
      chunk_ = rows_ * height.stride;
      // Rows that the next strip's first window shares with this strip.
      const int64_t behind = std::max<int64_t>(0, height.extent() - height.stride);
      ring_ = SaturatingAdd(1, CeilDiv(behind, chunk_)) * chunk_;
    }
    ring_floats_ = WholeLines<float>(SaturatingMul(ring_, SaturatingMul(width.in, channels_)));
    int64_t padded = 0;
    if (g.expands && expand_->shape.pads) {
      const int64_t rows =
          SaturatingAdd(SaturatingMul(chunk_, g.expand.axis[1].stride), g.expand.axis[1].extent());
      padded = SaturatingMul(rows, SaturatingMul(expand_->shape.size[2], g.expand.in_channels));
    }
    if (g.columns > 0) {
      middle_floats_ = WholeLines<float>(SaturatingMul(rows_, SaturatingMul(width.out, channels_)));
    }
    own_floats_ =
        SaturatingAdd(SaturatingAdd(ring_floats_, middle_floats_), WholeLines<float>(padded));
  }

  int64_t scratch_bytes() const override {
    const int64_t floats = SaturatingMul(workers(), own_floats_);
    const int64_t sums = mean_ ? SaturatingMul(batch_ * strips_, channels_) : 0;
    return SaturatingAdd(SaturatingMul(sizeof(float), floats), SaturatingMul(sizeof(double), sums));
  }
  std::string description() const override {
    return StrCat("fused ", TileName(), g_.expands ? " expand" : "", " depthwise",
                  g_.columns > 0 ? " project" : "", mean_ ? " mean" : "", ", strips of ", rows_,
                  " rows");
  }

  Status Run(const Args& args) const override {
    auto* scratch = reinterpret_cast<float*>(args.scratch);
    Call call = CallOf(args);
    call.sums = reinterpret_cast<double*>(scratch + workers() * own_floats_);
    ParallelForWorkers(args.threads, batch_ * strips_, GrainFor(WorkersOf(args.threads)),
                       [&](int64_t begin, int64_t end, int worker) {
                         float* ring = scratch + worker * own_floats_;
                         float* middle = ring + ring_floats_;
                         RunStrips(call, begin, end, {ring, middle, middle + middle_floats_});
                       });
    if (mean_) TakeMeans(call.sums, args.Out<float>(1));
    return Status();
  }

 private:
  // The operands of one call.
  struct Call {
    const float* x;
    Product<float> expand, project;
    Depthwise<float> depthwise;
    double* sums = nullptr;
  };
  // The scratch memory of one worker.
  struct Own {
    float *ring, *middle;
    float* padded;  // rows of x for a chunk of the ring, with zeros around them
  };

  Call CallOf(const Args& args) const {
    const auto optional = [&](size_t i) { return args.has_input(i) ? args.In<float>(i) : nullptr; };
    Call call;
    call.x = args.In<float>(In::kX);
    if (expand_) {
      call.expand = expand_->product<float>();
      call.expand.b = args.In<float>(In::kExpand);
      call.expand.epilogue = {optional(In::kExpandBias), nullptr, of_expand_};
    }
    call.depthwise.geometry = g_.depthwise;
    call.depthwise.geometry.batch = 1;
    call.depthwise.filter = args.In<float>(In::kDepthwise);
    call.depthwise.epilogue = {optional(In::kDepthwiseBias), nullptr, of_depthwise_};
    call.depthwise.ring = ring_;
    if (g_.columns > 0) {
      static constexpr int64_t kOneTap = 0;
      call.project.taps = &kOneTap;
      call.project.run = call.project.row_step = channels_;
      call.project.columns = call.project.c_step = g_.columns;
      call.project.b = args.In<float>(In::kProject);
      call.project.epilogue = {optional(In::kProjectBias), optional(In::kResidual), of_y_};
    }
    call.project.c = args.Out<float>(0);
    return call;
  }

  // Strips of a part. A single worker takes all strips as one part, unless they are so many sums
  // that the run could not end early.
  int64_t GrainFor(int workers) const {
    const int64_t all = batch_ * strips_;
    const int64_t parts = workers == 1 ? 1 : workers * kPartsPerWorker;
    const int64_t columns =
        g_.columns + g_.depthwise.taps() + (expand_ ? expand_->sizes.depth() : 0);
    const int64_t sums =
        SaturatingMul(rows_ * g_.depthwise.axis[2].out, SaturatingMul(channels_, columns));
    return std::clamp<int64_t>(CeilDiv(all, parts), 1,
                               std::max<int64_t>(1, kMostSumsPerPart / std::max<int64_t>(1, sums)));
  }

  void RunStrips(const Call& call, int64_t begin, int64_t end, const Own& own) const {
    const WindowAxis &height = g_.depthwise.axis[1], &width = g_.depthwise.axis[2];
    int64_t next = 0;  // one past the last row in the ring, counted from the padding on
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / strips_, strip = i % strips_;
      const int64_t first = strip * rows_, last = std::min(first + rows_, height.out);
      if (expand_) {
        if (i == begin || strip == 0) next = strip * chunk_;
        // The last strip of a part needs only the rows under its own windows.
        const bool goes_on = i + 1 < end && strip + 1 < strips_;
        const int64_t seen = (last - 1) * height.stride + height.extent();
        const int64_t until = goes_on ? CeilDiv(seen, chunk_) * chunk_ : seen;
        while (next < until) {
          const int64_t stop = std::min(until, (next / chunk_ + 1) * chunk_);
          Expand(call, sample, next - height.pad_begin, stop - height.pad_begin, own);
          next = stop;
        }
      }
      Depthwise<float> d = call.depthwise;
      d.x = expand_ ? own.ring : call.x + sample * g_.depthwise.in_pixels() * channels_;
      d.first = first;
      const int64_t pixels = (last - first) * width.out;
      const int64_t pixel = sample * g_.depthwise.out_pixels() + first * width.out;
      d.y = g_.columns > 0 ? own.middle : call.project.c + pixel * channels_;
      RunDepthwiseRows(d, first, last);
      if (mean_) {
        double* sums = call.sums + i * channels_;
        std::fill_n(sums, channels_, 0.0);
        ReduceColumns(RowReduction::kSum, d.y, pixels, channels_, channels_, sums);
      }
      if (g_.columns > 0) Project(call, pixel, pixels, own.middle);
    }
  }

  // Computes rows [first, last) of a sample's expanded tensor into the ring, skipping rows in the
  // padding. The rows lie within one chunk of the ring.
  void Expand(const Call& call, int64_t sample, int64_t first, int64_t last, const Own& own) const {
    const WindowAxis& height = g_.depthwise.axis[1];
    first = std::max<int64_t>(first, 0);
    last = std::min(last, height.in);
    if (first >= last) return;
    const int64_t width = g_.depthwise.axis[2].in;
    Product<float> p = call.expand;
    if (p.lines() == 1 && p.line_rows != width) {  // all pixels in one line
      p.a = call.x + (sample * height.in + first) * width * p.row_step;
      p.line_rows = (last - first) * width;
    } else {
      const ConvProduct& shape = expand_->shape;
      p.a = call.x + sample * p.line_step[0] + first * p.line_step[2];
      if (shape.pads) {
        const int64_t row = first * g_.expand.axis[1].stride;
        const int64_t rows = (last - 1) * g_.expand.axis[1].stride + g_.expand.axis[1].extent();
        for (int64_t i = row; i < rows; ++i) {
          FillPaddedRow(g_.expand, shape, call.x, sample * shape.size[1] + i,
                        own.padded + (i - row) * shape.size[2] * g_.expand.in_channels);
        }
        p.a = own.padded;
      }
      p.line_count[0] = 1;
      p.line_count[2] = last - first;
    }
    p.c = own.ring + (first + height.pad_begin) % ring_ * width * channels_;
    RunTask(p, Split(), 0);
  }

  void Project(const Call& call, int64_t pixel, int64_t pixels, const float* middle) const {
    Product<float> p = call.project;
    p.a = middle;
    p.line_rows = pixels;
    p.c += pixel * g_.columns;
    if (p.epilogue.residual != nullptr) p.epilogue.residual += pixel * g_.columns;
    RunTask(p, Split(), 0);
  }

  void TakeMeans(const double* sums, float* y) const {
    const auto pixels = static_cast<double>(g_.depthwise.out_pixels());
    for (int64_t sample = 0; sample < batch_; ++sample, y += channels_) {
      for (int64_t c = 0; c < channels_; ++c) {
        double sum = 0;
        for (int64_t i = 0; i < strips_; ++i) sum += sums[(sample * strips_ + i) * channels_ + c];
        y[c] = static_cast<float>(sum / pixels);
      }
    }
  }

  const InvertedResidualGeometry g_;
  const Activation of_expand_, of_depthwise_, of_y_;
  const bool mean_;
  const int64_t batch_, channels_;
  std::optional<ConvParts> expand_;
  int64_t rows_ = 1;    // of a strip
  int64_t strips_ = 1;  // of a sample
  int64_t chunk_ = 0;   // rows of the expanded tensor that a strip adds
  int64_t ring_ = 0;    // rows that the ring holds, several chunks; 0 without expand
  int64_t ring_floats_ = 0, middle_floats_ = 0;
  int64_t own_floats_ = 0;  // of a worker
};

// Decided by constants alone, as packings are: all filters must be constants of f32.
bool IsFused(const NodeView& node) {
  for (size_t i : {size_t{In::kExpand}, size_t{In::kDepthwise}, size_t{In::kProject}}) {
    if (!node.has_input(i)) continue;
    const Fact& filter = node.inputs[i];
    if (!filter.constant || filter.dtype != DType::kF32 || filter.desc().elements() == 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastInvertedResidual(const NodeView& node) {
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<InvertedResidualAttrs>(*node.attrs));
  if (!IsFused(node) || node.outputs[0].desc().elements() == 0) return nullptr;
  ONCILLA_ASSIGN(const Activation of_expand, ActivationFromName(attrs.expand_activation));
  ONCILLA_ASSIGN(const Activation of_depthwise, ActivationFromName(attrs.depthwise_activation));
  ONCILLA_ASSIGN(const Activation of_y, ActivationFromName(attrs.activation));
  ONCILLA_ASSIGN(const InvertedResidualGeometry g, GeometryOf(attrs, node));
  return std::unique_ptr<CpuKernel>(
      std::make_unique<FusedResidual>(node, g, of_expand, of_depthwise, of_y, attrs.mean));
}

Result<CpuPacking> InvertedResidualPacking(const NodeView& node, int input) {
  const auto i = static_cast<size_t>(input);
  const TensorDesc desc = node.inputs[i].desc();
  const bool product = i == In::kExpand || i == In::kProject;
  if (!product || !IsFused(node)) return CpuPacking{"dense", desc.bytes(), nullptr};
  return PanelPacking(desc);
}

}  // namespace oncilla::cpu
