// The engine's own model file: what is written is read back, and damaged or malicious files are
// refused.
#include "engine/import/container/container.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/graph/print.h"
#include "engine/graph/verify.h"
#include "engine/import/container/bytes.h"
#include "engine/import/convert_module.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using ::oncilla::testing::TemporaryFolder;
using ::oncilla::testing::WriteQuickly;

std::shared_ptr<const OpSet> Ops() {
  static const auto ops = OpSet::Builtin();
  return ops;
}

std::vector<float> Ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) / 8 - 3;
  return values;
}

// One function of one argument: relu(x) or -x.
Graph Function(const std::string& op, const std::string& input) {
  Graph graph(Ops());
  const ValueId x = graph.AddInput(input, Fact::Of(DType::kF32, PartialShape::OfRank(2)));
  graph.AddOutput("y", *graph.Add("f", op, {}, {x}));
  return graph;
}

ContainerContents SmallModel() {
  Graph graph(Ops());
  const ValueId x = graph.AddInput(
      "x", Fact::Of(DType::kF32, PartialShape(std::vector<Dim>{Dim::Named("batch"), Dim(16)})));
  const ValueId choose = graph.AddInput("choose", Fact::Of(DType::kBool, PartialShape(Shape())));
  const ValueId w =
      graph.AddConstant(Tensor::Of<float>(DType::kF32, {16, 16}, Ramp(256)), "weights");
  const ValueId again = graph.AddConstant(Tensor::Of<float>(DType::kF32, {16, 16}, Ramp(256)));
  const ValueId words = graph.AddConstant(Tensor::Strings({2}, {"a\xff", ""}), "words");
  const ValueId y = *graph.Add("product", "MatMul", {}, {x, w});
  const ValueId z = *graph.Add("second", "MatMul", {}, {y, again});
  graph.SetValueName(z, "second:0");
  const auto branch = graph.AddNode("branch", "If",
                                    {{"branches", std::vector<std::string>{"then", "else"}},
                                     {"outputs", std::vector<std::string>{"f32[?,?]"}}},
                                    {choose, z}, {"one", "two"});
  const ValueId total =
      *graph.Add("total", "ReadVariable", {{"variable", "total"}, {"output", "f32[?,?]"}}, {});
  graph.AddOutput("result", (*branch)[0]);
  graph.AddOutput("words", words);
  graph.AddOutput("total", total);
  Module module(std::move(graph));
  module.functions.emplace_back("then", Function("Relu", "a"));
  module.functions.emplace_back("else", Function("Neg", "b"));
  module.variables.push_back({"total", "Total", Tensor::Of<float>(DType::kF32, {1, 2}, Ramp(2))});
  Signature signature;
  signature.key = "serving_default";
  signature.inputs = {{"x", "x:0", DType::kF32, module.main.fact(x).shape},
                      {"choose", "choose:0", DType::kBool, PartialShape(Shape())}};
  signature.outputs = {{"result", "y:0", DType::kF32, PartialShape::OfRank(2)},
                       {"words", "w:0", DType::kString, PartialShape(Shape({2}))},
                       {"total", "t:0", DType::kF32, PartialShape()}};
  ContainerContents contents;
  contents.source_format = "test";
  contents.entries.push_back({std::move(signature), std::move(module)});
  return contents;
}

class Container : public ::testing::Test {
 protected:
  Result<std::unique_ptr<ModelSource>> Open() { return OpenModel(path_, {}); }
  // Opens, and imports everything that is in it.
  Status Load() {
    ONCILLA_ASSIGN(const auto source, Open());
    for (const Signature& signature : source->signatures()) {
      ONCILLA_ASSIGN(const Module module, source->Import({signature.key, {}, {}}, Ops()));
      ONCILLA_TRY(Verify(module.main));
    }
    return source->ImportInitialiser({"Total"}, Ops()).status();
  }
  void Write(const ContainerContents& contents) {
    const Status status = WriteContainer(path_, contents);
    ASSERT_TRUE(status.ok()) << status;
  }
  // The file with its graph part changed and all checksums recomputed.
  void Forge(const std::string& file, const std::string& graph) {
    auto header = *container::ReadHeader(file);
    const std::string weights = file.substr(header.weights_offset);
    header.graph_bytes = graph.size();
    header.graph_hash = container::Hash(graph);
    header.weights_offset = container::kHeaderBytes + graph.size();
    ASSERT_TRUE(WriteQuickly(path_, container::WriteHeader(header) + graph + weights));
  }
  static std::string GraphOf(const std::string& file) {
    return file.substr(container::kHeaderBytes, container::ReadHeader(file)->graph_bytes);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.File("model.bin");  // found by content
};

TEST_F(Container, GivesBackWhatWasWritten) {
  const ContainerContents contents = SmallModel();
  Write(contents);
  auto source = Open();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->format(), "Oncilla");
  const Signature& signature = (*source)->signatures()[0];
  EXPECT_EQ(signature.key, "serving_default");
  EXPECT_EQ(StrCat(signature.inputs[0].shape), "[batch,16]");
  EXPECT_EQ(signature.inputs[0].source, "x:0");
  EXPECT_EQ(signature.outputs[1].dtype, DType::kString);
  auto module = (*source)->Import({}, Ops());
  ASSERT_TRUE(module.ok()) << module.status();
  const Module& wanted = contents.entries[0].module;
  EXPECT_TRUE(Verify(module->main).ok());
  EXPECT_EQ(Print(module->main), Print(wanted.main));
  ASSERT_EQ(module->functions.size(), 2u);
  EXPECT_EQ(Print(module->functions[1].second), Print(wanted.functions[1].second));
  EXPECT_EQ(module->main.nodes()[2].sources, (std::vector<std::string>{"one", "two"}));
  ASSERT_EQ(module->variables.size(), 1u);
  EXPECT_EQ(module->variables[0].resource, "Total");
  EXPECT_EQ(*ToDoubles(module->variables[0].initial), (std::vector<double>{-3, -2.875}));
  // Constants are views, aligned, and equal ones the same bytes.
  std::vector<const Value*> weights;
  for (const Value& value : module->main.values()) {
    if (value.is_constant() && value.fact.dtype == DType::kF32) weights.push_back(&value);
  }
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0]->fact.value.bytes().data(), weights[1]->fact.value.bytes().data());
  EXPECT_TRUE(weights[0]->fact.value.mapped());
  EXPECT_TRUE(weights[0]->fact.value.aligned());
  source->reset();  // tensors keep the file open
  EXPECT_EQ((*ToDoubles(weights[0]->fact.value))[255], 255.0 / 8 - 3);
}

TEST_F(Container, PartsComeAlone) {
  Write(SmallModel());
  auto source = *Open();
  auto part = source->Import({"", {}, {"words"}}, Ops());
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->main.nodes().size(), 0u);
  EXPECT_EQ(part->main.inputs().size(), 0u);
  auto turned = source->Import({"", {"choose", "x"}, {"total", "result"}}, Ops());
  ASSERT_TRUE(turned.ok()) << turned.status();
  EXPECT_EQ(turned->main.inputs()[0].name, "choose");
  EXPECT_EQ(turned->main.outputs()[1].name, "result");
  const Status unknown = source->Import({"", {}, {"reslut"}}, Ops()).status();
  EXPECT_EQ(unknown.code(), Code::kNotFound);
  EXPECT_NE(Message(unknown).find("did you mean 'result'"), std::string::npos) << unknown;
  const Status unfed = source->Import({"", {"x"}, {"result"}}, Ops()).status();
  EXPECT_EQ(unfed.code(), Code::kInvalidArgument);
  EXPECT_NE(Message(unfed).find("'choose'"), std::string::npos) << unfed;
}

TEST_F(Container, OutputsOfWhatChangesStateComeTogether) {
  ContainerContents contents = SmallModel();
  Graph& main = contents.entries[0].module.main;
  ASSERT_TRUE(
      main.AddNode("set", "AssignVariable", {{"variable", "total"}}, {main.outputs()[0].value})
          .ok());
  Write(contents);
  auto source = *Open();
  EXPECT_EQ(source->Import({"", {}, {"words"}}, Ops()).status().code(), Code::kUnimplemented);
  auto all = source->Import({"", {}, {"words", "total", "result"}}, Ops());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->main.outputs()[2].name, "result");
  EXPECT_EQ(all->main.nodes().size(), main.nodes().size());
}

TEST_F(Container, DamageIsFound) {
  Write(SmallModel());
  const std::string file = *ReadFile(path_, 1 << 20);
  ASSERT_TRUE(Load().ok()) << Load();
  const size_t graph_end = container::kHeaderBytes + container::ReadHeader(file)->graph_bytes;
  for (size_t at = 0; at < graph_end; ++at) {
    std::string flipped = file;
    flipped[at] ^= static_cast<char>(1 << (at % 8));
    ASSERT_TRUE(WriteQuickly(path_, flipped));
    EXPECT_FALSE(Load().ok()) << at;
  }
  for (size_t size = 0; size < file.size(); size += size < graph_end + 8 ? 1 : 97) {
    ASSERT_TRUE(WriteQuickly(path_, file.substr(0, size)));
    EXPECT_FALSE(Load().ok()) << size;
  }
  // A constant's checksum is compared as it is imported, and all of them on request.
  std::string flipped = file;
  flipped[file.size() - 3] ^= 1;
  ASSERT_TRUE(WriteQuickly(path_, flipped));
  EXPECT_EQ(Load().code(), Code::kDataLoss);
  EXPECT_EQ(VerifyWeights(*MappedFile::Open(path_)).code(), Code::kDataLoss);
  ASSERT_TRUE(WriteQuickly(path_, file));
  EXPECT_TRUE(VerifyWeights(*MappedFile::Open(path_)).ok());
}

TEST_F(Container, DamageUnderRightChecksumsDoesNotCrash) {
  Write(SmallModel());
  const std::string file = *ReadFile(path_, 1 << 20);
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string graph = GraphOf(file);
    for (int k = 0; k < 1 + i % 4; ++k) {
      graph[random() % graph.size()] = static_cast<char>(i % 2 == 0 ? random() : random() % 4);
    }
    Forge(file, graph);
    refused += !Load().ok();
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(Container, OpsVersionsAndReferencesAreChecked) {
  Write(SmallModel());
  const std::string file = *ReadFile(path_, 1 << 20);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string graph = GraphOf(file);
    const size_t at = graph.find(from);
    EXPECT_NE(at, std::string::npos);
    Forge(file, graph.replace(at, from.size(), to));
    return Load();
  };
  const Status op = with("MatMul", "MatMuk");
  EXPECT_EQ(op.code(), Code::kUnimplemented);
  EXPECT_NE(Message(op).find("MatMuk"), std::string::npos) << op;
  EXPECT_EQ(with("branches", "brancheS").code(), Code::kInvalidArgument);
  const Status function = with("then", "them");
  EXPECT_EQ(function.code(), Code::kDataLoss);
  EXPECT_NE(Message(function).find("no function 'them'"), std::string::npos) << function;

  auto header = *container::ReadHeader(file);
  header.version = kContainerVersion + 1;
  ASSERT_TRUE(WriteQuickly(path_, container::WriteHeader(header) + file.substr(64)));
  const Status version = Load();
  EXPECT_EQ(version.code(), Code::kUnimplemented);
  EXPECT_NE(Message(version).find("version 2"), std::string::npos) << version;
}

TEST_F(Container, FunctionsMustFitTheirCallsAndEnd) {
  ContainerContents contents = SmallModel();
  Module& module = contents.entries[0].module;
  Graph loop(Ops());
  const ValueId x = loop.AddInput("a", Fact::Of(DType::kF32, PartialShape::OfRank(2)));
  const bool truth[] = {true};
  const ValueId yes = loop.AddConstant(Tensor::Of<bool>(DType::kBool, {}, truth));
  const auto call = loop.AddNode("again", "If",
                                 {{"branches", std::vector<std::string>{"then", "else"}},
                                  {"outputs", std::vector<std::string>{"f32[?,?]"}}},
                                 {yes, x});
  loop.AddOutput("y", (*call)[0]);
  module.functions[0].second = std::move(loop);
  Write(contents);
  const Status recursion = Load();
  EXPECT_EQ(recursion.code(), Code::kDataLoss);
  EXPECT_NE(Message(recursion).find("'then' calls itself"), std::string::npos) << recursion;

  contents = SmallModel();
  Graph two = Function("Relu", "a");
  two.AddOutput("more", two.outputs()[0].value);
  contents.entries[0].module.functions[0].second = std::move(two);
  Write(contents);
  EXPECT_EQ(Load().code(), Code::kDataLoss);

  contents = SmallModel();
  contents.entries[0].module.variables[0].initial = Tensor::ScalarInt64(1);
  Write(contents);
  const Status variable = Load();
  EXPECT_EQ(variable.code(), Code::kDataLoss);
  EXPECT_NE(Message(variable).find("'total'"), std::string::npos) << variable;
}

TEST_F(Container, NamesOfValuesBelongToOne) {
  ContainerContents contents = SmallModel();
  Graph& graph = contents.entries[0].module.main;
  ASSERT_FALSE(graph.nodes().empty());
  graph.SetValueName(graph.node(NodeId{0}).outputs[0], "second:0");
  ASSERT_TRUE(WriteContainer(path_, contents).ok());
  auto model = Open();
  ASSERT_TRUE(model.ok()) << model.status();
  const Status status = (*model)->Import({}, Ops()).status();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_NE(Message(status).find("two values are called 'second:0'"), std::string::npos) << status;
}

TEST(ConvertModule, SettlesSizesAndNarrowsWeights) {
  const ContainerContents contents = SmallModel();
  ConvertOptions options;
  options.shapes = {{"x", Shape({5, 16})}};
  options.weights = DType::kF16;
  ConvertCounts counts;
  auto module = Converted(contents.entries[0].module, options, &counts);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_TRUE(Verify(module->main).ok());
  EXPECT_EQ(counts.narrowed, 2);
  EXPECT_EQ(StrCat(module->main.fact(module->main.inputs()[0].value)), "f32[5,16]");
  int halves = 0;
  for (const Value& value : module->main.values()) {
    if (!value.is_constant() || value.fact.dtype != DType::kF16) continue;
    ++halves;
    EXPECT_EQ((*ToDoubles(value.fact.value))[9], 9.0 / 8 - 3);
  }
  EXPECT_EQ(halves, 2);
  options.shapes = {{"x", Shape({5, 17})}};
  EXPECT_EQ(Converted(contents.entries[0].module, options, &counts).status().code(),
            Code::kInvalidArgument);

  Graph large(Ops());
  std::vector<float> values = Ramp(64);
  values[63] = 70000;
  const ValueId x = large.AddInput("x", Fact::Of(DType::kF32, PartialShape(Shape({64}))));
  const ValueId w = large.AddConstant(Tensor::Of<float>(DType::kF32, {64}, values));
  large.AddOutput("y", *large.Add("sum", "Add", {}, {x, w}));
  counts = {};
  options.shapes.clear();
  auto kept = Converted(Module(std::move(large)), options, &counts);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(counts.overflowing, 1);
  EXPECT_EQ(counts.narrowed, 0);
}

}  // namespace
}  // namespace oncilla
