// Strided boxes: the kernel that copies a box, and its geometry.
#include "backends/opencl/recipes/move.h"

#include <algorithm>
#include <cstdlib>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// The most axes that the kernels support; a box with more axes becomes several launches.
constexpr size_t kMostAxes = 8;

// Combines elements along a contiguous innermost axis into wider ones. Returns how many times as
// wide they are.
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

void AddAxes(std::span<const MoveAxis> outer_first, DispatchBuilder& b) {
  for (size_t i = 0; i < outer_first.size(); ++i) {
    const MoveAxis& a = outer_first[outer_first.size() - 1 - i];
    b.Index({{StrCat("n", i), a.size}, {StrCat("f", i), a.from}, {StrCat("t", i), a.to}});
  }
}

// Adds the start of both operands, in elements of `unit` bytes.
void AddStarts(const Move& move, int64_t unit, DispatchBuilder& b) {
  b.Arg("x_start", move.from_start).Arg("y_start", move.to_start);
  b.Arg("x_offset", Offset{false, move.input, unit});
  b.Arg("y_offset", Offset{true, move.output, unit});
}

// The axis that is contiguous in x while the innermost axis is contiguous in y, if tiles pay.
std::optional<size_t> AcrossAxis(const Move& move, int64_t least) {
  const MoveAxis& inner = move.axes.back();
  if (inner.to != 1 || inner.from == 1 || inner.size < least) return std::nullopt;
  for (size_t i = 0; i + 1 < move.axes.size(); ++i) {
    if (move.axes[i].from == 1 && move.axes[i].size >= least) return i;
  }
  return std::nullopt;
}

bool AddTranspose(Recipe& recipe, const Move& move, int64_t bytes, const std::string& type,
                  const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  const auto across = AcrossAxis(move, tuning.transpose_least);
  if (!across || bytes > 8) return false;
  const MoveAxis m = move.axes[*across], n = move.axes.back();
  std::vector<MoveAxis> outer(move.axes.begin(), move.axes.end() - 1);
  outer.erase(outer.begin() + static_cast<int64_t>(*across));
  int64_t places = 1;
  for (const MoveAxis& a : outer) places *= a.size;
  const int64_t rows = tuning.transpose_rows, group = tuning.transpose_tile * rows;
  const bool groups =
      caps.shape == KernelShape::kGpu && caps.local_groups && caps.Group(group) == group;
  const int64_t tile = groups ? tuning.transpose_tile : tuning.transpose_block;
  const int64_t m_tiles = DivideUp(m.size, tile), n_tiles = DivideUp(n.size, tile);
  if (places > kMostGroups || n_tiles > kMostGroups) return false;
  if (groups && tile * (tile + 1) * bytes > caps.local_memory) return false;
  const IndexType index(ReachOf(move), IndexType::kPlaces);
  DispatchBuilder b(cl::kMovementTranspose, groups ? "transpose_tiles" : "transpose_blocks", index);
  b.Define({{"T", type},
            {"I", index.name()},
            {"AXES", StrCat(outer.size())},
            {"TILE", StrCat(tile)},
            {"ROWS", StrCat(rows)}});
  b.Arg("x", In{move.input}).Arg("y", Out{move.output});
  b.Index({{"m", m.size}, {"m_to", m.to}, {"n", n.size}, {"n_from", n.from}});
  AddAxes(outer, b);
  AddStarts(move, bytes, b);
  if (groups) {
    b.Groups({m_tiles, n_tiles, places}, {tile, rows, 1}).Loop(tile / rows);
  } else {
    b.Groups({m_tiles, n_tiles, places}).Loop(tile);
  }
  b.AddTo(recipe);
  return true;
}

// A box with a short axis next to the contiguous one, such as the channels of images, first or
// last.
bool AddTransposeFew(Recipe& recipe, const Move& move, int64_t bytes, const std::string& type,
                     const Capabilities& caps) {
  const Tuning& tuning = TuningOf(caps);
  if (bytes > 8 || move.axes.size() < 2) return false;
  const size_t rank = move.axes.size();
  const auto is_few = [&](const MoveAxis& a) {
    return a.size >= 2 && a.size <= tuning.transpose_few;
  };
  const auto is_long = [&](const MoveAxis& a) { return a.size >= tuning.short_row; };
  // The innermost axis of y is the short one (which interleaves) or the long one.
  for (const bool interleaves : {true, false}) {
    const MoveAxis& inner = move.axes.back();
    if (inner.to != 1 || !(interleaves ? is_few(inner) : is_long(inner))) continue;
    for (size_t i = 0; i + 1 < rank; ++i) {
      const MoveAxis& other = move.axes[i];
      const MoveAxis& few = interleaves ? inner : other;
      const MoveAxis& rest = interleaves ? other : inner;
      const bool fits = interleaves ? rest.from == 1 && rest.to == few.size && few.from > 0
                                    : few.from == 1 && rest.from == few.size && few.to > 0;
      if (!fits || !is_few(few) || !is_long(rest)) continue;
      std::vector<MoveAxis> outer(move.axes.begin(), move.axes.end() - 1);
      outer.erase(outer.begin() + static_cast<int64_t>(i));
      int64_t places = 1;
      for (const MoveAxis& a : outer) places *= a.size;
      if (places > kMostGroups) return false;
      const int64_t block = tuning.transpose_few_block, items = DivideUp(rest.size, block);
      const int64_t group = tuning.lines ? 1 : caps.Group(tuning.flat_group);
      const IndexType index(ReachOf(move), IndexType::kPlaces);
      DispatchBuilder b(cl::kMovementTransposeFew, "transpose_few", index);
      b.Define({{"T", type},
                {"I", index.name()},
                {"AXES", StrCat(outer.size())},
                {"N", StrCat(few.size)},
                {"INTERLEAVE", Flag(interleaves)}});
      b.Arg("x", In{move.input}).Arg("y", Out{move.output});
      b.Index({{"size", rest.size}, {"step", interleaves ? few.from : few.to}, {"block", block}});
      AddAxes(outer, b);
      AddStarts(move, bytes, b);
      b.Groups({DivideUp(items, group), 1, places}, {group, 1, 1}).Loop(block).AddTo(recipe);
      return true;
    }
  }
  return false;
}

// Splits a box with too many axes into launches, one for each position along its shortest axis,
// which costs the fewest launches. The box counts elements `width` times as wide.
void AddParts(Recipe& recipe, Move move, int64_t width, int64_t element_bytes,
              const Capabilities& caps) {
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
}

}  // namespace

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
  DispatchBuilder b(cl::kMovementFill, "fill");
  b.Define("T", VectorType(element_bytes, 1)).Arg("y", to).Arg("n", n).Arg("value", value);
  b.Flat(n, caps).AddTo(recipe);
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
    AddParts(recipe, std::move(move), width, element_bytes, caps);
    return;
  }
  if (AddTranspose(recipe, move, bytes, type, caps)) return;
  if (AddTransposeFew(recipe, move, bytes, type, caps)) return;

  const auto rank = move.axes.size();
  // The number of axes that remain depends on the box's sizes. Axes of size one are added until it
  // is one of a few numbers, so that new sizes rarely need a new program; along axes of work-items
  // they cost nothing.
  const int64_t inner = move.axes.back().size, second = rank > 1 ? move.axes[rank - 2].size : 1;
  const int64_t outer = move.elements() / (inner * second);
  const Tuning& tuning = TuningOf(caps);
  // Short rows would leave most of a group idle.
  const bool flat =
      rank == 1 || inner < tuning.short_row || second > kMostGroups || outer > kMostGroups;
  const int64_t group = caps.Group(flat ? tuning.flat_group : tuning.loop_group);
  const size_t filled = rank == 1 ? 1 : rank <= 3 ? 3 : kMostAxes;
  std::vector<MoveAxis> axes(filled - rank, MoveAxis{1, 0, 0});
  axes.insert(axes.end(), move.axes.begin(), move.axes.end());
  const IndexType index(ReachOf(move), IndexType::kPlaces);
  DispatchBuilder b(cl::kMovementMove, "move", index);
  b.Define({{"T", type},
            {"I", index.name()},
            {"AXES", StrCat(filled)},
            {"FLAT", Flag(flat)},
            {"GROUP", StrCat(group)}});
  b.Arg("x", In{move.input}).Arg("y", Out{move.output});
  AddAxes(axes, b);
  b.Index("elements", move.elements());
  AddStarts(move, bytes, b);
  if (flat) {
    b.Items(move.elements(), group);
  } else {
    b.Groups({DivideUp(inner, group), second, outer}, {group, 1, 1});
  }
  b.AddTo(recipe);
}

}  // namespace oncilla::opencl
