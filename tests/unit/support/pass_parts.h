// What a test of passes needs: a CPU to compute with, one pass or a list of them run on a graph,
// and the graphs before and after compared on the same feeds.
#pragma once

#include <gtest/gtest.h>

#include "engine/graph/print.h"
#include "engine/passes/pass.h"
#include "tests/unit/support/run_graph.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla::testing {

class PassTest : public ::testing::Test {
 protected:
  // The graph after the passes, verified after each. Nodes are placed on the CPU, as device passes
  // want them.
  Graph After(Graph graph, std::vector<Pass> passes) {
    for (uint32_t n = 0; n < graph.nodes().size(); ++n) graph.SetDevice(NodeId{n}, 0);
    PipelineOptions options;
    options.verify = true;
    auto out = RunPasses(std::move(graph), passes, PassContext{parts_.devices()}, options);
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) std::abort();  // every test needs it, and would only crash later
    return *std::move(out);
  }

  // Both graphs computed by plain code on seeded numbers in [-3, 3): equal shapes, and
  // |a - b| <= tolerance * (1 + |b|) throughout.
  void ExpectSameResults(const Graph& before, const Graph& after, double tolerance) {
    std::map<std::string, Tensor> feeds;
    uint32_t state = 7;
    for (const NamedValue& input : before.inputs()) {
      auto tensor = Tensor::Allocate(before.fact(input.value).desc());
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      for (float& v : tensor->MutableAs<float>()) {
        state = state * 1664525u + 1013904223u;
        v = static_cast<float>(state >> 8) / (1 << 24) * 6 - 3;
      }
      feeds[input.name] = *tensor;
    }
    auto a = RunGraph(before, feeds), b = RunGraph(after, feeds);
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(b.ok()) << b.status();
    ASSERT_EQ(a->size(), b->size());
    for (size_t i = 0; i < a->size(); ++i) {
      ASSERT_EQ((*a)[i].desc(), (*b)[i].desc());
      if ((*a)[i].dtype() != DType::kF32) {
        EXPECT_TRUE(std::ranges::equal((*a)[i].bytes(), (*b)[i].bytes()));
        continue;
      }
      const auto x = (*a)[i].As<float>(), y = (*b)[i].As<float>();
      for (size_t k = 0; k < x.size(); ++k) {
        ASSERT_NEAR(x[k], y[k], tolerance * (1 + std::abs(x[k]))) << "output " << i << " at " << k;
      }
    }
  }

  SessionParts parts_;
};

// The names of a graph's ops, in order.
inline std::string OpsOf(const Graph& graph) {
  std::string out;
  for (const Node& node : graph.nodes())
    out += (out.empty() ? "" : " ") + std::string(node.op->name);
  return out;
}

inline Tensor Scalar(float value) {
  return Tensor::Of<float>(DType::kF32, {}, std::vector<float>{value});
}

}  // namespace oncilla::testing
