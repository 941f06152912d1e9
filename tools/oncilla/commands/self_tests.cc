// The graphs use TensorFlow's ops, which the importer turns into canonical ops.
#include "tools/oncilla/commands/self_tests.h"

#include "tools/oncilla/files/random_tensor.h"

namespace oncilla::tool {
namespace {

using Output = GraphBuilder::Output;
using Outputs = std::vector<Output>;
using Ints = std::vector<int64_t>;

Output Weights(GraphBuilder& b, const Ints& shape, std::string_view name) {
  auto values = RandomTensor(1, name, {DType::kF32, Shape(shape.begin(), shape.end())});
  return values.ok() ? b.Constant(*values, name) : Output();
}
Output Vector(GraphBuilder& b, const Ints& values) { return b.Constant(Tensor::Int64s(values)); }
Output Number(GraphBuilder& b, float value) { return b.Constant(Tensor::Scalar(value)); }

Outputs Elementwise(GraphBuilder& b, Output x) {
  const Output y = b.Op("Tanh", {b.Op("Sub", {b.Op("Exp", {x}), Weights(b, {65}, "shift")})});
  return {b.Op("Maximum", {b.Op("Mul", {y, x}), Number(b, 0.25f)})};
}

Outputs Products(GraphBuilder& b, Output x) {
  const Output wide = b.Op("MatMul", {x, Weights(b, {512, 384}, "wide")});
  return {wide, b.Op("MatMul", {b.Op("Relu", {wide}), Weights(b, {384, 45}, "ragged")})};
}

Outputs FewRows(GraphBuilder& b, Output x) {
  return {b.Op("MatMul", {x, Weights(b, {1024, 777}, "weights")})};
}

Outputs Convolutions(GraphBuilder& b, Output x) {
  const GraphBuilder::Attrs same = {{"strides", Ints{1, 1, 1, 1}},
                                    {"padding", std::string("SAME")}};
  const GraphBuilder::Attrs steps = {{"strides", Ints{1, 2, 2, 1}},
                                     {"padding", std::string("SAME")}};
  const Output y = b.Op("Conv2D", {x, Weights(b, {3, 3, 64, 64}, "taps")}, same);
  const Output biased = b.Op("Relu", {b.Op("BiasAdd", {y, Weights(b, {64}, "bias")})});
  return {b.Op("Conv2D", {biased, Weights(b, {1, 1, 64, 130}, "point")}, steps)};
}

Outputs Depthwise(GraphBuilder& b, Output x) {
  return {b.Op("DepthwiseConv2dNative", {x, Weights(b, {3, 3, 48, 1}, "taps")},
               {{"strides", Ints{1, 1, 1, 1}}, {"padding", std::string("SAME")}})};
}

Outputs Pools(GraphBuilder& b, Output x) {
  const GraphBuilder::Attrs window = {
      {"ksize", Ints{1, 3, 3, 1}}, {"strides", Ints{1, 2, 2, 1}}, {"padding", std::string("SAME")}};
  return {b.Op("MaxPool", {x}, window), b.Op("AvgPool", {x}, window)};
}

Outputs Reductions(GraphBuilder& b, Output x) {
  const Output last = Vector(b, {1});
  return {b.Op("Softmax", {x}), b.Op("Mean", {x, last}), b.Op("Max", {x, Vector(b, {0})}),
          b.Op("ArgMax", {x, b.Constant(Tensor::ScalarInt64(1))}, {}, {}, DType::kI64)};
}

Outputs Norms(GraphBuilder& b, Output x) {
  const Output axis = Vector(b, {1});
  const GraphBuilder::Attrs keep = {{"keep_dims", true}};
  const Output mean = b.Op("Mean", {x, axis}, keep);
  const Output variance = b.Op("Mean", {b.Op("SquaredDifference", {x, mean}), axis}, keep);
  const Output scale = b.Op("Rsqrt", {b.Op("AddV2", {variance, Number(b, 1e-5f)})});
  return {b.Op("Mul", {b.Op("Sub", {x, mean}), scale})};
}

Outputs Movement(GraphBuilder& b, Output x) {
  const Output turned = b.Op("Transpose", {x, Vector(b, {2, 0, 1})});
  const Output rows =
      b.Op("GatherV2", {turned, Vector(b, {30, 0, 7, 7}), b.Constant(Tensor::ScalarInt64(0))});
  const Output padded = b.Op(
      "Pad", {rows, b.Constant(Tensor::Of<int64_t>(DType::kI64, {3, 2}, Ints{0, 1, 2, 0, 0, 3}))});
  return {turned, padded};
}

Outputs Resizing(GraphBuilder& b, Output x) {
  const Output size =
      b.Constant(Tensor::Of<int32_t>(DType::kI32, {2}, std::vector<int32_t>{50, 37}));
  return {b.Op("ResizeBilinear", {x, size}, {{"half_pixel_centers", true}})};
}

Outputs Attention(GraphBuilder& b, Output x) {
  const Output keys = Weights(b, {2, 4, 77, 32}, "keys"),
               values = Weights(b, {2, 4, 77, 32}, "values");
  const Output scores = b.Op("BatchMatMulV2", {x, keys}, {{"adj_y", true}});
  const Output weights = b.Op("Softmax", {b.Op("Mul", {scores, Number(b, 0.1768f)})});
  return {b.Op("BatchMatMulV2", {weights, values})};
}

Outputs Types(GraphBuilder& b, Output x) {
  const auto cast = [&](Output from, DType to) {
    return b.Op("Cast", {from}, {{"DstT", to}}, {}, to);
  };
  const Output hundreds = b.Op("Mul", {x, Number(b, 100)});
  return {cast(cast(x, DType::kF16), DType::kF32), cast(hundreds, DType::kI32),
          cast(cast(hundreds, DType::kU8), DType::kF32)};
}

const SelfTest kTests[] = {
    {"elementwise", &Elementwise, {3, 257, 65}},
    {"matrix products", &Products, {300, 512}},
    {"products of few rows", &FewRows, {1, 1024}},
    {"convolutions", &Convolutions, {2, 28, 29, 64}},
    {"depthwise convolutions", &Depthwise, {1, 30, 31, 48}},
    {"pools", &Pools, {2, 33, 30, 20}},
    {"softmax and reductions", &Reductions, {37, 1001}},
    {"normalisation", &Norms, {61, 384}},
    {"movement", &Movement, {17, 23, 31}},
    {"resizing", &Resizing, {1, 21, 24, 3}},
    {"attention", &Attention, {2, 4, 70, 32}},
    {"types", &Types, {1000, 7}},
};

}  // namespace

std::span<const SelfTest> SelfTests() { return kTests; }

}  // namespace oncilla::tool
