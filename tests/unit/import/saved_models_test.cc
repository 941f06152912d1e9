// Small SavedModels of all common kinds, imported, computed by the CPU's plain code and compared
// with TensorFlow's results (tests/models/make_saved_models.py).
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/base/file.h"
#include "engine/graph/verify.h"
#include "engine/import/model_source.h"
#include "engine/import/tf/saved_model.h"
#include "engine/import/tf/state/variables.h"
#include "tests/case_runner/case_file.h"
#include "tests/unit/support/run_graph.h"
#include "tools/oncilla/files/npy.h"

namespace oncilla {
namespace {

const std::string kFolder = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/models/";

Tensor ReadArray(const std::string& path) {
  auto file = MappedFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  auto tensor = tool::ReadNpy((*file)->bytes(), *file);
  EXPECT_TRUE(tensor.ok()) << path << ": " << tensor.status();
  return *tensor;
}

// Runs a signature and compares every output with the recorded one.
void Check(const std::string& name, const std::string& signature = "") {
  const std::string answers = kFolder + name + "/answers/";
  auto model = OpenModel(kFolder + name, {});
  ASSERT_TRUE(model.ok()) << model.status();
  auto module = (*model)->Import({signature, {}, {}}, OpSet::Builtin());
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_TRUE(Verify(module->main).ok()) << Verify(module->main);
  std::map<std::string, Tensor> feeds;
  for (const NamedValue& input : module->main.inputs()) {
    feeds[input.name] = ReadArray(answers + "in_" + input.name + ".npy");
  }
  auto results = testing::RunGraph(module->main, feeds);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), module->main.outputs().size());
  for (size_t i = 0; i < results->size(); ++i) {
    const std::string& output = module->main.outputs()[i].name;
    const Status agree =
        testing::Agree((*results)[i], ReadArray(answers + "out_" + output + ".npy"), 1e-4);
    EXPECT_TRUE(agree.ok()) << name << " " << output << ": " << agree;
  }
}

TEST(SavedModels, AKerasExport) { Check("mlp"); }
TEST(SavedModels, KerasLayersUnderAPlainModule) { Check("module"); }
TEST(SavedModels, ATransformerEncoderOfUnknownLength) { Check("encoder"); }
TEST(SavedModels, AConvolutionalNetOnPicturesOfAnySize) { Check("convnet"); }
TEST(SavedModels, TensorFlow1WithAReferenceVariable) { Check("tensorflow1"); }
TEST(SavedModels, ASignatureBesideOneThatWrites) { Check("counter", "plain"); }

TEST(SavedModels, ASignatureThatWritesNamesItsVariable) {
  auto model = OpenModel(kFolder + "counter", {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto module = (*model)->Import({"counting", {}, {}}, OpSet::Builtin());
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ(module->variables.size(), 1u);
  EXPECT_TRUE(module->variables[0].initial.valid());
  // Two signatures and neither is the default: the message lists them.
  const Status none = (*model)->Import({}, OpSet::Builtin()).status();
  EXPECT_EQ(none.code(), Code::kNotFound);
  EXPECT_NE(Message(none).find("there is: 'counting', 'plain'"), std::string::npos) << none;
}

TEST(SavedModels, MissingVariablesNameTheFile) {
  char name[] = "/tmp/oncilla_models_XXXXXX";
  const std::string folder = mkdtemp(name);
  const std::string graph = *ReadFile(kFolder + "tensorflow1/saved_model.pb", 1u << 20);
  ASSERT_TRUE(WriteFile(folder + "/saved_model.pb", graph).ok());
  const auto import = [&] {
    auto model = OpenModel(folder, {});
    EXPECT_TRUE(model.ok()) << model.status();
    return (*model)->Import({}, OpSet::Builtin()).status();
  };
  Status status = import();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(Message(status).find("variables/variables.index"), std::string::npos) << status;
  ASSERT_TRUE(MakeFolder(folder + "/variables").ok());
  const std::string index = *ReadFile(kFolder + "tensorflow1/variables/variables.index", 1u << 20);
  ASSERT_TRUE(WriteFile(folder + "/variables/variables.index", index).ok());
  status = import();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(Message(status).find("variables.data-00000-of-00001"), std::string::npos) << status;
  (void)RemoveFile(folder + "/variables/variables.index");
  (void)RemoveFile(folder + "/saved_model.pb");
  rmdir((folder + "/variables").c_str());
  rmdir(folder.c_str());
}

}  // namespace
}  // namespace oncilla
