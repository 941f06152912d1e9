/* Oncilla's C interface: graphs built in code. Included by oncilla.h. */
#ifndef ONCILLA_GRAPH_H_
#define ONCILLA_GRAPH_H_

#include <oncilla/oncilla.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Graphs built in code -------------------------------------------------------------------- */

/* Builds a TensorFlow graph node by node. A null name is made from the op; a name that is taken
 * already gets a number appended. `tensor` is set to the name of the node's first output ("add:0");
 * the text belongs to the graph. Not thread-safe. */
typedef struct oncilla_graph oncilla_graph;
ONCILLA_API oncilla_status* oncilla_graph_create(oncilla_graph** graph);
ONCILLA_API void oncilla_graph_free(oncilla_graph* graph);
ONCILLA_API oncilla_status* oncilla_graph_constant(oncilla_graph* graph, const char* name,
                                                   const oncilla_tensor* value,
                                                   const char** tensor);
/* A size of -1 stands for one that is not known. */
ONCILLA_API oncilla_status* oncilla_graph_placeholder(oncilla_graph* graph, const char* name,
                                                      oncilla_dtype dtype, const int64_t* dims,
                                                      size_t rank, const char** tensor);
/* Adds any op of TensorFlow, with the attributes that were set since the last one. Attributes for
 * types that follow from the inputs need not be set. `dtype` is the type of the first output; 0
 * means that of the first input. */
ONCILLA_API oncilla_status* oncilla_graph_op(oncilla_graph* graph, const char* op, const char* name,
                                             const char* const* inputs, size_t input_count,
                                             oncilla_dtype dtype, const char** tensor);
ONCILLA_API oncilla_status* oncilla_graph_attr_int(oncilla_graph* graph, const char* name,
                                                   int64_t value);
ONCILLA_API oncilla_status* oncilla_graph_attr_float(oncilla_graph* graph, const char* name,
                                                     float value);
ONCILLA_API oncilla_status* oncilla_graph_attr_bool(oncilla_graph* graph, const char* name,
                                                    int value);
ONCILLA_API oncilla_status* oncilla_graph_attr_type(oncilla_graph* graph, const char* name,
                                                    oncilla_dtype value);
ONCILLA_API oncilla_status* oncilla_graph_attr_string(oncilla_graph* graph, const char* name,
                                                      const char* value);
ONCILLA_API oncilla_status* oncilla_graph_attr_ints(oncilla_graph* graph, const char* name,
                                                    const int64_t* values, size_t count);
ONCILLA_API oncilla_status* oncilla_graph_attr_floats(oncilla_graph* graph, const char* name,
                                                      const float* values, size_t count);
ONCILLA_API oncilla_status* oncilla_graph_attr_strings(oncilla_graph* graph, const char* name,
                                                       const char* const* values, size_t count);
ONCILLA_API oncilla_status* oncilla_graph_attr_types(oncilla_graph* graph, const char* name,
                                                     const oncilla_dtype* values, size_t count);
/* A size of -1 stands for one that is not known. */
ONCILLA_API oncilla_status* oncilla_graph_attr_shape(oncilla_graph* graph, const char* name,
                                                     const int64_t* dims, size_t rank);
ONCILLA_API oncilla_status* oncilla_graph_attr_tensor(oncilla_graph* graph, const char* name,
                                                      const oncilla_tensor* value);
/* Opens a device scope: the nodes that are added until it is popped are stored for this device,
 * merged with the scope around it. "" stands for no device. */
ONCILLA_API oncilla_status* oncilla_graph_push_device(oncilla_graph* graph, const char* device);
ONCILLA_API oncilla_status* oncilla_graph_pop_device(oncilla_graph* graph);
/* Writes a serialized GraphDef. */
ONCILLA_API oncilla_status* oncilla_graph_save(const oncilla_graph* graph, const char* path);
/* Like oncilla_model_load. The device scopes are the stored devices of the nodes. */
ONCILLA_API oncilla_status* oncilla_model_load_graph(oncilla_session* session,
                                                     const oncilla_graph* graph,
                                                     const oncilla_load_options* options,
                                                     oncilla_model** model);

#ifdef __cplusplus
}
#endif

#endif /* ONCILLA_GRAPH_H_ */
