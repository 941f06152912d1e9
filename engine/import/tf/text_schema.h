// The messages of TensorFlow's models in text form: names and numbers of fields from graph.proto,
// node_def.proto, function.proto, attr_value.proto, tensor.proto, tensor_shape.proto, types.proto,
// op_def.proto, meta_graph.proto, saver.proto, saved_model.proto and saved_object_graph.proto. Text
// that is read with them gives the bytes that the readers of the binary form read.
//
// Maps are lists of entries, which have the same spelling and encoding. Fields that the engine
// never reads are left out. Messages that define the computation (nodes, attributes, tensors) are
// strict: an unknown field in them is refused.
#pragma once

#include "engine/import/wire/message_schema.h"

namespace oncilla {

extern const MessageSchema kGraphDefSchema;
extern const MessageSchema kSavedModelSchema;

}  // namespace oncilla
