// Wishes: the requested device of each node, from the program's requests, from devices stored in
// the model and from colocation groups. Whether a wish can be met is decided elsewhere (placer.h).
//
// What was asked for last wins, also over what is stored. A request that names a weight (a constant
// or a variable) is one for the nodes that read it. Nodes of one group follow the member that has a
// wish.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/name_pattern.h"
#include "engine/graph/graph.h"
#include "engine/graph/source_nodes.h"

namespace oncilla {

// A node, as a rule is asked about it.
struct NodeInQuestion {
  std::string_view name;    // in the source model
  std::string_view op;      // in the words of the model's format
  std::string_view device;  // the stored one, or ""
};

struct PlacementRequest {
  // Names in the source model: '*' stands for any text, '?' for one character.
  std::string nodes = "*";
  // The op's type in the model's format ("Conv2D") or the canonical one ("Conv"); empty: any.
  std::string op = {};
  // A device name, whole or partial; empty takes back what was asked for before.
  std::string device = {};
  // Asked instead, where there is one; "" means no opinion. Must be thread-safe.
  std::function<std::string(const NodeInQuestion&)> rule = nullptr;
};
// "nodes 'conv*' of type Conv2D".
std::string Describe(const PlacementRequest& request);

struct Wish {
  enum Origin { kNone, kStored, kRequested, kColocated };
  Origin origin = kNone;
  std::string device;  // a device name, whole or partial, as it was spelled
  std::string why;     // "nodes 'conv*'"; of kColocated the other member
};

struct WishOptions {
  std::shared_ptr<const SourceNodes> sources = nullptr;  // null: nothing is known
  bool follow_stored = false;
  // Refuse members of one group that ask for different devices, in TensorFlow's words; otherwise
  // each goes its own way.
  bool strict_groups = false;
  std::shared_ptr<const std::vector<PlacementRequest>> requests = nullptr;  // null: none
};

// One per node of the graph.
Result<std::vector<Wish>> GatherWishes(const Graph& graph, const WishOptions& options);

// For each request that means no node of the graphs, none of the sources and no weight that the
// graphs read: "nodes 'cnv1' match no node; did you mean 'conv1'?". In the requests' order.
std::vector<std::string> UnmatchedRequests(std::span<const Graph* const> graphs,
                                           const WishOptions& options);

}  // namespace oncilla
