// Session options as text, as JSON and as TensorFlow's ConfigProto, read and written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/session/session.h"

namespace oncilla {

// Changes in `options` what the configuration sets. Its form is told by its content: JSON begins
// with '{', the text form of proto/config.proto is text, and anything else is a serialized
// ConfigProto of TensorFlow. What that sets and the engine has no use for is told in `notes`, one
// each. InvalidArgument with line and column, or with the field and its value; Unimplemented for a
// field whose meaning would be lost (virtual devices).
Status ReadSessionConfig(std::string_view bytes, SessionOptions& options,
                         std::vector<std::string>& notes);

enum class ConfigForm { kText, kJson };
// Everything that is not the default, readable by ReadSessionConfig.
std::string PrintSessionConfig(const SessionOptions& options, ConfigForm form);

}  // namespace oncilla
