// TensorFlow's ConfigProto as options of a session.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text_tree.h"
#include "engine/session/session_options.h"

namespace oncilla {

// Parses a serialized ConfigProto. InvalidArgument for other bytes.
Result<TextTree> ReadConfigProto(std::string_view bytes);
// Whether the text of a configuration is a ConfigProto: it has members that only a ConfigProto has.
bool IsConfigProto(const TextTree& text);

// Changes the options that the ConfigProto sets. Each setting that does not apply to the engine
// gets an entry in `notes`. InvalidArgument for values out of range and, in text, for unknown
// names.
Status ApplyConfigProto(const TextTree& config, SessionOptions& options,
                        std::vector<std::string>& notes);

}  // namespace oncilla
