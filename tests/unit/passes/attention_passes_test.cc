// Attention as frameworks export it becomes the op, and computes the same; subgraphs that only
// resemble it are not changed.
#include <gtest/gtest.h>

#include <limits>

#include "engine/graph/print.h"
#include "tests/unit/support/graph_text.h"

namespace oncilla {
namespace {

using namespace testing;

const Pass kRecognise{"recognise attention", &RecogniseAttention},
    kMerge{"merge projections", &MergeProjections}, kSimplify{"simplify", &Simplify},
    kRemove{"remove no-ops", &RemoveNoOps}, kMovements{"merge movements", &MergeMovements},
    kColumns{"read columns", &ReadColumns}, kHeads{"move heads", &MoveHeads};
const std::vector<Pass> kAll = {kRemove, kSimplify, kMovements, kRecognise,
                                kHeads,  kMerge,    kColumns};

// An encoder's attention over x [batch, rows, width].
struct Written {
  int64_t heads = 2, shared = 2, size = 4, width = 6;
  bool biased = true;
  GraphText t;
  ValueId x = kNoValue;

  explicit Written(const PartialShape& shape) { x = t.Input("x", shape); }

  ValueId Project(ValueId from, int64_t own) {
    ValueId y = t.Add("MatMul", {from, t.Weights({width, own * size})});
    return biased ? t.Add("Add", {y, t.Weights({own * size})}) : y;
  }
  ValueId Split(ValueId y, int64_t own) {
    y = t.Add("Reshape", {y, t.Ints({0, 0, own, size})}, {{"zero_copies", true}});
    return t.Transpose(y, {0, 2, 1, 3});
  }
  ValueId Heads(ValueId from, int64_t own) { return Split(Project(from, own), own); }
  ValueId Scores(ValueId q, ValueId k, float divisor = 2) {
    const ValueId s = t.Add("MatMul", {q, k}, {{"transpose_b", true}});
    return t.Add("Div", {s, t.Floats({}, {divisor})});
  }
  ValueId Mix(ValueId scores, ValueId v) {
    return t.Add("MatMul", {t.Add("Softmax", {scores}), v});
  }
  ValueId Join(ValueId y) {
    y = t.Transpose(y, {0, 2, 1, 3});
    return t.Add("Reshape", {y, t.Ints({0, 0, heads * size})}, {{"zero_copies", true}});
  }
};

const Node* Only(const Graph& graph, std::string_view op) {
  const Node* found = nullptr;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != op) continue;
    EXPECT_EQ(found, nullptr) << "several";
    found = &node;
  }
  return found;
}
int64_t IntOf(const Node* node, const std::string& name) {
  const auto it = node->attrs.find(name);
  return it == node->attrs.end() ? 0 : std::get<int64_t>(it->second);
}

TEST(RecogniseAttention, AnEncodersBecomesOneProductAndTheOp) {
  Written w(Shape{2, 5, 6});
  const ValueId q = w.Heads(w.x, 2), k = w.Heads(w.x, 2), v = w.Heads(w.x, 2);
  w.t.Output("y", w.Join(w.Mix(w.Scores(q, k), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Softmax"), 0);
  EXPECT_EQ(CountOps(after, "Transpose"), 0) << Print(after);
  EXPECT_EQ(CountOps(after, "Reshape"), 0) << Print(after);
  EXPECT_EQ(CountOps(after, "MatMul"), 1) << Print(after);
  const Node* op = Only(after, "Attention");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->inputs[0], op->inputs[2]);
  EXPECT_EQ(std::get<std::vector<int64_t>>(op->attrs.at("columns")),
            (std::vector<int64_t>{0, 8, 16}));
}

// As litert-torch writes it: products of all heads of all samples, and the softmax with all axes.
TEST(RecogniseAttention, ProductsThatMergeSamplesAndHeads) {
  for (const bool masked : {false, true}) {
    Written w(Shape{2, 5, 6});
    const auto merged = [&](ValueId x, std::vector<int64_t> sizes) {
      return w.t.Add("Reshape", {x, w.t.Ints(sizes)});
    };
    const ValueId q = w.Heads(w.x, 2), k = w.t.Transpose(w.Heads(w.x, 2), {0, 1, 3, 2});
    const ValueId v = w.Heads(w.x, 2);
    ValueId scores = w.t.Add("MatMul", {merged(q, {4, 5, 4}), merged(k, {4, 4, 5})});
    scores = w.t.Add("Mul", {merged(scores, {2, 2, 5, 5}), w.t.Floats({}, {0.5f})});
    if (masked) scores = w.t.Add("Add", {scores, w.t.Weights({1, 1, 5, 5})});
    const ValueId weights = merged(w.t.Add("Softmax", {scores}), {4, 5, 5});
    const ValueId y = w.t.Add("MatMul", {weights, merged(v, {4, 5, 4})});
    w.t.Output("y", w.Join(merged(y, {2, 2, 5, 4})));
    std::vector<Pass> passes = {{"restore axes", &RestoreAxes}};
    passes.insert(passes.end(), kAll.begin(), kAll.end());
    const Graph after = RunAndCompare(w.t.graph(), passes);
    EXPECT_EQ(CountOps(after, "Attention"), 1) << Print(after);
    EXPECT_EQ(CountOps(after, "Softmax"), 0) << Print(after);
    EXPECT_EQ(CountOps(after, "Transpose"), 0) << Print(after);
  }
}

// One sample, whose scores get their axes back by adding the mask.
TEST(RecogniseAttention, ProductsThatMergeOneSampleIntoHeads) {
  Written w(Shape{1, 5, 6});
  const auto merged = [&](ValueId x, std::vector<int64_t> sizes) {
    return w.t.Add("Reshape", {x, w.t.Ints(sizes)});
  };
  const ValueId q = w.Heads(w.x, 2), k = w.t.Transpose(w.Heads(w.x, 2), {0, 1, 3, 2});
  const ValueId v = w.Heads(w.x, 2);
  const ValueId scores = w.t.Add("MatMul", {merged(q, {2, 5, 4}), merged(k, {2, 4, 5})});
  const ValueId masked = w.t.Add("Add", {scores, w.t.Weights({1, 1, 5, 5})});
  const ValueId weights = merged(w.t.Add("Softmax", {masked}), {2, 5, 5});
  const ValueId y = w.t.Add("MatMul", {weights, merged(v, {2, 5, 4})});
  w.t.Output("y", w.Join(merged(y, {1, 2, 5, 4})));
  std::vector<Pass> passes = {{"restore axes", &RestoreAxes}};
  passes.insert(passes.end(), kAll.begin(), kAll.end());
  const Graph after = RunAndCompare(w.t.graph(), passes);
  EXPECT_EQ(CountOps(after, "Attention"), 1) << Print(after);
  EXPECT_EQ(CountOps(after, "Transpose"), 0) << Print(after);
}

TEST(RecogniseAttention, OpenBatchAndLength) {
  Written w(PartialShape({Dim::Named("n"), Dim::Named("l"), Dim(6)}));
  const ValueId q = w.Heads(w.x, 2), k = w.Heads(w.x, 2), v = w.Heads(w.x, 2);
  w.t.Output("y", w.Join(w.Mix(w.Scores(q, k), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Attention"), 1);
  EXPECT_EQ(CountOps(after, "Transpose"), 0) << Print(after);
}

TEST(RecogniseAttention, ProjectionsOfRowsUnderAnotherShape) {
  Written w(Shape{2, 5, 6});
  const ValueId rows = w.t.Add("Reshape", {w.x, w.t.Ints({10, 6})});
  const auto heads = [&] {
    const ValueId y = w.t.Add("Reshape", {w.Project(rows, 2), w.t.Ints({2, 5, 2, 4})});
    return w.t.Transpose(y, {0, 2, 1, 3});
  };
  const ValueId q = heads(), k = heads(), v = heads();
  w.t.Output("y", w.Join(w.Mix(w.Scores(q, k), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "MatMul"), 1) << Print(after);
  EXPECT_EQ(CountOps(after, "Attention"), 1);
}

TEST(RecogniseAttention, KeysAndValuesOfAnotherInput) {
  Written w(Shape{1, 5, 6});
  w.biased = false;
  const ValueId z = w.t.Input("z", Shape{1, 7, 6});
  const ValueId q = w.Heads(w.x, 2), k = w.Heads(z, 2);
  w.biased = true;  // of the values alone
  const ValueId v = w.Heads(z, 2);
  w.t.Output("y", w.Join(w.Mix(w.Scores(q, k), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "MatMul"), 2) << Print(after);
  const Node* op = Only(after, "Attention");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->inputs[1], op->inputs[2]);
  EXPECT_NE(op->inputs[0], op->inputs[1]);
}

TEST(RecogniseAttention, MasksThatAreAddedOrPutIn) {
  Written w(Shape{2, 5, 6});
  const ValueId q = w.Heads(w.x, 2), k = w.Heads(w.x, 2), v = w.Heads(w.x, 2);
  const ValueId mask = w.t.Input("mask", Shape{2, 1, 1, 5});
  w.t.Output("added", w.Join(w.Mix(w.t.Add("Add", {w.Scores(q, k), mask}), v)));
  const ValueId seen =
      w.t.Add("Greater", {w.t.Input("seen", Shape{5, 5}), w.t.Floats({}, {-0.5f})});
  const ValueId none = w.t.Floats({}, {std::numeric_limits<float>::lowest()});
  w.t.Output("put", w.Join(w.Mix(w.t.Add("Where", {seen, w.Scores(q, k, 3), none}), v)));
  const ValueId hidden = w.t.Add("Not", {seen});
  w.t.Output("other", w.Join(w.Mix(w.t.Add("Where", {hidden, none, w.Scores(q, k, 4)}), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Attention"), 3) << Print(after);
}

// Positions and padding, each with its own mask.
TEST(RecogniseAttention, SeveralMasksAreAddedUp) {
  Written w(Shape{2, 5, 6});
  const ValueId q = w.Heads(w.x, 2), k = w.Heads(w.x, 2), v = w.Heads(w.x, 2);
  const ValueId bias = w.t.Input("bias", Shape{2, 5, 5}), pad = w.t.Input("pad", Shape{2, 1, 1, 5});
  const ValueId seen =
      w.t.Add("Greater", {w.t.Input("seen", Shape{5, 5}), w.t.Floats({}, {-0.5f})});
  const ValueId none = w.t.Floats({}, {std::numeric_limits<float>::lowest()});
  const ValueId s = w.t.Add("Add", {w.Scores(q, k), bias});
  w.t.Output("y", w.Join(w.Mix(w.t.Add("Add", {pad, w.t.Add("Where", {seen, s, none})}), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Attention"), 1) << Print(after);
  EXPECT_EQ(CountOps(after, "Softmax"), 0);
}

// If a row is masked completely, the number that replaces its scores also replaces what was added
// to them before: all keys have the same weight.
TEST(RecogniseAttention, ANumberStandsInForMasksToo) {
  Written w(Shape{1, 5, 6});
  const ValueId q = w.Heads(w.x, 2), k = w.Heads(w.x, 2), v = w.Heads(w.x, 2);
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  std::vector<float> causal(25), hidden(25);
  for (size_t i = 0; i < 25; ++i) {
    causal[i] = i % 5 > i / 5 ? -std::numeric_limits<float>::infinity() : 0;
    hidden[i] = i / 5 == 2 || i % 5 == 1 ? 1 : 0;
  }
  const ValueId s = w.t.Add("Add", {w.Scores(q, k), w.t.Floats({5, 5}, causal)});
  const ValueId hides = w.t.Add("Greater", {w.t.Floats({5, 5}, hidden), w.t.Floats({}, {0.5f})});
  w.t.Output("y", w.Join(w.Mix(w.t.Add("Where", {hides, w.t.Floats({}, {kLowest}), s}), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Attention"), 1) << Print(after);
}

// As PyTorch exports scaled_dot_product_attention: both operands are multiplied by the root of the
// factor, before their transposes, and queries without a key give zeros.
TEST(RecogniseAttention, SoftmaxThatTurnsNanToZero) {
  Written w(Shape{1, 5, 6});
  const auto heads = [&](std::vector<int64_t> order) {
    ValueId y = w.t.Add("Reshape", {w.Project(w.x, 2), w.t.Ints({1, 5, 2, 4})});
    y = w.t.Add("Mul", {y, w.t.Floats({}, {0.5f})});
    return w.t.Transpose(y, std::move(order));
  };
  const ValueId q = heads({0, 2, 1, 3}), k = heads({0, 2, 3, 1}), v = w.Heads(w.x, 2);
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  std::vector<float> mask(25);
  for (size_t i = 0; i < 25; ++i) mask[i] = i / 5 == 3 || i % 5 > i / 5 ? kNone : 0;
  const ValueId s = w.t.Add("Add", {w.t.Add("MatMul", {q, k}), w.t.Floats({1, 1, 5, 5}, mask)});
  const ValueId weights = w.t.Add("Softmax", {s});
  const ValueId safe =
      w.t.Add("Where", {w.t.Add("IsNaN", {weights}), w.t.Floats({}, {0}), weights});
  w.t.Output("y", w.Join(w.t.Add("MatMul", {safe, v})));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  const Node* op = Only(after, "Attention");
  ASSERT_NE(op, nullptr) << Print(after);
  EXPECT_TRUE(std::get<bool>(op->attrs.at("zero_blind")));
  EXPECT_DOUBLE_EQ(std::get<double>(op->attrs.at("scale")), 0.25);
  for (const char* gone : {"Where", "IsNaN", "Mul", "Transpose"}) {
    EXPECT_EQ(CountOps(after, gone), 0) << Print(after);
  }
  EXPECT_EQ(CountOps(after, "MatMul"), 1) << Print(after);
}

// As Swin Transformers export it: windows of several images, with a mask for each window position.
TEST(RecogniseAttention, MasksOfWindows) {
  Written w(Shape{6, 5, 6});  // 2 images of 3 windows
  for (const auto& [shape, name] :
       {std::pair{Shape{1, 3, 1, 5, 5}, "each"}, std::pair{Shape{2, 1, 2, 1, 5}, "every"}}) {
    const ValueId q = w.Heads(w.x, 2), k = w.Heads(w.x, 2), v = w.Heads(w.x, 2);
    const ValueId bias = w.t.Add("Add", {w.Scores(q, k), w.t.Weights({1, 2, 5, 5})});
    const ValueId apart = w.t.Add("Reshape", {bias, w.t.Ints({2, 3, 2, 5, 5})});
    const ValueId masked = w.t.Add("Add", {apart, w.t.Weights(shape)});
    const ValueId s = w.t.Add("Reshape", {masked, w.t.Ints({-1, 2, 5, 5})});
    w.t.Output(name, w.Join(w.Mix(s, v)));
  }
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Attention"), 2) << Print(after);
  EXPECT_EQ(CountOps(after, "Softmax"), 0);
}

// A learnt factor for each head is applied to the queries.
TEST(RecogniseAttention, FactorsOfHeads) {
  Written w(Shape{2, 5, 6});
  const ValueId q = w.Heads(w.x, 2), k = w.Heads(w.x, 2), v = w.Heads(w.x, 2);
  const ValueId s =
      w.t.Add("Mul", {w.t.Add("MatMul", {q, k}, {{"transpose_b", true}}), w.t.Weights({2, 1, 1})});
  w.t.Output("y", w.Join(w.Mix(w.t.Add("Add", {s, w.t.Weights({1, 2, 5, 5})}), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Attention"), 1) << Print(after);
  EXPECT_EQ(CountOps(after, "Softmax"), 0);
}

TEST(RecogniseAttention, FactorsOfQueriesAndKeys) {
  Written w(Shape{1, 5, 6});
  const auto half = [&](ValueId id) { return w.t.Add("Mul", {id, w.t.Floats({}, {0.5f})}); };
  const ValueId q = half(w.Heads(w.x, 2)), k = half(w.Heads(w.x, 2)), v = w.Heads(w.x, 2);
  w.t.Output("y", w.Join(w.Mix(w.t.Add("MatMul", {q, k}, {{"transpose_b", true}}), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  const Node* op = Only(after, "Attention");
  ASSERT_NE(op, nullptr) << Print(after);
  EXPECT_EQ(CountOps(after, "Mul"), 0);
  EXPECT_DOUBLE_EQ(std::get<double>(op->attrs.at("scale")), 0.25);
}

TEST(RecogniseAttention, HeadsThatAreShared) {
  Written w(Shape{2, 5, 6});
  w.heads = 4;
  const ValueId q = w.Heads(w.x, 4);
  const auto shared = [&] {
    ValueId y = w.Heads(w.x, 2);
    y = w.t.Add("Unsqueeze", {y, w.t.Ints({2})});
    y = w.t.Add("Expand", {y, w.t.Ints({2, 2, 2, 5, 4})});
    return w.t.Add("Reshape", {y, w.t.Ints({2, 4, 5, 4})});
  };
  const ValueId k = shared(), v = shared();
  w.t.Output("y", w.Join(w.Mix(w.Scores(q, k), v)));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Expand"), 0) << Print(after);
  const Node* op = Only(after, "Attention");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(IntOf(op, "heads"), 4);
  EXPECT_EQ(IntOf(op, "kv_heads"), 2);
  EXPECT_EQ(CountOps(after, "MatMul"), 1) << Print(after);
}

TEST(RecogniseAttention, MatricesWithoutHeads) {
  GraphText t;
  const ValueId q = t.Input("q", Shape{3, 4, 2}), k = t.Input("k", Shape{3, 5, 2});
  const ValueId v = t.Input("v", Shape{3, 5, 2}), mask = t.Input("mask", Shape{3, 1, 5});
  const ValueId s = t.Add("Add", {t.Add("MatMul", {q, k}, {{"transpose_b", true}}), mask});
  t.Output("y", t.Add("MatMul", {t.Add("Softmax", {s}), v}));
  const Graph after = RunAndCompare(t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Attention"), 1) << Print(after);
  EXPECT_EQ(CountOps(after, "MatMul"), 0);
}

TEST(RecogniseAttention, WhatIsSomethingElseStays) {
  const auto stays = [](auto&& write) {
    Written w(Shape{1, 5, 6});
    const ValueId q = w.Heads(w.x, 2), k = w.Heads(w.x, 2), v = w.Heads(w.x, 2);
    write(w, q, k, v);
    const Graph after = RunAndCompare(w.t.graph(), kAll);
    EXPECT_EQ(CountOps(after, "Attention"), 0) << Print(after);
  };
  stays([](Written& w, ValueId q, ValueId k, ValueId v) {  // the weights are fetched
    const ValueId weights = w.t.Add("Softmax", {w.Scores(q, k)});
    w.t.Output("weights", weights);
    w.t.Output("y", w.t.Add("MatMul", {weights, v}));
  });
  stays([](Written& w, ValueId q, ValueId k, ValueId v) {  // a softmax over queries
    w.t.Output(
        "y", w.t.Add("MatMul", {w.t.Add("Softmax", {w.Scores(q, k)}, {{"axis", int64_t{2}}}), v}));
  });
  stays([](Written& w, ValueId q, ValueId k, ValueId v) {  // a factor of mask and scores
    const ValueId s = w.t.Add("Add", {w.Scores(q, k), w.t.Input("mask", Shape{1, 1, 1, 5})});
    w.t.Output("y", w.Mix(w.t.Add("Mul", {s, w.t.Floats({}, {2})}), v));
  });
  stays([](Written& w, ValueId q, ValueId k, ValueId v) {  // a number that hides nothing
    const ValueId seen = w.t.Add("Greater", {w.t.Input("seen", Shape{5, 5}), w.t.Floats({}, {0})});
    const ValueId s = w.t.Add("Where", {seen, w.Scores(q, k), w.t.Floats({}, {-3})});
    w.t.Output("y", w.Mix(s, v));
  });
  stays([](Written& w, ValueId q, ValueId k, ValueId v) {  // something else instead of NaN
    const ValueId weights = w.t.Add("Softmax", {w.Scores(q, k)});
    const ValueId one =
        w.t.Add("Where", {w.t.Add("IsNaN", {weights}), w.t.Floats({}, {1}), weights});
    w.t.Output("y", w.t.Add("MatMul", {one, v}));
  });
  stays([](Written& w, ValueId q, ValueId, ValueId v) {  // keys that stretch over the samples
    const ValueId one = w.t.Input("one", Shape{1, 1, 5, 4});
    w.t.Output("y", w.Mix(w.Scores(q, one), v));
  });
  stays([](Written& w, ValueId q, ValueId k, ValueId v) {  // a factor for each key
    const ValueId s = w.t.Add("MatMul", {q, k}, {{"transpose_b", true}});
    w.t.Output("y", w.Mix(w.t.Add("Mul", {s, w.t.Weights({5})}), v));
  });
}

// One product for all three, split as rows or after the heads were moved to the front.
TEST(ReadColumns, OfOneProduct) {
  const auto check = [](auto&& cut) {
    Written w(Shape{2, 5, 6});
    const ValueId all =
        w.t.Add("Add", {w.t.Add("MatMul", {w.x, w.t.Weights({6, 24})}), w.t.Weights({24})});
    const std::vector<ValueId> parts = cut(w, all);
    w.t.Output("y", w.Join(w.Mix(w.Scores(parts[0], parts[1]), parts[2])));
    const Graph after = RunAndCompare(w.t.graph(), kAll);
    for (const char* gone : {"Split", "Slice", "Gather", "Squeeze", "Transpose", "Reshape"}) {
      EXPECT_EQ(CountOps(after, gone), 0) << Print(after);
    }
    const Node* op = Only(after, "Attention");
    ASSERT_NE(op, nullptr) << Print(after);
    EXPECT_EQ(std::get<std::vector<int64_t>>(op->attrs.at("columns")),
              (std::vector<int64_t>{0, 8, 16}));
  };
  const AttrMap last = {{"axis", int64_t{-1}}};
  check([&](Written& w, ValueId all) {
    std::vector<ValueId> parts = w.t.AddAll("Split", {all, w.t.Ints({8, 8, 8})}, last);
    for (ValueId& part : parts) part = w.Split(part, 2);
    return parts;
  });
  check([&](Written& w, ValueId all) {
    std::vector<ValueId> parts;
    for (const auto& [from, to] : {std::pair{0, 8}, std::pair{8, 16}, std::pair{-8, 100}}) {
      parts.push_back(w.Split(
          w.t.Add("Slice", {all, w.t.Ints({from}), w.t.Ints({to}), w.t.Ints({2}), w.t.Ints({1})}),
          2));
    }
    return parts;
  });
  const auto moved = [](Written& w, ValueId all) {
    return w.t.Transpose(w.t.Add("Reshape", {all, w.t.Ints({2, 5, 3, 2, 4})}), {2, 0, 3, 1, 4});
  };
  check([&](Written& w, ValueId all) {
    const ValueId front = moved(w, all);
    std::vector<ValueId> parts;
    for (int64_t i : {0, 1, -1}) {
      parts.push_back(w.t.Add("Gather", {front, w.t.Constant<int64_t>(DType::kI64, {}, {i})},
                              {{"axis", int64_t{0}}}));
    }
    return parts;
  });
  check([&](Written& w, ValueId all) {
    auto parts =
        w.t.AddAll("Split", {moved(w, all)}, {{"axis", int64_t{0}}, {"parts", int64_t{3}}});
    for (ValueId& part : parts) part = w.t.Add("Squeeze", {part, w.t.Ints({0})});
    return parts;
  });
}

// Rows that alternate between the three cannot be read as columns.
TEST(ReadColumns, HeadsThatAlternateStay) {
  Written w(Shape{2, 5, 6});
  const ValueId all = w.t.Add("MatMul", {w.x, w.t.Weights({6, 24})});
  const ValueId front =
      w.t.Transpose(w.t.Add("Reshape", {all, w.t.Ints({2, 5, 2, 3, 4})}), {3, 0, 2, 1, 4});
  std::vector<ValueId> parts;
  for (int64_t i : {0, 1, 2}) {
    parts.push_back(w.t.Add("Gather", {front, w.t.Constant<int64_t>(DType::kI64, {}, {i})},
                            {{"axis", int64_t{0}}}));
  }
  w.t.Output("y", w.Join(w.Mix(w.Scores(parts[0], parts[1]), parts[2])));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "Gather"), 3) << Print(after);
  EXPECT_EQ(CountOps(after, "Attention"), 1);
}

TEST(MergeProjections, WeightsThatOthersReadStay) {
  Written w(Shape{1, 5, 6});
  w.biased = false;
  const ValueId weights = w.t.Weights({6, 8});
  const auto heads = [&] { return w.Split(w.t.Add("MatMul", {w.x, weights}), 2); };
  const ValueId q = heads(), k = w.Heads(w.x, 2), v = w.Heads(w.x, 2);
  w.t.Output("y", w.Join(w.Mix(w.Scores(q, k), v)));
  w.t.Output("z", w.t.Add("MatMul", {w.x, weights}));
  const Graph after = RunAndCompare(w.t.graph(), kAll);
  EXPECT_EQ(CountOps(after, "MatMul"), 3) << Print(after);
}

}  // namespace
}  // namespace oncilla
