// The messages of TensorFlow's models in text form: names and numbers of fields after graph.proto,
// node_def.proto, function.proto, attr_value.proto, tensor.proto, tensor_shape.proto, types.proto,
// op_def.proto, meta_graph.proto, saver.proto, saved_model.proto and saved_object_graph.proto. Text
// that is read with them gives the bytes that the readers of the binary form take.
//
// Maps are lists of entries, which are spelled and stored the same. Fields that the engine never
// reads are left out. What says what is computed (nodes, attributes, tensors) is strict: there an
// unknown field is refused.
#pragma once

#include "engine/import/wire/message_schema.h"

namespace oncilla {

extern const MessageSchema kGraphDefSchema;
extern const MessageSchema kSavedModelSchema;

}  // namespace oncilla
