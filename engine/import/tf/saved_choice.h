// Chooses among the functions that a SavedModel has under one name: tf.function traces a function
// again for each kind of arguments, and keeps all traces.
#pragma once

#include <span>
#include <string>

#include "engine/import/model_source.h"

namespace oncilla {

struct SavedTrace {
  Signature signature;   // with the trace's name in the library as key
  std::string literals;  // arguments that are not tensors, as "True, 3"; may be empty
};

// The common signature of all traces: the parts of types and shapes in which they agree.
Signature CommonSignature(const std::string& key, std::span<const SavedTrace> traces);

// The trace for the feeds of `asked`: with the same argument names, with types and shapes that are
// compatible as far as asked.fed tells, and with the fetched results. Unimplemented while several
// match and more may become known of the feeds; InvalidArgument when none matches, or several do
// with everything known. Both list the traces.
Result<const Signature*> ChooseTrace(const std::string& key, std::span<const SavedTrace> traces,
                                     const ImportRequest& asked);

}  // namespace oncilla
