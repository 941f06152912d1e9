// MinCut: assigns things to two sides at the least cost.
//
// A cost is paid when one thing is on side 0 and another on side 1. Solved as a maximum flow
// (Dinic's algorithm: shortest augmenting paths, found in layers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace oncilla {

class MinCut {
 public:
  static constexpr int64_t kForbidden = int64_t{1} << 60;
  static constexpr int kSide0 = 0, kSide1 = 1;  // source and sink

  int Add();
  // Costs `cost` when `a` is on side 0 and `b` on side 1.
  void Cost(int a, int b, int64_t cost);
  // The side of each thing at the least sum of costs; among equal solutions, the one with the
  // fewest things on side 0.
  std::vector<bool> Solve();

 private:
  struct Edge {
    int to;
    int64_t left;  // residual capacity; the edge at the next (odd) index is the reverse one
  };
  bool FindLayers();
  bool Push();

  std::vector<Edge> edges_;
  std::vector<std::vector<int>> leaving_ = std::vector<std::vector<int>>(2);
  std::vector<int> layer_;
  std::vector<std::size_t> next_;
};

}  // namespace oncilla
