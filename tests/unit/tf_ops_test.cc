// Every TensorFlow op that has a row, against what TensorFlow itself computed: the cases of
// testdata/tensorflow/*.pb (see tests/models/make_tensorflow_cases.py), imported once with
// nothing known of the sizes and once with the sizes that are fed. Where TensorFlow failed, so must
// the run.
#include <gtest/gtest.h>

#include <filesystem>
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

const std::string kFolder = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow";

struct TfCase {
  TfGraph* graph = nullptr;
  std::string name;
  std::map<std::string, Tensor> feeds;  // by the placeholder's name
  std::vector<Tensor> expected;
  std::string error;  // TensorFlow's message where it failed
};

class TfOps : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cases_ = new std::vector<TfCase>;
    graphs_ = new std::vector<std::unique_ptr<TfGraph>>;
    std::set<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
      if (entry.path().extension() == ".pb") paths.insert(entry.path().string());
    }
    for (const std::string& path : paths) Load(path);
  }
  static void TearDownTestSuite() {
    delete cases_;
    delete graphs_;
    cases_ = nullptr;
    graphs_ = nullptr;
  }

  static void Load(const std::string& path) {
    auto file = MappedFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    auto graph = TfGraph::Parse((*file)->text(), {}, path, *file);
    ASSERT_TRUE(graph.ok()) << graph.status();
    std::map<std::string, TfCase> cases;
    for (const TfNode& node : (*graph)->main().nodes) {
      const std::string name(node.name);
      const size_t slash = name.find('/');
      const std::string leaf = slash == std::string::npos ? "" : name.substr(slash + 1);
      const bool feed = leaf.substr(0, 4) == "feed", expect = leaf.substr(0, 6) == "expect";
      const bool error = leaf == "error";
      if (!feed && !expect && !error) continue;
      auto value = (*graph)->TensorAttr(node, "value");
      ASSERT_TRUE(value.ok()) << value.status();
      TfCase& c = cases[name.substr(0, slash)];
      c.name = name.substr(0, slash);
      c.graph = graph->get();
      if (feed) c.feeds.emplace(c.name + "/in" + leaf.substr(4), *value);
      if (error) c.error = std::string(value->strings()[0]);
      if (!expect) continue;
      const auto index = static_cast<size_t>(std::stoi(leaf.substr(6)));
      if (c.expected.size() <= index) c.expected.resize(index + 1);
      c.expected[index] = *value;
    }
    EXPECT_FALSE(cases.empty()) << path;
    for (auto& [name, c] : cases) cases_->push_back(std::move(c));
    graphs_->push_back(std::move(*graph));
  }

  static Status Run(const TfCase& c, bool known_sizes) {
    TfImportRequest request;
    for (const auto& [name, value] : c.feeds) {
      TensorInfo info;
      info.name = info.source = name;
      if (known_sizes) info.shape = PartialShape(value.shape());
      request.inputs.push_back(std::move(info));
    }
    for (size_t i = 0; i < std::max<size_t>(c.expected.size(), c.error.empty() ? 0 : 1); ++i) {
      TensorInfo info;
      info.name = info.source = c.name + "/out" + std::to_string(i);
      request.outputs.push_back(std::move(info));
    }
    ONCILLA_ASSIGN(const Module module, ImportTf(*c.graph, request, OpSet::Builtin()));
    ONCILLA_TRY(Verify(module.main));
    ONCILLA_ASSIGN(const std::vector<Tensor> results, testing::RunGraph(module.main, c.feeds));
    if (!c.error.empty()) return {};
    for (size_t i = 0; i < results.size(); ++i) {
      ONCILLA_TRY(In(testing::Agree(results[i], c.expected[i], 1e-5), StrCat("output ", i)));
    }
    return {};
  }

  static std::vector<std::unique_ptr<TfGraph>>* graphs_;
  static std::vector<TfCase>* cases_;
};
std::vector<std::unique_ptr<TfGraph>>* TfOps::graphs_ = nullptr;
std::vector<TfCase>* TfOps::cases_ = nullptr;

TEST_F(TfOps, AgreeWithTensorFlow) {
  ASSERT_GT(cases_->size(), 280u);
  // ONCILLA_TF_CASE names one case while working on it.
  const char* only = std::getenv("ONCILLA_TF_CASE");
  for (const TfCase& c : *cases_) {
    if (only != nullptr && c.name.find(only) == std::string::npos) continue;
    for (const bool known_sizes : {false, true}) {
      const Status status = Run(c, known_sizes);
      const char* sizes = known_sizes ? ", sizes known: " : ": ";
      if (c.error.empty()) {
        EXPECT_TRUE(status.ok()) << c.name << sizes << status;
        continue;
      }
      // An InvalidArgument of the node, as TensorFlow's; a refusal would be another code.
      EXPECT_FALSE(status.ok()) << c.name << sizes << "TensorFlow failed: " << c.error;
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << c.name << sizes << status;
      // What a model says itself, it says here in the same words.
      if (c.error.find("assertion failed:") != 0 && c.error.find(" : Tensor had") == c.error.npos) {
        continue;
      }
      EXPECT_NE(Message(status).find(c.error), std::string::npos) << c.name << status << c.error;
    }
  }
}

TEST_F(TfOps, EveryRowHasACase) {
  std::set<std::string_view> tested;
  for (const auto& graph : *graphs_) {
    for (const TfNode& node : graph->main().nodes) tested.insert(node.op);
  }
  // Ops that read variables, and a placeholder that is fed.
  const std::set<std::string_view> elsewhere = {"PlaceholderV2", "ResourceGather",
                                                "ResourceGatherNd", "VariableShape"};
  for (std::span<const TfOpRow> family : TfOpFamilies()) {
    for (const TfOpRow& row : family) {
      EXPECT_TRUE(tested.count(row.op) + elsewhere.count(row.op) == 1) << row.op;
      EXPECT_EQ(FindTfOp(row.op), &row) << row.op << " has two rows";
    }
  }
}

}  // namespace
}  // namespace oncilla
