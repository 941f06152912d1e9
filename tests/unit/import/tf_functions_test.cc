// Flattening on small graphs made here: calls, arguments, effects, and what is refused.
#include "engine/import/tf/graph/functions.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

namespace oncilla {
namespace {

using protozero::pbf_writer;

struct NodeText {
  std::string name, op;
  std::vector<std::string> inputs;
  std::string calls = "";  // the function of attribute "f"
};

void AddNode(pbf_writer& parent, uint32_t field, const NodeText& text) {
  pbf_writer node(parent, field);
  node.add_string(1, text.name);
  node.add_string(2, text.op);
  for (const std::string& input : text.inputs) node.add_string(3, input);
  if (text.calls.empty()) return;
  pbf_writer entry(node, 5);
  entry.add_string(1, "f");
  pbf_writer attr(entry, 2);
  pbf_writer function(attr, 10);
  function.add_string(1, text.calls);
}

struct FunctionText {
  std::string name;
  std::vector<std::string> args;
  std::vector<NodeText> nodes;
  std::vector<std::pair<std::string, std::string>> returns;
  std::vector<std::string> control_returns;
};

std::string GraphOf(const std::vector<NodeText>& nodes,
                    const std::vector<FunctionText>& functions) {
  std::string out;
  pbf_writer graph(out);
  for (const NodeText& node : nodes) AddNode(graph, 1, node);
  pbf_writer library(graph, 2);
  for (const FunctionText& text : functions) {
    pbf_writer function(library, 1);
    {
      pbf_writer signature(function, 1);
      signature.add_string(1, text.name);
      for (const std::string& arg : text.args) {
        pbf_writer def(signature, 2);
        def.add_string(1, arg);
        def.add_enum(3, 1);
      }
      for (const auto& [name, value] : text.returns) {
        pbf_writer def(signature, 3);
        def.add_string(1, name);
        def.add_enum(3, 1);
      }
    }
    for (const NodeText& node : text.nodes) AddNode(function, 3, node);
    for (const auto& [name, value] : text.returns) {
      pbf_writer entry(function, 4);
      entry.add_string(1, name);
      entry.add_string(2, value);
    }
    for (const std::string& name : text.control_returns) {
      pbf_writer entry(function, 6);
      entry.add_string(1, name);
      entry.add_string(2, name);
    }
  }
  return out;
}

// Flattens and prints the nodes: "name(input:output,...)".
Result<std::string> Flatten(const std::string& proto, std::vector<std::string> feeds,
                            std::vector<std::string> fetches) {
  ONCILLA_ASSIGN(auto graph, TfGraph::Parse(proto, {}, "test.pb", nullptr));
  TfFlattenRequest request;
  request.feeds = std::move(feeds);
  request.fetches = std::move(fetches);
  request.variable = [](const TfNode&) -> Result<Tensor> { return Tensor::Scalar(1); };
  ONCILLA_ASSIGN(const TfFlatGraph flat, FlattenTfGraph(*graph, request));
  std::string out;
  const auto ref = [&](const TfRef& r) {
    return StrCat(flat.nodes[static_cast<size_t>(r.node)].name, ":", r.output);
  };
  for (const TfFlatNode& node : flat.nodes) {
    out += node.name + "(";
    for (const TfRef& input : node.inputs) out += (out.back() == '(' ? "" : ",") + ref(input);
    out += ") ";
  }
  out += "->";
  for (const TfRef& output : flat.outputs) out += " " + ref(output);
  if (!flat.cycle.empty()) out += " cycle at " + flat.cycle;
  return out;
}

const FunctionText kTwice = {"twice",
                             {"a"},
                             {{"sum", "AddV2", {"a", "a"}}, {"out", "Identity", {"sum:z:0"}}},
                             {{"result", "out:output:0"}},
                             {}};

TEST(TfFunctions, NestedCallsAreInlinedUnderTheirNames) {
  const FunctionText outer = {"outer",
                              {"b"},
                              {{"first", "PartitionedCall", {"b"}, "twice"},
                               {"second", "PartitionedCall", {"first:output:0"}, "twice"}},
                              {{"y", "second:output:0"}},
                              {}};
  const std::string graph = GraphOf({{"x", "Placeholder", {}},
                                     {"call", "StatefulPartitionedCall", {"x"}, "outer"},
                                     {"y", "Identity", {"call"}}},
                                    {kTwice, outer});
  EXPECT_EQ(*Flatten(graph, {"x"}, {"y"}),
            "x() call/first/sum(x:0,x:0) call/second/sum(call/first/sum:0,call/first/sum:0) -> "
            "call/second/sum:0");
  // Fed inside: the outer half is not needed, nor the input.
  EXPECT_EQ(*Flatten(graph, {"x", "call/first/sum"}, {"y"}),
            "call/first/sum() call/second/sum(call/first/sum:0,call/first/sum:0) -> "
            "call/second/sum:0");
}

TEST(TfFunctions, AnOpNamedAsAFunctionIsACall) {
  const std::string graph = GraphOf({{"x", "Placeholder", {}}, {"t", "twice", {"x"}}}, {kTwice});
  EXPECT_EQ(*Flatten(graph, {"x"}, {"t"}), "x() t/sum(x:0,x:0) -> t/sum:0");
}

TEST(TfFunctions, RecursionIsRefusedByName) {
  const FunctionText f = {
      "f", {"a"}, {{"again", "PartitionedCall", {"a"}, "g"}}, {{"y", "again:output:0"}}, {}};
  const FunctionText g = {
      "g", {"a"}, {{"back", "PartitionedCall", {"a"}, "f"}}, {{"y", "back:output:0"}}, {}};
  const std::string graph =
      GraphOf({{"x", "Placeholder", {}}, {"c", "PartitionedCall", {"x"}, "f"}}, {f, g});
  const Status status = Flatten(graph, {"x"}, {"c"}).status();
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_NE(Message(status).find("node 'c/again/back' (PartitionedCall): the function 'f' calls "
                                 "itself"),
            std::string::npos)
      << status;
}

TEST(TfFunctions, AReachableWriteIsAnEffectAndMakesTheVariableState) {
  const FunctionText counting = {"counting",
                                 {"a", "v"},
                                 {{"one", "Const", {}},
                                  {"count", "AssignAddVariableOp", {"v", "one:output:0"}},
                                  {"read", "ReadVariableOp", {"v", "^count"}},
                                  {"y", "AddV2", {"a", "read:value:0"}}},
                                 {{"y", "y:z:0"}},
                                 {"count"}};
  const std::string graph = GraphOf({{"x", "Placeholder", {}},
                                     {"v", "VarHandleOp", {}},
                                     {"c", "StatefulPartitionedCall", {"x", "v"}, "counting"},
                                     {"before", "ReadVariableOp", {"v"}},
                                     {"p", "AddV2", {"x", "before"}},
                                     {"q", "Relu", {"x", "^c"}}},
                                    {counting});
  // Where nothing writes it, the variable is a constant.
  EXPECT_EQ(*Flatten(graph, {"x"}, {"p"}), "x() v() p(x:0,v:0) -> p:0");
  // The read comes after the write, by the control edge between them.
  EXPECT_EQ(*Flatten(graph, {"x"}, {"c"}),
            "v() c/one() c/count(v:0,c/one:0) c/read(v:0) x() c/y(x:0,c/read:0) -> c/y:0");
  // The result of the call is not read, but a control edge waits for it.
  EXPECT_EQ(*Flatten(graph, {"x"}, {"q"}),
            "v() c/one() c/count(v:0,c/one:0) c/read(v:0) x() q(x:0) -> q:0");
}

TEST(TfFunctions, ReadsFollowTheResourceThroughArguments) {
  const FunctionText read = {
      "read", {"r"}, {{"value", "ReadVariableOp", {"r"}}}, {{"y", "value:value:0"}}, {}};
  const std::string graph = GraphOf({{"v", "VarHandleOp", {}},
                                     {"same", "Identity", {"v"}},
                                     {"c", "PartitionedCall", {"same"}, "read"},
                                     {"y", "Relu", {"c"}}},
                                    {read});
  EXPECT_EQ(*Flatten(graph, {}, {"y"}), "v() y(v:0) -> y:0");
}

TEST(TfFunctions, CirclesEndInAnErrorOrAreReported) {
  // Through data edges of ops: reported, since loops of TensorFlow 1 look like this.
  const std::string loop = GraphOf({{"a", "AddV2", {"b", "b"}}, {"b", "Relu", {"a"}}}, {});
  EXPECT_NE(Flatten(loop, {}, {"a"})->find("cycle at"), std::string::npos);
  // Through identities only: there is no op that computes the value.
  const std::string empty = GraphOf({{"a", "Identity", {"b"}}, {"b", "Identity", {"a"}}}, {});
  EXPECT_EQ(Flatten(empty, {}, {"a"}).status().code(), Code::kResourceExhausted);
  const FunctionText same = {"same", {"a"}, {}, {{"y", "a"}}, {}};
  const std::string call = GraphOf({{"a", "PartitionedCall", {"a"}, "same"}}, {same});
  EXPECT_EQ(Flatten(call, {}, {"a"}).status().code(), Code::kResourceExhausted);
}

TEST(TfFunctions, CallsThatMultiplyEndInAnError) {
  // 30 functions, each calling the next twice: 2^30 bodies.
  std::vector<FunctionText> functions;
  for (int i = 0; i < 30; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    functions.push_back({"f" + std::to_string(i),
                         {"a"},
                         {{"p", "PartitionedCall", {"a"}, next},
                          {"q", "PartitionedCall", {"a"}, next},
                          {"s", "AddV2", {"p:output:0", "q:output:0"}}},
                         {{"y", "s:z:0"}},
                         {}});
  }
  functions.push_back({"f30", {"a"}, {}, {{"y", "a"}}, {}});
  const std::string graph =
      GraphOf({{"x", "Placeholder", {}}, {"c", "PartitionedCall", {"x"}, "f0"}}, functions);
  EXPECT_EQ(Flatten(graph, {"x"}, {"c"}).status().code(), Code::kResourceExhausted);
}

TEST(TfFunctions, EdgesThatLeadNowhereAreDamage) {
  const std::string graph = GraphOf({{"y", "Relu", {"nobody"}},
                                     {"z", "Relu", {"y", "^nobody"}},
                                     {"c", "PartitionedCall", {}, "none"},
                                     {"d", "PartitionedCall", {"y"}, "twice"},
                                     {"e", "PartitionedCall", {}, "twice"}},
                                    {kTwice});
  EXPECT_EQ(Flatten(graph, {}, {"y"}).status().code(), Code::kDataLoss);
  EXPECT_EQ(Flatten(graph, {"y"}, {"z"}).status().code(), Code::kDataLoss);
  EXPECT_EQ(Flatten(graph, {}, {"c"}).status().code(), Code::kNotFound);
  EXPECT_EQ(Flatten(graph, {}, {"d:1"}).status().code(), Code::kDataLoss);
  EXPECT_EQ(Flatten(graph, {}, {"e"}).status().code(), Code::kDataLoss);
  EXPECT_EQ(Flatten(graph, {}, {"^y"}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Flatten(graph, {"y", "y:0"}, {"z"}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace oncilla
