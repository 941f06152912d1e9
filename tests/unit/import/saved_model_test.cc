// SavedModels: which meta graph, signatures, refusals; the quickstart model inlined to flat nodes
// with its variables found.
#include "engine/import/tf/saved_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <protozero/pbf_writer.hpp>

#include "engine/import/tf/graph/functions.h"
#include "engine/import/tf/state/variables.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using protozero::pbf_writer;

const std::string kQuickstart =
    std::string(ONCILLA_SOURCE_DIR) + "/testdata/quickstart/efficientnet_lite0";

// A folder that is removed with what is in it at the end of a test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/oncilla_saved_model_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() {
    const auto entries = ListFolder(path_);
    for (const FolderEntry& entry : *entries) (void)RemoveFile(path_ + "/" + entry.name);
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

TEST(SavedModel, ReadsTheQuickstartSignature) {
  auto model = SavedModel::Open(kQuickstart, {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->tags(), std::vector<std::string>{"serve"});
  ASSERT_EQ((*model)->signatures().size(), 1u);
  const Signature& s = (*model)->signatures()[0];
  EXPECT_EQ(s.key, "serving_default");
  ASSERT_EQ(s.inputs.size(), 1u);
  EXPECT_EQ(s.inputs[0].name, "image");
  EXPECT_EQ(s.inputs[0].source, "serving_default_image:0");
  EXPECT_EQ(StrCat(s.inputs[0].dtype, s.inputs[0].shape), "u8[?,?,?,3]");
  ASSERT_EQ(s.outputs.size(), 3u);
  EXPECT_EQ(StrCat(s.outputs[0].name, " ", s.outputs[0].dtype, s.outputs[0].shape),
            "label string[?,5]");
  EXPECT_EQ(StrCat(s.outputs[1].name, " ", s.outputs[1].dtype, s.outputs[1].shape),
            "logits f32[?,1000]");
  EXPECT_EQ(StrCat(s.outputs[2].name, " ", s.outputs[2].dtype, s.outputs[2].shape),
            "probability f32[?,5]");
}

TEST(SavedModel, ListsTheTagSetsWhenNoneFits) {
  const std::vector<std::string> tags = {"train", "gpu"};
  const Status status = SavedModel::Open(kQuickstart, tags).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(Details(status).stage, Stage::kOptions);
  EXPECT_NE(Message(status).find("with the tags {gpu, train}; there is: {serve}"),
            std::string::npos)
      << status;
}

TEST(SavedModel, RefusesOtherFormsByName) {
  const Folder folder;
  Status status = SavedModel::Open(folder.path(), {}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  ASSERT_TRUE(WriteFile(folder.File("saved_model.cpb"), "x").ok());
  status = SavedModel::Open(folder.path(), {}).status();
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_NE(Message(status).find("saved_model.cpb"), std::string::npos);
  ASSERT_TRUE(WriteFile(folder.File("saved_model.pbtxt"), "x").ok());
  status = SavedModel::Open(folder.path(), {}).status();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_NE(Message(status).find("saved_model.pbtxt"), std::string::npos);
  ASSERT_TRUE(WriteFile(folder.File("saved_model.pb"), "not a model").ok());
  EXPECT_EQ(SavedModel::Open(folder.path(), {}).status().code(), Code::kDataLoss);
  ASSERT_TRUE(WriteFile(folder.File("saved_model.pb"), "").ok());
  EXPECT_EQ(SavedModel::Open(folder.path(), {}).status().code(), Code::kDataLoss);
}

TEST(SavedModel, IsToldFromAGraphByContent) {
  const std::string saved = *ReadFile(kQuickstart + "/saved_model.pb", 1u << 30);
  EXPECT_EQ(DetectTfFile(saved), TfFileKind::kSavedModel);
  std::string graph;
  {
    pbf_writer writer(graph);
    pbf_writer node(writer, 1);
    node.add_string(1, "x");
    node.add_string(2, "Placeholder");
  }
  EXPECT_EQ(DetectTfFile(graph), TfFileKind::kGraphDef);
  for (const char* other : {"", "hello", "\x08\x07\x12\x03onx", "\x89PNG\r\n"}) {
    EXPECT_EQ(DetectTfFile(other), TfFileKind::kUnknown) << other;
  }
}

TEST(SavedModel, NoTruncationOrFlippedBitCrashes) {
  const std::string saved = *ReadFile(kQuickstart + "/saved_model.pb", 1u << 30);
  const Folder folder;
  uint32_t random = 12345;
  const auto next = [&] { return random = random * 1664525u + 1013904223u, random >> 8; };
  for (int i = 0; i < 60; ++i) {
    std::string damaged = saved;
    if (i % 2 == 0) damaged.resize(next() % saved.size());
    for (int k = 0; k < 40 && !damaged.empty(); ++k) {
      damaged[next() % damaged.size()] ^= static_cast<char>(1 << (next() % 8));
    }
    ASSERT_TRUE(::oncilla::testing::WriteQuickly(folder.File("saved_model.pb"), damaged));
    auto model = SavedModel::Open(folder.path(), {});
    if (!model.ok()) continue;
    auto graph = (*model)->Graph();
    if (!graph.ok()) continue;
    TfFlattenRequest request;
    request.fetches = {"StatefulPartitionedCall:0", "StatefulPartitionedCall:1"};
    request.variable = [](const TfNode&) -> Result<Tensor> { return Tensor::Scalar(1); };
    (void)FlattenTfGraph(**graph, request);
  }
}

Result<TfFlatGraph> FlattenQuickstart(SavedModel& model, std::vector<std::string> fetches) {
  TfVariables variables(model);
  TfFlattenRequest request;
  request.feeds = {"serving_default_image:0"};
  request.fetches = std::move(fetches);
  request.variable = [&](const TfNode& handle) { return variables.Value(handle); };
  ONCILLA_ASSIGN(TfGraph * graph, model.Graph());
  return FlattenTfGraph(*graph, request);
}

TEST(SavedModel, TheQuickstartGraphIsInlinedWithItsVariables) {
  auto model = SavedModel::Open(kQuickstart, {});
  ASSERT_TRUE(model.ok()) << model.status();
  auto flat = FlattenQuickstart(**model, {"StatefulPartitionedCall:0", "StatefulPartitionedCall:1",
                                          "StatefulPartitionedCall:2"});
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_EQ(flat->cycle, "");
  std::map<std::string, int> histogram;
  for (size_t i = 0; i < flat->nodes.size(); ++i) {
    const TfFlatNode& node = flat->nodes[i];
    ++histogram[std::string(node.op())];
    for (const TfRef& input : node.inputs) EXPECT_LT(input.node, static_cast<int>(i));
  }
  // No NoOp, Identity, ReadVariableOp or call is left, and nothing of the save and restore
  // functions.
  const std::map<std::string, int> expected = {
      {"AddV2", 11},  {"BiasAdd", 50}, {"Cast", 51},        {"Const", 28},
      {"Conv2D", 33}, {"FloorDiv", 3}, {"GatherV2", 1},     {"DepthwiseConv2dNative", 16},
      {"MatMul", 1},  {"Mean", 1},     {"Minimum", 1},      {"Mul", 51},
      {"Pack", 3},    {"RealDiv", 1},  {"Relu6", 33},       {"Placeholder", 1},
      {"Shape", 1},   {"Softmax", 1},  {"StridedSlice", 5}, {"ResizeBilinear", 1},
      {"Sub", 3},     {"TopKV2", 1},   {"VarHandleOp", 150}};
  EXPECT_EQ(histogram, expected);
  ASSERT_EQ(flat->inputs.size(), 1u);
  EXPECT_EQ(flat->nodes[static_cast<size_t>(flat->inputs[0])].name, "serving_default_image");

  // Each convolution reads a Mul of a Cast of an int8 kernel: the shapes tell whether every
  // variable got its own value.
  int checked = 0;
  for (const TfFlatNode& node : flat->nodes) {
    if (node.op() != "Conv2D" && node.op() != "DepthwiseConv2dNative") continue;
    const TfFlatNode& mul = flat->nodes[static_cast<size_t>(node.inputs[1].node)];
    ASSERT_EQ(mul.op(), "Mul");
    const TfFlatNode& cast = flat->nodes[static_cast<size_t>(mul.inputs[0].node)];
    const TfFlatNode& scale = flat->nodes[static_cast<size_t>(mul.inputs[1].node)];
    const TfFlatNode& kernel = flat->nodes[static_cast<size_t>(cast.inputs[0].node)];
    ASSERT_EQ(kernel.kind, TfFlatNode::Kind::kVariable);
    EXPECT_EQ(kernel.value.dtype(), DType::kI8);
    EXPECT_EQ(kernel.name.substr(0, kernel.name.find('/')),
              scale.name.substr(0, scale.name.find('/')));
    const int axis = node.op() == "Conv2D" ? 3 : 2;
    EXPECT_EQ(scale.value.shape()[axis], kernel.value.shape()[axis]) << kernel.name;
    ++checked;
  }
  EXPECT_EQ(checked, 49);
}

TEST(SavedModel, AFetchInsideACallNeedsOnlyItsPart) {
  auto model = SavedModel::Open(kQuickstart, {});
  ASSERT_TRUE(model.ok()) << model.status();
  // TensorFlow's freezer leaves out the signature wrapper's own call; both names work.
  auto outer = FlattenQuickstart(**model, {"StatefulPartitionedCall/Relu6:0"});
  auto inner =
      FlattenQuickstart(**model, {"StatefulPartitionedCall/StatefulPartitionedCall/Relu6"});
  ASSERT_TRUE(outer.ok()) << outer.status();
  ASSERT_TRUE(inner.ok()) << inner.status();
  EXPECT_EQ(outer->nodes.size(), inner->nodes.size());
  EXPECT_EQ(outer->nodes.back().name, "StatefulPartitionedCall/StatefulPartitionedCall/Relu6");
  int variables = 0;
  for (const TfFlatNode& node : outer->nodes) {
    variables += node.kind == TfFlatNode::Kind::kVariable;
  }
  EXPECT_EQ(variables, 3);
  const Status missing = FlattenQuickstart(**model, {"serving_default_imag:0"}).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(Message(missing).find("did you mean 'serving_default_image'?"), std::string::npos)
      << missing;
}

}  // namespace
}  // namespace oncilla
