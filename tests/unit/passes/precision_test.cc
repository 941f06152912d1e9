// Mixed precision: which values become narrow, which do not and why; the error and the savings for
// real models.
#include "engine/passes/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/base/file.h"
#include "engine/graph/verify.h"
#include "engine/session/config.h"
#include "engine/session/precision_check.h"
#include "engine/session/runtime.h"
#include "engine/session/session.h"
#include "engine/tensor/narrow.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/pass_parts.h"
#include "tests/unit/support/temporary.h"
#include "tools/oncilla/files/image.h"

namespace oncilla {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OpsOf;

// Weights of these sizes, every element `value` except the first.
Tensor Weights(const Shape& shape, float value, float first) {
  Tensor tensor = Tensor::Allocate({DType::kF32, shape}).value();
  for (float& v : tensor.MutableAs<float>()) v = value;
  tensor.MutableAs<float>()[0] = first;
  return tensor;
}

class NarrowStorageTest : public testing::PassTest {
 protected:
  NarrowStorageTest() : graph_(OpSet::Builtin()) { request_.options.storage = DType::kF16; }

  ValueId Input(const std::string& name, const Shape& shape) {
    return graph_.AddInput(name, Fact::Of({DType::kF32, shape}));
  }
  ValueId Op(const std::string& name, const std::string& op, std::vector<ValueId> inputs,
             AttrMap attrs = {}) {
    auto value = graph_.Add(name, op, std::move(attrs), std::move(inputs));
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : kNoValue;
  }
  // x[2,16] -> product with w -> op, which is fetched through another product.
  void Chain(const std::string& op, float first_weight = 0.5f) {
    const ValueId x = Input("x", {2, 16});
    const ValueId a =
        Op("first", "MatMul", {x, graph_.AddConstant(Weights({16, 16}, 0.25f, first_weight))});
    const ValueId b = Op("middle", op, {a});
    const ValueId c = Op("last", "MatMul", {b, graph_.AddConstant(Weights({16, 16}, 0.125f, 1))});
    graph_.AddOutput("y", c);
  }

  Graph Narrow() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) graph_.SetDevice(NodeId{n}, 0);
    Patch patch(graph_);
    report_ = {};
    PassContext context{parts_.devices()};
    context.storage = &request_;
    context.precision = &report_;
    const Status status = NarrowStorage(graph_, context, patch);
    EXPECT_TRUE(status.ok()) << status;
    auto out = patch.Apply();
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) std::abort();
    EXPECT_TRUE(Verify(*out).ok()) << Verify(*out);
    return *std::move(out);
  }
  // The dtype of the node's first result.
  static DType Stored(const Graph& graph, const std::string& name, const std::string& op) {
    for (const Node& node : graph.nodes()) {
      if (node.name == name && node.op->name == op) return graph.fact(node.outputs[0]).dtype;
    }
    ADD_FAILURE() << "no " << op << " named " << name;
    return DType::kInvalid;
  }
  std::string WhyKept(const std::string& name) const {
    for (const auto& kept : report_.kept) {
      if (kept.node == name) return kept.why;
    }
    return "narrow";
  }

  Graph graph_;
  StorageRequest request_;
  PrecisionReport report_;
};

TEST_F(NarrowStorageTest, WeightsAndValuesBetweenBecomeNarrowAndBordersStay) {
  Chain("Relu");
  const Graph after = Narrow();
  EXPECT_EQ(OpsOf(after), "Cast MatMul Relu MatMul Cast");
  EXPECT_EQ(after.fact(after.inputs()[0].value).dtype, DType::kF32);
  EXPECT_EQ(after.fact(after.outputs()[0].value).dtype, DType::kF32);
  EXPECT_EQ(after.outputs()[0].name, "y");
  for (const Value& value : after.values()) {
    EXPECT_TRUE(!value.is_constant() || value.fact.dtype == DType::kF16);
  }
  EXPECT_EQ(report_.narrow_nodes, 3);
  EXPECT_EQ(report_.narrow_constants, 2);
  EXPECT_TRUE(report_.kept.empty());
  // Powers of two lose nothing as weights; sums do, by at most half a unit of 11 bits each.
  ExpectSameResults(graph_, after, 3 * 0x1p-11 * 4);
  request_.options.storage = DType::kBF16;
  ExpectSameResults(graph_, Narrow(), 3 * 0x1p-8 * 4);
}

TEST_F(NarrowStorageTest, NothingChangesInFp32) {
  Chain("Relu");
  request_.options.storage = DType::kF32;
  const std::string after = Print(Narrow());  // which places the nodes
  EXPECT_EQ(after, Print(graph_));
  EXPECT_EQ(report_.narrow_nodes, 0);
}

TEST_F(NarrowStorageTest, DelicateOpsKeepFp32UnlessAllowed) {
  Chain("Exp");
  Graph after = Narrow();
  EXPECT_EQ(OpsOf(after), "Cast MatMul Cast Exp Cast MatMul Cast");
  EXPECT_EQ(Stored(after, "middle", "Exp"), DType::kF32);
  EXPECT_THAT(WhyKept("middle"), HasSubstr("far larger"));
  request_.options.allow = {"op:Exp"};
  after = Narrow();
  EXPECT_EQ(OpsOf(after), "Cast MatMul Exp MatMul Cast");
  EXPECT_EQ(Stored(after, "middle", "Exp"), DType::kF16);
  request_.options.deny = {"mid*"};
  after = Narrow();
  EXPECT_EQ(Stored(after, "middle", "Exp"), DType::kF32);
  EXPECT_EQ(WhyKept("middle"), "denied by 'mid*'");
}

TEST_F(NarrowStorageTest, DeniedNodesHaveNothingNarrow) {
  Chain("Relu");
  request_.options.deny = {"first"};
  const Graph after = Narrow();
  EXPECT_EQ(Stored(after, "first", "MatMul"), DType::kF32);
  EXPECT_EQ(Stored(after, "middle", "Relu"), DType::kF32);  // what it reads is f32
  EXPECT_EQ(Stored(after, "last", "MatMul"), DType::kF16);
  for (const Node& node : after.nodes()) {
    if (node.name != "first" || node.op->name != "MatMul") continue;
    for (ValueId id : node.inputs) EXPECT_EQ(after.fact(id).dtype, DType::kF32);
  }
}

TEST_F(NarrowStorageTest, SourceTypesNameNodes) {
  Chain("Relu");
  request_.sources = std::make_shared<const SourceNodes>(
      SourceNodes{{"first", {"BatchMatMulV2"}}, {"middle", {"Relu"}}});
  request_.options.deny = {"op:BatchMatMulV2"};
  const Graph after = Narrow();
  EXPECT_EQ(Stored(after, "first", "MatMul"), DType::kF32);
  EXPECT_EQ(WhyKept("first"), "denied by 'op:BatchMatMulV2'");
}

TEST_F(NarrowStorageTest, WeightsBeyondFp16KeepFp32ButFitBf16) {
  Chain("Relu", 70000.0f);
  Graph after = Narrow();
  EXPECT_EQ(Stored(after, "first", "MatMul"), DType::kF32);
  EXPECT_EQ(WhyKept("first"), "a constant holds 70000, which fp16 does not");
  EXPECT_EQ(Stored(after, "last", "MatMul"), DType::kF16);
  request_.options.storage = DType::kBF16;
  after = Narrow();
  EXPECT_EQ(Stored(after, "first", "MatMul"), DType::kBF16);
}

TEST_F(NarrowStorageTest, ParametersThatWouldVanishKeepTheirNode) {
  const ValueId x = Input("x", {2, 16});
  const ValueId a = Op("first", "MatMul", {x, graph_.AddConstant(Weights({16, 16}, 1, 1))});
  const ValueId b = Op("epsilon", "Add", {a, graph_.AddConstant(testing::Scalar(1e-12f))});
  graph_.AddOutput("y", Op("last", "MatMul", {b, graph_.AddConstant(Weights({16, 16}, 1, 1))}));
  const Graph after = Narrow();
  EXPECT_EQ(Stored(after, "epsilon", "Add"), DType::kF32);
  EXPECT_THAT(WhyKept("epsilon"), HasSubstr("would lose its value"));
}

// A layer of 16 units over 3 steps: its weights and gates are narrow, also as the model's result.
TEST_F(NarrowStorageTest, RecurrentLayersAreNarrowWithTheirWeights) {
  const ValueId gates = Input("gates", {3, 2, 64}), lengths = kNoValue;
  const ValueId h0 = Input("h0", {2, 16}), c0 = Input("c0", {2, 16});
  const ValueId weights = graph_.AddConstant(Weights({16, 64}, 0.03125f, 0.5f));
  const auto out = graph_.AddNode("lstm", "Lstm", {}, {gates, weights, lengths, h0, c0});
  ASSERT_TRUE(out.ok()) << out.status();
  graph_.AddOutput("y", (*out)[0]);
  graph_.AddOutput("c", (*out)[2]);
  const Graph after = Narrow();
  EXPECT_EQ(Stored(after, "lstm", "Lstm"), DType::kF16);
  EXPECT_EQ(after.fact(after.outputs()[1].value).dtype, DType::kF32);
  EXPECT_EQ(report_.narrow_constants, 1);
  ExpectSameResults(graph_, after, 4e-3);
  request_.options.deny = {"op:Lstm"};
  EXPECT_EQ(Stored(Narrow(), "lstm", "Lstm"), DType::kF32);
  EXPECT_EQ(WhyKept("lstm"), "denied by 'op:Lstm'");
}

// A mask is computed and added in f32: in fp16 a completely masked row would be NaN.
TEST_F(NarrowStorageTest, MasksAreAddedInFp32) {
  const ValueId x = Input("x", {2, 16}), keep = Input("keep", {2, 16});
  const ValueId scores = Op("scores", "MatMul", {x, graph_.AddConstant(Weights({16, 16}, 1, 1))});
  const ValueId mask = Op("mask", "Mul", {keep, graph_.AddConstant(testing::Scalar(-1e9f))});
  const ValueId masked = Op("masked", "Add", {scores, mask});
  const ValueId soft = Op("soft", "Softmax", {masked}, {{"axis", int64_t{-1}}});
  graph_.AddOutput("y", Op("last", "MatMul", {soft, graph_.AddConstant(Weights({16, 16}, 1, 1))}));
  const Graph after = Narrow();
  EXPECT_EQ(Stored(after, "scores", "MatMul"), DType::kF16);
  EXPECT_EQ(Stored(after, "masked", "Add"), DType::kF32);
  EXPECT_EQ(Stored(after, "last", "MatMul"), DType::kF16);
  ExpectSameResults(graph_, after, 1e-2);
}

TEST_F(NarrowStorageTest, AValueReadByBothKindsIsCastOnce) {
  const ValueId x = Input("x", {2, 16});
  const ValueId w = graph_.AddConstant(Weights({16, 16}, 0.5f, 1));
  const ValueId a = Op("a", "MatMul", {x, w}), b = Op("b", "MatMul", {x, w});
  graph_.AddOutput("sum", Op("exp", "Exp", {a}));
  graph_.AddOutput("y", Op("last", "MatMul", {Op("add", "Add", {a, b}), w}));
  const Graph after = Narrow();
  int to_narrow = 0, constants = 0;
  for (const Node& node : after.nodes()) {
    to_narrow += node.op->name == "Cast" && after.fact(node.outputs[0]).dtype == DType::kF16;
  }
  for (const Value& value : after.values()) constants += value.is_constant();
  EXPECT_EQ(to_narrow, 1);
  EXPECT_EQ(constants, 1);
}

TEST(Narrowed, RoundsToNearestAndSaysWhatIsLost) {
  const auto narrow = [](std::vector<float> values, DType dtype) {
    const Shape shape{static_cast<int64_t>(values.size())};
    return Narrowed(Tensor::Of<float>(DType::kF32, shape, values), dtype).value();
  };
  const Narrowing exact = narrow({1, -0.5f, 65504}, DType::kF16);
  ASSERT_TRUE(exact.tensor.valid());
  EXPECT_EQ(exact.relative_error, 0);
  EXPECT_EQ(exact.largest, 65504);
  EXPECT_FALSE(narrow({1, 65520}, DType::kF16).tensor.valid());
  EXPECT_TRUE(narrow({1, 65519}, DType::kF16).tensor.valid());
  EXPECT_TRUE(narrow({INFINITY, NAN, -INFINITY}, DType::kF16).tensor.valid());
  EXPECT_EQ(narrow({1e-9f}, DType::kF16).relative_error, 1);
  EXPECT_LE(narrow({1.001f, 3.14159f}, DType::kBF16).relative_error, 0x1p-8);
}

TEST(PrecisionConfig, IsReadPrintedAndRefused) {
  SessionOptions options;
  std::vector<std::string> notes;
  ASSERT_TRUE(ReadSessionConfig(R"(precision { storage: "bf16" allow: "op:Exp" deny: "head/*" })",
                                options, notes)
                  .ok());
  EXPECT_EQ(options.precision.storage, DType::kBF16);
  EXPECT_THAT(options.precision.allow, ElementsAre("op:Exp"));
  EXPECT_THAT(options.precision.deny, ElementsAre("head/*"));
  for (const TextForm form : {TextForm::kText, TextForm::kJson}) {
    SessionOptions again;
    ASSERT_TRUE(ReadSessionConfig(PrintSessionConfig(options, form), again, notes).ok());
    EXPECT_EQ(again.precision.storage, DType::kBF16);
    EXPECT_EQ(again.precision.allow, options.precision.allow);
    EXPECT_EQ(again.precision.deny, options.precision.deny);
  }
  EXPECT_THAT(PrintSessionConfig(SessionOptions(), TextForm::kText),
              ::testing::Not(HasSubstr("precision")));
  const auto refusal = [&](std::string_view text) {
    SessionOptions untouched;
    return std::string(Message(ReadSessionConfig(text, untouched, notes)));
  };
  EXPECT_THAT(refusal(R"(precision { storage: "fp8" })"), HasSubstr("fp32, fp16, bf16"));
  EXPECT_THAT(refusal(R"(precision { deny: "x" })"), HasSubstr("no effect"));
  EXPECT_THAT(refusal(R"(precision { storage: "fp16" deny: "" })"), HasSubstr("names nothing"));
}

// A real model on both photographs, per device.
class PrecisionOfModels : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr const char* kFolder = ONCILLA_SOURCE_DIR "/testdata/quickstart/";

  void SetUp() override {
    RuntimeOptions options = RuntimeOptionsFromEnvironment();
    options.opencl_cpu_devices = true;
    options.threads = 2;
    options.log = std::make_shared<Log>(
        LogLevel::kWarning,
        [this](LogLevel, std::string_view message) { warnings_.emplace_back(message); });
    runtime_ = Runtime::Create(options);
    if (!runtime_->Resolve(GetParam()).ok()) GTEST_SKIP() << "no device " << GetParam();
  }

  std::shared_ptr<Model> Load(const PrecisionOptions& precision,
                              const std::string& path = std::string(kFolder) +
                                                        "efficientnet_lite0") {
    SessionOptions options;
    options.device = GetParam();
    options.precision = precision;
    auto session = Session::Create(runtime_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    sessions_.push_back(*session);
    auto model = (*session)->Load(path, {});
    EXPECT_TRUE(model.ok()) << model.status();
    return *model;
  }

  static RunRequest Photograph(const std::string& name) {
    auto file = MappedFile::Open(std::string(kFolder) + name);
    EXPECT_TRUE(file.ok()) << file.status();
    auto image =
        tool::ImageTensor((*file)->bytes(), DType::kU8,
                          PartialShape(std::vector<Dim>{Dim(1), Dim(), Dim(), Dim(3)}), {});
    EXPECT_TRUE(image.ok()) << image.status();
    RunRequest request;
    request.feeds = {{"image", *image}};
    return request;
  }

  // Bytes of constants and intermediates at their peak, as the ledger counts them.
  int64_t PeakBytes(size_t session) {
    int64_t bytes = 0;
    for (const DeviceMemory& memory : sessions_[session]->memory().Devices())
      bytes += memory.peak_bytes;
    return bytes;
  }

  // The bytes of constants on the session's device.
  int64_t WeightBytes(size_t session) {
    Session& of = *sessions_[session];
    int64_t bytes = 0;
    for (const LedgerLine& line : of.memory().ledger().Lines(
             of.device_set().names()[static_cast<size_t>(of.device_set().preferred())])) {
      if (line.category == MemoryCategory::kConstants) bytes += line.bytes;
    }
    return bytes;
  }

  std::vector<std::string> warnings_;
  std::shared_ptr<Runtime> runtime_;
  std::vector<std::shared_ptr<Session>> sessions_;
};

TEST_P(PrecisionOfModels, AgreeOnPhotographsInHalfTheMemory) {
  const std::shared_ptr<Model> reference = Load({});
  // About 60 layers of roundings by half a unit (2^-12 of fp16's value, 2^-9 of bf16's) that add up
  // like a random walk, with a factor of 4 for the worst of 1000 logits.
  const double bounds[] = {4 * std::sqrt(60.0) * 0x1p-12, 4 * std::sqrt(60.0) * 0x1p-9};
  int i = 0;
  for (const DType storage : {DType::kF16, DType::kBF16}) {
    const std::shared_ptr<Model> model = Load({storage});
    for (const std::string photograph : {"coffee.png", "chelsea.png"}) {
      const auto check = CheckPrecision(*model, *reference, Photograph(photograph));
      ASSERT_TRUE(check.ok()) << check.status();
      for (const NumberErrors& output : check->outputs) {
        SCOPED_TRACE(output.name);
        EXPECT_EQ(output.overflowed, 0);
        EXPECT_EQ(output.others, 0);  // the five labels, in order
        EXPECT_LT(output.relative(), bounds[i]);
        if (output.name == "logits") {
          EXPECT_EQ(output.top1, 1);
          EXPECT_GT(output.max_error, 0);  // it is another computation
        }
      }
    }
    // On the CPU, inverted residuals in fp32 store nothing between their layers, so that there half
    // of the weights is all that can be saved.
    EXPECT_LE(static_cast<double>(WeightBytes(static_cast<size_t>(i) + 1)),
              0.51 * static_cast<double>(WeightBytes(0)));
    const double share = GetParam() == std::string("cpu") ? 0.7 : 0.55;
    EXPECT_LE(static_cast<double>(PeakBytes(static_cast<size_t>(i) + 1)),
              share * static_cast<double>(PeakBytes(0)));
    ++i;
  }
  EXPECT_THAT(warnings_, ElementsAre());
}

constexpr int64_t kSteps = 60, kSamples = 2, kUnits = 96;

Tensor Random(const Shape& shape, float most, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-most, most);
  Tensor tensor = Tensor::Allocate({DType::kF32, shape}).value();
  for (float& v : tensor.MutableAs<float>()) v = numbers(random);
  return tensor;
}

// One layer of ONNX, as many features as units, with weights as they are initialised.
std::string RecurrentModel(const std::string& op, int64_t gates, bool linear) {
  testing::OnnxGraphText graph;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape, uint32_t seed) {
    const Tensor values =
        Random(Shape(shape.begin(), shape.end()), 1 / std::sqrt(static_cast<float>(kUnits)), seed);
    const auto span = values.As<float>();
    graph.Floats(name, shape, std::vector<float>(span.begin(), span.end()));
  };
  add("w", {1, gates * kUnits, kUnits}, 1);
  add("r", {1, gates * kUnits, kUnits}, 2);
  add("b", {1, 2 * gates * kUnits}, 3);
  testing::OnnxNodeText node(op, {"x", "w", "r", "b"}, {"y", "h"}, "layer");
  node.Int("hidden_size", kUnits);
  if (linear) node.Int("linear_before_reset", 1);
  graph.Input("x", {kSteps, kSamples, kUnits}).Node(node);
  graph.Output("y", {kSteps, 1, kSamples, kUnits}).Output("h", {1, kSamples, kUnits});
  return testing::OnnxModelText(graph);
}

TEST_P(PrecisionOfModels, RecurrentLayersStayWithinTheirBoundInHalfTheWeights) {
  // Each step rounds its gates and its result, and multiplies with rounded weights: three times
  // half a unit for each step that went before, which add up like a random walk, with a factor of 4
  // for the worst. It is also the worst case that no step reduces the error of the one before.
  const double walk = 4 * std::sqrt(3.0 * kSteps);
  const testing::TemporaryFolder folder;
  struct {
    const char *op, *name;
    int64_t gates;
    bool linear;
  } const kLayers[] = {{"LSTM", "lstm", 4, false},
                       {"GRU", "gru", 3, false},
                       {"GRU", "linear_gru", 3, true},
                       {"RNN", "rnn", 1, false}};
  for (const auto& layer : kLayers) {
    SCOPED_TRACE(layer.name);
    const std::string path = folder.Write(StrCat(layer.name, ".onnx"),
                                          RecurrentModel(layer.op, layer.gates, layer.linear));
    sessions_.clear();
    const std::shared_ptr<Model> reference = Load({}, path);
    RunRequest request;
    request.feeds = {{"x", Random({kSteps, kSamples, kUnits}, 2, 4)}};
    for (const DType storage : {DType::kF16, DType::kBF16}) {
      const std::shared_ptr<Model> model = Load({storage}, path);
      const auto check = CheckPrecision(*model, *reference, request);
      ASSERT_TRUE(check.ok()) << check.status();
      for (const NumberErrors& output : check->outputs) {
        EXPECT_EQ(output.overflowed, 0);
        EXPECT_LT(output.relative(), walk * (storage == DType::kF16 ? 0x1p-12 : 0x1p-9));
        EXPECT_GT(output.max_error, 0);
      }
      EXPECT_LE(WeightBytes(sessions_.size() - 1) * 100, WeightBytes(0) * 51);
    }
  }
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_P(PrecisionOfModels, NodesTellWhereErrorsGrow) {
  const std::shared_ptr<Model> reference = Load({}), model = Load({DType::kF16});
  const auto check = CheckPrecision(*model, *reference, Photograph("coffee.png"), 6);
  ASSERT_TRUE(check.ok()) << check.status();
  ASSERT_EQ(check->nodes.size(), 6u);
  EXPECT_GT(check->nodes[4].max_error, 0);
  for (const NumberErrors& node : check->nodes) EXPECT_LT(node.relative(), 0.02) << node.name;
  EXPECT_THAT(Print(*check), HasSubstr("logits"));
}

TEST_P(PrecisionOfModels, EntriesThatNameNothingAreTold) {
  const std::shared_ptr<Model> model =
      Load({DType::kF16, {"op:Wave"}, {"nowhere/*", "op:DepthwiseConv2dNative"}});
  const auto executor = model->Executable({});
  ASSERT_TRUE(executor.ok()) << executor.status();
  const PrecisionReport& report = (*executor)->compiled().precision;
  EXPECT_THAT(report.unmatched, ElementsAre("allow 'op:Wave'", "deny 'nowhere/*'"));
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_THAT(warnings_[1], HasSubstr("deny 'nowhere/*' names no node"));
  int denied = 0;
  for (const PrecisionReport::Kept& kept : report.kept) denied += kept.why.starts_with("denied");
  EXPECT_EQ(denied, 16);  // the model's depthwise convolutions, by their name in TensorFlow
}

INSTANTIATE_TEST_SUITE_P(Devices, PrecisionOfModels, ::testing::Values("cpu", "gpu"),
                         [](const auto& info) { return std::string(info.param); });

TEST(CompareNumbers, CountsWhatOverflowsAndWhatDiffers) {
  const Tensor a = Tensor::Of<float>(DType::kF32, {2, 2}, std::vector<float>{1, 4, INFINITY, 2});
  const Tensor b = Tensor::Of<float>(DType::kF32, {2, 2}, std::vector<float>{1.5f, 1, 3, INFINITY});
  const auto errors = CompareNumbers("y", a, b);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_EQ(errors->largest, 4);
  EXPECT_EQ(errors->max_error, 3);
  EXPECT_EQ(errors->overflowed, 2);
  EXPECT_EQ(errors->top1, 0);
  const Tensor other = Tensor::Of<float>(DType::kF32, {4}, std::vector<float>{1, 2, 3, 4});
  EXPECT_FALSE(CompareNumbers("y", a, other).ok());
}

}  // namespace
}  // namespace oncilla
