// Packs buffers into an arena. A buffer goes into the tightest gap of all blocks that is free for
// its whole live range; if there is none, it goes where the arena grows least. The result depends
// on the order in which buffers are placed, so several orders are tried.
#include "engine/memory/arena_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <sstream>

#include "engine/base/format.h"
#include "engine/tensor/shape.h"

namespace oncilla {
namespace {

constexpr int kMostRounds = 400;
constexpr int64_t kNoCeiling = 0;

int64_t RoundUp(int64_t bytes, int64_t alignment) {
  const int64_t more = SaturatingAdd(bytes, alignment - 1);
  return more - more % alignment;
}

bool LiveTogether(const BufferUse& a, const BufferUse& b) {
  return a.first <= b.last && b.first <= a.last;
}

using Order = std::vector<int>;

// For each buffer, the buffers that are live at the same time. The lists are empty where there
// would be so many entries that going through all placed buffers in order is faster than sorting
// them.
struct Neighbours {
  std::vector<int> begin, all;  // of buffer i: all[begin[i] .. begin[i + 1])

  explicit Neighbours(std::span<const BufferUse> uses) {
    const int64_t n = std::ssize(uses), most = std::min(n * 64, n * n / 20);
    std::vector<std::pair<int, int>> pairs;
    std::vector<int> order(uses.size()), live;
    std::iota(order.begin(), order.end(), 0);
    auto use = [&](int i) -> const BufferUse& { return uses[static_cast<size_t>(i)]; };
    std::ranges::stable_sort(order, {}, [&](int i) { return use(i).first; });
    for (int i : order) {
      std::erase_if(live, [&](int j) { return use(j).last < use(i).first; });
      for (int j : live) pairs.emplace_back(i, j);
      if (static_cast<int64_t>(pairs.size()) > most) return;
      live.push_back(i);
    }
    begin.assign(uses.size() + 1, 0);
    for (auto [i, j] : pairs)
      ++begin[static_cast<size_t>(i) + 1], ++begin[static_cast<size_t>(j) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    all.resize(2 * pairs.size());
    std::vector<int> at(begin.begin(), begin.end() - 1);
    for (auto [i, j] : pairs) {
      all[static_cast<size_t>(at[static_cast<size_t>(i)]++)] = j;
      all[static_cast<size_t>(at[static_cast<size_t>(j)]++)] = i;
    }
  }
  bool few() const { return !begin.empty(); }
  std::span<const int> of(int i) const {
    const size_t k = static_cast<size_t>(i);
    return std::span(all).subspan(static_cast<size_t>(begin[k]),
                                  static_cast<size_t>(begin[k + 1] - begin[k]));
  }
};

// Places all buffers in a given order. Sizes are already rounded.
class Packing {
 public:
  Packing(std::span<const BufferUse> uses, int64_t max_block)
      : uses_(uses), max_block_(max_block), neighbours_(uses), places_(uses.size()) {}

  // Returns the bytes of all blocks; stops early once they reach `enough`. With a ceiling, a block
  // is taken to have that size from the start, and a buffer that is not at its bottom is aligned to
  // its top. In a chain, where each buffer overlaps only the next in time, buffers then alternate
  // between the ends and no gap is lost.
  int64_t Pack(const Order& order, int64_t ceiling, int64_t enough) {
    ceiling_ = std::min(ceiling, max_block_);
    blocks_.clear();
    slots_.clear();
    std::ranges::fill(places_, ArenaPlan::Place());
    bytes_ = 0;
    for (int i : order) {
      if (use(i).bytes > 0) Put(i);
      if (bytes_ >= enough) break;
    }
    return bytes_;
  }

  int64_t work() const { return work_; }
  const std::vector<ArenaPlan::Place>& places() const { return places_; }
  const std::vector<int64_t>& block_bytes() const { return blocks_; }

 private:
  struct Slot {  // an occupied range of a block
    int block;
    int first, last;  // the live range of the buffer there
    int64_t begin, end;
    auto key() const { return std::pair(block, begin); }
  };

  const BufferUse& use(int i) const { return uses_[static_cast<size_t>(i)]; }

  // Collects the placed buffers that are live together with this one, ordered by block and offset.
  void FindRivals(int index) {
    rivals_.clear();
    if (neighbours_.few()) {
      for (int j : neighbours_.of(index)) {
        const ArenaPlan::Place& place = places_[static_cast<size_t>(j)];
        if (place.block < 0) continue;
        rivals_.push_back({place.block, 0, 0, place.offset, place.offset + use(j).bytes});
      }
      std::ranges::sort(rivals_, {}, &Slot::key);
      work_ += 10 * static_cast<int64_t>(rivals_.size()) + 10;  // the cost of sorting
    } else {
      for (const Slot& slot : slots_) {
        if (slot.first <= use(index).last && use(index).first <= slot.last) {
          rivals_.push_back(slot);
        }
      }
      work_ += static_cast<int64_t>(slots_.size());
    }
  }

  void Put(int index) {
    const int64_t bytes = use(index).bytes;
    FindRivals(index);
    ArenaPlan::Place best;
    int64_t best_gap = INT64_MAX, best_growth = INT64_MAX;
    size_t next = 0;
    for (int b = 0; b < static_cast<int>(blocks_.size()); ++b) {
      int64_t begin = 0;
      // First the gaps between rivals, where the block need not grow.
      for (; next < rivals_.size() && rivals_[next].block == b; ++next) {
        const int64_t gap = rivals_[next].begin - begin;
        if (gap >= bytes && (best_growth > 0 || gap < best_gap)) {
          best = {b, begin}, best_gap = gap, best_growth = 0;
        }
        begin = std::max(begin, rivals_[next].end);
      }
      if (bytes > max_block_ - begin) continue;
      // Then the gap from the last rival to the end of the block, which may grow.
      const int64_t block = blocks_[static_cast<size_t>(b)];
      const int64_t growth = std::max<int64_t>(begin + bytes - block, 0);
      const int64_t gap = std::max(block - begin, bytes);
      if (growth < best_growth || (growth == best_growth && gap < best_gap)) {
        const bool to_top = begin > 0 && growth == 0 && block == ceiling_;
        best = {b, to_top ? block - bytes : begin}, best_gap = gap, best_growth = growth;
      }
    }
    // No block has room: start another one.
    if (best.block < 0) {
      best = {static_cast<int>(blocks_.size()), 0};
      best_growth = std::max(bytes, ceiling_);
      blocks_.push_back(0);
    }
    blocks_[static_cast<size_t>(best.block)] += best_growth;
    bytes_ = SaturatingAdd(bytes_, best_growth);
    places_[static_cast<size_t>(index)] = best;
    if (neighbours_.few()) return;
    const Slot slot{best.block, use(index).first, use(index).last, best.offset,
                    best.offset + bytes};
    slots_.insert(std::ranges::upper_bound(slots_, slot.key(), {}, &Slot::key), slot);
  }

  std::span<const BufferUse> uses_;
  int64_t max_block_, ceiling_ = kNoCeiling;
  const Neighbours neighbours_;
  std::vector<ArenaPlan::Place> places_;
  std::vector<Slot> slots_, rivals_;  // slots_: everything placed, used where neighbours are many
  std::vector<int64_t> blocks_;
  int64_t bytes_ = 0, work_ = 0;
};

int64_t Steps(const BufferUse& use) { return int64_t{use.last} - use.first + 1; }

// By size, largest first; equal sizes by live range, longest first, then by start.
Order BySize(std::span<const BufferUse> uses) {
  Order order(uses.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int i, int j) {
    const BufferUse &a = uses[static_cast<size_t>(i)], &b = uses[static_cast<size_t>(j)];
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    if (Steps(a) != Steps(b)) return Steps(a) > Steps(b);
    return a.first < b.first;
  });
  return order;
}

Order ByArea(std::span<const BufferUse> uses) {
  Order order = BySize(uses);
  auto area = [&](int i) {
    const BufferUse& use = uses[static_cast<size_t>(i)];
    return static_cast<double>(use.bytes) * static_cast<double>(Steps(use));
  };
  std::ranges::stable_sort(order, std::greater{}, area);
  return order;
}

Order ByTime(std::span<const BufferUse> uses) {
  Order order = BySize(uses);
  std::ranges::stable_sort(order, {}, [&](int i) { return uses[static_cast<size_t>(i)].first; });
  return order;
}

struct Edge {  // a change of the live bytes at a step
  int64_t step;
  int64_t bytes;
};
std::vector<Edge> Edges(std::span<const BufferUse> uses) {
  std::vector<Edge> edges;
  for (const BufferUse& use : uses) {
    if (use.bytes == 0) continue;
    edges.push_back({use.first, use.bytes});
    edges.push_back({int64_t{use.last} + 1, -use.bytes});
  }
  // Within a step, ends are handled before starts.
  std::ranges::sort(edges, [](const Edge& a, const Edge& b) {
    return a.step != b.step ? a.step < b.step : a.bytes < b.bytes;
  });
  return edges;
}

// The buffers of the step with the most live bytes first (largest first), then those of the next
// such step.
Order ByCrowd(std::span<const BufferUse> uses) {
  // For each buffer, the most bytes that are live at any time during its live range.
  std::vector<std::pair<int64_t, int64_t>> levels;  // step, bytes live from it on
  int64_t live = 0;
  for (const Edge& edge : Edges(uses)) {
    live = SaturatingAdd(live, edge.bytes);
    if (!levels.empty() && levels.back().first == edge.step) {
      levels.back().second = live;
    } else {
      levels.emplace_back(edge.step, live);
    }
  }
  // A sparse table: maxima over ranges of 2^k levels, so that the maximum over a live range takes
  // two look-ups.
  std::vector<std::vector<int64_t>> maxima(1);
  for (const auto& level : levels) maxima[0].push_back(level.second);
  for (size_t width = 1; 2 * width <= levels.size(); width *= 2) {
    const std::vector<int64_t>& half = maxima.back();
    std::vector<int64_t> whole(levels.size() - 2 * width + 1);
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = std::max(half[i], half[i + width]);
    maxima.push_back(std::move(whole));
  }
  std::vector<int64_t> crowd(uses.size(), 0);
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].bytes == 0) continue;
    const auto at = [&](int64_t step) {
      return static_cast<size_t>(
          std::ranges::upper_bound(levels, step, {}, [](const auto& l) { return l.first; }) -
          levels.begin());
    };
    const size_t begin = at(uses[i].first) - 1, end = at(uses[i].last);
    const size_t k = static_cast<size_t>(std::bit_width(end - begin)) - 1;
    crowd[i] = std::max(maxima[k][begin], maxima[k][end - (size_t{1} << k)]);
  }
  Order order = BySize(uses);
  std::ranges::stable_sort(order, std::greater{},
                           [&](int i) { return crowd[static_cast<size_t>(i)]; });
  return order;
}

// The best packing found so far, with the order that gave it.
struct Best {
  Order order;
  int64_t ceiling = kNoCeiling;
  int64_t bytes = INT64_MAX;
  std::vector<ArenaPlan::Place> places;
  std::vector<int64_t> block_bytes;

  // Keeps a candidate that is no worse: moving among equally good ones finds ways out of a local
  // minimum.
  void Try(Packing& packing, Order candidate, int64_t under) {
    const int64_t got = packing.Pack(candidate, under, SaturatingAdd(bytes, 1));
    if (got > bytes) return;
    bytes = got;
    ceiling = under;
    order = std::move(candidate);
    places = packing.places();
    block_bytes = packing.block_bytes();
  }
};

// Local search: moves buffers at the top of their block towards the front of the order, and keeps
// changes that help. The pseudo-random sequence is fixed, so that plans are reproducible.
void Improve(std::span<const BufferUse> uses, Packing& packing, int64_t enough, int64_t work,
             Best& best) {
  uint32_t random = 1;
  auto below = [&](size_t n) {
    random = random * 1664525u + 1013904223u;
    return static_cast<size_t>((uint64_t{random} * n) >> 32);
  };
  for (int round = 0; round < kMostRounds && best.bytes > enough; ++round) {
    if (packing.work() > work) return;
    std::vector<size_t> tops;  // positions in the order
    for (size_t k = 0; k < best.order.size(); ++k) {
      const size_t i = static_cast<size_t>(best.order[k]);
      const ArenaPlan::Place& place = best.places[i];
      if (place.block >= 0 &&
          place.offset + uses[i].bytes == best.block_bytes[static_cast<size_t>(place.block)]) {
        tops.push_back(k);
      }
    }
    if (tops.empty()) return;
    Order order = best.order;
    const size_t from = tops[below(tops.size())];
    if (from == 0) {
      // The buffer is first and still at the top, so another one goes before it.
      std::swap(order[0], order[below(order.size())]);
    } else {
      const auto at = order.begin() + static_cast<int64_t>(from);
      std::rotate(order.begin() + static_cast<int64_t>(below(from)), at, at + 1);
    }
    best.Try(packing, std::move(order), best.ceiling);
  }
}

// Tries the orders one after the other, then improves the best of them, until none can be better or
// the work is done.
void Search(std::span<const BufferUse> uses, Packing& packing, int64_t enough, int64_t work,
            Best& best) {
  best.Try(packing, BySize(uses), kNoCeiling);
  struct Attempt {
    Order (*order)(std::span<const BufferUse>);
    int64_t ceiling;
  };
  for (const Attempt& attempt :
       {Attempt{ByTime, enough}, Attempt{ByCrowd, kNoCeiling}, Attempt{BySize, enough},
        Attempt{ByTime, kNoCeiling}, Attempt{ByArea, kNoCeiling}, Attempt{ByCrowd, enough}}) {
    if (best.bytes <= enough || packing.work() > work) break;
    best.Try(packing, attempt.order(uses), attempt.ceiling);
  }
  Improve(uses, packing, enough, work, best);
}

}  // namespace

int64_t ArenaPlan::bytes() const {
  int64_t sum = 0;
  for (int64_t block : block_bytes) sum = SaturatingAdd(sum, block);
  return sum;
}

int64_t MaxLiveBytes(std::span<const BufferUse> uses, int64_t alignment_bytes) {
  std::vector<BufferUse> rounded(uses.begin(), uses.end());
  for (BufferUse& use : rounded)
    use.bytes = RoundUp(use.bytes, std::max<int64_t>(alignment_bytes, 1));
  int64_t live = 0, most = 0;
  for (const Edge& edge : Edges(rounded)) {
    live = SaturatingAdd(live, edge.bytes);
    most = std::max(most, live);
  }
  return most;
}

Result<ArenaPlan> PackArena(std::span<const BufferUse> uses, const ArenaOptions& options,
                            const ArenaOrder* like) {
  const int64_t alignment = std::max<int64_t>(options.alignment_bytes, 1);
  const int64_t max_block = options.largest();
  std::vector<BufferUse> rounded(uses.begin(), uses.end());
  int64_t sum = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    const BufferUse& use = uses[i];
    if (use.bytes < 0 || use.last < use.first) {
      return InvalidArgument("buffer ", i, " has ", use.bytes, " bytes and lives from step ",
                             use.first, " to step ", use.last);
    }
    if (use.bytes > max_block) {
      return Exhausted("buffer ", i, " has ", use.bytes, " bytes; the largest allocation is ",
                       max_block);
    }
    rounded[i].bytes = RoundUp(use.bytes, alignment);
    sum = SaturatingAdd(sum, rounded[i].bytes);
  }
  if (sum == INT64_MAX) return Exhausted("the buffers together have more than 2^63 bytes");

  ArenaPlan plan;
  plan.lower_bound = MaxLiveBytes(uses, alignment);
  Packing packing(rounded, max_block);
  Best best;
  const auto excess = [&] {
    return static_cast<double>(best.bytes) /
           static_cast<double>(std::max<int64_t>(plan.lower_bound, 1));
  };
  bool served = false;
  if (like != nullptr && like->order.size() == uses.size()) {
    best.Try(packing, like->order, like->capped ? plan.lower_bound : kNoCeiling);
    served = excess() <= like->excess;
  }
  if (!served) {
    // As without `like`, whose result stays where it is better.
    Best searched;
    Search(rounded, packing, plan.lower_bound, SaturatingAdd(options.work, packing.work()),
           searched);
    if (searched.bytes <= best.bytes) best = std::move(searched);
  }
  plan.found = {std::move(best.order), best.ceiling != kNoCeiling, excess()};
  plan.places = std::move(best.places);
  plan.block_bytes = std::move(best.block_bytes);
  return plan;
}

Status CheckArena(const ArenaPlan& plan, std::span<const BufferUse> uses,
                  const ArenaOptions& options) {
  const int64_t alignment = std::max<int64_t>(options.alignment_bytes, 1);
  if (plan.places.size() != uses.size()) {
    return Internal("arena: ", plan.places.size(), " places for ", uses.size(), " buffers");
  }
  for (size_t b = 0; b < plan.block_bytes.size(); ++b) {
    if (plan.block_bytes[b] > options.max_block_bytes || plan.block_bytes[b] < 0) {
      return Internal("arena: block ", b, " has ", plan.block_bytes[b], " bytes, the most is ",
                      options.max_block_bytes);
    }
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].bytes == 0) continue;
    const ArenaPlan::Place& place = plan.places[i];
    if (place.block < 0 || static_cast<size_t>(place.block) >= plan.block_bytes.size()) {
      return Internal("arena: buffer ", i, " is in block ", place.block, ", which there is not");
    }
    const int64_t room = plan.block_bytes[static_cast<size_t>(place.block)];
    if (place.offset < 0 || place.offset % alignment != 0 || uses[i].bytes > room - place.offset) {
      return Internal("arena: buffer ", i, " has ", uses[i].bytes, " bytes at offset ",
                      place.offset, " of a block of ", room, ", aligned to ", alignment);
    }
    order.push_back(i);
  }
  std::ranges::sort(
      order, {}, [&](size_t i) { return std::pair(plan.places[i].block, plan.places[i].offset); });
  for (size_t a = 0; a < order.size(); ++a) {
    const size_t i = order[a];
    const int64_t end = plan.places[i].offset + uses[i].bytes;
    for (size_t b = a + 1; b < order.size(); ++b) {
      const size_t j = order[b];
      if (plan.places[j].block != plan.places[i].block || plan.places[j].offset >= end) break;
      if (LiveTogether(uses[i], uses[j])) {
        return Internal("arena: buffers ", std::min(i, j), " and ", std::max(i, j),
                        " are live together and share bytes at offset ", plan.places[j].offset,
                        " of block ", plan.places[j].block);
      }
    }
  }
  return Status();
}

std::string ArenaText(const ArenaPlan& plan, std::span<const BufferUse> uses) {
  std::ostringstream out;
  out << "arena of " << plan.bytes() << " bytes (" << HumanBytes(plan.bytes()) << ") in "
      << plan.block_bytes.size() << " blocks; at most " << plan.lower_bound << " live at once\n";
  std::vector<size_t> order(uses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    return std::tuple(plan.places[i].block, plan.places[i].offset, uses[i].first);
  });
  int block = -1;
  for (size_t i : order) {
    if (plan.places[i].block < 0) continue;
    if (plan.places[i].block != block) {
      block = plan.places[i].block;
      out << "block " << block << ": " << plan.block_bytes[static_cast<size_t>(block)]
          << " bytes\n";
    }
    out << "  " << plan.places[i].offset << " + " << uses[i].bytes << ": buffer " << i << ", steps "
        << uses[i].first << "-" << uses[i].last << "\n";
  }
  return std::move(out).str();
}

}  // namespace oncilla
