// ONNX files as views: what is read, and that damaged files do no harm.
#include <gtest/gtest.h>

#include <random>

#include "engine/import/onnx/reader.h"
#include "engine/import/onnx/source.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using namespace testing;

// x[batch,3] -> Gemm with a weight -> Relu -> y, with most kinds of fields in it.
std::string SmallModel() {
  OnnxGraphText graph;
  graph.Input("x", {"batch", 3}).Output("y", {"batch", 2});
  graph.Floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  graph.Node(OnnxNodeText("Gemm", {"x", "w"}, {"g"}, "gemm").Float("alpha", 2).Int("transB", 0));
  graph.Node(OnnxNodeText("Unsqueeze", {"g"}, {"u"}).Ints("axes", {0, -1}));
  graph.Node(OnnxNodeText("Squeeze", {"u"}, {"s"}).Ints("axes", {0, -1}));
  graph.Node(OnnxNodeText("Relu", {"s"}, {"y"}));
  return OnnxModelText(graph, 12);
}

TEST(OnnxReader, ReadsModelGraphNodesAndAttributes) {
  const std::string bytes = SmallModel();
  EXPECT_TRUE(LooksLikeOnnx(bytes));
  const auto model = ReadOnnxModel(bytes, "m.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->ir_version, 8);
  EXPECT_EQ(model->producer, "tests");
  EXPECT_EQ(VersionOf(model->opsets, ""), 12);
  EXPECT_EQ(VersionOf(model->opsets, "own"), 1);
  EXPECT_EQ(VersionOf(model->opsets, "other"), 0);
  ASSERT_EQ(model->metadata.size(), 1u);
  EXPECT_EQ(model->metadata[0].second, "value");
  const OnnxGraph& graph = model->graph;
  ASSERT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(graph.nodes[0].label(), "gemm");
  EXPECT_EQ(graph.nodes[3].label(), "y");
  ASSERT_NE(graph.nodes[0].Find("alpha"), nullptr);
  EXPECT_EQ(graph.nodes[0].Find("alpha")->f, 2);
  EXPECT_EQ(graph.nodes[0].Find("beta"), nullptr);
  EXPECT_EQ(graph.nodes[1].Find("axes")->ints, (std::vector<int64_t>{0, -1}));
  ASSERT_EQ(graph.initializers.size(), 1u);
  EXPECT_EQ(graph.initializers[0].first, "w");
  // A view: the tensor's bytes lie inside the file's.
  EXPECT_GE(graph.initializers[0].second.message.data(), bytes.data());
  EXPECT_LT(graph.initializers[0].second.message.data(), bytes.data() + bytes.size());
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.inputs[0].kind, OnnxKind::kTensor);
  EXPECT_EQ(StrCat(graph.inputs[0].shape), "[batch,3]");
}

TEST(OnnxReader, GraphsWithinGraphsCaptureNames) {
  OnnxGraphText inner, outer, graph;  // "far" passes through two graphs, "near" is the outer one's
  inner.Node(OnnxNodeText("Add", {"near", "far"}, {"sum"})).Output("sum", {});
  outer.Node(OnnxNodeText("Neg", {"x"}, {"near"}));
  outer.Node(OnnxNodeText("If", {"c"}, {"y"}).Graph("then_branch", inner.bytes()));
  outer.Floats("kept", {1}, {1}).Output("y", {}).Output("kept", {}).Output("given", {});
  graph.Node(OnnxNodeText("If", {"c"}, {"y"}).Graph("then_branch", outer.bytes()));
  graph.Sequence("s", {"n"}).Input("x", {2});
  const std::string bytes = OnnxModelText(graph);
  const auto model = ReadOnnxModel(bytes, "m.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  const OnnxNode& node = model->graph.nodes[0];
  EXPECT_EQ(node.captures, (std::vector<std::string_view>{"c", "far", "given", "x"}));
  ASSERT_EQ(node.attrs[0].graphs.size(), 1u);
  const OnnxNode& second = node.attrs[0].graphs[0]->nodes[1];
  EXPECT_EQ(second.captures, (std::vector<std::string_view>{"far", "near"}));
  EXPECT_EQ(model->graph.inputs[0].kind, OnnxKind::kSequence);
  EXPECT_EQ(model->graph.inputs[0].element_type, 1);
  EXPECT_EQ(StrCat(model->graph.inputs[0].shape), "[n]");
}

TEST(OnnxReader, TellsAModelFromOtherFiles) {
  EXPECT_FALSE(LooksLikeOnnx(""));
  EXPECT_FALSE(LooksLikeOnnx("text"));
  EXPECT_FALSE(LooksLikeOnnx(OnnxGraphText().Node({"Relu", {"x"}, {"y"}}).bytes()));
  // Cut off within the graph it is still one, and damaged.
  const std::string bytes = SmallModel().substr(0, 100);
  EXPECT_TRUE(LooksLikeOnnx(bytes));
  const auto model = ReadOnnxModel(bytes, "m.onnx");
  EXPECT_EQ(model.status().code(), Code::kDataLoss);
  EXPECT_EQ(Message(model.status()),
            "m.onnx is damaged: it ends within a message; was the file cut off?");
  EXPECT_EQ(ReadOnnxModel("\x08\x01", "m").status().code(), Code::kDataLoss);  // no graph
}

// Opens the file and imports all of it; any result is accepted, but not a crash or an exception.
void Survive(const std::string& bytes) {
  static const TemporaryFolder folder;  // thousands of inputs: no folder and no op set for each
  static const auto ops = OpSet::Builtin();
  const std::string path = folder.Write("model.onnx", bytes);
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  auto source = OpenOnnx(*std::move(file));
  if (!source.ok()) return;
  (void)(*source)->Import({}, ops);
  (void)(*source)->Import({"", {}, {"g"}}, ops);
}

TEST(OnnxReader, NoPrefixOfAModelDoesHarm) {
  const std::string bytes = SmallModel();
  for (size_t size = 0; size <= bytes.size(); ++size) Survive(bytes.substr(0, size));
}

TEST(OnnxReader, NoFlippedBytesDoHarm) {
  const std::string bytes = SmallModel();
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes;
    for (int flips = 1 + static_cast<int>(random() % 4); flips-- > 0;) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    Survive(damaged);
  }
}

}  // namespace
}  // namespace oncilla
