// Invalid feeds and fetches of TensorFlow's models are refused with TensorFlow's messages, followed
// by ours, in the stage of caller errors. On testdata/tensorflow/text/frozen.pbtxt (x -> y -> z)
// and models/module (signature k, x -> y, z).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session/model.h"
#include "engine/session/session.h"

namespace oncilla {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class TfMessages : public testing::Test {
 protected:
  void SetUp() override {
    auto session = Session::Create(Runtime::Create({}), {.device = "cpu"});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *session;
    graph_ = Load("text/frozen.pbtxt");
    module_ = Load("models/module");
  }
  std::shared_ptr<Model> Load(const std::string& path) {
    auto model =
        session_->Load(std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/" + path, {});
    EXPECT_TRUE(model.ok()) << model.status();
    return *model;
  }
  static Tensor Ones(Shape shape) {
    const std::vector<float> values(static_cast<size_t>(shape.elements()), 1.0f);
    return Tensor::Of<float>(DType::kF32, shape, values);
  }
  static Status Refusal(Model& model, std::vector<NamedTensor> feeds,
                        std::vector<std::string> fetches, std::vector<std::string> targets = {}) {
    RunRequest request;
    request.feeds = std::move(feeds);
    request.fetches = std::move(fetches);
    request.targets = std::move(targets);
    const Status status = model.Run(request).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(Details(status).stage, Stage::kOptions) << status;
    return status;
  }
  static std::string Text(const Status& status, Code code) {
    EXPECT_EQ(status.code(), code) << status;
    return std::string(Message(status));
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<Model> graph_, module_;
};

TEST_F(TfMessages, UnknownFeedsAndFetchesWithNearNames) {
  const auto x = [] { return Ones({2, 3}); };
  std::string text = Text(Refusal(*graph_, {{"nope", x()}}, {"z:0"}), Code::kNotFound);
  EXPECT_THAT(text, HasSubstr("FeedInputs: unable to find feed output nope; "));
  EXPECT_THAT(text, HasSubstr("There is: 'x:0'"));
  text = Text(Refusal(*graph_, {{"a/nope:0", x()}}, {"z:0"}), Code::kNotFound);
  EXPECT_THAT(text, HasSubstr("FeedInputs: unable to find feed output a/nope:0"));
  text = Text(Refusal(*graph_, {{"x", x()}}, {"n_oot"}), Code::kNotFound);
  EXPECT_THAT(text, HasSubstr("FetchOutputs node n_oot: not found; "));
  EXPECT_THAT(text, HasSubstr("did you mean 'n_out'?"));
  text = Text(Refusal(*graph_, {{"x", x()}}, {"a/nope"}), Code::kNotFound);
  EXPECT_THAT(text, HasSubstr("FetchOutputs node a/nope: not found"));
  text = Text(Refusal(*module_, {{"k", Tensor::Scalar(1)}, {"z", x()}}, {"y"}), Code::kNotFound);
  EXPECT_THAT(text, HasSubstr("FeedInputs: unable to find feed output z; "));
  EXPECT_THAT(text, HasSubstr("There is: 'k', 'x'")) << "single letters must not be suggested";
  text = Text(Refusal(*module_, {{"k", Tensor::Scalar(1)}, {"xx", x()}}, {"y"}), Code::kNotFound);
  EXPECT_THAT(text, HasSubstr("did you mean 'x'?"));
  text = Text(Refusal(*graph_, {{"x", x()}}, {}, {"nope"}), Code::kNotFound);
  EXPECT_THAT(text, HasSubstr("PruneForTargets: Some target nodes not found: nope"));
}

TEST_F(TfMessages, OutputsThatANodeDoesNotHave) {
  std::string text = Text(Refusal(*module_, {{"k", Tensor::Scalar(1)}, {"x", Ones({1, 5})}},
                                  {"StatefulPartitionedCall:7"}),
                          Code::kInvalidArgument);
  EXPECT_THAT(text, HasSubstr("The operation, 'StatefulPartitionedCall', exists but only has 2 "
                              "outputs."));
  text = Text(Refusal(*graph_, {{"x", Ones({2, 3})}}, {"y:0:1"}), Code::kInvalidArgument);
  EXPECT_THAT(text,
              HasSubstr("The name 'y:0:1' looks a like a Tensor name, but is not a valid one. "
                        "Tensor names must be of the form \"<op_name>:<output_index>\"."));
}

TEST_F(TfMessages, OneTensorTwice) {
  const auto x = [] { return Ones({2, 3}); };
  EXPECT_THAT(Text(Refusal(*graph_, {{"x", x()}, {"x:0", x()}}, {"z:0"}), Code::kInvalidArgument),
              HasSubstr("Endpoint \"x:0\" fed more than once."));
  EXPECT_THAT(Text(Refusal(*graph_, {{"x", x()}}, {"z:0", "x:0"}), Code::kInvalidArgument),
              HasSubstr("x:0 is both fed and fetched."));
  EXPECT_THAT(
      Text(Refusal(*graph_, {{"x", x()}, {"y", Ones({2, 2})}}, {"y"}), Code::kInvalidArgument),
      HasSubstr("y is both fed and fetched."));
  // A fetch that is given twice is returned twice.
  RunRequest request;
  request.feeds = {{"x", x()}};
  request.fetches = {"y", "y"};
  const auto twice = graph_->Run(request);
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_EQ(twice->outputs.size(), 2u);
}

TEST_F(TfMessages, PlaceholdersThatAreNotFed) {
  std::string text = Text(Refusal(*graph_, {}, {"z:0"}), Code::kInvalidArgument);
  EXPECT_THAT(text, StartsWith("You must feed a value for placeholder tensor 'x' with dtype float "
                               "and shape [?,3]; input 'x:0' (f32[?,3]) is not fed"));
  text = Text(Refusal(*module_, {{"k", Tensor::Scalar(1)}}, {"y"}), Code::kInvalidArgument);
  EXPECT_THAT(text,
              HasSubstr("You must feed a value for placeholder tensor 'serving_default_x' with "
                        "dtype float and shape [?,5]"));
}

TEST_F(TfMessages, ValuesOfAnotherShapeOrType) {
  std::string text = Text(Refusal(*graph_, {{"x", Ones({2, 4})}}, {"z:0"}), Code::kInvalidArgument);
  EXPECT_EQ(text,
            "Cannot feed value of shape (2, 4) for Tensor x, which has shape (None, 3); input "
            "'x' must be f32[?,3], not f32[2,4]");
  EXPECT_THAT(
      Text(Refusal(*graph_, {{"x:0", Ones({3})}}, {"z:0"}), Code::kInvalidArgument),
      StartsWith("Cannot feed value of shape (3,) for Tensor x:0, which has shape (None, 3)"));
  const Tensor ints = Tensor::Of<int32_t>(DType::kI32, {1, 3}, std::vector<int32_t>{1, 2, 3});
  EXPECT_THAT(Text(Refusal(*graph_, {{"x:0", ints}}, {"z:0"}), Code::kInvalidArgument),
              StartsWith("Tensor x:0 was expected to be a float tensor but is a int32 tensor"));
}

}  // namespace
}  // namespace oncilla
