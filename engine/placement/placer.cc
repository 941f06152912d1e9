// Places nodes: a device must pass CanRun; the preferred one comes first, the CPU last.
#include "engine/placement/placer.h"

#include <algorithm>
#include <sstream>

#include "engine/base/format.h"
#include "engine/graph/at_node.h"
#include "engine/graph/names_node.h"
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
    case PlacementReason::kRequested:
      return "requested";
    case PlacementReason::kColocated:
      return "colocated";
    case PlacementReason::kRelaxed:
      return "relaxed";
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
    out << OneLine(n.node) << " (" << n.op << "): " << report.devices[n.device] << "  "
        << Name(n.reason);
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
  // The nodes are visited backwards. A node is shape arithmetic if it has readers and each of its
  // outputs is read only as a plan input or by other shape arithmetic. Large values are excluded:
  // the host would be slow on them.
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
          if (r.inputs[i] == out) all &= r.op->traits.IsPlanInput(i);
        }
      }
    }
    shapes[n] = all && any;
  }
  return shapes;
}

namespace {

// The device that a wish names, the preferred one if several match; or the reason why there is
// none.
Result<int> FindWished(const std::string& wished, std::span<const std::string> device_names,
                       int preferred) {
  const auto pattern = DeviceName::Parse(wished);
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

// The error for a wish that cannot be met, in TensorFlow's wording.
Status RefuseWish(const Node& node, const std::string& wished, const Status& why,
                  std::span<const std::string> device_names) {
  if (why.code() == Code::kInvalidArgument) {
    return WithStage(InvalidArgument("Malformed device specification '", wished,
                                     "' in node: {{node ", node.name, "}}: ", Message(why)),
                     Stage::kCompile);
  }
  const std::string text = DeviceName::Parse(wished)->text();
  if (why.code() != Code::kNotFound) {
    return WithStage(Unsupported("Cannot assign a device for operation ", node.name,
                                 ": Could not satisfy explicit device specification '", text,
                                 "' because no supported kernel for ", node.op->name,
                                 " is available there: ", Message(why)),
                     Stage::kCompile);
  }
  std::string all;
  for (const std::string& name : device_names) all += (all.empty() ? "" : ", ") + name;
  return WithStage(
      InvalidArgument("Cannot assign a device for operation ", node.name, ": {{node ", node.name,
                      "}} was explicitly assigned to ", text, " but available devices are [ ", all,
                      " ]. Make sure the device specification refers to a valid device."),
      Stage::kDevice);
}

PlacementReason ReasonOf(Wish::Origin origin) {
  switch (origin) {
    case Wish::kRequested:
      return PlacementReason::kRequested;
    case Wish::kColocated:
      return PlacementReason::kColocated;
    default:
      return PlacementReason::kStored;
  }
}

class Placer {
 public:
  Placer(Graph& graph, std::span<Device* const> devices, std::span<const std::string> device_names,
         const PlacementOptions& options)
      : graph_(graph),
        devices_(devices),
        device_names_(device_names),
        options_(options),
        shapes_(ShapeArithmetic(graph)) {}

  Result<PlacementReport> Run() {
    PlacementReport report;
    report.devices.assign(device_names_.begin(), device_names_.end());
    WishOptions wishes = options_.wishes;
    wishes.strict_groups |= options_.strict || options_.stored_hard;
    ONCILLA_ASSIGN(const std::vector<Wish> wished, GatherWishes(graph_, wishes));
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      ONCILLA_ASSIGN(NodePlacement placed, PlaceOne(NodeId{n}, wished[n]));
      graph_.SetDevice(NodeId{n}, placed.device);
      report.nodes.push_back(std::move(placed));
    }
    return report;
  }

 private:
  Result<NodePlacement> PlaceOne(NodeId id, const Wish& wish) {
    const Node& node = graph_.node(id);
    NodePlacement placed{node.name, std::string(node.op->name), options_.preferred,
                         PlacementReason::kPreferred, ""};
    const Facts in = graph_.FactsOf(node.inputs), out = graph_.FactsOf(node.outputs);
    const NodeView view{node.op, &node.attrs, in, out, node.name};
    // A wish comes first. If it cannot be met, that is an error or, without `strict`, only noted.
    bool granted = false;
    Status refused;
    if (wish.origin != Wish::kNone) {
      auto device = Grant(id, view, wish);
      granted = device.ok();
      if (granted) {
        placed.device = *device;
        placed.reason = ReasonOf(wish.origin);
        placed.detail = wish.why.empty() ? wish.device : StrCat(wish.device, " for ", wish.why);
        if (wish.origin == Wish::kColocated) placed.detail = StrCat("with '", wish.why, "'");
      } else if (wish.origin == Wish::kStored ? options_.stored_hard : Strict(node)) {
        return WithNode(RefuseWish(node, wish.device, device.status(), device_names_), node.name);
      } else {
        refused = device.status();
      }
    }
    // Without a granted wish, use the preferred device or the CPU.
    if (!granted && options_.preferred != 0) ONCILLA_TRY(PlaceByDefault(id, view, placed));
    // The CPU is the last resort, so its refusal is the run's error.
    if (devices_[placed.device]->info().can_evaluate && !IsControl(node.op->name)) {
      if (Status can = devices_[placed.device]->CanRun(view); !can.ok()) {
        return WithStage(AtNode(can, node), Stage::kCompile);
      }
    }
    if (!refused.ok()) {
      placed.reason = PlacementReason::kRelaxed;
      placed.detail = StrCat("'", wish.device, "': ", Message(refused));
    }
    return placed;
  }

  bool Strict(const Node& node) const {
    const SourceNodes* sources = options_.wishes.sources.get();
    return options_.strict &&
           std::none_of(options_.strict_except.begin(), options_.strict_except.end(),
                        [&](const auto& entry) { return NamesNode(entry, node, sources); });
  }

  Result<int> Grant(NodeId id, const NodeView& view, const Wish& wish) const {
    ONCILLA_ASSIGN(int device, FindWished(wish.device, device_names_, options_.preferred));
    // Values settled at plan time run on no device.
    if (device == 0 || shapes_[Index(id)]) return 0;
    if (RunsOnHost(graph_, graph_.node(id))) return Unsupported("it runs on the host only");
    ONCILLA_TRY(devices_[device]->CanRun(view));
    return device;
  }

  // Uses the preferred device, which is not the CPU here, or else the CPU with the reason.
  Status PlaceByDefault(NodeId id, const NodeView& view, NodePlacement& placed) const {
    const Node& node = graph_.node(id);
    const auto on_the_cpu = [&](PlacementReason reason) {
      placed.device = 0;
      placed.reason = reason;
      return Status();
    };
    if (shapes_[Index(id)]) return on_the_cpu(PlacementReason::kShapes);
    if (RunsOnHost(graph_, node)) return on_the_cpu(PlacementReason::kHostOnly);
    if (options_.small) return on_the_cpu(PlacementReason::kSmall);
    const Status can = devices_[options_.preferred]->CanRun(view);
    if (can.ok()) return can;
    placed.detail = Message(can);
    if (!Strict(node)) return on_the_cpu(PlacementReason::kUnsupported);
    return WithStage(
        WithNode(Error(can.code(), "node '", OneLine(NameInModel(node)), "' (", node.op->name,
                       ") cannot run on ", device_names_[options_.preferred], ": ", placed.detail),
                 NameInModel(node)),
        Stage::kCompile);
  }

  Graph& graph_;
  const std::span<Device* const> devices_;
  const std::span<const std::string> device_names_;
  const PlacementOptions& options_;
  const std::vector<bool> shapes_;
};

}  // namespace

Result<PlacementReport> Place(Graph& graph, std::span<Device* const> devices,
                              std::span<const std::string> device_names,
                              const PlacementOptions& options) {
  return Placer(graph, devices, device_names, options).Run();
}

}  // namespace oncilla
