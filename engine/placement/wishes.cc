// Requests (by pattern, type or rule) come first, then devices stored in the model, then colocation
// groups.
#include "engine/placement/wishes.h"

#include <map>
#include <set>

#include "engine/base/near_names.h"
#include "engine/ops/control.h"
#include "engine/placement/device_name.h"

namespace oncilla {
namespace {

const SourceNode* Find(const WishOptions& options, std::string_view name) {
  if (options.sources == nullptr) return nullptr;
  const auto found = options.sources->find(name);
  return found == options.sources->end() ? nullptr : &found->second;
}

// The node's own name, then the names of the source nodes that it came from.
std::vector<std::string_view> NamesOf(const Node& node) {
  std::vector<std::string_view> names = {node.name};
  for (const std::string& source : node.sources) {
    if (source != node.name) names.push_back(source);
  }
  return names;
}

// The op's type in the model's format if the node is known there, else the canonical op.
std::string_view OpOf(const Node& node, const SourceNode* source) {
  return source == nullptr ? std::string_view(node.op->name) : std::string_view(source->op);
}

// Whether the request matches a node of this name with one of these types.
bool Means(const PlacementRequest& request, std::string_view name, std::string_view op,
           std::string_view canonical) {
  if (!request.op.empty() && request.op != op && request.op != canonical) return false;
  return MatchesPattern(request.nodes, name);
}

// Whether requests of this form also match the nodes that read a matching weight.
bool MeansWeights(const PlacementRequest& request) {
  return request.rule == nullptr && request.op.empty() && request.nodes != "*";
}

// The source name of a constant; empty where it has none.
std::string_view WeightName(const Value& value) {
  const std::string_view name = value.name;
  return name.substr(0, name.rfind(':'));
}

class Gatherer {
 public:
  Gatherer(const Graph& graph, const WishOptions& options) : graph_(graph), options_(options) {}

  Result<std::vector<Wish>> Run() {
    wishes_.resize(graph_.nodes().size());
    for (size_t n = 0; n < wishes_.size(); ++n) {
      const Node& node = graph_.node(NodeId{static_cast<uint32_t>(n)});
      if (IsControl(node.op->name)) continue;
      ONCILLA_ASSIGN(const bool decided, AskRequests(node, wishes_[n]));
      if (!decided) AskFile(node, wishes_[n]);
    }
    ONCILLA_TRY(FollowGroups());
    return std::move(wishes_);
  }

 private:
  // True if a request decides, even if it decides that no device is asked for. InvalidArgument if a
  // rule answers with something that is no device name.
  Result<bool> AskRequests(const Node& node, Wish& wish) const {
    if (options_.requests == nullptr || options_.requests->empty()) return false;
    const std::vector<std::string_view> names = NamesOf(node);
    for (auto request = options_.requests->rbegin(); request != options_.requests->rend();
         ++request) {
      for (std::string_view name : names) {
        const SourceNode* source = Find(options_, name);
        const std::string_view op = OpOf(node, source);
        if (!Means(*request, name, op, node.op->name)) continue;
        std::string device = request->device;
        if (request->rule != nullptr) {
          device =
              request->rule({name, op, source == nullptr ? std::string_view() : source->device});
          if (device.empty()) continue;
          const Status is_name = DeviceName::Parse(device).status();
          if (!is_name.ok()) {
            return WithNode(WithStage(In(is_name, StrCat("the answer of ", Describe(*request),
                                                         " for node '", name, "'")),
                                      Stage::kCompile),
                            name);
          }
        }
        if (!device.empty()) wish = {Wish::kRequested, std::move(device), Describe(*request)};
        return true;
      }
      if (AskForWeights(node, *request, wish)) return true;
    }
    return false;
  }

  bool AskForWeights(const Node& node, const PlacementRequest& request, Wish& wish) const {
    if (!MeansWeights(request)) return false;
    for (ValueId id : node.inputs) {
      if (id == kNoValue || !graph_.value(id).is_constant()) continue;
      const std::string_view name = WeightName(graph_.value(id));
      if (name.empty() || !MatchesPattern(request.nodes, name)) continue;
      if (!request.device.empty()) {
        wish = {Wish::kRequested, request.device, StrCat("its weight '", name, "'")};
      }
      return true;
    }
    return false;
  }

  void AskFile(const Node& node, Wish& wish) const {
    if (!options_.follow_stored) return;
    for (std::string_view name : NamesOf(node)) {
      const SourceNode* source = Find(options_, name);
      if (source == nullptr || source->device.empty()) continue;
      wish = {Wish::kStored, source->device, ""};
      return;
    }
  }

  // The group that a node is colocated with; a node without one forms its own group.
  std::string_view GroupOf(const Node& node) const {
    for (std::string_view name : NamesOf(node)) {
      const SourceNode* source = Find(options_, name);
      if (source != nullptr && !source->group.empty()) return source->group;
    }
    return node.name;
  }

  Status FollowGroups() {
    bool any = false;
    for (const Wish& wish : wishes_) any |= wish.origin != Wish::kNone;
    if (!any || options_.sources == nullptr) return Status();
    std::map<std::string_view, uint32_t> leaders;  // by group: the first member with a wish
    for (uint32_t n = 0; n < wishes_.size(); ++n) {
      if (wishes_[n].origin == Wish::kNone) continue;
      const Node& node = graph_.node(NodeId{n});
      const auto [leader, first] = leaders.emplace(GroupOf(node), n);
      if (!first && options_.strict_groups) ONCILLA_TRY(Agree(leader->second, n));
    }
    for (uint32_t n = 0; n < wishes_.size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (wishes_[n].origin != Wish::kNone || IsControl(node.op->name)) continue;
      const auto leader = leaders.find(GroupOf(node));
      if (leader == leaders.end()) continue;
      wishes_[n] = {Wish::kColocated, wishes_[leader->second].device,
                    graph_.node(NodeId{leader->second}).name};
    }
    return Status();
  }

  Status Agree(uint32_t leader, uint32_t member) const {
    auto a = DeviceName::Parse(wishes_[leader].device);
    const auto b = DeviceName::Parse(wishes_[member].device);
    if (!a.ok() || !b.ok()) return Status();  // reported where they are looked up
    const Status merged = Merge(*a, *b);
    if (merged.ok()) return Status();
    const Node& node = graph_.node(NodeId{member});
    return WithNode(
        WithStage(InvalidArgument("Cannot colocate nodes {{colocation_node ", node.name,
                                  "}} and {{colocation_node ", graph_.node(NodeId{leader}).name,
                                  "}}: ", Message(merged)),
                  Stage::kCompile),
        node.name);
  }

  const Graph& graph_;
  const WishOptions& options_;
  std::vector<Wish> wishes_;
};

// The names and types that requests can refer to.
struct Known {
  struct Item {
    std::string_view name, op, canonical;
  };
  std::vector<Item> nodes;
  std::set<std::string_view> weights;

  Known(std::span<const Graph* const> graphs, const WishOptions& options) {
    for (const Graph* graph : graphs) {
      for (const Node& node : graph->nodes()) {
        for (std::string_view name : NamesOf(node)) {
          nodes.push_back({name, OpOf(node, Find(options, name)), node.op->name});
        }
        for (ValueId id : node.inputs) {
          if (id == kNoValue || !graph->value(id).is_constant()) continue;
          const std::string_view name = WeightName(graph->value(id));
          if (!name.empty()) weights.insert(name);
        }
      }
    }
    if (options.sources == nullptr) return;
    for (const auto& [name, source] : *options.sources) nodes.push_back({name, source.op, {}});
  }

  bool Has(const PlacementRequest& request) const {
    for (const Item& item : nodes) {
      if (Means(request, item.name, item.op, item.canonical)) return true;
    }
    if (!MeansWeights(request)) return false;
    for (std::string_view name : weights) {
      if (MatchesPattern(request.nodes, name)) return true;
    }
    return false;
  }

  // Suggests names close to the requested type if there is one, else close to the pattern.
  std::string Near(const PlacementRequest& request) const {
    std::set<std::string> candidates;
    for (const Item& item : nodes) {
      candidates.emplace(request.op.empty() ? item.name : item.op);
      if (!request.op.empty() && !item.canonical.empty()) candidates.emplace(item.canonical);
    }
    if (request.op.empty()) candidates.insert(weights.begin(), weights.end());
    std::string wanted = request.op.empty() ? request.nodes : request.op;
    std::erase(wanted, '*');
    const std::vector<std::string> all(candidates.begin(), candidates.end());
    return DidYouMean(wanted, all);
  }
};

}  // namespace

std::string Describe(const PlacementRequest& request) {
  std::string text = request.rule != nullptr ? "a rule" : "";
  if (request.nodes != "*")
    text += StrCat(text.empty() ? "" : " for ", "nodes '", request.nodes, "'");
  if (!request.op.empty()) {
    text += StrCat(text.empty() ? "nodes" : "", " of type ", request.op);
  }
  return text.empty() ? "all nodes" : text;
}

Result<std::vector<Wish>> GatherWishes(const Graph& graph, const WishOptions& options) {
  return Gatherer(graph, options).Run();
}

std::vector<std::string> UnmatchedRequests(std::span<const Graph* const> graphs,
                                           const WishOptions& options) {
  std::vector<std::string> unmatched;
  if (options.requests == nullptr || options.requests->empty()) return unmatched;
  const Known known(graphs, options);
  for (const PlacementRequest& request : *options.requests) {
    if (request.nodes == "*" && request.op.empty()) continue;
    if (known.Has(request)) continue;
    unmatched.push_back(StrCat(Describe(request), " match no node", known.Near(request)));
  }
  return unmatched;
}

}  // namespace oncilla
