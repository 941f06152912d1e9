// oncilla tune: measures ways to launch layers on an OpenCL device, and stores the best ones in a
// table that every session finds.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/commands/tune_layers.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"
#if ONCILLA_OPENCL
#include "backends/opencl/tuning/tuner.h"
#endif

namespace oncilla::tool {
namespace {

struct TuneFlags {
  ModelFlags model;
  SessionFlags session;
  InputFlags input;
  bool ops = false, show = false, json = false;
  std::string budget = "60s", table, exported;
};

#if ONCILLA_OPENCL
using opencl::ClDevice, opencl::MeasuredLayer, opencl::TunableLayer, opencl::TunedDevice,
    opencl::Tuner, opencl::TuningFile;
using Clock = std::chrono::steady_clock;

Status BadOption(std::string_view what) {
  return WithStage(InvalidArgument(what), Stage::kOptions);
}

// Parses "60s", "2m", "1h" or "90".
Result<double> SecondsFrom(std::string_view text) {
  double unit = 1;
  std::string_view number = text;
  if (!text.empty()) {
    const char last = text.back();
    unit = last == 'm' ? 60 : last == 'h' ? 3600 : 1;
    if (last == 's' || last == 'm' || last == 'h') number.remove_suffix(1);
  }
  const auto value = ParseNumbers(number, "--budget");
  if (!value.ok() || value->size() != 1 || !((*value)[0] > 0) || (*value)[0] * unit > 7 * 86400) {
    return BadOption(StrCat("--budget ", text, ": expected a time such as 60s, 5m or 1h"));
  }
  return (*value)[0] * unit;
}

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The path of the table that is read and written.
Result<std::string> TableOf(const TuneFlags& flags, const Runtime& runtime) {
  if (!flags.table.empty()) return flags.table;
  std::string folder = runtime.options().cache_dir;
  if (folder.empty()) folder = opencl::UserCacheFolder();
  if (!folder.empty()) return opencl::DefaultTuningPath(folder);
  return BadOption("there is no home folder for the table; give --table, or set ONCILLA_CACHE_DIR");
}

// The contents of the table; empty if there is none yet.
Result<TuningFile> ReadTable(const std::string& path, const Runtime& runtime) {
  std::vector<std::string> notes;
  auto file = opencl::ReadTuningFile(path, notes);
  for (const std::string& note : notes) runtime.log().Warning(path, ": ", note);
  if (file.status().code() == Code::kNotFound) return TuningFile();
  if (file.ok()) return file;
  return In(file.status(), "the table cannot be kept up; move it away or give another --table");
}

// Merges into the current file, so that two programs that tune do not undo each other's work.
Status Keep(const TunedDevice& row, const std::string& path, const Runtime& runtime) {
  const NoInterrupt whole;
  ONCILLA_ASSIGN(TuningFile file, ReadTable(path, runtime));
  const size_t slash = path.find_last_of('/');
  if (slash != std::string::npos && slash > 0) ONCILLA_TRY(MakeFolder(path.substr(0, slash)));
  opencl::Merge({{row}}, file);
  return opencl::WriteTuningFile(path, file);
}

struct TunedSession {
  std::shared_ptr<Runtime> runtime;
  OpenedModel opened;  // not set with --ops alone
  std::vector<OwnedNode> nodes;
  std::unique_ptr<ClDevice> device;
  std::string device_name;
};

// Collects the layers, and opens the device by its own type, without a table.
Result<TunedSession> Prepare(const TuneFlags& flags) {
  TunedSession s;
  SessionFlags session = flags.session;
  session.tuning = "off";
  DeviceInfo info;
  if (!flags.model.path.empty()) {
    ONCILLA_ASSIGN(s.opened, Open(flags.model, session));
    s.runtime = s.opened.runtime;
    const DeviceSet& devices = s.opened.session->device_set();
    const auto preferred = static_cast<size_t>(devices.preferred());
    info = devices.devices()[preferred]->info();
    s.device_name = devices.names()[preferred];
  } else {
    s.runtime = session.runtime.Create();
    ONCILLA_ASSIGN(const SessionOptions options, session.Options());
    ONCILLA_ASSIGN(const size_t chosen, s.runtime->Resolve(options.device));
    info = s.runtime->devices()[chosen].info;
    s.device_name = s.runtime->devices()[chosen].name;
  }
  if (info.backend != "opencl") {
    return WithStage(
        InvalidArgument("only OpenCL devices have launches to tune, and ", s.device_name,
                        " is none: give --device gpu, and "
                        "--opencl-cpu-devices where OpenCL's CPU devices are meant"),
        Stage::kDevice);
  }
  if (!flags.model.path.empty()) {
    ONCILLA_ASSIGN(s.nodes, LayersOfModel(s.opened, flags.input));
  }
  if (flags.ops) {
    ONCILLA_ASSIGN(std::vector<OwnedNode> more, LayersOfNets());
    for (OwnedNode& node : more) s.nodes.push_back(std::move(node));
  }
  OpenOptions open;
  open.cache_dir = s.runtime->options().cache_dir;
  open.shared = &s.runtime->shared();
  const Progress progress("opening the device");
  ONCILLA_ASSIGN(s.device, opencl::OpenClDevice(info, open));
  return s;
}

// A class of layers, and the result of measuring it.
struct Outcome {
  TunableLayer layer = {};
  double operations = 0;  // of all its nodes
  bool done = false;
  std::string problem = {};
  MeasuredLayer measured = {};
};

// All layers of a device, and the sums of their times.
struct Tuned {
  std::vector<Outcome> layers;  // the heaviest first
  TunedDevice row;
  double seconds = 0;
  size_t done = 0, faults = 0;
  double generic_us = 0, best_us = 0;  // of all nodes that were measured
};

std::string Eta(double spent_s, size_t done, size_t all, double left_s) {
  const double each =
      done == 0 ? left_s / static_cast<double>(all) : spent_s / static_cast<double>(done);
  return HumanTime(std::min(left_s, each * static_cast<double>(all - done)));
}

// The share of the remaining time that the layer at index `at` may take: half of the time is
// divided by work, half evenly, since small layers have as many choices as large ones.
double ShareOf(const Tuned& tuned, size_t at) {
  double work = 0;
  for (size_t i = at; i < tuned.layers.size(); ++i) work += tuned.layers[i].operations;
  const double even = 1.0 / static_cast<double>(tuned.layers.size() - at);
  return 0.5 * even + 0.5 * (work > 0 ? tuned.layers[at].operations / work : even);
}

Result<Tuned> MeasureAll(const TuneFlags& flags, TunedSession& s, const std::string& path) {
  ONCILLA_ASSIGN(const double budget_s, SecondsFrom(flags.budget));
  const auto begin = Clock::now();
  Tuner tuner(*s.device);
  std::vector<double> operations;
  for (OwnedNode& node : s.nodes) {
    ONCILLA_ASSIGN(const auto layer,
                   tuner.Add({node.op, std::move(node.attrs), std::move(node.inputs),
                              std::move(node.outputs), std::move(node.name)},
                             node.count));
    if (!layer.has_value()) continue;
    operations.resize(tuner.layers().size());
    operations[*layer] += node.count * node.operations;
  }
  Tuned tuned;
  tuned.row = tuner.Row();
  std::vector<size_t> order(tuner.layers().size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return operations[a] > operations[b]; });
  for (const size_t i : order) tuned.layers.push_back({tuner.layers()[i], operations[i]});
  for (size_t i = 0; i < order.size(); ++i) {
    const double left_s = budget_s - Since(begin);
    if (left_s <= 0) break;
    Outcome& outcome = tuned.layers[i];
    const Progress progress(StrCat(i + 1, " of ", order.size(), ": ", outcome.layer.name, ", ",
                                   outcome.layer.choices, " choices; about ",
                                   Eta(Since(begin), i, order.size(), left_s), " left"));
    const std::chrono::duration<double> slice(std::max(left_s * ShareOf(tuned, i), 0.02));
    const auto measured =
        tuner.Measure(order[i], Clock::now() + std::chrono::duration_cast<Clock::duration>(slice));
    if (measured.status().code() == Code::kUnavailable) return measured.status();
    if (!measured.ok()) {
      outcome.problem = Message(measured.status());
      continue;
    }
    outcome.done = true;
    outcome.measured = *measured;
    ++tuned.done;
    tuned.faults += measured->faults.size();
    tuned.generic_us += outcome.layer.nodes * measured->generic_us;
    tuned.best_us += outcome.layer.nodes * measured->best_us;
    tuned.row.layers[outcome.layer.name] = {measured->best, measured->best_us,
                                            measured->generic_us};
    ONCILLA_TRY(Keep(tuned.row, path, *s.runtime));
  }
  tuned.seconds = Since(begin);
  return tuned;
}

std::string HumanUs(double us) { return HumanTime(1e-6 * us); }

std::string Text(const Tuned& tuned, const std::string& path) {
  std::string out;
  for (const Outcome& o : tuned.layers) {
    if (!o.done) continue;
    const MeasuredLayer& m = o.measured;
    out += StrCat(o.layer.name, o.layer.nodes > 1 ? StrCat("  (", o.layer.nodes, " nodes)") : "",
                  "\n    ");
    if (m.best == m.generic) {
      out += StrCat("generic is best, ", HumanUs(m.generic_us), ": ", m.generic);
    } else {
      out += StrCat(HumanUs(m.generic_us), " -> ", HumanUs(m.best_us), ": ", m.generic, " -> ",
                    m.best);
    }
    if (m.tried < m.choices) out += StrCat("; ", m.tried, " of ", m.choices, " choices tried");
    out += "\n";
  }
  if (tuned.layers.empty())
    return "nothing to tune: no layer here can be launched in several ways\n";
  out += StrCat(tuned.done, " of ", tuned.layers.size(), " classes of layers in ",
                HumanTime(tuned.seconds), ": ", HumanUs(tuned.generic_us), " -> ",
                HumanUs(tuned.best_us), " in these kernels");
  if (tuned.done < tuned.layers.size()) out += "; a larger --budget measures the others";
  return out + StrCat("\nthe table is ", path, "\n");
}

// Prints to standard error which launches the driver gets wrong, and what could not be measured.
void TellProblems(const Tuned& tuned) {
  for (const Outcome& o : tuned.layers) {
    if (!o.problem.empty()) {
      std::fprintf(stderr, "%s: not measured: %s\n", o.layer.name.c_str(), o.problem.c_str());
    }
    for (const opencl::ChoiceFault& fault : o.measured.faults) {
      std::fprintf(stderr, "%s: %s is not used, the driver fails: %s\n", o.layer.name.c_str(),
                   fault.choice.c_str(), fault.what.c_str());
    }
  }
}

Json DeviceJson(const TunedDevice& row) {
  return {{"device", JsonText(row.of.device)},
          {"platform", JsonText(row.of.platform)},
          {"driver", JsonText(row.driver)},
          {"shape", row.of.shape},
          {"compute_units", row.of.compute_units}};
}

Json ToJson(const Tuned& tuned, const std::string& path) {
  Json json = DocumentJson("tune");
  json["table"] = JsonText(path);
  json["device"] = DeviceJson(tuned.row);
  json["seconds"] = tuned.seconds;
  json["generic_us"] = tuned.generic_us;
  json["best_us"] = tuned.best_us;
  json["layers"] = Json::array();
  for (const Outcome& o : tuned.layers) {
    const MeasuredLayer& m = o.measured;
    Json faults = Json::array();
    for (const opencl::ChoiceFault& fault : m.faults) {
      faults.push_back({{"choice", fault.choice}, {"what", JsonText(fault.what)}});
    }
    Json one = {{"layer", o.layer.name}, {"nodes", o.layer.nodes}, {"measured", o.done}};
    one["problem"] = JsonText(o.problem);
    one["generic"] = o.done ? Json(m.generic) : Json();
    one["best"] = o.done ? Json(m.best) : Json();
    one["generic_us"] = m.generic_us;
    one["best_us"] = m.best_us;
    one["tried"] = m.tried;
    one["choices"] = o.layer.choices;
    one["faults"] = std::move(faults);
    json["layers"].push_back(std::move(one));
  }
  return json;
}

// --show: prints what the file holds, for all devices.
Status Show(const TuneFlags& flags) {
  const std::shared_ptr<Runtime> runtime = flags.session.runtime.Create();
  ONCILLA_ASSIGN(const std::string path, TableOf(flags, *runtime));
  ONCILLA_ASSIGN(const TuningFile file, ReadTable(path, *runtime));
  Json json = DocumentJson("tune");
  json["table"] = JsonText(path);
  json["devices"] = Json::array();
  std::string text;
  for (const TunedDevice& row : file.devices) {
    text += StrCat(row.of.device, ", ", row.of.platform, ", driver ", row.driver, ", shape ",
                   row.of.shape, ", ", row.of.compute_units, " compute units\n");
    Json layers = Json::array();
    for (const auto& [name, layer] : row.layers) {
      text += StrCat("    ", name, ": ", layer.choice, ", ", HumanUs(layer.us), " (generic ",
                     HumanUs(layer.generic_us), ")\n");
      layers.push_back({{"layer", JsonText(name)},
                        {"choice", JsonText(layer.choice)},
                        {"us", layer.us},
                        {"generic_us", layer.generic_us}});
    }
    Json one = DeviceJson(row);
    one["layers"] = std::move(layers);
    json["devices"].push_back(std::move(one));
  }
  if (flags.json) return PrintDocument(json);
  if (file.devices.empty()) text = StrCat("no table yet: ", path, "\n");
  return PrintResult(text);
}

// Writes only the rows of this device with this driver, for others to ship.
Status Export(const TuneFlags& flags, const TunedDevice& own, const std::string& path,
              const Runtime& runtime) {
  ONCILLA_ASSIGN(const TuningFile file, ReadTable(path, runtime));
  TuningFile out;
  for (const TunedDevice& row : file.devices) {
    if (row.of == own.of && row.driver == own.driver) out.devices.push_back(row);
  }
  if (out.devices.empty()) {
    return WithStage(
        NotFound(path, " has nothing for ", own.of.device, " with driver ", own.driver),
        Stage::kFile);
  }
  return opencl::WriteTuningFile(flags.exported, out);
}

Status Tune(const TuneFlags& flags) {
  if (flags.show) return Show(flags);
  const bool measures = flags.ops || !flags.model.path.empty();
  if (!measures && flags.exported.empty()) {
    return BadOption("give a MODEL, --ops, --show or --export FILE");
  }
  ONCILLA_TRY(SecondsFrom(flags.budget).status());
  ONCILLA_ASSIGN(TunedSession s, Prepare(flags));
  ONCILLA_ASSIGN(const std::string path, TableOf(flags, *s.runtime));
  ONCILLA_TRY(ReadTable(path, *s.runtime).status());  // before the time is spent
  if (!measures) {
    const Tuner tuner(*s.device);
    return Export(flags, tuner.Row(), path, *s.runtime);
  }
  ONCILLA_ASSIGN(const Tuned tuned, MeasureAll(flags, s, path));
  TellProblems(tuned);
  if (!flags.exported.empty()) ONCILLA_TRY(Export(flags, tuned.row, path, *s.runtime));
  return flags.json ? PrintDocument(ToJson(tuned, path)) : PrintResult(Text(tuned, path));
}
#else
Status Tune(const TuneFlags&) {
  return Unsupported("this build has no OpenCL, whose launches are what is tuned");
}
#endif

}  // namespace

Action AddTune(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  flags->model.AddTo(app);
  app.get_option("MODEL")->required(false);
  flags->input.AddTo(app);
  for (const char* no : {"--random", "--seed"}) app.remove_option(app.get_option(no));
  app.add_flag("--ops", flags->ops, "The layers of well-known nets, with a model or without");
  app.add_option("--budget", flags->budget, "How long to measure, for example 60s, 5m")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--table", flags->table,
                 "The table that is read and added to (else tuning.json beside the compiled "
                 "programs, where every session finds it)")
      ->type_name("FILE");
  app.add_option("--export", flags->exported, "Then write what this device has to another file")
      ->type_name("FILE");
  app.add_flag("--show", flags->show, "What the table holds; nothing is measured");
  flags->session.AddTo(app);
  app.remove_option(app.get_option("--tuning"));
  app.add_flag("--json", flags->json, "One JSON document");
  app.footer(
      "What was measured is kept layer by layer, also when this is interrupted.\n"
      "Examples:\n"
      "  oncilla tune mobilenet/ --shape image=1x224x224x3\n"
      "  oncilla tune --ops --budget 5m --device gpu:1\n"
      "  oncilla tune --export card.json");
  return [flags] { return Tune(*flags); };
}

}  // namespace oncilla::tool
