// Placement: candidates by CanRun, the preferred device first, the CPU last.
#include "engine/placement/placer.h"

#include <algorithm>
#include <sstream>

#include "engine/ops/control.h"

namespace oncilla {

std::string_view Name(PlacementReason reason) {
  switch (reason) {
    case PlacementReason::kPreferred:
      return "preferred";
    case PlacementReason::kShapes:
      return "shape arithmetic";
    case PlacementReason::kHostOnly:
      return "host only";
    case PlacementReason::kUnsupported:
      return "unsupported";
    case PlacementReason::kSmall:
      return "small";
  }
  return "";
}

std::vector<std::pair<std::string, int>> PlacementReport::Refusals() const {
  std::map<std::string, int> counts;
  for (const NodePlacement& n : nodes) {
    if (n.reason == PlacementReason::kUnsupported) ++counts[n.detail];
  }
  std::vector<std::pair<std::string, int>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

int PlacementReport::CountOn(int device) const {
  return static_cast<int>(std::count_if(
      nodes.begin(), nodes.end(), [&](const NodePlacement& n) { return n.device == device; }));
}

std::string Print(const PlacementReport& report) {
  std::ostringstream out;
  for (const NodePlacement& n : report.nodes) {
    out << n.node << " (" << n.op << "): " << report.devices[n.device] << "  " << Name(n.reason);
    if (!n.detail.empty()) out << ": " << n.detail;
    out << '\n';
  }
  return std::move(out).str();
}

bool RunsOnHost(const Graph& graph, const Node& node) {
  if (node.op->traits.host_only || node.op->traits.data_dependent) return true;
  auto on_host = [&](ValueId id) {
    const Fact& fact = graph.fact(id);
    return !fact.absent() && (fact.dtype == DType::kString || fact.kind != ValueKind::kTensor);
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), on_host) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), on_host);
}

std::vector<bool> ShapeArithmetic(const Graph& graph) {
  // Backwards: a node counts when it has readers and each of its outputs is read only as a plan
  // input, or by nodes that count. Anything large is left out: it would be slow on the host.
  const auto readers = Consumers(graph);
  std::vector<bool> shapes(graph.nodes().size());
  std::vector<bool> fetched(graph.values().size());
  for (const NamedValue& output : graph.outputs()) fetched[Index(output.value)] = true;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.node(NodeId{static_cast<uint32_t>(n)});
    bool all = true, any = false;
    for (ValueId out : node.outputs) {
      const Dim elements = graph.fact(out).shape.elements();
      all &= !fetched[Index(out)] && graph.fact(out).shape.ranked() &&
             graph.fact(out).shape.rank() <= 1 &&
             (!elements.known() || elements.size <= kMaxKnownInts);
      for (NodeId reader : readers[Index(out)]) {
        any = true;
        if (shapes[Index(reader)]) continue;
        const Node& r = graph.node(reader);
        for (size_t i = 0; i < r.inputs.size(); ++i) {
          if (r.inputs[i] == out) all &= i < 32 && (r.op->traits.plan_inputs >> i & 1) != 0;
        }
      }
    }
    shapes[n] = all && any;
  }
  return shapes;
}

Result<PlacementReport> Place(Graph& graph, std::span<Device* const> devices,
                              std::span<const std::string> device_names,
                              const PlacementOptions& options) {
  PlacementReport report;
  report.devices.assign(device_names.begin(), device_names.end());
  const std::vector<bool> shapes = ShapeArithmetic(graph);
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.node(NodeId{n});
    NodePlacement placed{node.name, std::string(node.op->name), options.preferred,
                         PlacementReason::kPreferred, ""};
    const Facts in = graph.FactsOf(node.inputs), out = graph.FactsOf(node.outputs);
    const NodeView view{node.op, &node.attrs, in, out, node.name};
    if (options.preferred != 0) {
      if (shapes[n]) {
        placed.device = 0;
        placed.reason = PlacementReason::kShapes;
      } else if (RunsOnHost(graph, node)) {
        placed.device = 0;
        placed.reason = PlacementReason::kHostOnly;
      } else if (options.small) {
        placed.device = 0;
        placed.reason = PlacementReason::kSmall;
      } else if (Status can = devices[options.preferred]->CanRun(view); !can.ok()) {
        placed.device = 0;
        placed.reason = PlacementReason::kUnsupported;
        placed.detail = Message(can);
        if (options.strict) {
          return WithStage(
              WithNode(Unsupported("node '", node.name, "' (", node.op->name, ") cannot run on ",
                                   device_names[options.preferred], ": ", placed.detail),
                       node.name),
              Stage::kCompile);
        }
      }
    }
    if (placed.device == 0 && !IsControl(node.op->name)) {
      if (Status can = devices[0]->CanRun(view); !can.ok()) {
        return WithStage(
            WithNode(In(can, StrCat("node '", node.name, "' (", node.op->name, ")")), node.name),
            Stage::kCompile);
      }
    }
    graph.SetDevice(NodeId{n}, placed.device);
    report.nodes.push_back(std::move(placed));
  }
  return report;
}

}  // namespace oncilla
