// oncilla run: runs a model on files and writes or shows its outputs.
#include "engine/session/run.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <set>

#include "engine/base/caught.h"
#include "engine/base/file.h"
#include "engine/base/near_names.h"
#include "engine/memory/host_account.h"
#include "engine/session/fallback.h"
#include "engine/session/precision_check.h"
#include "engine/session/trace.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/files/labels.h"
#include "tools/oncilla/files/tensor_file.h"
#include "tools/oncilla/flags.h"
#include "tools/oncilla/inputs.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

constexpr uint64_t kMaxPhotoBytes = 1 << 30, kMaxStepsBytes = 64 << 20;

struct RunFlags {
  ModelFlags model;
  SessionFlags session;
  InputFlags input;
  std::vector<std::string> outputs, targets;
  std::string output_dir, steps, labels, svg, memory_report, trace;
  int topk = 0;
  std::string compare;     // "fp32": against a session of that precision
  int compare_nodes = 0;   // values inside the graph to compare as well
  int64_t timeout_ms = 0;  // of each run; 0: none
  bool placement = false, json = false;
};

// One run on the loaded model: the one that the flags describe, or an entry of --steps.
struct Step {
  std::string signature;
  InputFlags input;
  std::vector<std::string> outputs;
  std::string output_dir;
  std::vector<std::string> targets;
};

Status CheckFlags(const RunFlags& flags) {
  if (!flags.labels.empty() && flags.topk == 0) return BadOption("--labels needs --topk");
  if (!flags.svg.empty() && flags.topk == 0) return BadOption("--svg needs --topk");
  if (flags.compare_nodes > 0 && flags.compare.empty()) {
    return BadOption("--compare-nodes needs --compare");
  }
  if (!flags.steps.empty()) {
    const bool more = !flags.input.inputs.empty() || !flags.input.input_dir.empty() ||
                      !flags.outputs.empty() || !flags.output_dir.empty() || !flags.svg.empty() ||
                      !flags.model.signature.empty() || flags.topk > 0 || !flags.targets.empty() ||
                      !flags.trace.empty();
    if (more) {
      return BadOption(
          "--steps says what to run; --signature, --input, --input-dir, --output, --output-dir, "
          "--topk, --svg and --trace do not go with it");
    }
  }
  return {};
}

Result<Step> ReadStep(const Json& json, size_t index, const InputFlags& common) {
  const auto bad = [&](std::string_view what) {
    return WithStage(DataLoss("step ", index, ": ", what), Stage::kFile);
  };
  if (!json.is_object()) return bad("is not an object");
  Step step;
  step.input = common;
  for (const auto& [key, value] : json.items()) {
    if (key == "signature" && value.is_string()) {
      step.signature = value.get<std::string>();
    } else if (key == "output_dir" && value.is_string()) {
      step.output_dir = value.get<std::string>();
    } else if (key == "inputs" && value.is_object()) {
      for (const auto& [name, file] : value.items()) {
        if (!file.is_string()) return bad("\"inputs\" maps names to files");
        step.input.inputs.push_back(name + "=" + file.get<std::string>());
      }
    } else if ((key == "outputs" || key == "targets") && value.is_array()) {
      for (const auto& name : value) {
        if (!name.is_string()) return bad("\"" + key + "\" is a list of names");
        (key == "outputs" ? step.outputs : step.targets).push_back(name.get<std::string>());
      }
    } else {
      const std::vector<std::string> keys = {"signature", "inputs", "outputs", "output_dir",
                                             "targets"};
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
        return bad("\"" + key + "\" has the wrong type");
      }
      return bad("the key \"" + key + "\" is unknown" + DidYouMean(key, keys));
    }
  }
  return step;
}

Result<std::vector<Step>> ReadSteps(const RunFlags& flags) {
  if (flags.steps.empty()) {
    return std::vector<Step>{
        {flags.model.signature, flags.input, flags.outputs, flags.output_dir, flags.targets}};
  }
  ONCILLA_ASSIGN(const std::string text, ReadFile(flags.steps, kMaxStepsBytes));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) {
    return WithStage(DataLoss(flags.steps, ": is not a JSON list of steps"), Stage::kFile);
  }
  std::vector<Step> steps;
  for (size_t i = 0; i < json.size(); ++i) {
    auto step = ReadStep(json[i], i, flags.input);
    if (!step.ok()) return In(step.status(), flags.steps);
    steps.push_back(*std::move(step));
  }
  return steps;
}

struct StepResult {
  RunRequest request;  // what was run
  RunResult run;
  std::string photo;
  std::vector<std::string> files;  // written, per output
};

// The inputs to feed: the given ones, if none is missing or if one of them is a tensor inside the
// graph; otherwise those that the outputs need, and those with defaults that are given.
Result<std::vector<std::string>> NeededInputs(const OpenedModel& opened, const Signature& signature,
                                              const Step& step,
                                              const std::vector<std::string>& fetches) {
  ONCILLA_ASSIGN(std::vector<std::string> given, GivenInputs(signature, step.input));
  // For a function that was saved for several kinds of arguments, the feeds choose one.
  const auto& inputs = opened.signature->inputs;
  const bool chosen =
      opened.model->source().has_tf_contents() &&
      std::ranges::any_of(inputs, [](const TensorInfo& info) { return info.source.empty(); });
  if (chosen || given.size() == signature.inputs.size() ||
      signature.inputs.size() > inputs.size()) {
    return given;
  }
  const auto executor = CompileModel(opened, {}, fetches, step.targets);
  // The feeds may determine what the file leaves open.
  if (executor.status().code() == Code::kUnimplemented) return given;
  ONCILLA_TRY(executor.status());
  std::vector<std::string> needed;
  for (const NamedValue& input : (*executor)->compiled().graph.inputs()) {
    needed.push_back(input.name);
  }
  // Those with defaults are not needed, but may be given.
  InputFlags files = step.input;
  files.random = false;
  ONCILLA_ASSIGN(given, GivenInputs(signature, files));
  for (std::string& name : given) {
    if (std::ranges::find(needed, name) == needed.end()) needed.push_back(std::move(name));
  }
  return needed;
}

Status WriteOutputs(const Step& step, const Signature& signature, StepResult& result) {
  if (step.output_dir.empty()) return {};
  // Names that differ only in whether they contain "%41" or the character cannot collide, because
  // '%' is encoded as well. And no two tensors have the same name but different types, so every
  // file is written once.
  const NoInterrupt writing;
  for (const auto& [name, tensor] : result.run.outputs) {
    auto kind = TensorInfo::Kind::kTensor;
    for (const TensorInfo& info : signature.outputs) {
      if (info.name == FullName(name, signature.outputs)) kind = info.kind;
    }
    auto path = WriteTensorFile(step.output_dir, name, tensor, kind);
    if (!path.ok()) return WithStage(In(path.status(), "--output-dir"), Stage::kFile);
    result.files.push_back(*std::move(path));
  }
  return {};
}

// Whether the fallback policy continues on another device after this failure.
bool RunsElsewhere(const OpenedModel& opened, const Status& failure) {
  const FallbackPolicy& policy = opened.session->options().fallback;
  const auto cause = CauseOf(failure);
  return cause.has_value() && policy.on.count(*cause) != 0;
}

// Finds shapes that contradict each other before anything runs; they are the user's mistake.
Status ShapesMeet(Model& model, const RunRequest& request) {
  const Status status = model.Prepare(request);
  const Stage stage = Details(status).stage;
  const bool shapes =
      status.code() == Code::kInvalidArgument && (stage == Stage::kUnknown || stage == Stage::kRun);
  return shapes ? Restaged(status, Stage::kOptions) : status;
}

// The memory of the inputs is limited, because a small file may unpack to any size.
Result<Inputs> GatherCounted(Session& session, const Signature& known,
                             const std::vector<std::string>& needed, const InputFlags& flags) {
  constexpr int64_t kLeastBound = int64_t{256} << 20;
  const int64_t bound = std::max(kLeastBound, session.device_set().pool(0).budget()->limit_bytes());
  const WorkScope scope({std::make_shared<BoundedAccount>(bound), nullptr});
  auto inputs = Fenced([&] { return GatherInputs(known, needed, flags); });
  if (inputs.status().code() == Code::kResourceExhausted) {
    return In(inputs.status(), "reading the inputs");
  }
  return inputs;
}

Result<StepResult> RunStep(OpenedModel& opened, const Step& step, const RunFlags& flags) {
  auto signature = opened.model->source().FindSignature(step.signature);
  if (!signature.ok()) return In(signature.status(), flags.model.path);
  opened.signature = *signature;
  std::vector<std::string> fetches, asked;
  for (const std::string& name : step.outputs) {
    asked.push_back(name);
    fetches.push_back(FullName(name, opened.signature->outputs));
  }
  const Signature known = WithInnerInputs(*opened.signature, step.input);
  const TimedWork limit(flags.timeout_ms);  // importing and planning, too
  ONCILLA_ASSIGN(const auto needed, NeededInputs(opened, known, step, fetches));
  ONCILLA_ASSIGN(Inputs inputs, GatherCounted(*opened.session, known, needed, step.input));
  const auto executor =
      CompileModel(opened, needed, fetches, step.targets, nullptr, FactsOfFeeds(inputs.feeds));
  if (!executor.ok() && !RunsElsewhere(opened, executor.status())) return executor.status();
  StepResult result;
  result.photo = inputs.photo;
  {
    const Progress progress("running");
    RunRequest request;
    request.signature = opened.signature->key;
    request.feeds = std::move(inputs.feeds);
    request.fetches = fetches;
    request.targets = step.targets;
    request.profile = !flags.trace.empty();
    request.timeout = std::chrono::milliseconds(flags.timeout_ms);
    if (executor.ok()) ONCILLA_TRY(ShapesMeet(*opened.model, request));
    auto run = opened.model->Run(request);
    if (!run.ok()) return OfRun(run.status());
    result.run = *std::move(run);
    result.request = std::move(request);
  }
  for (size_t i = 0; i < asked.size(); ++i) result.run.outputs[i].first = asked[i];
  ONCILLA_TRY(WriteOutputs(step, *opened.signature, result));
  return result;
}

Status WritePicture(const RunFlags& flags, const OpenedModel& opened, const StepResult& result,
                    const TopLabels& top) {
  ClassificationPicture picture;
  std::string photo;
  picture.title = "Result";
  if (!result.photo.empty()) {
    ONCILLA_ASSIGN(photo, ReadFile(result.photo, kMaxPhotoBytes));
    picture.photo = std::as_bytes(std::span(photo));
    picture.title = result.photo.substr(result.photo.rfind('/') + 1);
  }
  std::string model = flags.model.path;
  while (model.size() > 1 && model.back() == '/') model.pop_back();
  const auto preferred = static_cast<size_t>(opened.session->device_set().preferred());
  picture.caption =
      StrCat(model.substr(model.rfind('/') + 1), " on ",
             opened.session->device_set().devices()[preferred]->info().name, ", Oncilla");
  picture.rows = top.rows[0];
  ONCILLA_ASSIGN(const std::string svg, ClassificationSvg(picture));
  const NoInterrupt writing;
  return In(WriteFile(flags.svg, svg), "--svg");
}

Json TopJson(const TopLabels& top) {
  Json json;
  json["output"] = JsonText(top.output);
  json["softmax"] = top.softmax;
  json["rows"] = Json::array();
  for (const auto& row : top.rows) {
    Json list = Json::array();
    for (const LabelScore& item : row) {
      list.push_back({{"label", JsonText(item.label)}, {"score", item.score}});
    }
    json["rows"].push_back(std::move(list));
  }
  return json;
}

// Writes to stderr what ran where, and the results as text or into `document`.
Status Report(const RunFlags& flags, OpenedModel& opened, const Step& step,
              const StepResult& result, const std::vector<std::string>& labels, Json& document) {
  Json json;
  std::string text;
  json["signature"] = JsonText(opened.signature->key);
  json["outputs"] = Json::array();
  for (size_t i = 0; i < result.run.outputs.size(); ++i) {
    const auto& [name, tensor] = result.run.outputs[i];
    Json output = TensorJson(name, tensor);
    if (i < result.files.size()) output["file"] = JsonText(result.files[i]);
    json["outputs"].push_back(std::move(output));
    if (flags.topk == 0) text += PrintTensor(name, tensor);
  }
  if (flags.topk > 0) {
    ONCILLA_ASSIGN(const TopLabels top, FindTopLabels(result.run.outputs, flags.topk, labels));
    for (size_t i = 0; i < top.rows.size(); ++i) {
      const std::string what = result.photo.empty() ? top.output : result.photo;
      text += what + (top.rows.size() > 1 ? StrCat(" [", i, "]") : "") + "\n";
      text += PrintBars(top.rows[i]);
    }
    json["top"] = TopJson(top);
    if (top.softmax && !flags.session.runtime.quiet) {
      std::fprintf(stderr, "output '%s' is not a distribution: softmax applied\n",
                   top.output.c_str());
    }
    if (!flags.svg.empty()) ONCILLA_TRY(WritePicture(flags, opened, result, top));
  }
  json["run"] = RunReportJson(result.run.report);
  if (!flags.trace.empty()) {
    const NoInterrupt writing;
    ONCILLA_TRY(In(WriteFile(flags.trace, ChromeTrace(result.run.report)), "--trace"));
    json["shares"] = Json::array();
    for (const DeviceShare& share : SharesOf(result.run.report)) {
      json["shares"].push_back(ShareJson(share));
      if (!flags.session.runtime.quiet) std::fprintf(stderr, "%s\n", ShareLine(share).c_str());
    }
  }
  document["steps"].push_back(std::move(json));
  if (!flags.json) ONCILLA_TRY(PrintResult(text));
  if (!flags.session.runtime.quiet) {
    std::fprintf(stderr, "%s\n", CostLine(result.run.report, *opened.session).c_str());
    if (!result.files.empty()) {
      std::fprintf(stderr, "wrote %zu file%s to %s\n", result.files.size(),
                   result.files.size() == 1 ? "" : "s", step.output_dir.c_str());
    }
  }
  return {};
}

Status PrintPlacement(const OpenedModel& opened, const Step& step) {
  std::vector<std::string> fetches;
  for (const std::string& name : step.outputs) {
    fetches.push_back(FullName(name, opened.signature->outputs));
  }
  const Signature known = WithInnerInputs(*opened.signature, step.input);
  ONCILLA_ASSIGN(const auto needed, NeededInputs(opened, known, step, fetches));
  const auto executor = CompileModel(opened, needed, fetches, step.targets);
  if (!executor.ok()) {
    return RunsElsewhere(opened, executor.status()) ? Status() : executor.status();
  }
  std::fputs(Print((*executor)->compiled().placement).c_str(), stderr);
  return {};
}

Json ErrorsJson(const std::vector<NumberErrors>& errors) {
  Json list = Json::array();
  for (const NumberErrors& e : errors) {
    Json json = {{"name", JsonText(e.name)},       {"largest", e.largest},
                 {"max_error", e.max_error},       {"rms_error", e.rms_error},
                 {"relative_error", e.relative()}, {"overflowed", e.overflowed},
                 {"others_that_differ", e.others}};
    if (e.top1 >= 0) json["top1_agreement"] = e.top1;
    list.push_back(std::move(json));
  }
  return list;
}

// Opens the model once more, in a session that stores fp32.
Result<OpenedModel> OpenReference(const RunFlags& flags, const ModelFlags& model) {
  SessionFlags session = flags.session;
  session.precision = "fp32";
  session.wide.clear();
  session.narrow.clear();
  return Open(model, session);
}

// Runs the step again on both models and reports the differences. A model with state has already
// run the step once, so the reference runs it once before, too.
Status ComparePrecision(const RunFlags& flags, const OpenedModel& opened,
                        const OpenedModel& reference, const StepResult& result, Json& document) {
  if (const auto run = reference.model->Run(result.request); !run.ok()) return OfRun(run.status());
  const auto check =
      CheckPrecision(*opened.model, *reference.model, result.request, flags.compare_nodes);
  if (!check.ok()) return OfRun(check.status());
  document["steps"].back()["precision"] = {{"outputs", ErrorsJson(check->outputs)},
                                           {"nodes", ErrorsJson(check->nodes)}};
  return flags.json ? Status() : PrintResult(Print(*check));
}

// Writes the report of --memory-report, as JSON if the file's name ends in .json.
Status WriteMemoryReport(const std::string& file, const Session& session) {
  if (file == "-") return PrintResult(session.memory().Report());
  constexpr std::string_view kJson = ".json";
  const bool json = file.size() > kJson.size() && file.ends_with(kJson);
  const NoInterrupt writing;
  return In(
      WriteFile(file, json ? session.memory().ReportJson() + "\n" : session.memory().Report()),
      "--memory-report");
}

Status Run(const RunFlags& flags) {
  ONCILLA_TRY(CheckFlags(flags));
  ONCILLA_ASSIGN(const std::vector<Step> steps, ReadSteps(flags));
  std::vector<std::string> labels;
  if (!flags.labels.empty()) {
    ONCILLA_ASSIGN(labels, ReadLabels(flags.labels));
  }
  ModelFlags model = flags.model;
  // Each step names its signature; the model may have no default one.
  if (!flags.steps.empty() && !steps.empty()) model.signature = steps[0].signature;
  ONCILLA_ASSIGN(OpenedModel opened, Open(model, flags.session));
  Json document = DocumentJson("run");
  document["model"] = {{"path", JsonText(flags.model.path)},
                       {"format", std::string(opened.model->source().format())}};
  document["devices"] = DevicesJson(*opened.session);
  document["steps"] = Json::array();
  constexpr size_t kMostChanges = 10'000;
  if (!flags.memory_report.empty()) opened.session->memory().ledger().StartTimeline(kMostChanges);
  std::optional<OpenedModel> reference;  // for --compare, opened at the first step
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto in = [&](Status status) {
      return steps.size() > 1 ? In(std::move(status), StrCat("step ", i)) : status;
    };
    auto result = RunStep(opened, steps[i], flags);
    if (!result.ok()) {
      // Written even after a failure: the report is most useful when memory has run out.
      if (!flags.memory_report.empty()) {
        ONCILLA_TRY(WriteMemoryReport(flags.memory_report, *opened.session));
      }
      return in(result.status());
    }
    if (flags.placement) ONCILLA_TRY(in(PrintPlacement(opened, steps[i])));
    ONCILLA_TRY(in(Report(flags, opened, steps[i], *result, labels, document)));
    if (!flags.compare.empty()) {
      if (!reference.has_value()) {
        ONCILLA_ASSIGN(reference, OpenReference(flags, model));
      }
      ONCILLA_TRY(in(ComparePrecision(flags, opened, *reference, *result, document)));
    }
  }
  document["memory"] = MemoryJson(*opened.session);
  document["counters"] = CountersJson(opened.model->executables().counters());
  if (!flags.memory_report.empty()) {
    ONCILLA_TRY(WriteMemoryReport(flags.memory_report, *opened.session));
  }
  return flags.json ? PrintDocument(document) : Status();
}

}  // namespace

Action AddRun(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  flags->model.AddTo(app);
  flags->input.AddTo(app);
  app.add_option("--output", flags->outputs, "An output to compute (else all of the signature)")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--target", flags->targets,
                 "A node of a TensorFlow graph to run for what it does, such as an initialiser")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--output-dir", flags->output_dir,
                 "Write each output as <NAME>.npy, or .json for strings; bytes of the name outside "
                 "[A-Za-z0-9_.-] become %XX")
      ->type_name("DIR");
  app.add_option("--steps", flags->steps,
                 "Several runs on one loaded model: "
                 "[{\"signature\",\"inputs\":{NAME:FILE},\"outputs\":[..],\"output_dir\","
                 "\"targets\":[..]},..]")
      ->type_name("FILE");
  flags->session.AddTo(app);
  AddPlacement(app, flags->model);
  app.add_option("--topk", flags->topk, "Show the K best classes as bars")
      ->check(CLI::Range(1, 1000000))
      ->type_name("K");
  app.add_option("--labels", flags->labels, "Names of the classes, one per line or a JSON list")
      ->type_name("FILE");
  app.add_option("--trace", flags->trace,
                 "Write what ran when as a Chrome trace, which Perfetto opens (ui.perfetto.dev)")
      ->type_name("FILE.json");
  app.add_option("--svg", flags->svg, "Draw the photograph beside the bars of --topk")
      ->type_name("FILE");
  app.add_option("--memory-report", flags->memory_report,
                 "Who holds what memory, where peaks fall and how it came: text, JSON for a name "
                 "that ends in .json, or - for standard output; also when the run fails")
      ->type_name("FILE");
  app.add_option("--compare", flags->compare,
                 "Run once more with this precision and say how far apart the results are")
      ->check(CLI::IsMember({"fp32"}))
      ->type_name("TYPE");
  app.add_option("--compare-nodes", flags->compare_nodes,
                 "With --compare: so many values inside the graph as well, one run each")
      ->check(CLI::Range(0, 100000))
      ->type_name("N");
  AddTimeout(app, flags->timeout_ms);
  app.add_flag("--placement", flags->placement, "Say for each node where it ran and why (stderr)");
  app.add_flag("--json", flags->json, "Results and costs as one JSON document");
  app.add_flag("-q,--quiet", flags->session.runtime.quiet, "Nothing on stderr but failures");
  app.footer(
      "Examples:\n"
      "  oncilla run mobilenet/ --input image=cat.png --topk 5\n"
      "  oncilla run model.onnx --input-dir data --output-dir out\n"
      "  oncilla run model.pb --random --seed 7 --shape x=1x3x224x224 --device cpu --json\n"
      "  oncilla run net.onnx --input x=cat.jpg --resize 224x224 --mean 123.7,116.3,103.5 \\\n"
      "      --scale 0.0171,0.0175,0.0174 --topk 3 --labels imagenet.txt --svg cat.svg\n"
      "Exit codes: docs/cli.md");
  return [flags] { return Run(*flags); };
}

}  // namespace oncilla::tool
