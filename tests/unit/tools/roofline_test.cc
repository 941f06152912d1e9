// Roofs from invented peaks and times: what limits an op, what is above its roof, and that every
// part of a run is counted once.
#include "tools/oncilla/commands/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace oncilla::tool {
namespace {

using ::testing::HasSubstr;

// A device of 100 GFLOP/s, twice that for bytes; memory reads 10 GB/s, copies 5 GB/s, and 50 GB/s
// up to a megabyte.
Peaks SomePeaks() {
  Peaks peaks;
  peaks.device = "/job:localhost/replica:0/task:0/device:CPU:0";
  peaks.fp32_flops = 100e9;
  peaks.int8_ops = 200e9;
  peaks.read_bytes = 10e9;
  peaks.copies = {{1e6, 50e9}, {1e8, 5e9}};
  return peaks;
}

OpTime SomeOp(const std::string& name, double time_s, double operations, double bytes,
              double constant_bytes = 0, DType dtype = DType::kF32) {
  OpTime op;
  op.node = name;
  op.op = "Conv";
  op.kernel = "gemm";
  op.device = SomePeaks().device;
  op.time_s = time_s;
  op.work = {true, operations, bytes, constant_bytes, dtype, "1x2 -> 2"};
  return op;
}

OpTimes Times(std::vector<OpTime> ops, double outside_s) {
  OpTimes times;
  for (const OpTime& op : ops) times.kernels_s += op.time_s;
  times.run_s = times.kernels_s + outside_s;
  times.ops = std::move(ops);
  return times;
}

TEST(RooflineTest, ArithmeticOrMemoryBinds) {
  const OpTimes times =
      Times({SomeOp("product", 3e-3, 1e8, 1e6, 5e5), SomeOp("bytes", 3e-3, 1e8, 1e6, 0, DType::kU8),
             SomeOp("small", 3e-3, 1e6, 1e6), SomeOp("large", 3e-3, 1e6, 1e7),
             SomeOp("weights", 3e-3, 1e6, 1e7, 1e7)},
            0);
  const Roofline roofline = RooflineOf(times, {SomePeaks()});
  const auto roof = [&](size_t i) {
    return std::pair(roofline.ops[i].bound, roofline.ops[i].roof_s);
  };
  EXPECT_EQ(roof(0).first, Bound::kCompute);
  EXPECT_DOUBLE_EQ(roof(0).second, 1e-3);
  EXPECT_EQ(roof(1).first, Bound::kCompute);
  EXPECT_DOUBLE_EQ(roof(1).second, 0.5e-3);
  EXPECT_EQ(roof(2).first, Bound::kMemory);
  EXPECT_DOUBLE_EQ(roof(2).second, 1e6 / 50e9);
  EXPECT_DOUBLE_EQ(roof(3).second, 1e7 / 5e9);
  EXPECT_DOUBLE_EQ(roof(4).second, 1e7 / 10e9);
}

TEST(RooflineTest, CausesAreTheWholeRun) {
  OpTime unknown = SomeOp("unknown", 1e-3, 0, 0);
  unknown.work.known = false;
  OpTime elsewhere = SomeOp("elsewhere", 1e-3, 1e8, 1e6);
  elsewhere.device = "/job:localhost/replica:0/task:0/device:GPU:0";
  const OpTimes times = Times({SomeOp("slow", 3e-3, 1e8, 1e6), SomeOp("quick", 0.5e-3, 1e8, 1e6),
                               SomeOp("moves", 1e-3, 0, 1e6), unknown, elsewhere},
                              2e-3);
  const Roofline roofline = RooflineOf(times, {SomePeaks()});
  std::map<std::string, double> causes;
  for (const Cause& cause : roofline.causes) causes[cause.key] = cause.time_s;
  EXPECT_DOUBLE_EQ(causes["compute"], 1.5e-3);  // an op that is quicker than its roof counts whole
  EXPECT_DOUBLE_EQ(causes["above_compute"], 2e-3);
  EXPECT_NEAR(causes["memory"], 1e6 / 50e9, 1e-12);
  EXPECT_NEAR(causes["above_memory"], 1e-3 - 1e6 / 50e9, 1e-12);
  EXPECT_DOUBLE_EQ(causes["unknown"], 2e-3);
  EXPECT_DOUBLE_EQ(causes["outside"], 2e-3);
  const double sum =
      std::accumulate(roofline.causes.begin(), roofline.causes.end(), 0.0,
                      [](double before, const Cause& cause) { return before + cause.time_s; });
  EXPECT_NEAR(sum, times.run_s, 1e-12);
  EXPECT_NEAR(roofline.total_s(), times.run_s, 1e-12);
  ASSERT_EQ(roofline.kinds.size(), 1u);
  EXPECT_EQ(roofline.kinds[0].count, 5);
  EXPECT_THAT(RooflineText(roofline), HasSubstr("most above the roof: 5 Conv"));
}

TEST(RooflineTest, OpsThatTakeMoreThanTheRunLeaveNothingOutside) {
  OpTimes times = Times({SomeOp("slow", 3e-3, 1e8, 1e6)}, 0);
  times.run_s = 2e-3;  // another program took part in the runs with a profile
  EXPECT_EQ(times.outside_s(), 0);
  EXPECT_EQ(times.outside_share(), 0);
}

TEST(RooflineTest, PlainOpsAboveAShareAreFound) {
  OpTime plain = SomeOp("plain", 1e-3, 0, 1e6);
  plain.plain = true;
  const OpTimes times = Times({SomeOp("slow", 7e-3, 1e8, 1e6), plain}, 2e-3);
  EXPECT_TRUE(PlainAbove(times, 10.1).empty());
  ASSERT_EQ(PlainAbove(times, 9.9).size(), 1u);
  EXPECT_EQ(PlainAbove(times, 9.9)[0]->node, "plain");
}

TEST(PeaksTest, CopiesAreTakenBySize) {
  const Peaks peaks = SomePeaks();
  EXPECT_EQ(peaks.copy_rate(0), 50e9);
  EXPECT_EQ(peaks.copy_rate(1e6), 50e9);
  EXPECT_EQ(peaks.copy_rate(1e6 + 1), 5e9);
  EXPECT_EQ(peaks.copy_rate(1e12), 5e9);
  EXPECT_EQ(peaks.rate_of(DType::kBF16), 100e9);  // widened
  EXPECT_EQ(peaks.rate_of(DType::kI8), 200e9);
}

}  // namespace
}  // namespace oncilla::tool
