// Passes on quantised tensors: what becomes integer arithmetic, what must not be changed, and that
// both compute the same. Scales are powers of two, so that real numbers are exact too.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/graph/print.h"
#include "engine/passes/integers/quantised.h"
#include "tests/unit/support/graph_text.h"

namespace oncilla {
namespace {

using namespace testing;

const Pass kProducts{"integer products", &IntegerProducts}, kMoves{"move integers", &MoveIntegers},
    kTables{"make byte tables", &MakeByteTables}, kLower{"lower quantisation", &LowerQuantisation},
    kTransposes{"move transposes", &MoveTransposes}, kFold{"fold constants", &FoldConstants},
    kSimplify{"simplify", &Simplify}, kFuse{"fuse elementwise", &FuseElementwise},
    kFuseRequantize{"fuse requantize", &FuseRequantize}, kRound{"round pools", &RoundPools},
    kBytes{"add and multiply bytes", &AddAndMultiplyBytes},
    kFixed{"fixed arithmetic", &FixedArithmetic},
    kUnsigned{"store unsigned bytes", &StoreUnsignedBytes};

std::string Ops(const Graph& graph) {
  std::string out;
  for (const Node& node : graph.nodes())
    out += (out.empty() ? "" : " ") + std::string(node.op->name);
  return out;
}

// Quantised tensors of a graph, in u8 with the zero point 100.
class QuantisedText : public GraphText {
 public:
  ValueId Quantise(ValueId x, float scale) {
    return Add("QuantizeLinear", {x, Floats({}, {scale}), Zero()});
  }
  ValueId Dequantise(ValueId q, float scale) {
    return Add("DequantizeLinear", {q, Floats({}, {scale}), Zero()});
  }
  // Through integers and back.
  ValueId Through(ValueId x, float scale) { return Dequantise(Quantise(x, scale), scale); }
  ValueId Zero() { return Constant<uint8_t>(DType::kU8, {}, {100}); }

  // Signed bytes, with a scale for each place along `axis`.
  ValueId Filter(const Shape& shape, int64_t axis, float scale) {
    std::vector<int8_t> bytes;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      bytes.push_back(static_cast<int8_t>(i * 37 % 255 - 127));
    }
    std::vector<float> scales;
    for (int64_t i = 0; i < shape[static_cast<int>(axis)]; ++i) {
      scales.push_back(i % 2 == 0 ? scale : scale / 2);
    }
    return Add("DequantizeLinear",
               {Constant(DType::kI8, shape, bytes), Floats({std::ssize(scales)}, scales)},
               {{"axis", axis}});
  }
  ValueId Bias(int64_t places, float scale) {
    std::vector<int32_t> ints;
    std::vector<float> scales;
    for (int64_t i = 0; i < places; ++i) {
      ints.push_back(static_cast<int32_t>(i * 1000 - 1500));
      scales.push_back(i % 2 == 0 ? scale : scale / 2);
    }
    return Add("DequantizeLinear",
               {Constant(DType::kI32, {places}, ints), Floats({places}, scales)},
               {{"axis", int64_t{0}}});
  }
};

constexpr float kX = 1.0f / 64, kW = 1.0f / 128, kY = 1.0f / 8;

TEST(IntegerProducts, ConvolutionsAsOnnxWritesThem) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{1, 3, 6, 6}), kX);
  const ValueId filter = t.Transpose(t.Filter({4, 3, 3, 3}, 0, kW), {2, 3, 1, 0});
  const std::vector<int64_t> pads = {1, 1, 1, 1};
  ValueId y = t.Add("Conv", {t.ToLast(x), filter, t.Bias(4, kX * kW)}, {{"pads", pads}});
  y = t.Add("Relu", {t.ToFirst(y)});
  t.Output("y", t.Through(y, kY));
  const Graph after =
      RunAndCompare(t.graph(), std::vector{kProducts, kTransposes, kSimplify, kFold});
  EXPECT_EQ(CountOps(after, "Conv"), 0) << Print(after);
  EXPECT_EQ(CountOps(after, "ConvInteger"), 1) << Print(after);
  EXPECT_EQ(CountOps(after, "Relu"), 0) << Print(after);
}

TEST(IntegerProducts, MatrixProductsWithAndWithoutABias) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{5, 8}), kX);
  const ValueId dense = t.Add("MatMul", {x, t.Filter({4, 8}, 0, kW)}, {{"transpose_b", true}});
  const ValueId sum = t.Add("Add", {dense, t.Bias(4, kX * kW)});
  const ValueId y = t.Through(t.Add("Relu6", {sum}), kY);
  t.Output("y", y);
  const ValueId other = t.Through(t.Input("other", Shape{2, 4, 3}), kX);
  t.Output("batches", t.Through(t.Add("MatMul", {y, other}), kY));
  const Graph after = RunAndCompare(t.graph(), std::vector{kProducts});
  EXPECT_EQ(CountOps(after, "MatMulInteger"), 2) << Print(after);
  EXPECT_EQ(CountOps(after, "MatMul"), 0) << Print(after);
}

// Some quantisers leave biases in float, and quantise a value once for each of its readers.
TEST(IntegerProducts, BiasesOfRealNumbersAndEqualQuantisations) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{1, 6, 6, 3}), kX);
  const ValueId filter = t.Filter({3, 3, 3, 4}, 3, kW);
  // In steps of kX * kW and half of that: 3, -5; 6.25 and -2.75, which are rounded.
  const float step = kX * kW;
  const ValueId bias = t.Floats({4}, {3 * step, -5 * step / 2, 6.25f * step, -2.75f * step / 2});
  const ValueId y = t.Add("Conv", {x, filter, bias});
  t.Output("sum", t.Add("Add", {t.Through(y, kY), t.Through(y, kY)}));
  const ValueId dense =
      t.Add("MatMul", {t.Through(t.Input("z", Shape{2, 8}), kX), t.Filter({8, 4}, 1, kW)});
  t.Output("dense", t.Through(t.Add("Add", {dense, bias}), kY));
  const Graph after =
      RunAndCompare(t.graph(), std::vector{Pass{"merge duplicates", &MergeDuplicates}, kProducts});
  EXPECT_EQ(CountOps(after, "ConvInteger"), 1) << Print(after);
  EXPECT_EQ(CountOps(after, "MatMulInteger"), 1) << Print(after);
  EXPECT_EQ(CountOps(after, "Conv"), 0) << Print(after);
}

TEST(IntegerProducts, WhatIsNotExactlyThatStays) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{2, 8}), kX);
  const auto out = [&](const char* name, ValueId y) { t.Output(name, t.Through(y, kY)); };
  // A bias of another scale, one beyond 32 bits, scales along the sum, weights of real numbers.
  out("scale", t.Add("Add", {t.Add("MatMul", {x, t.Filter({8, 4}, 1, kW)}), t.Bias(4, kX)}));
  out("real", t.Add("Add", {t.Add("MatMul", {x, t.Filter({8, 4}, 1, kW)}),
                            t.Floats({4}, {1, 2, 3e9f, 4})}));
  out("rows", t.Add("MatMul", {x, t.Filter({8, 4}, 0, kW)}));
  out("weights", t.Add("MatMul", {x, t.Weights({8, 4})}));
  // The product is fetched itself.
  const ValueId fetched = t.Add("MatMul", {x, t.Filter({8, 4}, 1, kW)});
  t.Output("fetched", fetched);
  out("also", fetched);
  const Graph after = RunAndCompare(t.graph(), std::vector{kProducts});
  EXPECT_EQ(CountOps(after, "MatMulInteger"), 0) << Print(after);
  EXPECT_EQ(CountOps(after, "MatMul"), 5) << Print(after);
}

TEST(IntegerProducts, SumsThatCouldLeave32BitsStay) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{1, 120000}), kX);
  t.Output("y", t.Through(t.Add("MatMul", {x, t.Filter({120000, 2}, 1, kW)}), 1024));
  EXPECT_EQ(CountOps(RunAndCompare(t.graph(), std::vector{kProducts}), "MatMul"), 1);
}

TEST(FuseRequantize, SumsThatNobodyElseReads) {
  QuantisedText t;
  const ValueId x = t.Quantise(t.Input("x", Shape{1, 5, 5, 3}), kX);
  const ValueId filter = t.Constant<int8_t>(DType::kI8, {1, 1, 3, 2}, {1, -2, 3, -4, 5, -6});
  const ValueId scales = t.Floats({2}, {0.25f, 0.5f});
  const auto conv = [&] { return t.Add("ConvInteger", {x, filter, t.Zero()}); };
  t.Output("fused", t.Add("Requantize", {conv(), scales, t.Zero()}, {{"to", DType::kU8}}));
  // Factors for rows, an input with a zero point of its own, sums that are fetched too.
  t.Output("rows", t.Add("Requantize", {conv(), t.Floats({5}, {1, 2, 3, 4, 5}), t.Zero()},
                         {{"to", DType::kU8}, {"axis", int64_t{1}}}));
  t.Output("moved", t.Add("Requantize", {conv(), scales, t.Zero()},
                          {{"to", DType::kU8}, {"x_zero", int64_t{3}}}));
  const ValueId fetched = conv();
  t.Output("sums", fetched);
  t.Output("also", t.Add("Requantize", {fetched, scales, t.Zero()}, {{"to", DType::kU8}}));
  // Nodes are placed by then.
  Graph placed = t.graph();
  for (uint32_t n = 0; n < placed.nodes().size(); ++n) placed.SetDevice(NodeId{n}, 0);
  const Graph after = RunAndCompare(placed, std::vector{kFuseRequantize});
  EXPECT_EQ(CountOps(after, "Requantize"), 3) << Print(after);
  EXPECT_EQ(CountOps(after, "ConvInteger"), 4) << Print(after);
}

// Sums are converted to real numbers within their product, if there is one factor, or one per
// column, and no other node reads the intermediate values.
TEST(FuseRequantize, RealResultsOfProducts) {
  QuantisedText t;
  const ValueId x = t.Quantise(t.Input("x", Shape{5, 6}), kX);
  const ValueId given = t.Input("scale", Shape{});
  std::vector<int8_t> bytes;
  for (int i = 0; i < 24; ++i) bytes.push_back(static_cast<int8_t>(i * 37 % 255 - 127));
  const auto sums = [&] {
    const ValueId w = t.Constant(DType::kI8, Shape{6, 4}, bytes);
    return t.Add("Cast", {t.Add("MatMulInteger", {x, w, t.Zero()})}, {{"to", DType::kF32}});
  };
  const ValueId scales = t.Floats({4}, {0.5F, 0.25F, 2, 1}), terms = t.Floats({4}, {1, -2, 3, -4});
  t.Output("both", t.Add("Add", {t.Add("Mul", {sums(), scales}), terms}));
  t.Output("given", t.Add("Add", {t.Floats({1}, {7}), t.Add("Mul", {given, sums()})}));
  const ValueId residual = t.Input("residual", Shape{5, 4});
  t.Output("scaled", t.Add("Add", {t.Add("Mul", {sums(), scales}), residual}));
  // These stay: a factor for each row, a square, steps that are fetched too.
  t.Output("rows", t.Add("Mul", {sums(), t.Floats({5, 1}, {1, 2, 3, 4, 5})}));
  const ValueId twice = sums();
  t.Output("square", t.Add("Mul", {twice, twice}));
  const ValueId fetched = sums();
  t.Output("sums", fetched);
  t.Output("also", t.Add("Mul", {fetched, scales}));
  Graph placed = t.graph();
  for (uint32_t n = 0; n < placed.nodes().size(); ++n) placed.SetDevice(NodeId{n}, 0);
  const Graph after = RunAndCompare(placed, std::vector{kFuseRequantize}, 0);
  EXPECT_EQ(CountOps(after, "Cast"), 3) << Print(after);
  EXPECT_EQ(CountOps(after, "Mul"), 3) << Print(after);
  EXPECT_EQ(CountOps(after, "Add"), 1) << Print(after);
  EXPECT_EQ(CountOps(after, "MatMulInteger"), 6) << Print(after);
}

// Ops in this list must not pad: integers and real numbers have different zeros.
TEST(MoveIntegers, OpsThatOnlyMove) {
  const auto set = OpSet::Builtin();
  std::string ops;
  for (const OpDef* op : set->ops()) {
    if (OnlyMoves(*op)) ops += std::string(op->name) + ' ';
  }
  EXPECT_EQ(
      ops,
      "Reshape Squeeze Unsqueeze Flatten Transpose Concat Split Tile Expand Slice StridedSlice ");
}

TEST(MoveIntegers, MovementsBetweenEqualScales) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{2, 3, 4}), kX);
  ValueId y = t.Add("Reshape", {t.Transpose(x, {0, 2, 1}), t.Ints({2, 12})});
  y = t.Add("Slice", {y, t.Ints({1}), t.Ints({9}), t.Ints({1})});
  const ValueId other = t.Through(t.Input("other", Shape{2, 3}), kY);
  y = t.Add("Concat", {y, other}, {{"axis", int64_t{1}}});
  t.Output("y", t.Through(y, kX));
  EXPECT_EQ(Ops(RunAndCompare(t.graph(), std::vector{kMoves})),
            "QuantizeLinear Transpose Reshape Slice QuantizeLinear DequantizeLinear QuantizeLinear "
            "Concat DequantizeLinear");
}

TEST(MoveIntegers, OtherScalesAndOtherReadersStay) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{2, 3}), kX);
  t.Output("scale", t.Through(t.Transpose(x, {1, 0}), kY));
  const ValueId read = t.Add("Reshape", {x, t.Ints({6})});
  t.Output("read", read);
  t.Output("again", t.Through(read, kX));
  const std::string ops = Ops(t.graph());
  EXPECT_EQ(Ops(RunAndCompare(t.graph(), std::vector{kMoves})), ops);
}

TEST(MoveIntegers, NearestPixelsOfResize) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{1, 3, 4, 2}), kX);
  const auto resized = [&](AttrMap attrs) {
    return t.Quantise(t.Add("Resize", {x, t.Ints({6, 8})}, std::move(attrs)), kX);
  };
  t.Output("nearest", resized({}));
  t.Output("linear", resized({{"mode", std::string("linear")}}));
  t.Output("region", resized({{"coordinates", std::string("crop_and_resize")},
                              {"region", std::vector<double>{-1, 0, 1, 1}},
                              {"outside", 1.0}}));
  EXPECT_EQ(CountOps(RunAndCompare(t.graph(), std::vector{kMoves}), "QuantizeLinear"), 3);
}

// QuantizeLinear of y, whose lowest integer stands for zero if `from_zero`. The zero point is even,
// so that ties are the same before and after it is added.
ValueId Bytes(QuantisedText& t, ValueId y, bool from_zero) {
  const ValueId zero =
      t.Constant<uint8_t>(DType::kU8, {}, {static_cast<uint8_t>(from_zero ? 0 : 2)});
  return t.Add("QuantizeLinear", {y, t.Floats({}, {kY}), zero});
}

TEST(AddAndMultiplyBytes, SumsAndProductsOfBytes) {
  for (const bool from_zero : {false, true}) {
    QuantisedText t;
    const ValueId x = t.Through(t.Input("x", Shape{2, 9}), kX);
    const ValueId y = t.Through(t.Input("y", Shape{2, 9}), kY);
    t.Output("y1", t.Dequantise(Bytes(t, t.Add("Add", {x, y}), from_zero), 1));
    t.Output("y2", t.Dequantise(Bytes(t, t.Add("Mul", {x, y}), from_zero), 1));
    t.Output("y3", t.Dequantise(Bytes(t, t.Add("Relu", {t.Add("Add", {y, x})}), from_zero), 1));
    const Graph after = RunAndCompare(t.graph(), std::vector{kBytes});
    EXPECT_EQ(CountOps(after, "Fma"), from_zero ? 4 : 2) << Print(after);
    EXPECT_EQ(CountOps(after, "Relu"), from_zero ? 0 : 1);
  }
}

// A Requantize by fixed point, as TFLite's importer writes it.
ValueId Fixed(QuantisedText& t, ValueId x, double factor, DType to, int zero, int x_zero,
              int left) {
  int shift = 0;
  const auto multiplier =
      static_cast<int32_t>(std::lround(std::frexp(factor, &shift) * (1u << 31)));
  const ValueId point = to == DType::kI32 ? t.Constant<int32_t>(to, {}, {zero})
                        : to == DType::kI8
                            ? t.Constant<int8_t>(to, {}, {static_cast<int8_t>(zero)})
                            : t.Constant<uint8_t>(to, {}, {static_cast<uint8_t>(zero)});
  return t.Add("Requantize",
               {x, t.Constant<int32_t>(DType::kI32, {}, {multiplier}), point,
                t.Constant<int32_t>(DType::kI32, {}, {shift})},
               {{"mode", std::string("fixed")},
                {"to", to},
                {"x_zero", int64_t{x_zero}},
                {"left_shift", int64_t{left}}});
}
// The sum of all pairs of bytes, with these scales in units of the result's.
ValueId FixedSum(QuantisedText& t, std::string_view op, DType dtype, double a_scale, double b_scale,
                 int zero) {
  std::vector<uint8_t> codes;
  for (int i = 0; i < 256; ++i) codes.push_back(static_cast<uint8_t>(i));
  const double twice = 2 * std::max(a_scale, b_scale);
  const ValueId a =
      Fixed(t, t.Constant(dtype, {256, 1}, codes), a_scale / twice, DType::kI32, 0, 7, 20);
  const ValueId b =
      Fixed(t, t.Constant(dtype, {1, 256}, codes), b_scale / twice, DType::kI32, 0, -9, 20);
  return Fixed(t, t.Add(op, {a, b}), twice / (1 << 20), dtype, zero, 0, 0);
}

TEST(FixedArithmetic, AllPairsOfBytesStayAsTheyAre) {
  QuantisedText t;
  int sums = 0;
  for (const auto& [a, b] :
       {std::pair{0.73137085, 0.41421356}, {0.05176381, 0.99313727}, {1.12837917, 0.37712389}}) {
    for (const DType dtype : {DType::kI8, DType::kU8}) {
      for (const char* op : {"Add", "Sub"}) {
        t.Output(StrCat("y", sums++),
                 FixedSum(t, op, dtype, a, b, dtype == DType::kI8 ? -28 : 101));
      }
    }
  }
  const Graph after = RunAndCompare(t.graph(), std::vector{kFixed}, 0);
  EXPECT_EQ(CountOps(after, "Fma"), 2 * sums) << Print(after);
  EXPECT_EQ(CountOps(after, "Requantize"), 0);
}

TEST(FixedArithmetic, FrequentTiesStay) {
  QuantisedText t;
  t.Output("y", FixedSum(t, "Add", DType::kI8, 0.5, 0.25, 3));
  const Graph after = RunAndCompare(t.graph(), std::vector{kFixed}, 0);
  EXPECT_EQ(CountOps(after, "Requantize"), 3) << Print(after);
}

TEST(ByteTables, FixedPointOfAByteAndItsFunctionIsATable) {
  QuantisedText t;
  const ValueId x = t.Quantise(t.Input("x", Shape{3, 5}), kX);
  std::vector<uint8_t> squares;
  for (int i = 0; i < 256; ++i) squares.push_back(static_cast<uint8_t>(i * i / 256));
  const ValueId table = t.Add("ByteTable", {x, t.Constant(DType::kU8, {256}, squares)});
  const auto moved = [&](ValueId of, int zero) {
    return t.Add("Sub", {t.Add("Cast", {of}, {{"to", DType::kI32}}),
                         t.Constant<int32_t>(DType::kI32, {}, {zero})});
  };
  const ValueId product = t.Add("Mul", {moved(x, 90), moved(table, 17)});
  t.Output("y", t.Dequantise(Fixed(t, product, 0.0061, DType::kU8, 100, 0, 0), kX));
  const Graph after = RunAndCompare(t.graph(), std::vector{kTables}, 0);
  EXPECT_EQ(Ops(after), "QuantizeLinear ByteTable DequantizeLinear") << Print(after);
}

TEST(AddAndMultiplyBytes, WhatOthersReadOrIsOfOtherTypesStays) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{2, 9}), kX);
  const ValueId real = t.Input("real", Shape{2, 9});
  const ValueId sum = t.Add("Add", {x, x});
  t.Output("y4", sum);
  t.Output("y5", t.Dequantise(t.Quantise(sum, kY), kY));
  t.Output("y6", t.Dequantise(t.Quantise(t.Add("Add", {x, real}), kY), kY));
  const ValueId zero = t.Constant<int8_t>(DType::kI8, {}, {3});
  const ValueId scale = t.Floats({}, {kY});
  const ValueId other =
      t.Add("QuantizeLinear", {t.Add("Mul", {x, x}), scale, zero}, {{"to", DType::kI8}});
  t.Output("y7", t.Add("DequantizeLinear", {other, scale, zero}));
  const Graph after = RunAndCompare(t.graph(), std::vector{kBytes});
  EXPECT_EQ(CountOps(after, "QuantizeLinear"), 4) << Print(after);
}

TEST(ByteTables, AProductOfAByteAndItsFunctionIsATable) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{3, 5}), kX);
  const ValueId gate = t.Through(t.Add("Sigmoid", {x}), 1.0f / 256);
  t.Output("y8", t.Dequantise(t.Quantise(t.Add("Mul", {x, gate}), kX), kX));
  const Graph after = RunAndCompare(t.graph(), std::vector{kBytes, kTables});
  EXPECT_EQ(Ops(after), "QuantizeLinear ByteTable DequantizeLinear") << Print(after);
}

TEST(RoundPools, TheZeroPointIsAddedFirst) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{1, 4, 4, 2}), kX);
  const auto pooled = [&](ValueId of, bool hangs, float scale) {
    return t.Quantise(
        t.Add("AveragePool", {of},
              {{"kernel", std::vector<int64_t>{2, 2}}, {"ceil", hangs}, {"count_pads", hangs}}),
        scale);
  };
  t.Output("same", pooled(x, false, kX));
  t.Output("other", pooled(x, false, kY));
  t.Output("hangs", pooled(x, true, kX));
  t.Output("real", pooled(t.Add("Neg", {x}), false, kX));
  const Graph after = RunAndCompare(t.graph(), std::vector{kRound});
  EXPECT_EQ(CountOps(after, "Round"), 2) << Print(after);
  EXPECT_EQ(CountOps(after, "QuantizeLinear"), 3) << Print(after);
}

TEST(ByteTables, FunctionsOfOneByte) {
  QuantisedText t;
  const ValueId q = t.Quantise(t.Input("x", Shape{2, 9}), kX), x = t.Dequantise(q, kX);
  const ValueId active = t.Add("Mul", {t.Add("Sigmoid", {x}), x});
  const ValueId y = t.Quantise(t.Add("Mul", {active, t.Floats({1}, {1.7f})}), kX);
  t.Output("y", t.Dequantise(y, kX));
  const Graph after = RunAndCompare(t.graph(), std::vector{kTables});
  EXPECT_EQ(Ops(after), "QuantizeLinear ByteTable DequantizeLinear") << Print(after);
}

TEST(ByteTables, WhatDependsOnPlacesOrOthersStays) {
  QuantisedText t;
  const ValueId x = t.Through(t.Input("x", Shape{2, 4}), kX);
  const ValueId other = t.Through(t.Input("other", Shape{2, 4}), kX);
  t.Output("places", t.Through(t.Add("Mul", {x, t.Weights({4})}), kX));
  t.Output("others", t.Through(t.Add("Mul", {x, other}), kX));
  EXPECT_EQ(CountOps(RunAndCompare(t.graph(), std::vector{kTables}), "ByteTable"), 0);
}

TEST(LowerQuantisation, FusesWithWhatStandsBesideIt) {
  QuantisedText t;
  const ValueId a = t.Quantise(t.Input("a", Shape{3, 5}), kX),
                b = t.Quantise(t.Input("b", Shape{3, 5}), kX);
  const ValueId sum = t.Add("Add", {t.Dequantise(a, kX), t.Dequantise(b, kX)});
  const ValueId y = t.Quantise(sum, kX / 2);
  t.Output("y", t.Add("Reshape",
                      {t.Dequantise(t.Add("Reshape", {y, t.Ints({15})}), kX / 2), t.Ints({15})}));
  // Nodes are placed by then.
  Graph placed = t.graph();
  for (uint32_t n = 0; n < placed.nodes().size(); ++n) placed.SetDevice(NodeId{n}, 0);
  EXPECT_EQ(Ops(RunAndCompare(placed, std::vector{kLower, kFuse})),
            "QuantizeLinear QuantizeLinear FusedElementwise Reshape DequantizeLinear Reshape");
}

// Bytes between QuantizeLinear and DequantizeLinear, with all kinds of nodes that can change.
class SignedBytes : public QuantisedText {
 public:
  ValueId Byte(int value) { return Constant<int8_t>(DType::kI8, {}, {static_cast<int8_t>(value)}); }
  ValueId Start(const std::string& name, const Shape& shape) {
    return Add("QuantizeLinear", {Input(name, shape), Floats({}, {kX}), Byte(-11)},
               {{"to", DType::kI8}});
  }
  ValueId Product(ValueId x, ValueId zero) {
    const ValueId filter = Constant<int8_t>(DType::kI8, {1, 1, 2, 2}, {7, -2, 3, -4});
    return Add("ConvInteger", {x, filter, zero});
  }
};

int SignedResults(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.outputs) count += graph.fact(id).dtype == DType::kI8;
  }
  return count;
}

TEST(StoreUnsignedBytes, NumbersStayTheSame) {
  SignedBytes t;
  const ValueId x = t.Start("x", {1, 4, 4, 2});
  std::vector<int8_t> table;
  for (int i = 0; i < 256; ++i) table.push_back(static_cast<int8_t>((i * 91 + 17) % 256 - 128));
  const ValueId looked_up = t.Add("ByteTable", {x, t.Constant(DType::kI8, {256}, table)});
  const std::vector<int64_t> kernel = {2, 2};
  const ValueId pool = t.Add("MaxPool", {looked_up}, {{"kernel", kernel}, {"strides", kernel}});
  // Padding is 0 where no other number is given.
  const ValueId padded = t.Add("Pad", {pool, t.Ints({0, 1, 0, 0, 0, 0, 1, 0})});
  const ValueId again = t.Add("Pad", {padded, t.Ints({0, 0, 1, 0, 0, 0, 0, 0}), t.Byte(-100)});
  const ValueId constant =
      t.Constant<int8_t>(DType::kI8, {1, 1, 4, 2}, {-128, 127, 0, 5, 6, 7, 8, 9});
  const auto halves = t.AddAll("Split", {again}, {{"axis", int64_t{3}}, {"parts", int64_t{2}}});
  const ValueId turned = t.Add("Concat", {halves[1], halves[0]}, {{"axis", int64_t{3}}});
  const ValueId joined = t.Add("Concat", {turned, constant}, {{"axis", int64_t{1}}});
  // A zero point of -11, and none.
  const ValueId sums = t.Product(joined, t.Byte(-11));
  const ValueId requantised =
      t.Add("Requantize", {sums, t.Floats({}, {0.03125f}), t.Byte(-3)},
            {{"to", DType::kI8}, {"least", int64_t{-100}}, {"most", int64_t{90}}});
  t.Output("sums", t.Product(requantised, kNoValue));
  t.Output("fixed", Fixed(t, requantised, 0.37, DType::kI32, 0, -3, 8));
  t.Output("real", t.Add("DequantizeLinear", {requantised, t.Floats({}, {kY})}));
  const ValueId scales = t.Floats({2}, {kX, kY});
  const ValueId zeros = t.Constant<int8_t>(DType::kI8, {2}, {-128, 3});
  t.Output("places",
           t.Add("DequantizeLinear", {requantised, scales, zeros}, {{"axis", int64_t{3}}}));
  const Graph after = RunAndCompare(t.graph(), std::vector{kUnsigned}, 0);
  EXPECT_EQ(SignedResults(after), 0) << Print(after);
  EXPECT_EQ(CountOps(after, "Cast"), 0) << Print(after);
}

TEST(StoreUnsignedBytes, WhatOthersReadStays) {
  SignedBytes t;
  // One is fetched, one is read as numbers, one has a zero point that is computed, and one is fed.
  // Without a product, none changes.
  const ValueId fetched = t.Start("a", {1, 2, 2, 2});
  t.Output("fetched", t.Add("Reshape", {fetched, t.Ints({8})}));
  t.Output("a sums", t.Product(fetched, t.Byte(-11)));
  const ValueId read = t.Start("b", {1, 2, 2, 2});
  t.Output("numbers", t.Add("Cast", {read}, {{"to", DType::kI32}}));
  t.Output("b sums", t.Product(read, t.Byte(-11)));
  const ValueId moved = t.Start("c", {1, 2, 2, 2});
  t.Output("c sums", t.Product(moved, t.Input("zero", Shape{}, DType::kI8)));
  t.Output("d sums", t.Product(t.Input("d", Shape{1, 2, 2, 2}, DType::kI8), t.Byte(2)));
  t.Output("real", t.Add("DequantizeLinear", {t.Start("e", {3}), t.Floats({}, {kX}), t.Byte(-11)}));
  EXPECT_EQ(SignedResults(RunAndCompare(t.graph(), std::vector{kUnsigned}, 0)), 5);
}

}  // namespace
}  // namespace oncilla
