// Models detected by content and imported whole: names, near names, and the messages of refusals.
#include "engine/import/tf/import.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <protozero/pbf_writer.hpp>

#include "engine/base/file.h"
#include "engine/graph/print.h"
#include "engine/graph/verify.h"
#include "engine/import/graph_builder.h"
#include "engine/import/tf/source.h"
#include "tests/unit/support/run_graph.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using protozero::pbf_writer;

const std::string kQuickstart =
    std::string(ONCILLA_SOURCE_DIR) + "/testdata/quickstart/efficientnet_lite0";

// One temporary file with the given bytes.
class File {
 public:
  explicit File(const std::string& bytes) {
    char name[] = "/tmp/oncilla_model_XXXXXX";
    const int fd = mkstemp(name);
    EXPECT_GE(fd, 0);
    close(fd);
    path_ = name;
    EXPECT_TRUE(::oncilla::testing::WriteQuickly(path_, bytes));
  }
  ~File() { (void)RemoveFile(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct GraphText {
  std::string bytes;
  pbf_writer writer{bytes};

  void Node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
            const std::vector<std::pair<std::string, int>>& types = {}) {
    pbf_writer node(writer, 1);
    node.add_string(1, name);
    node.add_string(2, op);
    for (const std::string& input : inputs) node.add_string(3, input);
    for (const auto& [key, type] : types) {
      pbf_writer entry(node, 5);
      entry.add_string(1, key);
      pbf_writer attr(entry, 2);
      attr.add_enum(6, type);
    }
  }
};

// x -> Relu -> Add(., y) -> out, with an unused placeholder.
GraphText SmallGraph() {
  GraphText g;
  g.Node("x", "Placeholder", {}, {{"dtype", 1}});
  g.Node("y", "Placeholder", {}, {{"dtype", 1}});
  g.Node("unused", "Placeholder", {}, {{"dtype", 3}});
  g.Node("relu", "Relu", {"x"}, {{"T", 1}});
  g.Node("sum", "AddV2", {"relu", "y:0"}, {{"T", 1}});
  g.Node("out", "Identity", {"sum"}, {{"T", 1}});
  return g;
}

Result<Module> Import(ModelSource& model, ImportRequest request) {
  return model.Import(request, OpSet::Builtin());
}

TEST(OpenModel, FindsAGraphsInputsAndOutputs) {
  const File file(SmallGraph().bytes);
  auto model = OpenModel(file.path(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->format(), "GraphDef");
  ASSERT_EQ((*model)->signatures().size(), 1u);
  const Signature& s = (*model)->signatures()[0];
  ASSERT_EQ(s.inputs.size(), 3u);
  EXPECT_EQ(s.inputs[2].name, "unused:0");
  EXPECT_EQ(s.inputs[2].dtype, DType::kI32);
  ASSERT_EQ(s.outputs.size(), 1u);
  EXPECT_EQ(s.outputs[0].name, "out:0");

  // Only the inputs that the outputs need.
  auto module = Import(**model, {});
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_TRUE(Verify(module->main).ok());
  ASSERT_EQ(module->main.inputs().size(), 2u);
  EXPECT_EQ(module->main.inputs()[0].name, "x:0");
  const float x[] = {-1, 2}, y[] = {10, 20};
  const auto results =
      testing::RunGraph(module->main, {{"x:0", Tensor::Of<float>(DType::kF32, {2}, x)},
                                       {"y:0", Tensor::Of<float>(DType::kF32, {2}, y)}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(*ToDoubles((*results)[0]), (std::vector<double>{10, 22}));
}

TEST(OpenModel, FeedsAndFetchesCarryTheNamesAskedFor) {
  const File file(SmallGraph().bytes);
  auto model = OpenModel(file.path(), {});
  ASSERT_TRUE(model.ok());
  // ":0" may be left out; a tensor in the middle may be fed; an unneeded input stays.
  auto module = Import(**model, {"", {"relu", "unused", "y:0"}, {"sum", "out:0"}});
  ASSERT_TRUE(module.ok()) << module.status();
  const Graph& g = module->main;
  ASSERT_EQ(g.inputs().size(), 3u);
  EXPECT_EQ(g.inputs()[0].name, "relu");
  EXPECT_EQ(g.fact(g.inputs()[0].value).dtype, DType::kF32);
  EXPECT_EQ(g.inputs()[1].name, "unused");
  EXPECT_EQ(g.inputs()[2].name, "y:0");
  ASSERT_EQ(g.outputs().size(), 2u);
  EXPECT_EQ(g.outputs()[0].name, "sum");
  EXPECT_EQ(g.outputs()[1].name, "out:0");
  const Status both = Import(**model, {"", {"relu"}, {"relu:0"}}).status();
  EXPECT_EQ(both.code(), Code::kInvalidArgument);
  EXPECT_NE(Message(both).find("relu:0 is both fed and fetched."), std::string::npos) << both;
}

TEST(OpenModel, APlaceholderThatIsNotFedTakesItsDefault) {
  GraphText g;
  g.Node("x", "Placeholder", {}, {{"dtype", 1}});
  g.Node("default", "Relu", {"x"}, {{"T", 1}});
  g.Node("p", "PlaceholderWithDefault", {"default"}, {{"dtype", 1}});
  g.Node("out", "Neg", {"p"}, {{"T", 1}});
  const File file(g.bytes);
  auto model = OpenModel(file.path(), {});
  ASSERT_TRUE(model.ok());
  const Signature& signature = (*model)->signatures()[0];
  ASSERT_EQ(signature.inputs.size(), 2u);
  EXPECT_FALSE(signature.inputs[0].has_default);
  EXPECT_TRUE(signature.inputs[1].has_default);
  auto module = Import(**model, {});
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ(module->main.inputs().size(), 1u);
  EXPECT_EQ(module->main.inputs()[0].name, "x:0");
  const float x[] = {-1, 2};
  const Tensor fed = Tensor::Of<float>(DType::kF32, {2}, x);
  auto results = testing::RunGraph(module->main, {{"x:0", fed}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(*ToDoubles((*results)[0]), (std::vector<double>{0, -2}));
  // Fed, it needs nothing else.
  module = Import(**model, {"", {"p"}, {}});
  ASSERT_TRUE(module.ok()) << module.status();
  results = testing::RunGraph(module->main, {{"p", fed}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(*ToDoubles((*results)[0]), (std::vector<double>{1, -2}));
}

TEST(OpenModel, SaysWhatIsWrongWithNames) {
  const File file(SmallGraph().bytes);
  auto model = OpenModel(file.path(), {});
  ASSERT_TRUE(model.ok());
  Status status = Import(**model, {"", {"z"}, {}}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(Details(status).stage, Stage::kOptions);
  EXPECT_NE(Message(status).find("there is no input 'z'"), std::string::npos) << status;
  status = Import(**model, {"", {}, {"otu:0"}}).status();
  EXPECT_NE(Message(status).find("there is no output 'otu:0'; did you mean 'out:0'?"),
            std::string::npos)
      << status;
  // A placeholder that is needed and not fed.
  status = Import(**model, {"", {"x"}, {}}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Details(status).node, "y");
  EXPECT_NE(
      Message(status).find("You must feed a value for placeholder tensor 'y' with dtype float"),
      std::string::npos)
      << status;
  status = Import(**model, {"serving", {}, {}}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
}

TEST(OpenModel, ListsEveryUnsupportedOpThatTheOutputsNeed) {
  GraphText g;
  g.Node("x", "Placeholder", {}, {{"dtype", 1}});
  g.Node("a", "Frobnicate", {"x"});
  g.Node("b", "Frobnicate", {"a"});
  g.Node("c", "Quux", {"b", "x"});
  g.Node("d", "Relu", {"c"});
  g.Node("e", "NeverNeeded", {"x"});
  g.Node("f", "Relu", {"e"});
  const File file(g.bytes);
  auto model = OpenModel(file.path(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  const Status status = Import(**model, {"", {}, {"d"}}).status();
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_EQ(Details(status).stage, Stage::kLoad);
  EXPECT_EQ(Details(status).node, "a");
  EXPECT_EQ(Message(status), file.path() +
                                 ": 2 ops are not supported: 'Frobnicate' in 2 nodes: 'a', 'b'; "
                                 "'Quux' in 1 node: 'c'");
}

TEST(OpenModel, TellsHowToExportJaxWithoutXla) {
  GraphText g;
  g.Node("x", "Placeholder", {}, {{"dtype", 1}});
  g.Node("call", "XlaSvd", {"x"});
  const File file(g.bytes);
  auto model = OpenModel(file.path(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  const Status status = Import(**model, {"", {}, {"call"}}).status();
  EXPECT_NE(std::string(Message(status)).find("'XlaSvd' (of XLA; jax2tf.convert("),
            std::string::npos)
      << status;
}

TEST(OpenModel, RefusesWhatIsNoModel) {
  const auto open = [](const std::string& bytes) {
    const File file(bytes);
    return OpenModel(file.path(), {}).status();
  };
  EXPECT_EQ(open("").code(), Code::kDataLoss);
  EXPECT_EQ(open("hello").code(), Code::kDataLoss);
  EXPECT_EQ(open("\x89HDF\r\n\x1a\n....").code(), Code::kUnimplemented);
  EXPECT_EQ(open("PK\x03\x04....").code(), Code::kUnimplemented);
  EXPECT_EQ(open("\x1c\0\0\0TFL3......").code(), Code::kDataLoss);  // cut by the zero bytes
  EXPECT_EQ(open(std::string("\x1c\0\0\0TFL3......", 14)).code(),
            Code::kDataLoss);  // no table there
  EXPECT_EQ(open("node {\n name: \"x\"\n}").code(),
            Code::kDataLoss);  // a graph, of a node without op
  EXPECT_EQ(OpenModel("/no/such/model", {}).status().code(), Code::kNotFound);
}

TEST(OpenModel, TheQuickstartModelByFolderAndByFile) {
  for (const std::string& path : {kQuickstart, kQuickstart + "/saved_model.pb"}) {
    auto model = OpenModel(path, {});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->format(), "SavedModel");
    EXPECT_GT((*model)->file_bytes(), 5000000);
    auto signature = (*model)->FindSignature("");
    ASSERT_TRUE(signature.ok());
    EXPECT_EQ((*signature)->key, "serving_default");
    const Status status = (*model)->FindSignature("serving_defualt").status();
    EXPECT_EQ(Message(status),
              "there is no signature 'serving_defualt'; did you mean 'serving_default'? "
              "There is: 'serving_default'; functions: 'classify'");
  }
}

// The message of importing one op between placeholders; empty when it is accepted. Complex tensors
// exist only within a graph, and only ops that support them may read them.
std::string Importing(std::string_view op, const std::vector<PartialShape>& shapes,
                      const GraphBuilder::Attrs& attrs = {}, const Tensor& first = Tensor()) {
  GraphBuilder g;
  std::vector<GraphBuilder::Output> inputs;
  if (first.valid()) inputs.push_back(g.Constant(first, "first"));
  for (const PartialShape& shape : shapes) inputs.push_back(g.Placeholder(DType::kF32, shape));
  g.Op(op, inputs, attrs, "y", DType::kF32);
  const auto bytes = g.GraphDef();
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  auto source = OpenGraphDefBytes(std::make_shared<const std::string>(*bytes), "graph");
  EXPECT_TRUE(source.ok()) << source.status();
  const auto module = Import(**source, {});
  return module.ok() ? "" : Message(module.status());
}

TEST(OpenModel, RefusesProductsOfVectors) {
  const PartialShape vector(Shape{3}), matrix(Shape{3, 3});
  for (const char* op : {"MatMul", "BatchMatMulV2"}) {
    EXPECT_EQ(Importing(op, {matrix, matrix}), "") << op;
    EXPECT_EQ(Importing(op, {PartialShape(), matrix}), "") << op;
    EXPECT_NE(Importing(op, {vector, matrix}).find("operand 0 must have at least two axes"),
              std::string::npos)
        << op;
    EXPECT_NE(Importing(op, {matrix, vector}).find("operand 1 must have at least two axes"),
              std::string::npos)
        << op;
  }
}

TEST(OpenModel, RefusesGradientsThatDoNotFitTheirConvolution) {
  const auto conv = [](std::vector<int32_t> sizes, const PartialShape& gradient) {
    return Importing(
        "Conv2DBackpropInput", {PartialShape(Shape{3, 3, 3, 2}), gradient},
        {{"strides", std::vector<int64_t>{1, 2, 2, 1}}, {"padding", std::string("SAME")}},
        Tensor::Of<int32_t>(DType::kI32, {4}, sizes));
  };
  const auto says = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const PartialShape gradient(Shape{2, 4, 4, 2});
  EXPECT_EQ(conv({2, 8, 7, 3}, gradient), "");
  says(conv({2, 8, 9, 3}, gradient), "an output of 9 with stride 2 has a gradient of 5, not 4");
  says(conv({1, 8, 8, 3}, gradient), "a batch of 1 and the gradient one of 2");
  says(conv({2, 8, 8, 4}, gradient), "4 channels and the filter 3");
  // Two groups fit the filter's two outputs, three do not.
  EXPECT_EQ(conv({2, 8, 8, 6}, gradient), "");
  EXPECT_NE(conv({2, 8, 8, 9}, gradient), "");
  EXPECT_EQ(conv({2, 8, 9, 3}, PartialShape({Dim(), Dim(), Dim(), Dim(2)})), "");
}

TEST(OpenModel, ComplexTensorsEnterAndLeaveAsTheyAre) {
  GraphText g;
  g.Node("x", "Placeholder", {}, {{"dtype", 1}});
  g.Node("z", "Placeholder", {}, {{"dtype", 8}});
  g.Node("pair", "Complex", {"x", "x"}, {{"T", 1}, {"Tout", 8}});
  g.Node("real", "Real", {"pair"}, {{"T", 8}, {"Tout", 1}});
  g.Node("packed", "Pack", {"pair", "pair"}, {{"T", 8}});
  g.Node("size", "ComplexAbs", {"packed"}, {{"T", 8}, {"Tout", 1}});
  g.Node("fed", "ComplexAbs", {"z"}, {{"T", 8}, {"Tout", 1}});
  g.Node("wave", "Sin", {"z"}, {{"T", 8}});
  const File file(g.bytes);
  const auto import = [&](const std::string& output) {
    auto model = OpenModel(file.path(), {});
    if (!model.ok()) return Message(model.status());
    ImportRequest request;
    request.fetches = {output};
    const auto module = Import(**model, request);
    if (!module.ok()) return Message(module.status());
    std::string types;
    for (const NamedValue& input : module->main.inputs()) {
      types += StrCat(module->main.fact(input.value).dtype, " ");
    }
    return StrCat(types, "-> ", module->main.fact(module->main.outputs()[0].value).dtype);
  };
  EXPECT_EQ(import("real"), "f32 -> f32");
  EXPECT_EQ(import("pair"), "f32 -> c64");
  EXPECT_EQ(import("packed"), "f32 -> c64");
  EXPECT_EQ(import("size"), "f32 -> f32");
  EXPECT_EQ(import("fed"), "c64 -> f32");
  EXPECT_NE(import("wave").find("'Sin' (of complex numbers)"), std::string::npos) << import("wave");
}

}  // namespace
}  // namespace oncilla
