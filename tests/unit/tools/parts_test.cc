// Parts of the program without a model: exit codes, parsing of flags, statistics, classes, text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "engine/base/file.h"
#include "engine/device/linked_backends.h"
#include "tools/oncilla/commands/gpu_notes.h"
#include "tools/oncilla/commands/statistics.h"
#include "tools/oncilla/commands/work.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/files/labels.h"
#include "tools/oncilla/flags.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExitCodeTest, FollowsStageThenCode) {
  const auto exit = [](Code code, Stage stage) {
    return ExitCodeOf(WithStage(Error(code, "x"), stage));
  };
  EXPECT_EQ(ExitCodeOf(Status()), 0);
  EXPECT_EQ(exit(Code::kInvalidArgument, Stage::kOptions), 2);
  EXPECT_EQ(exit(Code::kNotFound, Stage::kOptions), 2);
  EXPECT_EQ(exit(Code::kUnimplemented, Stage::kFile), 9);
  EXPECT_EQ(exit(Code::kDataLoss, Stage::kFile), 9);
  EXPECT_EQ(exit(Code::kDataLoss, Stage::kLoad), 3);
  EXPECT_EQ(exit(Code::kNotFound, Stage::kLoad), 3);
  EXPECT_EQ(exit(Code::kUnimplemented, Stage::kLoad), 4);
  EXPECT_EQ(exit(Code::kUnimplemented, Stage::kCompile), 4);
  EXPECT_EQ(exit(Code::kInvalidArgument, Stage::kCompile), 3);
  EXPECT_EQ(exit(Code::kInternal, Stage::kCompile), 5);
  EXPECT_EQ(exit(Code::kNotFound, Stage::kDevice), 5);
  EXPECT_EQ(exit(Code::kUnavailable, Stage::kDevice), 5);
  EXPECT_EQ(exit(Code::kResourceExhausted, Stage::kRun), 6);
  EXPECT_EQ(exit(Code::kDeadlineExceeded, Stage::kRun), 7);
  EXPECT_EQ(exit(Code::kInvalidArgument, Stage::kRun), 1);
  EXPECT_EQ(exit(Code::kCancelled, Stage::kRun), 130);
  EXPECT_EQ(ExitCodeOf(WithDriverCode(Internal("x"), -5)), 5);
}

TEST(ExitCodeTest, WhoOwnsAFileDecides) {
  const Status file = WithNode(WithStage(NotFound("shard"), Stage::kFile), "n");
  EXPECT_EQ(ExitCodeOf(file), 9);
  EXPECT_EQ(ExitCodeOf(OfModel(file)), 3);
  EXPECT_EQ(Details(OfModel(file)).node, "n");
  EXPECT_EQ(ExitCodeOf(OfModel(WithStage(NotFound("x"), Stage::kOptions))), 2);
  EXPECT_EQ(ExitCodeOf(OfRun(WithStage(Error(Code::kUnavailable, "hangs"), Stage::kDevice))), 7);
  EXPECT_EQ(ExitCodeOf(OfRun(WithStage(Internal("x"), Stage::kDevice))), 5);
}

TEST(PrintFailureTest, DetailsFirstAndNamesOnOneLine) {
  const auto printed = [](std::string_view message) {
    testing::internal::CaptureStderr();
    PrintFailure("run", InvalidArgument(message));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(printed("wrong\nwhy\nand how"), "why\nand how\noncilla run: error: wrong\n");
  EXPECT_EQ(printed("node 'a\nb' of the model's\nwhy 'c"),
            "why 'c\noncilla run: error: node 'a\\nb' of the model's\n");
}

TEST(ParseTest, Bytes) {
  EXPECT_EQ(*ParseBytes("64", "--limit"), 64);
  EXPECT_EQ(*ParseBytes("1.5k", "--limit"), 1500);
  EXPECT_EQ(*ParseBytes("512MiB", "--limit"), int64_t{512} << 20);
  EXPECT_EQ(*ParseBytes("2Gi", "--limit"), int64_t{2} << 30);
  EXPECT_EQ(*ParseBytes("3GB", "--limit"), 3'000'000'000);
  for (const char* bad : {"", "x", "1XB", "1ki2", "9999999T", "-1", "1i"}) {
    EXPECT_EQ(Details(ParseBytes(bad, "--limit").status()).stage, Stage::kOptions) << bad;
  }
}

TEST(ParseTest, TagsWithBlanks) {
  EXPECT_THAT(TagsOf("serve"), ElementsAre("serve"));
  EXPECT_THAT(TagsOf(" serve , gpu"), ElementsAre("serve", "gpu"));
  EXPECT_THAT(TagsOf("a b, "), ElementsAre("a b", ""));
}

TEST(ParseTest, ShapesAndNumbers) {
  EXPECT_EQ(*ParseShape("1x224x3", "--shape"), (Shape{1, 224, 3}));
  EXPECT_EQ(ParseShape("", "--shape")->rank(), 0);
  for (const char* bad : {"x", "1x", "-1", "1x2a", "1x1x1x1x1x1x1x1x1x1x1x1x1"}) {
    EXPECT_FALSE(ParseShape(bad, "--shape").ok()) << bad;
  }
  EXPECT_THAT(*ParseNumbers("0.5,-1,2e3", "--mean"), ElementsAre(0.5, -1, 2000));
  EXPECT_THAT(*ParseNumbers("", "--mean"), ElementsAre());
  EXPECT_THAT(Message(ParseNumbers("1,,2", "--mean").status()), HasSubstr("--mean"));
  EXPECT_FALSE(ParseNumbers("nan", "--mean").ok());
}

TEST(SummaryTest, PercentilesAndSpread) {
  const Summary s = Summarize({5, 1, 2, 4, 3});
  EXPECT_EQ(s.count, 5u);
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.mean, 3);
  EXPECT_EQ(s.mad, 1);
  EXPECT_DOUBLE_EQ(s.p90, 4.6);
  EXPECT_TRUE(s.noisy());
  EXPECT_FALSE(Summarize({1, 1, 1, 9}).noisy());
  EXPECT_EQ(Summarize({}).count, 0u);
  EXPECT_EQ(Summarize({7}).p99, 7);
}

Tensor Floats(Shape shape, std::vector<float> values) {
  return Tensor::Of<float>(DType::kF32, std::move(shape), values);
}

TEST(TopLabelsTest, TakesTheModelsOwnNames) {
  const std::vector<NamedTensor> outputs = {{"label", Tensor::Strings({1, 2}, {"cup", "cat"})},
                                            {"p", Floats({1, 2}, {0.25f, 0.5f})},
                                            {"logits", Floats({1, 4}, {1, 2, 3, 4})}};
  const TopLabels top = *FindTopLabels(outputs, 5, {});
  EXPECT_EQ(top.output, "p");
  EXPECT_FALSE(top.softmax);
  ASSERT_EQ(top.rows[0].size(), 2u);
  EXPECT_EQ(top.rows[0][0].label, "cat");
  EXPECT_EQ(top.rows[0][1].score, 0.25);
}

TEST(TopLabelsTest, NormalisesLogitsAndNamesClasses) {
  const std::vector<NamedTensor> outputs = {
      {"x", Floats({2, 3}, {3, 3 + std::log(2.f), 3, 5, 5, NAN})}};
  const TopLabels top = *FindTopLabels(outputs, 2, {"a", "b", "c"});
  EXPECT_TRUE(top.softmax);
  ASSERT_EQ(top.rows.size(), 2u);
  EXPECT_EQ(top.rows[0][0].label, "b");
  EXPECT_NEAR(top.rows[0][0].score, 0.5, 1e-6);
  EXPECT_EQ(FindTopLabels(outputs, 1, {})->rows[0][0].label, "class 1");
  EXPECT_THAT(Message(FindTopLabels(outputs, 1, {"a"}).status()), HasSubstr("3 classes"));
  EXPECT_THAT(Message(FindTopLabels({{"s", Floats({}, {1})}}, 1, {}).status()),
              HasSubstr("no output"));
}

TEST(TopLabelsTest, PrintsAlignedBars) {
  EXPECT_EQ(PrintBars({{"caf\xc3\xa9", 0.5}, {"a", 0.001}, {"none", 0}}),
            "  caf\xc3\xa9 0.50  ####################\n  a 0.00     |\n  none 0.00\n");
}

TEST(TextTest, TensorsAndNumbers) {
  EXPECT_EQ(PrintTensor("x", Floats({2}, {1, 0.25f})), "x  f32[2]  1 0.25\n");
  EXPECT_EQ(PrintTensor("x", Floats({8}, {1, 2, 3, 4, 5, 6, NAN, 8})),
            "x  f32[8]  1 2 3 4 5 6 ..  (min 1, max 8, mean 4.14286)  1 NaN\n");
  EXPECT_EQ(PrintTensor("x", Floats({0, 2}, {})), "x  f32[0,2]  (empty)\n");
  EXPECT_EQ(PrintTensor("s", Tensor::Strings({1}, {"a\"\n\xff"})), "s  string[1]  \"a\\\"\\n?\"\n");
  EXPECT_EQ(HumanTime(0.0000123), "12.3 us");
  EXPECT_EQ(HumanTime(0.99999), "1000 ms");
  EXPECT_EQ(HumanTime(75), "75.0 s");
  EXPECT_EQ(HumanCount(999), "999");
  EXPECT_EQ(HumanCount(4652008), "4.65 M");
}

TEST(TextTest, JsonHoldsWhatJsonCannot) {
  EXPECT_EQ(TensorJson("x", Floats({2}, {NAN, -INFINITY})).dump(),
            R"({"name":"x","dtype":"f32","shape":[2],"data":["nan","-inf"]})");
  const uint64_t most = UINT64_MAX;
  EXPECT_EQ(TensorJson("u", Tensor::Of<uint64_t>(DType::kU64, {}, {&most, 1})).dump(),
            R"({"name":"u","dtype":"u64","shape":[],"data":[18446744073709551615]})");
  EXPECT_EQ(TensorJson("x", Floats({200}, std::vector<float>(200))).count("data"), 0u);
}

TEST(GpuNotesTest, NamesTheFix) {
  const std::string folder = ::testing::TempDir() + "oncilla_dri";
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(GpuNotes(folder, false).empty());
  ASSERT_TRUE(MakeFolder(folder).ok() && WriteFile(folder + "/renderD128", "").ok());
  EXPECT_TRUE(GpuNotes(folder, true).empty());
  EXPECT_THAT(GpuNotes(folder, false), ElementsAre(HasSubstr("intel-opencl-icd")));
  std::filesystem::create_symlink("/nonexistent", folder + "/renderD129");
  EXPECT_THAT(GpuNotes(folder, true), ElementsAre(HasSubstr("usermod -aG render")));
  std::filesystem::remove_all(folder);
}

// x[?, 8] times w[8, 4], a relu: operations and bytes at a batch of 3.
TEST(WorkTest, CountsAtTheShapesGiven) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, PartialShape({Dim(), Dim(8)})));
  const ValueId w = graph.AddConstant(*Tensor::Allocate({DType::kF32, {8, 4}}), "w");
  const ValueId y = *graph.Add("product", "MatMul", {}, {x, w});
  graph.AddOutput("z", *graph.Add("relu", "Relu", {}, {y}));
  std::vector<std::string> notes;
  const Backend* backend = LinkedBackends()[0];
  ThreadPool threads(1);
  const auto cpu =
      *backend->open(backend->discover({}, notes)[0], {.threads = &threads, .cache_dir = ""});
  const Fact fact = Fact::Of(DType::kF32, Shape{3, 8});
  const GraphWork work = WorkOf(graph, {&fact, 1}, *cpu);
  ASSERT_EQ(work.nodes.size(), 2u);
  EXPECT_EQ(work.nodes[0].operations, 2.0 * 3 * 8 * 4);
  EXPECT_EQ(work.nodes[0].bytes, 4.0 * (3 * 8 + 8 * 4 + 3 * 4));
  EXPECT_EQ(work.nodes[1].operations, 12);
  EXPECT_EQ(work.unknown_nodes, 0);
  EXPECT_EQ(WorkOf(graph, {}, *cpu).unknown_nodes, 2);
}

}  // namespace
}  // namespace oncilla::tool
