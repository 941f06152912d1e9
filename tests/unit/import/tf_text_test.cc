// Models in text form that TensorFlow wrote (tests/models/make_text_models.py): read, computed by
// the CPU's plain code, compared with its results; invalid texts are refused with their position.
#include <gtest/gtest.h>

#include "engine/base/file.h"
#include "engine/import/model_source.h"
#include "engine/import/tf/text.h"
#include "tests/case_runner/case_file.h"
#include "tests/unit/support/run_graph.h"
#include "tests/unit/support/temporary.h"
#include "tools/oncilla/files/npy.h"

namespace oncilla {
namespace {

const std::string kFolder = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/text/";

Tensor Answer(const std::string& name) {
  auto file = MappedFile::Open(kFolder + "answers/" + name + ".npy");
  EXPECT_TRUE(file.ok()) << file.status();
  auto tensor = tool::ReadNpy((*file)->bytes(), *file);
  EXPECT_TRUE(tensor.ok()) << name << ": " << tensor.status();
  return *tensor;
}

std::string Text(const std::string& name) {
  auto text = ReadFile(kFolder + name, 1u << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return *text;
}

// Runs a model on the recorded x: output name -> tensor.
std::map<std::string, Tensor> RunModel(const std::string& path, const Tensor& x) {
  std::map<std::string, Tensor> out;
  auto model = OpenModel(path, {});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return out;
  auto module = (*model)->Import({}, OpSet::Builtin());
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return out;
  const std::string input = module->main.inputs()[0].name;
  auto results = testing::RunGraph(module->main, {{input, x}});
  EXPECT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; results.ok() && i < results->size(); ++i) {
    out[module->main.outputs()[i].name] = (*results)[i];
  }
  return out;
}

void ExpectAnswer(const Tensor& actual, const std::string& name) {
  ASSERT_TRUE(actual.valid()) << name;
  const Status agree = testing::Agree(actual, Answer(name), 1e-6);
  EXPECT_TRUE(agree.ok()) << name << ": " << agree;
}

TEST(TfText, AModelOfTensorFlow1) {
  for (const char* path : {"version1", "version1/saved_model.pbtxt"}) {
    auto out = RunModel(kFolder + path, Answer("version1_in_x"));
    for (const std::string name : {"n", "y", "z"}) ExpectAnswer(out[name], "version1_out_" + name);
  }
}

TEST(TfText, AModelOfTensorFlow2WithEveryByteInItsStrings) {
  auto out = RunModel(kFolder + "version2", Answer("version2_in_x"));
  ExpectAnswer(out["y"], "version2_out_y");
  const Tensor lengths = Answer("version2_out_s");
  ASSERT_TRUE(out["s"].valid());
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (size_t i = 0; i < static_cast<size_t>(lengths.elements()); ++i) {
    const std::string& s = out["s"].strings()[i];
    EXPECT_EQ(static_cast<int64_t>(s.size()), lengths.As<int64_t>()[i]);
    EXPECT_TRUE(s == "plain" || s == "q\"'\\\n" || s == all);
  }
}

TEST(TfText, AFrozenGraph) {
  auto out = RunModel(kFolder + "frozen.pbtxt", Answer("version1_in_x"));
  ExpectAnswer(out["n_out:0"], "version1_out_n");
  ExpectAnswer(out["z:0"], "version1_out_z");
}

TEST(TfText, TheFormIsSeenFromTheContentAndNotFromTheName) {
  const testing::TemporaryFolder folder;
  const Tensor x = Answer("version1_in_x");
  ExpectAnswer(RunModel(folder.Write("graph.pb", Text("frozen.pbtxt")), x)["z:0"],
               "version1_out_z");
  auto bytes = TfTextToBytes(Text("frozen.pbtxt"), TfFileKind::kGraphDef, "frozen.pbtxt");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(DetectTfFile(*bytes), TfFileKind::kGraphDef);
  ExpectAnswer(RunModel(folder.Write("graph.pbtxt", *bytes), x)["z:0"], "version1_out_z");
  // A SavedModel's text as saved_model.pb, and its bytes as saved_model.pbtxt.
  ASSERT_TRUE(MakeFolder(folder.File("variables")).ok());
  for (const char* name : {"variables.index", "variables.data-00000-of-00001"}) {
    folder.Write(StrCat("variables/", name), Text(StrCat("version1/variables/", name)));
  }
  const std::string text = Text("version1/saved_model.pbtxt");
  folder.Write("saved_model.pb", text);
  ExpectAnswer(RunModel(folder.path(), x)["y"], "version1_out_y");
  (void)RemoveFile(folder.File("saved_model.pb"));
  bytes = TfTextToBytes(text, TfFileKind::kSavedModel, "saved_model.pbtxt");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(DetectTfFile(*bytes), TfFileKind::kSavedModel);
  folder.Write("saved_model.pbtxt", *bytes);
  ExpectAnswer(RunModel(folder.path(), x)["y"], "version1_out_y");
}

TEST(TfText, Detects) {
  EXPECT_EQ(DetectTfText("# a comment\n\n  node{"), TfFileKind::kGraphDef);
  EXPECT_EQ(DetectTfText("versions <"), TfFileKind::kGraphDef);
  EXPECT_EQ(DetectTfText("library {"), TfFileKind::kGraphDef);
  EXPECT_EQ(DetectTfText("saved_model_schema_version: 1"), TfFileKind::kSavedModel);
  EXPECT_EQ(DetectTfText("meta_graphs {"), TfFileKind::kSavedModel);
  for (const char* text : {"", "node", "#", "nodes {", "{", "node = 3", "ir_version: 8"}) {
    EXPECT_EQ(DetectTfText(text), TfFileKind::kUnknown) << text;
  }
}

std::string Refusal(const std::string& text) {
  const auto bytes = TfTextToBytes(text, TfFileKind::kGraphDef, "g.pbtxt");
  EXPECT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), Code::kDataLoss);
  EXPECT_EQ(Details(bytes.status()).stage, Stage::kFile);
  return std::string(Message(bytes.status()));
}

TEST(TfText, RefusalsNameLineAndColumn) {
  EXPECT_EQ(Refusal("node {\n  name: \"a\"\n  inptu: \"b\"\n}\n").substr(0, 13), "g.pbtxt:3:3: ");
  EXPECT_NE(Refusal("node {\n  name: \"a\"\n  inptu: \"b\"\n}\n").find("\"inptu\""),
            std::string::npos);
  EXPECT_EQ(Refusal("node {\n  name: 3\n}\n").substr(0, 13), "g.pbtxt:2:9: ");
  const std::string type = "node { attr { key: \"T\" value { type: DT_FLAOT } } }";
  EXPECT_NE(Refusal(type).find("g.pbtxt:1:"), std::string::npos);
  EXPECT_NE(Refusal(type).find("DT_FLAOT"), std::string::npos);
  EXPECT_EQ(Refusal("node {\n  name: \"a\n}\n").substr(0, 10), "g.pbtxt:2:");
  EXPECT_EQ(Refusal("node {\n").substr(0, 10), "g.pbtxt:2:");
}

TEST(TfText, FieldsThatMeanNothingToInferenceAreSkipped) {
  const auto bytes = TfTextToBytes(
      "node { name: \"a\" op: \"NoOp\" experimental_debug_info { original_node_names: \"b\" } }\n"
      "versions { producer: 1 }\n"
      "debug_info { files: \"x.py\" frames_by_id { key: 3 value { line: 1 } } }\n"
      "from_the_future { [type.googleapis.com/a.B] { c: 1 } d: [1, 2] e: \"}\" }\n",
      TfFileKind::kGraphDef, "g.pbtxt");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(DetectTfFile(*bytes), TfFileKind::kGraphDef);
}

TEST(TfText, DeepNestingIsRefusedBeforeItIsParsed) {
  for (const char* open : {"{a", "<a", "{a:["}) {
    std::string text = "versions ";  // where fields that are not known are skipped
    for (int i = 0; i < 200000; ++i) text += open;
    EXPECT_NE(Refusal(text).find("nest too deeply"), std::string::npos);
  }
  // Brackets in strings and comments do not count.
  const std::string brackets(1000, '{');
  const auto bytes =
      TfTextToBytes("# " + brackets + "\nnode { name: \"" + brackets + "\\\"{\" op: \"NoOp\" }",
                    TfFileKind::kGraphDef, "g.pbtxt");
  EXPECT_TRUE(bytes.ok()) << bytes.status();
}

TEST(TfText, EveryCutIsACleanErrorOrAShorterGraph) {
  const std::string text = Text("frozen.pbtxt");
  for (size_t size = 0; size < text.size(); size += 7) {
    const auto bytes = TfTextToBytes(text.substr(0, size), TfFileKind::kGraphDef, "g.pbtxt");
    if (bytes.ok()) continue;
    EXPECT_EQ(bytes.status().code(), Code::kDataLoss) << bytes.status();
  }
}

// The message for a file that is not a model says what it is and what to do.
TEST(TfText, OtherFormsAreToldFromTheirContent) {
  const testing::TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& bytes) {
    const Status status = OpenModel(folder.Write(name, bytes), {}).status();
    EXPECT_EQ(status.code(), Code::kUnimplemented) << status;
    EXPECT_NE(Message(status).find(name), std::string::npos) << status;
    return std::string(Message(status));
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal("a", "\x89HDF\r\n\x1a\n...."), "export('FOLDER')");
  has(refusal("b", "PK\x03\x04......model.weights.h5PK"), "a .keras archive");
  has(refusal("c", "PK\x03\x04......"), "a zip archive");
  has(refusal("d", std::string("\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", 8)), "(.cpb)");
  has(refusal("e", Text("version1/variables/variables.index")), "no graph");
}

}  // namespace
}  // namespace oncilla
