/* Oncilla with the OpenCL objects of the application: its context, queues, buffers and events.
 *
 * This header includes no OpenCL header: an OpenCL handle is passed as `void*`, to which
 * cl_context, cl_device_id, cl_command_queue, cl_mem and cl_event convert in C; in C++ use
 * static_cast to convert back. Handles must be valid, because OpenCL cannot check that. What can be
 * queried about them (context, device, size, flags, order) is checked, and a mismatch is
 * ONCILLA_INVALID_ARGUMENT.
 *
 * Objects that are passed in are retained while they are used, and released at the latest when the
 * session is closed (a context also when the runtime is freed). They stay the application's, which
 * may release its own references at any time. No context callback is set. The application's queues
 * are never waited for or flushed, except by oncilla_enqueued_finish. See
 * docs/opencl_interop.md. */
#ifndef ONCILLA_OPENCL_H_
#define ONCILLA_OPENCL_H_

#include <oncilla/oncilla.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oncilla_opencl_host {
  size_t size;
  void* context; /* cl_context */
  void* device;  /* cl_device_id, one of the context's; null: its only one */
  /* The OpenCL library that made the context. With both null it is libOpenCL.so.1, as the process
   * has loaded it. Set `library` where the context comes from another shared library that exports
   * OpenCL (a loader, a driver). Set `entry_point` where the loader is linked statically: it
   * returns the address of "clFinish" and the like, null for a name that it does not know, and is
   * called during oncilla_opencl_runtime_create only. */
  const char* library;
  void* (*entry_point)(void* user, const char* name);
  void* user;
} oncilla_opencl_host;

/* Creates a runtime with the CPU and, as GPU:0, the application's device, whatever its type; its
 * note is "borrowed from the application". No other device is searched for, and sessions allocate
 * in the context. ONCILLA_UNIMPLEMENTED, with the reason, for a device that cannot be used.
 * `options` may be null. */
ONCILLA_API oncilla_status* oncilla_opencl_runtime_create(const oncilla_runtime_options* options,
                                                          const oncilla_opencl_host* host,
                                                          oncilla_runtime** runtime);

/* Creates a tensor in a cl_mem of the session's context without a copy; it may be an input of runs
 * and the target of their outputs. `offset` is in bytes and must be a multiple of the element size.
 * Where it is not a multiple of the device's CL_DEVICE_MEM_BASE_ADDR_ALIGN, kernels that take no
 * element offset read a copy made on the device (see oncilla_run_cost). oncilla_callable_run and
 * oncilla_callable_run_into do not know the application's queues: commands that write to the buffer
 * must be complete before they are called. The buffer must not change while a run uses it. */
ONCILLA_API oncilla_status* oncilla_opencl_wrap(oncilla_session* session, void* buffer,
                                                size_t offset, oncilla_dtype dtype,
                                                const int64_t* dims, size_t rank,
                                                oncilla_tensor** tensor);
/* The cl_mem that holds a tensor on a device, and where the tensor lies in it. Kernels of the
 * application may read it while the tensor lives and the session is open, and must not write to it.
 * No reference is added; one that the application adds keeps the cl_mem alive, but not its
 * contents. */
ONCILLA_API oncilla_status* oncilla_opencl_buffer(const oncilla_tensor* tensor, void** buffer,
                                                  size_t* offset, size_t* bytes);

typedef struct oncilla_run_cost {
  size_t size;
  int64_t copies; /* between the host and devices */
  int64_t copied_bytes;
  int64_t device_copies; /* within the device: a tensor could not be used where it is */
  int64_t device_copied_bytes;
} oncilla_run_cost;

/* Like oncilla_callable_run, but writes the results to tensors of oncilla_opencl_wrap, which must
 * have exactly their dtypes and shapes: outputs[i] receives output i; null drops it. Outputs that
 * the device computes are written there without a copy. A run with a time limit or a cancellation,
 * or whose output overlaps an input, copies on the device at its end instead. After a failure the
 * contents are undefined. `options` and `cost` may be null. */
ONCILLA_API oncilla_status* oncilla_callable_run_into(
    oncilla_callable* callable, const oncilla_tensor* const* inputs, size_t input_count,
    const oncilla_tensor* const* outputs, size_t output_count, const oncilla_call_options* options,
    oncilla_run_cost* cost);

/* A run on a queue of the application. */
typedef struct oncilla_enqueued oncilla_enqueued;

/* Enqueues the run on an in-order cl_command_queue of the application and returns. The run begins
 * after the commands that are already in the queue and after the cl_events in `wait_for`. Inputs
 * and outputs are tensors on the device, except that inputs whose values determine shapes are given
 * in host memory. Every output needs a tensor of oncilla_opencl_wrap, and none may overlap another
 * or an input. `event` (may be null) is set to a cl_event of the end of the run, which the
 * application releases. The tensors may be freed at once.
 *
 * ONCILLA_UNIMPLEMENTED, naming a node, for a graph that needs the host or does not run entirely on
 * the device. The first run with its shapes on a queue also compiles and allocates.
 *
 * The event does not report the outcome: an index out of range, for example, is only reported by
 * oncilla_enqueued_finish. */
ONCILLA_API oncilla_status* oncilla_opencl_enqueue(
    oncilla_callable* callable, void* queue, const oncilla_tensor* const* inputs,
    size_t input_count, const oncilla_tensor* const* outputs, size_t output_count,
    void* const* wait_for, size_t wait_count, void** event, oncilla_enqueued** run);
/* Like oncilla_opencl_enqueue, and the device records the time of each step, for
 * oncilla_enqueued_trace. ONCILLA_FAILED_PRECONDITION for a queue that was created without
 * CL_QUEUE_PROFILING_ENABLE. */
ONCILLA_API oncilla_status* oncilla_opencl_enqueue_traced(
    oncilla_callable* callable, void* queue, const oncilla_tensor* const* inputs,
    size_t input_count, const oncilla_tensor* const* outputs, size_t output_count,
    void* const* wait_for, size_t wait_count, void** event, oncilla_enqueued** run);
/* Returns 1 when the run is over, successful or not. Neither waits nor flushes. */
ONCILLA_API int oncilla_enqueued_done(const oncilla_enqueued* run);
/* Returns the outcome of the run. Flushes the queue and waits at most `timeout_ms` (negative:
 * without a limit); ONCILLA_DEADLINE_EXCEEDED when the run is not over by then. 0 checks without
 * waiting. Call it before the model is unloaded: for a run that is still in progress then,
 * unloading waits a few seconds and then abandons its memory. */
ONCILLA_API oncilla_status* oncilla_enqueued_finish(oncilla_enqueued* run, int64_t timeout_ms);
/* The trace of a run of oncilla_opencl_enqueue_traced, step by step, after oncilla_enqueued_finish
 * has returned success; ONCILLA_FAILED_PRECONDITION before that and for other runs. Times are on
 * the device's clock in nanoseconds, the same that clGetEventProfilingInfo returns for the
 * application's own commands (in Chrome's format: in microseconds from the first step of the run).
 * `bytes`, `size` and `needed` are as in oncilla_result_trace. */
ONCILLA_API oncilla_status* oncilla_enqueued_trace(const oncilla_enqueued* run,
                                                   oncilla_trace_format format, char* bytes,
                                                   size_t size, size_t* needed);
/* Frees the handle. The run continues, and its outcome is not checked. */
ONCILLA_API void oncilla_enqueued_free(oncilla_enqueued* run);

#ifdef __cplusplus
}
#endif

#endif /* ONCILLA_OPENCL_H_ */
