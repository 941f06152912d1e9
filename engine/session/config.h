// Session options as text, as JSON and as TensorFlow's ConfigProto, read and written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text_tree.h"
#include "engine/session/session.h"

namespace oncilla {

// Changes in `options` what the configuration sets. Its form is told by its content: JSON begins
// with '{'; text in the text format of protocol buffers is a ConfigProto of TensorFlow when it has
// fields that only that one has; and what is no text is a serialized ConfigProto. What that sets
// and the engine has no use for is told in `notes`, one each. InvalidArgument with line, column and
// the field, and nothing is changed.
Status ReadSessionConfig(std::string_view bytes, SessionOptions& options,
                         std::vector<std::string>& notes);

// Everything that is not the default, readable by ReadSessionConfig.
std::string PrintSessionConfig(const SessionOptions& options, TextForm form);

}  // namespace oncilla
