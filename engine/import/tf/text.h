// TensorFlow's models in text form (.pbtxt): converts them to the bytes of the binary form, for the
// same readers. The text is parsed by the schemas in text_schema.h.
#pragma once

#include <string>
#include <string_view>

#include "engine/import/tf/saved_model.h"

namespace oncilla {

// Detects the kind by the first field of a text; kUnknown for text of neither kind.
TfFileKind DetectTfText(std::string_view text);

// DataLoss names file, line and column. Fields without effect on inference are skipped, as in the
// reader of the binary form; an unknown field of a node, an attribute or a tensor is refused, since
// it may be a misspelling of one that matters. Unimplemented above 512 MiB.
Result<std::string> TfTextToBytes(std::string_view text, TfFileKind kind, const std::string& path);

}  // namespace oncilla
