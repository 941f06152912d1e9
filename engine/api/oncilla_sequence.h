/* Sequences and optional values, which ONNX models take and give beside tensors. Part of oncilla.h.
 *
 * Both are handles of type oncilla_tensor with one axis, the number of elements, and no data; they
 * live in host memory. Runs take and give them by name (oncilla_model_run,
 * oncilla_model_run_async), callables by position (oncilla_callable_run, prefetchers); variables,
 * devices and runs on the application's OpenCL objects take tensors only. */
#ifndef ONCILLA_SEQUENCE_H_
#define ONCILLA_SEQUENCE_H_

#include <oncilla/oncilla.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A sequence of tensors in host memory, all of type `dtype`, whose shapes may differ. */
ONCILLA_API oncilla_status* oncilla_sequence_create(oncilla_dtype dtype,
                                                    const oncilla_tensor* const* elements,
                                                    size_t count, oncilla_tensor** sequence);
/* An optional value: a tensor in host memory or a sequence, or none where `value` is null. */
ONCILLA_API oncilla_status* oncilla_optional_create(oncilla_dtype dtype,
                                                    const oncilla_tensor* value,
                                                    oncilla_tensor** optional);
/* Returns 1 for a sequence and for an optional value, 0 for a tensor. */
ONCILLA_API int oncilla_tensor_is_sequence(const oncilla_tensor* tensor);
/* Returns 1 where an optional value is there; an optional tensor is then element 0, and the
 * elements of an optional sequence are its own. */
ONCILLA_API int oncilla_optional_has_value(const oncilla_tensor* optional);
/* The number of elements; 0 for a tensor. */
ONCILLA_API size_t oncilla_sequence_size(const oncilla_tensor* sequence);
/* An element, which shares the sequence's memory. The handle is the caller's. */
ONCILLA_API oncilla_status* oncilla_sequence_element(const oncilla_tensor* sequence, size_t index,
                                                     oncilla_tensor** element);

#ifdef __cplusplus
}
#endif

#endif /* ONCILLA_SEQUENCE_H_ */
