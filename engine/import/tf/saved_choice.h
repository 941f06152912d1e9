// Choosing one of the functions that a SavedModel has under one name: tf.function traces a function
// anew for each kind of arguments, and keeps all traces.
#pragma once

#include <span>
#include <string>

#include "engine/import/model_source.h"

namespace oncilla {

struct SavedTrace {
  Signature signature;   // by the trace's name in the library
  std::string literals;  // arguments that are no tensors, as "True, 3"; may be empty
};

// What all traces take and give: what they have alike of types and shapes.
Signature CommonSignature(const std::string& key, std::span<const SavedTrace> traces);

// The one whose arguments are what `asked` feeds: the same names, of types and shapes that fit as
// far as asked.fed says, and the results that are fetched. Unimplemented while several fit and more
// may be known of what is fed; InvalidArgument when none fits, or several do whatever is known.
// Both list them.
Result<const Signature*> ChooseTrace(const std::string& key, std::span<const SavedTrace> traces,
                                     const ImportRequest& asked);

}  // namespace oncilla
