// TensorFlow's ConfigProto as options of a session.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text_tree.h"
#include "engine/session/session_options.h"

namespace oncilla {

// A serialized ConfigProto. InvalidArgument when the bytes are none.
Result<TextTree> ReadConfigProto(std::string_view bytes);
// The text of a configuration is that of a ConfigProto: it has members that only that one has.
bool IsConfigProto(const TextTree& text);

// Changes in `options` what the ConfigProto sets. What it sets and the engine has no use for is
// told in `notes`, one each. InvalidArgument for values out of range and, in text, for unknown
// names.
Status ApplyConfigProto(const TextTree& config, SessionOptions& options,
                        std::vector<std::string>& notes);

}  // namespace oncilla
