// Place: which device runs which node, and why not the others. A pure function of the graph and of
// what the devices say they can run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/graph/graph.h"
#include "engine/placement/wishes.h"

namespace oncilla {

// Why a node runs where it does. Only kUnsupported is a fallback: the others are intended, and
// `strict` lets them pass.
enum class PlacementReason {
  kPreferred,    // the device asked for, or the only one
  kShapes,       // shape arithmetic, settled while planning or small enough for the host
  kHostOnly,     // strings, or a size that depends on data
  kUnsupported,  // the preferred device refused
  kSmall,        // the function of a loop or branch, too small to be worth copies
  kStored,       // the model says so
  kRequested,    // the program says so
  kColocated,    // it belongs to a node that runs there
  kRelaxed,      // model or program say otherwise, which cannot be followed
};
std::string_view Name(PlacementReason reason);

struct NodePlacement {
  std::string node;  // source name
  std::string op;
  int device = 0;
  PlacementReason reason = PlacementReason::kPreferred;
  // The refusal, for kUnsupported and kRelaxed; else what was stored or asked for, or with whom.
  std::string detail;
};

struct PlacementReport {
  std::vector<std::string> devices;  // full names, as indexed by NodePlacement::device
  std::vector<NodePlacement> nodes;  // in the order of the graph

  // Refusals by their text, with how many nodes met them, most frequent first.
  std::vector<std::pair<std::string, int>> Refusals() const;
  // The same of stored devices and requests that were not followed.
  std::vector<std::pair<std::string, int>> Relaxed() const;
  int CountOn(int device) const;
};
// One line per node: name, op, device, reason.
std::string Print(const PlacementReport& report);

struct PlacementOptions {
  int preferred = 0;         // index into devices
  bool strict = false;       // refuse instead of falling back, or instead of relaxing a request
  // Nodes that may fall back even so: patterns of names, or "op:" and an op (graph/names_node.h).
  std::vector<std::string> strict_except = {};
  bool stored_hard = false;  // refuse what is stored and cannot be followed, instead of relaxing it
  // The graph is a function with so little work that it belongs on the CPU as a whole.
  bool small = false;
  WishOptions wishes = {};
};

// Devices[0] is the CPU. Sets every node's device in `graph`.
Result<PlacementReport> Place(Graph& graph, std::span<Device* const> devices,
                              std::span<const std::string> device_names,
                              const PlacementOptions& options);

// Nodes that only compute sizes: everything they lead to ends in plan inputs of others.
std::vector<bool> ShapeArithmetic(const Graph& graph);

// True when the node works on host tensors wherever it is placed.
bool RunsOnHost(const Graph& graph, const Node& node);

}  // namespace oncilla
