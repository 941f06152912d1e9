// Place: decides which device runs each node, and records why. A pure function of the graph and of
// what the devices report that they can run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/graph/graph.h"
#include "engine/placement/wishes.h"

namespace oncilla {

// Why a node runs where it does. Only kUnsupported is a fallback; the others are intended, and
// `strict` allows them.
enum class PlacementReason {
  kPreferred,    // the device asked for, or the only one
  kShapes,       // shape arithmetic, folded while planning or small enough for the host
  kHostOnly,     // strings, or a size that depends on data
  kUnsupported,  // the preferred device refused
  kSmall,        // in the function of a loop or branch that is too small to be worth copies
  kStored,       // the model stores this device
  kRequested,    // the program requested it
  kColocated,    // in the colocation group of a node that runs there
  kRelaxed,      // the model or the program asks for another device, which cannot be used
};
std::string_view Name(PlacementReason reason);

struct NodePlacement {
  std::string node;  // source name
  std::string op;
  int device = 0;
  PlacementReason reason = PlacementReason::kPreferred;
  // The refusal, for kUnsupported and kRelaxed; else the stored or requested device, or the other
  // node.
  std::string detail;
};

struct PlacementReport {
  std::vector<std::string> devices;  // full names, as indexed by NodePlacement::device
  std::vector<NodePlacement> nodes;  // in the order of the graph

  // Refusals by their text, with the number of nodes, most frequent first.
  std::vector<std::pair<std::string, int>> Refusals() const;
  // The same for stored devices and requests that were not followed.
  std::vector<std::pair<std::string, int>> Relaxed() const;
  int CountOn(int device) const;
};
// One line per node: name, op, device, reason.
std::string Print(const PlacementReport& report);

struct PlacementOptions {
  int preferred = 0;    // index into devices
  bool strict = false;  // refuse instead of falling back, or instead of relaxing a request
  // Nodes that may fall back even if `strict`: patterns of names, or "op:" and an op
  // (graph/names_node.h).
  std::vector<std::string> strict_except = {};
  bool stored_hard = false;  // refuse a stored device that cannot be used, instead of relaxing it
  // The graph is a function with so little work that all of it is placed on the CPU.
  bool small = false;
  WishOptions wishes = {};
};

// `devices[0]` is the CPU. Sets every node's device in `graph`.
Result<PlacementReport> Place(Graph& graph, std::span<Device* const> devices,
                              std::span<const std::string> device_names,
                              const PlacementOptions& options);

// Per node, whether it only computes sizes: all its results are used in plan inputs only.
std::vector<bool> ShapeArithmetic(const Graph& graph);

// Whether the node works on host tensors wherever it is placed.
bool RunsOnHost(const Graph& graph, const Node& node);

}  // namespace oncilla
