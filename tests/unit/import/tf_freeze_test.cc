// Freezing: the small SavedModels as GraphDefs, read again and compared with TensorFlow's recorded
// results; what a frozen graph cannot contain. tests/models/check_frozen_graphs.py checks, where
// TensorFlow is installed, that it loads the result.
#include "engine/import/tf/freeze.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <protozero/pbf_writer.hpp>

#include "engine/import/tf/contents.h"
#include "engine/import/tf/source.h"
#include "tests/case_runner/case_file.h"
#include "tests/unit/support/run_graph.h"
#include "tests/unit/support/temporary.h"
#include "tools/oncilla/files/npy.h"

namespace oncilla {
namespace {

const std::string kData = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/";

Tensor ReadArray(const std::string& path) {
  auto file = MappedFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  auto tensor = tool::ReadNpy((*file)->bytes(), *file);
  EXPECT_TRUE(tensor.ok()) << path << ": " << tensor.status();
  return *tensor;
}

struct Frozen {
  testing::TemporaryFolder folder;
  std::string path;
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
  Status status;
};

void Freeze(const std::string& model, const ImportRequest& request, Frozen* out,
            const TfSource::Shapes& shapes = {}) {
  auto source = OpenModel(kData + model, {});
  ASSERT_TRUE(source.ok()) << source.status();
  auto* tensorflow = dynamic_cast<TfSource*>(source->get());
  ASSERT_NE(tensorflow, nullptr);
  auto frozen = tensorflow->Freeze(request, shapes);
  out->status = frozen.status();
  if (!frozen.ok()) return;
  out->inputs = frozen->inputs;
  out->outputs = frozen->outputs;
  out->path = out->folder.File("frozen.pb");
  ASSERT_TRUE(WriteFrozenGraph(out->path, *frozen).ok());
  EXPECT_EQ((*MappedFile::Open(out->path))->text().size(), frozen->graph_def.bytes());
}

// Freezes a signature and compares every output with the recorded one.
void Check(const std::string& model, const std::string& signature = "") {
  Frozen frozen;
  Freeze("models/" + model, {signature, {}, {}}, &frozen);
  ASSERT_TRUE(frozen.status.ok()) << frozen.status;
  const auto contents = ReadTfContents(frozen.path, {});
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_TRUE(contents->variables.empty());
  EXPECT_TRUE(contents->devices.empty());
  auto source = OpenModel(frozen.path, {});
  ASSERT_TRUE(source.ok()) << source.status();
  ImportRequest request;
  for (const auto& [key, name] : frozen.inputs) request.feeds.push_back(name);
  for (const auto& [key, name] : frozen.outputs) request.fetches.push_back(name);
  auto module = (*source)->Import(request, OpSet::Builtin());
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string answers = kData + "models/" + model + "/answers/";
  std::map<std::string, Tensor> feeds;
  for (const auto& [key, name] : frozen.inputs) {
    feeds[name] = ReadArray(answers + "in_" + key + ".npy");
  }
  auto results = testing::RunGraph(module->main, feeds);
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; i < results->size(); ++i) {
    const Tensor expected = ReadArray(answers + "out_" + frozen.outputs[i].first + ".npy");
    const Status agree = testing::Agree((*results)[i], expected, 1e-4);
    EXPECT_TRUE(agree.ok()) << frozen.outputs[i].first << ": " << agree;
  }
}

TEST(TfFreeze, AKerasExport) { Check("mlp"); }
TEST(TfFreeze, KerasLayersUnderAPlainModule) { Check("module"); }
TEST(TfFreeze, AnEncoderWithAGatherFromAVariable) { Check("encoder"); }
TEST(TfFreeze, AConvolutionalNet) { Check("convnet"); }
TEST(TfFreeze, TensorFlow1WithAReferenceVariable) { Check("tensorflow1"); }
TEST(TfFreeze, ASignatureBesideOneThatWrites) { Check("counter", "plain"); }

TEST(TfFreeze, LoopsAndBranchesKeepTheirFunctionsWithoutHandles) {
  for (const char* model : {"runs/recurrent/model", "runs/branches/model", "runs/masked/model"}) {
    Frozen frozen;
    Freeze(model, {}, &frozen);
    ASSERT_TRUE(frozen.status.ok()) << frozen.status;
    const auto contents = ReadTfContents(frozen.path, {});
    ASSERT_TRUE(contents.ok()) << contents.status();
    EXPECT_GT(contents->library_functions, 2);
    bool has_control = false;
    for (const auto& [op, nodes] : contents->ops) {
      has_control |= op == "While" || op == "StatelessWhile" || op == "If" || op == "StatelessIf";
      EXPECT_NE(op, "ReadVariableOp");
      EXPECT_NE(op, "ResourceGather");
    }
    EXPECT_TRUE(has_control) << model;
    auto source = OpenModel(frozen.path, {});
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_TRUE((*source)->Import({}, OpSet::Builtin()).ok());
  }
}

TEST(TfFreeze, NamesAreTheKeysAndStayUnique) {
  Frozen frozen;
  Freeze("text/version1", {}, &frozen);
  ASSERT_TRUE(frozen.status.ok()) << frozen.status;
  using Names = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(frozen.inputs, (Names{{"x", "x:0"}}));
  // A constant has the name of output n, whose tensor is n_out:0; y and z have their own.
  EXPECT_EQ(frozen.outputs, (Names{{"n", "n_1:0"}, {"y", "y:0"}, {"z", "z:0"}}));
}

TEST(TfFreeze, InnerTensorsAreFedAndFetched) {
  Frozen frozen;
  Freeze("text/frozen.pbtxt", {"", {"y:0"}, {"z:0"}}, &frozen);
  ASSERT_TRUE(frozen.status.ok()) << frozen.status;
  auto source = OpenModel(frozen.path, {});
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_EQ((*source)->signatures()[0].inputs.size(), 1u);
  EXPECT_EQ((*source)->signatures()[0].inputs[0].name, "y:0");
}

TEST(TfFreeze, SizesAreFixed) {
  Frozen frozen;
  Freeze("text/version1", {}, &frozen, {{"x", Shape({4, 3})}});
  ASSERT_TRUE(frozen.status.ok()) << frozen.status;
  auto source = OpenModel(frozen.path, {});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(StrCat((*source)->signatures()[0].inputs[0].shape), "[4,3]");
  Freeze("text/version1", {}, &frozen, {{"x", Shape({4, 2})}});
  EXPECT_EQ(frozen.status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Details(frozen.status).stage, Stage::kOptions);
}

TEST(TfFreeze, RefusesStateAndTablesByName) {
  const auto refusal = [](const std::string& model, const std::string& signature) {
    Frozen frozen;
    Freeze(model, {signature, {}, {}}, &frozen);
    EXPECT_EQ(frozen.status.code(), Code::kUnimplemented) << frozen.status;
    return std::string(Message(frozen.status));
  };
  EXPECT_NE(refusal("models/counter", "counting").find("'AssignAddVariableOp'"), std::string::npos);
  EXPECT_NE(refusal("runs/old_tables/model", "").find("'hash_table' (HashTableV2)"),
            std::string::npos);
  EXPECT_NE(refusal("runs/tables/model", "ids").find("table"), std::string::npos);
}

// A graph of one variable of `count` floats that an identity reads.
std::string GraphOfVariable(int64_t count) {
  using protozero::pbf_writer;
  std::string out;
  pbf_writer graph(out);
  const auto type_attr = [](pbf_writer& node, const char* name) {
    pbf_writer entry(node, 5);
    entry.add_string(1, name);
    pbf_writer value(entry, 2);
    value.add_enum(6, 1);
  };
  {
    pbf_writer node(graph, 1);
    node.add_string(1, "v");
    node.add_string(2, "VariableV2");
    type_attr(node, "dtype");
    pbf_writer entry(node, 5);
    entry.add_string(1, "shape");
    pbf_writer value(entry, 2);
    pbf_writer shape(value, 7);
    pbf_writer dim(shape, 2);
    dim.add_int64(1, count);
  }
  pbf_writer node(graph, 1);
  node.add_string(1, "y");
  node.add_string(2, "Identity");
  node.add_string(3, "v");
  type_attr(node, "T");
  return out;
}

TEST(TfFreeze, MoreThanTwoGigabytesAreRefusedBeforeAnythingIsWritten) {
  const int64_t count = (int64_t{1} << 29) + 1;  // addresses only: no page of them is touched
  const auto bytes = static_cast<size_t>(count) * 4;
  void* pages = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  for (const int64_t size : {count, int64_t{1000}}) {
    const std::string bytes_of_graph = GraphOfVariable(size);
    auto graph = TfGraph::Parse(bytes_of_graph, {}, "g.pb", nullptr);
    ASSERT_TRUE(graph.ok()) << graph.status();
    TfFreezeRequest request;
    request.outputs.push_back({"y:0", "y:0", DType::kF32, {}});
    request.variable = [&](const TfNode&) -> Result<Tensor> {
      const auto* data = static_cast<const std::byte*>(pages);
      return Tensor::View({DType::kF32, Shape{size}}, {data, static_cast<size_t>(size) * 4},
                          nullptr);
    };
    const auto frozen = FreezeTfGraph(**graph, request);
    EXPECT_EQ(frozen.ok(), size < count) << frozen.status();
    if (size == count) {
      EXPECT_EQ(frozen.status().code(), Code::kUnimplemented);
      EXPECT_NE(Message(frozen.status()).find("2 GB"), std::string::npos) << frozen.status();
    }
  }
  munmap(pages, bytes);
}

TEST(WireRope, NestsSmallAndLargeParts) {
  const std::string large(5000, 'x');
  WireRope inner, outer;
  inner.Varint(1, 300);
  inner.View(4, large);
  inner.Text(2, "after");
  outer.Text(1, "before");
  outer.Message(8, std::move(inner));
  outer.Varint(3, uint64_t(-1));
  std::string joined;
  for (Bytes part : outer.Parts()) joined += part;
  EXPECT_EQ(joined.size(), outer.bytes());
  WireMessage message{Bytes(joined)};
  ASSERT_TRUE(message.Next());
  EXPECT_EQ(message.View(), "before");
  ASSERT_TRUE(message.Next());
  EXPECT_EQ(message.field(), 8u);
  WireMessage nested(message.View());
  ASSERT_TRUE(nested.Next());
  EXPECT_EQ(nested.Int(), 300);
  ASSERT_TRUE(nested.Next());
  EXPECT_EQ(nested.View(), large);
  ASSERT_TRUE(nested.Next());
  EXPECT_EQ(nested.View(), "after");
  ASSERT_TRUE(message.Next());
  EXPECT_EQ(message.Int(), -1);
  EXPECT_FALSE(message.Next());
}

}  // namespace
}  // namespace oncilla
