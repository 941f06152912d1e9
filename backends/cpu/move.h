// Rows of ops that are strided boxes (engine/ops/array/moves.h): one function computes the moves,
// and one copier executes them, whatever the op and the dtype.
//
//   MoveRow<ConcatMoves>("Concat")
#pragma once

#include "backends/cpu/kernel.h"
#include "engine/base/work_limits.h"
#include "engine/ops/array/moves.h"

namespace oncilla::cpu {

// Copies one simplified move of elements of 1, 2, 4 or 8 bytes.
void RunMove(const Move& move, int64_t element_bytes, const std::byte* from, std::byte* to,
             const Threads& threads);
Status RunMove(const Move& move, std::span<const std::string> from, std::span<std::string> to,
               Growth& growth);

// Calls fn(TypeTag<unsigned integer>) of that many bytes, for kernels that do not use the values.
template <class F>
void DispatchBytes(int64_t bytes, F&& fn);

namespace internal {
class MoveKernel : public CpuKernel {
 public:
  // Moves must not overlap the operands they name.
  MoveKernel(const NodeView& node, Moves moves);
  Status Run(const Args& args) const override;
  std::string description() const override { return "move"; }

 private:
  Moves moves_;
};

// Runs moves of strings; `node` has all facts fixed.
Result<std::vector<Tensor>> MoveStrings(const NodeView& node, std::span<const Tensor> inputs,
                                        const Moves& moves);

template <auto F>
Result<std::unique_ptr<CpuKernel>> MakeMoves(const NodeView& node) {
  ONCILLA_ASSIGN(Moves moves, MovesOf<F>(node));
  return std::unique_ptr<CpuKernel>(std::make_unique<MoveKernel>(node, std::move(moves)));
}

template <auto F>
Result<std::vector<Tensor>> HostMoves(const NodeView& node, std::span<const Tensor> inputs) {
  ONCILLA_ASSIGN(const Moves moves, MovesOf<F>(node));
  return MoveStrings(node, inputs, moves);
}
}  // namespace internal

// Result<Moves> F(const Attrs&, const NodeView&); strings run on the host.
template <auto F>
constexpr KernelRow MoveRow(std::string_view op) {
  KernelRow row;
  row.op = op;
  row.dtypes = kStorable;
  row.plain = &internal::MakeMoves<F>;
  row.host = &internal::HostMoves<F>;
  row.moves_alone = true;
  return row;
}

template <class F>
void DispatchBytes(int64_t bytes, F&& fn) {
  switch (bytes) {
    case 1:
      return fn(uint8_t{});
    case 2:
      return fn(uint16_t{});
    case 4:
      return fn(uint32_t{});
    default:
      return fn(uint64_t{});
  }
}

}  // namespace oncilla::cpu
