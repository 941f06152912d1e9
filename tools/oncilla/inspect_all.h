// oncilla inspect --all: everything that a TensorFlow model's files hold, of all signatures,
// without compiling for a device.
#pragma once

#include "engine/import/model_source.h"
#include "tools/oncilla/flags.h"

namespace oncilla::tool {

// True when the model has more to show than its signatures: SavedModels and GraphDefs.
bool HasTfContents(const ModelSource& source);

// Prints it. Signatures that are not supported are listed with what is missing; that is no failure.
Status InspectAll(const ModelFlags& model, ModelSource& source, bool json);

}  // namespace oncilla::tool
