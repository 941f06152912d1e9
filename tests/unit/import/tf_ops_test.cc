// Every TensorFlow op that has a row, against what TensorFlow itself computed: the cases of
// testdata/tensorflow/*.pb (see tests/models/make_tensorflow_cases.py), imported once with
// nothing known of the sizes and once with the sizes that are fed, then run in a session. Where
// TensorFlow failed, so must the run.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "engine/base/file.h"
#include "engine/graph/verify.h"
#include "engine/import/tf/graph/functions.h"
#include "engine/import/tf/import.h"
#include "engine/import/tf/lowering.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/case_runner/case_file.h"
#include "tests/unit/support/run_graph.h"

namespace oncilla {
namespace {

const std::string kFolder = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow";

struct TfCase {
  std::string path;
  TfGraph* graph = nullptr;
  std::string name;
  std::map<std::string, Tensor> feeds;  // by the placeholder's name
  std::vector<Tensor> expected;
  std::string error;  // TensorFlow's message where it failed
};

// The tolerance if only one side rounds to 16 bits.
constexpr double kCut = 1e-2;
// TensorFlow rounds to 16 bits after each step inside the op, the engine once at its end.
bool RoundsInside(const TfCase& c) { return c.name.find("_inner16") != c.name.npos; }

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
      c.path = path;
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
    auto imported = ImportTf(*c.graph, request, OpSet::Builtin());
    if (imported.status().code() == Code::kUnimplemented) {
      // As a session does, which says what is fed where the names alone are not enough.
      for (const auto& [name, value] : c.feeds) {
        Fact& fact = request.fed.emplace_back(Fact::Of(value));
        if (IsInteger(value.dtype())) fact.value = value;
      }
      imported = ImportTf(*c.graph, request, OpSet::Builtin());
    }
    ONCILLA_ASSIGN(const Module module, std::move(imported));
    ONCILLA_TRY(Verify(module.main));
    // Ops that call functions or have state need a session: see AgreeInASession.
    if (!module.functions.empty() || !module.variables.empty())
      return c.error.empty() ? Status() : InvalidArgument(c.error);
    ONCILLA_ASSIGN(const std::vector<Tensor> results, testing::RunGraph(module.main, c.feeds));
    if (!c.error.empty()) return {};
    for (size_t i = 0; i < results.size(); ++i) {
      const double tolerance = RoundsInside(c) ? kCut : 1e-5;
      ONCILLA_TRY(In(testing::Agree(results[i], c.expected[i], tolerance), StrCat("output ", i)));
    }
    return {};
  }

  static std::vector<std::unique_ptr<TfGraph>>* graphs_;
  static std::vector<TfCase>* cases_;
};
std::vector<std::unique_ptr<TfGraph>>* TfOps::graphs_ = nullptr;
std::vector<TfCase>* TfOps::cases_ = nullptr;

// As in TensorFlow: the same results, or an InvalidArgument of the node if TensorFlow failed (a
// refusal would be another code).
void Check(const TfCase& c, const Status& status, const char* how) {
  if (c.error.empty()) {
    EXPECT_TRUE(status.ok()) << c.name << how << status;
    return;
  }
  EXPECT_FALSE(status.ok()) << c.name << how << "TensorFlow failed: " << c.error;
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << c.name << how << status;
  // Assertions in the model must fail with the same message.
  if (c.error.find("assertion failed:") == 0 || c.error.find(" : Tensor had") != c.error.npos) {
    EXPECT_NE(Message(status).find(c.error), std::string::npos) << c.name << status << c.error;
  }
}

// ONCILLA_TF_CASE names the cases to run while working on them.
bool Skipped(const TfCase& c) {
  const char* only = std::getenv("ONCILLA_TF_CASE");
  return only != nullptr && c.name.find(only) == std::string::npos;
}

TEST_F(TfOps, AgreeWithTensorFlow) {
  ASSERT_GT(cases_->size(), 700u);
  for (const TfCase& c : *cases_) {
    if (Skipped(c)) continue;
    for (const bool known_sizes : {false, true}) {
      Check(c, Run(c, known_sizes), known_sizes ? ", sizes known: " : ": ");
    }
  }
}

// The same through passes, placement and plans.
TEST_F(TfOps, AgreeInASession) {
  // Another device on request, OpenCL on a processor included.
  const char* device = std::getenv("ONCILLA_TF_DEVICE");
  RuntimeOptions options;
  options.opencl_cpu_devices = device != nullptr;
  auto session = Session::Create(Runtime::Create(options),
                                 {.device = device == nullptr ? "cpu" : device, .verify = true});
  ASSERT_TRUE(session.ok()) << session.status();
  std::string path;
  std::shared_ptr<Model> model;
  for (const TfCase& c : *cases_) {
    if (Skipped(c)) continue;
    if (c.path != path) {
      auto loaded = (*session)->Load(c.path, {});
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      model = *loaded;
      path = c.path;
    }
    RunRequest request;
    for (const auto& [name, value] : c.feeds) request.feeds.emplace_back(name, value);
    for (size_t i = 0; i < std::max<size_t>(c.expected.size(), 1); ++i) {
      request.fetches.push_back(c.name + "/out" + std::to_string(i));
    }
    const auto result = model->Run(request);
    Status status = result.status();
    // Fused code keeps the digits that a cast to 16 bits and back would drop.
    const bool cut = c.name.find("float16") != c.name.npos || c.name.find("_bf16") != c.name.npos;
    const double tolerance = cut || RoundsInside(c) ? kCut : 1e-5;
    for (size_t i = 0; status.ok() && c.error.empty() && i < c.expected.size(); ++i) {
      status = In(testing::Agree(result->outputs[i].second, c.expected[i], tolerance),
                  StrCat("output ", i));
    }
    Check(c, status, " in a session: ");
    if (!c.error.empty()) {
      EXPECT_NE(Details(status).node, "") << c.name << status;
    }
  }
}

TEST_F(TfOps, EveryRowHasACase) {
  std::set<std::string_view> tested;
  for (const auto& graph : *graphs_) {
    for (const TfNode& node : graph->main().nodes) tested.insert(node.op);
  }
  // Ops that read variables, a placeholder that is fed, and what stands for a Switch.
  const std::set<std::string_view> elsewhere = {"PlaceholderV2",    "ResourceGather",
                                                "ResourceGatherNd", "VariableShape",
                                                "_SwitchFalse",     "_SwitchTrue"};
  // Ops on lists, variables and tables are tested in whole models, step by step.
  std::string models;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "/runs")) {
    models += ReadFile(entry.path().string() + "/model/saved_model.pb", 1u << 24).value_or("");
  }
  // Ops of XLA are within functions, which TensorFlow compiles.
  models += ReadFile(kFolder + "/xla.pb", 1u << 24).value_or("");
  const auto in_models = [&](std::string_view op) {
    // A string of a protobuf has its length in front.
    return models.find(StrCat(static_cast<char>(op.size()), op)) != std::string::npos;
  };
  // Forms of the same ops that TensorFlow no longer writes, or writes in training only; their
  // lowering is that of a sibling that is tested.
  const std::set<std::string_view> siblings = {"InitializeTable",   "InitializeTableFromTextFile",
                                               "LookupTableExport", "LookupTableImport",
                                               "LookupTableInsert", "LookupTableSize",
                                               "ScatterAdd",        "ScatterNdUpdate",
                                               "ScatterSub",        "ScatterUpdate",
                                               "AssignSub",         "LookupTableFind"};
  for (std::span<const TfOpRow> family : TfOpFamilies()) {
    // Lists and state have tests of whole graphs.
    if (family.data() == TfListRows().data() || family.data() == TfStateRows().data()) continue;
    for (const TfOpRow& row : family) {
      const bool case_of_its_own = tested.count(row.op) != 0 || in_models(row.op);
      EXPECT_TRUE(case_of_its_own || elsewhere.count(row.op) + siblings.count(row.op) == 1)
          << row.op;
      EXPECT_EQ(FindTfOp(row.op), &row) << row.op << " has two rows";
    }
  }
}

TEST_F(TfOps, EveryRowForComplexTensorsHasACase) {
  std::set<std::string_view> tested;
  for (const auto& graph : *graphs_) {
    for (const TfNode& node : graph->main().nodes) {
      if (HasComplexType(node)) tested.insert(node.op);
    }
  }
  for (const TfOpRow& row : TfComplexRows()) EXPECT_EQ(tested.count(row.op), 1u) << row.op;
}

}  // namespace
}  // namespace oncilla
