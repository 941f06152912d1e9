/* Oncilla among the OpenCL objects of the application: its context, queues, buffers and events.
 *
 * This header needs no header of OpenCL's: a handle of OpenCL's is given as `void*`, which is what
 * cl_context, cl_device_id, cl_command_queue, cl_mem and cl_event convert to in C, and by static_cast
 * back in C++. It must be valid: OpenCL has no way to find out. Whatever of it can be asked (context,
 * device, size, flags, order) is asked, and what does not fit is ONCILLA_INVALID_ARGUMENT.
 *
 * What is given is retained as long as it is used, and released at the latest when the session closes
 * (a context: when the runtime is freed too). It never becomes Oncilla's: the application may release
 * its own references at any time. No context callback is set, and the application's queues are never
 * waited for or flushed, except by oncilla_enqueued_finish. See docs/opencl_interop.md.
 */
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
  /* Where the context comes from. Both null: libOpenCL.so.1, which is then the one that the process
   * has loaded already. `library`: another shared library that exports OpenCL (a loader, a driver).
   * `entry_point`: for a loader that is linked statically: returns the address of "clFinish" and the
   * like, null for what it does not know; called during oncilla_opencl_runtime_create only. */
  const char* library;
  void* (*entry_point)(void* user, const char* name);
  void* user;
} oncilla_opencl_host;

/* A runtime that has the CPU, and as GPU:0 the application's device, "borrowed from the application"
 * by its note, whatever kind of device it is. No other device is looked for. Sessions of it allocate
 * in the context. ONCILLA_UNIMPLEMENTED, with the reason, for a device that cannot be used. `options`
 * may be null. */
ONCILLA_API oncilla_status* oncilla_opencl_runtime_create(const oncilla_runtime_options* options,
                                                          const oncilla_opencl_host* host,
                                                          oncilla_runtime** runtime);

/* A tensor in a cl_mem of the session's context, no copy: an input of runs, and what they write their
 * outputs to. `offset` is in bytes, a multiple of an element's size; where it is no multiple of the
 * device's CL_DEVICE_MEM_BASE_ADDR_ALIGN, kernels that take no element offset get a copy made on the
 * device (oncilla_run_cost tells). Runs of oncilla_callable_run and oncilla_callable_run_into do not
 * know the application's queues: what writes to the buffer must be over before. The buffer must not
 * change while a run has it. */
ONCILLA_API oncilla_status* oncilla_opencl_wrap(oncilla_session* session, void* buffer,
                                                size_t offset, oncilla_dtype dtype,
                                                const int64_t* dims, size_t rank,
                                                oncilla_tensor** tensor);
/* The cl_mem that a tensor on a device lies in, and where: for kernels of the application's, which may
 * read it as long as the tensor lives and the session is open, and must not write. No reference is
 * added; one that the application adds keeps the cl_mem, not the contents. */
ONCILLA_API oncilla_status* oncilla_opencl_buffer(const oncilla_tensor* tensor, void** buffer,
                                                  size_t* offset, size_t* bytes);

typedef struct oncilla_run_cost {
  size_t size;
  int64_t copies; /* between the host and devices */
  int64_t copied_bytes;
  int64_t device_copies; /* within the device, because something could not be used where it lies */
  int64_t device_copied_bytes;
} oncilla_run_cost;

/* As oncilla_callable_run, with the results in tensors of oncilla_opencl_wrap, of their very dtypes
 * and shapes: outputs[i] for output i, or null to drop it. What the device computes it writes there
 * without a copy; a run with a time limit or a cancellation, or whose output lies on an input, copies
 * on the device at its end instead. After a failure the contents are anything. `options` and `cost`
 * may be null. */
ONCILLA_API oncilla_status* oncilla_callable_run_into(oncilla_callable* callable,
                                                      const oncilla_tensor* const* inputs,
                                                      size_t input_count,
                                                      const oncilla_tensor* const* outputs,
                                                      size_t output_count,
                                                      const oncilla_call_options* options,
                                                      oncilla_run_cost* cost);

/* A run that was enqueued. */
typedef struct oncilla_enqueued oncilla_enqueued;

/* Enqueues the run on a cl_command_queue of the application's, in order, and returns: behind what is
 * enqueued there, and after the cl_events in `wait_for`. Inputs and outputs are tensors on the device,
 * every output has one of oncilla_opencl_wrap, and none overlaps another or an input; an input that
 * fixes shapes is given in host memory. `event` (may be null) gets a cl_event of the run's end, which
 * the application releases. The tensors may be freed at once.
 *
 * ONCILLA_UNIMPLEMENTED, naming a node, for a graph that needs the host on its way or does not run
 * on the device as a whole. The first run of its shapes on a queue also compiles and allocates.
 *
 * The outcome is not checked by the event: an index out of range, say, is only told by
 * oncilla_enqueued_finish. */
ONCILLA_API oncilla_status* oncilla_opencl_enqueue(oncilla_callable* callable, void* queue,
                                                   const oncilla_tensor* const* inputs,
                                                   size_t input_count,
                                                   const oncilla_tensor* const* outputs,
                                                   size_t output_count, void* const* wait_for,
                                                   size_t wait_count, void** event,
                                                   oncilla_enqueued** run);
/* As oncilla_opencl_enqueue; the device stamps each of the run's steps, for oncilla_enqueued_trace.
 * ONCILLA_FAILED_PRECONDITION for a queue that was made without CL_QUEUE_PROFILING_ENABLE. */
ONCILLA_API oncilla_status* oncilla_opencl_enqueue_traced(
    oncilla_callable* callable, void* queue, const oncilla_tensor* const* inputs,
    size_t input_count, const oncilla_tensor* const* outputs, size_t output_count,
    void* const* wait_for, size_t wait_count, void** event, oncilla_enqueued** run);
/* 1 when it is over, well or badly. Neither waits nor flushes. */
ONCILLA_API int oncilla_enqueued_done(const oncilla_enqueued* run);
/* The outcome. Waits for it, at most so long (negative: as long as it takes) and flushes the queue:
 * ONCILLA_DEADLINE_EXCEEDED when it is not over by then. 0 asks without waiting. To be asked before
 * the model is unloaded: what is then still under way is looked after for a few seconds, and its
 * memory given up. */
ONCILLA_API oncilla_status* oncilla_enqueued_finish(oncilla_enqueued* run, int64_t timeout_ms);
/* What a run of oncilla_opencl_enqueue_traced did, step by step, once oncilla_enqueued_finish has said
 * that it went well; ONCILLA_FAILED_PRECONDITION before, and of other runs. Times are on the device's
 * clock, in nanoseconds, as clGetEventProfilingInfo tells them of the application's own commands (in
 * Chrome's format: in microseconds from the run's first step). `bytes`, `size` and `needed` are as for
 * oncilla_result_trace. */
ONCILLA_API oncilla_status* oncilla_enqueued_trace(const oncilla_enqueued* run,
                                                   oncilla_trace_format format, char* bytes,
                                                   size_t size, size_t* needed);
/* The run goes on, unchecked. */
ONCILLA_API void oncilla_enqueued_free(oncilla_enqueued* run);

#ifdef __cplusplus
}
#endif

#endif /* ONCILLA_OPENCL_H_ */
