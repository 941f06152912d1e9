// Values in files beside a model: a TensorProto, a SequenceProto or an OptionalProto, depending on
// the kind of the model's input or output.
#pragma once

#include <memory>

#include "engine/import/model_source.h"
#include "engine/import/wire/wire.h"

namespace oncilla {

// The value, in the form that TensorInfo::Kind describes. `info` gives kind, type and what is known
// of the elements' shape; an empty sequence has the type of `info`. Throws WireError.
Result<Tensor> OnnxValueFrom(Bytes proto, const TensorInfo& info,
                             const std::shared_ptr<const void>& owner);

// A list with the contents of an optional value of this kind, or an empty list. `held` is a tensor
// or a list; invalid for none.
Tensor OptionalOf(const TensorInfo& info, const Tensor& held);

}  // namespace oncilla
