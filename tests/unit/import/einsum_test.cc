// Einsum, as the importers lower it, against a sum over all values of the letters.
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

// The index in a tensor for these values of the letters.
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
  const auto lowered = LowerEinsum(node, equation, LabelSizes::kEqual);
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

// The product of operands of ones, by their shapes, or the failure; `known`: sizes known at import.
std::string Ones(const std::string& equation, const std::vector<Shape>& shapes, LabelSizes sizes,
                 bool known) {
  Graph graph(OpSet::Builtin());
  Values inputs;
  std::map<std::string, Tensor> feeds;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<float> ones(static_cast<size_t>(shapes[i].elements()), 1.0f);
    const std::string name = StrCat("x", i);
    feeds.emplace(name, Tensor::Of<float>(DType::kF32, shapes[i], ones));
    const PartialShape fact =
        known ? PartialShape(shapes[i]) : PartialShape::OfRank(shapes[i].rank());
    inputs.push_back(graph.AddInput(name, Fact::Of(DType::kF32, fact)));
  }
  Node node(graph, inputs);
  const auto lowered = LowerEinsum(node, equation, sizes);
  if (!lowered.ok()) return Message(lowered.status());
  graph.AddOutput("y", lowered->at(0));
  const auto out = RunGraph(graph, feeds);
  if (!out.ok()) return StrCat("run: ", Message(out.status()));
  return StrCat(out->at(0).shape(), " ",
                out->at(0).elements() == 0 ? 0.0f : out->at(0).As<float>()[0]);
}

// The values are NumPy's.
TEST(Einsum, StretchesSizesOfOneWhereTheFormatDoes) {
  const auto ones = [](const std::string& equation, const std::vector<Shape>& shapes) {
    return Ones(equation, shapes, LabelSizes::kStretch, true);
  };
  EXPECT_EQ(ones("ab,bc->ac", {{2, 1}, {3, 4}}), "[2,4] 3");
  EXPECT_EQ(ones("ab,bc->ac", {{2, 3}, {1, 4}}), "[2,4] 3");
  EXPECT_EQ(ones("ab,ab->ab", {{1, 3}, {2, 3}}), "[2,3] 1");
  EXPECT_EQ(ones("ab,ab->a", {{1, 3}, {2, 1}}), "[2] 3");
  EXPECT_EQ(ones("ab,ab->", {{1, 3}, {2, 1}}), "[] 6");
  EXPECT_EQ(ones("abc,abd->acd", {{1, 3, 2}, {4, 3, 5}}), "[4,2,5] 3");
  EXPECT_EQ(ones("abce,abed->abcd", {{4, 1, 2, 3}, {1, 5, 3, 2}}), "[4,5,2,2] 3");
  EXPECT_EQ(ones("ab,bc,cd->ad", {{2, 1}, {3, 1}, {4, 5}}), "[2,5] 12");
  EXPECT_EQ(ones("aa,a->a", {{1, 1}, {3}}), "[3] 1");
  EXPECT_EQ(ones("a,a->", {{0}, {1}}), "[] 0");
  EXPECT_EQ(ones("a,a,a->a", {{1}, {3}, {1}}), "[3] 1");
  EXPECT_EQ(ones("a,a->a", {{1}, {1}}), "[1] 1");
  EXPECT_EQ(ones("ab,bc->ac", {{2, 3}, {2, 4}}),
            "operands 0 and 1 have the sizes 3 and 2 for the label b");
  EXPECT_EQ(ones("a,a,a->a", {{1}, {3}, {2}}),
            "operands 1 and 2 have the sizes 3 and 2 for the label a");
  const auto open = [](const std::string& equation, const std::vector<Shape>& shapes) {
    return Ones(equation, shapes, LabelSizes::kStretch, false);
  };
  EXPECT_EQ(open("abce,abed->abcd", {{4, 1, 2, 3}, {1, 5, 3, 2}}), "[4,5,2,2] 3");
  EXPECT_EQ(open("...ce,...ed->...cd", {{2, 3}, {5, 3, 2}}), "[5,2,2] 3");
}

TEST(Einsum, RefusesSizesThatDiffer) {
  for (bool known : {true, false}) {
    const auto ones = [known](const std::string& equation, const std::vector<Shape>& shapes) {
      return Ones(equation, shapes, LabelSizes::kEqual, known);
    };
    const auto refused = [](const std::string& text) {
      return text.find('[') == std::string::npos || text.starts_with("run");
    };
    EXPECT_PRED1(refused, ones("ab,bc->ac", {{2, 1}, {3, 4}}));
    EXPECT_PRED1(refused, ones("ab,bc->ac", {{2, 3}, {2, 4}}));
    // Both have six products of b and c.
    EXPECT_PRED1(refused, ones("abc,bcd->ad", {{2, 2, 3}, {3, 2, 4}}));
    EXPECT_PRED1(refused, Ones("abc,bcd->ad", {{2, 2, 3}, {3, 2, 4}}, LabelSizes::kStretch, known));
  }
  EXPECT_EQ(Ones("ab,ab->ab", {{1, 3}, {2, 3}}, LabelSizes::kEqual, true),
            "operands 0 and 1 have the sizes 1 and 2 for the label a");
}

TEST(Einsum, RefusesWhatIsNoEquation) {
  Graph graph(OpSet::Builtin());
  const ValueId x = graph.AddInput("x", Fact::Of(DType::kF32, PartialShape(Shape{2, 3})));
  Node node(graph, {x});
  const auto message = [&](const char* equation) {
    return Message(LowerEinsum(node, equation, LabelSizes::kEqual).status());
  };
  EXPECT_EQ(message("ab,b->a"), "the equation ab,b->a with 1 inputs");
  EXPECT_EQ(message("abc->a"), "operand 0 has the rank 2 and the labels abc");
  EXPECT_EQ(message("a?->a"), "the equation has the character '?'");
  EXPECT_EQ(message("ab->c"), "the label c of the result is in no operand");
  EXPECT_EQ(message("aa->a"), "operand 0 has the sizes 2 and 3 for the label a");
}

}  // namespace
}  // namespace oncilla
