// MinCut: the cheapest way to give each of many things one of two sides.
//
// A cost is paid when one thing is on side 0 and another on side 1. Solved as the largest flow
// (Dinic's algorithm: shortest augmenting paths, found in layers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace oncilla {

class MinCut {
 public:
  static constexpr int64_t kForbidden = int64_t{1} << 60;
  static constexpr int kSide0 = 0, kSide1 = 1;  // things whose side is given

  int Add();
  // Costs `cost` when `a` is on side 0 and `b` on side 1.
  void Cost(int a, int b, int64_t cost);
  // The side of each thing, at the least sum of costs. Of several best answers the one with the
  // fewest things on side 0.
  std::vector<bool> Solve();

 private:
  struct Edge {
    int to;
    int64_t left;  // capacity that is not used; the edge at the next (odd) place goes back
  };
  bool FindLayers();
  bool Push();

  std::vector<Edge> edges_;
  std::vector<std::vector<int>> leaving_ = std::vector<std::vector<int>>(2);
  std::vector<int> layer_;
  std::vector<std::size_t> next_;
};

}  // namespace oncilla
