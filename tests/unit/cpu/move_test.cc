// Copying of boxes against the definition, element by element, with and without threads.
#include "backends/cpu/move.h"

#include <cstring>
#include <random>

#include "engine/base/thread_pool.h"
#include "gtest/gtest.h"

namespace oncilla::cpu {
namespace {

// The definition of a move, element by element.
void Define(const Move& move, size_t axis, int64_t from, int64_t to, int64_t bytes,
            const std::byte* source, std::byte* destination) {
  if (axis == move.axes.size()) {
    std::memcpy(destination + to * bytes, source + from * bytes, static_cast<size_t>(bytes));
    return;
  }
  const MoveAxis& a = move.axes[axis];
  for (int64_t i = 0; i < a.size; ++i) {
    Define(move, axis + 1, from + i * a.from, to + i * a.to, bytes, source, destination);
  }
}

struct Extent {
  int64_t low = 0, high = 0;
};

Extent ExtentOf(const Move& move, bool source) {
  Extent e;
  for (const MoveAxis& a : move.axes) {
    const int64_t reach = (a.size - 1) * (source ? a.from : a.to);
    (reach < 0 ? e.low : e.high) += reach;
  }
  return e;
}

// A random box: sizes in any order, some axes reversed, repeated or with gaps.
Move RandomMove(std::mt19937& random) {
  auto below = [&](int n) { return static_cast<int64_t>(random() % static_cast<unsigned>(n)); };
  Move move;
  const int rank = static_cast<int>(below(6));
  std::vector<size_t> order;
  int64_t stride = 1;
  for (int i = 0; i < rank; ++i) {
    const int64_t size = below(8) == 0 ? 1 : 1 + below(rank <= 2 ? 90 : 9);
    move.axes.insert(move.axes.begin(), {size, 0, stride});
    stride *= size;
    if (below(5) == 0) stride += below(4);  // a gap in the destination
    order.push_back(static_cast<size_t>(i));
  }
  if (below(2) == 0) std::shuffle(order.begin(), order.end(), random);
  stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    MoveAxis& a = move.axes[order[i]];
    a.from = below(10) == 0 ? 0 : below(6) == 0 ? -stride : stride;
    if (a.from != 0) stride *= a.size;
    if (below(6) == 0) stride += below(3);
  }
  move.from_start = -ExtentOf(move, true).low + below(3);
  move.to_start = below(3);
  return move;
}

TEST(MoveTest, AgreesWithItsDefinition) {
  std::mt19937 random(11);
  ThreadPool threads(3);
  for (int round = 0; round < 600; ++round) {
    const Move move = RandomMove(random);
    const int64_t bytes = int64_t{1} << (round % 4);
    const auto from_size =
        static_cast<size_t>((move.from_start + ExtentOf(move, true).high + 1) * bytes);
    const auto to_size =
        static_cast<size_t>((move.to_start + ExtentOf(move, false).high + 4) * bytes);
    std::vector<std::byte> source(from_size), expected(to_size, std::byte{0x5a}), actual = expected;
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    Define(move, 0, move.from_start, move.to_start, bytes, source.data(), expected.data());
    RunMove(Simplified(move), bytes, source.data(), actual.data(),
            round % 2 == 0 ? &threads : nullptr);
    ASSERT_EQ(expected == actual, true) << "round " << round;
  }
}

// Filters converted from one order of axes to another, from unaligned memory.
TEST(MoveTest, TurnsFiltersWhereverTheyLie) {
  std::mt19937 random(12);
  ThreadPool threads(3);
  for (const int64_t out : {4, 31, 70}) {
    for (const int64_t in : {1, 3, 17, 130}) {
      for (const int64_t window : {1, 5, 9, 300}) {
        Move move;  // [out, in, window] to [window, in, out]
        move.axes = {{window, 1, in * out}, {in, window, out}, {out, in * window, 1}};
        const auto bytes = static_cast<size_t>(4 * move.elements());
        std::vector<std::byte> source(bytes + 1), expected(bytes), actual(bytes);
        for (std::byte& b : source) b = static_cast<std::byte>(random());
        Define(move, 0, 0, 0, 4, source.data() + 1, expected.data());
        RunMove(Simplified(move), 4, source.data() + 1, actual.data(), &threads);
        ASSERT_EQ(expected == actual, true) << out << ' ' << in << ' ' << window;
      }
    }
  }
}

TEST(MoveTest, SimplifiedJoinsAndOrdersAxes) {
  // A dense copy is one axis, whatever the order.
  Move move;
  move.axes = {{3, 4, 4}, {1, 99, 7}, {2, 12, 12}, {4, 1, 1}};
  EXPECT_EQ(Simplified(move).axes.size(), 1u);
  EXPECT_EQ(Simplified(move).axes[0].size, 24);
  // Channels of an image are moved last: both pixel axes are merged.
  move.axes = {{2, 60, 60}, {3, 20, 1}, {4, 5, 15}, {5, 1, 3}};
  const Move simple = Simplified(move);
  ASSERT_EQ(simple.axes.size(), 3u);
  EXPECT_EQ(simple.axes[1].size, 20);
  move.axes = {{2, 1, 1}, {0, 5, 5}};
  EXPECT_EQ(Simplified(move).elements(), 0);
}

}  // namespace
}  // namespace oncilla::cpu
