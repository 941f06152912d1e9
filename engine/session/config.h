// Session options as text, as JSON and as TensorFlow's ConfigProto, read and written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/text_tree.h"
#include "engine/session/session.h"

namespace oncilla {

// Changes in `options` what the configuration sets. Its content tells its form: JSON begins with
// '{'; text in the text format of protocol buffers is TensorFlow's ConfigProto when it has fields
// that only that message has; binary data are a serialized ConfigProto. Each of its settings that
// the engine has no use for gets an entry in `notes`. InvalidArgument names line, column and field;
// `options` is then unchanged.
Status ReadSessionConfig(std::string_view bytes, SessionOptions& options,
                         std::vector<std::string>& notes);

// Everything that is not the default, readable by ReadSessionConfig.
std::string PrintSessionConfig(const SessionOptions& options, TextForm form);

}  // namespace oncilla
