// A plan as text, for inspect and golden files.
#include <sstream>

#include "engine/compile/plan.h"

namespace oncilla {

std::string Print(const Plan& plan, std::span<const std::string> device_names) {
  const Graph& graph = plan.compiled->graph;
  std::ostringstream out;
  auto show = [&](const Home& home) -> std::string {
    switch (home.kind) {
      case Home::kNone:
        return "-";
      case Home::kInput:
        return StrCat("in", home.index);
      case Home::kConstant:
        return "const";
      case Home::kStorage:
        break;
    }
    const Storage& s = plan.storages[home.index];
    if (s.output >= 0) return StrCat("out", s.output);
    return StrCat("b", s.block, "+", s.offset);
  };
  auto list = [&](const std::vector<Home>& homes) {
    std::string text;
    for (const Home& home : homes) text += (text.empty() ? "" : " ") + show(home);
    return text;
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    out << "input in" << i << " %" << Index(plan.inputs[i]);
    if (plan.input_devices[i] > 0) out << " on " << device_names[plan.input_devices[i]];
    out << '\n';
  }
  for (const Stretch& stretch : plan.stretches) {
    out << "on " << device_names[stretch.device] << '\n';
    for (const PlannedCopy& c : stretch.copies) {
      out << "  copy " << c.bytes << " bytes from " << show(c.from) << " to " << show(c.to) << '\n';
    }
    for (const PlannedStep& step : stretch.steps) {
      const Node& node = graph.node(step.node);
      out << "  " << node.op->name << " '" << node.name << "' " << list(step.inputs) << " -> "
          << list(step.outputs) << "  " << step.kernel->description() << '\n';
    }
  }
  for (const SegmentOutput& o : plan.outputs) {
    out << "output %" << Index(o.value) << ' ' << o.desc << " from " << show(o.home)
        << (o.on_device ? " kept there\n" : "\n");
  }
  for (NodeId id : plan.host_nodes) {
    out << "host " << graph.node(id).op->name << " '" << graph.node(id).name << "'\n";
  }
  for (size_t d = 0; d < plan.arenas.size(); ++d) {
    if (plan.arena_bytes(static_cast<int>(d)) == 0) continue;
    out << "arena " << device_names[d] << ' ' << plan.arena_bytes(static_cast<int>(d))
        << " bytes\n";
  }
  if (!plan.complete) out << "then: the rest, with the shapes found\n";
  return std::move(out).str();
}

}  // namespace oncilla
