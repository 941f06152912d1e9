// Sparse constants: a file contains only some elements and their positions.
#pragma once

#include "engine/import/tflite/flat.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

// The dense tensor `desc`, with the stored elements `data` at the positions in `sparsity` (the
// schema's SparsityParameters), and zeros elsewhere. DataLoss if they are inconsistent.
Result<Tensor> DensifyTflite(const FlatTable& sparsity, const TensorDesc& desc,
                             std::string_view data);

}  // namespace oncilla
