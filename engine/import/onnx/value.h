// Values in files beside a model: a TensorProto, a SequenceProto or an OptionalProto, as the kind
// of an input or output of the model says.
#pragma once

#include <memory>

#include "engine/import/model_source.h"
#include "engine/import/wire/wire.h"

namespace oncilla {

// The value as TensorInfo::Kind says that it is passed. `info` gives kind, type and what is known
// of the elements' shape; a sequence without elements is of the type given. Throws WireError.
Result<Tensor> OnnxValueFrom(Bytes proto, const TensorInfo& info,
                             const std::shared_ptr<const void>& owner);

// A list of what an optional value of this kind holds, or of nothing. `held` is a tensor or a list;
// invalid for none.
Tensor OptionalOf(const TensorInfo& info, const Tensor& held);

}  // namespace oncilla
