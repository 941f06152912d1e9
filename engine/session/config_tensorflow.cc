// Fields that have an effect are members of option structs; all others are known only by their
// names in the schema.
#include "engine/session/config_tensorflow.h"

#include <algorithm>

#include "engine/base/near_names.h"
#include "engine/base/options.h"
#include "engine/import/tf/config_schema.h"
#include "engine/import/wire/wire.h"

namespace oncilla {
namespace {

enum class Toggle { kDefault, kOn, kOff, kAggressive };
constexpr std::pair<Toggle, std::string_view> kToggleNames[] = {
    {Toggle::kDefault, "DEFAULT"},
    {Toggle::kOn, "ON"},
    {Toggle::kOff, "OFF"},
    {Toggle::kAggressive, "AGGRESSIVE"},
};
bool On(Toggle toggle) { return toggle == Toggle::kOn || toggle == Toggle::kAggressive; }

struct VirtualDevices {
  std::vector<double> memory_limit_mb;
  static void Fields(auto& self, auto&& field) {
    field({.name = "memory_limit_mb", .least = 1, .most = 1e9}, self.memory_limit_mb);
  }
};

struct GpuExperimental {
  std::vector<VirtualDevices> virtual_devices;
  static void Fields(auto& self, auto&& field) {
    field({.name = "virtual_devices"}, self.virtual_devices);
  }
};

struct GpuOptions {
  double fraction = 0;
  bool allow_growth = false;
  std::string visible_device_list;
  GpuExperimental experimental;
  static void Fields(auto& self, auto&& field) {
    field({.name = "per_process_gpu_memory_fraction", .least = 0, .most = 1}, self.fraction);
    field({.name = "allow_growth"}, self.allow_growth);
    field({.name = "visible_device_list"}, self.visible_device_list);
    field({.name = "experimental"}, self.experimental);
  }
};

struct RewriterConfig {
  Toggle half = Toggle::kDefault, half_on_cpu = Toggle::kDefault;
  Toggle bfloat_mkl = Toggle::kDefault, bfloat_onednn = Toggle::kDefault;
  bool disable_meta_optimizer = false;
  static void Fields(auto& self, auto&& field) {
    field({.name = "auto_mixed_precision"}, self.half, kToggleNames);
    field({.name = "auto_mixed_precision_cpu"}, self.half_on_cpu, kToggleNames);
    field({.name = "auto_mixed_precision_mkl"}, self.bfloat_mkl, kToggleNames);
    field({.name = "auto_mixed_precision_onednn_bfloat16"}, self.bfloat_onednn, kToggleNames);
    field({.name = "disable_meta_optimizer"}, self.disable_meta_optimizer);
  }
};

struct GraphOptions {
  RewriterConfig rewrite_options;
  static void Fields(auto& self, auto&& field) {
    field({.name = "rewrite_options"}, self.rewrite_options);
  }
};

struct ThreadPoolOption {
  int num_threads = 0;
  std::string global_name;
  static void Fields(auto& self, auto&& field) {
    field({.name = "num_threads", .least = 0, .most = 1024}, self.num_threads);
    field({.name = "global_name"}, self.global_name);
  }
};

struct ConfigProto {
  std::map<std::string, int> device_count;
  int intra_op_parallelism_threads = 0;
  int64_t operation_timeout_in_ms = 0;
  GpuOptions gpu_options;
  // Concerns nodes that request a device; the option stored_devices of loading a model covers that.
  bool allow_soft_placement = false;
  bool log_device_placement = false;
  GraphOptions graph_options;
  std::vector<ThreadPoolOption> session_inter_op_thread_pool;
  static void Fields(auto& self, auto&& field) {
    field({.name = "device_count", .least = 0, .most = 1024}, self.device_count);
    field({.name = "intra_op_parallelism_threads", .least = 0, .most = 1024},
          self.intra_op_parallelism_threads);
    field({.name = "operation_timeout_in_ms", .least = 0, .most = SessionOptions::kLongestMs},
          self.operation_timeout_in_ms);
    field({.name = "gpu_options"}, self.gpu_options);
    field({.name = "allow_soft_placement"}, self.allow_soft_placement);
    field({.name = "log_device_placement"}, self.log_device_placement);
    field({.name = "graph_options"}, self.graph_options);
    field({.name = "session_inter_op_thread_pool"}, self.session_inter_op_thread_pool);
  }
};

// Keeps the members of `from` that Options has, so that ReadOptions accepts them. Other names that
// the schema has, and field numbers that it lacks, are reported in `notes`; any other name is
// refused.
template <class Options>
Status KeepKnown(TextTree& from, const MessageSchema& schema, const std::string& where,
                 std::vector<std::string>& notes) {
  const std::vector<std::string> used = OptionNamesOf<Options>();
  Status status;
  std::erase_if(from.members, [&](const TextMember& member) {
    if (std::find(used.begin(), used.end(), member.name) != used.end()) return false;
    if (schema.Find(member.name) == nullptr && member.at.line > 0) {
      std::vector<std::string> names;
      for (const FieldSchema& field : schema.fields) names.emplace_back(field.name);
      status = RefuseText(member.at, StrCat(schema.name, " has no field '", member.name, "'",
                                            DidYouMean(member.name, names)));
    }
    std::string note = StrCat("ConfigProto: ", where, member.name, " has no effect");
    if (std::find(notes.begin(), notes.end(), note) == notes.end())
      notes.push_back(std::move(note));
    return true;
  });
  ONCILLA_TRY(status);
  Options options;
  Options::Fields(options, [&]<class T>(const Option& option, T&, const auto&...) {
    if constexpr (options_internal::IsStruct<T>) {
      for (TextMember& member : from.members) {
        if (member.name != option.name || !status.ok()) continue;
        status = KeepKnown<T>(member.value, *schema.Find(option.name)->message,
                              StrCat(where, option.name, "."), notes);
      }
    }
  });
  return status;
}

// The mixed precision that Grappler's options for GPUs (and for their emulation on CPUs) and
// oneDNN's option request. Which of them requests it makes no difference, since a session has one
// storage type for all devices.
Status ApplyRewrites(const RewriterConfig& from, SessionOptions& to,
                     std::vector<std::string>& notes) {
  const bool half = On(from.half) || On(from.half_on_cpu);
  const bool bfloat = On(from.bfloat_mkl) || On(from.bfloat_onednn);
  if (half && bfloat) {
    return InvalidArgument("rewrite_options ask for mixed precision both in float16 and, of ",
                           "oneDNN, in bfloat16; give one");
  }
  if (!half && !bfloat) return {};
  if (from.disable_meta_optimizer) {
    notes.push_back("ConfigProto: mixed precision has no effect, as disable_meta_optimizer is set");
  } else {
    to.precision.storage = half ? DType::kF16 : DType::kBF16;
  }
  return {};
}

Status ApplyGpuOptions(const GpuOptions& gpu, SessionOptions& to) {
  const auto& parts = gpu.experimental.virtual_devices;
  if (!parts.empty()) {
    if (gpu.fraction > 0) {
      return InvalidArgument("gpu_options has both per_process_gpu_memory_fraction and ",
                             "virtual_devices; give one");
    }
    to.logical_devices.clear();
  }
  for (size_t device = 0; device < parts.size(); ++device) {
    for (const double limit_mb : parts[device].memory_limit_mb) {
      to.logical_devices.push_back(
          {StrCat("GPU:", device), static_cast<int64_t>(limit_mb * 1024 * 1024)});
    }
  }
  if (gpu.fraction > 0) {
    DeviceMemoryOptions& options = to.device_memory["GPU"];
    options.limit_bytes = 0;
    options.limit_fraction = gpu.fraction;
    options.free_minus_bytes = -1;
  }
  if (gpu.allow_growth) {
    if (const auto given = to.device_memory.find("GPU"); given != to.device_memory.end()) {
      given->second.preallocate_bytes = 0;
      given->second.preallocate_fraction = 0;
    }
  }
  std::string_view list = gpu.visible_device_list;
  if (!list.empty()) to.visible_devices.clear();
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    to.visible_devices.emplace_back(entry);
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
  }
  return {};
}

}  // namespace

Result<TextTree> ReadConfigProto(std::string_view bytes) {
  TextTree tree;
  ONCILLA_TRY(ReadWire("the ConfigProto", [&] { tree = WireToTree(bytes, kConfigProtoSchema); }));
  return tree;
}

bool IsConfigProto(const TextTree& text) {
  const std::vector<std::string> ours = OptionNamesOf<SessionOptions>();
  return std::ranges::any_of(text.members, [&](const TextMember& member) {
    return std::ranges::find(ours, member.name) == ours.end() &&
           kConfigProtoSchema.Find(member.name) != nullptr;
  });
}

Status ApplyConfigProto(const TextTree& config, SessionOptions& to,
                        std::vector<std::string>& notes) {
  TextTree known = config;
  ConfigProto from;
  ONCILLA_TRY(KeepKnown<ConfigProto>(known, kConfigProtoSchema, "", notes));
  ONCILLA_TRY(ReadOptions(known, from));
  for (const auto& [type, count] : from.device_count) to.device_count[type] = count;
  if (from.intra_op_parallelism_threads > 0) to.threads = from.intra_op_parallelism_threads;
  if (from.operation_timeout_in_ms > 0) to.run_timeout_ms = from.operation_timeout_in_ms;
  // Here one pool does the work of TensorFlow's two: it divides ops among threads, and runs them.
  const auto& pools = from.session_inter_op_thread_pool;
  if (pools.size() == 1) {
    to.thread_pool = pools[0].global_name;
    if (from.intra_op_parallelism_threads == 0 && pools[0].num_threads > 0) {
      to.threads = pools[0].num_threads;
    }
  } else if (pools.size() > 1) {
    notes.push_back("ConfigProto: several of session_inter_op_thread_pool have no effect");
  }
  // A serialized form omits false, since it is the default.
  const auto says = [&](const TextMember& member) { return member.name == "allow_soft_placement"; };
  if (!from.allow_soft_placement && std::ranges::any_of(config.members, says)) {
    notes.push_back(
        "ConfigProto: allow_soft_placement: false has no effect; 'strict' refuses nodes that "
        "would run elsewhere, and loading with stored devices 'respect' what a model asks for");
  }
  to.log_device_placement |= from.log_device_placement;
  ONCILLA_TRY(ApplyGpuOptions(from.gpu_options, to));
  return ApplyRewrites(from.graph_options.rewrite_options, to, notes);
}

}  // namespace oncilla
