// The sizes of a plan, and its peak: walks through the steps on the clock of the live ranges of
// storages.
#include "engine/compile/plan_memory.h"

#include <algorithm>

#include "engine/base/format.h"

namespace oncilla {
namespace {

// The node that first wrote to a storage.
struct Maker {
  std::string node, op;
  DType dtype = DType::kF32;
  bool typed = false;
};

std::vector<Maker> MakersOf(const Plan& plan) {
  std::vector<Maker> makers(plan.storages.size());
  const Graph& graph = plan.compiled->graph;
  const auto name = [&](const Home& home, std::string node, std::string_view op,
                        const DType* type) {
    if (home.kind != Home::kStorage) return;
    Maker& maker = makers[static_cast<size_t>(home.index)];
    if (!maker.op.empty()) return;
    maker.node = std::move(node);
    maker.op = op;
    if (type != nullptr) maker.dtype = *type, maker.typed = true;
  };
  for (const PlannedUpload& upload : plan.uploads) {
    const DType type = upload.value.dtype();
    name(upload.to, "", "value known beforehand", &type);
  }
  for (const Stretch& stretch : plan.stretches) {
    for (const PlannedStep& step : stretch.steps) {
      const Node& node = graph.node(step.node);
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        const DType type = graph.fact(node.outputs[i]).dtype;
        name(step.outputs[i], node.name, node.op->name, &type);
      }
      if (step.scratch >= 0) {
        name({Home::kStorage, step.scratch, {}}, node.name, StrCat(node.op->name, " scratch"),
             nullptr);
      }
    }
    for (const PlannedCopy& copy : stretch.copies) name(copy.to, "", "copy", nullptr);
  }
  return makers;
}

}  // namespace

std::vector<PlanMemory> MemoryOf(const Plan& plan) {
  const Graph& graph = plan.compiled->graph;
  const std::vector<Maker> makers = MakersOf(plan);
  std::vector<PlanMemory> out;
  for (size_t d = 0; d < plan.arenas.size(); ++d) {
    const auto device = static_cast<int>(d);
    if (plan.arena_bytes(device) == 0) continue;
    PlanMemory memory;
    memory.device = device;
    memory.arena_bytes = plan.arena_bytes(device);
    const auto mine = [&](const Storage& s) { return s.device == device && s.output < 0; };
    std::map<int, int64_t> changes;  // changes of the live bytes, by clock
    for (const Storage& s : plan.storages) {
      if (!mine(s)) continue;
      changes[s.first] += s.bytes;
      changes[s.last + 1] -= s.bytes;
    }
    int peak = 0;
    int64_t live = 0;
    for (const auto& [clock, change] : changes) {
      live += change;  // cannot overflow: the arena's size was checked when it was packed
      if (live > memory.peak_bytes) memory.peak_bytes = live, peak = clock;
    }
    std::map<std::string, OpBytes> ops;
    for (size_t i = 0; i < plan.storages.size(); ++i) {
      const Storage& s = plan.storages[i];
      if (!mine(s)) continue;
      const Maker& maker = makers[i];
      OpBytes& op = ops[maker.op];
      op.op = maker.op;
      op.bytes = SaturatingAdd(op.bytes, s.bytes);
      ++op.count;
      if (s.bytes > op.largest) op.largest = s.bytes, op.largest_node = maker.node;
      if (s.first > peak || s.last < peak) continue;
      memory.held.push_back({maker.node, maker.op, s.bytes});
      if (maker.typed) memory.by_dtype[maker.dtype] += s.bytes;
    }
    for (auto& [name, op] : ops) memory.ops.push_back(std::move(op));
    std::ranges::stable_sort(memory.ops, std::greater{}, &OpBytes::bytes);
    std::ranges::stable_sort(memory.held, std::greater{}, &HeldBytes::bytes);
    for (const Stretch& stretch : plan.stretches) {
      for (const PlannedStep& step : stretch.steps) {
        if (step.clock != peak) continue;
        memory.peak_node = graph.node(step.node).name;
        memory.peak_op = graph.node(step.node).op->name;
      }
    }
    out.push_back(std::move(memory));
  }
  return out;
}

int64_t ResultBytes(const Plan& plan) {
  int64_t sum = 0;
  for (const SegmentOutput& output : plan.outputs) {
    const bool made = output.direct ? output.device == 0 && !output.on_device
                                    : output.read_back(plan.input_devices);
    if (made) sum = SaturatingAdd(sum, output.desc.bytes());
  }
  return sum;
}

std::string PeakText(const PlanMemory& memory, size_t most) {
  std::string out = StrCat("peak ", HumanBytes(memory.peak_bytes));
  out += memory.peak_node.empty()
             ? std::string(" while values are brought to the device")
             : StrCat(" while node '", memory.peak_node, "' (", memory.peak_op, ") runs");
  for (size_t i = 0; i < memory.held.size(); ++i) {
    if (i == most) return out + StrCat(" and ", memory.held.size() - most, " more");
    const HeldBytes& held = memory.held[i];
    out += StrCat(i == 0 ? ": holds " : ", ", HumanBytes(held.bytes), " of ");
    out += held.node.empty() ? held.op : StrCat("'", held.node, "' (", held.op, ")");
  }
  return out;
}

std::string DTypesText(const std::map<DType, int64_t>& bytes) {
  std::vector<std::pair<int64_t, DType>> order;
  for (const auto& [dtype, count] : bytes) order.emplace_back(-count, dtype);
  std::sort(order.begin(), order.end());
  std::string out;
  for (const auto& [count, dtype] : order) {
    out += StrCat(out.empty() ? "" : ", ", dtype, " ", HumanBytes(-count));
  }
  return out;
}

int64_t Plan::arena_bytes(int device) const { return arenas[device].bytes(); }

int Plan::steps_on(int device) const {
  int count = 0;
  for (const Stretch& s : stretches) {
    if (s.device == device) count += static_cast<int>(s.steps.size());
  }
  return count;
}

int Plan::copies() const {
  int count = 0;
  for (const Stretch& s : stretches) count += static_cast<int>(s.copies.size());
  for (const SegmentOutput& o : outputs) count += o.read_back(input_devices);
  return count;
}

int64_t Plan::copied_bytes() const {
  int64_t bytes = 0;
  for (const Stretch& s : stretches) {
    for (const PlannedCopy& c : s.copies) bytes += c.bytes;
  }
  for (const SegmentOutput& o : outputs) {
    if (o.read_back(input_devices)) bytes += o.desc.bytes();
  }
  return bytes;
}

}  // namespace oncilla
