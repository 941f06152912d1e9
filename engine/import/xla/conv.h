// XLA's convolution: any order of axes, strides, padding that may crop, dilation of the filter and
// of the input (a transposed convolution), groups of channels or of the batch.
#pragma once

#include "engine/import/lowering/lowering.h"

namespace oncilla {

struct XlaConvolution {
  int64_t input_batch = 0, input_feature = 0;
  int64_t filter_input = 0, filter_output = 0;
  int64_t output_batch = 0, output_feature = 0;
  std::vector<int64_t> input_spatial, filter_spatial, output_spatial;
  // One per spatial axis. Empty lists mean ones, or zeros.
  std::vector<int64_t> strides, low, high, input_dilation, filter_dilation, reversal;
  int64_t feature_groups = 1, batch_groups = 1;
};

Result<ValueId> LowerXlaConv(Lowering& b, ValueId x, ValueId filter, XlaConvolution conv, DType to);

}  // namespace oncilla
