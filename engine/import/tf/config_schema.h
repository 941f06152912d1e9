// TensorFlow's session configuration, so that a program may pass the one it has, as bytes or as
// text: all fields that configure a session, whether or not the engine uses them.
#pragma once

#include "engine/import/wire/message_schema.h"

namespace oncilla {

extern const MessageSchema kConfigProtoSchema;

}  // namespace oncilla
