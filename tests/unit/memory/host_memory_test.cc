// Small graphs that require much memory: the host's limit and time limits hold for everything that
// ops allocate, while planning, folding and running.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "engine/base/caught.h"
#include "engine/base/thread_pool.h"
#include "engine/import/graph_builder.h"
#include "engine/memory/host_account.h"
#include "engine/session/model.h"
#include "engine/session/session.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Output = GraphBuilder::Output;

constexpr int64_t kMiB = int64_t{1} << 20;

Tensor Ints(std::vector<int64_t> values, Shape shape) {
  return Tensor::Of<int64_t>(DType::kI64, std::move(shape), values);
}
Tensor Text(std::string text) { return Tensor::Strings({}, {std::move(text)}); }

// A graph and its feeds: values that constant folding does not see.
struct Greedy {
  const char* name;
  Output (*build)(GraphBuilder& g);
  std::vector<NamedTensor> feeds = {};
  std::string op = "";  // that the error names; empty: any
};

Output JoinDoubling(GraphBuilder& g) {
  Output text = g.Constant(Text("0123456789"));
  for (int i = 0; i < 40; ++i) text = g.Op("StringJoin", {text, text}, {{"separator", ""}});
  return text;
}
Output RegexAmplified(GraphBuilder& g) {
  return g.Op("RegexReplace",
              {g.Placeholder(DType::kString, PartialShape(Shape{1}), "x"), g.Constant(Text("a")),
               g.Constant(Text(std::string(100'000, 'b')))},
              {{"replace_global", true}}, "", DType::kString);
}
Output LongGrams(GraphBuilder& g) {
  const Output words = g.Placeholder(DType::kString, PartialShape(Shape{1000}), "x");
  return g.Op("StringNGrams", {words, g.Constant(Ints({0, 1000}, {2}))},
              {{"separator", " "},
               {"ngram_widths", std::vector<int64_t>{1 << 20}},
               {"left_pad", "p"},
               {"right_pad", "q"},
               {"pad_width", int64_t{-1}},
               {"preserve_short_sequences", true},
               {"Tsplits", DType::kI64}},
              "", DType::kString);
}
Output FilledStrings(GraphBuilder& g) {
  return g.Op("Fill",
              {g.Placeholder(DType::kI64, PartialShape(Shape{1}), "x"),
               g.Constant(Text("some text that is longer than a short string"))},
              {{"index_type", DType::kI64}, {"T", DType::kString}}, "", DType::kString);
}
Output FilledFloats(GraphBuilder& g) {
  return g.Op(
      "Fill",
      {g.Placeholder(DType::kI64, PartialShape(Shape{1}), "x"), g.Constant(Tensor::Scalar(1))},
      {{"index_type", DType::kI64}, {"T", DType::kF32}}, "", DType::kF32);
}
Output SegmentSum(GraphBuilder& g) {
  return g.Op("SegmentSum",
              {g.Constant(Tensor::Of<float>(DType::kF32, {1}, std::vector{1.0f})),
               g.Placeholder(DType::kI64, PartialShape(Shape{1}), "x")},
              {{"T", DType::kF32}, {"Tindices", DType::kI64}});
}
Output EmptyRows(GraphBuilder& g) {
  return g.Op(
      "SparseFillEmptyRows",
      {g.Constant(Ints({0, 0}, {1, 2})),
       g.Constant(Tensor::Of<float>(DType::kF32, {1}, std::vector{1.0f})),
       g.Placeholder(DType::kI64, PartialShape(Shape{2}), "x"), g.Constant(Tensor::Scalar(0))},
      {{"T", DType::kF32}}, "", DType::kI64);
}
Output RaggedRange(GraphBuilder& g) {
  return g.Op("RaggedRange",
              {g.Constant(Ints({0}, {1})), g.Placeholder(DType::kI64, PartialShape(Shape{1}), "x"),
               g.Constant(Ints({1}, {1}))},
              {{"T", DType::kI64}, {"Tsplits", DType::kI64}}, "", DType::kI64);
}
Output WideResize(GraphBuilder& g) {
  const Output image = g.Constant(Tensor::Allocate({DType::kF32, {1, 1, 1, 1}}).value());
  return g.Op("ResizeBilinear",
              {image, g.Constant(Tensor::Of<int32_t>(DType::kI32, {2}, std::vector{1, 1 << 28}))},
              {{"T", DType::kF32}}, "", DType::kF32);
}
// One index of a block of 2^33: a loop over all of them would not end.
Output WideBlock(GraphBuilder& g) {
  return g.Op("SpaceToBatchND",
              {g.Placeholder(DType::kF32, PartialShape(Shape{1, 1, 1}), "x"),
               g.Constant(Ints({int64_t{1} << 33}, {1})),
               g.Constant(Ints({0, (int64_t{1} << 33) - 1}, {1, 2}))},
              {{"Tblock_shape", DType::kI64}, {"Tpaddings", DType::kI64}});
}

class HostMemoryTest : public testing::TestWithParam<Greedy> {
 protected:
  static std::shared_ptr<Session> Open(int64_t limit) {
    SessionOptions options;
    options.device = "cpu";
    options.memory_limit_bytes = limit;
    return Session::Create(Runtime::Create({}), std::move(options)).value();
  }
  static std::shared_ptr<Model> Load(Session& session, Output (*build)(GraphBuilder&)) {
    GraphBuilder g;
    const Output out = build(g);
    g.Op("Identity", {out}, {{"T", out.dtype}}, "y", out.dtype);
    auto graph = g.GraphDef();
    EXPECT_TRUE(graph.ok()) << graph.status();
    auto model = session.LoadGraph(*std::move(graph), "greedy", {});
    EXPECT_TRUE(model.ok()) << model.status();
    return *model;
  }
  static int64_t MostResident() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return int64_t{usage.ru_maxrss} * 1024;
  }
};

const Greedy kGreedy[] = {
    {"JoinDoubling", &JoinDoubling},
    {"RegexAmplified",
     &RegexAmplified,
     {{"x", Tensor::Strings({1}, {std::string(100'000, 'a')})}},
     "RegexReplace"},
    {"LongGrams",
     &LongGrams,
     {{"x", Tensor::Strings({1000}, std::vector<std::string>(1000, "w"))}},
     "StringNGrams"},
    {"FilledStrings", &FilledStrings, {{"x", Ints({1 << 27}, {1})}}},
    {"FilledFloats", &FilledFloats, {{"x", Ints({1 << 29}, {1})}}},
    {"SegmentSum", &SegmentSum, {{"x", Ints({1 << 28}, {1})}}, "SegmentReduce"},
    {"EmptyRows", &EmptyRows, {{"x", Ints({1 << 30, 1}, {2})}}, "SparseFillEmptyRows"},
    {"RaggedRange", &RaggedRange, {{"x", Ints({1 << 29}, {1})}}, "RaggedRange"},
    {"WideResize", &WideResize},
    {"WideBlock", &WideBlock, {{"x", Tensor::Allocate({DType::kF32, {1, 1, 1}}).value()}}},
};

TEST_P(HostMemoryTest, WhatASmallGraphAsksForIsRefused) {
  const Greedy& greedy = GetParam();
  const auto session = Open(64 * kMiB);
  const auto model = Load(*session, greedy.build);
  const int64_t before = MostResident();
  RunRequest request;
  request.feeds = greedy.feeds;
  request.fetches = {"y"};
  const auto begin = Clock::now();
  const auto result = model->Run(request);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(result.status().code(), Code::kResourceExhausted) << result.status();
  EXPECT_THAT(Message(result.status()), HasSubstr(greedy.op));
  EXPECT_LE(session->memory().Devices()[0].peak_bytes, 64 * kMiB);
  EXPECT_LT(MostResident() - before, 200 * kMiB);
  EXPECT_LE(session->memory().Devices()[0].in_use_bytes, kMiB) << "something is still counted";
}

INSTANTIATE_TEST_SUITE_P(Greedy, HostMemoryTest, testing::ValuesIn(kGreedy),
                         [](const auto& info) { return std::string(info.param.name); });

using HostMemory = HostMemoryTest;

TEST_F(HostMemory, ResultsCountUntilTheRunIsOver) {
  const auto session = Open(64 * kMiB);
  const auto model = Load(*session, &FilledFloats);
  RunRequest request;
  request.feeds = {{"x", Ints({4 * kMiB}, {1})}};
  request.fetches = {"y"};
  std::vector<RunResult> kept;  // more than the limit, and the application's
  for (int i = 0; i < 6; ++i) {
    auto result = model->Run(request);
    ASSERT_TRUE(result.ok()) << result.status();
    kept.push_back(*std::move(result));
  }
  EXPECT_GE(session->memory().Devices()[0].peak_bytes, 16 * kMiB);
  EXPECT_LE(session->memory().Devices()[0].in_use_bytes, kMiB);
}

TEST_F(HostMemory, ResultsFitWhereTheWholeLimitIsTakenBeforehand) {
  SessionOptions options;
  options.device = "cpu";
  options.device_memory["*"].limit_bytes = 64 * kMiB;
  options.device_memory["*"].preallocate_bytes = 64 * kMiB;
  const auto session = Session::Create(Runtime::Create({}), std::move(options)).value();
  const auto model = Load(*session, &FilledFloats);
  RunRequest request;
  request.fetches = {"y"};
  request.feeds = {{"x", Ints({4 * kMiB}, {1})}};
  EXPECT_TRUE(model->Run(request).ok());
  request.feeds = {{"x", Ints({32 * kMiB}, {1})}};
  EXPECT_EQ(model->Run(request).status().code(), Code::kResourceExhausted);
}

Output FillStrings(GraphBuilder& g) {
  const Output sizes = g.Placeholder(DType::kI64, PartialShape(Shape{1}), "x");
  return g.Op("Fill", {sizes, g.Constant(Text("a text that has memory of its own"))});
}

TEST_F(HostMemory, TimeLimitsReachOpsOfTheHost) {
  const auto session = Open(0);
  struct Slow {
    Output (*build)(GraphBuilder&);
    Tensor x;
  };
  for (const Slow& slow :
       {Slow{&EmptyRows, Ints({1 << 27, 1}, {2})}, Slow{&RaggedRange, Ints({1 << 28}, {1})},
        Slow{&FillStrings, Ints({1 << 26}, {1})}}) {
    const auto model = Load(*session, slow.build);
    RunRequest request;
    request.feeds = {{"x", slow.x}};
    request.fetches = {"y"};
    request.timeout = std::chrono::milliseconds(50);
    const auto begin = Clock::now();
    const auto result = model->Run(request);
    EXPECT_EQ(result.status().code(), Code::kDeadlineExceeded) << result.status();
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  }
}

TEST(WorkLimits, CountsGoBackAndScopesNest) {
  struct Fixed : HostAccount {
    Status Take(int64_t bytes) override {
      if (used + bytes > 1 << 20) return Exhausted("full");
      used += bytes;
      return Status();
    }
    void Give(int64_t bytes) noexcept override { used -= bytes; }
    std::atomic<int64_t> used = 0;
  };
  const auto account = std::make_shared<Fixed>();
  {
    const WorkScope scope({account, nullptr});
    HostVector<int64_t> numbers(10'000);
    EXPECT_EQ(account->used, 80'000);
    auto tensor = Tensor::Allocate({DType::kF32, {1000}}).value();
    EXPECT_EQ(account->used, 84'000);
    EXPECT_EQ(Tensor::Allocate({DType::kF32, {1 << 20}}).status().code(), Code::kResourceExhausted);
    EXPECT_EQ(Fenced([] { return HostVector<char>(1 << 21), Status(); }).message(), "full");
    ThreadPool pool(3);
    std::atomic<int> counted = 0;
    pool.ParallelFor(
        64, 1, [&](int64_t, int64_t, int) { counted += WorkScope::Current().memory == account; });
    EXPECT_EQ(counted, 64) << "workers of the pool do not know the caller's limits";
    const WorkScope none({});
    HostVector<char> free_of_charge(1 << 21);
  }
  EXPECT_EQ(account->used, 0);
  EXPECT_EQ(WorkScope::Current().memory, nullptr);
}

TEST(Caught, ExceptionsOfBodiesReachTheCallerAndThePoolGoesOn) {
  ThreadPool pool(4);
  for (int i = 0; i < 50; ++i) {
    const Status thrown = Fenced([&] {
      pool.ParallelFor(1000, 1, [](int64_t begin, int64_t, int) {
        if (begin % 100 == 99) throw std::bad_alloc();
      });
      return Status();
    });
    EXPECT_EQ(thrown.code(), Code::kResourceExhausted);
    std::atomic<int64_t> sum = 0;
    pool.ParallelFor(1000, 7, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
    ASSERT_EQ(sum, 1000);
  }
}

TEST(Caught, EveryExceptionIsAStatus) {
  const auto thrown = [](auto error) { return Fenced([&]() -> Status { throw error; }); };
  EXPECT_EQ(thrown(std::bad_alloc()).code(), Code::kResourceExhausted);
  EXPECT_EQ(thrown(std::length_error("vector")).code(), Code::kResourceExhausted);
  EXPECT_EQ(thrown(std::runtime_error("why")).code(), Code::kInternal);
  EXPECT_THAT(Message(thrown(std::runtime_error("why"))), HasSubstr("why"));
  EXPECT_EQ(thrown(7).code(), Code::kInternal);
}

}  // namespace
}  // namespace oncilla
