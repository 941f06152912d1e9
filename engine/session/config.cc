// Between the struct, our message and TensorFlow's, through protobuf.
#include "engine/session/config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>

#include "engine/base/near_names.h"
#include "engine/session/config_memory.h"
#include "engine/session/fallback.h"
#include "proto/config.pb.h"
#include "proto/tensorflow_config.pb.h"

namespace oncilla {
namespace {

namespace pb = google::protobuf;
using config::proto::SessionConfig;
using tensorflow_config::proto::ConfigProto;

constexpr int64_t kLongestMs = int64_t{366} * 24 * 3600 * 1000;  // clocks overflow later than that

template <class... Parts>
Status Bad(const Parts&... parts) {
  return WithStage(InvalidArgument("the configuration: ", parts...), Stage::kOptions);
}

class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (text.empty()) text = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  std::string text;
};

Result<SessionConfig> ParseText(const std::string& text) {
  SessionConfig message;
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &message)) return Bad(error.text);
  return message;
}

Result<SessionConfig> ParseJson(const std::string& text) {
  SessionConfig message;
  const auto status = pb::util::JsonStringToMessage(text, &message);
  if (!status.ok()) return Bad(std::string_view(status.message().data(), status.message().size()));
  return message;
}

Status CheckCounts(const SessionOptions& options) {
  for (const auto& [type, count] : options.device_count) {
    if (type != "CPU" && type != "GPU") {
      return Bad("device_count has the type '", type, "'; there are CPU and GPU");
    }
    if (count < 0) return Bad("device_count of ", type, " is ", count);
    if (type == "CPU" && count == 0) return Bad("device_count of CPU is 0: it always takes part");
  }
  return Status();
}

Status ApplyPrecision(const config::proto::Precision& from, PrecisionOptions& to) {
  to = {};
  if (from.has_storage()) {
    const auto storage = PrecisionFromName(from.storage());
    if (!storage.ok()) return Bad("precision.storage: ", Message(storage.status()));
    to.storage = *storage;
  }
  const auto entries = [](std::string_view name, const auto& list,
                          std::vector<std::string>& into) -> Status {
    for (const std::string& entry : list) {
      if (entry.empty() || entry == "op:") {
        return Bad("precision.", name, " has an entry that names nothing");
      }
      into.push_back(entry);
    }
    return Status();
  };
  ONCILLA_TRY(entries("allow", from.allow(), to.allow));
  ONCILLA_TRY(entries("deny", from.deny(), to.deny));
  if (!to.narrow() && !(to.allow.empty() && to.deny.empty())) {
    return Bad("precision has lists, but its storage is fp32: they would have no effect");
  }
  return Status();
}

Status Apply(const SessionConfig& from, SessionOptions& to) {
  if (from.has_device()) to.device = from.device();
  if (from.has_strict()) to.strict = from.strict();
  if (from.has_threads()) to.threads = from.threads();
  if (from.has_thread_pool()) to.thread_pool = from.thread_pool();
  if (from.has_memory_limit_bytes()) to.memory_limit_bytes = from.memory_limit_bytes();
  if (from.has_memory_limit_fraction()) to.memory_limit_fraction = from.memory_limit_fraction();
  if (from.has_max_concurrent_runs()) to.max_concurrent_runs = from.max_concurrent_runs();
  if (from.has_watchdog_ms()) to.watchdog_ms = from.watchdog_ms();
  if (from.has_run_timeout_ms()) to.run_timeout_ms = from.run_timeout_ms();
  for (const auto& [type, count] : from.device_count()) to.device_count[type] = count;
  if (from.visible_devices_size() > 0) {
    to.visible_devices.assign(from.visible_devices().begin(), from.visible_devices().end());
  }
  if (from.has_log_device_placement()) to.log_device_placement = from.log_device_placement();
  if (from.logical_devices_size() > 0) to.logical_devices.clear();
  for (const auto& part : from.logical_devices()) {
    if (part.memory_limit_bytes() < 0) {
      return Bad("logical_devices: memory_limit_bytes is ", part.memory_limit_bytes());
    }
    to.logical_devices.push_back({part.physical(), part.memory_limit_bytes()});
  }
  if (from.has_fallback()) {
    to.fallback = {};
    for (const std::string& name : from.fallback().on()) {
      const auto cause = FallbackCauseNamed(name);
      if (!cause.has_value()) {
        return Bad("fallback.on has '", name, "'; there are ", FallbackCauseNames());
      }
      to.fallback.on.insert(*cause);
    }
    to.fallback.chain.assign(from.fallback().chain().begin(), from.fallback().chain().end());
  }
  if (from.has_precision()) ONCILLA_TRY(ApplyPrecision(from.precision(), to.precision));
  if (to.threads < 0 || to.threads > 1024) return Bad("threads is ", to.threads);
  ONCILLA_TRY(ApplyMemoryConfig(from, to));
  if (to.memory_limit_bytes < 0) return Bad("memory_limit_bytes is ", to.memory_limit_bytes);
  if (!(to.memory_limit_fraction >= 0 && to.memory_limit_fraction <= 1)) {
    return Bad("memory_limit_fraction is ", to.memory_limit_fraction, ", not in [0, 1]");
  }
  if (to.run_timeout_ms < 0 || to.run_timeout_ms > kLongestMs) {
    return Bad("run_timeout_ms is ", to.run_timeout_ms);
  }
  if (to.watchdog_ms < 0) return Bad("watchdog_ms is ", to.watchdog_ms);
  if (to.max_concurrent_runs < 1) return Bad("max_concurrent_runs is ", to.max_concurrent_runs);
  return CheckCounts(to);
}

// What is set of a message and not among `used`, by name.
void NoteOthers(const pb::Message& message, std::string_view where,
                const std::vector<std::string_view>& used, std::vector<std::string>& notes) {
  std::vector<const pb::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (std::find(used.begin(), used.end(), field->name()) != used.end()) continue;
    notes.push_back(StrCat("ConfigProto: ", where, field->name(), " has no effect"));
  }
  const pb::UnknownFieldSet& others = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < others.field_count(); ++i) {
    notes.push_back(
        StrCat("ConfigProto: ", where, "field ", others.field(i).number(), " has no effect"));
  }
}

// What Grappler's mixed precision of GPUs (and its emulation on CPUs) and that of oneDNN ask for.
// Which device asks for it makes no difference here: a session stores numbers in one way.
Status ApplyRewrites(const tensorflow_config::proto::RewriterConfig& from, SessionOptions& to,
                     std::vector<std::string>& notes) {
  using tensorflow_config::proto::RewriterConfig;
  const auto on = [](RewriterConfig::Toggle toggle) {
    return toggle == RewriterConfig::ON || toggle == RewriterConfig::AGGRESSIVE;
  };
  const bool half = on(from.auto_mixed_precision()) || on(from.auto_mixed_precision_cpu());
  const bool bfloat =
      on(from.auto_mixed_precision_mkl()) || on(from.auto_mixed_precision_onednn_bfloat16());
  if (half && bfloat) {
    return Bad("ConfigProto: rewrite_options ask for mixed precision both in float16 and, of ",
               "oneDNN, in bfloat16; give one");
  }
  if (half || bfloat) {
    if (from.disable_meta_optimizer()) {
      notes.push_back(
          "ConfigProto: mixed precision has no effect, as disable_meta_optimizer is set");
    } else {
      to.precision.storage = half ? DType::kF16 : DType::kBF16;
    }
  }
  NoteOthers(from, "graph_options.rewrite_options.",
             {"auto_mixed_precision", "auto_mixed_precision_cpu", "auto_mixed_precision_mkl",
              "auto_mixed_precision_onednn_bfloat16", "disable_meta_optimizer"},
             notes);
  return Status();
}

Status ApplyTensorFlow(const ConfigProto& from, SessionOptions& to,
                       std::vector<std::string>& notes) {
  const auto& gpu = from.gpu_options();
  const auto& parts = gpu.experimental().virtual_devices();
  if (parts.size() > 0) {
    if (gpu.per_process_gpu_memory_fraction() > 0) {
      return Bad("ConfigProto: gpu_options has both per_process_gpu_memory_fraction and ",
                 "virtual_devices; give one");
    }
    to.logical_devices.clear();
  }
  for (int device = 0; device < parts.size(); ++device) {
    for (const float limit_mb : parts[device].memory_limit_mb()) {
      if (!(limit_mb >= 1 && limit_mb < 1e9f)) {
        return Bad("ConfigProto: virtual_devices: memory_limit_mb is ", limit_mb);
      }
      to.logical_devices.push_back(
          {StrCat("GPU:", device), static_cast<int64_t>(double{limit_mb} * 1024 * 1024)});
    }
  }
  for (const auto& [type, count] : from.device_count()) to.device_count[type] = count;
  if (const int threads = from.intra_op_parallelism_threads(); threads != 0) {
    if (threads < 0 || threads > 1024) return Bad("intra_op_parallelism_threads is ", threads);
    to.threads = threads;
  }
  if (const int64_t timeout = from.operation_timeout_in_ms(); timeout != 0) {
    if (timeout < 0 || timeout > kLongestMs) return Bad("operation_timeout_in_ms is ", timeout);
    to.run_timeout_ms = timeout;
  }
  // Here one pool does what both of TensorFlow's do: it divides ops, and runs them.
  if (from.session_inter_op_thread_pool_size() == 1) {
    const auto& pool = from.session_inter_op_thread_pool(0);
    if (pool.num_threads() < 0 || pool.num_threads() > 1024) {
      return Bad("session_inter_op_thread_pool: num_threads is ", pool.num_threads());
    }
    to.thread_pool = pool.global_name();
    if (from.intra_op_parallelism_threads() == 0 && pool.num_threads() > 0) {
      to.threads = pool.num_threads();
    }
  } else if (from.session_inter_op_thread_pool_size() > 1) {
    notes.push_back("ConfigProto: several of session_inter_op_thread_pool have no effect");
  }
  const double fraction = gpu.per_process_gpu_memory_fraction();
  if (!(fraction >= 0 && fraction <= 1)) {
    return Bad("gpu_options.per_process_gpu_memory_fraction is ", fraction, ", not in [0, 1]");
  }
  if (fraction > 0) {
    DeviceMemoryOptions& options = to.device_memory["GPU"];
    options.limit_bytes = 0;
    options.limit_fraction = fraction;
    options.free_minus_bytes = -1;
  }
  if (gpu.allow_growth()) {
    if (const auto given = to.device_memory.find("GPU"); given != to.device_memory.end()) {
      given->second.preallocate_bytes = 0;
      given->second.preallocate_fraction = 0;
    }
  }
  std::string_view list = gpu.visible_device_list();
  if (!list.empty()) to.visible_devices.clear();
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    to.visible_devices.emplace_back(entry);
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
  }
  to.log_device_placement |= from.log_device_placement();
  ONCILLA_TRY(ApplyRewrites(from.graph_options().rewrite_options(), to, notes));
  // Soft placement is about nodes that ask for a device, which stored_devices is for; memory always
  // grows as it is needed.
  NoteOthers(from, "",
             {"device_count", "intra_op_parallelism_threads", "gpu_options", "allow_soft_placement",
              "log_device_placement", "graph_options", "session_inter_op_thread_pool",
              "operation_timeout_in_ms"},
             notes);
  NoteOthers(from.graph_options(), "graph_options.", {"rewrite_options"}, notes);
  NoteOthers(
      gpu, "gpu_options.",
      {"per_process_gpu_memory_fraction", "visible_device_list", "allow_growth", "experimental"},
      notes);
  NoteOthers(gpu.experimental(), "gpu_options.experimental.", {"virtual_devices"}, notes);
  return CheckCounts(to);
}

bool IsText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
  });
}

}  // namespace

Status ReadSessionConfig(std::string_view bytes, SessionOptions& options,
                         std::vector<std::string>& notes) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  if (bytes.size() > kMostBytes) return Bad("has ", bytes.size(), " bytes");
  SessionOptions changed = options;
  // A ConfigProto has at least one byte that is no text: the tag of a field.
  if (!IsText(bytes)) {
    ConfigProto message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return Bad("is neither JSON nor text nor a serialized ConfigProto");
    }
    ONCILLA_TRY(ApplyTensorFlow(message, changed, notes));
  } else {
    const size_t first = bytes.find_first_not_of(" \t\r\n");
    const bool json = first != std::string_view::npos && bytes[first] == '{';
    ONCILLA_ASSIGN(const SessionConfig message,
                   json ? ParseJson(std::string(bytes)) : ParseText(std::string(bytes)));
    ONCILLA_TRY(Apply(message, changed));
  }
  options = std::move(changed);
  return Status();
}

std::string PrintSessionConfig(const SessionOptions& options, ConfigForm form) {
  const SessionOptions defaults;
  SessionConfig message;
  if (options.device != defaults.device) message.set_device(options.device);
  if (options.strict) message.set_strict(true);
  if (options.threads != 0) message.set_threads(options.threads);
  if (!options.thread_pool.empty()) message.set_thread_pool(options.thread_pool);
  if (options.memory_limit_bytes != 0) {
    message.set_memory_limit_bytes(options.memory_limit_bytes);
  }
  if (options.memory_limit_fraction != 0) {
    message.set_memory_limit_fraction(options.memory_limit_fraction);
  }
  if (options.run_timeout_ms != 0) message.set_run_timeout_ms(options.run_timeout_ms);
  if (options.watchdog_ms != defaults.watchdog_ms) message.set_watchdog_ms(options.watchdog_ms);
  if (options.max_concurrent_runs != defaults.max_concurrent_runs) {
    message.set_max_concurrent_runs(options.max_concurrent_runs);
  }
  for (const auto& [type, count] : options.device_count) {
    (*message.mutable_device_count())[type] = count;
  }
  for (const std::string& entry : options.visible_devices) message.add_visible_devices(entry);
  if (options.log_device_placement) message.set_log_device_placement(true);
  for (const LogicalDevice& part : options.logical_devices) {
    auto* to = message.add_logical_devices();
    to->set_physical(part.physical);
    to->set_memory_limit_bytes(part.memory_limit_bytes);
  }
  for (FallbackCause cause : options.fallback.on) {
    message.mutable_fallback()->add_on(std::string(Name(cause)));
  }
  for (const std::string& device : options.fallback.chain) {
    message.mutable_fallback()->add_chain(device);
  }
  if (options.precision.narrow()) {
    auto* precision = message.mutable_precision();
    precision->set_storage(std::string(PrecisionName(options.precision.storage)));
    for (const std::string& entry : options.precision.allow) precision->add_allow(entry);
    for (const std::string& entry : options.precision.deny) precision->add_deny(entry);
  }
  PrintMemoryConfig(options, message);
  std::string out;
  if (form == ConfigForm::kText) {
    pb::TextFormat::PrintToString(message, &out);
    return out;
  }
  pb::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  print.add_whitespace = true;
  pb::util::MessageToJsonString(message, &out, print);
  return out;
}

}  // namespace oncilla
