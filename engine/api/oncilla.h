/* Oncilla's C interface: load a model, run it, on a GPU through OpenCL or on the CPU.
 *
 * Every call that can fail returns an oncilla_status*: null is success, anything else describes the
 * failure and must be given to oncilla_status_free. Handles are opaque; each *_free takes null.
 * Text is UTF-8; what a handle returns as `const char*` belongs to it and lives as long.
 *
 * Structs begin with their size, which the caller sets (ONCILLA_INIT). A shorter one is read with
 * defaults for what it lacks; a longer one is refused unless its tail is zero. So a program built
 * against an older or newer header keeps its meaning.
 *
 * Lifetimes: a session keeps its runtime, a model its session, a result its tensors: handles may be
 * freed in any order. Arrays and names that are passed in need to live only during the call, except
 * for tensor memory given to oncilla_tensor_wrap.
 *
 * Threads: a runtime, a session and a model may be used from several threads at once; runs of one
 * model overlap. A tensor may be read from several threads. Statuses, results and anything being
 * freed belong to one thread at a time.
 */
#ifndef ONCILLA_H_
#define ONCILLA_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define ONCILLA_API __declspec(dllexport)
#else
#define ONCILLA_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; oncilla_version() is the library's. */
#define ONCILLA_VERSION_MAJOR 0
#define ONCILLA_VERSION_MINOR 1
#define ONCILLA_VERSION_PATCH 0

#ifdef __cplusplus
#define ONCILLA_INIT(type) \
  { sizeof(type) }
#else
#define ONCILLA_INIT(type) \
  { .size = sizeof(type) }
#endif

typedef struct oncilla_status oncilla_status;
typedef struct oncilla_runtime oncilla_runtime;
typedef struct oncilla_session oncilla_session;
typedef struct oncilla_model oncilla_model;
typedef struct oncilla_tensor oncilla_tensor;
typedef struct oncilla_result oncilla_result;
typedef struct oncilla_cancellation oncilla_cancellation;
typedef struct oncilla_run oncilla_run;
typedef struct oncilla_callable oncilla_callable;

/* ---- Failures ------------------------------------------------------------------------------ */

/* The canonical codes, numbered as everywhere. */
typedef enum oncilla_code {
  ONCILLA_OK = 0,
  ONCILLA_CANCELLED = 1,
  ONCILLA_UNKNOWN = 2,
  ONCILLA_INVALID_ARGUMENT = 3,
  ONCILLA_DEADLINE_EXCEEDED = 4,
  ONCILLA_NOT_FOUND = 5,
  ONCILLA_ALREADY_EXISTS = 6,
  ONCILLA_PERMISSION_DENIED = 7,
  ONCILLA_RESOURCE_EXHAUSTED = 8, /* memory */
  ONCILLA_FAILED_PRECONDITION = 9,
  ONCILLA_ABORTED = 10,
  ONCILLA_OUT_OF_RANGE = 11,
  ONCILLA_UNIMPLEMENTED = 12, /* a model that needs what is not supported */
  ONCILLA_INTERNAL = 13,
  ONCILLA_UNAVAILABLE = 14, /* a device that is lost */
  ONCILLA_DATA_LOSS = 15    /* a damaged file */
} oncilla_code;

/* Of a null status: ONCILLA_OK, "", and no details. */
ONCILLA_API oncilla_code oncilla_status_code(const oncilla_status* status);
ONCILLA_API const char* oncilla_status_message(const oncilla_status* status);
/* "options", "file", "load", "compile", "run", "device", or "unknown"; "" of a null status. */
ONCILLA_API const char* oncilla_status_stage(const oncilla_status* status);
/* The node of the model and the device that the failure is about; "" when there is none. */
ONCILLA_API const char* oncilla_status_node(const oncilla_status* status);
ONCILLA_API const char* oncilla_status_device(const oncilla_status* status);
/* 1 and the driver's own error number (OpenCL's), or 0. */
ONCILLA_API int oncilla_status_driver_code(const oncilla_status* status, int32_t* code);
ONCILLA_API void oncilla_status_free(oncilla_status* status);

/* "0.1.0", and one line about how the library was built. */
ONCILLA_API const char* oncilla_version(void);
ONCILLA_API const char* oncilla_build_info(void);

/* ---- Runtime: what this machine has -------------------------------------------------------- */

typedef enum oncilla_log_level {
  ONCILLA_LOG_DEBUG = 0,
  ONCILLA_LOG_INFO = 1,
  ONCILLA_LOG_WARNING = 2,
  ONCILLA_LOG_ERROR = 3
} oncilla_log_level;

/* Called from any thread of the library, one call at a time; must not call the library. */
typedef void (*oncilla_log_fn)(void* user, oncilla_log_level level, const char* message);

/* Host memory for weights and intermediates of the CPU. `allocate` returns memory aligned to
 * `alignment`, or null for none; called from any thread. */
typedef void* (*oncilla_allocate_fn)(void* user, size_t bytes, size_t alignment);
typedef void (*oncilla_release_fn)(void* user, void* memory, size_t bytes);

typedef struct oncilla_runtime_options {
  size_t size;
  int opencl_cpu_devices; /* OpenCL devices of type CPU serve as GPU:n too */
  int threads;            /* shared by sessions; 0: the processors of this process */
  const char* cache_dir;  /* compiled OpenCL programs; null: the user's cache folder */
  oncilla_log_fn log;     /* null: warnings and errors go to standard error */
  void* log_user;
  oncilla_log_level log_level;  /* the least that is logged; 0 with no hook means warnings */
  oncilla_allocate_fn allocate; /* both or neither */
  oncilla_release_fn release;
  void* memory_user;
} oncilla_runtime_options;

/* Finds devices and opens none. `options` may be null. */
ONCILLA_API oncilla_status* oncilla_runtime_create(const oncilla_runtime_options* options,
                                                   oncilla_runtime** runtime);
ONCILLA_API void oncilla_runtime_free(oncilla_runtime* runtime);

typedef struct oncilla_device_info {
  size_t size;
  const char* name; /* "/job:localhost/replica:0/task:0/device:GPU:0"; "" when not usable */
  const char* note; /* why it is not usable, or "" */
  const char* driver_name;
  const char* vendor;
  const char* driver_version;
  const char* backend; /* "cpu", "opencl" */
  int64_t memory_bytes;
  int64_t max_allocation_bytes;
  int compute_units;
  const char* id; /* stable from run to run: PCI or UUID where the driver tells */
} oncilla_device_info;

ONCILLA_API size_t oncilla_runtime_device_count(const oncilla_runtime* runtime);
/* 1 when there is a usable device of that name: in full, in any of TensorFlow's short forms
 * ("/device:GPU:0", "/GPU:0", "gpu:0"), or a type alone ("GPU"); else 0. */
ONCILLA_API int oncilla_runtime_has_device(const oncilla_runtime* runtime, const char* name);
/* Fills as much of `info` as its size has room for. Text lives as long as the runtime. */
ONCILLA_API oncilla_status* oncilla_runtime_device(const oncilla_runtime* runtime, size_t index,
                                                   oncilla_device_info* info);

/* ---- Session: devices in use, memory, limits ------------------------------------------------ */

typedef struct oncilla_session_options {
  size_t size;
  const char* device; /* "auto" (null), "cpu", "cpu:plain", "gpu", "gpu:1" or a device name */
  int strict;         /* refuse instead of running a node on another device */
  int threads;        /* > 0: threads of the session's own */
  int64_t memory_limit_bytes; /* per device; 0: nearly all of it */
  int max_concurrent_runs;    /* per model and shape; 0: 4 */
  /* A configuration as text, as JSON or as a serialized ConfigProto of TensorFlow (docs/config.md);
   * what is set above wins over it. May be null. */
  const void* config;
  size_t config_size;
} oncilla_session_options;

ONCILLA_API oncilla_status* oncilla_session_create(oncilla_runtime* runtime,
                                                   const oncilla_session_options* options,
                                                   oncilla_session** session);
/* Everything that was set, as JSON that `config` takes. Belongs to the session. */
ONCILLA_API const char* oncilla_session_config(oncilla_session* session);
/* Waits for runs under way, gives all memory back and says how much it was (`released_bytes` may be
 * null). The session's models refuse to run afterwards. oncilla_session_free closes too. */
ONCILLA_API oncilla_status* oncilla_session_close(oncilla_session* session,
                                                  int64_t* released_bytes);
ONCILLA_API void oncilla_session_free(oncilla_session* session);

/* Gives back what no run holds at the moment (the next run takes it again) and says how much it
 * was; weights stay. `released_bytes` may be null. */
ONCILLA_API oncilla_status* oncilla_session_trim(oncilla_session* session, int64_t* released_bytes);
/* From now on the most bytes taken on a device in use, by its full name or a short one ("gpu:0").
 * What is taken above it stays until it is let go. A limit above what the device has is refused. */
ONCILLA_API oncilla_status* oncilla_session_set_memory_limit(oncilla_session* session,
                                                             const char* device, int64_t bytes);

/* The devices that the session sees, numbered as its options say: the CPU first, then GPUs. */
typedef struct oncilla_session_device {
  size_t size;
  const char* name;        /* full */
  const char* driver_name; /* of the physical device */
  int in_use;              /* 1: opened; the fields below are 0 otherwise */
  int preferred;           /* 1: where nodes run unless they ask for another */
  int64_t limit_bytes;
  int64_t pool_bytes; /* taken from the driver */
} oncilla_session_device;

ONCILLA_API size_t oncilla_session_device_count(const oncilla_session* session);
/* Fills as much of `info` as its size has room for. Text lives as long as the session. */
ONCILLA_API oncilla_status* oncilla_session_device_info(const oncilla_session* session,
                                                        size_t index, oncilla_session_device* info);

typedef struct oncilla_memory_info {
  size_t size;
  int64_t in_use_bytes; /* what the engine's owners hold */
  int64_t pool_bytes;   /* taken from the driver */
  int64_t peak_bytes;   /* the most ever taken, or since oncilla_session_reset_peaks */
  int64_t limit_bytes;
  int64_t largest_free_bytes; /* of what is taken and not handed out, the largest piece */
  double fragmentation;       /* the share of it that lies elsewhere, 0 to 1 */
  int64_t reserve_bytes;      /* kept whatever is trimmed */
  int64_t total_bytes;        /* taken by all sessions of the runtime on the physical device */
  int64_t total_limit_bytes;
  int64_t abandoned_bytes; /* of the session: given up with work that hangs, on all devices */
} oncilla_memory_info;

/* Of a device in use, by its full name or a short one ("gpu:0"). */
ONCILLA_API oncilla_status* oncilla_session_memory(oncilla_session* session, const char* device,
                                                   oncilla_memory_info* info);

/* ---- Tensors -------------------------------------------------------------------------------- */

typedef enum oncilla_dtype {
  ONCILLA_FLOAT32 = 1,
  ONCILLA_FLOAT64 = 2,
  ONCILLA_FLOAT16 = 3,
  ONCILLA_BFLOAT16 = 4,
  ONCILLA_INT8 = 5,
  ONCILLA_INT16 = 6,
  ONCILLA_INT32 = 7,
  ONCILLA_INT64 = 8,
  ONCILLA_UINT8 = 9,
  ONCILLA_UINT16 = 10,
  ONCILLA_UINT32 = 11,
  ONCILLA_UINT64 = 12,
  ONCILLA_BOOL = 13, /* one byte, 0 or 1 */
  ONCILLA_STRING = 14
} oncilla_dtype;

/* Dense, row-major, in host memory. Copies `bytes` bytes, which must be the tensor's size. */
ONCILLA_API oncilla_status* oncilla_tensor_create(oncilla_dtype dtype, const int64_t* dims,
                                                  size_t rank, const void* data, size_t bytes,
                                                  oncilla_tensor** tensor);
/* Uses the caller's memory, which must stay unchanged until `release` (may be null) is called, from
 * whatever thread lets go of it last. On failure `release` is not called. */
ONCILLA_API oncilla_status* oncilla_tensor_wrap(oncilla_dtype dtype, const int64_t* dims,
                                                size_t rank, const void* data, size_t bytes,
                                                void (*release)(void* user), void* user,
                                                oncilla_tensor** tensor);
/* Strings are copied; `lengths` may be null for strings that end with a zero byte. */
ONCILLA_API oncilla_status* oncilla_tensor_create_strings(const int64_t* dims, size_t rank,
                                                          const char* const* strings,
                                                          const size_t* lengths,
                                                          oncilla_tensor** tensor);
ONCILLA_API oncilla_dtype oncilla_tensor_dtype(const oncilla_tensor* tensor);
ONCILLA_API size_t oncilla_tensor_rank(const oncilla_tensor* tensor);
ONCILLA_API const int64_t* oncilla_tensor_dims(const oncilla_tensor* tensor);
ONCILLA_API size_t oncilla_tensor_elements(const oncilla_tensor* tensor);
/* Null and 0 for strings; null for a tensor on a device. */
ONCILLA_API const void* oncilla_tensor_data(const oncilla_tensor* tensor);
ONCILLA_API size_t oncilla_tensor_bytes(const oncilla_tensor* tensor);
/* String `index`; null outside, or when the tensor holds no strings. `length` may be null. */
ONCILLA_API const char* oncilla_tensor_string(const oncilla_tensor* tensor, size_t index,
                                              size_t* length);
ONCILLA_API void oncilla_tensor_free(oncilla_tensor* tensor);

/* ---- Models --------------------------------------------------------------------------------- */

/* `fraction` in [0, 1], or negative when unknown; `what` is "load" or "compile". Called from the
 * thread that made the call it is about. */
typedef void (*oncilla_progress_fn)(void* user, const char* what, double fraction);

/* What to do with the devices that a TensorFlow model's nodes say they were made for. */
enum {
  /* Followed softly for graphs that are built in code, where scopes were written on purpose;
   * ignored for files. */
  ONCILLA_STORED_DEVICES_DEFAULT = 0,
  /* Followed where there is such a device and it can run the node. */
  ONCILLA_STORED_DEVICES_SOFT = 1,
  /* Followed, or the run is refused with the devices there are. */
  ONCILLA_STORED_DEVICES_RESPECT = 2,
  /* Only reported. */
  ONCILLA_STORED_DEVICES_IGNORE = 3
};

/* When a model's graphs are made. */
enum {
  /* By the first run that needs them. */
  ONCILLA_LOAD_LAZY = 0,
  /* The default signature's while loading, so that failures show there; where all sizes of its
   * inputs are known its kernels and memory plan too. */
  ONCILLA_LOAD_EAGER = 1
};

typedef struct oncilla_load_options {
  size_t size;
  const char* tags; /* SavedModel: comma-separated; null: "serve", else the only set there is */
  oncilla_progress_fn progress;
  void* progress_user;
  int stored_devices; /* ONCILLA_STORED_DEVICES_.. */
  int load_policy;    /* ONCILLA_LOAD_.. */
} oncilla_load_options;

/* A SavedModel folder, a frozen GraphDef or an ONNX file, told apart by content. */
ONCILLA_API oncilla_status* oncilla_model_load(oncilla_session* session, const char* path,
                                               const oncilla_load_options* options,
                                               oncilla_model** model);
/* The same from the bytes of a model in one file: ONNX, a GraphDef, or Oncilla's own. `name` stands
 * for the file in messages (null: "bytes"). With a null `release` the bytes are copied; else they
 * must stay unchanged until `release` is called, from whatever thread lets go of them last. On
 * failure it is not called. External files of an ONNX model are refused. */
ONCILLA_API oncilla_status* oncilla_model_load_bytes(oncilla_session* session, const void* bytes,
                                                     size_t size, const char* name,
                                                     void (*release)(void* user), void* user,
                                                     const oncilla_load_options* options,
                                                     oncilla_model** model);
/* Gives the model's memory back and says how much it was (`released_bytes` may be null). */
ONCILLA_API oncilla_status* oncilla_model_unload(oncilla_model* model, int64_t* released_bytes);
ONCILLA_API void oncilla_model_free(oncilla_model* model);

typedef struct oncilla_tensor_info {
  size_t size;
  const char* name;
  oncilla_dtype dtype;
  int ranked; /* 0: the rank is not known */
  size_t rank;
  const int64_t* dims; /* -1: not known */
} oncilla_tensor_info;

/* Signatures by position; formats without them have one with an empty key. */
ONCILLA_API size_t oncilla_model_signature_count(const oncilla_model* model);
ONCILLA_API const char* oncilla_model_signature_key(const oncilla_model* model, size_t signature);
ONCILLA_API size_t oncilla_model_input_count(const oncilla_model* model, size_t signature);
ONCILLA_API size_t oncilla_model_output_count(const oncilla_model* model, size_t signature);
ONCILLA_API oncilla_status* oncilla_model_input(const oncilla_model* model, size_t signature,
                                                size_t index, oncilla_tensor_info* info);
ONCILLA_API oncilla_status* oncilla_model_output(const oncilla_model* model, size_t signature,
                                                 size_t index, oncilla_tensor_info* info);

typedef struct oncilla_run_options {
  size_t size;
  const char* signature;      /* null: serving_default, else the only one */
  int64_t timeout_ms;         /* 0: none */
  const char* const* outputs; /* names; null: all outputs of the signature, none with targets */
  size_t output_count;
  const char* const* targets; /* nodes of a TensorFlow graph to run for what they do; may be null */
  size_t target_count;
  const oncilla_cancellation* cancellation; /* may be null */
  const char* const* keep; /* outputs that stay on the device that computes them; may be null */
  size_t keep_count;
  int keep_all;       /* all of them */
  const char* device; /* where to run this time, but for nodes that are placed; null: the session's
                         device. Graphs and weights are kept on each device that was used. */
  int trace_level;    /* ONCILLA_TRACE_..: what oncilla_result_trace tells */
} oncilla_run_options;

/* Variables of TensorFlow models, trained weights too, by position, in the order of their graph.
 * Names are the nodes' in the graph. 0 also where the graph cannot be read: the other function then
 * says why. */
ONCILLA_API size_t oncilla_model_variable_count(const oncilla_model* model);
ONCILLA_API oncilla_status* oncilla_model_variable(const oncilla_model* model, size_t index,
                                                   oncilla_tensor_info* info);
/* Variables that some graph changes are kept between runs; runs that change them take turns.
 * Reading gives a copy of the value that was last assigned, else of what the model's files hold;
 * FailedPrecondition before anything has given one. Assigning checks type and shape, and holds for
 * the runs that begin later; the first time, a variable that no graph changes costs the graphs that
 * read it another compilation. */
ONCILLA_API oncilla_status* oncilla_model_read_variable(oncilla_model* model, const char* name,
                                                        oncilla_tensor** tensor);
ONCILLA_API oncilla_status* oncilla_model_assign_variable(oncilla_model* model, const char* name,
                                                          const oncilla_tensor* tensor);

/* Blocks until the results are there. `options` may be null. */
ONCILLA_API oncilla_status* oncilla_model_run(oncilla_model* model, const char* const* input_names,
                                              const oncilla_tensor* const* inputs,
                                              size_t input_count,
                                              const oncilla_run_options* options,
                                              oncilla_result** result);

/* Does what the first such run would do beside computing: compiles the graph, makes the memory plan
 * and the kernels for inputs of these shapes, and packs the weights. Only the shapes and types of
 * the inputs matter, but for those that shapes depend on. Without inputs the graph alone is
 * compiled. Of the options, those that bear on results' arrival (time limit, cancellation, keep)
 * are ignored. */
ONCILLA_API oncilla_status* oncilla_model_prepare(oncilla_model* model,
                                                  const char* const* input_names,
                                                  const oncilla_tensor* const* inputs,
                                                  size_t input_count,
                                                  const oncilla_run_options* options);

ONCILLA_API size_t oncilla_result_count(const oncilla_result* result);
ONCILLA_API const char* oncilla_result_name(const oncilla_result* result, size_t index);
/* Belongs to the result. */
ONCILLA_API const oncilla_tensor* oncilla_result_tensor(const oncilla_result* result, size_t index);
/* By name; null when there is none. */
ONCILLA_API const oncilla_tensor* oncilla_result_find(const oncilla_result* result,
                                                      const char* name);
/* Copies an output of numbers, also one on a device, into the caller's memory, whose size must be
 * exactly the tensor's. */
ONCILLA_API oncilla_status* oncilla_result_copy(const oncilla_result* result, const char* name,
                                                void* memory, size_t bytes);
/* One line: what ran where, why, and what it cost in copies. */
ONCILLA_API const char* oncilla_result_report(const oncilla_result* result);
ONCILLA_API void oncilla_result_free(oncilla_result* result);

/* ---- Traces: what a run did when ------------------------------------------------------------- */

/* As tensorflow.RunOptions has them. */
enum {
  ONCILLA_TRACE_NONE = 0,
  ONCILLA_TRACE_SOFTWARE = 1, /* what the host did, and how memory went */
  ONCILLA_TRACE_HARDWARE = 2, /* steps and copies, by the devices' own clocks */
  ONCILLA_TRACE_FULL = 3      /* both */
};
typedef enum oncilla_trace_format {
  ONCILLA_TRACE_CHROME = 0,    /* JSON for Perfetto and chrome://tracing */
  ONCILLA_TRACE_STEP_STATS = 1 /* a serialized tensorflow.RunMetadata */
} oncilla_trace_format;
/* Of a run with a trace level; ONCILLA_FAILED_PRECONDITION without. Fills as much of `bytes` as
 * `size` has room for; `needed` gets the size of the whole. There is no zero byte behind it. */
ONCILLA_API oncilla_status* oncilla_result_trace(const oncilla_result* result,
                                                 oncilla_trace_format format, char* bytes,
                                                 size_t size, size_t* needed);
/* The same into a file. */
ONCILLA_API oncilla_status* oncilla_result_save_trace(const oncilla_result* result,
                                                      oncilla_trace_format format,
                                                      const char* path);

/* ---- Runs that end early, on the session's threads; tensors on devices; callables ----------- */

/* A wish that runs end: given to any number of runs, uttered once from any thread. A run that is
 * cancelled ends as ONCILLA_CANCELLED within milliseconds, whatever its device does; the caller's
 * memory is not touched afterwards. May be freed while runs have it. */
ONCILLA_API oncilla_status* oncilla_cancellation_create(oncilla_cancellation** cancellation);
ONCILLA_API void oncilla_cancellation_cancel(oncilla_cancellation* cancellation);
ONCILLA_API void oncilla_cancellation_free(oncilla_cancellation* cancellation);

/* Called on a thread of the session's when the run is over; oncilla_run_wait then returns at once.
 * It may unload and free, but must not wait for other runs. */
typedef void (*oncilla_done_fn)(void* user);

/* As oncilla_model_run, on a thread of the session's. Inputs are copied or, where wrapped, held
 * until the run is over. The time limit begins now. ONCILLA_RESOURCE_EXHAUSTED when too many runs
 * wait in line. `done` may be null. */
ONCILLA_API oncilla_status* oncilla_model_run_async(
    oncilla_model* model, const char* const* input_names, const oncilla_tensor* const* inputs,
    size_t input_count, const oncilla_run_options* options, oncilla_done_fn done, void* user,
    oncilla_run** run);
/* 1 when it is over. */
ONCILLA_API int oncilla_run_done(const oncilla_run* run);
/* Waits for the outcome, at most so long; negative: as long as it takes. ONCILLA_DEADLINE_EXCEEDED
 * with a null `*result` means that it is not over yet (or, as the run's own failure, that its time
 * limit has passed: oncilla_run_done tells). The result is given once, to the first who asks. */
ONCILLA_API oncilla_status* oncilla_run_wait(oncilla_run* run, int64_t timeout_ms,
                                             oncilla_result** result);
ONCILLA_API void oncilla_run_cancel(oncilla_run* run);
/* The run goes on. */
ONCILLA_API void oncilla_run_free(oncilla_run* run);

/* As oncilla_session_close; runs under way are cancelled at once (`cancel`), or when they take
 * longer than `timeout_ms` (0: they may take as long as they like). */
ONCILLA_API oncilla_status* oncilla_session_close_within(oncilla_session* session, int cancel,
                                                         int64_t timeout_ms,
                                                         int64_t* released_bytes);

/* The full name of the device that the tensor is on; "" for host memory. A tensor on a device may
 * be fed to runs of its session's models, where it is used without a copy if the device is the
 * same. It holds memory of the device until it is freed, or its session closed; after that all that
 * is asked of it is ONCILLA_FAILED_PRECONDITION. Runs make such tensors where `keep` says so. */
ONCILLA_API const char* oncilla_tensor_device(const oncilla_tensor* tensor);
/* A copy in host memory. */
ONCILLA_API oncilla_status* oncilla_tensor_read(const oncilla_tensor* tensor,
                                                oncilla_tensor** host);
/* Copies a tensor to a device in use, by its full name or a short one (null: the session's device).
 */
ONCILLA_API oncilla_status* oncilla_session_upload(oncilla_session* session, const char* device,
                                                   const oncilla_tensor* tensor,
                                                   oncilla_tensor** on_device);

typedef struct oncilla_callable_options {
  size_t size;
  const char* signature;     /* null: as oncilla_run_options */
  const char* const* inputs; /* names, in the order of the calls' inputs */
  size_t input_count;
  const char* const* outputs; /* in the order of the results; null: as oncilla_run_options */
  size_t output_count;
  const char* const* targets;
  size_t target_count;
  const char* const* keep;
  size_t keep_count;
  int keep_all;
} oncilla_callable_options;

typedef struct oncilla_call_options {
  size_t size;
  int64_t timeout_ms; /* 0: none */
  const oncilla_cancellation* cancellation;
} oncilla_call_options;

/* A run whose names are settled once: calls give inputs by position, on the host or on devices.
 * Calls of one callable may overlap. */
ONCILLA_API oncilla_status* oncilla_model_make_callable(oncilla_model* model,
                                                        const oncilla_callable_options* options,
                                                        oncilla_callable** callable);
/* `options` may be null. The result has no report. */
ONCILLA_API oncilla_status* oncilla_callable_run(oncilla_callable* callable,
                                                 const oncilla_tensor* const* inputs,
                                                 size_t input_count,
                                                 const oncilla_call_options* options,
                                                 oncilla_result** result);
ONCILLA_API void oncilla_callable_free(oncilla_callable* callable);

/* Makes the next inputs of a callable, in its order: 1 when all are set, 0 when there are no more,
 * anything else for a failure. They stay the source's, which may free or reuse them when it is
 * called again or the prefetcher is freed. Called on a thread of the prefetcher's. */
typedef struct oncilla_prefetcher oncilla_prefetcher;
typedef int (*oncilla_source_fn)(void* user, const oncilla_tensor** inputs, size_t input_count);
/* Inputs are made, and put on the device, while the device computes: up to `depth` sets ahead (0:
 * 2), fewer where the memory limit leaves no room. */
ONCILLA_API oncilla_status* oncilla_prefetcher_create(oncilla_callable* callable,
                                                      oncilla_source_fn source, void* user,
                                                      int depth, oncilla_prefetcher** prefetcher);
/* Runs the callable on the next inputs; `*result` is null at the end. A failure of the source is
 * ONCILLA_ABORTED and ends the stream; one of a run does not. `options` may be null. */
ONCILLA_API oncilla_status* oncilla_prefetcher_next(oncilla_prefetcher* prefetcher,
                                                    const oncilla_call_options* options,
                                                    oncilla_result** result);
/* Waits for a call of the source that is under way. */
ONCILLA_API void oncilla_prefetcher_free(oncilla_prefetcher* prefetcher);

/* ---- Placement: which node runs where -------------------------------------------------------- */

/* From the next run on, nodes whose name matches `nodes` ('*' any text, '?' one character; null:
 * all) and whose type is `op` (of the model's format or canonical; null: any) run on `device`,
 * where it has a kernel for them; a weight's name stands for the nodes that read it. What was asked
 * for last wins; an empty device takes back. Weights move with their nodes. In a strict session a
 * device that is not there is NotFound, and a node that cannot run there fails the next run. */
ONCILLA_API oncilla_status* oncilla_model_place(oncilla_model* model, const char* nodes,
                                                const char* op, const char* device);
/* The device for a node, or null for no opinion. Called from any thread, for each node of a graph
 * that is compiled, as long as the model lives; the text must stay until the next call on that
 * thread. `stored` is the device that the model stores for it, or "". */
typedef const char* (*oncilla_place_fn)(void* user, const char* node, const char* op,
                                        const char* stored);
ONCILLA_API oncilla_status* oncilla_model_place_by(oncilla_model* model, oncilla_place_fn rule,
                                                   void* user);
ONCILLA_API oncilla_status* oncilla_model_clear_placement(oncilla_model* model);
/* Where each node of a signature runs (null: the default one) when the run is on `device` (null:
 * the session's) and why: a line each, with a zero byte behind the last. Fills as much of `text` as
 * `size` has room for; `needed` (may be null) gets the size of the whole. */
ONCILLA_API oncilla_status* oncilla_model_placement(oncilla_model* model, const char* signature,
                                                    const char* device, char* text, size_t size,
                                                    size_t* needed);

/* ---- Memory, further ------------------------------------------------------------------------ */

/* Moves weights together between runs, makes graphs anew where that needs it, and gives back what
 * is left over; ONCILLA_FAILED_PRECONDITION while runs are under way. `released_bytes` may be null,
 * here and below. */
ONCILLA_API oncilla_status* oncilla_session_defragment(oncilla_session* session,
                                                       int64_t* released_bytes);
/* Unloads all models, waiting for their runs; the session goes on, with its devices open. */
ONCILLA_API oncilla_status* oncilla_session_reset(oncilla_session* session,
                                                  int64_t* released_bytes);
/* Peaks become what is taken now. */
ONCILLA_API oncilla_status* oncilla_session_reset_peaks(oncilla_session* session);
/* From now on the last so many changes of memory are kept for the report; 0: none. */
ONCILLA_API oncilla_status* oncilla_session_record_memory(oncilla_session* session, size_t changes);
/* Limits, owners, weights, variables, plans with the node at which their peak falls, changes over
 * time, and the pool as it was when memory last ran out: text, or JSON where `json` is not 0. Fills
 * as much of `text` as `size` has room for, with a zero byte behind it; `needed` (may be null) gets
 * the size of the whole, which may have changed by the next call. */
ONCILLA_API oncilla_status* oncilla_session_memory_report(oncilla_session* session, int json,
                                                          char* text, size_t size, size_t* needed);
/* Closes all sessions of the runtime, waiting for their runs. `text` gets a line for each session
 * and model that the program still holds, as above; free those as ever. */
ONCILLA_API oncilla_status* oncilla_runtime_close_sessions(oncilla_runtime* runtime,
                                                           int64_t* released_bytes, char* text,
                                                           size_t size, size_t* needed);

#ifdef __cplusplus
}
#endif

#include <oncilla/oncilla_graph.h>

#endif /* ONCILLA_H_ */
