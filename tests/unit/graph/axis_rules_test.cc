// The axis rules in ops' rows (op_traits.h), tested on every case of tests/cases: a node that may
// be reordered must compute the same with its axes in another order, and one that treats samples
// independently must compute the same in parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "engine/compile/batch_split.h"
#include "engine/ops/axes.h"
#include "engine/passes/reorder.h"
#include "engine/run/executor.h"
#include "tests/case_runner/case_file.h"
#include "tests/unit/support/run_graph.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla {
namespace {

using testing::Agree;
using testing::Case;

std::vector<Case> AllCases(const OpSet& ops) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ONCILLA_SOURCE_DIR "/tests/cases")) {
    if (entry.path().extension() == ".case") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Case> cases;
  for (const std::string& path : paths) {
    auto read = testing::ReadCases(path, ops);
    EXPECT_TRUE(read.ok()) << read.status();
    for (Case& c : *read) {
      const OpTraits& traits = ops.Find(c.op)->traits;
      bool strings = false;
      for (const auto& input : c.inputs) {
        strings |= !input.absent && input.value.dtype() == DType::kString;
      }
      const bool plain = !strings && !traits.has_effects && !traits.is_random &&
                         !traits.data_dependent && !traits.host_only;
      if (plain && !c.error && !c.inputs.empty() && !c.inputs[0].absent) {
        cases.push_back(std::move(c));
      }
    }
  }
  return cases;
}

std::string InputName(size_t i) { return "in" + std::to_string(i); }

// The case as a graph. Inputs for which `fixed` is true are constants, and so are those that fix
// shapes; `open` ones have an unknown leading size.
struct CaseGraph {
  Graph graph{OpSet::Builtin()};
  std::map<std::string, Tensor> feeds;
  std::vector<Tensor> feed_list;
};
Result<CaseGraph> GraphOf(const Case& c, const std::vector<bool>& fixed, bool open) {
  CaseGraph out;
  const OpTraits& traits = out.graph.ops().Find(c.op)->traits;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i].absent) {
      inputs.push_back(kNoValue);
      continue;
    }
    const Tensor& value = c.inputs[i].value;
    if (fixed[i] || traits.IsPlanInput(i)) {
      inputs.push_back(out.graph.AddConstant(value));
      continue;
    }
    PartialShape shape(value.shape());
    if (open) {
      std::vector<Dim> dims(shape.dims().begin(), shape.dims().end());
      dims[0] = Dim();
      shape = PartialShape(std::move(dims));
    }
    inputs.push_back(out.graph.AddInput(InputName(i), Fact::Of(value.dtype(), shape)));
    out.feeds[InputName(i)] = value;
    out.feed_list.push_back(value);
  }
  ONCILLA_ASSIGN(const auto outputs, out.graph.AddNode("node", c.op, c.attrs, inputs));
  for (size_t i = 0; i < outputs.size(); ++i) out.graph.AddOutput(StrCat("out", i), outputs[i]);
  return out;
}

// The order of the remaining axes when some are dropped.
AxisOrder Without(const AxisOrder& order, const std::vector<int>& dropped) {
  AxisOrder left;
  for (int axis : order) {
    if (std::find(dropped.begin(), dropped.end(), axis) != dropped.end()) continue;
    left.push_back(axis - static_cast<int>(std::count_if(dropped.begin(), dropped.end(),
                                                         [&](int d) { return d < axis; })));
  }
  return left;
}

// The graph with its node on axes in this order, between transposes.
Result<Graph> Reordered(const Graph& graph, const FreeOrder& free, const AxisOrder& order) {
  const NodeId id{0};
  const Node& node = graph.node(id);
  Patch patch(graph);
  std::vector<ValueId> inputs(node.inputs.begin(), node.inputs.end());
  for (int i : free.broadcast) {  // with leading axes of size 1, as broadcasting has them
    const PartialShape& shape = graph.fact(inputs[i]).shape;
    std::vector<int64_t> sizes(static_cast<size_t>(free.rank - shape.rank()), 1);
    for (const Dim& d : shape.dims()) sizes.push_back(d.size);
    ONCILLA_ASSIGN(
        inputs[i],
        patch.Add("Reshape", {}, {inputs[i], patch.AddConstant(Tensor::Int64s(sizes))}, {id}));
  }
  std::vector<int> all = free.carried;
  all.insert(all.end(), free.broadcast.begin(), free.broadcast.end());
  for (int i : all) {
    ONCILLA_ASSIGN(inputs[i], AddTranspose(patch, inputs[i], order, {id}));
  }
  ONCILLA_ASSIGN(const auto outputs, AddReordered(graph, id, order, inputs, patch));
  const AxisOrder back = Inverse(Without(order, free.dropped));
  for (size_t i = 0; i < outputs.size(); ++i) {
    ONCILLA_ASSIGN(const ValueId y, AddTranspose(patch, outputs[i], back, {id}));
    ONCILLA_TRY(patch.Replace(node.outputs[i], y));
  }
  return patch.Apply();
}

void ExpectSame(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const Case& c,
                std::string_view what) {
  ASSERT_EQ(a.size(), b.size()) << c.Where();
  for (size_t i = 0; i < a.size(); ++i) {
    const Status same = Agree(a[i], b[i], std::max(c.tolerance, 1e-4));
    EXPECT_TRUE(same.ok()) << c.Where() << ": " << what << ": " << same;
  }
}

TEST(AxisRules, NodesComputeTheSameOnReorderedAxes) {
  std::set<std::string> ops;
  for (const Case& c : AllCases(*OpSet::Builtin())) {
    const auto made = GraphOf(c, std::vector<bool>(c.inputs.size()), /*open=*/false);
    ASSERT_TRUE(made.ok()) << c.Where() << ": " << made.status();
    const Graph& graph = made->graph;
    const auto free = FreeOrderOf(graph, graph.node(NodeId{0}));
    if (!free || free->rank < 2) continue;
    const auto whole = testing::RunGraph(graph, made->feeds);
    ASSERT_TRUE(whole.ok()) << c.Where() << ": " << whole.status();
    AxisOrder rotated = SameOrder(free->rank), reversed = rotated;
    std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
    std::reverse(reversed.begin(), reversed.end());
    for (const AxisOrder& order : {rotated, reversed}) {
      const auto changed = Reordered(graph, *free, order);
      ASSERT_TRUE(changed.ok()) << c.Where() << ": " << changed.status();
      const auto result = testing::RunGraph(*changed, made->feeds);
      ASSERT_TRUE(result.ok()) << c.Where() << ": " << result.status();
      ExpectSame(*result, *whole, c, "on reordered axes");
    }
    ops.insert(c.op);
  }
  EXPECT_GE(ops.size(), 120u) << "too few ops have cases that can be reordered";
}

TEST(AxisRules, SamplesAreComputedOneByOne) {
  SessionParts parts;
  std::set<std::string> ops;
  for (const Case& c : AllCases(*OpSet::Builtin())) {
    const Tensor& x = c.inputs[0].value;
    if (x.shape().rank() < 1 || x.shape()[0] < 2 || x.elements() == 0) continue;
    // Rows in input 0 alone, and in all that are as long.
    for (const bool many : {false, true}) {
      std::vector<bool> fixed(c.inputs.size());
      bool more = false;
      for (size_t i = 1; i < c.inputs.size(); ++i) {
        if (c.inputs[i].absent) continue;
        const Shape shape = c.inputs[i].value.shape();
        fixed[i] = !many || shape.rank() < 1 || shape[0] != x.shape()[0];
        more |= !fixed[i] && !OpSet::Builtin()->Find(c.op)->traits.IsPlanInput(i);
      }
      if (many && !more) continue;
      auto made = GraphOf(c, fixed, /*open=*/true);
      if (!made.ok() || made->feed_list.empty()) continue;
      auto compiled =
          Compile(std::move(made->graph), parts.devices(), parts.names(), *parts.constants, {});
      ASSERT_TRUE(compiled.ok()) << c.Where() << ": " << compiled.status();
      const auto batch = FindBatch(**compiled, made->feed_list);
      if (!batch.ok()) continue;
      if (!CheckBatchIndependent(**compiled, *parts.cpu, made->feed_list, *batch).ok()) continue;
      Executor executor(*compiled, parts.devices(), parts.pools(), parts.owner, {});
      const auto whole = executor.Run(made->feed_list, {});
      ASSERT_TRUE(whole.ok()) << c.Where() << ": " << whole.status();
      std::vector<std::vector<Tensor>> pieces;
      for (int64_t row = 0; row < batch->size; ++row) {
        auto piece = executor.Run(RowsOf(made->feed_list, *batch, row, 1), {});
        ASSERT_TRUE(piece.ok()) << c.Where() << ": " << piece.status();
        pieces.push_back(*std::move(piece));
      }
      const auto joined = JoinRows(pieces);
      ASSERT_TRUE(joined.ok()) << c.Where() << ": " << joined.status();
      ExpectSame(*joined, *whole, c, "in parts");
      ops.insert(c.op);
    }
  }
  EXPECT_GE(ops.size(), 120u) << "too few ops have cases with independent samples";
}

}  // namespace
}  // namespace oncilla
