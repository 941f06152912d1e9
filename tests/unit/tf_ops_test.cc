// Every TensorFlow op that has a row, against what TensorFlow itself computed: the cases of
// testdata/tensorflow/ops.pb (see tests/models/make_tensorflow_cases.py), imported once with
// nothing known of the sizes and once with the sizes that are fed.
#include <gtest/gtest.h>

#include <set>

#include "engine/base/file.h"
#include "engine/graph/verify.h"
#include "engine/import/tf_functions.h"
#include "engine/import/tf_import.h"
#include "engine/import/tf_lowering.h"
#include "tests/case_runner/case_file.h"
#include "tests/unit/run_graph.h"

namespace oncilla {
namespace {

const std::string kCases = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/ops.pb";

struct TfCase {
  std::string name;
  std::map<std::string, Tensor> feeds;  // by the placeholder's name
  std::vector<Tensor> expected;
};

class TfOps : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto file = MappedFile::Open(kCases);
    ASSERT_TRUE(file.ok()) << file.status();
    auto graph = TfGraph::Parse((*file)->text(), {}, "ops.pb", *file);
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = std::move(*graph);
    std::map<std::string, TfCase> cases;
    for (const TfNode& node : graph_->main().nodes) {
      const std::string path(node.name);
      const size_t slash = path.find('/');
      const std::string name = path.substr(0, slash), leaf = path.substr(slash + 1);
      const bool feed = leaf.substr(0, 4) == "feed", expect = leaf.substr(0, 6) == "expect";
      if (!feed && !expect) continue;
      auto value = graph_->TensorAttr(node, "value");
      ASSERT_TRUE(value.ok()) << value.status();
      TfCase& c = cases[name];
      c.name = name;
      if (feed) c.feeds.emplace(name + "/in" + leaf.substr(4), *value);
      if (!expect) continue;
      const auto index = static_cast<size_t>(std::stoi(leaf.substr(6)));
      if (c.expected.size() <= index) c.expected.resize(index + 1);
      c.expected[index] = *value;
    }
    cases_ = new std::vector<TfCase>;
    for (auto& [name, c] : cases) cases_->push_back(std::move(c));
  }
  static void TearDownTestSuite() {
    delete cases_;
    cases_ = nullptr;
    graph_.reset();
  }

  static Status Run(const TfCase& c, bool known_sizes) {
    TfImportRequest request;
    for (const auto& [name, value] : c.feeds) {
      TensorInfo info;
      info.name = info.source = name;
      if (known_sizes) info.shape = PartialShape(value.shape());
      request.inputs.push_back(std::move(info));
    }
    for (size_t i = 0; i < c.expected.size(); ++i) {
      TensorInfo info;
      info.name = info.source = c.name + "/out" + std::to_string(i);
      request.outputs.push_back(std::move(info));
    }
    ONCILLA_ASSIGN(const Module module, ImportTf(*graph_, request, OpSet::Builtin()));
    ONCILLA_TRY(Verify(module.main));
    ONCILLA_ASSIGN(const std::vector<Tensor> results, testing::RunGraph(module.main, c.feeds));
    for (size_t i = 0; i < results.size(); ++i) {
      ONCILLA_TRY(In(testing::Agree(results[i], c.expected[i], 1e-5), StrCat("output ", i)));
    }
    return {};
  }

  static std::unique_ptr<TfGraph> graph_;
  static std::vector<TfCase>* cases_;
};
std::unique_ptr<TfGraph> TfOps::graph_;
std::vector<TfCase>* TfOps::cases_ = nullptr;

TEST_F(TfOps, AgreeWithTensorFlow) {
  ASSERT_GT(cases_->size(), 280u);
  for (const TfCase& c : *cases_) {
    for (const bool known_sizes : {false, true}) {
      const Status status = Run(c, known_sizes);
      EXPECT_TRUE(status.ok()) << c.name << (known_sizes ? ", sizes known: " : ": ") << status;
    }
  }
}

TEST_F(TfOps, EveryRowHasACase) {
  std::set<std::string_view> tested;
  for (const TfNode& node : graph_->main().nodes) tested.insert(node.op);
  // Ops that only TensorFlow's own optimizer writes, or that read variables.
  const std::set<std::string_view> elsewhere = {
      "PlaceholderV2", "ResourceGather", "ResourceGatherNd",     "VariableShape",
      "_FusedConv2D",  "_FusedMatMul",   "Conv3DBackpropInputV2"};
  for (std::span<const TfOpRow> family : TfOpFamilies()) {
    for (const TfOpRow& row : family) {
      EXPECT_TRUE(tested.count(row.op) + elsewhere.count(row.op) == 1) << row.op;
      EXPECT_EQ(FindTfOp(row.op), &row) << row.op << " has two rows";
    }
  }
}

}  // namespace
}  // namespace oncilla
