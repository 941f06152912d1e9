// The same facts twice: as lines for people and as fields for programs.
#include "engine/session/memory_report.h"

#include <sstream>

#include "engine/base/decimal.h"
#include "engine/base/format.h"
#include "engine/base/json_writer.h"
#include "engine/compile/plan_memory.h"
#include "engine/placement/device_name.h"
#include "engine/session/model.h"
#include "engine/tensor/tensor_list.h"

namespace oncilla {
namespace {

std::string Percent(double share) { return FixedText(share * 100, 1) + " %"; }

void PrintDevice(std::ostream& out, const DeviceMemory& m) {
  out << ShortDeviceName(m.device) << ": " << HumanBytes(m.pool_bytes) << " taken of a limit of "
      << HumanBytes(m.limit_bytes) << " (" << m.limit_source << "), peak "
      << HumanBytes(m.peak_bytes);
  if (m.reserve_bytes > 0) out << ", reserve " << HumanBytes(m.reserve_bytes);
  if (m.largest_free_bytes > 0) {
    out << ", largest free piece " << HumanBytes(m.largest_free_bytes) << ", fragmentation "
        << Percent(m.fragmentation);
  }
  if (m.total_bytes > m.pool_bytes) {
    out << "; with other sessions " << HumanBytes(m.total_bytes) << " of "
        << HumanBytes(m.total_limit_bytes);
  }
  out << "\n";
}

void PrintModel(std::ostream& out, const Model& model, std::span<const std::string> devices) {
  const ModelMemory memory = model.executables().memory();
  out << "model '" << model.path() << "'\n";
  std::map<int, std::pair<int64_t, int64_t>> constants;  // count and bytes
  std::map<int, int64_t> shared;
  for (const auto& kept : memory.constants) {
    auto& [count, bytes] = constants[kept.device];
    ++count, bytes += kept.bytes;
    if (kept.shared) shared[kept.device] += kept.bytes;
  }
  for (const auto& [device, sum] : constants) {
    out << "  " << sum.first << " constants on "
        << ShortDeviceName(devices[static_cast<size_t>(device)]) << ", " << HumanBytes(sum.second);
    if (shared[device] > 0) out << ", of which other models hold " << HumanBytes(shared[device]);
    out << "\n";
  }
  for (const auto& [name, value] : memory.variables) {
    out << "  variable '" << name << "' " << Fact::Of(value) << ", "
        << HumanBytes(HeldBytesOf(value)) << "\n";
  }
  for (const auto& kept : memory.plans) {
    out << "  plan for";
    if (kept.plan->inputs.empty()) out << " no inputs";
    for (ValueId id : kept.plan->inputs) {
      out << " " << kept.plan->compiled->graph.fact(id).shape;
    }
    out << ": " << kept.instances << (kept.instances == 1 ? " instance, " : " instances, ")
        << kept.idle << " idle\n";
    for (const PlanMemory& m : MemoryOf(*kept.plan)) {
      out << "    " << ShortDeviceName(devices[static_cast<size_t>(m.device)]) << " "
          << HumanBytes(m.arena_bytes) << " each: " << PeakText(m) << "\n";
    }
  }
}

void WriteDevice(JsonWriter& json, const DeviceMemory& m) {
  json.Open('{')
      .Field("device", m.device)
      .Field("limit_bytes", m.limit_bytes)
      .Field("limit_source", m.limit_source)
      .Field("pool_bytes", m.pool_bytes)
      .Field("in_use_bytes", m.in_use_bytes)
      .Field("peak_bytes", m.peak_bytes)
      .Field("reserve_bytes", m.reserve_bytes)
      .Field("largest_free_bytes", m.largest_free_bytes)
      .Field("fragmentation", m.fragmentation)
      .Field("total_bytes", m.total_bytes)
      .Field("total_limit_bytes", m.total_limit_bytes)
      .Close('}');
}

void WritePlan(JsonWriter& json, const Executor::KeptPlan& kept,
               std::span<const std::string> devices) {
  json.Open('{').Field("instances", kept.instances).Field("idle", kept.idle);
  json.Key("devices").Open('[');
  for (const PlanMemory& m : MemoryOf(*kept.plan)) {
    json.Open('{')
        .Field("device", devices[static_cast<size_t>(m.device)])
        .Field("arena_bytes", m.arena_bytes)
        .Field("peak_bytes", m.peak_bytes)
        .Field("peak_node", m.peak_node)
        .Field("peak_op", m.peak_op);
    json.Key("held").Open('[');
    for (const HeldBytes& held : m.held) {
      json.Open('{').Field("node", held.node).Field("op", held.op).Field("bytes", held.bytes);
      json.Close('}');
    }
    json.Close(']').Key("ops").Open('[');
    for (const OpBytes& op : m.ops) {
      json.Open('{')
          .Field("op", op.op)
          .Field("count", op.count)
          .Field("bytes", op.bytes)
          .Field("largest_bytes", op.largest)
          .Field("largest_node", op.largest_node)
          .Close('}');
    }
    json.Close(']').Key("by_dtype").Open('{');
    for (const auto& [dtype, bytes] : m.by_dtype) json.Field(Name(dtype), bytes);
    json.Close('}').Close('}');
  }
  json.Close(']').Close('}');
}

void WriteModel(JsonWriter& json, const Model& model, std::span<const std::string> devices) {
  const ModelMemory memory = model.executables().memory();
  json.Open('{').Field("model", model.path()).Key("constants").Open('[');
  for (const auto& kept : memory.constants) {
    json.Open('{')
        .Field("device", devices[static_cast<size_t>(kept.device)])
        .Field("what", kept.what)
        .Field("bytes", kept.bytes)
        .Field("shared", kept.shared)
        .Close('}');
  }
  json.Close(']').Key("variables").Open('[');
  for (const auto& [name, value] : memory.variables) {
    json.Open('{')
        .Field("name", name)
        .Field("type", StrCat(Fact::Of(value)))
        .Field("bytes", HeldBytesOf(value))
        .Close('}');
  }
  json.Close(']').Key("plans").Open('[');
  for (const auto& kept : memory.plans) WritePlan(json, kept, devices);
  json.Close(']').Close('}');
}

}  // namespace

std::string MemoryReportText(const Session& session) {
  std::ostringstream out;
  for (const DeviceMemory& memory : session.memory().Devices()) PrintDevice(out, memory);
  out << "held by\n" << session.memory().ledger().Report();
  for (const auto& model : session.models()) PrintModel(out, *model, session.device_set().names());
  int64_t dropped = 0;
  const std::vector<MemoryEvent> events = session.memory().ledger().Timeline(&dropped);
  if (!events.empty()) {
    out << "over time";
    if (dropped > 0) out << " (" << dropped << " older changes are no longer known)";
    out << "\n";
  }
  for (const MemoryEvent& event : events) {
    out << "  " << event.time_ns / 1000 << " us " << ShortDeviceName(event.device) << " in use "
        << HumanBytes(event.in_use_bytes) << ", taken " << HumanBytes(event.taken_bytes) << ": "
        << (event.change_bytes < 0 ? "" : "+") << event.change_bytes << " " << event.what << "\n";
  }
  if (const auto shortage = session.device_set().last_shortage(); shortage.has_value()) {
    out << "when memory last ran out\n" << shortage->text;
  }
  return std::move(out).str();
}

std::string DeviceMemoryJson(const Session& session) {
  JsonWriter json;
  json.Open('[');
  for (const DeviceMemory& memory : session.memory().Devices()) WriteDevice(json, memory);
  json.Close(']');
  return json.Take();
}

std::string MemoryReportJson(const Model& model) {
  JsonWriter json;
  WriteModel(json, model, model.session().device_set().names());
  return json.Take();
}

std::string MemoryReportJson(const Session& session) {
  JsonWriter json;
  json.Open('{').Key("devices").Raw(DeviceMemoryJson(session));
  json.Key("owners").Open('[');
  for (const LedgerLine& line : session.memory().ledger().Lines({}, /*past=*/true)) {
    json.Open('{')
        .Field("device", line.device)
        .Field("owner", line.owner_name)
        .Field("category", Name(line.category))
        .Field("bytes", line.bytes)
        .Field("peak_bytes", line.peak_bytes)
        .Field("estimate", IsEstimate(line.category))
        .Close('}');
  }
  json.Close(']').Key("models").Open('[');
  for (const auto& model : session.models()) WriteModel(json, *model, session.device_set().names());
  json.Close(']').Key("timeline").Open('{');
  int64_t dropped = 0;
  const std::vector<MemoryEvent> events = session.memory().ledger().Timeline(&dropped);
  json.Field("dropped", dropped).Key("events").Open('[');
  for (const MemoryEvent& event : events) {
    json.Open('{')
        .Field("time_ns", event.time_ns)
        .Field("device", event.device)
        .Field("in_use_bytes", event.in_use_bytes)
        .Field("taken_bytes", event.taken_bytes)
        .Field("change_bytes", event.change_bytes)
        .Field("what", event.what)
        .Close('}');
  }
  json.Close(']').Close('}').Key("last_shortage");
  const auto shortage = session.device_set().last_shortage();
  json.Raw(shortage.has_value() ? std::string_view(shortage->json) : std::string_view("null"));
  json.Close('}');
  return json.Take();
}

}  // namespace oncilla
