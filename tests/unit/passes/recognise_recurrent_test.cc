// Loops that are recurrent layers: recognised for any order of gates, with the same results as the
// loop, and not changed when anything differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/graph/print.h"
#include "engine/ops/array/list.h"
#include "engine/ops/control.h"
#include "engine/run/executor.h"
#include "tests/unit/support/session_parts.h"

namespace oncilla {
namespace {

constexpr int64_t kSteps = 5, kSamples = 2, kFeatures = 3, kUnits = 4;

struct Form {
  int gates = 4;
  std::vector<int> order = {0, 1, 2, 3};  // Lstm: where i, f, c, o are; Gru: z, r, h
  bool one_product = false;               // of x and h side by side
  bool reset_before = false;              // Gru
  float forget = 0;                       // added to f
  std::string activation = "Tanh";
  int32_t limit = kSteps, reserved = kSteps, start = 0, stride = 1;
  bool only_last = false;  // result number 0 is written at each step
  bool keeps_cell = false;
  bool writes_variable = false;
  bool one_state = false;  // of one sample, which the first step stretches
  bool counted = true;     // else the start is an input of the graph, and nothing is recognised
};

class Maker {
 public:
  explicit Maker(const Form& form) : form_(form) {}

  Module Make() {
    Graph main(OpSet::Builtin()), cond(OpSet::Builtin()), body(OpSet::Builtin());
    const Fact number = Fact::Of(DType::kI32, PartialShape::OfRank(0));
    const Fact state =
        Fact::Of(DType::kF32, PartialShape({form_.one_state ? Dim() : Dim(kSamples), Dim(kUnits)}));
    const std::string xs_type = StrCat("list<f32[", kSamples, ",", kFeatures, "]>");
    const std::string ys_type = StrCat("list<f32[", kSamples, ",", kUnits, "]>");
    const Fact xs_fact = ParseFact(xs_type).value(), ys_fact = ParseFact(ys_type).value();
    const bool lstm = form_.gates == 4;

    std::vector<std::pair<std::string, Fact>> carried = {
        {"i", number}, {"limit", number}, {"xs", xs_fact}, {"ys", ys_fact}, {"h", state}};
    if (lstm) carried.emplace_back("c", state);
    std::vector<ValueId> in;
    for (const auto& [name, fact] : carried) in.push_back(cond.AddInput(name, fact));
    cond.AddOutput("more", cond.Add("less", "Less", {}, {in[0], in[1]}).value());

    in.clear();
    for (const auto& [name, fact] : carried) in.push_back(body.AddInput(name, fact));
    graph_ = &body;
    const ValueId i = in[0], zero = body.AddConstant(Int(0));
    const ValueId x = Op("ListGet", {in[2], i});
    const std::vector<ValueId> next = lstm ? Lstm(x, in[4], in[5]) : Other(x, in[4]);
    if (form_.writes_variable) {
      EXPECT_TRUE(
          body.AddNode("keep", "AssignVariable", WriteAttrs(AssignVariableAttrs{"v"}), {next[0]})
              .ok());
    }
    body.AddOutput("i", Op("Add", {i, body.AddConstant(Int(form_.stride))}));
    body.AddOutput("limit", in[1]);
    body.AddOutput("xs", in[2]);
    body.AddOutput("ys", Op("ListSet", {in[3], form_.only_last ? zero : i,
                                        form_.keeps_cell ? next[1] : next[0]}));
    for (size_t k = 0; k < next.size(); ++k) body.AddOutput(StrCat("state", k), next[k]);

    graph_ = &main;
    const ValueId all =
        main.AddInput("x", Fact::Of(DType::kF32, Shape{kSteps, kSamples, kFeatures}));
    const ValueId start =
        form_.counted ? main.AddConstant(Int(form_.start)) : main.AddInput("start", number);
    const ValueId list = Op("ListFromTensor", {all});
    const ValueId results =
        main.Add("results", "ListReserve", WriteAttrs(ListReserveAttrs{ys_type}),
                 {main.AddConstant(Int(form_.only_last ? 1 : form_.reserved))})
            .value();
    std::vector<ValueId> initial = {start, main.AddConstant(Int(form_.limit)), list, results};
    for (size_t k = 0; k < next.size(); ++k) {
      initial.push_back(main.AddConstant(Random({form_.one_state ? 1 : kSamples, kUnits})));
    }
    WhileAttrs attrs{"cond", "body", {"i32[]", "i32[]", xs_type, ys_type}};
    for (size_t k = 0; k < next.size(); ++k) attrs.outputs.push_back(StrCat(state));
    const auto out = main.AddNode("loop", "While", WriteAttrs(attrs), initial).value();
    main.AddOutput("count", out[0]);
    main.AddOutput("y", Op("ListStack", {out[3]}));
    for (size_t k = 0; k < next.size(); ++k) main.AddOutput(StrCat("state", k), out[4 + k]);
    Module module(std::move(main));
    module.functions.emplace_back("cond", std::move(cond));
    module.functions.emplace_back("body", std::move(body));
    return module;
  }

 private:
  static Tensor Int(int32_t value) { return Tensor::Of<int32_t>(DType::kI32, {}, {&value, 1}); }
  Tensor Random(Shape shape) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(random_);
    return Tensor::Of<float>(DType::kF32, std::move(shape), values);
  }
  ValueId Op(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    return graph_->Add(StrCat(op, ++count_), op, std::move(attrs), std::move(inputs)).value();
  }
  ValueId Constant(Shape shape) { return graph_->AddConstant(Random(std::move(shape))); }
  ValueId Number(float value) { return graph_->AddConstant(Tensor::Scalar(value)); }
  ValueId Product(ValueId x, ValueId h, int64_t columns) {
    if (!form_.one_product) {
      return Op("Add", {Op("MatMul", {x, Constant({kFeatures, columns})}),
                        Op("MatMul", {h, Constant({kUnits, columns})})});
    }
    const ValueId both = Op("Concat", {x, h}, {{"axis", int64_t{1}}});
    return Op("MatMul", {both, Constant({kFeatures + kUnits, columns})});
  }
  std::vector<ValueId> Split(ValueId z, int64_t parts) {
    AttrMap attrs = {{"axis", int64_t{1}}, {"parts", parts}};
    return graph_->AddNode(StrCat("split", ++count_), "Split", attrs, {z}).value();
  }

  std::vector<ValueId> Lstm(ValueId x, ValueId h, ValueId c) {
    const ValueId z = Op("Add", {Product(x, h, 4 * kUnits), Constant({4 * kUnits})});
    const auto parts = Split(z, 4);
    auto part = [&](size_t k) { return parts[static_cast<size_t>(form_.order[k])]; };
    const ValueId i = Op("Sigmoid", {part(0)});
    const ValueId f =
        Op("Sigmoid", {form_.forget == 0 ? part(1) : Op("Add", {part(1), Number(form_.forget)})});
    const ValueId cell =
        Op("Add", {Op("Mul", {f, c}), Op("Mul", {i, Op(form_.activation, {part(2)})})});
    return {Op("Mul", {Op("Sigmoid", {part(3)}), Op("Tanh", {cell})}), cell};
  }

  std::vector<ValueId> Other(ValueId x, ValueId h) {
    if (form_.gates == 1) {
      return {Op(form_.activation, {Op("Add", {Product(x, h, kUnits), Constant({kUnits})})})};
    }
    const ValueId one = Number(1);
    auto mix = [&](ValueId z, ValueId candidate) {
      return Op("Add", {Op("Mul", {z, h}), Op("Mul", {Op("Sub", {one, z}), candidate})});
    };
    if (form_.reset_before) {
      const auto gates = Split(Op("Add", {Product(x, h, 2 * kUnits), Constant({2 * kUnits})}), 2);
      auto gate = [&](size_t k) {
        return Op("Sigmoid", {gates[static_cast<size_t>(form_.order[k])]});
      };
      const ValueId reset = Op("Mul", {gate(1), h});
      const ValueId candidate = Op("Add", {Product(x, reset, kUnits), Constant({kUnits})});
      return {mix(gate(0), Op("Tanh", {candidate}))};
    }
    const auto own = Split(
        Op("Add", {Op("MatMul", {x, Constant({kFeatures, 3 * kUnits})}), Constant({3 * kUnits})}),
        3);
    const auto state = Split(
        Op("Add", {Op("MatMul", {h, Constant({kUnits, 3 * kUnits})}), Constant({3 * kUnits})}), 3);
    auto gate = [&](size_t k) {
      const auto at = static_cast<size_t>(form_.order[k]);
      return Op("Sigmoid", {Op("Add", {own[at], state[at]})});
    };
    const ValueId candidate = Op("Tanh", {Op("Add", {own[2], Op("Mul", {gate(1), state[2]})})});
    return {mix(gate(0), candidate)};
  }

  const Form form_;
  std::mt19937 random_{7};
  Graph* graph_ = nullptr;
  int count_ = 0;
};

class RecogniseRecurrentTest : public testing::Test {
 protected:
  // Runs the loop as recognised, or not, and as it stands; all results must agree.
  void Expect(Form form, std::string_view op) {
    auto [ops, ours] = Run(form);
    form.counted = false;
    auto [loop_ops, theirs] = Run(form);
    EXPECT_NE(loop_ops.find("While"), std::string::npos);
    if (op.empty()) {
      EXPECT_NE(ops.find("While"), std::string::npos) << ops;
    } else {
      EXPECT_EQ(ops.find("While"), std::string::npos) << ops;
      EXPECT_NE(ops.find(op), std::string::npos) << ops;
    }
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].desc(), theirs[i].desc());
      if (ours[i].dtype() != DType::kF32) {
        EXPECT_EQ(ToInt64s(ours[i]).value(), ToInt64s(theirs[i]).value());
        continue;
      }
      const auto a = ours[i].As<float>(), b = theirs[i].As<float>();
      for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-5) << i << ", " << k;
    }
  }

  std::pair<std::string, std::vector<Tensor>> Run(const Form& form) {
    CompileOptions compile;
    compile.verify = true;
    auto compiled =
        Compile(Maker(form).Make(), parts_.devices(), parts_.names(), *parts_.constants, compile);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return {};
    std::string ops;
    for (const Node& node : (*compiled)->graph.nodes()) ops += StrCat(node.op->name, " ");
    ExecutorOptions options;
    options.variables = &variables_;
    Executor executor(*compiled, parts_.devices(), parts_.pools(), parts_.owner, options);
    std::vector<float> values(kSteps * kSamples * kFeatures);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    std::vector<Tensor> feeds = {
        Tensor::Of<float>(DType::kF32, {kSteps, kSamples, kFeatures}, values)};
    if (!form.counted) feeds.push_back(Tensor::Of<int32_t>(DType::kI32, {}, {&form.start, 1}));
    auto out = executor.Run(feeds, {});
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return {};
    return {ops, *std::move(out)};
  }

  SessionParts parts_;
  VariableStore variables_;
};

TEST_F(RecogniseRecurrentTest, LstmOfKeras) { Expect(Form(), "Lstm"); }

TEST_F(RecogniseRecurrentTest, LstmOfTensorFlow1) {
  Form form;
  form.order = {0, 2, 1, 3};
  form.one_product = true;
  form.forget = 1;
  Expect(form, "Lstm");
}

TEST_F(RecogniseRecurrentTest, OnlyTheLastResult) {
  Form form;
  form.only_last = true;
  Expect(form, "Lstm");
}

TEST_F(RecogniseRecurrentTest, Gru) {
  Form form;
  form.gates = 3;
  Expect(form, "Gru");
  form.order = {1, 0, 2};
  Expect(form, "Gru");
}

TEST_F(RecogniseRecurrentTest, GruThatResetsBeforeItsProduct) {
  Form form;
  form.gates = 3;
  form.reset_before = true;
  Expect(form, "Gru");
  form.order = {1, 0, 2};
  form.one_product = true;
  Expect(form, "Gru");
}

TEST_F(RecogniseRecurrentTest, Rnn) {
  Form form;
  form.gates = 1;
  Expect(form, "Rnn");
}

TEST_F(RecogniseRecurrentTest, OtherGatesAreLeftAlone) {
  Form form;
  form.activation = "Relu";
  Expect(form, "");
  form.activation = "Sigmoid";  // one of the usual functions in an unusual place
  Expect(form, "");
  form = Form();
  form.order = {3, 2, 1, 0};
  Expect(form, "");
  form = Form();
  form.gates = 1;
  form.activation = "Sigmoid";
  Expect(form, "");
}

TEST_F(RecogniseRecurrentTest, OtherLoopsAreLeftAlone) {
  Form form;
  form.limit = kSteps - 1;  // not all inputs
  Expect(form, "");
  form = Form();
  form.reserved = kSteps + 1;  // results that stay unwritten
  Expect(form, "");
  form = Form();
  form.start = 1;
  Expect(form, "");
  form = Form();
  form.stride = 2;
  Expect(form, "");
  form = Form();
  form.keeps_cell = true;
  Expect(form, "");
  form = Form();
  form.writes_variable = true;
  Expect(form, "");
  form = Form();
  form.one_state = true;
  Expect(form, "");
}

}  // namespace
}  // namespace oncilla
