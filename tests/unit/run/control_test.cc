// Control flow, lists and variables: what the executor does between segments, on modules made by
// hand. Expected results are literals.
#include "engine/ops/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ops/array/list.h"
#include "engine/run/executor.h"
#include "engine/tensor/tensor_list.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ControlTest : public testing::Test {
 protected:
  Graph NewGraph() { return Graph(OpSet::Builtin()); }

  std::unique_ptr<Executor> Make(Module module) {
    CompileOptions compile;
    compile.verify = true;
    auto compiled =
        Compile(std::move(module), parts_.devices(), parts_.names(), *parts_.constants, compile);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) std::abort();  // every test needs it, and would only crash later
    ExecutorOptions options;
    options.variables = &variables_;
    return std::make_unique<Executor>(*compiled, parts_.devices(), parts_.pools(), parts_.owner,
                                      options);
  }

  static Tensor Floats(Shape shape, std::vector<float> values) {
    return Tensor::Of<float>(DType::kF32, std::move(shape), values);
  }
  static Tensor Int(int32_t value) { return Tensor::Of<int32_t>(DType::kI32, {}, {&value, 1}); }
  static std::vector<float> Values(const Tensor& t) {
    auto span = t.As<float>();
    return {span.begin(), span.end()};
  }
  static Fact F32(PartialShape shape) { return Fact::Of(DType::kF32, std::move(shape)); }
  static Fact Scalar(DType dtype) { return Fact::Of(dtype, PartialShape::OfRank(0)); }

  SessionParts parts_;
  VariableStore variables_;
};

// (i, x, xs) -> i < limit; (i + 1, x * 2, xs with x at i)
Module DoublingLoop(int32_t limit) {
  const Fact i_fact = Fact::Of(DType::kI32, PartialShape::OfRank(0));
  const Fact x_fact = Fact::Of(DType::kF32, PartialShape({Dim()}));
  const Fact list = Fact::List(DType::kF32, PartialShape());
  const auto constant = [](Graph& g, int32_t v) {
    return g.AddConstant(Tensor::Of<int32_t>(DType::kI32, {}, {&v, 1}));
  };
  Graph cond(OpSet::Builtin()), body(OpSet::Builtin()), main(OpSet::Builtin());
  ValueId i = cond.AddInput("i", i_fact);
  cond.AddInput("x", x_fact);
  cond.AddInput("xs", list);
  cond.AddOutput("more", cond.Add("less", "Less", {}, {i, constant(cond, limit)}).value());

  i = body.AddInput("i", i_fact);
  ValueId x = body.AddInput("x", x_fact);
  ValueId xs = body.AddInput("xs", list);
  body.AddOutput("i", body.Add("next", "Add", {}, {i, constant(body, 1)}).value());
  body.AddOutput("x", body.Add("double", "Add", {}, {x, x}).value());
  body.AddOutput("xs",
                 body.Add("keep", "ListSet", WriteAttrs(ListSetAttrs{true}), {xs, i, x}).value());

  x = main.AddInput("x", x_fact);
  const ValueId empty =
      main.Add("empty", "ListReserve", WriteAttrs(ListReserveAttrs{"list<f32[...]>"}),
               {constant(main, 0)})
          .value();
  const WhileAttrs attrs{"cond", "body", {"i32[]", "f32[?]", "list<f32[...]>"}};
  const auto out =
      main.AddNode("loop", "While", WriteAttrs(attrs), {constant(main, 0), x, empty}).value();
  main.AddOutput("x", main.Add("after", "Neg", {}, {out[1]}).value());
  main.AddOutput("all", main.Add("stack", "ListStack", {}, {out[2]}).value());
  Module module(std::move(main));
  module.functions.emplace_back("cond", std::move(cond));
  module.functions.emplace_back("body", std::move(body));
  return module;
}

TEST_F(ControlTest, LoopsCarryTensorsAndLists) {
  auto executor = Make(DoublingLoop(3));
  auto out = executor->Run(std::vector<Tensor>{Floats({2}, {1, 5})}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(-8, -40));
  EXPECT_EQ((*out)[1].shape(), (Shape{3, 2}));
  EXPECT_THAT(Values((*out)[1]), ElementsAre(1, 5, 2, 10, 4, 20));
}

// The condition is computed with the body, which the results do not show.
TEST_F(ControlTest, ARoundIsOneFunction) {
  auto executor = Make(DoublingLoop(3));
  const auto& functions = executor->compiled().functions;
  EXPECT_EQ(functions.count("cond"), 1);
  EXPECT_EQ(functions.count("body"), 0);
  EXPECT_EQ(functions.count("body, then cond"), 1);
  auto one = Make(DoublingLoop(1));
  auto out = one->Run(std::vector<Tensor>{Floats({1}, {5})}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(-10));
  EXPECT_EQ((*out)[1].shape()[0], 1);
}

// A model's own function of a round's name is called as the model says, and is no round.
TEST_F(ControlTest, AFunctionThatHasTheNameOfARoundIsNone) {
  Module module = DoublingLoop(3);
  Graph other = NewGraph();
  for (const char* name : {"i", "x", "xs", "more"}) other.AddInput(name, F32({}));
  module.functions.emplace_back("body, then cond", std::move(other));
  auto executor = Make(std::move(module));
  EXPECT_EQ(executor->compiled().functions.count("body"), 1);
  auto out = executor->Run(std::vector<Tensor>{Floats({1}, {5})}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(-40));
}

// A condition that reads state is asked on its own, after the round that may change the state.
TEST_F(ControlTest, AConditionThatReadsAVariableSeesWhatTheBodyAssigned) {
  const Fact one = Scalar(DType::kF32);
  const AttrMap read = WriteAttrs(ReadVariableAttrs{"v", "f32[]"});
  const auto number = [](Graph& g, float v) {
    return g.AddConstant(Tensor::Of<float>(DType::kF32, {}, {&v, 1}));
  };
  Graph cond = NewGraph(), body = NewGraph(), main = NewGraph();
  cond.AddInput("x", one);
  const ValueId now = cond.AddNode("now", "ReadVariable", read, {}).value()[0];
  cond.AddOutput("more", cond.Add("less", "Less", {}, {now, number(cond, 3)}).value());
  const ValueId x = body.AddInput("x", one);
  const ValueId v = body.AddNode("v", "ReadVariable", read, {}).value()[0];
  const ValueId next = body.Add("next", "Add", {}, {v, number(body, 1)}).value();
  ASSERT_TRUE(
      body.AddNode("assign", "AssignVariable", WriteAttrs(AssignVariableAttrs{"v"}), {next}).ok());
  body.AddOutput("x", body.Add("double", "Add", {}, {x, x}).value());
  const WhileAttrs attrs{"cond", "body", {"f32[]"}};
  const ValueId in = main.AddInput("x", one);
  main.AddOutput("x", main.Add("loop", "While", WriteAttrs(attrs), {in}).value());
  Module module(std::move(main));
  module.functions.emplace_back("cond", std::move(cond));
  module.functions.emplace_back("body", std::move(body));
  auto executor = Make(std::move(module));
  ASSERT_TRUE(variables_.Assign("v", Floats({}, {0})).ok());
  auto out = executor->Run(std::vector<Tensor>{Floats({}, {1})}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(8));
}

TEST_F(ControlTest, LoopsMakeNoPlansWhileShapesRepeat) {
  auto executor = Make(DoublingLoop(40));
  ASSERT_TRUE(executor->Run(std::vector<Tensor>{Floats({1}, {1})}, {}).ok());
  const ExecutorCounters first = executor->counters();
  EXPECT_LT(first.plans_made, 10);  // two graphs of a few segments, not forty times that
  ASSERT_TRUE(executor->Run(std::vector<Tensor>{Floats({1}, {2})}, {}).ok());
  EXPECT_EQ(executor->counters().plans_made, first.plans_made);
  EXPECT_EQ(executor->counters().instances_made, first.instances_made);
}

TEST_F(ControlTest, LoopsEndAtTheDeadline) {
  auto executor = Make(DoublingLoop(std::numeric_limits<int32_t>::max()));
  RunControl control;
  control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  auto out = executor->Run(std::vector<Tensor>{Floats({1}, {1})}, control);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), Code::kDeadlineExceeded) << out.status();
  EXPECT_THAT(std::string(Message(out.status())), HasSubstr("'loop' (While)"));
}

TEST_F(ControlTest, WhatALoopCarriesIsUnderTheLimit) {
  auto executor = Make(DoublingLoop(1000));
  const std::vector<Tensor> in = {Floats({1000}, std::vector<float>(1000, 0.0f))};
  ASSERT_TRUE(executor->Run(in, {}).ok());
  MemoryBudget& budget = *parts_.pools()[0]->budget();
  const int64_t limit = budget.limit_bytes(), before = budget.used_bytes();
  EXPECT_GT(budget.peak_bytes(), before + 1000 * 1000 * 4);
  budget.SetLimit(before + 2'000'000);
  const auto out = executor->Run(in, {});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), Code::kResourceExhausted) << out.status();
  EXPECT_THAT(std::string(Message(out.status())), HasSubstr("bytes for values; "));
  EXPECT_THAT(std::string(Message(out.status())), HasSubstr("'loop' (While)"));
  EXPECT_LE(budget.used_bytes(), before);
  budget.SetLimit(limit);
  EXPECT_TRUE(executor->Run(in, {}).ok());
}

TEST_F(ControlTest, BranchesRunOnlyWhenChosen) {
  Graph yes = NewGraph(), no = NewGraph(), main = NewGraph();
  yes.AddOutput("y", yes.Add("neg", "Neg", {}, {yes.AddInput("x", F32({}))}).value());
  // Reshape to a shape that x does not have fails when it is run.
  const ValueId x = no.AddInput("x", F32({}));
  const ValueId three = no.AddConstant(Tensor::Int64s(std::vector<int64_t>{3}));
  no.AddOutput("y", no.Add("three", "Reshape", {}, {x, three}).value());
  const ValueId chosen = main.AddInput("chosen", Scalar(DType::kBool));
  const ValueId in = main.AddInput("x", F32({}));
  const IfAttrs attrs{{"yes", "no"}, {"f32[...]"}};
  main.AddOutput("y", main.Add("if", "If", WriteAttrs(attrs), {chosen, in}).value());
  Module module(std::move(main));
  module.functions.emplace_back("yes", std::move(yes));
  module.functions.emplace_back("no", std::move(no));
  auto executor = Make(std::move(module));
  const auto run = [&](bool choice, const Tensor& value) {
    return executor->Run(
        std::vector<Tensor>{Tensor::Of<bool>(DType::kBool, {}, {&choice, 1}), value}, {});
  };
  auto out = run(true, Floats({2}, {1, 2}));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(-1, -2));
  out = run(false, Floats({3, 1}, {1, 2, 3}));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), Shape{3});
  EXPECT_FALSE(run(false, Floats({2}, {1, 2})).ok());
}

TEST_F(ControlTest, VariablesAreReadAndWrittenInOrder) {
  // before = v; v = before + x; after = v
  Graph main = NewGraph();
  const ValueId x = main.AddInput("x", F32(PartialShape({Dim()})));
  const AttrMap read = WriteAttrs(ReadVariableAttrs{"v", "f32[?]"});
  const ValueId before = main.AddNode("before", "ReadVariable", read, {}).value()[0];
  const ValueId sum = main.Add("sum", "Add", {}, {before, x}).value();
  ASSERT_TRUE(
      main.AddNode("assign", "AssignVariable", WriteAttrs(AssignVariableAttrs{"v"}), {sum}).ok());
  const ValueId after = main.AddNode("after", "ReadVariable", read, {}).value()[0];
  main.AddOutput("before", before);
  main.AddOutput("after", after);
  auto executor = Make(std::move(main));
  EXPECT_TRUE(executor->compiled().writes_variables);

  auto out = executor->Run(std::vector<Tensor>{Floats({1}, {3})}, {});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), Code::kFailedPrecondition) << out.status();
  EXPECT_THAT(std::string(Message(out.status())), HasSubstr("'v'"));

  ASSERT_TRUE(variables_.Assign("v", Floats({1}, {10})).ok());
  out = executor->Run(std::vector<Tensor>{Floats({1}, {3})}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(10));
  EXPECT_THAT(Values((*out)[1]), ElementsAre(13));
  out = executor->Run(std::vector<Tensor>{Floats({1}, {4})}, {});
  EXPECT_THAT(Values((*out)[1]), ElementsAre(17));
}

TEST_F(ControlTest, AMissingFunctionAndOneThatCallsItselfAreRefused) {
  const auto compile = [&](Module module) {
    return Compile(std::move(module), parts_.devices(), parts_.names(), *parts_.constants, {})
        .status();
  };
  const auto caller = [&](const std::string& name) {
    Graph graph = NewGraph();
    const ValueId c = graph.AddInput("c", Scalar(DType::kBool));
    const IfAttrs attrs{{name, name}, {"bool[]"}};
    graph.AddOutput("y", graph.Add("if", "If", WriteAttrs(attrs), {c, c}).value());
    return graph;
  };
  EXPECT_THAT(std::string(Message(compile(caller("none")))), HasSubstr("no such function"));
  Module circle(caller("self"));
  circle.functions.emplace_back("self", caller("self"));
  EXPECT_THAT(std::string(Message(compile(std::move(circle)))), HasSubstr("too deeply"));
}

TEST(TensorList, VersionsShareWhatDidNotChange) {
  TensorList a(DType::kI64);
  for (int64_t i = 0; i < 100; ++i) a.Push(Tensor::ScalarInt64(i));
  TensorList b = a;
  b.Set(40, Tensor::ScalarInt64(-1));
  EXPECT_EQ(a.at(40).As<int64_t>()[0], 40);
  EXPECT_EQ(b.at(40).As<int64_t>()[0], -1);
  EXPECT_EQ(a.at(99).bytes().data(), b.at(99).bytes().data());
  b.Resize(35);
  b.Resize(41);
  EXPECT_FALSE(b.at(35).valid());
  EXPECT_FALSE(b.at(40).valid());
  EXPECT_EQ(b.at(34).As<int64_t>()[0], 34);
}

// One op on lists, computed by the CPU.
class ListOpTest : public ControlTest {
 protected:
  Result<std::vector<Tensor>> Run(std::string_view op, AttrMap attrs, std::vector<Tensor> in) {
    const OpDef* def = OpSet::Builtin()->Find(op);
    Facts facts;
    for (const Tensor& t : in) facts.push_back(Fact::Of(t));
    ONCILLA_ASSIGN(const Facts out, def->infer(attrs, facts));
    return parts_.cpu->Evaluate({def, &attrs, facts, out, "node"}, in);
  }
  Tensor Three() {
    return Run("ListFromTensor", {}, {Floats({3, 2}, {1, 2, 3, 4, 5, 6})}).value()[0];
  }
};

TEST_F(ListOpTest, CutStackAndGather) {
  const Tensor list = Three();
  EXPECT_EQ(list.list().size(), 3);
  EXPECT_THAT(Values(Run("ListGet", {}, {list, Int(2)}).value()[0]), ElementsAre(5, 6));
  EXPECT_THAT(Values(Run("ListStack", {}, {list}).value()[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  const Tensor order = Tensor::Int64s(std::vector<int64_t>{2, 0});
  EXPECT_THAT(Values(Run("ListGather", {}, {list, order}).value()[0]), ElementsAre(5, 6, 1, 2));
  EXPECT_EQ(Run("ListLength", {}, {list}).value()[0].As<int32_t>()[0], 3);
  EXPECT_FALSE(Run("ListGet", {}, {list, Int(3)}).ok());
  EXPECT_FALSE(Run("ListGet", {}, {list, Int(-1)}).ok());
}

TEST_F(ListOpTest, WhatWasNeverWrittenReadsAsZerosOrFails) {
  const AttrMap type = WriteAttrs(ListReserveAttrs{"list<f32[?]>"});
  const Tensor list = Run("ListReserve", type, {Int(2)}).value()[0];
  EXPECT_FALSE(Run("ListGet", {}, {list, Int(0)}).ok());  // of no known length
  const Tensor two = Tensor::Int64s(std::vector<int64_t>{2});
  EXPECT_THAT(Values(Run("ListGet", {}, {list, Int(0), two}).value()[0]), ElementsAre(0, 0));
  const auto strict = Run("ListGet", WriteAttrs(ListGetAttrs{false}), {list, Int(0), two});
  EXPECT_EQ(strict.status().code(), Code::kFailedPrecondition);
  const Tensor one = Run("ListSet", {}, {list, Int(1), Floats({2}, {7, 8})}).value()[0];
  EXPECT_THAT(Values(Run("ListStack", {}, {one}).value()[0]), ElementsAre(0, 0, 7, 8));
  EXPECT_FALSE(Run("ListSet", {}, {list, Int(2), Floats({2}, {7, 8})}).ok());
  EXPECT_FALSE(Run("ListSet", {}, {list, Int(1), Floats({}, {7})}).ok());
  EXPECT_FALSE(Run("ListSet", {}, {list, Int(1), Int(7)}).ok());
}

TEST_F(ListOpTest, SplitConcatPushPop) {
  const Tensor lengths = Tensor::Int64s(std::vector<int64_t>{1, 0, 2});
  const Tensor list = Run("ListSplit", {}, {Floats({3, 1}, {1, 2, 3}), lengths}).value()[0];
  EXPECT_EQ(list.list().at(1).shape(), (Shape{0, 1}));
  auto joined = Run("ListConcat", {}, {list}).value();
  EXPECT_EQ(joined[0].shape(), (Shape{3, 1}));
  EXPECT_THAT(joined[1].As<int64_t>(), ElementsAre(1, 0, 2));
  const Tensor longer = Run("ListPush", {}, {list, Floats({1, 1}, {9})}).value()[0];
  auto popped = Run("ListPop", {}, {longer}).value();
  EXPECT_EQ(popped[0].list().size(), 3);
  EXPECT_THAT(Values(popped[1]), ElementsAre(9));
  EXPECT_FALSE(Run("ListSplit", {}, {Floats({2}, {1, 2}), lengths}).ok());
  const Tensor none = Run("ListResize", {}, {list, Int(0)}).value()[0];
  EXPECT_FALSE(Run("ListPop", {}, {none}).ok());
  EXPECT_FALSE(Run("ListResize", {}, {list, Int(-1)}).ok());
  const Tensor at = Tensor::Int64s(std::vector<int64_t>{4});
  const Tensor grown = Run("ListScatter", {}, {Three(), at, Floats({1, 2}, {7, 7})}).value()[0];
  EXPECT_EQ(grown.list().size(), 5);
  EXPECT_FALSE(grown.list().at(3).valid());
}

TEST_F(ListOpTest, InsertAndErase) {
  const Tensor list = Three();
  const auto inserted = [&](const Tensor& to, std::vector<Tensor> in) {
    in.insert(in.begin(), to);
    const auto out = Run("ListInsert", {}, in);
    std::vector<float> all;
    if (!out.ok()) return all;
    for (int64_t i = 0; i < (*out)[0].list().size(); ++i) {
      for (float v : Values((*out)[0].list().at(i))) all.push_back(v);
    }
    return all;
  };
  const Tensor x = Floats({1}, {9});  // of another length than the elements
  EXPECT_THAT(inserted(list, {x}), ElementsAre(1, 2, 3, 4, 5, 6, 9));
  EXPECT_THAT(inserted(list, {x, Int(3)}), ElementsAre(1, 2, 3, 4, 5, 6, 9));
  EXPECT_THAT(inserted(list, {x, Int(0)}), ElementsAre(9, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(inserted(list, {x, Int(-3)}), ElementsAre(9, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(inserted(list, {x, Int(-1)}), ElementsAre(1, 2, 3, 4, 9, 5, 6));
  EXPECT_EQ(StrCat(Run("ListInsert", {}, {list, x}).value()[0].list().element()), "[?]");
  EXPECT_EQ(list.list().size(), 3);  // holders of the old list do not see it
  EXPECT_FALSE(Run("ListInsert", {}, {list, x, Int(4)}).ok());
  EXPECT_FALSE(Run("ListInsert", {}, {list, x, Int(-4)}).ok());
  EXPECT_FALSE(Run("ListInsert", {}, {list, Int(1)}).ok());
  EXPECT_FALSE(Run("ListInsert", {}, {list, x, Floats({}, {0})}).ok());

  const Tensor first = Run("ListErase", {}, {list, Int(0)}).value()[0];
  EXPECT_THAT(Values(first.list().at(0)), ElementsAre(3, 4));
  EXPECT_THAT(Values(first.list().at(1)), ElementsAre(5, 6));
  const Tensor last = Run("ListErase", {}, {first}).value()[0];
  ASSERT_EQ(last.list().size(), 1);
  EXPECT_THAT(Values(last.list().at(0)), ElementsAre(3, 4));
  EXPECT_THAT(Values(Run("ListErase", {}, {list, Int(-2)}).value()[0].list().at(1)),
              ElementsAre(5, 6));
  EXPECT_FALSE(Run("ListErase", {}, {list, Int(3)}).ok());
  EXPECT_FALSE(Run("ListErase", {}, {list, Int(-4)}).ok());
  const Tensor none = Run("ListErase", {}, {last}).value()[0];
  EXPECT_FALSE(Run("ListErase", {}, {none}).ok());
  const AttrMap from_end = WriteAttrs(ListGetAttrs{.from_end = true});
  EXPECT_THAT(Values(Run("ListGet", from_end, {list, Int(-1)}).value()[0]), ElementsAre(5, 6));
  EXPECT_FALSE(Run("ListGet", from_end, {list, Int(-4)}).ok());
}

TEST_F(ListOpTest, ManyElementsKeepTheirOrder) {
  Tensor list =
      Run("ListReserve", WriteAttrs(ListReserveAttrs{"list<f32[]>"}), {Int(0)}).value()[0];
  std::vector<float> expected;  // more than a chunk of a list
  for (int i = 0; i < 100; ++i) {
    const int at = (i * 7) % (i + 1);
    list = Run("ListInsert", {}, {list, Floats({}, {static_cast<float>(i)}), Int(at)}).value()[0];
    expected.insert(expected.begin() + at, static_cast<float>(i));
  }
  for (int i = 0; i < 60; ++i) {
    const int at = (i * 11) % static_cast<int>(expected.size());
    list = Run("ListErase", {}, {list, Int(at)}).value()[0];
    expected.erase(expected.begin() + at);
  }
  const Tensor all = Run("ListJoin", WriteAttrs(ListJoinAttrs{.stack = true}), {list}).value()[0];
  EXPECT_EQ(Values(all), expected);
}

TEST_F(ListOpTest, JoinAndSplitAlongAnAxis) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor lengths = Tensor::Int64s(std::vector<int64_t>{1, 0, 2});
  const Tensor parts = Run("ListSplit", WriteAttrs(ListSplitAttrs{-1}), {x, lengths}).value()[0];
  EXPECT_THAT(Values(parts.list().at(0)), ElementsAre(1, 4));
  EXPECT_EQ(parts.list().at(1).shape(), (Shape{2, 0}));
  EXPECT_THAT(Values(parts.list().at(2)), ElementsAre(2, 3, 5, 6));
  EXPECT_FALSE(Run("ListSplit", WriteAttrs(ListSplitAttrs{2}), {x, lengths}).ok());
  EXPECT_FALSE(Run("ListSplit", WriteAttrs(ListSplitAttrs{0}), {x, lengths}).ok());
  const auto join = [&](int64_t axis, bool stack, const Tensor& list) {
    ListJoinAttrs attrs;
    attrs.axis = axis;
    attrs.stack = stack;
    return Run("ListJoin", WriteAttrs(attrs), {list});
  };
  EXPECT_THAT(Values(join(1, false, parts).value()[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_FALSE(join(0, false, parts).ok());
  EXPECT_FALSE(join(0, true, parts).ok());
  EXPECT_FALSE(join(2, false, parts).ok());
  const Tensor stacked = join(-1, true, Three()).value()[0];
  EXPECT_EQ(stacked.shape(), (Shape{2, 3}));
  EXPECT_THAT(Values(stacked), ElementsAre(1, 3, 5, 2, 4, 6));
  const Tensor words = Tensor::Strings({2, 2}, {"a", "b", "c", "d"});
  const Tensor ones = Tensor::Int64s(std::vector<int64_t>{1, 1});
  const Tensor columns = Run("ListSplit", WriteAttrs(ListSplitAttrs{1}), {words, ones}).value()[0];
  EXPECT_THAT(columns.list().at(1).strings(), ElementsAre("b", "d"));
  EXPECT_THAT(join(1, false, columns).value()[0].strings(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(ListOpTest, JoinOfNothing) {
  const auto empty = [&](const std::string& type) {
    return Run("ListReserve", WriteAttrs(ListReserveAttrs{type}), {Int(0)}).value()[0];
  };
  ListJoinAttrs attrs;
  attrs.stack = true;
  EXPECT_FALSE(Run("ListJoin", WriteAttrs(attrs), {empty("list<f32[2]>")}).ok());
  attrs.may_be_empty = true;
  attrs.axis = 1;
  const auto shape = [&](const std::vector<Tensor>& in) {
    const auto out = Run("ListJoin", WriteAttrs(attrs), in);
    return out.ok() ? StrCat((*out)[0].desc()) : "";
  };
  EXPECT_EQ(shape({empty("list<f32[2,?]>")}), "f32[2,0,0]");
  const Tensor stated = Tensor::Int64s(std::vector<int64_t>{7, 5});
  EXPECT_EQ(shape({empty("list<f32[2,?]>"), stated}), "f32[2,0,5]");
  EXPECT_EQ(shape({empty("list<f32[...]>"), stated}), "f32[7,0,5]");
  EXPECT_EQ(shape({empty("list<f32[...]>")}), "");
  const Tensor hole = Run("ListResize", {}, {empty("list<f32[2]>"), Int(2)}).value()[0];
  EXPECT_EQ(shape({hole}), "");  // never written
}

TEST(ParseFact, ReadsWhatIsPrinted) {
  for (const char* text : {"f32[]", "i64[2,?,batch]", "string[...]", "list<f32[?,4]>"}) {
    const auto fact = ParseFact(text);
    ASSERT_TRUE(fact.ok()) << fact.status();
    EXPECT_EQ(StrCat(*fact), text);
  }
  for (const char* text : {"", "f32", "f33[2]", "f32[2", "list<f32[2]", "f32[,]", "f32[2]x"}) {
    EXPECT_FALSE(ParseFact(text).ok()) << text;
  }
}

}  // namespace
}  // namespace oncilla
