// The inputs and outputs of a graph that has no signature: its placeholders, and the values that no
// node reads.
#include <gtest/gtest.h>

#include "engine/import/model_source.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

// A loop as TensorFlow writes it when it freezes a model of Keras: x is doubled `count` times. Only
// control edges read the body's pivot and the exit of the counter; a placeholder is unused.
const char kLoop[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } }
node { name: "unused_control_flow_input" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
node { name: "enter_i" op: "Enter" input: "zero" input: "^started" attr { key: "T" value { type: DT_INT32 } } attr { key: "frame_name" value { s: "loop" } } }
node { name: "enter_y" op: "Enter" input: "x" input: "^started" attr { key: "T" value { type: DT_FLOAT } } attr { key: "frame_name" value { s: "loop" } } }
node { name: "started" op: "NoOp" input: "^x" input: "^zero" }
node { name: "i" op: "Merge" input: "enter_i" input: "next_i" attr { key: "T" value { type: DT_INT32 } } attr { key: "N" value { i: 2 } } }
node { name: "y" op: "Merge" input: "enter_y" input: "next_y" attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 2 } } }
node { name: "count" op: "Const" input: "^i" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 3 } } } }
node { name: "less" op: "Less" input: "i" input: "count" attr { key: "T" value { type: DT_INT32 } } }
node { name: "cond" op: "LoopCond" input: "less" }
node { name: "switch_i" op: "Switch" input: "i" input: "cond" attr { key: "T" value { type: DT_INT32 } } }
node { name: "switch_y" op: "Switch" input: "y" input: "cond" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "pivot" op: "Identity" input: "switch_i:1" attr { key: "T" value { type: DT_INT32 } } }
node { name: "in_body" op: "NoOp" input: "^pivot" }
node { name: "one" op: "Const" input: "^in_body" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
node { name: "add" op: "AddV2" input: "switch_i:1" input: "one" attr { key: "T" value { type: DT_INT32 } } }
node { name: "twice" op: "AddV2" input: "switch_y:1" input: "switch_y:1" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "next_i" op: "NextIteration" input: "add" attr { key: "T" value { type: DT_INT32 } } }
node { name: "next_y" op: "NextIteration" input: "twice" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "exit_i" op: "Exit" input: "switch_i" attr { key: "T" value { type: DT_INT32 } } }
node { name: "exit_y" op: "Exit" input: "switch_y" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "executed" op: "NoOp" input: "^exit_i" input: "^exit_y" }
node { name: "Identity" op: "Identity" input: "exit_y" input: "^executed" attr { key: "T" value { type: DT_FLOAT } } }
)";

std::vector<std::string> NamesOf(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> names;
  for (const TensorInfo& info : infos) names.push_back(info.name);
  return names;
}

std::unique_ptr<ModelSource> Open(const testing::TemporaryFolder& folder, const std::string& text) {
  auto model = OpenModel(folder.Write("model.pbtxt", text), {});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

using Names = std::vector<std::string>;

TEST(InferredSignature, WhatALoopWaitsForIsNoOutput) {
  const testing::TemporaryFolder folder;
  const auto model = Open(folder, kLoop);
  ASSERT_NE(model, nullptr);
  const Signature& signature = model->signatures()[0];
  EXPECT_EQ(NamesOf(signature.inputs), Names{"x:0"});
  EXPECT_EQ(NamesOf(signature.outputs), Names{"Identity:0"});
  auto module = model->Import({}, OpSet::Builtin());
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ(module->main.nodes().size(), 1u);
  EXPECT_EQ(module->main.nodes()[0].op->name, "While");
}

TEST(InferredSignature, AGroupOfResultsLeavesThemOutputs) {
  const testing::TemporaryFolder folder;
  const auto model = Open(folder, R"(
node { name: "unused" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "a" op: "Exp" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Log" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "group" op: "NoOp" input: "^a" input: "^b" }
)");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(NamesOf(model->signatures()[0].inputs), (Names{"unused:0", "x:0"}));
  EXPECT_EQ(NamesOf(model->signatures()[0].outputs), (Names{"a:0", "b:0"}));
}

}  // namespace
}  // namespace oncilla
