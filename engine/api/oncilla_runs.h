/* Runs that end early, on threads of the session; tensors on devices; callables; reading ahead.
 * Part of oncilla.h. */
#ifndef ONCILLA_RUNS_H_
#define ONCILLA_RUNS_H_

#include <oncilla/oncilla.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cancellation token: given to any number of runs, it cancels them all, from any thread. A
 * cancelled run returns ONCILLA_CANCELLED within milliseconds, even if its device's queue hangs or
 * a driver compiles (not while another call of the driver blocks), and does not touch the caller's
 * memory afterwards. A token cannot be reset, and may be freed while runs use it. */
ONCILLA_API oncilla_status* oncilla_cancellation_create(oncilla_cancellation** cancellation);
ONCILLA_API void oncilla_cancellation_cancel(oncilla_cancellation* cancellation);
ONCILLA_API void oncilla_cancellation_free(oncilla_cancellation* cancellation);

/* Called on a thread of the session when the run is over; oncilla_run_wait then returns at once. It
 * may unload models and free handles, but must not wait for other runs. */
typedef void (*oncilla_done_fn)(void* user);

/* Like oncilla_model_run, on a thread of the session. Inputs are copied or, where wrapped,
 * referenced until the run is over. The time limit counts from this call.
 * ONCILLA_RESOURCE_EXHAUSTED when too many runs wait. `done` may be null. */
ONCILLA_API oncilla_status* oncilla_model_run_async(
    oncilla_model* model, const char* const* input_names, const oncilla_tensor* const* inputs,
    size_t input_count, const oncilla_run_options* options, oncilla_done_fn done, void* user,
    oncilla_run** run);
/* Returns 1 when the run is over. */
ONCILLA_API int oncilla_run_done(const oncilla_run* run);
/* Waits at most `timeout_ms` for the run (negative: without a limit) and returns its status and
 * result. The result is returned once, to the first caller. ONCILLA_DEADLINE_EXCEEDED with a null
 * `*result` means that the run is not over yet, or that it failed because its own time limit
 * passed; oncilla_run_done tells which. */
ONCILLA_API oncilla_status* oncilla_run_wait(oncilla_run* run, int64_t timeout_ms,
                                             oncilla_result** result);
ONCILLA_API void oncilla_run_cancel(oncilla_run* run);
/* Frees the handle; the run continues. */
ONCILLA_API void oncilla_run_free(oncilla_run* run);

/* Like oncilla_session_close, but does not wait for long runs: cancels the runs in progress at once
 * (`cancel` != 0), or those that take longer than `timeout_ms` (0: no limit). */
ONCILLA_API oncilla_status* oncilla_session_close_within(oncilla_session* session, int cancel,
                                                         int64_t timeout_ms,
                                                         int64_t* released_bytes);

/* The full name of the device that holds the tensor; "" for host memory. A tensor on a device may
 * be an input of runs of its session, without a copy where the node runs there. It holds device
 * memory until it is freed or its session is closed; then calls with it return
 * ONCILLA_FAILED_PRECONDITION. Runs return such tensors where `keep` says so. */
ONCILLA_API const char* oncilla_tensor_device(const oncilla_tensor* tensor);
/* Copies the tensor to host memory. */
ONCILLA_API oncilla_status* oncilla_tensor_read(const oncilla_tensor* tensor,
                                                oncilla_tensor** host);
/* Copies a tensor to a device in use, by its full name or a short one (null: the session's). On the
 * CPU the copy is a tensor in host memory. */
ONCILLA_API oncilla_status* oncilla_session_upload(oncilla_session* session, const char* device,
                                                   const oncilla_tensor* tensor,
                                                   oncilla_tensor** on_device);

typedef struct oncilla_callable_options {
  size_t size;
  const char* signature;     /* as in oncilla_run_options */
  const char* const* inputs; /* names, in the order in which calls give the inputs */
  size_t input_count;
  const char* const* outputs; /* in the order of the results; null: as in oncilla_run_options */
  size_t output_count;
  const char* const* targets; /* this and the rest: as in oncilla_run_options */
  size_t target_count;
  const char* const* keep;
  size_t keep_count;
  int keep_all;
} oncilla_callable_options;

typedef struct oncilla_call_options {
  size_t size;
  int64_t timeout_ms;                       /* as in oncilla_run_options */
  const oncilla_cancellation* cancellation; /* ends the call early; may be null */
} oncilla_call_options;

/* A run whose names are looked up once, for calls that are made very often. Calls pass inputs by
 * position, each on the host or on a device. Calls of one callable may overlap. */
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

/* Provides the next inputs of a callable, in its order: returns 1 when all are set, 0 when there
 * are no more, 2 when it has more than `input_count`, which ends the stream with
 * ONCILLA_INVALID_ARGUMENT, anything else for a failure. The tensors stay the source's, which may
 * free or reuse them when it is called again or the prefetcher is freed. It is called on a thread
 * of the prefetcher. */
typedef struct oncilla_prefetcher oncilla_prefetcher;
typedef int (*oncilla_source_fn)(void* user, const oncilla_tensor** inputs, size_t input_count);
/* Calls `source` and uploads the inputs to the device while the device computes, up to `depth` sets
 * ahead (0: 2), or fewer where the memory limit leaves no room. */
ONCILLA_API oncilla_status* oncilla_prefetcher_create(oncilla_callable* callable,
                                                      oncilla_source_fn source, void* user,
                                                      int depth, oncilla_prefetcher** prefetcher);
/* Runs the callable on the next inputs; `*result` is null at the end. A failure of the source is
 * ONCILLA_ABORTED and ends the stream, one of a run does not. `options` may be null. */
ONCILLA_API oncilla_status* oncilla_prefetcher_next(oncilla_prefetcher* prefetcher,
                                                    const oncilla_call_options* options,
                                                    oncilla_result** result);
/* Waits for a call of the source that is in progress. */
ONCILLA_API void oncilla_prefetcher_free(oncilla_prefetcher* prefetcher);

#ifdef __cplusplus
}
#endif

#endif /* ONCILLA_RUNS_H_ */
