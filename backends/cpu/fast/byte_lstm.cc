// The fast ByteLstm: an Lstm of float whose recurrent weights are bytes and whose state is rounded
// to bytes for each product. The sums of a step are exact, as in every product of bytes; the gates
// and the state are those of the fast Lstm.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/recurrent_lanes.h"
#include "backends/cpu/fast/sample_steps.h"
#include "backends/cpu/integer/repeated_product.h"
#include "engine/ops/nn/recurrent.h"

namespace oncilla::cpu {
namespace {

// With more units, a sum of products of bytes may not fit into i32.
constexpr int64_t kMostUnits = 1 << 15;

int64_t WholeLines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

ByteMatrix WeightsOf(const Fact& fact, const std::byte* data) {
  const Shape shape = fact.shape.ToShape();
  return DenseBytes(data, fact.dtype == DType::kI8, shape[0], shape[1]);
}

// Whether this kernel supports the types, attributes and sizes of the node.
Result<bool> IsUsual(const NodeView& node, const RecurrentAttrs& attrs) {
  ONCILLA_ASSIGN(const auto activations, ActivationsOf(attrs, "Lstm"));
  const DType weights = node.inputs[1].dtype;
  const int64_t units = node.inputs[1].shape.ToShape()[0];
  return (weights == DType::kU8 || weights == DType::kI8) && node.inputs[0].dtype == DType::kF32 &&
         attrs.clip == 0 && activations[0].name == "sigmoid" && activations[1].name == "tanh" &&
         activations[2].name == "tanh" && units > 0 && units <= kMostUnits;
}

class FastByteLstm : public CpuKernel {
 public:
  FastByteLstm(const NodeView& node, RecurrentAttrs attrs)
      : CpuKernel(node),
        attrs_(std::move(attrs)),
        packed_(node.inputs[1].constant),
        has_lengths_(node.has_input(2)),
        widens_(!LayoutOfBytes().quads) {
    const Shape y = node.outputs[0].shape.ToShape();
    steps_ = y[0];
    samples_ = y[1];
    units_ = y[2];
    row_bytes_ = WholeLines(LayoutOfBytes().RowBytes(units_));
  }

  int64_t scratch_bytes() const override {
    return (has_lengths_ ? SampleSteps::MemoryOf(samples_) : 0) + 16 * WholeLines(units_) +
           samples_ * (row_bytes_ + 16 * units_ + WholeLines(units_)) +
           3 * WholeLines(4 * samples_) + (packed_ ? 0 : PackedByteSize(units_, 4 * units_));
  }
  std::string description() const override {
    return StrCat("byte product ", LayoutOfBytes().name(), packed_ ? ", packed" : ", packs", ", ",
                  steps_, " steps");
  }

  Status Run(const Args& args) const override {
    Call call(args);
    ONCILLA_TRY(Prepare(&call));
    ByteEnd end;
    end.weights_signed = args.in(1).dtype == DType::kI8;
    end.weight_zeros = WeightZeros(args);
    const RepeatedByteProduct product(call.weights, units_, 4 * units_, end);
    call.needs_sums = product.NeedsRowSums();
    ForSamples(args, call.steps.CountAt(0), [&](int64_t i) { Round(call, 0, i); });
    for (int64_t s = 0; s < call.steps.longest() && !args.threads.ended(); ++s) {
      const int64_t count = call.steps.CountAt(s);
      product.Run(args.threads, call.rows, row_bytes_, count, call.zeros, call.row_sums, call.sums);
      ForSamples(args, count, [&](int64_t i) {
        Step(call, s, i);
        if (s + 1 < call.steps.LengthAt(i)) Round(call, s + 1, i);
      });
    }
    call.steps.ClearBehind(args.threads, units_, args.Out<float>(0));
    for (int64_t i = 0; i < samples_; ++i) {
      CopyState(StateBefore(call, call.steps.LengthAt(i), i),
                args.Out<float>(1) + call.steps.SampleAt(i) * units_);
    }
    return Status();
  }

 private:
  // What one call computes with: memory by the samples' places.
  struct Call {
    explicit Call(const Args& args) : args(args) {}
    const Args& args;
    SampleSteps steps;
    const std::byte* weights = nullptr;  // packed
    bool needs_sums = false;             // of the rows
    float* scales = nullptr;             // of the columns
    std::byte* rows = nullptr;           // the states as the product reads them
    uint8_t* bytes = nullptr;            // the states as bytes, before they are widened
    int32_t* sums = nullptr;             // of the product, then the gates
    float* row_steps = nullptr;
    int32_t *zeros = nullptr, *row_sums = nullptr;
  };

  Status Prepare(Call* call) const {
    const Args& args = call->args;
    ONCILLA_TRY(call->steps.Read(args, attrs_.reverse, steps_, samples_, args.scratch));
    std::byte* scratch = args.scratch + (has_lengths_ ? SampleSteps::MemoryOf(samples_) : 0);
    const auto take = [&](int64_t bytes) { return std::exchange(scratch, scratch + bytes); };
    call->scales = reinterpret_cast<float*>(take(16 * WholeLines(units_)));
    call->rows = take(samples_ * row_bytes_);
    call->bytes = reinterpret_cast<uint8_t*>(take(samples_ * WholeLines(units_)));
    call->row_steps = reinterpret_cast<float*>(take(WholeLines(4 * samples_)));
    call->zeros = reinterpret_cast<int32_t*>(take(WholeLines(4 * samples_)));
    call->row_sums = reinterpret_cast<int32_t*>(take(WholeLines(4 * samples_)));
    call->sums = reinterpret_cast<int32_t*>(take(samples_ * 16 * units_));
    call->weights = args.inputs[1];
    if (!packed_) {
      PackAllBytes(args.threads, WeightsOf(args.node.inputs[1], args.inputs[1]), scratch);
      call->weights = scratch;
    }
    // The product also reads the bytes between the last unit and the end of a step of K.
    std::memset(call->rows, 0, static_cast<size_t>(samples_ * row_bytes_));
    const bool many = args.in(6).elements() > 1;
    for (int64_t c = 0; c < 4 * units_; ++c) {
      // A scale that is infinite makes infinite numbers of both signs of a column's weights, or
      // zero times infinity: their sum is NaN, which the sum of bytes would not tell.
      const float scale = args.In<float>(6)[many ? c : 0];
      call->scales[c] = std::isfinite(scale) ? scale : NAN;
    }
    for (int64_t n = 0; n < samples_; ++n) {
      CopyState(args.has_input(4) ? args.In<float>(4) + n * units_ : nullptr,
                args.Out<float>(2) + n * units_);
    }
    return Status();
  }

  // Null for a state of zeros.
  void CopyState(const float* from, float* to) const {
    if (from == nullptr) {
      std::fill_n(to, units_, 0.0f);
    } else {
      std::copy_n(from, units_, to);
    }
  }

  // The zero point of each column; none if all are 0.
  std::vector<int32_t> WeightZeros(const Args& args) const {
    if (!args.has_input(7)) return {};
    std::vector<int32_t> zeros(static_cast<size_t>(4 * units_));
    const bool many = args.in(7).elements() > 1, is_signed = args.in(7).dtype == DType::kI8;
    for (size_t c = 0; c < zeros.size(); ++c) {
      const size_t at = many ? c : 0;
      zeros[c] = is_signed ? int32_t{args.In<int8_t>(7)[at]} : int32_t{args.In<uint8_t>(7)[at]};
    }
    return zeros;
  }

  // h of the sample at place i before step s; null for zeros.
  const float* StateBefore(const Call& call, int64_t s, int64_t i) const {
    const Args& args = call.args;
    if (s > 0) return args.Out<float>(0) + call.steps.RowAt(s - 1, i) * units_;
    return args.has_input(3) ? args.In<float>(3) + call.steps.SampleAt(i) * units_ : nullptr;
  }

  // Rounds that state to the row of the product.
  void Round(const Call& call, int64_t s, int64_t i) const {
    const float* h = StateBefore(call, s, i);
    std::byte* row = call.rows + i * row_bytes_;
    uint8_t* bytes =
        widens_ ? call.bytes + i * WholeLines(units_) : reinterpret_cast<uint8_t*>(row);
    StateScale scale;
    if (h == nullptr) {
      std::memset(bytes, 0, static_cast<size_t>(units_));
    } else {
      scale = RoundToBytes(h, units_, bytes);
    }
    call.row_steps[i] = scale.step;
    call.zeros[i] = scale.zero;
    if (call.needs_sums) {
      int32_t sum = 0;
      for (int64_t j = 0; j < units_; ++j) sum += bytes[j];
      if (widens_) sum -= static_cast<int32_t>(units_) * scale.zero;
      call.row_sums[i] = sum;
    }
    if (widens_) {
      const ByteFiller filler(/*is_signed=*/false, scale.zero);
      filler.Fill(reinterpret_cast<const std::byte*>(bytes), units_, row);
    }
  }

  // The units of the sample at place i in step s, whose sums are known.
  void Step(const Call& call, int64_t s, int64_t i) const {
    const Args& args = call.args;
    const int64_t row = call.steps.RowAt(s, i), width = 4 * units_;
    const float* gates = ToGates(args.In<float>(0) + row * width, call.row_steps[i], call.scales,
                                 width, call.sums + i * width);
    LstmUnits(gates, args.has_input(5) ? args.In<float>(5) : nullptr, attrs_.input_forget, units_,
              args.Out<float>(2) + call.steps.SampleAt(i) * units_,
              args.Out<float>(0) + row * units_);
  }

  template <class F>
  void ForSamples(const Args& args, int64_t count, F&& fn) const {
    const int64_t grain = std::max<int64_t>(1, 2048 / units_);
    ParallelFor(args.threads, count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fn(i);
    });
  }

  const RecurrentAttrs attrs_;
  const bool packed_, has_lengths_;
  const bool widens_;  // bytes, for the product
  int64_t steps_ = 0, samples_ = 0, units_ = 0, row_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastByteLstm(const NodeView& node) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<RecurrentAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const bool usual, IsUsual(node, attrs));
  if (!usual || node.outputs[1].shape.ToShape().elements() == 0) return nullptr;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastByteLstm>(node, std::move(attrs)));
}

Result<CpuPacking> ByteLstmPacking(const NodeView& node, int input) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<RecurrentAttrs>(*node.attrs));
  ONCILLA_ASSIGN(const bool usual, IsUsual(node, attrs));
  if (input != 1 || !usual) return CpuPacking{"dense", fact.desc().bytes(), nullptr};
  return PackingOfBytes(WeightsOf(fact, nullptr), "");
}

}  // namespace oncilla::cpu
