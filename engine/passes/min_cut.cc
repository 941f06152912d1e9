// Dinic's algorithm for the maximum flow, which gives the minimum cut.
#include "engine/passes/min_cut.h"

#include <algorithm>

namespace oncilla {

int MinCut::Add() {
  leaving_.emplace_back();
  return static_cast<int>(leaving_.size()) - 1;
}

void MinCut::Cost(int a, int b, int64_t cost) {
  if (cost <= 0 || a == b) return;
  leaving_[static_cast<size_t>(a)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({b, cost});
  leaving_[static_cast<size_t>(b)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({a, 0});
}

// Breadth-first distances from side 0 along edges with remaining capacity; false if side 1 cannot
// be reached.
bool MinCut::FindLayers() {
  layer_.assign(leaving_.size(), -1);
  layer_[kSide0] = 0;
  std::vector<int> queue = {kSide0};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int e : leaving_[static_cast<size_t>(queue[i])]) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      int& layer = layer_[static_cast<size_t>(edge.to)];
      if (edge.left == 0 || layer >= 0) continue;
      layer = layer_[static_cast<size_t>(queue[i])] + 1;
      queue.push_back(edge.to);
    }
  }
  return layer_[kSide1] >= 0;
}

// Sends flow along one shortest path; false if there is none. An explicit stack is used instead of
// recursion, since paths are as long as the network is deep.
bool MinCut::Push() {
  std::vector<int> path;  // edges
  int at = kSide0;
  while (true) {
    if (at == kSide1) {
      int64_t flow = kForbidden;
      for (int e : path) flow = std::min(flow, edges_[static_cast<size_t>(e)].left);
      for (int e : path) {
        edges_[static_cast<size_t>(e)].left -= flow;
        edges_[static_cast<size_t>(e ^ 1)].left += flow;
      }
      return true;
    }
    const auto& edges = leaving_[static_cast<size_t>(at)];
    size_t& next = next_[static_cast<size_t>(at)];
    for (; next < edges.size(); ++next) {
      const Edge& edge = edges_[static_cast<size_t>(edges[next])];
      if (edge.left > 0 &&
          layer_[static_cast<size_t>(edge.to)] == layer_[static_cast<size_t>(at)] + 1) {
        break;
      }
    }
    if (next < edges.size()) {
      path.push_back(edges[next]);
      at = edges_[static_cast<size_t>(edges[next])].to;
    } else if (path.empty()) {
      return false;
    } else {
      at = edges_[static_cast<size_t>(path.back() ^ 1)].to;
      path.pop_back();
      ++next_[static_cast<size_t>(at)];
    }
  }
}

std::vector<bool> MinCut::Solve() {
  while (FindLayers()) {
    next_.assign(leaving_.size(), 0);
    while (Push()) {
    }
  }
  std::vector<bool> side(leaving_.size());
  for (size_t i = 0; i < side.size(); ++i) side[i] = layer_[i] < 0;
  return side;
}

}  // namespace oncilla
