// oncilla bench: measures how long a model takes, with warm-up runs, many samples and their spread,
// and where the time goes.
//
// A sample is one whole run with inputs on the host and outputs read back. The table of ops comes
// from separate runs, because profiling slows some devices down (op_times.h). On request it is
// compared with the best that the device can do (roofline.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/placement/device_name.h"
#include "engine/session/run.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/commands/op_times.h"
#include "tools/oncilla/commands/roofline.h"
#include "tools/oncilla/commands/roofline_page.h"
#include "tools/oncilla/commands/statistics.h"
#include "tools/oncilla/commands/work.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/flags.h"
#include "tools/oncilla/inputs.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"
#include "tools/oncilla/version.h"

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
  int64_t timeout_ms = 0;               // of each run; 0: none
  std::string roofline;                 // a file
  bool peaks = false;                   // these alone, without a model
  std::optional<double> fail_on_plain;  // percent of a run
  bool json = false;
};

// Percent of a run in plain code that is worth a warning.
constexpr double kMuchPlain = 5;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Measured {
  double load_s = 0, first_run_s = 0;
  std::vector<double> samples_s;
  Summary summary;
  OpTimes times;
  RunReport report;
  GraphWork work;
};

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
  const Facts fed = FactsOfFeeds(inputs.feeds);
  ONCILLA_ASSIGN(auto executor, CompileModel(opened, names, fetches, {}, nullptr, fed));
  auto first = opened.model->Run(request);
  if (!first.ok()) return OfRun(first.status());
  measured.first_run_s = Since(begin);
  const std::vector<NamedRunValue> feeds(inputs.feeds.begin(), inputs.feeds.end());
  const auto narrower =
      opened.model->Narrower({request.signature, names, fetches, {}, fed}, *executor, feeds);
  if (narrower != nullptr) executor = narrower;  // as in the run
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
  constexpr double kLongEnough = 2;  // for means that other programs disturb little
  ONCILLA_ASSIGN(measured.times, TimeOps(opened, request, *executor, measured.work,
                                         std::min(flags.duration_s, kLongEnough)));
  return measured;
}

std::string Rate(double amount, double seconds) {
  if (seconds <= 0 || amount <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", amount / seconds * 1e-9);
  return text;
}

std::string TableText(const BenchFlags& flags, const Measured& measured) {
  if (measured.times.kernels_s <= 0) return "\nthe device gives no times of single ops\n";
  std::string out = "\n   share     time  GFLOP/s     GB/s  op\n";
  double others = 0;
  for (size_t i = 0; i < measured.times.ops.size(); ++i) {
    const OpTime& row = measured.times.ops[i];
    if (i >= static_cast<size_t>(flags.rows)) {
      others += row.time_s;
      continue;
    }
    char line[128];
    std::snprintf(line, sizeof(line), "%7.1f%% %8s %8s %8s  ",
                  100 * row.time_s / measured.times.kernels_s, HumanTime(row.time_s).c_str(),
                  row.work.known ? Rate(row.work.operations, row.time_s).c_str() : "-",
                  row.work.known ? Rate(row.work.bytes, row.time_s).c_str() : "-");
    const std::string device = ShortDeviceName(row.device);
    out += StrCat(line, row.op, "  ", row.node, "  [", device, " ", row.kernel, "]\n");
  }
  if (others > 0) {
    char line[128];
    std::snprintf(line, sizeof(line), "%7.1f%% %8s                    %zu more (--rows)\n",
                  100 * others / measured.times.kernels_s, HumanTime(others).c_str(),
                  measured.times.ops.size() - static_cast<size_t>(flags.rows));
    out += line;
  }
  char line[64];
  std::snprintf(line, sizeof(line), "outside kernels: %.1f %% of a run\n",
                100 * measured.times.outside_share());
  out += line;
  for (const auto& [device, share] : measured.times.shares) {
    out += ShareLine(share) + "\n";
  }
  return out;
}

// The ops that take more than the given share of a run in plain code, unless plain code was
// requested.
std::vector<const OpTime*> MuchPlain(const BenchFlags& flags, const OpenedModel& opened,
                                     const Measured& measured) {
  if (opened.session->options().device == "cpu:plain") return {};
  return PlainAbove(measured.times, flags.fail_on_plain.value_or(kMuchPlain));
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

Json ToJson(const BenchFlags& flags, const OpenedModel& opened, const Measured& measured,
            const std::optional<Roofline>& roofline) {
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
  if (measured.times.kernels_s > 0) json["outside_kernels_share"] = measured.times.outside_share();
  json["shares"] = Json::array();
  for (const auto& [device, share] : measured.times.shares) {
    json["shares"].push_back(ShareJson(share));
  }
  json["ops"] = Json::array();
  for (const OpTime& row : measured.times.ops) {
    Json one = {{"node", JsonText(row.node)},
                {"op", row.op},
                {"kernel", JsonText(row.kernel)},
                {"device", row.device},
                {"plain", row.plain},
                {"time_s", row.time_s},
                {"share", measured.times.kernels_s > 0 ? row.time_s / measured.times.kernels_s : 0},
                {"operations", nullptr},
                {"bytes", nullptr}};
    if (row.work.known) {
      one["operations"] = row.work.operations;
      one["bytes"] = row.work.bytes;
    }
    json["ops"].push_back(std::move(one));
  }
  json["plain_ops"] = Json::array();
  for (const OpTime* op : MuchPlain(flags, opened, measured)) {
    json["plain_ops"].push_back(JsonText(op->node));
  }
  json["roofline"] = roofline ? RooflineJson(*roofline) : Json(nullptr);
  json["run"] = RunReportJson(measured.report);
  json["memory"] = MemoryJson(*opened.session);
  json["counters"] = CountersJson(opened.model->executables().counters());
  return json;
}

// Refuses flags that require or exclude each other.
Status CheckFlags(const BenchFlags& flags, const std::string& device) {
  const bool model = !flags.model.path.empty();
  if (flags.peaks) {
    if (model) {
      return BadOption("--peaks measures a device, not a model: leave out '", flags.model.path,
                       "'");
    }
    for (const auto& [flag, given] : {std::pair{"--roofline", !flags.roofline.empty()},
                                      {"--fail-on-plain", flags.fail_on_plain.has_value()}}) {
      if (given) return BadOption(flag, " needs a model, and --peaks takes none");
    }
    return Status();
  }
  if (!model && !flags.roofline.empty()) return BadOption("--roofline needs a MODEL to measure");
  if (!model) return BadOption("MODEL is required, except with --peaks");
  if (flags.fail_on_plain && device == "cpu:plain") {
    return BadOption("--fail-on-plain: everything is plain on --device cpu:plain");
  }
  return Status();
}

Status BenchPeaks(const BenchFlags& flags) {
  ONCILLA_ASSIGN(SessionOptions options, flags.session.Options());
  if (flags.session.device.empty()) options.device = "cpu";
  const auto runtime = flags.session.runtime.Create();
  ONCILLA_ASSIGN(const auto session, Session::Create(runtime, std::move(options)));
  const DeviceSet& devices = session->device_set();
  Result<Peaks> peaks = [&] {
    const Progress progress("measuring");
    return MeasurePeaks(*session, static_cast<size_t>(devices.preferred()));
  }();
  if (!peaks.ok()) return In(peaks.status(), "--peaks");
  const std::string& cpu = devices.devices()[0]->info().name;
  const DeviceInfo& info = devices.devices()[static_cast<size_t>(devices.preferred())]->info();
  if (flags.json) {
    Json json = DocumentJson("bench_peaks");
    json["cpu"] = JsonText(cpu);
    json["threads"] = session->threads().size();
    json["device"] = {{"name", peaks->device}, {"device", JsonText(info.name)}};
    json["peaks"] = PeaksJson(*peaks);
    return PrintDocument(json);
  }
  return PrintResult(StrCat("device     ", peaks->device, " (", info.name, ")\nthreads    ",
                            session->threads().size(), "\npeaks      ", PeaksText(*peaks), "\n"));
}

// Peaks of every device that ran an op, the preferred one first.
Result<Roofline> MeasureRoofline(const OpenedModel& opened, const OpTimes& times) {
  const Progress progress("measuring peaks");
  const DeviceSet& devices = opened.session->device_set();
  const auto preferred = static_cast<size_t>(devices.preferred());
  std::vector<Peaks> peaks;
  for (size_t turn = 0; turn <= devices.size(); ++turn) {
    const size_t device = turn == 0 ? preferred : turn - 1;
    const std::string& name = devices.names()[device];
    const auto ran = [&](const OpTime& op) { return op.device == name; };
    if (turn > 0 && (device == preferred || std::ranges::none_of(times.ops, ran))) continue;
    ONCILLA_ASSIGN(peaks.emplace_back(), MeasurePeaks(*opened.session, device));
  }
  return RooflineOf(times, std::move(peaks));
}

std::string PageOf(const BenchFlags& flags, const OpenedModel& opened, const Measured& measured,
                   const Roofline& roofline) {
  const DeviceSet& devices = opened.session->device_set();
  const DeviceInfo& info = devices.devices()[static_cast<size_t>(devices.preferred())]->info();
  const std::filesystem::path path = std::filesystem::path(flags.model.path + "/").parent_path();
  return RooflinePage(roofline, path.filename().string(),
                      StrCat(info.name, ", ", opened.session->threads().size(), " threads, ",
                             roofline.ops.size(), " ops; oncilla ", kVersion,
                             measured.summary.noisy() ? "; noisy: another program may have been "
                                                        "using the machine, and peaks and times be "
                                                        "those of other moments"
                                                      : ""));
}

Status TellPlain(const BenchFlags& flags, const OpenedModel& opened, const Measured& measured) {
  const auto plain = MuchPlain(flags, opened, measured);
  for (const OpTime* op : plain) {
    char share[32];
    std::snprintf(share, sizeof(share), "%.1f %%", 100 * measured.times.share(*op));
    std::fputs(Printable(StrCat("oncilla bench: warning: '", op->node, "' (", op->op, ") takes ",
                                share, " of a run in plain code\n"))
                   .c_str(),
               stderr);
  }
  if (!flags.fail_on_plain) return Status();
  if (measured.times.ops.empty()) {
    return Error(Code::kFailedPrecondition,
                 "--fail-on-plain: the device gives no times of single ops");
  }
  if (plain.empty()) return Status();
  return Error(Code::kFailedPrecondition, plain.size(),
               plain.size() == 1 ? " op takes" : " ops take", " more than ", *flags.fail_on_plain,
               " % of a run in plain code (--fail-on-plain)");
}

Status Bench(const BenchFlags& flags) {
  ONCILLA_TRY(CheckFlags(flags, flags.session.device));
  if (flags.peaks) return BenchPeaks(flags);
  std::optional<FileDraft> page;  // report a missing folder before minutes are spent
  if (!flags.roofline.empty()) {
    auto draft = FileDraft::Create(flags.roofline);
    if (!draft.ok()) return In(draft.status(), "--roofline");
    page = *std::move(draft);
  }
  ONCILLA_ASSIGN(OpenedModel opened, Open(flags.model, flags.session));
  ONCILLA_ASSIGN(const Measured measured, Measure(flags, opened));
  std::optional<Roofline> roofline;
  if (page) {
    if (measured.times.ops.empty()) {
      return Error(Code::kFailedPrecondition,
                   "--roofline: the device gives no times of single ops");
    }
    ONCILLA_ASSIGN(roofline, MeasureRoofline(opened, measured.times));
    ONCILLA_TRY(In(page->Append(PageOf(flags, opened, measured, *roofline)), "--roofline"));
    ONCILLA_TRY(In(page->Commit(), "--roofline"));
  }
  if (flags.json) {
    ONCILLA_TRY(PrintDocument(ToJson(flags, opened, measured, roofline)));
  } else {
    std::string text = Text(flags, opened, measured);
    if (roofline) text += RooflineText(*roofline);
    ONCILLA_TRY(PrintResult(text));
    std::fprintf(stderr, "%s\n", CostLine(measured.report, *opened.session).c_str());
  }
  return TellPlain(flags, opened, measured);
}

void AddRooflineFlags(CLI::App& app, BenchFlags& flags) {
  app.get_option("MODEL")->required(false);
  app.add_option("--roofline", flags.roofline,
                 "Write a page of what each op reaches against what the device can do at best")
      ->type_name("OUT.html");
  app.add_flag("--peaks", flags.peaks,
               "Measure what the device (else the CPU) can do at best, without a model");
  app.add_option("--fail-on-plain", flags.fail_on_plain,
                 "Exit with 1 if an op takes more than so much of a run in plain code on the CPU")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("PERCENT");
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
                    : StrCat("'", text, "' is not a number of seconds from 0 to 86400");
      })
      ->type_name("S")
      ->capture_default_str();
  AddTimeout(app, flags->timeout_ms);
  app.add_option("--rows", flags->rows, "Rows of the table of ops")
      ->check(CLI::Range(0, 100000))
      ->type_name("N")
      ->capture_default_str();
  AddRooflineFlags(app, *flags);
  flags->session.AddTo(app);
  AddPlacement(app, flags->model);
  app.add_flag("--json", flags->json, "One JSON document, with every sample");
  app.footer(
      "Inputs without a file get random values, as by run --random.\n"
      "Examples:\n"
      "  oncilla bench mobilenet/ --shape image=1x224x224x3\n"
      "  oncilla bench model.onnx --device cpu --threads 2 --samples 50 --json\n"
      "  oncilla bench model.onnx --roofline page.html\n"
      "  oncilla bench --peaks --json");
  return [flags] { return Bench(*flags); };
}

}  // namespace oncilla::tool
