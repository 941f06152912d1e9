// Einsum, as the importers lower it, against sums over all values of the letters.
#include "engine/import/lowering/einsum.h"

#include <gtest/gtest.h>

#include "tests/unit/support/run_graph.h"

namespace oncilla {
namespace {

using testing::RunGraph;

constexpr int64_t kSizes[] = {2, 3, 4, 5};  // of a, b, c, d

class Node : public Lowering {
 public:
  Node(Graph& graph, Values inputs) : Lowering(graph, "einsum", std::move(inputs)) {}
};

Shape ShapeOf(std::string_view labels) {
  Shape shape;
  for (char c : labels) shape.push_back(kSizes[c - 'a']);
  return shape;
}

// Where the letters' values lead in a tensor.
size_t Place(std::string_view labels, const std::vector<int64_t>& at) {
  int64_t place = 0;
  for (char c : labels) place = place * kSizes[c - 'a'] + at[static_cast<size_t>(c - 'a')];
  return static_cast<size_t>(place);
}

void Check(const std::string& equation, const std::vector<std::string>& terms,
           const std::string& result, bool sized) {
  SCOPED_TRACE(equation + (sized ? ", sizes known" : ""));
  Graph graph(OpSet::Builtin());
  Values inputs;
  std::map<std::string, Tensor> feeds;
  std::vector<std::vector<float>> data;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Shape shape = ShapeOf(terms[i]);
    std::vector<float>& values = data.emplace_back(static_cast<size_t>(shape.elements()));
    for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>((k * 7 + i) % 5) - 2;
    const std::string name = StrCat("x", i);
    feeds.emplace(name, Tensor::Of<float>(DType::kF32, shape, values));
    const PartialShape fact = sized ? PartialShape(shape) : PartialShape::OfRank(shape.rank());
    inputs.push_back(graph.AddInput(name, Fact::Of(DType::kF32, fact)));
  }
  Node node(graph, inputs);
  const auto lowered = LowerEinsum(node, equation);
  ASSERT_TRUE(lowered.ok()) << Message(lowered.status());
  graph.AddOutput("y", lowered->at(0));
  const auto out = RunGraph(graph, feeds);
  ASSERT_TRUE(out.ok()) << Message(out.status());
  ASSERT_EQ(out->at(0).shape(), ShapeOf(result));

  std::vector<float> expected(static_cast<size_t>(ShapeOf(result).elements()), 0);
  for (int64_t n = 0; n < 2 * 3 * 4 * 5; ++n) {
    const std::vector<int64_t> at = {n / 60, n / 20 % 3, n / 5 % 4, n % 5};
    // A letter of no term has one value.
    bool counts = true;
    for (size_t c = 0; c < 4; ++c) {
      const bool met = equation.find(static_cast<char>('a' + c)) != std::string::npos;
      counts = counts && (met || at[c] == 0);
    }
    float product = 1;
    for (size_t i = 0; i < terms.size(); ++i) product *= data[i][Place(terms[i], at)];
    if (counts) expected[Place(result, at)] += product;
  }
  const auto values = out->at(0).As<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), expected);
}

TEST(Einsum, IsTheSumOverAllLetters) {
  for (bool sized : {false, true}) {
    Check("ab,bc->ac", {"ab", "bc"}, "ac", sized);
    Check("ab,bc", {"ab", "bc"}, "ac", sized);  // the letters that stand once
    Check("ab, bc, cd -> da", {"ab", "bc", "cd"}, "da", sized);
    Check("ab,bc,cd", {"ab", "bc", "cd"}, "ad", sized);
    Check("abc,c,ab->b", {"abc", "c", "ab"}, "b", sized);
    Check("a,b,c->cab", {"a", "b", "c"}, "cab", sized);
    Check("ab,ab->", {"ab", "ab"}, "", sized);
    Check("ab,ab,b->ab", {"ab", "ab", "b"}, "ab", sized);
    Check("abc->ca", {"abc"}, "ca", sized);
  }
  Check("aab,bc->ac", {"aab", "bc"}, "ac", true);
  Check("ab,b->aba", {"ab", "b"}, "aba", true);
}

TEST(Einsum, RefusesWhatIsNoEquation) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, PartialShape(Shape{2, 3})));
  Node node(graph, {x});
  const auto message = [&](const char* equation) {
    return Message(LowerEinsum(node, equation).status());
  };
  EXPECT_EQ(message("ab,b->a"), "the equation ab,b->a with 1 inputs");
  EXPECT_EQ(message("abc->a"), "operand 0 has the rank 2 and the labels abc");
  EXPECT_EQ(message("a?->a"), "the equation has the character '?'");
  EXPECT_EQ(message("ab->c"), "the label c of the result is in no operand");
  EXPECT_EQ(message("aa->a"), "operand 0 has the sizes 2 and 3 for the label a");
}

}  // namespace
}  // namespace oncilla
