// Products with packed weights on the CPU. Each thread unpacks a column of weights into a buffer
// when it needs it, so that the whole matrix is never in memory as floats.
#include "engine/ops/math/packed.h"

#include <array>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// Integer number i of those that take `bits` bits each.
inline int Unpacked(const uint8_t* bytes, int64_t i, int64_t bits) {
  const int64_t at = i * bits;
  return bytes[at / 8] >> (at % 8) & ((1 << bits) - 1);
}

struct PackedGeometry {
  int64_t matrices = 1, columns = 0, rows = 0, blocks = 0, depth = 0, block = 0, bits = 0;
  int64_t bytes = 0, zero_bytes = 0;  // of the weights of a column, of its zeros
};

PackedGeometry GeometryOf(const MatMulPackedAttrs& attrs, const Args& args) {
  const Shape weights = args.in(1).shape;
  PackedGeometry g;
  g.matrices = weights.rank() == 4 ? weights[0] : 1;
  g.columns = weights[weights.rank() - 3];
  g.blocks = weights[weights.rank() - 2];
  g.depth = attrs.depth, g.block = attrs.block, g.bits = attrs.bits;
  g.rows = args.in(0).elements() / attrs.depth;
  g.bytes = g.blocks * weights.back();
  g.zero_bytes = (g.blocks * attrs.bits + 7) / 8;
  return g;
}

// Unpacks the weights of one column (counted over all matrices) as T, padded to whole blocks.
template <class T, class W>
void Unpack(const PackedGeometry& g, const Args& args, int64_t column, W* out) {
  const uint8_t* bytes = args.In<uint8_t>(1) + column * g.bytes;
  const T* scales = args.In<T>(2) + column * g.blocks;
  const bool packed_zeros = args.has_input(3) && args.in(3).dtype == DType::kU8;
  const uint8_t* codes = packed_zeros ? args.In<uint8_t>(3) + column * g.zero_bytes : nullptr;
  const T* zeros = args.has_input(3) && !packed_zeros ? args.In<T>(3) + column * g.blocks : nullptr;
  for (int64_t i = 0; i < g.blocks; ++i) {
    const auto scale = static_cast<W>(scales[i]);
    W zero = static_cast<W>(1 << (g.bits - 1));
    if (codes != nullptr) zero = static_cast<W>(Unpacked(codes, i, g.bits));
    if (zeros != nullptr) zero = static_cast<W>(zeros[i]);
    const uint8_t* from = bytes + i * (g.block * g.bits / 8);
    W* to = out + i * g.block;
    if (g.bits == 8) {
      for (int64_t k = 0; k < g.block; ++k) to[k] = (static_cast<W>(from[k]) - zero) * scale;
    } else if (g.bits == 4) {
      for (int64_t k = 0; k < g.block / 2; ++k) {
        to[2 * k] = (static_cast<W>(from[k] & 15) - zero) * scale;
        to[2 * k + 1] = (static_cast<W>(from[k] >> 4) - zero) * scale;
      }
    } else {
      for (int64_t k = 0; k < g.block; ++k) {
        to[k] = (static_cast<W>(Unpacked(from, k, g.bits)) - zero) * scale;
      }
    }
  }
}

// Keeps several sums, in an order that is the same for every call, so that compilers can vectorise
// it.
template <class T, class W>
W Dot(const T* x, const W* weights, int64_t n) {
  constexpr int64_t kLanes = 16;
  std::array<W, kLanes> sums = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<W>(x[k + lane]) * weights[k + lane];
    }
  }
  for (int64_t lane = 0; k + lane < n; ++lane) {
    sums[lane] += static_cast<W>(x[k + lane]) * weights[k + lane];
  }
  W sum = 0;
  for (W part : sums) sum += part;
  return sum;
}

// The rows that each matrix multiplies, and the matrices that have any row.
struct Choices {
  std::vector<IntList> rows;
  std::vector<int64_t> used;
};

Result<Choices> ReadChoices(const PackedGeometry& g, const Args& args) {
  Choices choices;
  if (!args.has_input(4)) {
    choices.used.push_back(0);
    return choices;
  }
  ONCILLA_ASSIGN(const IntList matrix,
                 ReadIndices(args.inputs[4], args.in(4).dtype, g.rows, 0, g.matrices, false));
  choices.rows.resize(static_cast<size_t>(g.matrices));
  for (int64_t i = 0; i < g.rows; ++i) {
    choices.rows[static_cast<size_t>(matrix[static_cast<size_t>(i)])].push_back(i);
  }
  for (int64_t e = 0; e < g.matrices; ++e) {
    if (!choices.rows[static_cast<size_t>(e)].empty()) choices.used.push_back(e);
  }
  return choices;
}

template <class T>
void Multiply(const PackedGeometry& g, const Choices& choices, const Args& args) {
  const int64_t items = std::ssize(choices.used) * g.columns;
  const int64_t grain = GrainOf(SaturatingMul(g.depth, g.rows + 1), 64);
  ParallelFor(args.threads, items, grain, [&](int64_t begin, int64_t end) {
    std::vector<double> weights(static_cast<size_t>(g.blocks * g.block));
    Lookout look(args.threads);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t e = choices.used[static_cast<size_t>(item / g.columns)];
      const int64_t column = item % g.columns;
      Unpack<T>(g, args, e * g.columns + column, weights.data());
      const bool all = choices.rows.empty();
      const IntList* listed = all ? nullptr : &choices.rows[static_cast<size_t>(e)];
      const int64_t count = all ? g.rows : std::ssize(*listed);
      for (int64_t i = 0; i < count; ++i) {
        if (look.Ended(g.depth)) return;
        const int64_t row = all ? i : (*listed)[static_cast<size_t>(i)];
        const double sum = Dot(args.In<T>(0) + row * g.depth, weights.data(), g.depth);
        args.Out<T>(0)[row * g.columns + column] = static_cast<T>(sum);
      }
    }
  });
}

Status MatMulPacked(const MatMulPackedAttrs& attrs, const Args& args) {
  const PackedGeometry g = GeometryOf(attrs, args);
  ONCILLA_ASSIGN(const Choices choices, ReadChoices(g, args));
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) Multiply<T>(g, choices, args);
  });
  return Status();
}

Status UnpackBits(const UnpackBitsAttrs& attrs, const Args& args) {
  const uint8_t* x = args.In<uint8_t>(0);
  uint8_t* y = args.Out<uint8_t>(0);
  const int64_t bits = attrs.bits;
  ParallelFor(args.threads, args.in(0).elements(), kLongStretch / 8,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin * 8 / bits; i < end * 8 / bits; ++i) {
                  y[i] = static_cast<uint8_t>(Unpacked(x, i, bits));
                }
              });
  return Status();
}

const KernelRow kRows[] = {
    Row<MatMulPacked>("MatMulPacked", kFloats, &MakeFastMatMulPacked, &MatMulPackedPacking),
    Row<UnpackBits>("UnpackBits", Set(DType::kU8)),
};

}  // namespace

std::span<const KernelRow> PackedKernels() { return kRows; }

}  // namespace oncilla::cpu
