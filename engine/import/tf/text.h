// TensorFlow's models in text form (.pbtxt): turned into the bytes of the binary form, which the
// same readers take. The text is read by protobuf with message definitions of our own
// (proto/tensorflow_text.proto).
#pragma once

#include <string>
#include <string_view>

#include "engine/import/tf/saved_model.h"

namespace oncilla {

// Tells by the first field of a text; kUnknown for text of neither kind.
TfFileKind DetectTfText(std::string_view text);

// DataLoss says file, line and column. Fields that mean nothing to inference are skipped, as the
// reader of the binary form skips them; an unknown field of a node, an attribute or a tensor is
// refused, since it may be a misspelling of one that matters. Unimplemented above 512 MiB.
Result<std::string> TfTextToBytes(std::string_view text, TfFileKind kind, const std::string& path);

}  // namespace oncilla
