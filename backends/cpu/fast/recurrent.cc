// Fast recurrent layers of float and 16-bit floats with the usual activations. A step is one
// product of the states of all samples with the packed recurrent weights, whose sums start at the
// step's input gates, then one pass over the units that applies the activations.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/recurrent.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "engine/ops/nn/recurrent.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/activation.inl.h"
#include "backends/cpu/fast/element_lanes.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

HWY_INLINE Vector Sigmoid(Vector x) { return Activate(Floats(), Activation::kSigmoid, x); }
HWY_INLINE Vector Tanh(Vector x) { return Activate(Floats(), Activation::kTanh, x); }

// The units of one sample: `sum` holds its gates i, o, f, c; `peepholes` may be null.
void LstmUnits(const float* sum, const float* peepholes, bool input_forget, int64_t units,
               float* cell, float* y) {
  constexpr Floats d;
  for (int64_t j = 0; j < units; j += kLanes) {
    const int64_t left = units - j;
    const Vector old = LoadSome(cell + j, left);
    Vector in = LoadSome(sum + j, left), out = LoadSome(sum + units + j, left);
    Vector forget = LoadSome(sum + 2 * units + j, left);
    if (peepholes != nullptr) {
      in = hn::MulAdd(LoadSome(peepholes + j, left), old, in);
      forget = hn::MulAdd(LoadSome(peepholes + 2 * units + j, left), old, forget);
    }
    in = Sigmoid(in);
    forget = input_forget ? hn::Sub(hn::Set(d, 1.0f), in) : Sigmoid(forget);
    const Vector fresh = Tanh(LoadSome(sum + 3 * units + j, left));
    const Vector now = hn::MulAdd(forget, old, hn::Mul(in, fresh));
    if (peepholes != nullptr) {
      out = hn::MulAdd(LoadSome(peepholes + units + j, left), now, out);
    }
    StoreSome(now, cell + j, left);
    StoreSome(hn::Mul(Sigmoid(out), Tanh(now)), y + j, left);
  }
}

// reset = sigmoid(r) * h
void GruReset(const float* r, const float* h, int64_t units, float* reset) {
  for (int64_t j = 0; j < units; j += kLanes) {
    const int64_t left = units - j;
    StoreSome(hn::Mul(Sigmoid(LoadSome(r + j, left)), LoadSome(h + j, left)), reset + j, left);
  }
}

// `sum` holds the gates z, r, h. With `gate` the reset is applied here: sum's h is then the state's
// part of the candidate, and gate's h the inputs' part. `bias` may be null.
void GruUnits(const float* sum, const float* gate, const float* bias, const float* h, int64_t units,
              float* y) {
  for (int64_t j = 0; j < units; j += kLanes) {
    const int64_t left = units - j;
    Vector candidate = LoadSome(sum + 2 * units + j, left);
    if (gate != nullptr) {
      if (bias != nullptr) candidate = hn::Add(candidate, LoadSome(bias + j, left));
      candidate = hn::MulAdd(Sigmoid(LoadSome(sum + units + j, left)), candidate,
                             LoadSome(gate + 2 * units + j, left));
    }
    candidate = Tanh(candidate);
    const Vector z = Sigmoid(LoadSome(sum + j, left));
    const Vector change = hn::Sub(LoadSome(h + j, left), candidate);
    StoreSome(hn::MulAdd(z, change, candidate), y + j, left);
  }
}

void RnnUnits(const float* sum, bool relu, int64_t units, float* y) {
  const Vector zero = hn::Zero(Floats());
  for (int64_t j = 0; j < units; j += kLanes) {
    const Vector v = LoadSome(sum + j, units - j);
    StoreSome(relu ? hn::IfThenElse(hn::Lt(v, zero), zero, v) : Tanh(v), y + j, units - j);
  }
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(LstmUnits);
HWY_EXPORT(GruReset);
HWY_EXPORT(GruUnits);
HWY_EXPORT(RnnUnits);

// The recurrent weights as the products of a step need them: the candidate of a Gru is a separate
// product.
struct Weights {
  int64_t units = 0, gates = 0;
  int64_t first() const { return (gates == 3 ? 2 : gates) * units; }  // columns of the first part
  int64_t first_elements() const { return PackedElements(units, first()); }
  int64_t elements() const {
    return first_elements() + (gates == 3 ? PackedElements(units, units) : 0);
  }
  template <class T>
  void PackAll(const Threads& threads, const T* from, T* to) const {
    const int64_t width = gates * units;
    Pack(threads, from, width, 1, units, first(), to);
    if (gates == 3) {
      Pack(threads, from + first(), width, 1, units, units, to + first_elements());
    }
  }
};

// T: how tensors are stored. For 16 bits, a step's gates are widened before it and its results
// rounded after it; the state stays in float from step to step.
template <class T>
class FastRecurrent : public CpuKernel {
 public:
  FastRecurrent(const NodeView& node, RecurrentAttrs attrs, Weights weights, bool packed, bool relu)
      : CpuKernel(node),
        attrs_(std::move(attrs)),
        weights_(weights),
        packed_(packed),
        relu_(relu),
        dtype_(node.inputs[1].dtype) {
    const Shape y = node.outputs[0].shape.ToShape();
    steps_ = y[0];
    samples_ = y[1];
  }

  int64_t scratch_bytes() const override {
    int64_t rows = weights_.gates + 2;
    if (kNarrow) rows += weights_.gates + 1;  // gates, cell
    const int64_t parameters = kNarrow ? kMostParameters * weights_.units : 0;
    return 4 * (samples_ * rows * weights_.units + parameters) +
           (packed_ ? 0 : static_cast<int64_t>(sizeof(T)) * weights_.elements());
  }
  std::string description() const override {
    return StrCat("gemm ", TileName(), Stored<T>(), packed_ ? " packed" : " packs", ", ", steps_,
                  " steps");
  }

  Status Run(const Args& args) const override {
    const bool lstm = weights_.gates == 4;
    const int64_t units = weights_.units, state = samples_ * units;
    float* scratch = reinterpret_cast<float*>(args.scratch);
    const auto take = [&](int64_t floats) { return std::exchange(scratch, scratch + floats); };
    float* sums = take(weights_.gates * state);
    float* before = take(state);  // the state before this step
    float* reset = take(state);
    float* wide = kNarrow ? take(weights_.gates * state) : nullptr;
    float* cell = !lstm ? nullptr : kNarrow ? take(state) : args.Out<float>(2);
    const size_t parameter = lstm ? 5 : 4;  // peepholes, or the candidate's bias
    const float* parameters = nullptr;
    if (weights_.gates > 1 && args.has_input(parameter)) {
      parameters = args.In<float>(parameter);
      if (kNarrow) {
        float* to = take(kMostParameters * units);
        ToFloats(dtype_, args.inputs[parameter], (lstm ? 3 : 1) * units, to);
        parameters = to;
      }
    }
    const T* weights = args.In<T>(1);
    if (!packed_) {
      T* to = reinterpret_cast<T*>(scratch);
      weights_.PackAll(args.threads, weights, to);
      weights = to;
    }
    const auto start = [&](size_t input, float* to) {
      if (args.has_input(input)) {
        ToFloats(dtype_, args.inputs[input], state, to);
      } else {
        std::fill_n(to, state, 0.0f);
      }
    };
    start(3, before);
    if (lstm) start(4, cell);
    const float* h = before;
    for (int64_t s = 0; s < steps_ && !args.threads.ended(); ++s) {
      const int64_t t = attrs_.reverse ? steps_ - 1 - s : s;
      const float* gates = GatesOf(args, t, wide);
      // For 16-bit tensors the new state overwrites the old one, unit by unit.
      float* y = kNarrow ? before : args.Out<float>(0) + t * state;
      Multiply(args, h, weights, 0, weights_.first(), gates, sums);
      if (lstm) {
        Lstm(args, sums, parameters, cell, y);
      } else if (weights_.gates == 3) {
        Gru(args, h, weights, gates, parameters, sums, reset, y);
      } else {
        ForSamples(args, [&](int64_t n) {
          HWY_DYNAMIC_DISPATCH(RnnUnits)(sums + n * units, relu_, units, y + n * units);
        });
      }
      if (kNarrow) FromFloats(y, state, dtype_, args.Out<T>(0) + t * state);
      h = y;
    }
    FromFloats(h, state, dtype_, args.Out<T>(1));
    if (kNarrow && lstm) FromFloats(cell, state, dtype_, args.Out<T>(2));
    return Status();
  }

 private:
  static constexpr bool kNarrow = !std::is_same_v<T, float>;
  static constexpr int64_t kMostParameters = 3;  // per unit

  const float* GatesOf(const Args& args, int64_t t, float* wide) const {
    const int64_t width = weights_.gates * weights_.units;
    if (!kNarrow) return args.In<float>(0) + t * samples_ * width;
    ForSamples(args, [&](int64_t n) {
      ToFloats(dtype_, args.In<T>(0) + (t * samples_ + n) * width, width, wide + n * width);
    });
    return wide;
  }

  // Multiplies with columns [begin, begin + count) of the recurrent weights, and adds `more` if it
  // is given.
  void Multiply(const Args& args, const float* a, const T* packed, int64_t begin, int64_t count,
                const float* more, float* sums) const {
    static constexpr int64_t kOneTap = 0;
    Product<float, T> p;
    p.line_rows = samples_;
    p.a = a;
    p.row_step = weights_.units;
    p.taps = &kOneTap;
    p.run = weights_.units;
    p.b = packed;
    p.columns = count;
    p.c = sums + begin;
    p.c_step = weights_.gates * weights_.units;
    if (more != nullptr) p.epilogue.residual = more + begin;
    RunProduct(args.threads, p);
  }

  template <class F>
  void ForSamples(const Args& args, F&& fn) const {
    const int64_t grain = std::max<int64_t>(1, 2048 / std::max<int64_t>(1, weights_.units));
    ParallelFor(args.threads, samples_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) fn(n);
    });
  }

  void Lstm(const Args& args, const float* sums, const float* peepholes, float* cell,
            float* y) const {
    const int64_t units = weights_.units;
    ForSamples(args, [&](int64_t n) {
      HWY_DYNAMIC_DISPATCH(LstmUnits)
      (sums + n * 4 * units, peepholes, attrs_.input_forget, units, cell + n * units,
       y + n * units);
    });
  }

  void Gru(const Args& args, const float* h, const T* weights, const float* gates,
           const float* bias, float* sums, float* reset, float* y) const {
    const int64_t units = weights_.units;
    const T* candidate_weights = weights + weights_.first_elements();
    const bool linear = attrs_.linear_before_reset;
    if (linear) {
      Multiply(args, h, candidate_weights, 2 * units, units, nullptr, sums);
    } else {
      ForSamples(args, [&](int64_t n) {
        HWY_DYNAMIC_DISPATCH(GruReset)
        (sums + n * 3 * units + units, h + n * units, units, reset + n * units);
      });
      Multiply(args, reset, candidate_weights, 2 * units, units, gates, sums);
    }
    ForSamples(args, [&](int64_t n) {
      HWY_DYNAMIC_DISPATCH(GruUnits)
      (sums + n * 3 * units, linear ? gates + n * 3 * units : nullptr, bias, h + n * units, units,
       y + n * units);
    });
  }

  const RecurrentAttrs attrs_;
  const Weights weights_;
  const bool packed_;
  const bool relu_;  // of an Rnn, instead of tanh
  const DType dtype_;
  int64_t steps_, samples_;
};

// Whether this kernel supports the attributes and inputs of the node.
Result<bool> IsUsual(const NodeView& node, const RecurrentAttrs& attrs) {
  ONCILLA_ASSIGN(const auto activations, ActivationsOf(attrs, node.op->name));
  const int count = RecurrentActivations(node.op->name);
  bool usual = attrs.clip == 0 && !node.has_input(2) && IsCarried(node.inputs[1].dtype);
  for (int i = 0; i < count; ++i) {
    const std::string_view name = activations[static_cast<size_t>(i)].name;
    const bool first = i == 0 && count > 1;
    usual = usual && (name == (first ? "sigmoid" : "tanh") || (count == 1 && name == "relu"));
  }
  return usual;
}

Weights WeightsOf(const NodeView& node) {
  return {node.inputs[1].shape.ToShape()[0], RecurrentGates(node.op->name)};
}

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastRecurrent(const NodeView& node) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<RecurrentAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const bool usual, IsUsual(node, attrs));
  const Weights weights = WeightsOf(node);
  if (!usual || weights.units == 0 || node.outputs[1].shape.ToShape().elements() == 0) {
    return nullptr;
  }
  ONCILLA_ASSIGN(const auto activations, ActivationsOf(attrs, node.op->name));
  const bool relu = activations[0].name == "relu";  // only an Rnn may have it here
  std::unique_ptr<CpuKernel> kernel;
  ForCarried(node.inputs[1].dtype, [&]<class T>(TypeTag<T>) {
    kernel = std::make_unique<FastRecurrent<T>>(node, std::move(attrs), weights,
                                                node.inputs[1].constant, relu);
  });
  return kernel;
}

Result<CpuPacking> RecurrentPacking(const NodeView& node, int input) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<RecurrentAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const bool usual, IsUsual(node, attrs));
  const Weights weights = WeightsOf(node);
  if (input != 1 || !usual || weights.units == 0) {
    return CpuPacking{"dense", fact.desc().bytes(), nullptr};
  }
  return CpuPacking{StrCat("recurrent", weights.gates, "panels", PanelColumns()),
                    SaturatingMul(BytesOf(fact.dtype), weights.elements()),
                    [weights, dtype = fact.dtype](const Threads& threads, const Tensor& constant,
                                                  std::span<std::byte> to) {
                      ForCarried(dtype, [&]<class T>(TypeTag<T>) {
                        weights.PackAll(threads, constant.As<T>().data(),
                                        reinterpret_cast<T*>(to.data()));
                      });
                      return Status();
                    }};
}

}  // namespace oncilla::cpu
#endif
