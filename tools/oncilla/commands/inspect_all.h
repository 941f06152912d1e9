// oncilla inspect --all: all contents of a TensorFlow model's files, for all signatures, without
// compiling for a device.
#pragma once

#include "engine/import/model_source.h"
#include "tools/oncilla/flags.h"

namespace oncilla::tool {

// Prints what a source with has_tf_contents() holds. Signatures that are not supported are listed
// with what is missing; that is no failure.
Status InspectAll(const ModelFlags& model, ModelSource& source, bool json);

}  // namespace oncilla::tool
