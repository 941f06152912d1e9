// What a model remembers between runs: variables that signatures change, that the application
// assigns, and that several runs change at once. On testdata/tensorflow/runs/state, whose
// signatures are add (count += 1, sum += x, mean), get and reset; and
// testdata/tensorflow/models/counter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "engine/base/format.h"
#include "engine/session/model.h"
#include "engine/session/session.h"

namespace oncilla {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ModelState : public testing::Test {
 protected:
  void SetUp() override {
    auto session = Session::Create(Runtime::Create({}), {.device = "cpu", .verify = true});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *session;
    model_ = Load("/testdata/tensorflow/runs/state/model");
  }
  std::shared_ptr<Model> Load(const std::string& path) {
    auto model = session_->Load(ONCILLA_SOURCE_DIR + path, {});
    EXPECT_TRUE(model.ok()) << model.status();
    return *model;
  }
  Result<RunResult> Run(const std::string& signature, std::vector<NamedTensor> feeds = {}) {
    RunRequest request;
    request.signature = signature;
    request.feeds = std::move(feeds);
    return model_->Run(request);
  }
  static Tensor Floats(std::vector<float> values) {
    return Tensor::Of<float>(DType::kF32, {static_cast<int64_t>(values.size())}, values);
  }
  Tensor Get(const std::string& output) {
    auto result = Run("get");
    EXPECT_TRUE(result.ok()) << result.status();
    for (auto& [name, tensor] : result->outputs) {
      if (name == output) return tensor;
    }
    ADD_FAILURE() << "no output " << output;
    return Tensor();
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<Model> model_;
};

TEST_F(ModelState, ASignatureSeesWhatAnotherWrote) {
  // Read first, as a constant; then it turns out to change.
  EXPECT_EQ(Get("count").As<int64_t>()[0], 0);
  ASSERT_TRUE(Run("add", {{"x", Floats({1, 2, 3})}}).ok());
  ASSERT_TRUE(Run("add", {{"x", Floats({1, 0, 0})}}).ok());
  EXPECT_EQ(Get("count").As<int64_t>()[0], 2);
  EXPECT_THAT(Get("sum").As<float>(), ElementsAre(2, 2, 3));
  ASSERT_TRUE(Run("reset").ok());
  EXPECT_THAT(Get("sum").As<float>(), ElementsAre(0, 0, 0));
}

TEST_F(ModelState, TheApplicationReadsAndAssigns) {
  EXPECT_EQ(model_->variables().store().Read("Variable_1").status().code(),
            Code::kFailedPrecondition);
  auto trained = model_->variables().Read("Variable_1");  // what the files give it
  ASSERT_TRUE(trained.ok()) << trained.status();
  EXPECT_THAT(trained->As<float>(), ElementsAre(0, 0, 0));
  ASSERT_TRUE(Run("add", {{"x", Floats({1, 2, 3})}}).ok());
  auto sum = model_->variables().Read("Variable_1");
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_THAT(sum->As<float>(), ElementsAre(1, 2, 3));
  ASSERT_TRUE(model_->variables().Assign("Variable_1", Floats({7, 7, 7})).ok());
  EXPECT_THAT(Get("sum").As<float>(), ElementsAre(7, 7, 7));
  // A constant becomes state when it is assigned.
  const Tensor rows = Tensor::Of<float>(DType::kF32, {4, 2}, std::vector<float>(8, 5));
  ASSERT_TRUE(model_->variables().Assign("Variable", rows).ok());
  EXPECT_THAT(Get("rows").As<float>(), testing::Each(5));
}

TEST_F(ModelState, VariablesAreListedWithTypesAndShapes) {
  const auto variables = model_->variables().List();
  ASSERT_TRUE(variables.ok()) << variables.status();
  std::map<std::string, std::string> seen;
  for (const TensorInfo& info : *variables) {
    seen[info.name] = StrCat(Fact::Of(info.dtype, info.shape));
  }
  EXPECT_THAT(seen, testing::Contains(testing::Pair("Variable_1", "f32[3]")));
  EXPECT_THAT(seen, testing::Contains(testing::Pair("Variable", "f32[4,2]")));
  // A weight that no graph changes is read from the files, as TensorFlow recorded it.
  const auto mlp = Load("/testdata/tensorflow/models/mlp");
  const auto weights = mlp->variables().List();
  ASSERT_TRUE(weights.ok()) << weights.status();
  for (const TensorInfo& info : *weights) {
    const auto value = mlp->variables().Read(info.name);
    ASSERT_TRUE(value.ok()) << info.name << ": " << value.status();
    EXPECT_EQ(value->dtype(), info.dtype);
    EXPECT_TRUE(info.shape.Accepts(value->shape())) << info.name;
  }
  EXPECT_EQ(mlp->executables().counters().graphs_compiled, 0);
  const auto typo = mlp->variables().Read("sequential/dense/kernel_2");
  EXPECT_EQ(typo.status().code(), Code::kNotFound);
  EXPECT_THAT(std::string(Message(typo.status())), HasSubstr("'sequential/dense/kernel_1'"));
  mlp->Unload();
  EXPECT_THAT(std::string(Message(mlp->variables().Read("sequential/dense/kernel_1").status())),
              HasSubstr("unloaded"));
}

TEST_F(ModelState, AVariableOfAnotherTypeOrNameIsRefusedByName) {
  const Status missing = model_->variables().Assign("Variable_11", Floats({1, 2, 3}));
  EXPECT_EQ(missing.code(), Code::kNotFound) << missing;
  EXPECT_THAT(std::string(Message(missing)), HasSubstr("'Variable_1'"));
  ASSERT_TRUE(Run("add", {{"x", Floats({1, 2, 3})}}).ok());
  const Tensor integers = Tensor::Int64s(std::vector<int64_t>{1, 2, 3});
  for (const Tensor& wrong : {integers, Floats({1, 2}), Tensor::Strings({3}, {"a", "b", "c"})}) {
    const Status status = model_->variables().Assign("Variable_1", wrong);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr("the variable 'Variable_1' is a f32[3], and a "));
  }
  // The refused calls must not have changed anything.
  EXPECT_THAT(Get("sum").As<float>(), ElementsAre(1, 2, 3));
}

TEST_F(ModelState, NoUpdateIsLostWhenRunsOverlap) {
  constexpr int kThreads = 4, kRuns = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRuns; ++i) {
        EXPECT_TRUE(Run("add", {{"x", Floats({1, 1, 1})}}).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("count").As<int64_t>()[0], kThreads * kRuns);
  EXPECT_THAT(Get("sum").As<float>(), testing::Each(kThreads * kRuns));
}

TEST_F(ModelState, StateBelongsToTheModelAndGoesWithIt) {
  ASSERT_TRUE(Run("add", {{"x", Floats({1, 2, 3})}}).ok());
  const auto other = Load("/testdata/tensorflow/runs/state/model");
  auto result = other->Run({.signature = "get", .feeds = {}, .fetches = {"count"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].second.As<int64_t>()[0], 0);
  EXPECT_GT(model_->variables().store().bytes(), 0);
  model_->Unload();
  EXPECT_EQ(model_->variables().store().bytes(), 0);
}

TEST_F(ModelState, TargetsRunForWhatTheyDo) {
  model_ = Load("/testdata/tensorflow/models/counter");
  RunRequest request;
  request.signature = "counting";
  request.targets = {"no_such_node"};
  const auto missing = model_->Run(request);
  EXPECT_EQ(missing.status().code(), Code::kNotFound) << missing.status();
  EXPECT_THAT(std::string(Message(missing.status())), HasSubstr("no_such_node"));
}

TEST_F(ModelState, ALoopThatWouldCountAwayFromItsLimitFails) {
  model_ = Load("/testdata/tensorflow/runs/counted/model");
  const auto run = [&](int32_t start, int32_t limit, int32_t delta) {
    const auto number = [](int32_t value) {
      return Tensor::Of<int32_t>(DType::kI32, {}, std::vector<int32_t>{value});
    };
    const Tensor x = Tensor::Of<float>(DType::kF32, {1, 3}, std::vector<float>(3, 1));
    return Run("", {{"start", number(start)},
                    {"limit", number(limit)},
                    {"delta", number(delta)},
                    {"x", x}})
        .status();
  };
  EXPECT_TRUE(run(0, 2, 1).ok());
  EXPECT_TRUE(run(2, 2, 0).ok());
  for (const Status& status : {run(3, 2, 1), run(0, 2, -1), run(0, 2, 0)}) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
    EXPECT_THAT(Message(status), HasSubstr("Invalid start/limit/delta"));
  }
}

// A generator's position is state: runs must take turns in any graph that uses one.
TEST_F(ModelState, RunsAtOnceDrawOtherSeededNumbers) {
  model_ = Load("/testdata/tensorflow/runs/streams/model");
  const int32_t three = 3;
  const std::vector<NamedTensor> feeds = {
      {"n", Tensor::Of<int32_t>(DType::kI32, {1}, {&three, 1})},
      {"m", Tensor::Of<int32_t>(DType::kI32, {}, {&three, 1})},
      {"x", Tensor::Of<float>(DType::kF32, {1, 2}, std::vector<float>{1, 2})}};
  constexpr int kThreads = 4, kRuns = 25;
  std::vector<std::vector<float>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        RunRequest request;
        request.feeds = feeds;
        // Two graphs with one generator.
        request.fetches = {"uniform"};
        if (t % 2 == 1) request.fetches.emplace_back("walk");
        const auto result = model_->Run(request);
        if (result.ok()) drawn[t].push_back(result->outputs[0].second.As<float>()[0]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<float> numbers;
  for (const auto& own : drawn) {
    EXPECT_EQ(own.size(), kRuns);
    numbers.insert(own.begin(), own.end());
  }
  EXPECT_EQ(numbers.size(), size_t{kThreads} * kRuns);
}

}  // namespace
}  // namespace oncilla
