// oncilla bench: how long a model takes, honestly: warm-up, many samples, their spread, and where
// the time goes.
//
// Each sample is one whole run with inputs on the host and outputs read back. The per-op table
// comes from runs of their own, because profiling slows some devices down.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "engine/base/format.h"
#include "engine/placement/device_name.h"
#include "engine/session/run.h"
#include "engine/session/trace.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/commands/statistics.h"
#include "tools/oncilla/commands/work.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/flags.h"
#include "tools/oncilla/inputs.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchFlags {
  ModelFlags model;
  SessionFlags session;
  InputFlags input;
  std::vector<std::string> outputs;
  int warmup = 3, samples = 0, rows = 20;
  double duration_s = 2;
  int64_t timeout_ms = 0;  // of each run; 0: none
  bool json = false;
};

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One op of the table: all steps of a node.
struct OpRow {
  std::string node, op, kernel, device;
  std::vector<double> times_s;  // one per profiled run
  double time_s = 0;            // their median
  NodeWork work;
};

struct Measured {
  double load_s = 0, first_run_s = 0;
  std::vector<double> samples_s;
  Summary summary;
  std::vector<OpRow> rows;   // slowest first
  double profiled_s = 0;     // sum of the rows
  double outside_share = 0;  // of a profiled run's time: what no kernel's time covers
  std::map<std::string, DeviceShare> shares;  // of profiled runs, on average
  RunReport report;
  GraphWork work;
};

Status Profile(OpenedModel& opened, RunRequest request, const Executor& executor,
               Measured& measured) {
  constexpr int kRuns = 5;
  request.profile = true;
  std::map<std::string, OpRow> rows;
  std::vector<double> outside;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = Clock::now();
    auto result = opened.model->Run(request);
    const double wall_s = Since(begin);
    if (!result.ok()) return OfRun(result.status());
    std::map<std::string, double> sums;
    double kernels_s = 0;
    for (const StepProfile& step : result->report.stats.steps) {
      OpRow& row = rows[step.node];
      row.node = step.node;
      row.op = step.op;
      row.kernel = step.kernel.substr(0, step.kernel.find('\n'));
      row.device = opened.session->device_set().names()[static_cast<size_t>(step.device)];
      const double time_s = static_cast<double>(step.end_ns - step.start_ns) * 1e-9;
      sums[step.node] += time_s;
      kernels_s += time_s;
    }
    for (const DeviceShare& share : SharesOf(result->report)) {
      DeviceShare& mean = measured.shares[share.device];
      mean.busy += share.busy / kRuns;
      mean.copying += share.copying / kRuns;
      mean.gaps += share.gaps / kRuns;
      mean.device = share.device;
      if (share.longest_gap_ns > mean.longest_gap_ns) {
        mean.longest_gap_ns = share.longest_gap_ns;
        mean.waited = share.waited;
      }
    }
    // Clocks of devices and of the host differ a little.
    outside.push_back(std::max(0.0, wall_s - kernels_s) / wall_s);
    for (const auto& [node, time] : sums) rows[node].times_s.push_back(time);
  }
  const Graph& graph = executor.compiled().graph;
  for (size_t i = 0; i < graph.nodes().size() && i < measured.work.nodes.size(); ++i) {
    if (auto it = rows.find(graph.nodes()[i].name); it != rows.end()) {
      it->second.work = measured.work.nodes[i];
    }
  }
  measured.outside_share = Summarize(outside).median;
  for (auto& [node, row] : rows) {
    row.time_s = Summarize(row.times_s).median;
    measured.profiled_s += row.time_s;
    measured.rows.push_back(std::move(row));
  }
  std::stable_sort(measured.rows.begin(), measured.rows.end(),
                   [](const OpRow& a, const OpRow& b) { return a.time_s > b.time_s; });
  return {};
}

Result<Measured> Measure(const BenchFlags& flags, OpenedModel& opened) {
  Measured measured;
  measured.load_s = opened.load_s;
  std::vector<std::string> fetches;
  for (const std::string& name : flags.outputs) {
    fetches.push_back(FullName(name, opened.signature->outputs));
  }
  InputFlags input = flags.input;
  input.random = true;
  ONCILLA_ASSIGN(const auto names, GivenInputs(*opened.signature, input));
  ONCILLA_ASSIGN(const Inputs inputs, GatherInputs(*opened.signature, names, input));
  RunRequest request;
  request.signature = opened.signature->key;
  request.feeds = inputs.feeds;
  request.fetches = fetches;
  request.timeout = std::chrono::milliseconds(flags.timeout_ms);
  std::optional<TimedWork> limit(flags.timeout_ms);  // planning, too
  const auto begin = Clock::now();
  ONCILLA_ASSIGN(const auto executor,
                 CompileModel(opened, names, fetches, {}, nullptr, FactsOfFeeds(inputs.feeds)));
  auto first = opened.model->Run(request);
  if (!first.ok()) return OfRun(first.status());
  measured.first_run_s = Since(begin);
  limit.reset();
  const Progress progress("measuring");
  for (int i = 0; i < flags.warmup; ++i) {
    auto run = opened.model->Run(request);
    if (!run.ok()) return OfRun(run.status());
  }
  constexpr size_t kFewest = 5, kMost = 100000;
  const auto start = Clock::now();
  const auto enough = [&] {
    const size_t n = measured.samples_s.size();
    if (flags.samples > 0) return n >= static_cast<size_t>(flags.samples);
    return n >= kMost || (n >= kFewest && Since(start) >= flags.duration_s);
  };
  while (!enough()) {
    const auto sample = Clock::now();
    auto run = opened.model->Run(request);
    if (!run.ok()) return OfRun(run.status());
    measured.samples_s.push_back(Since(sample));
    measured.report = run->report;
  }
  measured.summary = Summarize(measured.samples_s);
  Facts facts;
  for (const NamedValue& graph_input : executor->compiled().graph.inputs()) {
    for (const NamedTensor& feed : inputs.feeds) {
      if (feed.first == graph_input.name) facts.push_back(Fact::Of(feed.second.desc()));
    }
  }
  measured.work =
      WorkOf(executor->compiled().graph, facts, *opened.session->device_set().devices()[0]);
  ONCILLA_TRY(Profile(opened, request, *executor, measured));
  return measured;
}

std::string Rate(double amount, double seconds) {
  if (seconds <= 0 || amount <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", amount / seconds * 1e-9);
  return text;
}

std::string TableText(const BenchFlags& flags, const Measured& measured) {
  if (measured.profiled_s <= 0) return "\nthe device gives no times of single ops\n";
  std::string out = "\n   share     time  GFLOP/s     GB/s  op\n";
  double others = 0;
  for (size_t i = 0; i < measured.rows.size(); ++i) {
    const OpRow& row = measured.rows[i];
    if (i >= static_cast<size_t>(flags.rows)) {
      others += row.time_s;
      continue;
    }
    char line[128];
    std::snprintf(line, sizeof(line), "%7.1f%% %8s %8s %8s  ",
                  100 * row.time_s / measured.profiled_s, HumanTime(row.time_s).c_str(),
                  row.work.known ? Rate(row.work.operations, row.time_s).c_str() : "-",
                  row.work.known ? Rate(row.work.bytes, row.time_s).c_str() : "-");
    const std::string device = ShortDeviceName(row.device);
    out += StrCat(line, row.op, "  ", row.node, "  [", device, " ", row.kernel, "]\n");
  }
  if (others > 0) {
    char line[128];
    std::snprintf(line, sizeof(line), "%7.1f%% %8s                    %zu more (--rows)\n",
                  100 * others / measured.profiled_s, HumanTime(others).c_str(),
                  measured.rows.size() - static_cast<size_t>(flags.rows));
    out += line;
  }
  char line[64];
  std::snprintf(line, sizeof(line), "outside kernels: %.1f %% of a run\n",
                100 * measured.outside_share);
  out += line;
  for (const auto& [device, share] : measured.shares) {
    out += ShareLine(share) + "\n";
  }
  return out;
}

std::string Text(const BenchFlags& flags, const OpenedModel& opened, const Measured& measured) {
  const Summary& s = measured.summary;
  const auto preferred = static_cast<size_t>(opened.session->device_set().preferred());
  const DeviceInfo& info = opened.session->device_set().devices()[preferred]->info();
  std::string out = StrCat("device     ", opened.session->device_set().names()[preferred], " (",
                           info.name, ")\n");
  out += StrCat("load       ", HumanTime(measured.load_s), "\n");
  out += StrCat("first run  ", HumanTime(measured.first_run_s), " (compiling included)\n");
  char spread[64];
  std::snprintf(spread, sizeof(spread), " +- %.1f %%", 100 * s.relative_mad());
  out += StrCat("median     ", HumanTime(s.median), spread, " of ", s.count, " samples\n");
  out += StrCat("range      ", HumanTime(s.min), " .. ", HumanTime(s.max), ", p90 ",
                HumanTime(s.p90), ", p99 ", HumanTime(s.p99), "\n");
  if (s.noisy()) out += "           noisy: another program may be using the machine\n";
  out += StrCat("speed      ", Rate(measured.work.operations, s.median), " GFLOP/s of ",
                HumanCount(measured.work.operations), " operations per run\n");
  return out + TableText(flags, measured);
}

Json ToJson(const BenchFlags& flags, const OpenedModel& opened, const Measured& measured) {
  Json json = DocumentJson("bench");
  json["model"] = {{"path", JsonText(flags.model.path)},
                   {"format", std::string(opened.model->source().format())},
                   {"signature", JsonText(opened.signature->key)}};
  json["devices"] = DevicesJson(*opened.session);
  json["threads"] =
      flags.session.threads > 0 ? flags.session.threads : opened.runtime->threads().size();
  json["load_s"] = measured.load_s;
  json["first_run_s"] = measured.first_run_s;
  json["warmup"] = flags.warmup;
  json["samples_s"] = measured.samples_s;
  const Summary& s = measured.summary;
  json["summary"] = {{"count", s.count}, {"mean_s", s.mean}, {"median_s", s.median},
                     {"min_s", s.min},   {"max_s", s.max},   {"p90_s", s.p90},
                     {"p99_s", s.p99},   {"mad_s", s.mad},   {"noisy", s.noisy()}};
  json["operations"] = measured.work.operations;
  json["outside_kernels_share"] = nullptr;
  if (measured.profiled_s > 0) json["outside_kernels_share"] = measured.outside_share;
  json["shares"] = Json::array();
  for (const auto& [device, share] : measured.shares) {
    json["shares"].push_back(ShareJson(share));
  }
  json["ops"] = Json::array();
  for (const OpRow& row : measured.rows) {
    Json one = {{"node", JsonText(row.node)},
                {"op", row.op},
                {"kernel", JsonText(row.kernel)},
                {"device", row.device},
                {"time_s", row.time_s},
                {"share", measured.profiled_s > 0 ? row.time_s / measured.profiled_s : 0},
                {"operations", nullptr},
                {"bytes", nullptr}};
    if (row.work.known) {
      one["operations"] = row.work.operations;
      one["bytes"] = row.work.bytes;
    }
    json["ops"].push_back(std::move(one));
  }
  json["run"] = RunReportJson(measured.report);
  json["memory"] = MemoryJson(*opened.session);
  json["counters"] = CountersJson(opened.model->executables().counters());
  return json;
}

Status Bench(const BenchFlags& flags) {
  ONCILLA_ASSIGN(OpenedModel opened, Open(flags.model, flags.session));
  ONCILLA_ASSIGN(const Measured measured, Measure(flags, opened));
  if (flags.json) return PrintDocument(ToJson(flags, opened, measured));
  ONCILLA_TRY(PrintResult(Text(flags, opened, measured)));
  std::fprintf(stderr, "%s\n", CostLine(measured.report, *opened.session).c_str());
  return {};
}

}  // namespace

Action AddBench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  flags->model.AddTo(app);
  flags->input.AddTo(app);
  app.add_option("--output", flags->outputs, "An output to compute (else all of the signature)")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--warmup", flags->warmup, "Runs before the samples")
      ->check(CLI::Range(0, 1000000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--samples", flags->samples, "So many samples (else as many as --duration allows)")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  app.add_option("--duration", flags->duration_s, "Seconds to take samples for, at least 5 samples")
      ->check([](const std::string& text) {
        double seconds = 0;
        const bool good =
            CLI::detail::lexical_cast(text, seconds) && seconds >= 0 && seconds <= 86400;
        return good ? std::string()
                    : StrCat("'", text, "' is no number of seconds from 0 to 86400");
      })
      ->type_name("S")
      ->capture_default_str();
  AddTimeout(app, flags->timeout_ms);
  app.add_option("--rows", flags->rows, "Rows of the table of ops")
      ->check(CLI::Range(0, 100000))
      ->type_name("N")
      ->capture_default_str();
  flags->session.AddTo(app);
  AddPlacement(app, flags->model);
  app.add_flag("--json", flags->json, "One JSON document, with every sample");
  app.footer(
      "Inputs without a file are made up as by run --random.\n"
      "Examples:\n"
      "  oncilla bench mobilenet/ --shape image=1x224x224x3\n"
      "  oncilla bench model.onnx --device cpu --threads 2 --samples 50 --json");
  return [flags] { return Bench(*flags); };
}

}  // namespace oncilla::tool
