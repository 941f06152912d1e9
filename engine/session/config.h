// Session options as text, as JSON and as TensorFlow's ConfigProto, read and written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text_tree.h"
#include "engine/session/session.h"

namespace oncilla {

// Changes the options that the configuration sets. The form is detected by content: JSON begins
// with '{'; protocol buffers' text format is read as TensorFlow's ConfigProto if it has fields that
// only that message has; binary data are a serialized ConfigProto. Each of its settings that does
// not apply to the engine gets an entry in `notes`. InvalidArgument names line, column and field;
// `options` is then unchanged.
Status ReadSessionConfig(std::string_view bytes, SessionOptions& options,
                         std::vector<std::string>& notes);

// All options that differ from their defaults, in a form that ReadSessionConfig reads.
std::string PrintSessionConfig(const SessionOptions& options, TextForm form);

}  // namespace oncilla
