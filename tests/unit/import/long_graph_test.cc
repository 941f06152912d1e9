// Graphs of many nodes, and of calls that multiply names: import and planning must take time and
// memory in proportion to the file, not to its square.
#include <gmock/gmock.h>

#include <chrono>

#include "engine/import/wire/wire.h"
// After wire.h, which configures protozero.
#include <protozero/pbf_writer.hpp>

#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/unit/support/sanitized.h"

namespace oncilla {
namespace {

constexpr int kFloat = 1, kInt32 = 3;  // DataType of tensor/types.proto

// A GraphDef, node by node.
class LongGraph {
 public:
  void Node(const std::string& name, const char* op, const std::vector<std::string>& inputs,
            const std::vector<std::pair<const char*, std::string>>& attrs) {
    protozero::pbf_writer graph(bytes_);
    protozero::pbf_writer node(graph, 1);
    node.add_string(1, name);
    node.add_string(2, op);
    for (const std::string& input : inputs) node.add_string(3, input);
    for (const auto& [key, value] : attrs) {
      protozero::pbf_writer entry(node, 5);
      entry.add_string(1, key);
      entry.add_bytes(2, value);
    }
  }
  static std::string Type(int type) {
    std::string value;
    protozero::pbf_writer(value).add_enum(6, type);
    return value;
  }
  static std::string SizeShape(std::initializer_list<int64_t> sizes) {
    std::string value;
    protozero::pbf_writer out(value);
    protozero::pbf_writer shape(out, 7);
    for (int64_t size : sizes) protozero::pbf_writer(shape, 2).add_int64(1, size);
    return value;
  }
  // A constant of two int32.
  static std::string Pair(int32_t a, int32_t b) {
    std::string value;
    protozero::pbf_writer out(value);
    protozero::pbf_writer tensor(out, 8);
    tensor.add_enum(1, kInt32);
    {
      protozero::pbf_writer shape(tensor, 2);
      protozero::pbf_writer(shape, 2).add_int64(1, 2);
    }
    const int32_t both[] = {a, b};
    tensor.add_bytes(4, reinterpret_cast<const char*>(both), sizeof(both));
    return value;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void RunsInTime(std::string graph, const Shape& shape) {
  const auto begin = std::chrono::steady_clock::now();
  SessionOptions options;
  options.device = "cpu";
  const auto session = Session::Create(Runtime::Create({}), std::move(options)).value();
  const auto model = session->LoadGraph(std::move(graph), "long", {});
  ASSERT_TRUE(model.ok()) << model.status();
  RunRequest request;
  request.feeds = {{"x", Tensor::Allocate({DType::kF32, shape}).value()}};
  request.fetches = {"y"};
  const auto result = (*model)->Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0].second.shape(), shape);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(LongGraphs, ChainsOfIdentities) {
  const int nodes = kSanitized ? 20'000 : 200'000;
  LongGraph g;
  const std::string type = LongGraph::Type(kFloat);
  g.Node("x", "Placeholder", {}, {{"dtype", type}, {"shape", LongGraph::SizeShape({2})}});
  for (int i = 0; i < nodes; ++i) {
    g.Node("n" + std::to_string(i), "Identity", {i == 0 ? "x" : "n" + std::to_string(i - 1)},
           {{"T", type}});
  }
  g.Node("y", "Relu", {"n" + std::to_string(nodes - 1)}, {{"T", type}});
  RunsInTime(g.Take(), {2});
}

// One value that every node of a chain reads.
TEST(LongGraphs, ValuesOfManyReaders) {
  const int nodes = kSanitized ? 1'000 : 15'000;
  LongGraph g;
  const std::string type = LongGraph::Type(kFloat);
  g.Node("x", "Placeholder", {}, {{"dtype", type}, {"shape", LongGraph::SizeShape({2, 3})}});
  g.Node("p", "Const", {}, {{"dtype", LongGraph::Type(kInt32)}, {"value", LongGraph::Pair(1, 0)}});
  g.Node("t", "Transpose", {"x", "p"}, {{"T", type}, {"Tperm", LongGraph::Type(kInt32)}});
  for (int i = 0; i < nodes; ++i) {
    g.Node("n" + std::to_string(i), "Mul", {i == 0 ? "t" : "n" + std::to_string(i - 1), "t"},
           {{"T", type}});
  }
  g.Node("y", "Transpose", {"n" + std::to_string(nodes - 1), "p"},
         {{"T", type}, {"Tperm", LongGraph::Type(kInt32)}});
  RunsInTime(g.Take(), {2, 3});
}

TEST(LongGraphs, ChainsOfTransposes) {
  const int nodes = kSanitized ? 2'000 : 20'000;
  LongGraph g;
  const std::string type = LongGraph::Type(kFloat);
  g.Node("x", "Placeholder", {}, {{"dtype", type}, {"shape", LongGraph::SizeShape({2, 3})}});
  g.Node("p", "Const", {}, {{"dtype", LongGraph::Type(kInt32)}, {"value", LongGraph::Pair(1, 0)}});
  for (int i = 0; i < nodes; ++i) {
    g.Node("n" + std::to_string(i), "Transpose", {i == 0 ? "x" : "n" + std::to_string(i - 1), "p"},
           {{"T", type}, {"Tperm", LongGraph::Type(kInt32)}});
  }
  g.Node("y", "Relu", {"n" + std::to_string(nodes - 1)}, {{"T", type}});
  RunsInTime(g.Take(), {2, 3});
}

}  // namespace
}  // namespace oncilla
