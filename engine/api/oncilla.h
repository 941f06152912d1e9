/* Oncilla's C interface: load a model, and run it on a GPU through OpenCL or on the CPU.
 *
 * Every call that can fail returns an oncilla_status*: null means success, anything else describes
 * the failure and must be freed with oncilla_status_free. Handles are opaque; every *_free accepts
 * null. Text is UTF-8. A `const char*` that a handle returns belongs to the handle and stays valid
 * as long as it does.
 *
 * Structs begin with their size, which the caller sets (ONCILLA_INIT). Members that a shorter
 * struct lacks have their defaults; a longer one is refused unless its tail is zero. So a program
 * built against an older or newer header keeps its meaning.
 *
 * Lifetimes: a session keeps its runtime alive, a model its session, a result its tensors, so
 * handles may be freed in any order. Arrays and names that are passed in need to live only during
 * the call, except for memory given to oncilla_tensor_wrap.
 *
 * Threads: a runtime, a session and a model may be used from several threads at once; runs of one
 * model may overlap. A tensor may be read from several threads. A status, a result, and anything
 * being freed belongs to one thread at a time. */
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

/* The version of this header; oncilla_version() returns that of the library. */
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

/* The canonical status codes, with the numbers that gRPC and Abseil use. */
typedef enum oncilla_code {
  ONCILLA_OK = 0,
  ONCILLA_CANCELLED = 1,
  ONCILLA_UNKNOWN = 2,
  ONCILLA_INVALID_ARGUMENT = 3,
  ONCILLA_DEADLINE_EXCEEDED = 4,
  ONCILLA_NOT_FOUND = 5,
  ONCILLA_ALREADY_EXISTS = 6,
  ONCILLA_PERMISSION_DENIED = 7,
  ONCILLA_RESOURCE_EXHAUSTED = 8, /* out of memory, or too many runs wait */
  ONCILLA_FAILED_PRECONDITION = 9,
  ONCILLA_ABORTED = 10,
  ONCILLA_OUT_OF_RANGE = 11,
  ONCILLA_UNIMPLEMENTED = 12, /* the model needs something that is not supported */
  ONCILLA_INTERNAL = 13,
  ONCILLA_UNAVAILABLE = 14, /* the device was lost, or a file cannot be read now */
  ONCILLA_DATA_LOSS = 15    /* a file is damaged */
} oncilla_code;

/* For a null status these return ONCILLA_OK, "" and no details. */
ONCILLA_API oncilla_code oncilla_status_code(const oncilla_status* status);
ONCILLA_API const char* oncilla_status_message(const oncilla_status* status);
/* "options", "file", "load", "compile", "run", "device" or "unknown"; "" for a null status. */
ONCILLA_API const char* oncilla_status_stage(const oncilla_status* status);
/* The node of the model and the device that the failure is about; "" where there is none. */
ONCILLA_API const char* oncilla_status_node(const oncilla_status* status);
ONCILLA_API const char* oncilla_status_device(const oncilla_status* status);
/* Returns 1 and sets `code` to the driver's own error number (OpenCL's), or returns 0. */
ONCILLA_API int oncilla_status_driver_code(const oncilla_status* status, int32_t* code);
ONCILLA_API void oncilla_status_free(oncilla_status* status);

/* The version ("0.1.0"), and one line that says how the library was built. */
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

/* Host memory for weights and intermediate values of the CPU. `allocate` returns memory aligned to
 * `alignment`, or null if there is none. Both may be called from any thread. */
typedef void* (*oncilla_allocate_fn)(void* user, size_t bytes, size_t alignment);
typedef void (*oncilla_release_fn)(void* user, void* memory, size_t bytes);

typedef struct oncilla_runtime_options {
  size_t size;
  int opencl_cpu_devices; /* 1: lists OpenCL devices of type CPU as GPU:n; to test without a GPU */
  int threads;            /* shared by sessions; 0: all processors. Fewer leaves some to others */
  const char* cache_dir;  /* compiled OpenCL programs; null: the user's cache folder */
  oncilla_log_fn log;     /* null: warnings and errors are written to standard error */
  void* log_user;
  oncilla_log_level log_level;  /* the lowest that is logged; 0 without `log` means warnings */
  oncilla_allocate_fn allocate; /* the application's own allocator; set both or neither */
  oncilla_release_fn release;
  void* memory_user;
  /* Called once when `log`, `allocate` and `release` are not called again: after the runtime, its
   * sessions and all that they made are gone. Frees what their `user` points to. May be null. */
  void (*done)(void* user);
  void* done_user;
} oncilla_runtime_options;

/* Lists the devices of the machine without opening any. `options` may be null. */
ONCILLA_API oncilla_status* oncilla_runtime_create(const oncilla_runtime_options* options,
                                                   oncilla_runtime** runtime);
ONCILLA_API void oncilla_runtime_free(oncilla_runtime* runtime);

typedef struct oncilla_device_info {
  size_t size;
  const char* name; /* "/job:localhost/replica:0/task:0/device:GPU:0"; "" when not usable */
  const char* note; /* why it is not usable, else "" */
  const char* driver_name;
  const char* vendor;
  const char* driver_version;
  const char* backend; /* "cpu", "opencl" */
  int64_t memory_bytes;
  int64_t max_allocation_bytes;
  int compute_units;
  const char* id;   /* stable between processes: PCI or UUID if the driver has it */
  int on_processor; /* 1: computes on the host's processors: the CPU, OpenCL devices of type CPU */
} oncilla_device_info;

ONCILLA_API size_t oncilla_runtime_device_count(const oncilla_runtime* runtime);
/* Returns 1 when there is a usable device of that name: in full, in one of TensorFlow's short forms
 * ("/device:GPU:0", "/GPU:0", "gpu:0"), or a type alone ("GPU"); else 0. */
ONCILLA_API int oncilla_runtime_has_device(const oncilla_runtime* runtime, const char* name);
/* Fills as much of `info` as its size has room for. Its text is valid as long as the runtime. */
ONCILLA_API oncilla_status* oncilla_runtime_device(const oncilla_runtime* runtime, size_t index,
                                                   oncilla_device_info* info);

/* ---- Session: devices in use, memory, limits ------------------------------------------------ */

typedef struct oncilla_session_options {
  size_t size;
  const char* device; /* "auto" (null), "cpu", "cpu:plain", "gpu", "gpu:1" or a device name */
  int strict;         /* 1: fail where a node would run on another device for want of a kernel */
  int threads;        /* > 0: a pool of its own, for sessions that compete; 0: the runtime's */
  /* The most bytes taken on each device; 0: nearly all. Lower it to leave room for others. */
  int64_t memory_limit_bytes;
  /* The most runs at once per model and shapes; others wait. Each takes memory of its own. 0: 4. */
  int max_concurrent_runs;
  /* A configuration as text, as JSON or as a serialized ConfigProto of TensorFlow (docs/config.md),
   * for all other options; the members above take precedence. May be null. */
  const void* config;
  size_t config_size;
} oncilla_session_options;

ONCILLA_API oncilla_status* oncilla_session_create(oncilla_runtime* runtime,
                                                   const oncilla_session_options* options,
                                                   oncilla_session** session);
/* All options that were set, as JSON that `config` accepts. The text belongs to the session. */
ONCILLA_API const char* oncilla_session_config(oncilla_session* session);
/* Closes the session: waits for its runs, frees all its memory and stores how many bytes that was
 * in `released_bytes` (which may be null). Its models then refuse to run. oncilla_session_free
 * closes the session too. */
ONCILLA_API oncilla_status* oncilla_session_close(oncilla_session* session,
                                                  int64_t* released_bytes);
ONCILLA_API void oncilla_session_free(oncilla_session* session);

/* Frees the memory that no run holds now, except weights, and stores how many bytes that was in
 * `released_bytes` (may be null). The next run allocates again what it needs. */
ONCILLA_API oncilla_status* oncilla_session_trim(oncilla_session* session, int64_t* released_bytes);
/* Sets the memory limit of a device in use, by its full name or a short one ("gpu:0"), from now on.
 * What is taken above it stays until it is freed. A limit above what the device has is refused. */
ONCILLA_API oncilla_status* oncilla_session_set_memory_limit(oncilla_session* session,
                                                             const char* device, int64_t bytes);

/* The devices that the session sees, in the order of its numbering: the CPU first, then GPUs. */
typedef struct oncilla_session_device {
  size_t size;
  const char* name;        /* the full name */
  const char* driver_name; /* of the physical device */
  int in_use;              /* 1: opened; otherwise the members below are 0 */
  int preferred;           /* 1: nodes run here unless they are placed elsewhere */
  int64_t limit_bytes;
  int64_t pool_bytes; /* allocated from the driver */
} oncilla_session_device;

ONCILLA_API size_t oncilla_session_device_count(const oncilla_session* session);
/* Fills as much of `info` as its size has room for. Its text is valid as long as the session. */
ONCILLA_API oncilla_status* oncilla_session_device_info(const oncilla_session* session,
                                                        size_t index, oncilla_session_device* info);

typedef struct oncilla_memory_info {
  size_t size;
  int64_t in_use_bytes; /* handed out: weights, arenas, tensors, .. */
  int64_t pool_bytes;   /* allocated from the driver, in use or free */
  int64_t peak_bytes;   /* the most ever allocated, or since oncilla_session_reset_peaks */
  int64_t limit_bytes;
  int64_t largest_free_bytes; /* the largest free chunk of the pool */
  double fragmentation;       /* the share of the free bytes outside that chunk, 0 to 1 */
  int64_t reserve_bytes;      /* kept even when the session is trimmed */
  int64_t total_bytes;        /* taken by all sessions of the runtime on the physical device */
  int64_t total_limit_bytes;
  int64_t abandoned_bytes; /* of the session, on all devices: work that hangs may still use it */
} oncilla_memory_info;

/* The memory of a device in use, given by its full name or a short one ("gpu:0"). */
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
  ONCILLA_STRING = 14,
  /* Types that models store numbers in. Integers and floats of fewer than 8 bits are packed: the
     first element stands in the lowest bits of the first byte, and a tensor has whole bytes. */
  ONCILLA_INT4 = 15,
  ONCILLA_UINT4 = 16,
  ONCILLA_INT2 = 17,
  ONCILLA_UINT2 = 18,
  ONCILLA_FLOAT8E4M3FN = 19,
  ONCILLA_FLOAT8E4M3FNUZ = 20,
  ONCILLA_FLOAT8E5M2 = 21,
  ONCILLA_FLOAT8E5M2FNUZ = 22,
  ONCILLA_FLOAT8E8M0 = 23, /* powers of two */
  ONCILLA_FLOAT4E2M1 = 24,
  /* Real and imaginary part, two floats or two doubles beside each other. */
  ONCILLA_COMPLEX64 = 25,
  ONCILLA_COMPLEX128 = 26
} oncilla_dtype;

/* Creates a dense, row-major tensor in host memory from a copy of `bytes` bytes, its exact size. */
ONCILLA_API oncilla_status* oncilla_tensor_create(oncilla_dtype dtype, const int64_t* dims,
                                                  size_t rank, const void* data, size_t bytes,
                                                  oncilla_tensor** tensor);
/* Uses the caller's memory without a copy. It must stay unchanged until `release` (may be null) is
 * called, on whichever thread drops the last reference. On failure `release` is not called. */
ONCILLA_API oncilla_status* oncilla_tensor_wrap(oncilla_dtype dtype, const int64_t* dims,
                                                size_t rank, const void* data, size_t bytes,
                                                void (*release)(void* user), void* user,
                                                oncilla_tensor** tensor);
/* Copies `count` strings, exactly as many as the shape has elements. `lengths` may be null for
 * strings that end with a zero byte. */
ONCILLA_API oncilla_status* oncilla_tensor_create_strings(const int64_t* dims, size_t rank,
                                                          const char* const* strings,
                                                          const size_t* lengths, size_t count,
                                                          oncilla_tensor** tensor);
ONCILLA_API oncilla_dtype oncilla_tensor_dtype(const oncilla_tensor* tensor);
ONCILLA_API size_t oncilla_tensor_rank(const oncilla_tensor* tensor);
ONCILLA_API const int64_t* oncilla_tensor_dims(const oncilla_tensor* tensor);
ONCILLA_API size_t oncilla_tensor_elements(const oncilla_tensor* tensor);
/* Null and 0 for a tensor of strings and for a sequence; null for a tensor on a device. */
ONCILLA_API const void* oncilla_tensor_data(const oncilla_tensor* tensor);
ONCILLA_API size_t oncilla_tensor_bytes(const oncilla_tensor* tensor);
/* The same bytes, to be changed: null also where somebody else may read them, that is, where another
 * handle, a result or a model shares them, and where they are memory that was wrapped. */
ONCILLA_API void* oncilla_tensor_mutable_data(oncilla_tensor* tensor);
/* String `index`; null when out of range or not a tensor of strings. `length` may be null. */
ONCILLA_API const char* oncilla_tensor_string(const oncilla_tensor* tensor, size_t index,
                                              size_t* length);
/* Another handle of the same tensor, which shares its memory, wherever that is. With it an output
 * may outlive its result and the result's other outputs. */
ONCILLA_API oncilla_status* oncilla_tensor_share(const oncilla_tensor* tensor,
                                                 oncilla_tensor** shared);
ONCILLA_API void oncilla_tensor_free(oncilla_tensor* tensor);

/* ---- Models --------------------------------------------------------------------------------- */

/* The progress callback. `what` is "load" while the file is read and then, with
 * ONCILLA_LOAD_EAGER, "compile" while kernels are made; `fraction` is the share that is done, from 0
 * to 1. It is called on the thread that made the call it reports on. */
typedef void (*oncilla_progress_fn)(void* user, const char* what, double fraction);

/* What to do with the devices stored on a TensorFlow model's nodes, usually those of its author. */
enum {
  /* SOFT for graphs that are built in code, whose device scopes were written on purpose; IGNORE for
   * files. */
  ONCILLA_STORED_DEVICES_DEFAULT = 0,
  /* A node runs on its stored device where there is such a device and it can run the node. */
  ONCILLA_STORED_DEVICES_SOFT = 1,
  /* A node runs on its stored device; where it cannot, the run fails and lists the devices. */
  ONCILLA_STORED_DEVICES_RESPECT = 2,
  /* Stored devices are reported and not followed. */
  ONCILLA_STORED_DEVICES_IGNORE = 3
};

/* When the graphs of a model are compiled. */
enum {
  /* In the first run that needs them: loading is fast, and the first run is slow. */
  ONCILLA_LOAD_LAZY = 0,
  /* The default signature's while loading, so that an unsupported model fails there; where all
   * sizes of its inputs are known, with its kernels and memory plan. */
  ONCILLA_LOAD_EAGER = 1
};

typedef struct oncilla_load_options {
  size_t size;
  const char* tags; /* of a SavedModel's meta graph, by commas; null: "serve", else its only one */
  oncilla_progress_fn progress;
  void* progress_user;
  int stored_devices; /* ONCILLA_STORED_DEVICES_.. */
  int load_policy;    /* ONCILLA_LOAD_.. */
} oncilla_load_options;

/* Loads a SavedModel folder, a frozen GraphDef, an ONNX or TFLite file or Oncilla's own, told apart
 * by content. */
ONCILLA_API oncilla_status* oncilla_model_load(oncilla_session* session, const char* path,
                                               const oncilla_load_options* options,
                                               oncilla_model** model);
/* Loads a model in one file (ONNX, TFLite, a GraphDef, or Oncilla's own) from memory. `name` stands
 * for the file in messages (null: "bytes"). With a null `release` the bytes are copied; otherwise
 * they must stay unchanged until `release` is called, on whichever thread drops the last reference.
 * On failure `release` is not called. An ONNX model with external files is refused. */
ONCILLA_API oncilla_status* oncilla_model_load_bytes(oncilla_session* session, const void* bytes,
                                                     size_t size, const char* name,
                                                     void (*release)(void* user), void* user,
                                                     const oncilla_load_options* options,
                                                     oncilla_model** model);
/* Waits for the model's runs, frees its memory and counts it in `released_bytes` (may be null). */
ONCILLA_API oncilla_status* oncilla_model_unload(oncilla_model* model, int64_t* released_bytes);
ONCILLA_API void oncilla_model_free(oncilla_model* model);

/* What stands behind a name: a tensor, or what oncilla_sequence.h has. */
typedef enum oncilla_kind {
  ONCILLA_KIND_TENSOR = 0,
  ONCILLA_KIND_SEQUENCE = 1,
  ONCILLA_KIND_OPTIONAL = 2,
  ONCILLA_KIND_OPTIONAL_SEQUENCE = 3
} oncilla_kind;

typedef struct oncilla_tensor_info {
  size_t size;
  const char* name;
  oncilla_dtype dtype;
  int ranked; /* 0: the rank is not known */
  size_t rank;
  const int64_t* dims; /* -1: not known */
  oncilla_kind kind;   /* of others than tensors, dtype and dims are those of their tensors */
} oncilla_tensor_info;

/* Signatures by index. A format without signatures has one, with an empty key. */
ONCILLA_API size_t oncilla_model_signature_count(const oncilla_model* model);
ONCILLA_API const char* oncilla_model_signature_key(const oncilla_model* model, size_t signature);
ONCILLA_API size_t oncilla_model_input_count(const oncilla_model* model, size_t signature);
ONCILLA_API size_t oncilla_model_output_count(const oncilla_model* model, size_t signature);
ONCILLA_API oncilla_status* oncilla_model_input(const oncilla_model* model, size_t signature,
                                                size_t index, oncilla_tensor_info* info);
ONCILLA_API oncilla_status* oncilla_model_output(const oncilla_model* model, size_t signature,
                                                 size_t index, oncilla_tensor_info* info);

/* Memory of the caller for an output: exactly as many bytes as the output's dense row-major form.
 */
typedef struct oncilla_output_memory {
  const char* output;
  void* data;
  size_t bytes;
} oncilla_output_memory;

typedef struct oncilla_run_options {
  size_t size;
  const char* signature; /* null: serving_default, else the only one */
  int64_t timeout_ms;    /* then it fails as ONCILLA_DEADLINE_EXCEEDED; 0: the session's limit */
  const char* const* outputs; /* names; null: all outputs of the signature, none with targets */
  size_t output_count;
  const char* const* targets; /* nodes of a TensorFlow graph to run for side effects; may be null */
  size_t target_count;
  const oncilla_cancellation* cancellation; /* may be null */
  /* Outputs that stay on the device that computes them, to be fed to later runs; may be null. */
  const char* const* keep;
  size_t keep_count;
  int keep_all; /* 1: all outputs stay */
  /* The device of this run, for nodes that are not placed elsewhere; null: the session's. Graphs
   * and weights are kept on each device that was used, which costs memory. */
  const char* device;
  int trace_level; /* ONCILLA_TRACE_..: what is recorded for oncilla_result_trace */
  /* Where outputs are to be written, instead of memory of the result's own: use it for large
   * outputs, or where a buffer is reused. What the CPU computes is computed there if the address is
   * a multiple of 64; all else is copied there at the end of the run. The memory must not overlap
   * with an input or with that of another output, and must stay valid until the result is freed,
   * whose tensors refer to it. ONCILLA_INVALID_ARGUMENT where the size is not the output's, or the
   * output holds strings. After a failure the contents are undefined, and nothing writes there. May
   * be null. */
  const oncilla_output_memory* into;
  size_t into_count;
} oncilla_run_options;

/* The variables of a TensorFlow model, trained weights included, by index in the order of the
 * graph. Their names are those of their nodes in the graph. The count is 0 also where the graph
 * cannot be read; oncilla_model_variable then returns the reason. */
ONCILLA_API size_t oncilla_model_variable_count(const oncilla_model* model);
ONCILLA_API oncilla_status* oncilla_model_variable(const oncilla_model* model, size_t index,
                                                   oncilla_tensor_info* info);
/* A variable that a graph of the model changes keeps its value between runs, and runs that change
 * variables take turns. Reading returns a copy of the value that was last assigned, else of the
 * value in the model's files; ONCILLA_FAILED_PRECONDITION where there is none yet. Assigning checks
 * the type and shape and takes effect for runs that begin later. The first assignment to a variable
 * that no graph changes makes the graphs that read it compile again. */
ONCILLA_API oncilla_status* oncilla_model_read_variable(oncilla_model* model, const char* name,
                                                        oncilla_tensor** tensor);
ONCILLA_API oncilla_status* oncilla_model_assign_variable(oncilla_model* model, const char* name,
                                                          const oncilla_tensor* tensor);

/* Runs the model and blocks until the results are there. `options` may be null. */
ONCILLA_API oncilla_status* oncilla_model_run(oncilla_model* model, const char* const* input_names,
                                              const oncilla_tensor* const* inputs,
                                              size_t input_count,
                                              const oncilla_run_options* options,
                                              oncilla_result** result);

/* Does the work of a first run except computing: compiles the graph, plans the memory, makes the
 * kernels for inputs of these shapes and uploads the weights. Only the shapes and types of the
 * inputs matter, and the values that determine shapes. Without inputs, the plan is made only where
 * all sizes are known. Time limit, cancellation and `keep` are ignored. */
ONCILLA_API oncilla_status* oncilla_model_prepare(oncilla_model* model,
                                                  const char* const* input_names,
                                                  const oncilla_tensor* const* inputs,
                                                  size_t input_count,
                                                  const oncilla_run_options* options);

ONCILLA_API size_t oncilla_result_count(const oncilla_result* result);
ONCILLA_API const char* oncilla_result_name(const oncilla_result* result, size_t index);
/* The tensor belongs to the result. */
ONCILLA_API const oncilla_tensor* oncilla_result_tensor(const oncilla_result* result, size_t index);
/* Takes that tensor out of the result, which no longer has one there: the caller frees it. */
ONCILLA_API oncilla_status* oncilla_result_take(oncilla_result* result, size_t index,
                                                oncilla_tensor** tensor);
/* The output of that name; null where there is none. */
ONCILLA_API const oncilla_tensor* oncilla_result_find(const oncilla_result* result,
                                                      const char* name);
/* Copies a numeric output, also one on a device, into memory of exactly the tensor's size. */
ONCILLA_API oncilla_status* oncilla_result_copy(const oncilla_result* result, const char* name,
                                                void* memory, size_t bytes);
/* One line: which nodes ran where, why, and what was copied. */
ONCILLA_API const char* oncilla_result_report(const oncilla_result* result);
ONCILLA_API void oncilla_result_free(oncilla_result* result);

/* ---- Traces: what a run did when ------------------------------------------------------------- */

/* What a run records; the same levels as in tensorflow.RunOptions. */
enum {
  ONCILLA_TRACE_NONE = 0,
  ONCILLA_TRACE_SOFTWARE = 1, /* what the host did, and memory use over time */
  ONCILLA_TRACE_HARDWARE = 2, /* kernels and copies, timed by the devices' own clocks */
  ONCILLA_TRACE_FULL = 3      /* both */
};
typedef enum oncilla_trace_format {
  ONCILLA_TRACE_CHROME = 0,    /* JSON for Perfetto and chrome://tracing */
  ONCILLA_TRACE_STEP_STATS = 1 /* a serialized tensorflow.RunMetadata */
} oncilla_trace_format;
/* The trace of a run with a trace level; ONCILLA_FAILED_PRECONDITION without. Fills as much of
 * `bytes` as `size` has room for and sets `needed` to the size of the whole. No zero byte is
 * appended. */
ONCILLA_API oncilla_status* oncilla_result_trace(const oncilla_result* result,
                                                 oncilla_trace_format format, char* bytes,
                                                 size_t size, size_t* needed);
/* Writes the trace to a file. */
ONCILLA_API oncilla_status* oncilla_result_save_trace(const oncilla_result* result,
                                                      oncilla_trace_format format,
                                                      const char* path);

/* ---- Placement: which node runs where -------------------------------------------------------- */

/* From the next run on, places the nodes whose name matches `nodes` ('*' any text, '?' one
 * character; null: all) and whose type is `op` (in the model's format or canonical; null: any) on
 * `device`, where that has a kernel for them. A weight's name stands for the nodes that read it.
 * The last matching request wins; an empty device undoes earlier ones. Weights move with their
 * nodes. In a strict session a device that does not exist is ONCILLA_NOT_FOUND, and a node that
 * cannot run there fails the next run. */
ONCILLA_API oncilla_status* oncilla_model_place(oncilla_model* model, const char* nodes,
                                                const char* op, const char* device);
/* Returns the device for a node, or null for no preference. Called from any thread, for each node
 * of a graph that is compiled, as long as the model lives. The text must stay valid until the next
 * call on that thread. `stored` is the device that the model stores for the node, or "". */
typedef const char* (*oncilla_place_fn)(void* user, const char* node, const char* op,
                                        const char* stored);
/* `done` (may be null) is called once when the rule is not called again: after the placement was
 * cleared, or the model is gone. On failure it is not called. */
ONCILLA_API oncilla_status* oncilla_model_place_by(oncilla_model* model, oncilla_place_fn rule,
                                                   void* user, void (*done)(void* user));
ONCILLA_API oncilla_status* oncilla_model_clear_placement(oncilla_model* model);
/* Writes one line for each node of a signature (null: the default one): where it runs and why, when
 * the run is on `device` (null: the session's). A zero byte follows the last line. Fills as much of
 * `text` as `size` has room for and sets `needed` (may be null) to the size of the whole text. */
ONCILLA_API oncilla_status* oncilla_model_placement(oncilla_model* model, const char* signature,
                                                    const char* device, char* text, size_t size,
                                                    size_t* needed);

/* Called for each node of a model's main graph: its place in the file, its name (else that of its
 * first output), its op with its domain, and why it is not supported, or "" where it is. The texts
 * are valid during the call, which must not call the library. */
typedef void (*oncilla_judge_fn)(void* user, size_t index, const char* node, const char* op,
                                 const char* reason);
/* Judges every node of an ONNX model's main graph by itself, in the order of the file, with the
 * code that imports it: also those behind a node that is not supported, from the types that the
 * file states. For programs that run a part of a model elsewhere. ONCILLA_UNIMPLEMENTED for other
 * formats. */
ONCILLA_API oncilla_status* oncilla_model_judge_nodes(const oncilla_model* model,
                                                      oncilla_judge_fn judge, void* user);

/* ---- Memory, further ------------------------------------------------------------------------ */

/* Compacts the weights in memory and frees what is left over; graphs are compiled again where that
 * needs it. ONCILLA_FAILED_PRECONDITION while runs are in progress. `released_bytes` may be null,
 * here and below. */
ONCILLA_API oncilla_status* oncilla_session_defragment(oncilla_session* session,
                                                       int64_t* released_bytes);
/* Unloads all models after waiting for their runs; the session stays usable, its devices open. */
ONCILLA_API oncilla_status* oncilla_session_reset(oncilla_session* session,
                                                  int64_t* released_bytes);
/* Resets all peaks to what is taken now. */
ONCILLA_API oncilla_status* oncilla_session_reset_peaks(oncilla_session* session);
/* Keeps the latest `changes` changes of memory for the report, from now on; 0: none. */
ONCILLA_API oncilla_status* oncilla_session_record_memory(oncilla_session* session, size_t changes);
/* The memory report: limits, owners, weights, variables, plans with the node at their peak, changes
 * over time, and the pool as it was when memory last ran out; as text, or JSON where `json` is not
 * 0. Fills as much of `text` as `size` has room for, with a zero byte at the end; `needed` (may be
 * null) is set to the size of the whole, which may differ in the next call. */
ONCILLA_API oncilla_status* oncilla_session_memory_report(oncilla_session* session, int json,
                                                          char* text, size_t size, size_t* needed);
/* The part of the report that is about one model, as a JSON object: its weights, variables and
 * plans. `text`, `size` and `needed` as above. */
ONCILLA_API oncilla_status* oncilla_model_memory_report(oncilla_model* model, char* text,
                                                        size_t size, size_t* needed);
/* Closes all sessions of the runtime after waiting for their runs. Writes to `text`, as above, a
 * line for each session and model handle that the program still holds; free those as usual. */
ONCILLA_API oncilla_status* oncilla_runtime_close_sessions(oncilla_runtime* runtime,
                                                           int64_t* released_bytes, char* text,
                                                           size_t size, size_t* needed);

#ifdef __cplusplus
}
#endif

#include <oncilla/oncilla_graph.h>
#include <oncilla/oncilla_runs.h>
#include <oncilla/oncilla_sequence.h>

#endif /* ONCILLA_H_ */
