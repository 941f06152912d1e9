/* What reduced precision costs in accuracy: runs a model with 16-bit storage and in fp32, and
 * compares the results number by number. See docs/precision.md. */
#ifndef ONCILLA_PRECISION_H_
#define ONCILLA_PRECISION_H_

#include <oncilla/oncilla.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oncilla_precision_options {
  size_t size;
  const char* storage; /* "fp16" or "bf16"; null: what the session's configuration says */
  const oncilla_session_options* session; /* device, deny lists and so on; null: the defaults */
  const oncilla_load_options* load;       /* may be null */
  /* Signature, outputs, and a time limit for each run; may be null. Outputs that it keeps on the
   * device are copied to the host for the comparison. */
  const oncilla_run_options* run;
  /* The most intermediate values to compare as well, at the cost of one more run each; 0: none. Set
   * it to find the nodes where errors grow. */
  int inner_values;
} oncilla_precision_options;

/* How far one output, or one intermediate value, is from its value in fp32. `largest`, `max_error`
 * and `rms_error` are in the unit of the output. */
typedef struct oncilla_number_errors {
  size_t size;
  const char* name;      /* belongs to the check */
  double largest;        /* the largest magnitude of the finite numbers in fp32 */
  double max_error;      /* the largest difference between two finite numbers */
  double rms_error;      /* the root mean square of these differences */
  double relative_error; /* max_error / largest: 0.01 is one percent; max_error where that is 0 */
  /* The share, 0 to 1, of the rows (along the last axis) whose largest number is at the same index;
   * negative where no row has two numbers or more. */
  double top1_agreement;
  int64_t overflowed; /* how many numbers are finite in fp32 and infinite or NaN in 16 bits */
  /* How many strings, integers and booleans differ; for such an output the rest is 0. */
  int64_t others_that_differ;
} oncilla_number_errors;

typedef struct oncilla_precision_check oncilla_precision_check;

/* Loads the model in two sessions that differ in precision only, runs both on the inputs, compares
 * the results and closes the sessions. It needs memory for both at once, and takes one run of each
 * and one more for each intermediate value. Inputs are in host memory. ONCILLA_INVALID_ARGUMENT
 * when neither `storage` nor the configuration asks for 16 bits. */
ONCILLA_API oncilla_status* oncilla_precision_check_run(oncilla_runtime* runtime, const char* path,
                                                        const char* const* input_names,
                                                        const oncilla_tensor* const* inputs,
                                                        size_t input_count,
                                                        const oncilla_precision_options* options,
                                                        oncilla_precision_check** check);
ONCILLA_API size_t oncilla_precision_check_output_count(const oncilla_precision_check* check);
/* Intermediate values, in the order of the graph; fewer than were asked for where the graph has
 * fewer. */
ONCILLA_API size_t oncilla_precision_check_inner_count(const oncilla_precision_check* check);
/* Fills as much of `errors` as its size has room for. */
ONCILLA_API oncilla_status* oncilla_precision_check_output(const oncilla_precision_check* check,
                                                           size_t index,
                                                           oncilla_number_errors* errors);
ONCILLA_API oncilla_status* oncilla_precision_check_inner(const oncilla_precision_check* check,
                                                          size_t index,
                                                          oncilla_number_errors* errors);
/* All results as a table. */
ONCILLA_API const char* oncilla_precision_check_text(const oncilla_precision_check* check);
ONCILLA_API void oncilla_precision_check_free(oncilla_precision_check* check);

#ifdef __cplusplus
}
#endif

#endif /* ONCILLA_PRECISION_H_ */
