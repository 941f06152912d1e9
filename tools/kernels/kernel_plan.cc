// kernel_plan: the launches of a model on OpenCL devices that are not present, as JSON.
//
//   kernel_plan MODEL --device rtx3060.. [--shape x=8x3x224x224].. [--programs FOLDER]
//
// The model is compiled and planned as in a session that has the CPU and, as its preferred device,
// the simulated one (backends/opencl/simulated); nothing runs. The programs of all launches are
// written to FOLDER in the form that the driver would get, named by their contents. The plan ends
// where only a run can know more: at sizes that depend on data, and at the bodies of loops and
// branches. The document then has "complete": false.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "backends/opencl/simulated/device.h"
#include "backends/opencl/simulated/program_files.h"
#include "engine/base/json_writer.h"
#include "engine/compile/plan.h"
#include "engine/device/linked_backends.h"
#include "engine/import/model_source.h"
#include "tools/oncilla/commands/work.h"
#include "tools/oncilla/inputs.h"

namespace oncilla::tool {
namespace {

using opencl::Dispatch;
using opencl::SimulatedKernel;

struct Flags {
  std::string model, signature, programs;
  std::vector<std::string> devices;
  InputFlags input;
};

// The bytes of an operand, or of the part of it that is given.
int64_t BytesRead(const opencl::In& in, const SimulatedKernel& kernel) {
  const int64_t whole = kernel.input_bytes[static_cast<size_t>(in.index)];
  return in.bytes > 0 ? in.bytes : std::max<int64_t>(whole - in.offset, 0);
}

// Bytes that the arguments let a kernel read or write; an operand that is passed twice counts once.
struct Traffic {
  int64_t read = 0, written = 0;
};

// The first launch that has a part of the scratch memory writes it; later ones read it.
Traffic TrafficOf(const SimulatedKernel& kernel, size_t launch) {
  const opencl::Recipe& recipe = kernel.recipe;
  Traffic traffic;
  std::vector<std::pair<bool, int>> seen;
  const auto operand = [&](bool output, int index, const std::vector<int64_t>& bytes,
                           int64_t& sum) {
    if (std::find(seen.begin(), seen.end(), std::pair(output, index)) != seen.end()) return;
    seen.emplace_back(output, index);
    sum = SaturatingAdd(sum, bytes[static_cast<size_t>(index)]);
  };
  const auto written_before = [&](const opencl::Scratch& part) {
    for (size_t i = 0; i < launch; ++i) {
      for (const opencl::Arg& arg : recipe.dispatches[i].args) {
        const auto* other = std::get_if<opencl::Scratch>(&arg);
        if (other != nullptr && other->offset == part.offset) return true;
      }
    }
    return false;
  };
  for (const opencl::Arg& arg : recipe.dispatches[launch].args) {
    if (const auto* in = std::get_if<opencl::In>(&arg)) {
      if (in->seldom) continue;
      int64_t whole = 0;
      operand(false, in->index, kernel.input_bytes, whole);
      traffic.read = SaturatingAdd(traffic.read, std::min(whole, BytesRead(*in, kernel)));
    } else if (const auto* out = std::get_if<opencl::Out>(&arg)) {
      operand(true, out->index, kernel.output_bytes, traffic.written);
    } else if (const auto* part = std::get_if<opencl::Scratch>(&arg)) {
      int64_t& sum = written_before(*part) ? traffic.read : traffic.written;
      sum = SaturatingAdd(sum, part->bytes);
    }
  }
  return traffic;
}

bool ReadsSeldom(const Dispatch& d) {
  return std::ranges::any_of(d.args, [](const opencl::Arg& arg) {
    const auto* in = std::get_if<opencl::In>(&arg);
    return in != nullptr && in->seldom;
  });
}

// The launch of a node that does the computing: the one with the most trips of all its work-items.
size_t Heaviest(const opencl::Recipe& recipe) {
  const auto trips = [](const Dispatch& d) {
    // A launch that seldom reads an operand rarely runs its longest loop, so that loop is not
    // counted.
    int64_t items = ReadsSeldom(d) ? 1 : std::max<int64_t>(d.longest_loop, 1);
    for (int64_t size : d.global) items = SaturatingMul(items, size);
    return items;
  };
  const auto& all = recipe.dispatches;
  return static_cast<size_t>(
      std::max_element(all.begin(), all.end(),
                       [&](const Dispatch& a, const Dispatch& b) { return trips(a) < trips(b); }) -
      all.begin());
}

// Counts of operations are real numbers; the result saturates at 9e18.
int64_t Whole(double count) { return static_cast<int64_t>(std::clamp(count, 0.0, 9e18)); }

std::string_view Name(Work work) {
  switch (work) {
    case Work::kNone:
      return "movement";
    case Work::kPerOutput:
    case Work::kPerInput:
    case Work::kPerStep:
      return "elements";
    default:  // products of any geometry
      return "multiply-adds";
  }
}

void WriteSizes(JsonWriter& json, std::string_view key, const std::array<int64_t, 3>& sizes) {
  json.Key(key).Open('[');
  for (int64_t size : sizes) json.Value(size);
  json.Close(']');
}

struct ArgWriter {
  JsonWriter& json;
  const SimulatedKernel& kernel;

  void Kind(std::string_view kind, int64_t bytes) const {
    json.Field("kind", kind).Field("bytes", bytes);
  }
  void operator()(opencl::In a) const {
    const auto i = static_cast<size_t>(a.index);
    Kind(kernel.constant[i] ? "constant" : "input", a.seldom ? 0 : BytesRead(a, kernel));
    if (a.seldom) json.Field("seldom", true);
  }
  void operator()(opencl::Out a) const {
    Kind("output", kernel.output_bytes[static_cast<size_t>(a.index)]);
  }
  void operator()(opencl::Scratch a) const { Kind("scratch", a.bytes); }
  void operator()(opencl::Offset) const { Kind("offset", 8); }
  void operator()(opencl::ErrorWord) const { Kind("error", 8); }
  void operator()(opencl::Local a) const { Kind("local", a.bytes); }
  void operator()(float value) const {
    Kind("number", sizeof(value));
    json.Field("value", static_cast<double>(value));
  }
  template <class T>
  void operator()(T value) const {
    Kind("number", sizeof(value));
    json.Field("value", static_cast<int64_t>(value));
  }
};

Status WriteLaunch(JsonWriter& json, const Node& node, const NodeWork& work,
                   const SimulatedKernel& kernel, size_t launch, const opencl::Capabilities& caps,
                   opencl::ProgramFiles* files) {
  const Dispatch& d = kernel.recipe.dispatches[launch];
  json.Open('{').Field("node", node.name).Field("op", node.op->name);
  json.Field("launch", static_cast<int64_t>(launch));
  json.Field("launches", static_cast<int64_t>(kernel.recipe.dispatches.size()));
  json.Field("source", d.source->path).Field("kernel", d.entry);
  if (files != nullptr) {
    ONCILLA_ASSIGN(const std::string program,
                   files->Add(*d.source, d.generated, d.defines, opencl::PlacesOf(d, caps)));
    json.Field("program", program);
  }
  json.Key("defines").Open('{');
  for (const auto& [name, value] : d.defines) json.Field(name, value);
  json.Close('}').Field("generated", !d.generated.empty());
  WriteSizes(json, "global", d.global);
  WriteSizes(json, "local", d.local);
  json.Field("longest_loop", d.longest_loop);
  json.Key("arguments").Open('[');
  for (size_t i = 0; i < d.args.size(); ++i) {
    json.Open('{').Field("name", i < d.names.size() ? d.names[i] : std::string());
    std::visit(ArgWriter{json, kernel}, d.args[i]);
    json.Close('}');
  }
  const Traffic traffic = TrafficOf(kernel, launch);
  json.Close(']').Field("read_bytes", traffic.read).Field("written_bytes", traffic.written);
  json.Field("work", Name(node.op->traits.work));
  const bool computes = launch == Heaviest(kernel.recipe);
  json.Field("operations", Whole(work.known && computes ? work.operations : 0));
  json.Field("output_elements", kernel.output_elements);
  json.Close('}');
  return Status();
}

// The CPU that every session has, its thread pool, and a simulated device.
struct Machine {
  Machine(const opencl::SimulatedRecord& record, ThreadPool& threads) : simulated(record) {
    std::vector<std::string> notes;
    const Backend& backend = *LinkedBackends()[0];
    OpenOptions options;
    options.threads = &threads;
    cpu = backend.open(backend.discover({}, notes).at(0), options);
  }
  Status Start() {
    ONCILLA_TRY(cpu.status());
    devices = {cpu->get(), &simulated};
    for (Device* device : devices) {
      pools.push_back(std::make_unique<Pool>(device, &ledger, PoolOptions{}));
    }
    owner = ledger.AddOwner(OwnerKind::kModel, "kernel_plan");
    constants =
        std::make_unique<ConstantStore>(std::span<Device* const>(devices),
                                        std::vector<Pool*>{pools[0].get(), pools[1].get()}, owner);
    return Status();
  }

  Ledger ledger;
  OwnerId owner = kNoOwner;
  Result<std::unique_ptr<Device>> cpu = Unsupported("no CPU");
  opencl::SimulatedDevice simulated;
  std::vector<Device*> devices;
  const std::vector<std::string> names = {"/job:localhost/replica:0/task:0/device:CPU:0",
                                          "/job:localhost/replica:0/task:0/device:GPU:0"};
  std::vector<std::unique_ptr<Pool>> pools;
  std::unique_ptr<ConstantStore> constants;
};

// The facts of the graph's inputs, in order.
Result<Facts> FactsOfInputs(const CompiledGraph& compiled, const Signature& signature,
                            const InputFlags& flags) {
  Facts facts;
  for (const NamedValue& input : compiled.graph.inputs()) {
    const Fact& fact = compiled.graph.fact(input.value);
    if (compiled.fixes_shapes[Index(input.value)]) {
      return Unsupported("shapes depend on the values of input '", input.name, "'");
    }
    ONCILLA_ASSIGN(const Shape shape,
                   SettledShape({input.name, "", fact.dtype, fact.shape}, flags, signature));
    facts.push_back(Fact::Of(fact.dtype, PartialShape(shape)));
  }
  return facts;
}

Status WritePlan(JsonWriter& json, const opencl::SimulatedRecord& record, const Plan& plan,
                 const GraphWork& work, opencl::ProgramFiles* files) {
  const CompiledGraph& compiled = *plan.compiled;
  const Graph& graph = compiled.graph;
  json.Open('{').Field("device", record.id).Field("name", record.facts.name);
  json.Field("complete", plan.complete && compiled.functions.empty());
  json.Field("operations", Whole(work.operations));
  json.Field("copied_bytes", plan.copied_bytes()).Field("arena_bytes", plan.arena_bytes(1));
  json.Key("elsewhere").Open('[');  // nodes that the device does not run, with the reasons
  for (const NodePlacement& node : compiled.placement.nodes) {
    if (node.device == 1 || node.reason == PlacementReason::kShapes) continue;
    json.Open('{').Field("node", node.node).Field("op", node.op);
    json.Field("reason", Name(node.reason)).Field("detail", node.detail).Close('}');
  }
  json.Close(']').Key("launches").Open('[');
  const opencl::Capabilities caps = opencl::CapabilitiesOf(record);
  for (const Stretch& stretch : plan.stretches) {
    if (stretch.device != 1) continue;
    for (const PlannedStep& step : stretch.steps) {
      const auto& kernel = static_cast<const SimulatedKernel&>(*step.kernel);
      for (size_t i = 0; i < kernel.recipe.dispatches.size(); ++i) {
        ONCILLA_TRY(WriteLaunch(json, graph.node(step.node), work.nodes[Index(step.node)], kernel,
                                i, caps, files));
      }
    }
  }
  json.Close(']').Close('}');
  return Status();
}

Status PlanFor(const Flags& flags, ModelSource& source, ThreadPool& threads, std::string_view id,
               opencl::ProgramFiles* files, JsonWriter& json) {
  ONCILLA_ASSIGN(const opencl::SimulatedRecord* record, opencl::FindSimulated(id));
  Machine machine(*record, threads);
  ONCILLA_TRY(machine.Start());
  ONCILLA_ASSIGN(const Signature* signature, source.FindSignature(flags.signature));
  ImportRequest request;
  request.signature = signature->key;
  ONCILLA_ASSIGN(Module module, source.Import(request, OpSet::Builtin()));
  CompileOptions options;
  options.placement.preferred = 1;
  ONCILLA_ASSIGN(const auto compiled, Compile(std::move(module), machine.devices, machine.names,
                                              *machine.constants, options));
  ONCILLA_ASSIGN(const Facts facts, FactsOfInputs(*compiled, *signature, flags.input));
  SegmentStart start;
  for (size_t i = 0; i < facts.size(); ++i) {
    start.available.emplace_back(compiled->graph.inputs()[i].value, facts[i]);
  }
  ONCILLA_ASSIGN(const auto plan, MakePlan(compiled, machine.devices, start));
  return WritePlan(json, *record, *plan, WorkOf(compiled->graph, facts, *machine.devices[0]),
                   files);
}

Status Main(const Flags& flags) {
  ThreadPool threads(2);
  opencl::ProgramFiles files(flags.programs);
  ONCILLA_ASSIGN(const auto source, OpenModel(flags.model, {}));
  JsonWriter json;
  json.Open('{').Field("model", flags.model).Field("format", source->format());
  json.Key("plans").Open('[');
  for (const std::string& id : flags.devices) {
    ONCILLA_TRY(
        In(PlanFor(flags, *source, threads, id, flags.programs.empty() ? nullptr : &files, json),
           StrCat("device ", id)));
  }
  const std::string text = json.Close(']').Close('}').Take();
  std::printf("%s\n", text.c_str());
  return Status();
}

}  // namespace
}  // namespace oncilla::tool

int main(int argc, char** argv) {
  oncilla::tool::Flags flags;
  CLI::App app("What a model would launch on simulated OpenCL devices, as JSON.");
  app.add_option("model", flags.model, "A file or folder of any format that is read")
      ->required()
      ->type_name("MODEL");
  app.add_option("--device", flags.devices, "A simulated device; may be given several times")
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("ID");
  app.add_option("--shape", flags.input.shapes, "An input's shape where the model leaves it open")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("NAME=1x3x224x224");
  app.add_option("--signature", flags.signature, "Else the default one")->type_name("KEY");
  app.add_option("--programs", flags.programs, "A folder for the programs of all launches")
      ->type_name("FOLDER");
  CLI11_PARSE(app, argc, argv);
  const oncilla::Status status = oncilla::tool::Main(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "kernel_plan: %s\n", oncilla::Message(status).c_str());
  return 1;
}
