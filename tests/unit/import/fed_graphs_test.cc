// Graphs that are built for the feeds of a run, since the file leaves open what an op needs: for
// the feeds' ranks, shapes or numbers. On testdata/tensorflow/runs/unranked, whose results are
// compared by its own runs, and on runs/kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;

class FedGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    auto session = Session::Create(Runtime::Create({}), {.device = "cpu", .verify = true});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *session;
    Load("unranked");
  }
  void Load(const std::string& name) {
    const std::string runs = ONCILLA_SOURCE_DIR "/testdata/tensorflow/runs/";
    auto model = session_->Load(runs + name + "/model", {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }
  static Tensor Floats(Shape shape) {
    const std::vector<float> values(static_cast<size_t>(shape.elements()), 1.5f);
    return Tensor::Of<float>(DType::kF32, std::move(shape), values);
  }
  static Tensor Ints(std::vector<int32_t> values, bool scalar = false) {
    const Shape shape = scalar ? Shape{} : Shape{static_cast<int64_t>(values.size())};
    return Tensor::Of<int32_t>(DType::kI32, shape, values);
  }
  // The shape of the result, or the failure.
  std::string Run(const std::string& fetch, std::vector<NamedTensor> feeds,
                  const std::string& signature = {}) {
    RunRequest request;
    request.signature = signature;
    request.feeds = std::move(feeds);
    if (!fetch.empty()) request.fetches = {fetch};
    const auto result = model_->Run(request);
    return result.ok() ? StrCat(result->outputs[0].second.shape()) : StrCat(result.status());
  }
  int64_t graphs() const { return model_->executables().counters().graphs_compiled; }

  std::shared_ptr<Session> session_;
  std::shared_ptr<Model> model_;
};

TEST_F(FedGraphs, ServeAllShapesWhereTheFileSaysEnough) {
  for (const int64_t rows : {4, 5}) {
    EXPECT_EQ(Run("einsum", {{"x", Floats({rows, 3})}, {"w", Floats({3, 2})}}),
              StrCat("[2,", rows, "]"));
  }
  EXPECT_EQ(graphs(), 1);
  // The equation names two axes: a third is not a batch.
  EXPECT_THAT(Run("einsum", {{"x", Floats({2, 4, 3})}, {"w", Floats({3, 2})}}),
              HasSubstr("Einsum"));
}

TEST_F(FedGraphs, AreMadeForRanks) {
  for (const int64_t rows : {4, 5, 6}) {
    EXPECT_EQ(Run("dots", {{"x", Floats({rows, 3})}, {"w", Floats({3, 2})}}),
              StrCat("[", rows, ",2]"));
  }
  EXPECT_EQ(graphs(), 1);
  EXPECT_EQ(Run("dots", {{"x", Floats({2, 4, 3})}, {"w", Floats({3, 2})}}), "[2,4,2]");
  EXPECT_EQ(graphs(), 2);
}

TEST_F(FedGraphs, AreMadeForShapes) {
  for (const int64_t width : {6, 8, 6, 8}) {
    EXPECT_EQ(Run("spectrum", {{"x", Floats({2, width})}}), StrCat("[2,", width / 2 + 1, "]"));
  }
  EXPECT_EQ(graphs(), 2);
}

// Only the channels of its input tell how many groups a convolution has.
class FedGroups : public FedGraphs {
 protected:
  void SetUp() override {
    FedGraphs::SetUp();
    const std::string path = folder_.Write("groups.pbtxt", R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 1
                  tensor_shape { dim { size: 1 } dim { size: 1 } dim { size: 2 } dim { size: 4 } } } } } }
    node { name: "y" op: "Conv2D" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } }
           attr { key: "strides" value { list { i: 1 i: 1 i: 1 i: 1 } } }
           attr { key: "padding" value { s: "SAME" } } })");
    auto model = session_->Load(path, {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }
  const testing::TemporaryFolder folder_;
};

TEST_F(FedGroups, HaveAGraphForTheShapesWhereTheOneForAnyCannotBePlanned) {
  EXPECT_EQ(Run("y:0", {{"x:0", Floats({1, 3, 3, 2})}}), "[1,3,3,4]");
  EXPECT_EQ(graphs(), 1);
  for (const int64_t height : {3, 5, 3}) {
    EXPECT_EQ(Run("y:0", {{"x:0", Floats({1, height, 3, 4})}}), StrCat("[1,", height, ",3,4]"));
  }
  EXPECT_EQ(graphs(), 3);
  EXPECT_EQ(Run("y:0", {{"x:0", Floats({2, 3, 3, 2})}}), "[2,3,3,4]");
  EXPECT_THAT(Run("y:0", {{"x:0", Floats({1, 3, 3, 3})}}), HasSubstr("node 'y' (Conv)"));
}

// A graph that refused some sizes must not be planned again for them.
TEST_F(FedGroups, AreRefusedOnce) {
  const auto refused = [&] { return model_->executables().counters().plans_refused; };
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(Run("y:0", {{"x:0", Floats({1, 3, 3, 4})}}), "[1,3,3,4]");
    EXPECT_EQ(refused(), 1);
  }
  EXPECT_EQ(Run("y:0", {{"x:0", Floats({1, 5, 3, 4})}}), "[1,5,3,4]");
  EXPECT_EQ(refused(), 2);
  std::string first;
  for (int run = 0; run < 2; ++run) {
    const std::string failure = Run("y:0", {{"x:0", Floats({1, 3, 3, 3})}});
    EXPECT_THAT(failure, HasSubstr("node 'y' (Conv)"));
    if (run == 0) first = failure;
    EXPECT_EQ(failure, first);
  }
}

TEST_F(FedGroups, ArePrepared) {
  RunRequest request;
  request.fetches = {"y:0"};
  request.feeds = {{"x:0", Floats({1, 3, 3, 4})}};
  const Status prepared = model_->Prepare(request);
  ASSERT_TRUE(prepared.ok()) << prepared;
  EXPECT_EQ(graphs(), 2);
  const int64_t plans = model_->executables().counters().plans_made;
  EXPECT_EQ(Run("y:0", request.feeds), "[1,3,3,4]");
  EXPECT_EQ(graphs(), 2);
  EXPECT_EQ(model_->executables().counters().plans_made, plans);
  request.feeds = {{"x:0", Floats({1, 3, 3, 3})}};
  EXPECT_THAT(Message(model_->Prepare(request)), HasSubstr("node 'y' (Conv)"));
}

TEST_F(FedGraphs, AVectorIsNoMatrixWhetherItsRankIsKnownOrNot) {
  const std::string failure = Run("product", {{"x", Floats({3})}, {"w", Floats({3, 2})}});
  EXPECT_THAT(failure, HasSubstr("operand 0 must have at least two axes"));
}

TEST_F(FedGraphs, AFunctionIsChosenByWhatIsFed) {
  Load("kinds");
  EXPECT_EQ(Run("y", {{"x", Floats({4})}}, "scale"), "[4]");
  EXPECT_EQ(Run("y", {{"x", Floats({2, 3})}}, "scale"), "[2,3]");
  EXPECT_EQ(Run("y", {{"x", Floats({2, 3})}}, "scale"), "[2,3]");
  EXPECT_EQ(graphs(), 2);
  EXPECT_THAT(Run("y", {{"x", Floats({2, 4})}}, "scale"), HasSubstr("must be f32[?,3]"));
  EXPECT_THAT(Run("y", {{"x", Ints({1}, true)}}, "scale"),
              HasSubstr("none of them accepts the feeds"));
  EXPECT_EQ(Run("", {{"x", Floats({3})}}, "sized"), "[3]");
  EXPECT_EQ(Run("", {{"x", Floats({1})}}, "sized"), "[1]");
}

}  // namespace
}  // namespace oncilla
