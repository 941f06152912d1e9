// Placement: candidates by CanRun, the preferred device first, the CPU last.
#include "engine/placement/placer.h"

#include <algorithm>
#include <sstream>

#include "engine/ops/control.h"
#include "engine/placement/device_name.h"

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
    case PlacementReason::kStored:
      return "stored";
    case PlacementReason::kRelaxed:
      return "stored, relaxed";
  }
  return "";
}

namespace {

std::vector<std::pair<std::string, int>> CountDetails(const PlacementReport& report,
                                                      PlacementReason reason) {
  std::map<std::string, int> counts;
  for (const NodePlacement& n : report.nodes) {
    if (n.reason == reason) ++counts[n.detail];
  }
  std::vector<std::pair<std::string, int>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace

std::vector<std::pair<std::string, int>> PlacementReport::Refusals() const {
  return CountDetails(*this, PlacementReason::kUnsupported);
}

std::vector<std::pair<std::string, int>> PlacementReport::Relaxed() const {
  return CountDetails(*this, PlacementReason::kRelaxed);
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

namespace {

// What is stored for a node: for itself, else for the first of its sources that says something.
const std::string* StoredFor(const Node& node, const StoredPins& pins) {
  if (const auto own = pins.by_source.find(node.name); own != pins.by_source.end()) {
    return &own->second;
  }
  for (const std::string& source : node.sources) {
    const auto found = pins.by_source.find(source);
    if (found != pins.by_source.end()) return &found->second;
  }
  return nullptr;
}

// The device that `stored` means, the preferred one if several do; or why there is none.
Result<int> FindStored(const std::string& stored, std::span<const std::string> device_names,
                       int preferred) {
  const auto pattern = DeviceName::Parse(stored);
  if (!pattern.ok()) return pattern.status();
  int found = -1;
  for (size_t d = 0; d < device_names.size(); ++d) {
    const auto device = DeviceName::Parse(device_names[d]);
    if (!device.ok() || !IsCompleteSpecification(*pattern, *device)) continue;
    if (found < 0 || static_cast<int>(d) == preferred) found = static_cast<int>(d);
  }
  if (found < 0) return NotFound("there is no such device");
  return found;
}

// A stored device that cannot be followed, in TensorFlow's words.
Status RefuseStored(const Node& node, const std::string& stored, const Status& why,
                    std::span<const std::string> device_names) {
  if (why.code() == Code::kInvalidArgument) {
    return WithStage(InvalidArgument("Malformed device specification '", stored,
                                     "' in node: {{node ", node.name, "}}: ", Message(why)),
                     Stage::kCompile);
  }
  if (why.code() != Code::kNotFound) {
    return WithStage(Unsupported("Cannot assign a device for operation ", node.name, ": {{node ",
                                 node.name, "}} was explicitly assigned to ", stored,
                                 ", which cannot run ", node.op->name, ": ", Message(why)),
                     Stage::kCompile);
  }
  std::string all;
  for (const std::string& name : device_names) all += (all.empty() ? "" : ", ") + name;
  return WithStage(
      InvalidArgument("Cannot assign a device for operation ", node.name, ": {{node ", node.name,
                      "}} was explicitly assigned to ", stored, " but available devices are [ ",
                      all, " ]. Make sure the device specification refers to a valid device."),
      Stage::kDevice);
}

}  // namespace

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
    const std::string* stored = options.stored == nullptr || IsControl(node.op->name)
                                    ? nullptr
                                    : StoredFor(node, *options.stored);
    std::string relaxed;
    if (stored != nullptr) {
      auto device = FindStored(*stored, device_names, options.preferred);
      if (device.ok() && *device != 0) {
        Status can = RunsOnHost(graph, node) ? Unsupported("it runs on the host only")
                                             : devices[*device]->CanRun(view);
        if (!can.ok()) device = std::move(can);
      }
      if (device.ok()) {
        placed.device = *device;
        placed.reason = PlacementReason::kStored;
        placed.detail = *stored;
      } else if (options.stored->hard) {
        return WithNode(RefuseStored(node, *stored, device.status(), device_names), node.name);
      } else {
        relaxed = StrCat("'", *stored, "': ", Message(device.status()));
      }
    }
    if (placed.reason == PlacementReason::kStored) {
      // No device runs sizes that are settled while planning.
      if (shapes[n]) placed.device = 0;
    } else if (options.preferred != 0) {
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
    if (!relaxed.empty()) {
      placed.reason = PlacementReason::kRelaxed;
      placed.detail = relaxed;
    }
    graph.SetDevice(NodeId{n}, placed.device);
    report.nodes.push_back(std::move(placed));
  }
  return report;
}

}  // namespace oncilla
