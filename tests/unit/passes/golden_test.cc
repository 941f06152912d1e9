// Golden texts of small models: the graph as imported, after the passes and as compiled, where its
// nodes run, the plan, and the OpenCL recipes for an invented device.
//
// The texts are in tests/golden. ONCILLA_REWRITE_GOLDEN=1 rewrites them; read the change before you
// commit it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <regex>

#include "engine/base/file.h"
#include "engine/compile/plan.h"
#include "engine/device/linked_backends.h"
#include "engine/graph/print.h"
#include "engine/import/model_source.h"
#include "tests/unit/support/onnx_text.h"
#include "tests/unit/support/run_graph.h"
#include "tests/unit/support/session_parts.h"
#include "tests/unit/support/temporary.h"
#if defined(ONCILLA_OPENCL)
#include "backends/opencl/recipes/kernels.h"
#endif

namespace oncilla {
namespace {

using namespace testing;

const std::string kFolder = std::string(ONCILLA_SOURCE_DIR) + "/tests/golden/";

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The lines that differ, by the longest common subsequence, with the line before them.
std::string Difference(const std::string& before, const std::string& after) {
  const auto a = Lines(before), b = Lines(after);
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string out;
  size_t i = 0, j = 0;
  bool shown = true;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      shown = false;
      ++i, ++j;
      continue;
    }
    if (!shown && i > 0) out += StrCat("@ line ", i, "\n  ", a[i - 1], "\n");
    shown = true;
    const bool gone = j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1]);
    out += gone ? "- " + a[i++] + "\n" : "+ " + b[j++] + "\n";
  }
  return out;
}

// Constants with the digits that every machine computes, and names without their common part.
std::string Shortened(std::string text) {
  for (const std::string part : {"StatefulPartitionedCall_1/StatefulPartitionedCall/",
                                 "/job:localhost/replica:0/task:0/device:"}) {
    for (size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
  }
  static const std::regex number("-?[0-9]+\\.[0-9]{5,}(e-?[0-9]+)?");
  std::string out;
  for (const std::string& line : Lines(text)) {
    size_t at = 0;
    for (std::sregex_iterator it(line.begin(), line.end(), number), end; it != end; ++it) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.4g", std::strtod(it->str().c_str(), nullptr));
      out += line.substr(at, static_cast<size_t>(it->position()) - at) + digits;
      at = static_cast<size_t>(it->position() + it->length());
    }
    out += line.substr(at) + "\n";
  }
  return out;
}

#if defined(ONCILLA_OPENCL)
// The launches of a plan's steps on an invented device. `values`: for every value of the graph, for
// its size.
std::string Recipes(const Plan& plan, const std::vector<Tensor>& values) {
  opencl::Capabilities caps;
  caps.local_groups = true;
  caps.max_work_group = 256;
  caps.local_memory = 32 << 10;
  caps.compute_units = 8;
  caps.max_allocation = 1 << 30;
  const std::span<const opencl::KernelRow> families[] = {
      opencl::AttentionKernels(), opencl::ConvKernels(),   opencl::ElementwiseKernels(),
      opencl::IndexingKernels(),  opencl::MatMulKernels(), opencl::MovementKernels(),
      opencl::NormKernels(),      opencl::ReduceKernels(), opencl::PoolKernels(),
      opencl::ResizeKernels(),    opencl::ShapeKernels()};
  const Graph& graph = plan.compiled->graph;
  std::string out;
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    if (plan.fates[n] != NodeFate::kStep) continue;
    const Node& node = graph.node(NodeId{n});
    Facts in, results;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) {
        in.push_back(Fact::Absent());
        continue;
      }
      const Tensor& value = values[Index(node.inputs[i])];
      const bool plan_input = node.op->traits.IsPlanInput(i);
      const bool known = plan_input || graph.value(node.inputs[i]).is_constant();
      in.push_back(known ? Fact::Constant(value) : Fact::Of(value.desc()));
    }
    for (ValueId id : node.outputs) results.push_back(Fact::Of(values[Index(id)].desc()));
    const NodeView view{node.op, &node.attrs, in, results, node.name};
    out += StrCat(node.op->name, " '", node.name, "'\n");
    const opencl::KernelRow* row = nullptr;
    for (const auto& family : families) {
      for (const opencl::KernelRow& r : family) {
        if (r.op == node.op->name) row = &r;
      }
    }
    if (row == nullptr) {
      out += "  none\n";
      continue;
    }
    const auto recipe = row->make(view, caps);
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    if (!recipe.ok()) continue;
    for (const std::string& line : Lines(ToString(*recipe))) out += "  " + line + "\n";
  }
  return out;
}
#endif

class Golden : public ::testing::Test {
 protected:
  Golden() {
    const Backend& backend = *LinkedBackends()[0];
    std::vector<std::string> notes;
    OpenOptions options;
    options.plain = true;
    options.threads = &threads_;
    cpu_ = backend.open(backend.discover({}, notes).at(0), options).value();
    devices_ = {cpu_.get()};
    pool_ = std::make_unique<Pool>(cpu_.get(), &parts_.ledger, PoolOptions{});
    constants_ = std::make_unique<ConstantStore>(std::span<Device* const>(devices_),
                                                 std::vector<Pool*>{pool_.get()}, parts_.owner);
  }

  // `shapes` of the inputs in order; empty: those of the model.
  void Check(const std::string& name, const std::string& path, const std::vector<Shape>& shapes) {
    const auto model = OpenModel(path, {});
    ASSERT_TRUE(model.ok()) << model.status();
    auto module = (*model)->Import({}, OpSet::Builtin());
    ASSERT_TRUE(module.ok()) << module.status();
    std::string text = "== as imported\n" + Print(module->main), placed;
    CompileOptions options;
    options.verify = true;
    options.observe = [&](std::string_view stage, const Graph& graph) {
      if (stage == "placed") placed = Print(graph);
    };
    const auto compiled =
        Compile(*std::move(module), devices_, parts_.names(), *constants_, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const Graph& graph = (*compiled)->graph;
    text += "== after the passes, placed\n" + placed;
    text += "== as compiled\n" + Print(graph);
    text += "== placement\n" + Print((*compiled)->placement);

    SegmentStart start;
    std::map<std::string, Tensor> feeds;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const NamedValue& input = graph.inputs()[i];
      const Fact& fact = graph.fact(input.value);
      const Shape shape = shapes.empty() ? fact.shape.ToShape() : shapes.at(i);
      start.available.emplace_back(input.value, Fact::Of({fact.dtype, shape}));
      feeds[input.name] = Tensor::Allocate({fact.dtype, shape}).value();
    }
    const auto plan = MakePlan(*compiled, devices_, start);
    ASSERT_TRUE(plan.ok()) << plan.status();
    text += "== plan\n" + Print(**plan, parts_.names());
#if defined(ONCILLA_OPENCL)
    std::vector<Tensor> values;
    const auto ran = RunGraph(graph, feeds, &values);
    ASSERT_TRUE(ran.ok()) << ran.status();
    text += "== OpenCL recipes for a made-up device\n" + Recipes(**plan, values);
#endif
    Compare(name, Shortened(std::move(text)));
  }

  static void Compare(const std::string& name, const std::string& text) {
    const std::string path = kFolder + name + ".txt";
    if (std::getenv("ONCILLA_REWRITE_GOLDEN") != nullptr) {
      std::FILE* file = std::fopen(path.c_str(), "wb");
      ASSERT_NE(file, nullptr) << path;
      const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
      ASSERT_TRUE(std::fclose(file) == 0 && written) << path;
      return;
    }
    const auto file = MappedFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto bytes = (*file)->bytes();
    std::string golden(reinterpret_cast<const char*>(bytes.data()), bytes.size());
#if !defined(ONCILLA_OPENCL)
    golden = golden.substr(0, golden.find("== OpenCL recipes"));
#endif
    if (golden == text) return;
    ADD_FAILURE() << path << " differs (ONCILLA_REWRITE_GOLDEN=1 writes it anew):\n"
                  << Difference(golden, text);
  }

  void CheckOnnx(const std::string& name, const OnnxGraphText& graph,
                 const std::vector<Shape>& shapes = {}) {
    Check(name, folder_.Write(name + ".onnx", OnnxModelText(graph)), shapes);
  }
  void CheckSavedModel(const std::string& name, const std::vector<Shape>& shapes) {
    Check(name, std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/models/" + name, shapes);
  }

  TemporaryFolder folder_;
  SessionParts parts_;
  ThreadPool threads_{1};
  std::unique_ptr<Device> cpu_;
  std::vector<Device*> devices_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<ConstantStore> constants_;
};

// ONNX files node by node, with made-up weights.
class Net {
 public:
  std::string Weights(const std::vector<int64_t>& shape, float about = 0) {
    const std::string name = "w" + std::to_string(++weights_);
    size_t count = 1;
    for (int64_t size : shape) count *= static_cast<size_t>(size);
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = about + static_cast<float>((i + Count(weights_)) * 7 % 11) / 64 - 0.0625f;
    }
    graph.Floats(name, shape, values);
    return name;
  }
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::function<void(OnnxNodeText&)>& attrs = nullptr,
                   std::string output = "") {
    if (output.empty()) output = "t" + std::to_string(++nodes_);
    OnnxNodeText node(op, inputs, {output}, op + "_" + output);
    if (attrs) attrs(node);
    graph.Node(node);
    return output;
  }
  std::string Conv(const std::string& x, int64_t in, int64_t out, int64_t kernel,
                   int64_t groups = 1) {
    return Node("Conv", {x, Weights({out, in / groups, kernel, kernel})}, [=](OnnxNodeText& n) {
      n.Ints("pads", {kernel / 2, kernel / 2, kernel / 2, kernel / 2}).Int("group", groups);
    });
  }
  std::string BatchNorm(const std::string& x, int64_t channels) {
    return Node("BatchNormalization", {x, Weights({channels}, 1), Weights({channels}),
                                       Weights({channels}), Weights({channels}, 1)});
  }
  OnnxGraphText graph;

 private:
  static size_t Count(int n) { return static_cast<size_t>(n); }

  int nodes_ = 0, weights_ = 0;
};

TEST_F(Golden, ResidualBlock) {
  Net net;
  net.graph.Input("x", {1, 12, 8, 8}).Output("y", {1, 10});
  std::string y = net.Node("Relu", {net.BatchNorm(net.Conv("x", 12, 16, 3), 16)});
  const std::string shortcut = y;
  y = net.Node("Relu", {net.BatchNorm(net.Conv(y, 16, 16, 3), 16)});
  y = net.BatchNorm(net.Conv(y, 16, 16, 3), 16);
  y = net.Node("Relu", {net.Node("Add", {y, shortcut})});
  y = net.Node("Flatten", {net.Node("GlobalAveragePool", {y})});
  net.Node(
      "Gemm", {y, net.Weights({10, 16}), net.Weights({10})},
      [](OnnxNodeText& n) { n.Int("transB", 1); }, "y");
  CheckOnnx("residual_block", net.graph);
}

// A factor per channel, for a batch of any size.
TEST_F(Golden, SqueezeAndExcitation) {
  Net net;
  net.graph.Input("x", {"batch", 16, 6, 6}).Output("y", {"batch", 16, 6, 6});
  const std::string x = net.Node("HardSwish", {net.Conv("x", 16, 16, 3, 16)});
  std::string s = net.Node("Relu", {net.Conv(net.Node("GlobalAveragePool", {x}), 16, 12, 1)});
  s = net.Node("HardSigmoid", {net.Conv(s, 12, 16, 1)});
  net.Node("Add", {net.Conv(net.Node("Mul", {x, s}), 16, 16, 1), "x"}, nullptr, "y");
  CheckOnnx("squeeze_and_excitation", net.graph, {{2, 16, 6, 6}});
}

// Groups of channels change places between two convolutions.
TEST_F(Golden, ChannelShuffle) {
  Net net;
  net.graph.Input("x", {1, 12, 6, 6}).Output("y", {1, 12, 6, 6});
  const auto shape = [&](const std::vector<int64_t>& sizes) {
    return net.Node("Constant", {}, [&](OnnxNodeText& n) { n.Ints("value_ints", sizes); });
  };
  std::string y = net.Conv("x", 12, 12, 1, 3);
  y = net.Node("Reshape", {y, shape({1, 3, 4, 6, 6})});
  y = net.Node("Transpose", {y}, [](OnnxNodeText& n) { n.Ints("perm", {0, 2, 1, 3, 4}); });
  y = net.Node("Reshape", {y, shape({1, 12, 6, 6})});
  y = net.Conv(y, 12, 12, 3, 12);
  net.Node("Relu", {y}, nullptr, "y");
  CheckOnnx("channel_shuffle", net.graph);
}

TEST_F(Golden, Attention) {
  Net net;
  net.graph.Input("x", {1, 6, 16}).Output("y", {1, 6, 16});
  const auto shape = [&](const std::vector<int64_t>& sizes) {
    return net.Node("Constant", {}, [&](OnnxNodeText& n) { n.Ints("value_ints", sizes); });
  };
  const auto linear = [&](const std::string& x) {
    return net.Node("Add", {net.Node("MatMul", {x, net.Weights({16, 16})}), net.Weights({16})});
  };
  const auto heads = [&](const std::string& x, const std::vector<int64_t>& perm) {
    return net.Node("Transpose", {net.Node("Reshape", {x, shape({1, 6, 2, 8})})},
                    [&](OnnxNodeText& n) { n.Ints("perm", perm); });
  };
  const std::string q = heads(linear("x"), {0, 2, 1, 3}), k = heads(linear("x"), {0, 2, 3, 1}),
                    v = heads(linear("x"), {0, 2, 1, 3});
  net.graph.Floats("scale", {}, {4});
  std::string y = net.Node("Div", {net.Node("MatMul", {q, k}), "scale"});
  y = net.Node("Softmax", {y}, [](OnnxNodeText& n) { n.Int("axis", -1); });
  y = net.Node("Transpose", {net.Node("MatMul", {y, v})}, [](OnnxNodeText& n) {
    n.Ints("perm", {0, 2, 1, 3});
  });
  y = linear(net.Node("Reshape", {y, shape({1, 6, 16})}));
  net.Node(
      "LayerNormalization", {net.Node("Add", {y, "x"}), net.Weights({16}, 1), net.Weights({16})},
      [](OnnxNodeText& n) { n.Int("axis", -1); }, "y");
  CheckOnnx("attention", net.graph);
}

// TensorFlow's model, with inputs of any size.
TEST_F(Golden, ConvNet) { CheckSavedModel("convnet", {{1, 8, 8, 3}}); }
TEST_F(Golden, Encoder) { CheckSavedModel("encoder", {{2, 5}}); }

}  // namespace
}  // namespace oncilla
