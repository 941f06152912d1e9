// Choice of kernel and geometry for one strided box.
#include "backends/opencl/move.h"

#include <algorithm>
#include <cstdlib>

#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// What the kernels take; a box with more axes becomes several.
constexpr size_t kMostAxes = 8;
// Some drivers count groups beyond the first axis in 16 bits.
constexpr int64_t kMostGroups = 65535;

// The same box of elements `width` times as wide, if the innermost axis is contiguous.
int64_t Widen(Move& move, int64_t bytes) {
  if (move.axes.empty() || move.axes.back().from != 1 || move.axes.back().to != 1) return 1;
  std::vector<int64_t> counts = {move.from_start, move.to_start, move.axes.back().size};
  for (size_t i = 0; i + 1 < move.axes.size(); ++i) {
    counts.insert(counts.end(), {move.axes[i].from, move.axes[i].to});
  }
  const int64_t width = VectorWidth(bytes, counts);
  move.from_start /= width;
  move.to_start /= width;
  for (size_t i = 0; i + 1 < move.axes.size(); ++i) {
    move.axes[i].from /= width;
    move.axes[i].to /= width;
  }
  move.axes.back().size /= width;
  move = Simplified(std::move(move));
  return width;
}

int64_t ReachOf(const Move& move) {
  int64_t from = 0, to = 0;
  for (const MoveAxis& a : move.axes) {
    from = SaturatingAdd(from, SaturatingMul(a.size, std::abs(a.from)));
    to = SaturatingAdd(to, SaturatingMul(a.size, a.to));
  }
  return std::max({from, to, move.elements()});
}

void PushAxes(std::span<const MoveAxis> outer_first, const Indices& index, Dispatch& d) {
  for (size_t i = outer_first.size(); i-- > 0;) {
    const MoveAxis& a = outer_first[i];
    d.args.insert(d.args.end(), {index(a.size), index(a.from), index(a.to)});
  }
}

// In which elements of `unit` bytes both operands begin.
void PushStarts(const Move& move, int64_t unit, Dispatch& d) {
  d.args.insert(d.args.end(), {move.from_start, move.to_start, Offset{false, move.input, unit},
                               Offset{true, move.output, unit}});
}

// The axis that is contiguous in x while the innermost one is contiguous in y, if tiles pay.
std::optional<size_t> AcrossAxis(const Move& move) {
  const MoveAxis& inner = move.axes.back();
  if (inner.to != 1 || inner.from == 1 || inner.size < 8) return std::nullopt;
  for (size_t i = 0; i + 1 < move.axes.size(); ++i) {
    if (move.axes[i].from == 1 && move.axes[i].size >= 8) return i;
  }
  return std::nullopt;
}

bool AddTranspose(Recipe& recipe, const Move& move, int64_t bytes, const std::string& type,
                  const Capabilities& caps) {
  const auto across = AcrossAxis(move);
  if (!across || bytes > 8) return false;
  const MoveAxis m = move.axes[*across], n = move.axes.back();
  std::vector<MoveAxis> outer(move.axes.begin(), move.axes.end() - 1);
  outer.erase(outer.begin() + static_cast<int64_t>(*across));
  int64_t places = 1;
  for (const MoveAxis& a : outer) places *= a.size;
  const bool groups =
      caps.shape == KernelShape::kGpu && caps.local_groups && caps.Group(256) == 256;
  const int64_t tile = groups ? 32 : 16, rows = 8;
  const int64_t m_tiles = DivideUp(m.size, tile), n_tiles = DivideUp(n.size, tile);
  if (places > kMostGroups || n_tiles > kMostGroups) return false;
  if (groups && tile * (tile + 1) * bytes > caps.local_memory) return false;
  const Indices index(ReachOf(move));
  Dispatch d{.source = &cl::kMovementTranspose,
             .entry = groups ? "transpose_tiles" : "transpose_blocks",
             .defines = {{"T", type},
                         {"I", index.type()},
                         {"AXES", StrCat(outer.size())},
                         {"TILE", StrCat(tile)},
                         {"ROWS", StrCat(rows)}},
             .args = {In{move.input}, Out{move.output}, index(m.size), index(m.to), index(n.size),
                      index(n.from)}};
  PushAxes(outer, index, d);
  PushStarts(move, bytes, d);
  if (groups) {
    d.local = {tile, rows, 1};
    d.global = {m_tiles * tile, n_tiles * rows, places};
    d.longest_loop = tile / rows;
  } else {
    d.global = {m_tiles, n_tiles, places};
    d.longest_loop = tile;
  }
  recipe.dispatches.push_back(std::move(d));
  return true;
}

}  // namespace

void LaunchFlat(Dispatch& dispatch, int64_t elements, const Capabilities& caps) {
  const int64_t group = caps.Group(256);
  dispatch.global = {RoundUp(elements, group), 1, 1};
  dispatch.local = {group, 1, 1};
}

std::string VectorType(int64_t bytes, int64_t width) {
  const std::string_view scalar = bytes == 1   ? "uchar"
                                  : bytes == 2 ? "ushort"
                                  : bytes == 4 ? "uint"
                                               : "ulong";
  return width == 1 ? std::string(scalar) : StrCat(scalar, width);
}

int64_t VectorWidth(int64_t bytes, std::span<const int64_t> counts) {
  int64_t width = 16 / bytes;
  while (std::any_of(counts.begin(), counts.end(), [&](int64_t n) { return n % width != 0; })) {
    width /= 2;
  }
  return width;
}

void AddFill(Recipe& recipe, Arg to, int64_t n, int64_t value, int64_t element_bytes,
             const Capabilities& caps) {
  if (n == 0) return;
  Dispatch d{.source = &cl::kMovementFill,
             .entry = "fill",
             .defines = {{"T", VectorType(element_bytes, 1)}},
             .args = {to, n, value}};
  LaunchFlat(d, n, caps);
  recipe.dispatches.push_back(std::move(d));
}

void AddMove(Recipe& recipe, Move move, int64_t element_bytes, const Capabilities& caps) {
  move = Simplified(std::move(move));
  if (move.elements() == 0) return;
  if (move.input == kZeros) {
    AddFill(recipe, Out{move.output}, move.elements(), 0, element_bytes, caps);
    return;
  }
  const int64_t width = Widen(move, element_bytes), bytes = element_bytes * width;
  const std::string type = VectorType(element_bytes, width);
  if (move.axes.empty()) move.axes.push_back({1, 1, 1});
  if (move.axes.size() > kMostAxes) {
    // One by one along the shortest axis, which costs the fewest launches.
    const auto shortest =
        std::min_element(move.axes.begin(), move.axes.end(),
                         [](const MoveAxis& a, const MoveAxis& b) { return a.size < b.size; });
    const MoveAxis axis = *shortest;
    move.axes.erase(shortest);
    move.from_start *= width;
    move.to_start *= width;
    for (MoveAxis& a : move.axes) a.from *= width, a.to *= width;
    if (width > 1) move.axes.push_back({width, 1, 1});
    for (int64_t i = 0; i < axis.size; ++i) {
      Move part = move;
      part.from_start += i * axis.from * width;
      part.to_start += i * axis.to * width;
      AddMove(recipe, std::move(part), element_bytes, caps);
    }
    return;
  }
  if (AddTranspose(recipe, move, bytes, type, caps)) return;

  const Indices index(ReachOf(move));
  const auto rank = move.axes.size();
  // How many axes are left of a box depends on its sizes. Axes of size one fill up to a few counts,
  // so that new sizes rarely need a new program; along work-item axes they cost nothing.
  const int64_t inner = move.axes.back().size, second = rank > 1 ? move.axes[rank - 2].size : 1;
  const int64_t outer = move.elements() / (inner * second);
  // Short rows would leave most of a group idle.
  const bool flat = rank == 1 || inner < 32 || second > kMostGroups || outer > kMostGroups;
  Dispatch d{
      .source = &cl::kMovementMove, .entry = "move", .args = {In{move.input}, Out{move.output}}};
  const size_t filled = rank == 1 ? 1 : rank <= 3 ? 3 : kMostAxes;
  std::vector<MoveAxis> axes(filled - rank, MoveAxis{1, 0, 0});
  axes.insert(axes.end(), move.axes.begin(), move.axes.end());
  d.defines = {
      {"T", type}, {"I", index.type()}, {"AXES", StrCat(filled)}, {"FLAT", flat ? "1" : "0"}};
  PushAxes(axes, index, d);
  d.args.push_back(index(move.elements()));
  PushStarts(move, bytes, d);
  if (flat) {
    LaunchFlat(d, move.elements(), caps);
  } else {
    const int64_t group = caps.Group(64);
    d.global = {RoundUp(inner, group), second, outer};
    d.local = {group, 1, 1};
  }
  d.defines.emplace_back("GROUP", StrCat(d.local[0]));
  recipe.dispatches.push_back(std::move(d));
}

}  // namespace oncilla::opencl
