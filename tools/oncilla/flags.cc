// Turns text into options, and options into an opened model.
#include "tools/oncilla/flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cmath>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/session/config.h"
#include "engine/session/fallback.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

template <class T>
bool ParseWhole(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void RuntimeFlags::AddTo(CLI::App& app) {
  app.add_flag("--opencl-cpu-devices", opencl_cpu_devices,
               "Let OpenCL devices of type CPU serve as GPU:n");
  app.add_option("--cache-dir", cache_dir,
                 "Folder for compiled programs (else $ONCILLA_CACHE_DIR, else the user's cache)")
      ->type_name("DIR");
}

std::shared_ptr<Runtime> RuntimeFlags::Create() const {
  RuntimeOptions options = RuntimeOptionsFromEnvironment();
  if (opencl_cpu_devices) options.opencl_cpu_devices = true;
  if (!cache_dir.empty()) options.cache_dir = cache_dir;
  if (quiet) options.log = std::make_shared<Log>(LogLevel::kError);
  return Runtime::Create(std::move(options));
}

void SessionFlags::AddTo(CLI::App& app) {
  app.add_option("--device", device,
                 "auto (the default), cpu, cpu:plain (exact code only), gpu, gpu:1, or a full "
                 "TensorFlow device name")
      ->type_name("SPEC");
  app.add_flag("--strict", strict, "Refuse if a node cannot run on the device asked for");
  app.add_option("--threads", threads, "Threads of the CPU device (0: all processors)")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  app.add_option("--memory-limit", memory_limit,
                 "Most bytes taken on each device, for example 512MiB")
      ->type_name("BYTES");
  app.add_option(
         "--fallback", fallback,
         "Devices to fall back to, in order, when one is missing, is lost, or lacks memory or, "
         "with --strict, a kernel")
      ->type_name("SPEC,..");
  app.add_option("--precision", precision,
                 "How weights and intermediate values are stored: fp32, fp16 or bf16; sums are in "
                 "fp32 in any case")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}))
      ->type_name("TYPE");
  app.add_option(
         "--keep-fp32", wide,
         "With --precision: leave these nodes alone ('*' any text), or op:TYPE; may be given "
         "several times")
      ->allow_extra_args(false)
      ->type_name("NODES");
  app.add_option("--also-narrow", narrow,
                 "With --precision: store these in 16 bits, whatever the default for their op")
      ->allow_extra_args(false)
      ->type_name("NODES");
  app.add_option("--tuning", tuning,
                 "Measured choices of launches on OpenCL devices: auto, off, or a file of "
                 "oncilla tune")
      ->type_name("FILE");
  app.add_option("--config", config,
                 "Session options as text, JSON or a serialized ConfigProto of TensorFlow; flags "
                 "win over it")
      ->type_name("FILE");
  runtime.AddTo(app);
  // After all other flags, so that these have their values. MODEL may be missing.
  app.add_flag_callback(
      "--dump-config",
      [this] {
        auto options = Options();
        if (!options.ok()) throw CLI::ValidationError(std::string(Message(options.status())));
        for (const std::string& note : notes) DefaultLog().Warning(note);
        std::fputs(PrintSessionConfig(*options, TextForm::kJson).c_str(), stdout);
        throw CLI::Success();
      },
      "Print the session options that the flags and --config come to, as JSON, and do no more");
}

Result<SessionOptions> SessionFlags::Options() const {
  SessionOptions options;
  if (!config.empty()) {
    constexpr int64_t kMostBytes = int64_t{1} << 20;
    auto bytes = ReadFile(config, kMostBytes);
    if (!bytes.ok()) return WithStage(bytes.status(), Stage::kOptions);
    notes.clear();
    ONCILLA_TRY(In(ReadSessionConfig(*bytes, options, notes), config));
  }
  if (!device.empty()) options.device = device;
  if (strict) options.strict = true;
  if (threads > 0) options.threads = threads;
  if (!memory_limit.empty()) {
    ONCILLA_ASSIGN(options.memory_limit_bytes, ParseBytes(memory_limit, "--memory-limit"));
    if (options.memory_limit_bytes == 0) return BadOption("--memory-limit must not be 0");
  }
  if (!precision.empty()) {
    ONCILLA_ASSIGN(options.precision.storage, PrecisionFromName(precision));
    if (!options.precision.narrow()) options.precision = {};
  }
  if (!options.precision.narrow() && !(wide.empty() && narrow.empty())) {
    return BadOption(
        "--keep-fp32 and --also-narrow have no effect without --precision fp16 or bf16");
  }
  options.precision.deny.insert(options.precision.deny.end(), wide.begin(), wide.end());
  options.precision.allow.insert(options.precision.allow.end(), narrow.begin(), narrow.end());
  if (!tuning.empty()) options.tuning = tuning;
  if (!fallback.empty()) options.fallback = FallbackOnAll(SplitAt(fallback, ','));
  return options;
}

void ModelFlags::AddTo(CLI::App& app) {
  app.add_option("MODEL", path,
                 "SavedModel folder, GraphDef (.pb), ONNX or TFLite file; told by content")
      ->required()
      ->type_name("");
  app.add_option("--tags", tags, "Tags of the SavedModel's graph (else serve, else the only set)")
      ->type_name("T,..");
  app.add_option("--signature", signature,
                 "Signature to use (else serving_default, else the only one)")
      ->type_name("KEY");
}

std::vector<std::string> TagsOf(std::string_view text) {
  std::vector<std::string> tags = SplitAt(text, ',');
  for (std::string& tag : tags) {
    const size_t first = std::min(tag.find_first_not_of(' '), tag.size());
    tag = tag.substr(first, tag.find_last_not_of(' ') + 1 - first);
  }
  return tags;
}

OpenModelOptions LoadOptionsOf(const ModelFlags& flags) {
  OpenModelOptions open;
  if (!flags.tags.empty()) open.tags = TagsOf(flags.tags);
  if (flags.stored_devices == "soft") open.stored_devices = StoredDevices::kSoft;
  if (flags.stored_devices == "respect") open.stored_devices = StoredDevices::kRespect;
  return open;
}

void AddTimeout(CLI::App& app, int64_t& timeout_ms) {
  app.add_option("--timeout", timeout_ms,
                 "End a run that takes longer (0: never), planning included: exit code 7")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->type_name("MS");
}

namespace {

EarlyEnd EndAfter(int64_t timeout_ms) {
  EarlyEnd end;
  if (timeout_ms > 0) {
    end.deadline =
        DeadlineAfter(std::chrono::steady_clock::now(), std::chrono::milliseconds(timeout_ms));
  }
  return end;
}

WorkLimits LimitsUntil(const EarlyEnd& end) {
  WorkLimits limits = WorkScope::Current();
  limits.end = &end;
  return limits;
}

}  // namespace

TimedWork::TimedWork(int64_t timeout_ms) : end_(EndAfter(timeout_ms)), scope_(LimitsUntil(end_)) {}

void AddPlacement(CLI::App& app, ModelFlags& flags) {
  app.add_option("--stored-devices", flags.stored_devices,
                 "Devices stored on a TensorFlow model's nodes: ignore, soft (followed where that "
                 "can be) or respect (followed or refused)")
      ->check(CLI::IsMember({"ignore", "soft", "respect"}))
      ->type_name("MODE")
      ->capture_default_str();
  app.add_option(
         "--place", flags.places,
         "Runs nodes whose name matches ('*' any text), or op:TYPE for a type, on a device; "
         "may be given several times, the last one wins")
      ->allow_extra_args(false)
      ->type_name("NODES=SPEC");
}

namespace {

Result<std::vector<PlacementRequest>> RequestsOf(const ModelFlags& flags) {
  std::vector<PlacementRequest> requests;
  for (const std::string& text : flags.places) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return BadOption(StrCat("--place ", text, ": expected NODES=SPEC or op:TYPE=SPEC"));
    }
    PlacementRequest request;
    request.device = text.substr(equals + 1);
    const std::string what = text.substr(0, equals);
    if (what.compare(0, 3, "op:") == 0) {
      request.op = what.substr(3);
    } else {
      request.nodes = what;
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace

Result<OpenedModel> Open(const ModelFlags& model, const SessionFlags& session) {
  ONCILLA_ASSIGN(SessionOptions options, session.Options());
  OpenedModel opened;
  opened.runtime = session.runtime.Create();
  for (const std::string& note : session.notes) opened.runtime->log().Warning(note);
  {
    const Progress progress("opening the device");
    ONCILLA_ASSIGN(opened.session, Session::Create(opened.runtime, std::move(options)));
  }
  const OpenModelOptions open = LoadOptionsOf(model);
  const Progress progress(StrCat("loading ", model.path));
  const auto begin = std::chrono::steady_clock::now();
  auto loaded = opened.session->Load(model.path, open);
  if (!loaded.ok()) return OfModel(loaded.status());
  opened.model = *std::move(loaded);
  ONCILLA_ASSIGN(auto requests, RequestsOf(model));
  if (!requests.empty()) ONCILLA_TRY(opened.model->Place(std::move(requests)));
  auto signature = opened.model->source().FindSignature(model.signature);
  if (!signature.ok()) return In(signature.status(), model.path);
  opened.signature = *signature;
  opened.load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return opened;
}

Result<std::shared_ptr<Executor>> CompileModel(const OpenedModel& opened,
                                               const std::vector<std::string>& feeds,
                                               const std::vector<std::string>& fetches,
                                               const std::vector<std::string>& targets,
                                               const GraphObserver& observe, Facts fed) {
  const Progress progress("compiling");
  auto executor = opened.model->Executable(
      {opened.signature->key, feeds, fetches, targets, std::move(fed)}, observe);
  if (!executor.ok()) return OfModel(executor.status());
  return executor;
}

Result<Shape> ParseShape(std::string_view text, std::string_view flag) {
  Shape shape;
  if (text.empty()) return shape;
  for (const std::string& part : SplitAt(text, 'x')) {
    int64_t size = 0;
    if (!ParseWhole(part, size) || size < 0) {
      return BadOption(flag, ": '", text, "' is not a shape such as 1x224x224x3");
    }
    shape.push_back(size);
  }
  if (shape.rank() > kMaxRank) {
    return BadOption(flag, ": the shape ", text, " has more than ", kMaxRank, " dimensions");
  }
  return shape;
}

Result<int64_t> ParseBytes(std::string_view text, std::string_view flag) {
  if (const auto bytes = BytesFromText(text)) return *bytes;
  return BadOption(flag, ": '", text,
                   "' is not a number of bytes below 2^63; units are k, M, G, T and KiB, MiB, ..");
}

Result<std::vector<double>> ParseNumbers(std::string_view text, std::string_view flag) {
  std::vector<double> numbers;
  if (text.empty()) return numbers;
  for (const std::string& part : SplitAt(text, ',')) {
    double value = 0;
    if (!ParseWhole(part, value) || !std::isfinite(value)) {
      return BadOption(flag, ": '", part, "' is not a number");
    }
    numbers.push_back(value);
  }
  return numbers;
}

std::vector<std::string> SplitAt(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string FullName(const std::string& name, const std::vector<TensorInfo>& known) {
  for (const TensorInfo& info : known) {
    if (info.name == name) return name;
  }
  for (const TensorInfo& info : known) {
    if (info.name == name + ":0") return info.name;
  }
  return name;
}

}  // namespace oncilla::tool
