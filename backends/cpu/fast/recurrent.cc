// Fast recurrent layers of float and 16-bit floats with the usual activations. A step is one
// product of the states of all samples with the packed recurrent weights, whose sums start at the
// step's input gates, then one pass over the units that applies the activations. Where samples have
// different lengths, a step takes those that are not at their end yet.
#include "engine/ops/nn/recurrent.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/fast/element_lanes.h"
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/recurrent_lanes.h"
#include "backends/cpu/fast/sample_steps.h"
#include "backends/cpu/gemm/gemm.h"

namespace oncilla::cpu {
namespace {

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
// rounded after it; the state stays in float from step to step. The same memory for the gates and
// the state of a step serves samples of different lengths.
template <class T>
class FastRecurrent : public CpuKernel {
 public:
  FastRecurrent(const NodeView& node, RecurrentAttrs attrs, Weights weights, bool packed, bool relu)
      : CpuKernel(node),
        attrs_(std::move(attrs)),
        weights_(weights),
        packed_(packed),
        relu_(relu),
        has_lengths_(node.has_input(2)),
        dtype_(node.inputs[1].dtype) {
    const Shape y = node.outputs[0].shape.ToShape();
    steps_ = y[0];
    samples_ = y[1];
  }

  int64_t scratch_bytes() const override {
    int64_t rows = weights_.gates + 2;
    if (kNarrow || has_lengths_) rows += weights_.gates + 1;  // gates, cell
    const int64_t parameters = kNarrow ? kMostParameters * weights_.units : 0;
    return (has_lengths_ ? SampleSteps::MemoryOf(samples_) : 0) +
           4 * (samples_ * rows * weights_.units + parameters) +
           (packed_ ? 0 : static_cast<int64_t>(sizeof(T)) * weights_.elements());
  }
  std::string description() const override {
    return StrCat("gemm ", TileName(), Stored<T>(), packed_ ? " packed" : " packs", ", ", steps_,
                  " steps");
  }

  Status Run(const Args& args) const override {
    Call call(args);
    ONCILLA_TRY(Prepare(&call));
    const float* h = call.state;
    for (int64_t s = 0; s < call.steps.longest() && !args.threads.ended(); ++s) {
      const int64_t count = call.steps.CountAt(s);
      // The rows of the samples lie side by side in tensors unless the samples have been ordered.
      const int64_t first = call.own_state ? 0 : call.steps.RowAt(s, 0);
      const float* gates = GatesOf(call, s, count, first);
      float* y = call.own_state ? call.state : args.Out<float>(0) + first * weights_.units;
      Multiply(call, count, h, 0, weights_.first(), gates, call.sums);
      if (weights_.gates == 4) {
        Lstm(call, count, y);
      } else if (weights_.gates == 3) {
        Gru(call, count, h, gates, y);
      } else {
        const int64_t units = weights_.units;
        ForSamples(args, count, [&](int64_t i) {
          RnnUnits(call.sums + i * units, relu_, units, y + i * units);
        });
      }
      if (call.own_state) StoreStep(call, s, count);
      h = y;
    }
    call.steps.ClearBehind(args.threads, weights_.units, args.Out<T>(0));
    StoreState(call, h, args.Out<T>(1));
    if (weights_.gates == 4 && call.own_state) StoreState(call, call.cell, args.Out<T>(2));
    return Status();
  }

 private:
  static constexpr bool kNarrow = !std::is_same_v<T, float>;
  static constexpr int64_t kMostParameters = 3;  // per unit

  // What one call computes with. States are in the order of the samples' places.
  struct Call {
    explicit Call(const Args& args) : args(args) {}
    const Args& args;
    SampleSteps steps;
    // Whether gates are copied before a step, and the states of all steps are in `state`, where a
    // new one overwrites the old one, unit by unit. Otherwise `state` holds the first one, and the
    // others are where y has them.
    bool own_state = false;
    float *sums = nullptr, *state = nullptr, *reset = nullptr, *gates = nullptr, *cell = nullptr;
    const float* parameters = nullptr;  // peepholes, or the candidate's bias
    const T* weights = nullptr;         // packed
  };

  Status Prepare(Call* call) const {
    const Args& args = call->args;
    const bool lstm = weights_.gates == 4;
    const int64_t units = weights_.units, state = samples_ * units;
    std::byte* scratch = args.scratch;
    if (has_lengths_) scratch += SampleSteps::MemoryOf(samples_);
    ONCILLA_TRY(call->steps.Read(args, attrs_.reverse, steps_, samples_, args.scratch));
    call->own_state = kNarrow || call->steps.ragged();
    const auto take = [&](int64_t floats) {
      return reinterpret_cast<float*>(std::exchange(scratch, scratch + 4 * floats));
    };
    call->sums = take(weights_.gates * state);
    call->state = take(state);
    call->reset = take(state);
    if (call->own_state) call->gates = take(weights_.gates * state);
    if (lstm) call->cell = call->own_state ? take(state) : args.Out<float>(2);
    const size_t parameter = lstm ? 5 : 4;
    if (weights_.gates > 1 && args.has_input(parameter)) {
      call->parameters = args.In<float>(parameter);
      if (kNarrow) {
        float* to = take(kMostParameters * units);
        ToFloats(dtype_, args.inputs[parameter], (lstm ? 3 : 1) * units, to);
        call->parameters = to;
      }
    }
    call->weights = args.In<T>(1);
    if (!packed_) {
      T* to = reinterpret_cast<T*>(scratch);
      weights_.PackAll(args.threads, call->weights, to);
      call->weights = to;
    }
    LoadState(*call, 3, call->state);
    if (lstm) LoadState(*call, 4, call->cell);
    return Status();
  }

  void LoadState(const Call& call, size_t input, float* to) const {
    const int64_t units = weights_.units;
    if (!call.args.has_input(input)) {
      std::fill_n(to, samples_ * units, 0.0f);
      return;
    }
    for (int64_t i = 0; i < samples_; ++i) {
      ToFloats(dtype_, call.args.template In<T>(input) + call.steps.SampleAt(i) * units, units,
               to + i * units);
    }
  }
  void StoreState(const Call& call, const float* from, T* to) const {
    const int64_t units = weights_.units;
    for (int64_t i = 0; i < samples_; ++i) {
      FromFloats(from + i * units, units, dtype_, to + call.steps.SampleAt(i) * units);
    }
  }

  const float* GatesOf(const Call& call, int64_t s, int64_t count, int64_t first) const {
    const int64_t width = weights_.gates * weights_.units;
    if (!call.own_state) return call.args.template In<float>(0) + first * width;
    ForSamples(call.args, count, [&](int64_t i) {
      ToFloats(dtype_, call.args.template In<T>(0) + call.steps.RowAt(s, i) * width, width,
               call.gates + i * width);
    });
    return call.gates;
  }
  void StoreStep(const Call& call, int64_t s, int64_t count) const {
    const int64_t units = weights_.units;
    ForSamples(call.args, count, [&](int64_t i) {
      FromFloats(call.state + i * units, units, dtype_,
                 call.args.template Out<T>(0) + call.steps.RowAt(s, i) * units);
    });
  }

  // Multiplies the states of `count` samples with columns [begin, begin + columns) of the recurrent
  // weights, and adds `more` if it is given.
  void Multiply(const Call& call, int64_t count, const float* a, int64_t begin, int64_t columns,
                const float* more, float* sums) const {
    static constexpr int64_t kOneTap = 0;
    Product<float, T> p;
    p.line_rows = count;
    p.a = a;
    p.row_step = weights_.units;
    p.taps = &kOneTap;
    p.run = weights_.units;
    p.b = call.weights + (begin == 0 ? 0 : weights_.first_elements());
    p.columns = columns;
    p.c = sums + begin;
    p.c_step = weights_.gates * weights_.units;
    if (more != nullptr) p.epilogue.residual = more + begin;
    RunProduct(call.args.threads, p);
  }

  template <class F>
  void ForSamples(const Args& args, int64_t count, F&& fn) const {
    const int64_t grain = std::max<int64_t>(1, 2048 / std::max<int64_t>(1, weights_.units));
    ParallelFor(args.threads, count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fn(i);
    });
  }

  void Lstm(const Call& call, int64_t count, float* y) const {
    const int64_t units = weights_.units;
    ForSamples(call.args, count, [&](int64_t i) {
      LstmUnits(call.sums + i * 4 * units, call.parameters, attrs_.input_forget, units,
                call.cell + i * units, y + i * units);
    });
  }

  void Gru(const Call& call, int64_t count, const float* h, const float* gates, float* y) const {
    const int64_t units = weights_.units;
    const bool linear = attrs_.linear_before_reset;
    if (linear) {
      Multiply(call, count, h, 2 * units, units, nullptr, call.sums);
    } else {
      ForSamples(call.args, count, [&](int64_t i) {
        GruReset(call.sums + i * 3 * units + units, h + i * units, units, call.reset + i * units);
      });
      Multiply(call, count, call.reset, 2 * units, units, gates, call.sums);
    }
    ForSamples(call.args, count, [&](int64_t i) {
      GruUnits(call.sums + i * 3 * units, linear ? gates + i * 3 * units : nullptr, call.parameters,
               h + i * units, units, y + i * units);
    });
  }

  const RecurrentAttrs attrs_;
  const Weights weights_;
  const bool packed_;
  const bool relu_;  // of an Rnn, instead of tanh
  const bool has_lengths_;
  const DType dtype_;
  int64_t steps_, samples_;
};

// Whether this kernel supports the attributes and inputs of the node.
Result<bool> IsUsual(const NodeView& node, const RecurrentAttrs& attrs) {
  ONCILLA_ASSIGN(const auto activations, ActivationsOf(attrs, node.op->name));
  const int count = RecurrentActivations(node.op->name);
  bool usual = attrs.clip == 0 && IsCarried(node.inputs[1].dtype);
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
