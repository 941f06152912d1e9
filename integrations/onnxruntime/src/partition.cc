// Divides nodes into groups by level.
#include "integrations/onnxruntime/src/partition.h"

#include <algorithm>
#include <map>

namespace oncilla::ort {

std::vector<std::vector<size_t>> Partition(const Predecessors& predecessors,
                                           const std::vector<bool>& taken) {
  // A node without taken predecessors has level -1, so that its readers can join the first group.
  std::vector<int> level(predecessors.size());
  std::map<int, std::vector<size_t>> groups;
  for (size_t i = 0; i < predecessors.size(); ++i) {
    level[i] = taken[i] ? 0 : -1;
    for (const size_t before : predecessors[i]) {
      level[i] = std::max(level[i], level[before] + (taken[before] != taken[i] ? 1 : 0));
    }
    if (taken[i]) groups[level[i]].push_back(i);
  }
  std::vector<std::vector<size_t>> all;
  for (auto& [key, nodes] : groups) all.push_back(std::move(nodes));
  return all;
}

}  // namespace oncilla::ort
