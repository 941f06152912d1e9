/* What storing numbers in 16 bits costs: a model run so and in fp32, and compared number by number.
 * See docs/precision.md.
 */
#ifndef ONCILLA_PRECISION_H_
#define ONCILLA_PRECISION_H_

#include <oncilla/oncilla.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oncilla_precision_options {
  size_t size;
  const char* storage; /* "fp16" or "bf16"; null: what the session's configuration says */
  const oncilla_session_options* session; /* device, deny lists and the like; null: defaults */
  const oncilla_load_options* load;       /* may be null */
  /* Signature, outputs, a time limit for each run; may be null. What it keeps on the device is
   * brought to the host all the same. */
  const oncilla_run_options* run;
  int inner_values; /* the most values inside of the graph to compare too, a run each; 0: none */
} oncilla_precision_options;

/* How far one output, or one value inside, is from what it is in fp32. `largest`, `max_error` and
 * `rms_error` are in the output's own unit. */
typedef struct oncilla_number_errors {
  size_t size;
  const char* name;      /* belongs to the check */
  double largest;        /* magnitude in fp32, of finite numbers */
  double max_error;      /* the largest difference of two finite numbers */
  double rms_error;      /* the root of the mean of their squares */
  double relative_error; /* max_error / largest: 0.01 is one percent; max_error where that is 0 */
  double top1_agreement; /* share, 0 to 1, of the rows (along the last axis) whose largest number is
                          * at the same place; negative where there are no rows of two and more */
  int64_t overflowed;    /* how many numbers are finite in fp32 and infinite or NaN in 16 bits */
  int64_t others_that_differ; /* how many strings, integers and booleans do; the rest is then 0 */
} oncilla_number_errors;

typedef struct oncilla_precision_check oncilla_precision_check;

/* Loads the model in two sessions that differ in precision only, runs both on the inputs, compares,
 * and closes the sessions. Needs memory for both at once; takes a run of each, and one more for
 * each value inside. Inputs are in host memory. ONCILLA_INVALID_ARGUMENT when neither `storage` nor
 * the configuration is for 16 bits. */
ONCILLA_API oncilla_status* oncilla_precision_check_run(oncilla_runtime* runtime, const char* path,
                                                        const char* const* input_names,
                                                        const oncilla_tensor* const* inputs,
                                                        size_t input_count,
                                                        const oncilla_precision_options* options,
                                                        oncilla_precision_check** check);
ONCILLA_API size_t oncilla_precision_check_output_count(const oncilla_precision_check* check);
/* In the order of the graph; fewer than were asked for where the graph has fewer. */
ONCILLA_API size_t oncilla_precision_check_inner_count(const oncilla_precision_check* check);
/* Fills as much of `errors` as its size has room for. */
ONCILLA_API oncilla_status* oncilla_precision_check_output(const oncilla_precision_check* check,
                                                           size_t index,
                                                           oncilla_number_errors* errors);
ONCILLA_API oncilla_status* oncilla_precision_check_inner(const oncilla_precision_check* check,
                                                          size_t index,
                                                          oncilla_number_errors* errors);
/* All of it as a table. */
ONCILLA_API const char* oncilla_precision_check_text(const oncilla_precision_check* check);
ONCILLA_API void oncilla_precision_check_free(oncilla_precision_check* check);

#ifdef __cplusplus
}
#endif

#endif /* ONCILLA_PRECISION_H_ */
