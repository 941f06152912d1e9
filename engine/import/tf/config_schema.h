// TensorFlow's session configuration, so that a program may hand over the one it has, as bytes or as
// text: the fields by which a session can be set up, whether or not they mean something here.
#pragma once

#include "engine/import/wire/message_schema.h"

namespace oncilla {

extern const MessageSchema kConfigProtoSchema;

}  // namespace oncilla
