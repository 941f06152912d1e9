// Quantises rows in one pass.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/quantize_rows.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/integer/quantize_rows.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/cpu/integer/requantize.inl.h"

#ifndef ONCILLA_CPU_INTEGER_QUANTIZE_ROWS_ONCE
#define ONCILLA_CPU_INTEGER_QUANTIZE_ROWS_ONCE
namespace oncilla::cpu {

// What is the same for all rows. The bounds and the bytes' zero are whole numbers.
struct RowBytes {
  float least = 0, most = 0, moved = 0;
};

}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// The largest float below a half. Added to a number below 2^22 in the direction away from zero, it
// moves those from a half on, and no others, to the next whole number or beyond.
constexpr float kBelowHalf = 0.49999997F;

// n numbers of one row. Multiplying and adding are rounded one after the other. Cutting to whole
// bounds before rounding gives the same bytes as after it. NaN becomes 0.
void QuantizeRow(const float* x, int64_t n, float steps, float zero, const RowBytes& bytes,
                 uint8_t* y) {
  constexpr Floats d;
  constexpr hn::Rebind<uint8_t, Floats> narrow;
  const Vector by = hn::Set(d, steps), offset = hn::Set(d, zero), half = hn::Set(d, kBelowHalf);
  const Vector least = hn::Set(d, bytes.least), most = hn::Set(d, bytes.most);
  const IntVector moved = hn::Set(Ints(), static_cast<int32_t>(bytes.moved));
  const auto quantize = [&](const float* from, uint8_t* to) HWY_ATTR {
    const Vector v = hn::Add(hn::Mul(hn::LoadU(d, from), by), offset);
    const Vector cut = hn::Min(hn::Max(v, least), most);
    const IntVector whole = hn::ConvertTo(Ints(), hn::Add(cut, hn::CopySign(half, cut)));
    const IntVector byte = hn::Add(whole, moved);
    const auto is_nan = hn::RebindMask(Ints(), hn::IsNaN(v));
    hn::StoreU(Narrowed<uint8_t>(hn::IfThenZeroElse(is_nan, byte)), narrow, to);
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) quantize(x + i, y + i);
  if (i == n) return;
  float rest[kLanes] = {};
  uint8_t last[kLanes];
  std::copy_n(x + i, n - i, rest);
  quantize(rest, last);
  std::copy_n(last, n - i, y + i);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(QuantizeRow);

using Kind = ElementwiseOperand::Kind;

// The operands of such a program: indices of inputs.
struct RowOperands {
  int x = -1, steps = -1, zero = -1;  // zero -1: there is none
  RowBytes bytes;
};

class QuantizeRows : public CpuKernel {
 public:
  QuantizeRows(const NodeView& node, RowOperands operands, int64_t row)
      : CpuKernel(node), operands_(operands), row_(row) {}
  std::string description() const override { return "vectors along rows, quantised"; }

  Status Run(const Args& args) const override {
    const float* x = args.In<float>(static_cast<size_t>(operands_.x));
    ParallelFor(args.threads, args.in(static_cast<size_t>(operands_.x)).elements(), 1 << 15,
                [&](int64_t begin, int64_t end) {
                  for (int64_t n; begin < end; begin += n) {
                    const int64_t row = begin / row_;
                    n = std::min(end, (row + 1) * row_) - begin;
                    HWY_DYNAMIC_DISPATCH(QuantizeRow)
                    (x + begin, n, NumberOf(args, operands_.steps, row),
                     operands_.zero < 0 ? -0.0F : NumberOf(args, operands_.zero, row),
                     operands_.bytes, args.Out<uint8_t>(0) + begin);
                  }
                });
    return Status();
  }

 private:
  static float NumberOf(const Args& args, int input, int64_t row) {
    const auto i = static_cast<size_t>(input);
    return args.In<float>(i)[args.in(i).elements() == 1 ? 0 : row];
  }

  const RowOperands operands_;
  const int64_t row_;
};

// Reads a program step by step.
class RowProgram {
 public:
  explicit RowProgram(const ElementwiseProgram& program) : steps_(program.steps) {}

  std::optional<RowOperands> Read() {
    RowOperands out;
    const ElementwiseStep* mul = Next("Mul", 2);
    if (mul == nullptr || (out.x = InputOf(*mul, 0)) < 0 || (out.steps = InputOf(*mul, 1)) < 0) {
      return std::nullopt;
    }
    if (const ElementwiseStep* add = Next("Add", 2)) {
      if ((out.zero = InputOf(*add, 1)) < 0) return std::nullopt;
    }
    if (Next("RoundAway", 1) == nullptr) return std::nullopt;
    const ElementwiseStep* clip = Next("Clip", 3);
    const ElementwiseStep* move = clip == nullptr ? nullptr : Next("Add", 2);
    if (move == nullptr) return std::nullopt;
    for (const auto& [step, i, to] : {std::tuple{clip, 1, &out.bytes.least},
                                      {clip, 2, &out.bytes.most},
                                      {move, 1, &out.bytes.moved}}) {
      const ElementwiseOperand& number = step->operands[static_cast<size_t>(i)];
      if (number.kind != Kind::kNumber || !(std::abs(number.number) < 1e6) ||
          number.number != std::floor(number.number)) {
        return std::nullopt;
      }
      *to = static_cast<float>(number.number);
    }
    const bool fits = out.bytes.least <= out.bytes.most && out.bytes.least + out.bytes.moved >= 0 &&
                      out.bytes.most + out.bytes.moved <= 255;
    const bool ends = at_ + 1 == steps_.size() && steps_.back().call.row->name == "Cast" &&
                      steps_.back().dtype == DType::kU8 && ReadsLast(steps_.back());
    return fits && ends ? std::optional(out) : std::nullopt;
  }

 private:
  // The next step if it is this op on f32 and reads the one before.
  const ElementwiseStep* Next(std::string_view op, size_t operands) {
    if (at_ >= steps_.size()) return nullptr;
    const ElementwiseStep& step = steps_[at_];
    if (step.call.row->name != op || step.dtype != DType::kF32 ||
        step.operands.size() != operands || (at_ > 0 && !ReadsLast(step))) {
      return nullptr;
    }
    ++at_;
    return &step;
  }
  bool ReadsLast(const ElementwiseStep& step) const {
    const ElementwiseOperand& from = step.operands[0];
    return from.kind == Kind::kStep && from.index + 1 == static_cast<int>(at_);
  }
  static int InputOf(const ElementwiseStep& step, size_t i) {
    const ElementwiseOperand& operand = step.operands[i];
    return operand.kind == Kind::kInput ? operand.index : -1;
  }

  const std::vector<ElementwiseStep>& steps_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<CpuKernel> MakeQuantizeRows(const NodeView& node, const ElementwiseProgram& program,
                                            const BroadcastAxes& axes) {
  const std::optional<RowOperands> operands = RowProgram(program).Read();
  if (!operands || axes.rank < 1 || axes.rank > 2) return nullptr;
  const int64_t row = axes.sizes[static_cast<size_t>(axes.rank - 1)];
  // One number, or numbers that follow the first of two axes.
  const auto by_rows = [&](int input) {
    if (input < 0 || axes.scalar(input)) return true;
    const BroadcastAxes::Strides& strides = axes.strides[static_cast<size_t>(input)];
    return axes.rank == 2 && strides[0] == 1 && strides[1] == 0;
  };
  for (const int input : {operands->x, operands->steps, operands->zero}) {
    if (input >= 0 && node.inputs[static_cast<size_t>(input)].dtype != DType::kF32) return nullptr;
  }
  if (!axes.dense(operands->x) || !by_rows(operands->steps) || !by_rows(operands->zero)) {
    return nullptr;
  }
  return std::make_unique<QuantizeRows>(node, *operands, row);
}

}  // namespace oncilla::cpu
#endif
