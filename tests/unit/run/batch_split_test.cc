// Which graphs treat samples independently, and why others do not; splitting and joining rows.
#include "engine/compile/batch_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/run/executor.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Iota(Shape shape) {
  Tensor t = Tensor::Allocate({DType::kF32, std::move(shape)}).value();
  float next = 0;
  for (float& v : t.MutableAs<float>()) v = std::fmod(next += 0.37f, 5.0f) - 2;
  return t;
}
Tensor Ints(std::vector<int64_t> values) { return Tensor::Int64s(values); }

class BatchSplitTest : public ::testing::Test {
 protected:
  BatchSplitTest() : graph_(OpSet::Builtin()) {}

  ValueId Input(const char* name, std::vector<Dim> dims) {
    return graph_.AddInput(name, Fact::Of(DType::kF32, PartialShape(std::move(dims))));
  }
  ValueId Constant(const Tensor& t) { return graph_.AddConstant(t); }
  ValueId Add(const char* name, const char* op, AttrMap attrs, std::vector<ValueId> in) {
    auto value = graph_.Add(name, op, std::move(attrs), in);
    EXPECT_TRUE(value.ok()) << value.status();
    return *value;
  }
  // Compiles, checks, and where that says yes runs whole and in parts.
  Status Check(ValueId output, std::vector<Tensor> feeds) {
    graph_.AddOutput("y", output);
    auto compiled =
        Compile(std::move(graph_), parts_.devices(), parts_.names(), *parts_.constants, {});
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    graph_ = Graph(OpSet::Builtin());
    ONCILLA_ASSIGN(const BatchAxis batch, FindBatch(**compiled, feeds));
    ONCILLA_TRY(CheckBatchIndependent(**compiled, *parts_.cpu, feeds, batch));
    Executor executor(*compiled, parts_.devices(), parts_.pools(), parts_.owner, {});
    ONCILLA_ASSIGN(const auto whole, executor.Run(feeds, {}));
    std::vector<std::vector<Tensor>> parts;
    for (int64_t at = 0; at < batch.size; at += 2) {
      const int64_t count = std::min<int64_t>(2, batch.size - at);
      ONCILLA_ASSIGN(auto part, executor.Run(RowsOf(feeds, batch, at, count), {}));
      parts.push_back(std::move(part));
    }
    ONCILLA_ASSIGN(const auto joined, JoinRows(parts));
    EXPECT_EQ(joined[0].desc(), whole[0].desc());
    const auto a = joined[0].As<float>(), b = whole[0].As<float>();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5f) << i;
    return Status();
  }

  SessionParts parts_;
  Graph graph_;
};

TEST_F(BatchSplitTest, AConvolutionalNetIsIndependent) {
  const ValueId x = Input("x", {Dim::Named("n"), Dim(8), Dim(8), Dim(3)});
  AttrMap same = {{"auto_pad", std::string("same_upper")}};
  ValueId v = Add("conv", "Conv", same, {x, Constant(Iota({3, 3, 3, 4}))});
  v = Add("relu", "Relu", {}, {v});
  v = Add("pool", "MaxPool",
          {{"kernel", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}}, {v});
  v = Add("flat", "Reshape", {}, {v, Constant(Ints({-1, 64}))});
  v = Add("dense", "MatMul", {}, {v, Constant(Iota({64, 10}))});
  v = Add("probs", "Softmax", {}, {v});
  EXPECT_TRUE(Check(v, {Iota({5, 8, 8, 3})}).ok());
}

// The target of the reshape is computed from the batch's size, as importers bring it.
TEST_F(BatchSplitTest, SizesComputedFromTheBatchAreFollowed) {
  const ValueId x = Input("x", {Dim::Named("n"), Dim(2), Dim(6)});
  const ValueId shape = Add("shape", "Shape", {}, {x});
  const ValueId n = Add("n", "Gather", {}, {shape, Constant(Ints({0}))});
  const ValueId target = Add("target", "Concat", {{"axis", int64_t{0}}}, {n, Constant(Ints({12}))});
  const ValueId flat = Add("flat", "Reshape", {}, {x, target});
  const ValueId zeros = Add("zeros", "Expand", {}, {Constant(Tensor::Scalar(1.5f)), target});
  EXPECT_TRUE(Check(Add("sum", "Add", {}, {flat, zeros}), {Iota({4, 2, 6})}).ok());
}

TEST_F(BatchSplitTest, WhatMixesSamplesIsRefusedByName) {
  const auto x = [&] { return Input("x", {Dim::Named("n"), Dim(4)}); };
  const auto refusal = [&](ValueId y) {
    const Status status = Check(y, {Iota({6, 4})});
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status;
    return Message(status);
  };
  EXPECT_THAT(refusal(Add("over", "ReduceMean", {{"keep_dims", true}}, {x(), Constant(Ints({0}))})),
              HasSubstr("node 'over' (ReduceMean) gives f32[1,4], which has no row"));
  {
    const ValueId v = x();
    const ValueId mean = Add("mean", "ReduceMean", {{"keep_dims", true}}, {v, Constant(Ints({0}))});
    EXPECT_THAT(refusal(Add("centered", "Sub", {}, {v, mean})), HasSubstr("node 'mean'"));
  }
  EXPECT_THAT(refusal(Add("soft", "Softmax", {{"axis", int64_t{0}}}, {x()})),
              HasSubstr("node 'soft' (Softmax) works along the batch"));
  EXPECT_THAT(refusal(Add("sums", "CumSum", {}, {x(), Constant(Tensor::ScalarInt64(0))})),
              HasSubstr("works along the batch"));
  EXPECT_THAT(refusal(Add("back", "Reverse", {}, {x(), Constant(Ints({0}))})),
              HasSubstr("works along the batch"));
  {
    const ValueId v = x();
    EXPECT_THAT(refusal(Add("gram", "MatMul", {{"transpose_b", true}}, {v, v})),
                HasSubstr("node 'gram' (MatMul)"));
  }
  EXPECT_THAT(refusal(Add("turned", "Transpose", {}, {x(), Constant(Ints({1, 0}))})),
              HasSubstr("node 'turned'"));
  {
    // The batch's size as a number among the data.
    const ValueId v = x();
    const ValueId size =
        Add("size", "Cast", {{"to", DType::kF32}}, {Add("count", "Size", {}, {v})});
    EXPECT_THAT(refusal(Add("scaled", "Mul", {}, {v, size})),
                HasSubstr("reads a value that depends on the size of the batch"));
  }
  {
    // As many columns as samples.
    const ValueId v = x();
    const ValueId shape = Add("shape", "Shape", {{"end", int64_t{1}}}, {v});
    const ValueId twice = Add("twice", "Concat", {{"axis", int64_t{0}}}, {shape, shape});
    const ValueId one =
        Add("one", "Slice", {}, {v, Constant(Ints({0})), Constant(Ints({1})), Constant(Ints({1}))});
    EXPECT_THAT(refusal(Add("square", "Expand", {}, {one, twice})),
                HasSubstr("gives rows whose size depends on that of the batch"));
  }
}

TEST_F(BatchSplitTest, TheBatchIsTheOpenLeadingSize) {
  const auto find = [&](std::vector<Tensor> feeds) {
    auto compiled =
        Compile(std::move(graph_), parts_.devices(), parts_.names(), *parts_.constants, {});
    graph_ = Graph(OpSet::Builtin());
    return FindBatch(**compiled, feeds);
  };
  const auto two = [&](Dim first, Dim second) {
    const ValueId a = Input("a", {first, Dim(2)}), b = Input("b", {second, Dim(2)});
    graph_.AddOutput("y", Add("sum", "Add", {}, {a, b}));
  };
  two(Dim::Named("n"), Dim(1));
  const auto one = find({Iota({7, 2}), Iota({1, 2})});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->size, 7);
  EXPECT_THAT(one->inputs, ElementsAre(true, false));
  two(Dim::Named("n"), Dim::Named("m"));
  EXPECT_THAT(Message(find({Iota({7, 2}), Iota({1, 2})}).status()),
              HasSubstr("input 'a' has 7 rows and 'b' has 1"));
  two(Dim(3), Dim(1));
  EXPECT_THAT(Message(find({Iota({3, 2}), Iota({1, 2})}).status()),
              HasSubstr("no input has an open leading size"));
}

TEST(BatchSplit, TheLargestThatFitsIsFoundInFewQuestions) {
  for (int64_t truth : {0, 1, 2, 37, 62, 63}) {
    int asked = 0;
    const auto found = LargestThatFits(64, [&](int64_t size) -> Result<bool> {
      ++asked;
      return size <= truth;
    });
    EXPECT_EQ(*found, truth);
    EXPECT_LE(asked, 6);
  }
  // With a guess that is right, near, or wrong.
  for (int64_t truth : {0, 1, 36, 37, 38, 60, 63}) {
    for (int64_t guess : {-1, 0, 1, 37, 63, 64, 100}) {
      int asked = 0;
      const auto found = LargestThatFits(
          64,
          [&](int64_t size) -> Result<bool> {
            EXPECT_GT(size, 0);
            EXPECT_LT(size, 64);
            ++asked;
            return size <= truth;
          },
          guess);
      EXPECT_EQ(*found, truth) << guess;
      EXPECT_LE(asked, guess == truth && truth > 0 ? 2 : 12) << truth << ' ' << guess;
    }
  }
  EXPECT_FALSE(LargestThatFits(8, [](int64_t) -> Result<bool> { return Internal("no"); }).ok());
}

}  // namespace
}  // namespace oncilla
