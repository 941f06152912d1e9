// Whether a graph treats the samples of a batch independently, so that a run may be split.
//
// The batch is the leading axis of those inputs whose leading size is open. The graph is examined
// with two sizes of it: every value must either not depend on the batch at all or have one row per
// sample, and every op on such a value must be known to leave axis 0 alone. Everything else is
// refused, with the node and the reason, since wrong numbers would be worse.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/compile/compiled_graph.h"

namespace oncilla {

struct BatchAxis {
  int64_t size = 0;          // of the feeds looked at
  std::vector<bool> inputs;  // per input of the graph: has a row per sample
};

// The leading size that the feeds with an open leading axis share. FailedPrecondition when no input
// has one or they differ.
Result<BatchAxis> FindBatch(const CompiledGraph& compiled, std::span<const Tensor> feeds);

// FailedPrecondition, naming the node, when rows of the outputs may depend on other rows of the
// inputs than their own. `size` of the axis must be at least 2.
Status CheckBatchIndependent(const CompiledGraph& compiled, Device& cpu,
                             std::span<const Tensor> feeds, const BatchAxis& batch);

// Rows [first, first + count) of the inputs that have the batch, the others whole. No bytes are
// copied.
std::vector<Tensor> RowsOf(std::span<const Tensor> feeds, const BatchAxis& batch, int64_t first,
                           int64_t count);
// Concatenates the results of the parts in order. Each part is a list of results, each of which has
// rows.
Result<std::vector<Tensor>> JoinRows(std::span<const std::vector<Tensor>> parts);

// The largest number below `size` for which `fits` returns true; 0: none. Calls it twice when
// `guess` is the answer. Stops at the first failure of `fits`.
Result<int64_t> LargestThatFits(int64_t size, const std::function<Result<bool>(int64_t)>& fits,
                                int64_t guess = 0);

}  // namespace oncilla
