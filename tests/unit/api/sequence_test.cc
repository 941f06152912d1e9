// Sequences and optional values through the public interface, as an application uses it.
#include <gmock/gmock.h>

#include <oncilla/oncilla.hpp>

#include "tests/unit/support/onnx_text.h"

namespace {

using oncilla::testing::OnnxGraphText;
using oncilla::testing::OnnxNodeText;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

oncilla::Tensor Floats(const std::vector<float>& values) {
  return oncilla::Tensor::Of<float>({static_cast<int64_t>(values.size())}, values).value();
}
std::vector<float> Values(const oncilla::Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.size()};
}

class ApiSequences : public ::testing::Test {
 protected:
  oncilla::Model Load(const OnnxGraphText& graph) {
    const std::string bytes = OnnxModelText(graph);
    return session_.LoadBytes(bytes.data(), bytes.size()).value();
  }
  oncilla::Session session_ = oncilla::Session::Create({"cpu"}).value();
};

TEST_F(ApiSequences, GoInAndOut) {
  OnnxGraphText graph;
  graph.Sequence("xs", {"n"}).Input("x", {"m"}).SequenceOutput("ys", {"n"});
  graph.Node(OnnxNodeText("SequenceInsert", {"xs", "x"}, {"ys"}));
  const oncilla::Model model = Load(graph);
  EXPECT_EQ(model.inputs()[0].kind, ONCILLA_KIND_SEQUENCE);
  EXPECT_EQ(model.inputs()[1].kind, ONCILLA_KIND_TENSOR);
  EXPECT_EQ(model.outputs()[0].kind, ONCILLA_KIND_SEQUENCE);
  const auto xs = oncilla::Tensor::Sequence(ONCILLA_FLOAT32, {Floats({1}), Floats({2, 3})}).value();
  EXPECT_TRUE(xs.is_sequence());
  EXPECT_EQ(xs.bytes(), 0u);
  EXPECT_EQ(xs.raw(), nullptr);
  oncilla::Tensor ys;
  {
    const auto result = model.Run({{"xs", xs}, {"x", Floats({4, 5, 6})}}).value();
    ys = result[0];
    std::vector<float> memory(3);
    EXPECT_THAT(result.CopyTo("ys", memory.data(), 12).message(), HasSubstr("is a sequence"));
  }
  ASSERT_TRUE(ys.is_sequence());
  const std::vector<oncilla::Tensor> elements = ys.Elements().value();
  ASSERT_EQ(elements.size(), 3u);
  EXPECT_THAT(Values(elements[0]), ElementsAre(1));
  EXPECT_THAT(Values(elements[1]), ElementsAre(2, 3));
  EXPECT_THAT(Values(elements[2]), ElementsAre(4, 5, 6));
  // The result of one run is a feed of the next.
  const auto more = model.Run({{"xs", ys}, {"x", Floats({7})}}).value();
  EXPECT_EQ(more[0].Elements().value().size(), 4u);
  // An empty one.
  const auto none = oncilla::Tensor::Sequence(ONCILLA_FLOAT32, {}).value();
  EXPECT_EQ(model.Run({{"xs", none}, {"x", Floats({7})}}).value()[0].Elements().value().size(), 1u);
}

TEST_F(ApiSequences, GoThroughCallablesByPosition) {
  OnnxGraphText graph;
  graph.Sequence("xs", {"n"}).Input("x", {"m"}).SequenceOutput("ys", {"n"});
  graph.Node(OnnxNodeText("SequenceInsert", {"xs", "x"}, {"ys"}));
  const oncilla::Model model = Load(graph);
  const auto insert = model.MakeCallable({{"x", "xs"}, {"ys"}}).value();
  oncilla::Tensor xs = oncilla::Tensor::Sequence(ONCILLA_FLOAT32, {}).value();
  for (int i = 1; i <= 3; ++i) {
    const auto result = insert({Floats(std::vector<float>(static_cast<size_t>(i), 7)), xs});
    ASSERT_TRUE(result.ok()) << result.status().message();
    xs = result.value()[0];
    ASSERT_TRUE(xs.is_sequence());
    ASSERT_EQ(xs.Elements().value().size(), static_cast<size_t>(i));
  }
  EXPECT_THAT(Values(xs.Elements().value()[2]), ElementsAre(7, 7, 7));
  int left = 2;
  auto ahead = oncilla::Prefetcher::Create(insert, [&](std::vector<oncilla::Tensor>& inputs) {
                 inputs = {Floats({1}), xs};
                 return left-- > 0;
               }).value();
  for (int i = 0; i < 2; ++i) {
    const auto next = ahead.Next();
    ASSERT_TRUE(next.ok()) << next.status().message();
    ASSERT_FALSE(next.value().empty());
    EXPECT_EQ(next.value()[0].Elements().value().size(), 4u);
  }
}

TEST_F(ApiSequences, WhatIsNoneIsRefused) {
  OnnxGraphText graph;
  graph.Sequence("xs", {"n"}).Output("l", {}, 7);
  graph.Node(OnnxNodeText("SequenceLength", {"xs"}, {"l"}));
  oncilla::Model model = Load(graph);
  const auto x = Floats({1});
  const auto ints = oncilla::Tensor::Of<int32_t>({1}, {1}).value();
  const auto xs = oncilla::Tensor::Sequence(ONCILLA_FLOAT32, {x}).value();
  EXPECT_THAT(oncilla::Tensor::Sequence(ONCILLA_FLOAT32, {x, ints}).status().message(),
              HasSubstr("elements[1] is i32[1], and the sequence is of f32"));
  EXPECT_THAT(oncilla::Tensor::Sequence(ONCILLA_FLOAT32, {xs}).status().message(),
              HasSubstr("elements[0] is a sequence itself"));
  EXPECT_FALSE(oncilla::Tensor::Sequence(ONCILLA_FLOAT32, {oncilla::Tensor()}).ok());
  EXPECT_THAT(model.Run({{"xs", x}}).status().message(), HasSubstr("must be list<f32[?]>"));
  EXPECT_FALSE(model.Run({{"xs", oncilla::Tensor::Sequence(ONCILLA_INT32, {ints}).value()}}).ok());
  // The unwritten last element of an optional sequence is not an element of its value.
  const auto optional = oncilla::Tensor::Optional(ONCILLA_FLOAT32, xs).value();
  EXPECT_THAT(model.Run({{"xs", optional}}).status().message(), HasSubstr("that is none"));
  EXPECT_THAT(session_.Upload(xs).status().message(), HasSubstr("is a sequence"));
  oncilla::CallableOptions positions;
  positions.inputs = {"xs"};
  const auto callable = model.MakeCallable(positions).value();
  EXPECT_EQ(callable({xs}).value()[0].data<int64_t>()[0], 1);
  EXPECT_THAT(callable({x}).status().message(), HasSubstr("must be list<f32[?]>"));
  EXPECT_THAT(callable({optional}).status().message(), HasSubstr("that is none"));
  const auto grid = oncilla::Tensor::Of<float>({1, 1}, {1}).value();
  const auto grids = oncilla::Tensor::Sequence(ONCILLA_FLOAT32, {x, grid}).value();
  EXPECT_THAT(callable({grids}).status().message(), HasSubstr("its element 1 is f32[1,1]"));
  oncilla_tensor* element = nullptr;
  const oncilla::Status beyond(oncilla_sequence_element(xs.get(), 1, &element));
  EXPECT_EQ(beyond.code(), ONCILLA_OUT_OF_RANGE);
  const auto words = oncilla::Tensor::Strings({1}, {"word"}).value();
  const auto texts = oncilla::Tensor::Sequence(ONCILLA_STRING, {words}).value();
  EXPECT_EQ(texts.string(0), "");
  EXPECT_EQ(texts.Elements().value()[0].string(0), "word");
}

TEST_F(ApiSequences, OptionalValues) {
  OnnxGraphText graph;
  graph.Optional("x", {"n"}).Output("there", {}, 9);
  graph.Node(OnnxNodeText("OptionalHasElement", {"x"}, {"there"}));
  const oncilla::Model model = Load(graph);
  EXPECT_EQ(model.inputs()[0].kind, ONCILLA_KIND_OPTIONAL);
  const auto there = oncilla::Tensor::Optional(ONCILLA_FLOAT32, Floats({1})).value();
  const auto none = oncilla::Tensor::Optional(ONCILLA_FLOAT32, {}).value();
  EXPECT_TRUE(there.has_value() && !none.has_value());
  const auto answer = [&](const oncilla::Tensor& x) {
    return static_cast<const char*>(model.Run({{"x", x}}).value()[0].raw())[0];
  };
  EXPECT_EQ(answer(there), 1);
  EXPECT_EQ(answer(none), 0);
  const auto two = oncilla::Tensor::Sequence(ONCILLA_FLOAT32, {Floats({1}), Floats({2})}).value();
  EXPECT_THAT(model.Run({{"x", two}}).status().message(), HasSubstr("that is none"));
}

}  // namespace
