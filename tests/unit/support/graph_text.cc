// Small graphs for tests of passes.
#include "tests/unit/support/graph_text.h"

#include "engine/graph/print.h"
#include "engine/graph/verify.h"
#include "tests/case_runner/case_file.h"
#include "tests/unit/support/run_graph.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla::testing {
namespace {

uint32_t Next(uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

}  // namespace

ValueId GraphText::Weights(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& v : values) v = static_cast<float>(Next(seed_) % 1000 + 1) / 1000;
  return Floats(shape, values);
}

std::vector<ValueId> GraphText::AddAll(std::string_view op, std::vector<ValueId> inputs,
                                       AttrMap attrs) {
  std::string name = StrCat(op, ++nodes_);
  auto out = graph_.AddNode(std::move(name), op, std::move(attrs), std::move(inputs));
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *out : std::vector<ValueId>();
}

ValueId GraphText::ConvFirst(ValueId x, int64_t in, int64_t out, int64_t kernel) {
  const ValueId filter = Transpose(Weights({out, in, kernel, kernel}), {2, 3, 1, 0});
  const int64_t pad = kernel / 2;
  return ToFirst(Add("Conv", {ToLast(x), filter, Weights({out})},
                     {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}}));
}

int CountOps(const Graph& graph, std::string_view op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op->name == op;
  return count;
}

std::map<std::string, Tensor> RandomFeeds(const Graph& graph, uint32_t seed) {
  std::map<std::string, Tensor> feeds;
  for (const NamedValue& input : graph.inputs()) {
    const Fact& fact = graph.fact(input.value);
    Shape shape;
    for (const Dim& dim : fact.shape.dims()) shape.push_back(dim.known() ? dim.size : 2);
    Tensor tensor = Tensor::Allocate({fact.dtype, shape}).value();
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const uint32_t number = Next(seed);
      if (fact.dtype == DType::kF32) {
        tensor.MutableAs<float>()[i] = static_cast<float>(number % 2000) / 1000 - 1;
      } else if (fact.dtype == DType::kBool) {
        tensor.MutableAs<bool>()[i] = number % 2 == 1;
      } else {
        tensor.MutableAs<int64_t>()[i] = number % 100;
      }
    }
    feeds.emplace(input.name, std::move(tensor));
  }
  return feeds;
}

Graph RunOnly(const Graph& graph, std::span<const Pass> passes) {
  SessionParts session;
  PipelineOptions options;
  options.verify = true;
  auto after = RunPasses(graph, passes, PassContext{session.devices()}, options);
  EXPECT_TRUE(after.ok()) << after.status();
  if (!after.ok()) return graph;
  // The rounds are bounded; reaching the bound means that two passes undo each other.
  int again = 0;
  options.observe = [&](std::string_view, const Graph&) { ++again; };
  EXPECT_TRUE(RunPasses(*after, passes, PassContext{session.devices()}, options).ok());
  EXPECT_EQ(again, 0) << "the passes do not terminate:\n" << Print(*after);
  return *std::move(after);
}

Graph RunAndCompare(const Graph& graph, std::span<const Pass> passes, double tolerance) {
  Graph after = RunOnly(graph, passes);
  const auto feeds = RandomFeeds(graph, 7);
  const auto expected = RunGraph(graph, feeds), actual = RunGraph(after, feeds);
  EXPECT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(actual.ok()) << actual.status() << '\n' << Print(after);
  if (!expected.ok() || !actual.ok()) return after;
  for (size_t i = 0; i < expected->size(); ++i) {
    const Status agree = Agree((*actual)[i], (*expected)[i], tolerance);
    EXPECT_TRUE(agree.ok()) << agree << "\nbefore:\n" << Print(graph) << "after:\n" << Print(after);
  }
  return after;
}

}  // namespace oncilla::testing
