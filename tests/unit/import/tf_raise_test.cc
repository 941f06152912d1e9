// Raising old control flow: forms that TensorFlow does not write are refused, and nothing hangs.
// The forms that it writes are tested in whole models (testdata/tensorflow/runs/old_*).
#include "engine/import/tf/graph/raise.h"

#include <gtest/gtest.h>

#include <deque>

namespace oncilla {
namespace {

// A flat graph, node by node.
class FlatText {
 public:
  int Add(std::string op, std::vector<TfRef> inputs, std::vector<TfRef> controls = {}) {
    ops_.push_back(op);
    TfNode& source = sources_.emplace_back();
    source.name = source.op = ops_.back();
    TfFlatNode node;
    node.source = &source;
    node.name = ops_.back();
    node.inputs = std::move(inputs);
    node.controls = std::move(controls);
    graph.nodes.push_back(std::move(node));
    return static_cast<int>(graph.nodes.size()) - 1;
  }
  int Input() {
    TfFlatNode node;
    node.kind = TfFlatNode::Kind::kInput;
    node.feed = static_cast<int>(graph.inputs.size());
    node.name = "input";
    graph.inputs.push_back(static_cast<int>(graph.nodes.size()));
    graph.nodes.push_back(std::move(node));
    return static_cast<int>(graph.nodes.size()) - 1;
  }
  // Names of ops, with those of bodies in brackets.
  static std::string Print(const TfFlatGraph& graph) {
    std::string out;
    for (const TfFlatNode& node : graph.nodes) {
      if (node.kind != TfFlatNode::Kind::kOp) continue;
      out += std::string(node.op()) + " ";
      for (const TfFlatGraph& body : node.bodies) out += "[" + Print(body) + "] ";
    }
    if (!out.empty()) out.pop_back();
    return out;
  }

  TfFlatGraph graph;

 private:
  std::deque<std::string> ops_;
  std::deque<TfNode> sources_;
};

TEST(TfRaise, MergesOfOnePredicateBecomeOneIf) {
  FlatText text;
  const int p = text.Input(), x = text.Input();
  const int s = text.Add("Switch", {{x, 0}, {p, 0}});
  const int yes = text.Add("Exp", {{s, 1}}), no = text.Add("Log", {{s, 0}});
  const int a = text.Add("Merge", {{no, 0}, {yes, 0}});
  const int b = text.Add("Merge", {{s, 0}, {yes, 0}});
  text.graph.outputs = {{a, 0}, {b, 0}};
  ASSERT_TRUE(RaiseTfControlFlow(text.graph).ok());
  EXPECT_EQ(FlatText::Print(text.graph), "If [Exp] [Log]");
  EXPECT_EQ(text.graph.nodes.back().bodies[0].outputs.size(), 2u);
}

TEST(TfRaise, AMergeThatDependsOnAnotherComesAfterIt) {
  FlatText text;
  const int p = text.Input(), x = text.Input();
  const int s = text.Add("Switch", {{x, 0}, {p, 0}});
  const int a = text.Add("Merge", {{s, 0}, {text.Add("Exp", {{s, 1}}), 0}});
  const int t = text.Add("Switch", {{a, 0}, {p, 0}});
  const int b = text.Add("Merge", {{text.Add("Log", {{t, 0}}), 0}, {t, 1}});
  text.graph.outputs = {{b, 0}};
  ASSERT_TRUE(RaiseTfControlFlow(text.graph).ok());
  EXPECT_EQ(FlatText::Print(text.graph), "If [Exp] [] If [] [Log]");
}

TEST(TfRaise, WhatOnlyOneSideNeedsIsDecidedInIt) {
  FlatText text;
  const int p = text.Input(), q = text.Input(), x = text.Input();
  const int inner = text.Add("Switch", {{x, 0}, {q, 0}});
  const int behind = text.Add("Switch", {{text.Add("Exp", {{inner, 0}}), 0}, {p, 0}});
  const int other = text.Add("Switch", {{x, 0}, {p, 0}});
  text.graph.outputs = {{text.Add("Merge", {{behind, 0}, {other, 1}}), 0}};
  ASSERT_TRUE(RaiseTfControlFlow(text.graph).ok());
  EXPECT_EQ(FlatText::Print(text.graph), "If [] [_SwitchFalse Exp]");
}

TEST(TfRaise, ABranchKeepsTheGuardsThatItsValuesDoNotHave) {
  FlatText text;
  const int p = text.Input(), q = text.Input(), x = text.Input();
  const int own = text.Add("Switch", {{x, 0}, {p, 0}});
  const int inner = text.Add("Switch", {{x, 0}, {q, 0}});
  const int low = text.Add("Switch", {{inner, 0}, {p, 0}});
  const int high = text.Add("Switch", {{inner, 1}, {p, 0}});
  text.graph.outputs = {{text.Add("Merge", {{own, 1}, {low, 0}, {high, 0}}), 0}};
  ASSERT_TRUE(RaiseTfControlFlow(text.graph).ok());
  EXPECT_EQ(FlatText::Print(text.graph), "If [] [If [] []]");
}

TEST(TfRaise, ASwitchBehindOneOfTheSamePredicateIsPassedToo) {
  FlatText text;
  const int p = text.Input(), x = text.Input();
  const int first = text.Add("Switch", {{x, 0}, {p, 0}});
  const int second = text.Add("Switch", {{first, 1}, {p, 0}});
  text.graph.outputs = {{text.Add("Merge", {{first, 0}, {second, 1}}), 0}};
  ASSERT_TRUE(RaiseTfControlFlow(text.graph).ok());
  EXPECT_EQ(FlatText::Print(text.graph), "If [] []");
}

TEST(TfRaise, SidesThatNoSwitchTellsApartAreRefused) {
  FlatText text;
  const int x = text.Input(), y = text.Input();
  text.graph.outputs = {{text.Add("Merge", {{x, 0}, {y, 0}}), 0}};
  const Status status = RaiseTfControlFlow(text.graph);
  EXPECT_EQ(status.code(), Code::kUnimplemented) << status;
}

TEST(TfRaise, CirclesThatAreNoLoopsAreRefused) {
  FlatText text;
  const int p = text.Input();
  // a = Merge(Switch(b, p):0, ..), b = Exp(a): no frame, no NextIteration.
  const int s = text.Add("Switch", {{3, 0}, {p, 0}});
  const int a = text.Add("Merge", {{s, 0}, {s, 1}});
  ASSERT_EQ(text.Add("Exp", {{a, 0}}), 3);
  text.graph.outputs = {{3, 0}};
  EXPECT_FALSE(RaiseTfControlFlow(text.graph).ok());
}

TEST(TfRaise, ALoopWithoutAConditionIsRefused) {
  FlatText text;
  const int x = text.Input();
  const int enter = text.Add("Enter", {{x, 0}});
  text.graph.outputs = {{text.Add("Exit", {{enter, 0}}), 0}};
  const Status status = RaiseTfControlFlow(text.graph);
  EXPECT_EQ(status.code(), Code::kUnimplemented) << status;
}

TEST(TfRaise, OldArraysBeginTheirFlow) {
  FlatText text;
  const int n = text.Input(), x = text.Input();
  const int a = text.Add("TensorArrayV2", {{n, 0}}), zero = text.Add("Const", {});
  const int write = text.Add("TensorArrayWriteV2", {{a, 0}, {n, 0}, {x, 0}, {zero, 0}});
  const int read = text.Add("TensorArrayReadV2", {{a, 0}, {n, 0}, {write, 0}});
  text.graph.outputs = {{read, 0}};
  ASSERT_TRUE(RaiseTfControlFlow(text.graph).ok());
  EXPECT_EQ(text.graph.nodes[static_cast<size_t>(write)].inputs[3], (TfRef{a, 1}));
  EXPECT_EQ(text.graph.nodes[static_cast<size_t>(read)].inputs[2], (TfRef{write, 0}));
}

TEST(TfRaise, AFlowOfTwoOldArraysIsRefused) {
  FlatText text;
  const int n = text.Input(), x = text.Input();
  const int a = text.Add("TensorArrayV2", {{n, 0}}), b = text.Add("TensorArrayV2", {{n, 0}});
  const int zero = text.Add("Const", {});
  const int write = text.Add("TensorArrayWriteV2", {{a, 0}, {n, 0}, {x, 0}, {zero, 0}});
  const int read = text.Add("TensorArrayReadV2", {{b, 0}, {n, 0}, {write, 0}});
  text.graph.outputs = {{read, 0}};
  const Status status = RaiseTfControlFlow(text.graph);
  EXPECT_EQ(status.code(), Code::kUnimplemented) << status;
}

}  // namespace
}  // namespace oncilla
