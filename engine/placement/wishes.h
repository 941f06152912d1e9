// Wishes: the requested device of each node, from the program's requests, from devices stored in
// the model and from colocation groups. placer.h decides whether it can be used.
//
// A later request overrides earlier ones and stored devices. A request for a weight (a constant or
// a variable) is one for the nodes that read it. Nodes of one group follow the member that has a
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

// A node, as passed to a rule.
struct NodeInQuestion {
  std::string_view name;    // in the source model
  std::string_view op;      // the op type in the model's format
  std::string_view device;  // the stored one, or ""
};

struct PlacementRequest {
  // Names in the source model: '*' stands for any text, '?' for one character.
  std::string nodes = "*";
  // The op's type in the model's format ("Conv2D") or the canonical one ("Conv"); empty: any.
  std::string op = {};
  // A device name, complete or partial; empty withdraws earlier requests.
  std::string device = {};
  // Called instead of using `device`, if set; "" means no request. Must be thread-safe.
  std::function<std::string(const NodeInQuestion&)> rule = nullptr;
};
// "nodes 'conv*' of type Conv2D".
std::string Describe(const PlacementRequest& request);

struct Wish {
  enum Origin { kNone, kStored, kRequested, kColocated };
  Origin origin = kNone;
  std::string device;  // a device name, complete or partial, as it was spelled
  std::string why;     // "nodes 'conv*'"; for kColocated the other member
};

struct WishOptions {
  std::shared_ptr<const SourceNodes> sources = nullptr;  // null: nothing is known
  bool follow_stored = false;
  // Refuse members of one group that request different devices, with TensorFlow's message;
  // otherwise each follows its own wish.
  bool strict_groups = false;
  std::shared_ptr<const std::vector<PlacementRequest>> requests = nullptr;  // null: none
};

// One per node of the graph.
Result<std::vector<Wish>> GatherWishes(const Graph& graph, const WishOptions& options);

// A message for each request that matches no node of the graphs or sources and no weight that the
// graphs read: "nodes 'cnv1' match no node; did you mean 'conv1'?". In the order of the requests.
std::vector<std::string> UnmatchedRequests(std::span<const Graph* const> graphs,
                                           const WishOptions& options);

}  // namespace oncilla
