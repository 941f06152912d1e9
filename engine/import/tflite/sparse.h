// Sparse constants, of which a file holds only some elements and where they stand.
#pragma once

#include "engine/import/tflite/flat.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

// The whole tensor: `desc` with the stored elements `data` where `sparsity` (the schema's
// SparsityParameters) says, and zeros elsewhere. DataLoss where they do not belong together.
Result<Tensor> DensifyTflite(const FlatTable& sparsity, const TensorDesc& desc,
                             std::string_view data);

}  // namespace oncilla
