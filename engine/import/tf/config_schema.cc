// Field names and numbers of config.proto and rewriter_config.proto in tensorflow/core/protobuf.
#include "engine/import/tf/config_schema.h"

namespace oncilla {
namespace {

using enum FieldKind;

constexpr EnumName kToggle[] = {{"DEFAULT", 0}, {"ON", 1}, {"OFF", 2}, {"AGGRESSIVE", 3}};

// Messages without effect here need no members.
const MessageSchema kOther{"..", {}};

constexpr FieldSchema kCountFields[] = {{.name = "key", .number = 1, .kind = kBytes},
                                        {.name = "value", .number = 2, .kind = kInt}};
const MessageSchema kCount{"DeviceCountEntry", kCountFields};

constexpr FieldSchema kGPUOptionsExperimentalVirtualDevicesFields[] = {
    {.name = "memory_limit_mb", .number = 1, .kind = kFloat, .repeated = true},
    {.name = "priority", .number = 2, .kind = kInt, .repeated = true},
};
const MessageSchema kGPUOptionsExperimentalVirtualDevices{
    "GPUOptions.Experimental.VirtualDevices", kGPUOptionsExperimentalVirtualDevicesFields};

constexpr FieldSchema kGPUOptionsExperimentalFields[] = {
    {.name = "virtual_devices",
     .number = 1,
     .kind = kMessage,
     .repeated = true,
     .message = &kGPUOptionsExperimentalVirtualDevices},
};
const MessageSchema kGPUOptionsExperimental{"GPUOptions.Experimental",
                                            kGPUOptionsExperimentalFields};

constexpr FieldSchema kGPUOptionsFields[] = {
    {.name = "per_process_gpu_memory_fraction", .number = 1, .kind = kDouble},
    {.name = "allocator_type", .number = 2, .kind = kBytes},
    {.name = "deferred_deletion_bytes", .number = 3, .kind = kInt},
    {.name = "allow_growth", .number = 4, .kind = kBool},
    {.name = "visible_device_list", .number = 5, .kind = kBytes},
    {.name = "polling_active_delay_usecs", .number = 6, .kind = kInt},
    {.name = "polling_inactive_delay_msecs", .number = 7, .kind = kInt},
    {.name = "force_gpu_compatible", .number = 8, .kind = kBool},
    {.name = "experimental", .number = 9, .kind = kMessage, .message = &kGPUOptionsExperimental},
};
const MessageSchema kGPUOptions{"GPUOptions", kGPUOptionsFields};

constexpr FieldSchema kThreadPoolOptionProtoFields[] = {
    {.name = "num_threads", .number = 1, .kind = kInt},
    {.name = "global_name", .number = 2, .kind = kBytes},
};
const MessageSchema kThreadPoolOptionProto{"ThreadPoolOptionProto", kThreadPoolOptionProtoFields};

constexpr FieldSchema kRewriterConfigFields[] = {
    {.name = "layout_optimizer", .number = 1, .kind = kEnum, .names = kToggle},
    {.name = "disable_model_pruning", .number = 2, .kind = kBool},
    {.name = "constant_folding", .number = 3, .kind = kEnum, .names = kToggle},
    {.name = "memory_optimization", .number = 4, .kind = kInt},
    {.name = "auto_parallel", .number = 5, .kind = kMessage, .message = &kOther},
    {.name = "memory_optimizer_target_node_name_scope", .number = 6, .kind = kBytes},
    {.name = "arithmetic_optimization", .number = 7, .kind = kEnum, .names = kToggle},
    {.name = "dependency_optimization", .number = 8, .kind = kEnum, .names = kToggle},
    {.name = "loop_optimization", .number = 9, .kind = kEnum, .names = kToggle},
    {.name = "function_optimization", .number = 10, .kind = kEnum, .names = kToggle},
    {.name = "debug_stripper", .number = 11, .kind = kEnum, .names = kToggle},
    {.name = "meta_optimizer_iterations", .number = 12, .kind = kInt},
    {.name = "shape_optimization", .number = 13, .kind = kEnum, .names = kToggle},
    {.name = "remapping", .number = 14, .kind = kEnum, .names = kToggle},
    {.name = "scoped_allocator_optimization", .number = 15, .kind = kEnum, .names = kToggle},
    {.name = "scoped_allocator_opts", .number = 16, .kind = kMessage, .message = &kOther},
    {.name = "min_graph_nodes", .number = 17, .kind = kInt},
    {.name = "pin_to_host_optimization", .number = 18, .kind = kEnum, .names = kToggle},
    {.name = "disable_meta_optimizer", .number = 19, .kind = kBool},
    {.name = "meta_optimizer_timeout_ms", .number = 20, .kind = kInt},
    {.name = "fail_on_optimizer_errors", .number = 21, .kind = kBool},
    {.name = "implementation_selector", .number = 22, .kind = kEnum, .names = kToggle},
    {.name = "auto_mixed_precision", .number = 23, .kind = kEnum, .names = kToggle},
    {.name = "common_subgraph_elimination", .number = 24, .kind = kEnum, .names = kToggle},
    {.name = "auto_mixed_precision_mkl", .number = 25, .kind = kEnum, .names = kToggle},
    {.name = "use_plugin_optimizers", .number = 28, .kind = kEnum, .names = kToggle},
    {.name = "auto_mixed_precision_cpu", .number = 29, .kind = kEnum, .names = kToggle},
    {.name = "auto_mixed_precision_onednn_bfloat16", .number = 31, .kind = kEnum, .names = kToggle},
};
const MessageSchema kRewriterConfig{"RewriterConfig", kRewriterConfigFields};

constexpr FieldSchema kGraphOptionsFields[] = {
    {.name = "enable_recv_scheduling", .number = 2, .kind = kBool},
    {.name = "optimizer_options", .number = 3, .kind = kMessage, .message = &kOther},
    {.name = "build_cost_model", .number = 4, .kind = kInt},
    {.name = "infer_shapes", .number = 5, .kind = kBool},
    {.name = "place_pruned_graph", .number = 6, .kind = kBool},
    {.name = "enable_bfloat16_sendrecv", .number = 7, .kind = kBool},
    {.name = "timeline_step", .number = 8, .kind = kInt},
    {.name = "build_cost_model_after", .number = 9, .kind = kInt},
    {.name = "rewrite_options", .number = 10, .kind = kMessage, .message = &kRewriterConfig},
};
const MessageSchema kGraphOptions{"GraphOptions", kGraphOptionsFields};

constexpr FieldSchema kConfigProtoFields[] = {
    {.name = "device_count", .number = 1, .kind = kMessage, .repeated = true, .message = &kCount},
    {.name = "intra_op_parallelism_threads", .number = 2, .kind = kInt},
    {.name = "placement_period", .number = 3, .kind = kInt},
    {.name = "device_filters", .number = 4, .kind = kBytes, .repeated = true},
    {.name = "inter_op_parallelism_threads", .number = 5, .kind = kInt},
    {.name = "gpu_options", .number = 6, .kind = kMessage, .message = &kGPUOptions},
    {.name = "allow_soft_placement", .number = 7, .kind = kBool},
    {.name = "log_device_placement", .number = 8, .kind = kBool},
    {.name = "use_per_session_threads", .number = 9, .kind = kBool},
    {.name = "graph_options", .number = 10, .kind = kMessage, .message = &kGraphOptions},
    {.name = "operation_timeout_in_ms", .number = 11, .kind = kInt},
    {.name = "session_inter_op_thread_pool",
     .number = 12,
     .kind = kMessage,
     .repeated = true,
     .message = &kThreadPoolOptionProto},
    {.name = "rpc_options", .number = 13, .kind = kMessage, .message = &kOther},
    {.name = "cluster_def", .number = 14, .kind = kMessage, .message = &kOther},
    {.name = "isolate_session_state", .number = 15, .kind = kBool},
    {.name = "experimental", .number = 16, .kind = kMessage, .message = &kOther},
};

}  // namespace

const MessageSchema kConfigProtoSchema{"ConfigProto", kConfigProtoFields};

}  // namespace oncilla
