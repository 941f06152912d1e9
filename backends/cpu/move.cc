// Copying of strided boxes: rows by memcpy, transposes in tiles, the rest element by element.
//
// Everything here counts in bytes, so that a short contiguous row (three channels of a pixel) can
// be taken as one wide element. Work is divided by destination, in chunks that do not depend on
// the number of threads.
#include "backends/cpu/move.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/empty_strings.h"
#include "backends/cpu/transpose.h"

namespace oncilla::cpu {
namespace {

// Bytes that a chunk of work should move; a smaller move is not divided.
constexpr int64_t kChunkBytes = 64 << 10;

// Steps over the positions of the outer axes and keeps the offsets in source and destination.
class Walk {
 public:
  // Axes [0, n) of `axes`.
  Walk(std::span<const MoveAxis> axes, int64_t place) : axes_(axes), at_(axes.size()) {
    for (size_t i = axes.size(); i-- > 0;) {
      at_[i] = place % axes[i].size;
      place /= axes[i].size;
      from_ += at_[i] * axes[i].from;
      to_ += at_[i] * axes[i].to;
    }
  }
  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  void Next() {
    for (size_t i = axes_.size(); i-- > 0;) {
      from_ += axes_[i].from;
      to_ += axes_[i].to;
      if (++at_[i] < axes_[i].size) return;
      from_ -= axes_[i].size * axes_[i].from;
      to_ -= axes_[i].size * axes_[i].to;
      at_[i] = 0;
    }
  }

 private:
  std::span<const MoveAxis> axes_;
  absl::InlinedVector<int64_t, 16> at_;
  int64_t from_ = 0, to_ = 0;
};

int64_t Places(std::span<const MoveAxis> axes) {
  int64_t n = 1;
  for (const MoveAxis& axis : axes) n *= axis.size;
  return n;
}

void Divide(const Threads& threads, int64_t n, int64_t bytes_each, auto&& fn) {
  const int64_t grain = std::max<int64_t>(1, kChunkBytes / std::max<int64_t>(bytes_each, 1));
  if (n <= grain) return fn(0, n);
  ParallelFor(threads, n, grain, fn);
}

// Copies rows of `bytes` that are contiguous on both sides.
void CopyRows(std::span<const MoveAxis> outer, int64_t bytes, const std::byte* from, std::byte* to,
              const Threads& threads) {
  if (outer.empty()) {
    Divide(threads, bytes, 1, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
    return;
  }
  Divide(threads, Places(outer), bytes, [&](int64_t begin, int64_t end) {
    Walk walk(outer, begin);
    for (int64_t i = begin; i < end; ++i, walk.Next()) {
      std::memcpy(to + walk.to(), from + walk.from(), static_cast<size_t>(bytes));
    }
  });
}

// Copies elements of N bytes along one axis with any strides.
template <int N>
void CopyAxis(const MoveAxis& axis, const std::byte* from, std::byte* to) {
  if (axis.from == 0 && axis.to == N) {
    std::array<std::byte, N> value;
    std::memcpy(value.data(), from, N);
    for (int64_t i = 0; i < axis.size; ++i) std::memcpy(to + i * N, value.data(), N);
  } else if (axis.to == N) {
    for (int64_t i = 0; i < axis.size; ++i) std::memcpy(to + i * N, from + i * axis.from, N);
  } else {
    for (int64_t i = 0; i < axis.size; ++i) std::memcpy(to + i * axis.to, from + i * axis.from, N);
  }
}

template <int N>
void CopyStrided(std::span<const MoveAxis> axes, const std::byte* from, std::byte* to,
                 const Threads& threads) {
  const auto outer = axes.subspan(0, axes.size() - 1);
  const MoveAxis& inner = axes.back();
  if (outer.empty()) {
    Divide(threads, inner.size, N, [&](int64_t begin, int64_t end) {
      CopyAxis<N>({end - begin, inner.from, inner.to}, from + begin * inner.from,
                  to + begin * inner.to);
    });
    return;
  }
  Divide(threads, Places(outer), inner.size * N, [&](int64_t begin, int64_t end) {
    Walk walk(outer, begin);
    for (int64_t i = begin; i < end; ++i, walk.Next()) {
      CopyAxis<N>(inner, from + walk.from(), to + walk.to());
    }
  });
}

// `across` is contiguous in the source, `along` in the destination. Works in tiles that fill whole
// cache lines on both sides.
template <int N>
void CopyTransposed(std::span<const MoveAxis> outer, const MoveAxis& across, const MoveAxis& along,
                    const std::byte* from, std::byte* to, const Threads& threads) {
  constexpr int64_t kTile = N >= 8 ? 16 : 32;
  const int64_t across_tiles = (across.size + kTile - 1) / kTile;
  const int64_t along_tiles = (along.size + kTile - 1) / kTile;
  const int64_t tiles = across_tiles * along_tiles;
  Divide(threads, Places(outer) * tiles, kTile * kTile * N, [&](int64_t begin, int64_t end) {
    Walk walk(outer, begin / tiles);
    for (int64_t t = begin; t < end; ++t) {
      if (t > begin && t % tiles == 0) walk.Next();
      const int64_t i0 = t % tiles / along_tiles * kTile, j0 = t % along_tiles * kTile;
      const int64_t rows = std::min(kTile, across.size - i0);
      const int64_t columns = std::min(kTile, along.size - j0);
      const std::byte* f = from + walk.from() + i0 * N + j0 * along.from;
      std::byte* d = to + walk.to() + i0 * across.to + j0 * N;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          std::memcpy(d + i * across.to + j * N, f + i * N + j * along.from, N);
        }
      }
    }
  });
}

// Transposes elements of 4 bytes with vectors. `across` is one axis or several; together they are
// contiguous in the source, and have any strides in the destination.
void CopyTurned(std::span<const MoveAxis> outer, std::span<const MoveAxis> across,
                const MoveAxis& along, const std::byte* from, std::byte* to,
                const Threads& threads) {
  constexpr int64_t kChunk = 256;  // of `across`, in which a thread stays with its rows
  const int64_t columns = Places(across);
  const int64_t across_tiles = (columns + kChunk - 1) / kChunk;
  const int64_t along_tiles = (along.size + kTurnedRows - 1) / kTurnedRows;
  const int64_t tiles = across_tiles * along_tiles;
  Divide(threads, Places(outer) * tiles, std::min(columns, kChunk) * kTurnedRows * 4,
         [&](int64_t begin, int64_t end) {
           alignas(64) std::byte turned[kTurnedColumns * kTurnedRows * 4];
           Walk walk(outer, begin / tiles);
           for (int64_t t = begin; t < end; ++t) {
             if (t > begin && t % tiles == 0) walk.Next();
             const int64_t first = t % across_tiles * kChunk;
             const int64_t last = std::min(first + kChunk, columns);
             const int64_t row = t % tiles / across_tiles * kTurnedRows;
             const int64_t rows = std::min(kTurnedRows, along.size - row);
             const std::byte* f = from + walk.from() + row * along.from;
             std::byte* d = to + walk.to() + row * 4;
             Walk place(across, first);
             for (int64_t c = first; c < last; c += kTurnedColumns) {
               const int64_t count = std::min(kTurnedColumns, last - c);
               TurnWords(f + c * 4, along.from, rows, count, turned, kTurnedRows * 4);
               for (int64_t i = 0; i < count; ++i, place.Next()) {
                 std::memcpy(d + place.to(), turned + i * kTurnedRows * 4,
                             static_cast<size_t>(rows) * 4);
               }
             }
           }
         });
}

// Runs moves of 4-byte elements that are transposes: along one axis in the destination and across
// other axes in the source. Returns false, and does nothing, when the move is not one.
bool CopyTurned(std::span<const MoveAxis> axes, const std::byte* from, std::byte* to,
                const Threads& threads) {
  if (axes.back().to != 4 || axes.back().size < 4) return false;
  absl::InlinedVector<MoveAxis, 8> outer(axes.begin(), axes.end() - 1), across;
  // Collects the axes that are contiguous together in the source, from the innermost one outwards.
  for (int64_t step = 4;;) {
    const auto next = std::find_if(outer.begin(), outer.end(),
                                   [&](const MoveAxis& axis) { return axis.from == step; });
    if (next == outer.end()) break;
    step *= next->size;
    across.insert(across.begin(), *next);
    outer.erase(next);
  }
  // Short axes do not fill a tile.
  if (across.empty() || Places(across) < 4) return false;
  CopyTurned(outer, across, axes.back(), from, to, threads);
  return true;
}

// Interleaves a few planes into pixels, as the channels of a picture.
template <int N, int kParts>
void Interleave(const std::byte* from, int64_t plane, int64_t pixels, std::byte* to) {
  if constexpr (N == 4) return InterleaveWords(from, plane, kParts, pixels, to);
  for (int64_t i = 0; i < pixels; ++i) {
    for (int p = 0; p < kParts; ++p) {
      std::memcpy(to + (i * kParts + p) * N, from + p * plane + i * N, N);
    }
  }
}
template <int N, int kParts>
void CopyInterleaved(std::span<const MoveAxis> outer, int64_t pixels, int64_t plane,
                     const std::byte* from, std::byte* to, const Threads& threads) {
  Divide(threads, Places(outer) * pixels, kParts * N, [&](int64_t begin, int64_t end) {
    Walk walk(outer, begin / pixels);
    for (; begin < end; walk.Next()) {
      const int64_t first = begin % pixels, count = std::min(end - begin, pixels - first);
      Interleave<N, kParts>(from + walk.from() + first * N, plane, count,
                            to + walk.to() + first * kParts * N);
      begin += count;
    }
  });
}

template <int N>
void CopyElements(std::span<const MoveAxis> axes, const std::byte* from, std::byte* to,
                  const Threads& threads) {
  const MoveAxis& inner = axes.back();
  if (inner.to == N && axes.size() > 1) {
    const MoveAxis& pixels = axes[axes.size() - 2];
    if (pixels.from == N && pixels.to == inner.size * N && (inner.size == 2 || inner.size == 3)) {
      const auto copy = inner.size == 2 ? CopyInterleaved<N, 2> : CopyInterleaved<N, 3>;
      return copy(axes.first(axes.size() - 2), pixels.size, inner.from, from, to, threads);
    }
  }
  if constexpr (N == 4) {
    if (CopyTurned(axes, from, to, threads)) return;
  }
  if (inner.to == N) {
    for (size_t i = 0; i + 1 < axes.size(); ++i) {
      // Short axes do not fill a tile.
      if (axes[i].from != N || axes[i].size < 4 || inner.size < 4) continue;
      absl::InlinedVector<MoveAxis, 8> outer(axes.begin(), axes.end() - 1);
      outer.erase(outer.begin() + static_cast<int64_t>(i));
      return CopyTransposed<N>(outer, axes[i], inner, from, to, threads);
    }
  }
  CopyStrided<N>(axes, from, to, threads);
}

}  // namespace

void RunMove(const Move& move, int64_t element_bytes, const std::byte* from, std::byte* to,
             const Threads& threads) {
  if (move.elements() == 0) return;
  from += move.from_start * element_bytes;
  to += move.to_start * element_bytes;
  absl::InlinedVector<MoveAxis, 8> axes(move.axes.begin(), move.axes.end());
  for (MoveAxis& axis : axes) axis.from *= element_bytes, axis.to *= element_bytes;
  int64_t bytes = element_bytes;
  if (!axes.empty() && axes.back().from == bytes && axes.back().to == bytes) {
    bytes *= axes.back().size;
    axes.pop_back();
  }
  if (axes.empty()) {
    // A view whose output shares the memory of its input has nothing to copy.
    if (from != to) CopyRows({}, bytes, from, to, threads);
    return;
  }
  switch (bytes) {
    case 1:
      return CopyElements<1>(axes, from, to, threads);
    case 2:
      return CopyElements<2>(axes, from, to, threads);
    case 4:
      return CopyElements<4>(axes, from, to, threads);
    case 8:
      return CopyElements<8>(axes, from, to, threads);
    case 12:
      return CopyElements<12>(axes, from, to, threads);
    case 16:
      return CopyElements<16>(axes, from, to, threads);
    default:
      return CopyRows(axes, bytes, from, to, threads);
  }
}

Status RunMove(const Move& move, std::span<const std::string> from, std::span<std::string> to,
               Growth& growth) {
  if (move.elements() == 0) return Status();
  Walk walk(move.axes, 0);
  for (int64_t n = Places(move.axes); n > 0; --n, walk.Next()) {
    const std::string& text = from[static_cast<size_t>(move.from_start + walk.from())];
    ONCILLA_TRY(growth.Add(std::ssize(text)));
    to[static_cast<size_t>(move.to_start + walk.to())] = text;
  }
  return Status();
}

namespace internal {

MoveKernel::MoveKernel(const NodeView& node, Moves moves) : CpuKernel(node) {
  for (Move& move : moves) moves_.push_back(Simplified(std::move(move)));
}

Status MoveKernel::Run(const Args& args) const {
  static constexpr std::array<std::byte, 8> kZero{};
  for (const Move& move : moves_) {
    RunMove(move, BytesOf(args.node.outputs[move.output].dtype),
            move.input == kZeros ? kZero.data() : args.inputs[move.input],
            args.outputs[move.output], args.threads);
  }
  return Status();
}

Result<std::vector<Tensor>> MoveStrings(const NodeView& node, std::span<const Tensor> inputs,
                                        const Moves& moves) {
  std::vector<std::vector<std::string>> out;
  Growth growth;
  for (const Fact& fact : node.outputs) {
    if (fact.desc().elements() > int64_t{1} << 32) return Exhausted("a tensor of ", fact);
    ONCILLA_ASSIGN(out.emplace_back(), EmptyStrings(fact.desc().elements()));
  }
  for (const Move& move : moves) {
    // New strings are empty, which is what kZeros means for them.
    if (move.input != kZeros) {
      ONCILLA_TRY(
          RunMove(Simplified(move), inputs[move.input].strings(), out[move.output], growth));
    }
  }
  growth.Clear();
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < out.size(); ++i) {
    tensors.push_back(Tensor::Strings(node.outputs[i].desc().shape, std::move(out[i])));
  }
  return tensors;
}

}  // namespace internal
}  // namespace oncilla::cpu
