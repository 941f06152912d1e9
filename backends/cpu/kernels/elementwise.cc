// Elementwise kernels of the CPU: plain, exact code for programs of one step or more.
//
// Works tile by tile: operands are loaded and widened, each step's expression is computed in double
// or 64-bit integers and converted to its dtype, and the last result is stored. One kernel serves
// all rows, dtypes and fused programs.
#include <algorithm>
#include <atomic>
#include <memory>

#include "backends/cpu/fast/element_rows.h"
#include "backends/cpu/fast/elementwise.h"
#include "backends/cpu/kernel.h"
#include "engine/ops/math/elementwise_program.h"
#include "engine/ops/op_set.h"

namespace oncilla::cpu {
namespace {

using Kind = ElementwiseOperand::Kind;

class ProgramKernel : public CpuKernel {
 public:
  ProgramKernel(const NodeView& node, ElementwiseProgram program)
      : CpuKernel(node), program_(std::move(program)) {
    std::vector<Shape> shapes;
    for (const Fact& fact : node.inputs) {
      shapes.push_back(fact.absent() ? Shape() : fact.shape.ToShape());
    }
    axes_ = MergeBroadcast(node.outputs[0].shape.ToShape(), shapes);
    for (ElementwiseStep& step : program_.steps) {
      step.call.alpha = ParameterAs(step.compute, step.call.alpha);
      step.call.beta = ParameterAs(step.compute, step.call.beta);
      functions_.push_back(TileFunctionOf(*step.call.row, step.compute));
    }
  }

  std::string description() const override { return "plain"; }

  Status Run(const Args& args) const override {
    std::atomic<bool> zero_divisor = false;
    ParallelFor(args.threads, axes_.elements, kGrain, [&](int64_t begin, int64_t end) {
      const size_t inputs = args.inputs.size(), steps = program_.steps.size();
      const auto tiles = std::make_unique_for_overwrite<Tile[]>(inputs + steps + 3);
      Tile* const results = &tiles[inputs];
      for (; begin < end; begin += kTile) {
        const int64_t n = std::min(kTile, end - begin);
        for (size_t k = 0; k < inputs; ++k) {
          if (!args.has_input(k)) continue;
          LoadTile(args.inputs[k], args.node.inputs[k].dtype, axes_, static_cast<int>(k), begin, n,
                   &tiles[k]);
        }
        for (size_t s = 0; s < steps; ++s) {
          const ElementwiseStep& step = program_.steps[s];
          const Tile* operands[3];
          for (int i = 0; i < step.call.row->inputs; ++i) {
            const ElementwiseOperand o = i < static_cast<int>(step.operands.size())
                                             ? step.operands[i]
                                             : ElementwiseOperand();
            if (o.kind == Kind::kInput) {
              operands[i] = &tiles[o.index];
            } else if (o.kind == Kind::kStep) {
              operands[i] = &results[o.index];
            } else {
              Tile* filled = &results[steps + i];
              FillNumber(step, o, i == 1, n, filled);
              operands[i] = filled;
            }
          }
          if ((step.call.row->flags & kDivides) != 0 && IsInteger(step.compute) &&
              std::find(operands[1]->u, operands[1]->u + n, 0) != operands[1]->u + n) {
            zero_divisor = true;
          }
          functions_[s](operands, &results[s], n, step.call);
          const bool condition = (step.call.row->flags & kToBool) != 0;
          const Wide wide = condition ? Wide::kUnsigned : WideOf(step.compute);
          if (s + 1 < steps) {
            ConvertTile(wide, step.dtype, n, &results[s]);
          } else {
            StoreTile(results[s], wide, step.dtype, args.outputs[0], begin, n);
          }
        }
      }
    });
    return zero_divisor ? InvalidArgument("integer division by zero") : Status();
  }

 private:
  static constexpr int64_t kGrain = 16 * kTile;

  // Fills a tile with a number of the program, or with the bound that an absent operand stands for.
  static void FillNumber(const ElementwiseStep& step, const ElementwiseOperand& operand,
                         bool lowest, int64_t n, Tile* tile) {
    DispatchWide(WideOf(step.compute), [&]<class W>(TypeTag<W>) {
      using Limits = std::numeric_limits<W>;
      const W low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      const W high = Limits::has_infinity ? Limits::infinity() : Limits::max();
      const W value = operand.kind == Kind::kNumber ? ConvertElement<W>(operand.number)
                      : lowest                      ? low
                                                    : high;
      std::fill_n(reinterpret_cast<W*>(tile), n, value);
    });
    // The number is converted to the dtype first, as a constant operand would be.
    if (operand.kind == Kind::kNumber) ConvertTile(WideOf(step.compute), step.compute, n, tile);
  }

  ElementwiseProgram program_;
  BroadcastAxes axes_;
  std::vector<TileFunction> functions_;
};

Result<std::unique_ptr<CpuKernel>> MakeProgramKernel(const NodeView& node) {
  ONCILLA_ASSIGN(ElementwiseProgram program, ProgramOf(node));
  return std::unique_ptr<CpuKernel>(std::make_unique<ProgramKernel>(node, std::move(program)));
}

}  // namespace

std::span<const KernelRow> ElementwiseKernels() {
  static const std::vector<KernelRow> rows = [] {
    std::vector<KernelRow> out;
    for (const OpDef& op : ElementwiseOps()) {
      KernelRow row;
      row.op = op.name;
      row.dtypes = FirstDTypes(op);
      row.plain = &MakeProgramKernel;
      row.fast = &MakeFastElementwise;
      out.push_back(row);
    }
    return out;
  }();
  return rows;
}

}  // namespace oncilla::cpu
