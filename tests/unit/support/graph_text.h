// Small graphs for tests of passes: written node by node, run through passes, and computed before
// and after with the CPU's plain code.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/passes/pass.h"

namespace oncilla::testing {

class GraphText {
 public:
  GraphText() : graph_(OpSet::Builtin()) {}

  ValueId Input(const std::string& name, const PartialShape& shape, DType dtype = DType::kF32) {
    return graph_.AddInput(name, Fact::Of(dtype, shape));
  }
  // A constant of made-up numbers, the same on every machine; all above zero.
  ValueId Weights(const Shape& shape);
  ValueId Floats(const Shape& shape, const std::vector<float>& values) {
    return graph_.AddConstant(Tensor::Of<float>(DType::kF32, shape, values));
  }
  ValueId Ints(const std::vector<int64_t>& values) {
    return graph_.AddConstant(Tensor::Int64s(values));
  }
  ValueId Strings(const Shape& shape, std::vector<std::string> values) {
    return graph_.AddConstant(Tensor::Strings(shape, std::move(values)));
  }
  template <class T>
  ValueId Constant(DType dtype, const Shape& shape, const std::vector<T>& values) {
    return graph_.AddConstant(Tensor::Of<T>(dtype, shape, values));
  }
  // Nodes are named by their op and number. A node that cannot be added fails the test.
  std::vector<ValueId> AddAll(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {});
  ValueId Add(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    const auto out = AddAll(op, std::move(inputs), std::move(attrs));
    return out.empty() ? kNoValue : out[0];
  }
  ValueId Transpose(ValueId x, const std::vector<int64_t>& order) {
    return Add("Transpose", {x, Ints(order)});
  }
  ValueId ToLast(ValueId x) { return Transpose(x, {0, 2, 3, 1}); }
  ValueId ToFirst(ValueId x) { return Transpose(x, {0, 3, 1, 2}); }
  // As the ONNX importer writes a convolution: channels first, transposes around it.
  ValueId ConvFirst(ValueId x, int64_t in, int64_t out, int64_t kernel);
  void Output(const std::string& name, ValueId id) { graph_.AddOutput(name, id); }

  const Graph& graph() const { return graph_; }
  const PartialShape& shape(ValueId id) const { return graph_.fact(id).shape; }

 private:
  Graph graph_;
  int nodes_ = 0;
  uint32_t seed_ = 1;
};

int CountOps(const Graph& graph, std::string_view op);

// Numbers in [-1, 1) for every input; an unknown size becomes 2, a small batch.
std::map<std::string, Tensor> RandomFeeds(const Graph& graph, uint32_t seed);

// The graph after these passes, each verified. Fails the test when a pass fails or the passes do
// not terminate.
Graph RunOnly(const Graph& graph, std::span<const Pass> passes);
// The same, and fails the test when the outputs of both graphs for random inputs do not agree.
Graph RunAndCompare(const Graph& graph, std::span<const Pass> passes, double tolerance = 1e-5);

}  // namespace oncilla::testing
