// Tiled products and convolutions on a device, with each tile of every family, with and without
// division of K, at sizes that end inside of tiles; and how tiles are chosen.
#include "backends/opencl/recipes/tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "backends/opencl/device.h"
#include "engine/base/half.h"
#include "engine/ops/nn/conv.h"
#include "engine/ops/op_set.h"
#include "tests/case_runner/kernel_signature.h"
#include "tests/unit/support/environment.h"
#include "tests/unit/support/opencl_device.h"

namespace oncilla::opencl {
namespace {

std::vector<float> Numbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> v(static_cast<size_t>(count));
  for (float& f : v) f = uniform(random);
  return v;
}

// All tiles of all families, each once, those of matrix units as well.
std::vector<Tile> AllTiles() {
  std::vector<Tile> all;
  for (const GpuFamily family : {GpuFamily::kAny, GpuFamily::kNvidia, GpuFamily::kAmdWave32,
                                 GpuFamily::kAmdWave64, GpuFamily::kIntel}) {
    Capabilities caps;
    caps.family = family;
    for (const auto tiles : {TuningOf(caps).tiles, TuningOf(caps).matrix_tiles}) {
      for (const TileRow& row : tiles) {
        if (std::ranges::find(all, row.tile) == all.end()) all.push_back(row.tile);
      }
    }
  }
  return all;
}

class OpenClTiles : public ::testing::Test {
 protected:
  void SetUp() override {
    ONCILLA_NEEDS_OPENCL();
    const FoundDevice& found = *TheTestDevice().found;
    DeviceInfo info;
    info.name = found.facts.name;
    info.alignment_bytes = std::max<int64_t>(found.facts.base_alignment, 128);
    ClDeviceOptions options{"", KernelShape::kGpu};
    options.matrix_unit = MatrixUnit::kWritten;
    auto opened = ClDevice::Open(found, info, options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = *std::move(opened);
    queue_ = *device_->OpenQueue();
  }
  void TearDown() override {
    queue_.reset();
    if (region_ != nullptr) {
      EXPECT_TRUE(device_->ReleaseRegion(std::move(region_)).ok());
    }
    device_.reset();
  }

  bool Has(const Tile& tile) const {
    const Capabilities& caps = device_->capabilities();
    return caps.local_groups && tile.threads() <= caps.max_work_group &&
           tile.local_bytes() <= caps.local_memory &&
           (tile.sub_group == 0 || tile.sub_group == caps.sub_group);
  }

  // Numbers of dtype_.
  std::vector<float> Draw(int64_t count, uint32_t seed) const {
    return Read(Stored(Numbers(count, seed)));
  }
  std::vector<std::byte> Stored(const std::vector<float>& v) const {
    std::vector<std::byte> bytes(v.size() * (dtype_ == DType::kF32 ? 4 : 2));
    for (size_t i = 0; i < v.size(); ++i) {
      const Half half(v[i]);
      const BFloat16 brain(v[i]);
      if (dtype_ == DType::kF32) std::memcpy(&bytes[4 * i], &v[i], 4);
      if (dtype_ == DType::kF16) std::memcpy(&bytes[2 * i], &half.bits, 2);
      if (dtype_ == DType::kBF16) std::memcpy(&bytes[2 * i], &brain.bits, 2);
    }
    return bytes;
  }
  std::vector<float> Read(const std::vector<std::byte>& bytes) const {
    std::vector<float> v(bytes.size() / (dtype_ == DType::kF32 ? 4 : 2));
    for (size_t i = 0; i < v.size(); ++i) {
      Half half;
      BFloat16 brain;
      if (dtype_ == DType::kF32) std::memcpy(&v[i], &bytes[4 * i], 4);
      if (dtype_ == DType::kF16) std::memcpy(&half.bits, &bytes[2 * i], 2);
      if (dtype_ == DType::kBF16) std::memcpy(&brain.bits, &bytes[2 * i], 2);
      if (dtype_ == DType::kF16) v[i] = static_cast<float>(half);
      if (dtype_ == DType::kBF16) v[i] = static_cast<float>(brain);
    }
    return v;
  }

  // The result of a recipe; operands are stored as dtype_.
  std::vector<float> Run(const Recipe& recipe, const std::vector<std::vector<float>>& inputs,
                         size_t outputs) {
    std::vector<float> y(outputs, NAN);
    const int64_t align = device_->info().alignment_bytes;
    std::vector<BufferView> views;
    int64_t bytes = 0;
    const auto add = [&](int64_t count) {
      views.push_back({nullptr, bytes, count});
      bytes += RoundUp(count, align);
    };
    std::vector<std::vector<std::byte>> stored;
    for (const auto& input : inputs) {
      stored.push_back(Stored(input));
      add(static_cast<int64_t>(stored.back().size()));
    }
    std::vector<std::byte> result = Stored(y);
    add(static_cast<int64_t>(result.size()));
    add(std::max<int64_t>(recipe.scratch_bytes, 4));
    if (region_ != nullptr) {
      EXPECT_TRUE(device_->ReleaseRegion(std::move(region_)).ok());
    }
    region_ = device_->AllocateRegion(bytes).value();
    std::vector<Upload> uploads;
    for (BufferView& view : views) view.region = region_.get();
    for (size_t i = 0; i < inputs.size(); ++i) {
      uploads.push_back({views[i], stored[i]});
    }
    auto kernel = device_->PrepareRecipe("Test", recipe, static_cast<int>(inputs.size()), 1);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (!kernel.ok()) return y;
    Step step{kernel->get(), {}, {{views[inputs.size()]}}, {}, "y"};
    for (size_t i = 0; i < inputs.size(); ++i) step.inputs.push_back({views[i]});
    if (recipe.scratch_bytes > 0) step.scratch = {views.back()};
    auto recording = device_->Record({step});
    EXPECT_TRUE(recording.ok()) << recording.status();
    if (!recording.ok()) return y;
    const auto wait = [&](const Result<EventPtr>& event) {
      EXPECT_TRUE(event.ok()) << event.status();
      if (event.ok()) {
        EXPECT_TRUE(device_->Wait(*event, kNoDeadline).ok());
      }
    };
    wait(device_->Transfer(*queue_, uploads, {}));
    wait(device_->Submit(*queue_, **recording, {}, {}));
    const Download download{result, views[inputs.size()]};
    wait(device_->Transfer(*queue_, {}, {&download, 1}));
    return Read(result);
  }

  void ExpectNear(const std::vector<float>& y, const std::vector<double>& want,
                  double depth) const {
    const double rounding = dtype_ == DType::kF32 ? 1e-6 : dtype_ == DType::kF16 ? 5e-4 : 4e-3;
    ASSERT_EQ(y.size(), want.size());
    int wrong = 0;
    for (size_t i = 0; i < y.size() && wrong < 4; ++i) {
      const auto got = static_cast<double>(y[i]);
      if (std::abs(got - want[i]) <= 2e-6 * std::sqrt(depth) + rounding * std::abs(want[i]))
        continue;
      ++wrong;
      ADD_FAILURE() << "element " << i << " is " << got << ", expected " << want[i];
    }
  }

  template <class Make>
  void ExpectProduct(int64_t m, int64_t n, int64_t k, bool swap_a, bool swap_b, const Make& make);
  template <class Make>
  void ExpectConvolution(int64_t width, int64_t channels, int64_t columns, int64_t groups,
                         bool gelu, const Make& make);

  const std::shared_ptr<const OpSet> ops_ = OpSet::Builtin();
  DType dtype_ = DType::kF32;
  std::unique_ptr<ClDevice> device_;
  std::unique_ptr<Region> region_;
  std::unique_ptr<Queue> queue_;
};

// y = relu(a b + bias + residual) for two products. Make: a Recipe of (geometry, node, most).
template <class Make>
void OpenClTiles::ExpectProduct(int64_t m, int64_t n, int64_t k, bool swap_a, bool swap_b,
                                const Make& make) {
  const Shape a_shape = swap_a ? Shape{2, k, m} : Shape{2, m, k};
  const Shape b_shape = swap_b ? Shape{2, n, k} : Shape{2, k, n};
  MatMulAttrs attrs;
  attrs.transpose_a = swap_a;
  attrs.transpose_b = swap_b;
  const MatMulGeometry g = GeometryOf(attrs, a_shape, b_shape);
  const Facts in = {Fact::Of({dtype_, a_shape}), Fact::Of({dtype_, b_shape}),
                    Fact::Of({dtype_, {n}}), Fact::Of({dtype_, {2, m, n}})};
  const Facts out = {Fact::Of({dtype_, {2, m, n}})};
  const AttrMap none;
  const NodeView node{ops_->Find("MatMul"), &none, in, out, "y"};
  const auto a = Draw(2 * m * k, 1), b = Draw(2 * k * n, 2), bias = Draw(n, 3);
  const auto residual = Draw(2 * m * n, 4);
  std::vector<double> want(static_cast<size_t>(2 * m * n));
  for (int64_t z = 0; z < 2; ++z) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = (z * m + i) * n + j;
        double sum = static_cast<double>(bias[j]) + static_cast<double>(residual[at]);
        for (int64_t l = 0; l < k; ++l) {
          sum += static_cast<double>(a[g.a_offset(z) + i * g.a_row + l * g.a_col]) *
                 static_cast<double>(b[g.b_offset(z) + l * g.b_row + j * g.b_col]);
        }
        want[at] = std::max(sum, 0.0);
      }
    }
  }
  const Recipe recipe = make(g, node, 2 * std::max({m * k, k * n, m * n}));
  ExpectNear(Run(recipe, {a, b, bias, residual}, want.size()), want, static_cast<double>(k));
}

// A 3 x 3 convolution with uneven strides and dilations. Make: a Recipe of (geometry, node).
template <class Make>
void OpenClTiles::ExpectConvolution(int64_t width, int64_t channels, int64_t columns,
                                    int64_t groups, bool gelu, const Make& make) {
  ConvAttrs attrs;
  attrs.strides = {2, 1};
  attrs.dilations = {1, 2};
  attrs.pads = {1, 2, 1, 2};
  attrs.groups = groups;
  const Shape x_shape = {2, 15, width, channels * groups};
  const Shape w_shape = {3, 3, channels, columns * groups};
  const Shape y_shape = {2, 8, width, columns * groups};
  const Facts in = {Fact::Of({dtype_, x_shape}), Fact::Of({dtype_, w_shape}),
                    Fact::Of({dtype_, {columns * groups}})};
  const Facts out = {Fact::Of({dtype_, y_shape})};
  const AttrMap none;
  const NodeView node{ops_->Find("Conv"), &none, in, out, "y"};
  const auto geometry = ConvGeometry(attrs, node);
  ASSERT_TRUE(geometry.ok()) << geometry.status();
  const WindowGeometry& g = *geometry;
  ASSERT_EQ(g.batch * g.out_pixels() * g.out_channels, y_shape.elements());
  const auto x = Draw(x_shape.elements(), 1), w = Draw(w_shape.elements(), 2);
  const auto bias = Draw(columns * groups, 3);
  std::vector<double> want;
  for (int64_t pixel = 0; pixel < g.batch * g.out_pixels(); ++pixel) {
    const int64_t o2 = pixel % g.axis[2].out, o1 = pixel / g.axis[2].out % g.axis[1].out;
    const int64_t sample = pixel / g.out_pixels();
    for (int64_t c = 0; c < g.out_channels; ++c) {
      double sum = static_cast<double>(bias[c]);
      for (int64_t t1 = 0; t1 < 3; ++t1) {
        for (int64_t t2 = 0; t2 < 3; ++t2) {
          const int64_t p1 = g.axis[1].start(o1) + t1, p2 = g.axis[2].start(o2) + t2 * 2;
          if (p1 < 0 || p1 >= g.axis[1].in || p2 < 0 || p2 >= g.axis[2].in) continue;
          for (int64_t i = 0; i < channels; ++i) {
            const int64_t from = (sample * g.axis[1].in + p1) * g.axis[2].in + p2;
            sum += static_cast<double>(x[from * g.in_channels + c / columns * channels + i]) *
                   static_cast<double>(w[((t1 * 3 + t2) * channels + i) * g.out_channels + c]);
          }
        }
      }
      want.push_back(gelu ? sum * 0.5 * std::erfc(-sum * M_SQRT1_2) : sum);
    }
  }
  ExpectNear(Run(make(g, node), {x, w, bias}, want.size()), want,
             static_cast<double>(9 * channels));
}

TEST_F(OpenClTiles, EveryTileMultipliesAndEveryPartCounts) {
  int at = 0;
  for (const Tile& tile : AllTiles()) {
    if (!Has(tile)) continue;
    // One whole tile and an edge each way; a short last slice; parts of different lengths.
    const bool lanes = tile.sub_group > 0;
    const bool swap_a = at % 2 == 1 && !lanes, swap_b = at / 2 % 2 == 1 && !lanes;
    const int64_t n = lanes ? 2 * tile.columns() : tile.columns() + 8, k = lanes ? 80 : 92;
    const int64_t parts = at % 3 == 0 ? 1 : 3;
    SCOPED_TRACE(StrCat("tile ", tile.rows(), " x ", tile.columns(), " of ", tile.threads(), ", ",
                        parts, " parts, swapped ", swap_a, swap_b));
    dtype_ = tile.matrix == 0 ? DType::kF32 : at % 2 == 0 ? DType::kF16 : DType::kBF16;
    ++at;
    const TilePlan plan{tile, parts, parts == 1 ? 96 : 32};
    ExpectProduct(tile.rows() + 12, n, k, swap_a, swap_b,
                  [&](const MatMulGeometry& g, const NodeView& node, int64_t most) {
                    return TiledMatMul("relu", g, plan, node, most, device_->capabilities());
                  });
  }
  EXPECT_GT(at, 0);
}

TEST_F(OpenClTiles, EveryTileConvolvesAndEveryPartCounts) {
  int at = 0;
  for (const Tile& tile : AllTiles()) {
    if (!Has(tile) || tile.sub_group > 0) continue;
    const int64_t parts = at % 2 == 0 ? 1 : 3, groups = at % 3 == 1 ? 2 : 1;
    const bool gelu = at % 2 == 0;
    SCOPED_TRACE(StrCat("tile ", tile.rows(), " x ", tile.columns(), " of ", tile.threads(), ", ",
                        parts, " parts, ", groups, " groups"));
    dtype_ = tile.matrix == 0 ? DType::kF32 : at % 2 == 0 ? DType::kF16 : DType::kBF16;
    ++at;
    const TilePlan plan{tile, parts, parts == 1 ? 112 : 48};
    ExpectConvolution(tile.rows() / 8, 12, tile.columns() + 4, groups, gelu,
                      [&](const WindowGeometry& g, const NodeView& node) {
                        return TiledConv(gelu ? "gelu" : "none", g, plan, false, node,
                                         device_->capabilities());
                      });
  }
  EXPECT_GT(at, 0);
}

TEST_F(OpenClTiles, RegistersAloneMultiplyAndConvolve) {
  for (const GpuFamily family : {GpuFamily::kMali, GpuFamily::kAdreno}) {
    Capabilities caps = device_->capabilities();
    caps.family = family;
    if (!TakesRegisters({64, 64, 64, 1}, caps)) GTEST_SKIP() << "groups of one only";
    const auto product = [&](const MatMulGeometry& g, const NodeView& node, int64_t most) {
      return RegisterMatMul("relu", g, node, most, caps);
    };
    for (const auto& [m, n, k] : {std::tuple{37, 44, 68}, {2, 3, 5}}) {
      for (const bool swap : {false, true}) ExpectProduct(m, n, k, swap, swap, product);
    }
    for (const auto& [channels, columns, groups] : {std::tuple{12, 20, 2}, {3, 9, 1}}) {
      for (const bool gelu : {false, true}) {
        ExpectConvolution(7, channels, columns, groups, gelu,
                          [&](const WindowGeometry& g, const NodeView& node) {
                            return RegisterConv(gelu ? "gelu" : "none", g, false, node, caps);
                          });
      }
    }
  }
}

Capabilities Gpu(GpuFamily family, int64_t units) {
  Capabilities caps;
  caps.family = family;
  caps.local_groups = true;
  caps.max_work_group = 1024;
  caps.local_memory = 48 << 10;
  caps.compute_units = units;
  caps.max_allocation = int64_t{1} << 32;
  return caps;
}

TEST(OpenClTilePlans, SmallOutputsDivideKAndLargeOnesDoNot) {
  const Capabilities h200 = Gpu(GpuFamily::kNvidia, 132);
  EXPECT_EQ(PlanTiles({4096, 4096, 4096, 1}, h200).parts, 1);
  EXPECT_EQ(PlanTiles({4096, 4096, 4096, 1}, h200).tile.rows(), 128);
  const TilePlan small = PlanTiles({49, 512, 4608, 1}, h200);
  EXPECT_GE(small.parts, 8);
  EXPECT_EQ(small.part_k % 16, 0);
  EXPECT_LT((small.parts - 1) * small.part_k, 4608);
  EXPECT_GE(small.parts * small.part_k, 4608);
  EXPECT_EQ(PlanTiles({49, 512, 64, 1}, h200).parts, 1);
}

TEST(OpenClTilePlans, MatrixUnitsTakeProductsOf16BitsAndOfBytes) {
  Capabilities caps = Gpu(GpuFamily::kNvidia, 132);
  ProductSizes p{4096, 4096, 4096, 1};
  p.halves = true;
  EXPECT_EQ(PlanTiles(p, caps).tile.matrix, 0);
  const double clocks = ExpectedClocks(p, caps);
  caps.matrix_unit = MatrixUnit::kPtx;
  EXPECT_EQ(PlanTiles(p, caps).tile.matrix, 2);
  EXPECT_EQ(PlanTiles(p, caps).tile.rows(), 128);
  EXPECT_LT(2 * ExpectedClocks(p, caps), clocks);
  p.halves = false;
  EXPECT_EQ(PlanTiles(p, caps).tile.matrix, 0);
  p.bytes = true;
  EXPECT_EQ(PlanTiles(p, caps).tile.matrix, 4);
  p.row_sums = true;
  EXPECT_EQ(PlanTiles(p, caps).tile.matrix, 0);
  p.bytes = false;
  p.halves = true;
  caps.family = GpuFamily::kAny;
  caps.max_work_group = 32;  // no tile of a matrix unit has so few work-items
  EXPECT_EQ(PlanTiles(p, caps).tile.matrix, 0);
}

TEST(OpenClTilePlans, TheEnvironmentSaysWhetherThereAreMatrixUnits) {
  ExpectChosenByEnvironment<std::optional<MatrixUnit>>(
      "ONCILLA_CL_MATRIX", ForcedMatrixFromEnvironment,
      {{"none", MatrixUnit::kNone}, {"written", MatrixUnit::kWritten}, {"", std::nullopt}}, "ptx");
}

// Therefore the order of sums is the same on all devices of a class.
TEST(OpenClTilePlans, PartsDoNotFollowTheExactNumberOfCores) {
  for (const ProductSizes& p : {ProductSizes{49, 512, 4608, 1}, ProductSizes{196, 256, 2304, 1},
                                ProductSizes{128, 768, 3072, 1}, ProductSizes{784, 128, 1152, 1}}) {
    for (const GpuFamily family : {GpuFamily::kNvidia, GpuFamily::kAmdWave64}) {
      const int64_t parts = PlanTiles(p, Gpu(family, 128)).parts;
      for (const int64_t units : {92, 104, 132, 180}) {
        EXPECT_EQ(PlanTiles(p, Gpu(family, units)).parts, parts) << units;
      }
    }
  }
}

TEST(OpenClTilePlans, SubGroupsTakeProductsThatFillThem) {
  Capabilities arc = Gpu(GpuFamily::kIntel, 512);
  const ProductSizes large{4096, 4096, 4096, 1, true};
  EXPECT_EQ(PlanTiles(large, arc).tile.sub_group, 0);
  arc.sub_group = 8;
  const TilePlan plan = PlanTiles(large, arc);
  EXPECT_EQ(plan.tile.sub_group, 8);
  EXPECT_EQ(PlanTiles({4096, 4100, 4096, 1, true}, arc).tile.sub_group, 0);
  EXPECT_EQ(PlanTiles({4096, 4096, 4100, 1, true}, arc).tile.sub_group, 0);
  EXPECT_EQ(PlanTiles({4096, 4096, 4096, 1, false}, arc).tile.sub_group, 0);
  const auto ops = OpSet::Builtin();
  MatMulAttrs attrs;
  const Shape shape{4096, 4096};
  const Facts in = {Fact::Of({DType::kF32, shape}), Fact::Of({DType::kF32, shape}),
                    Fact::Of({DType::kF32, {4096}}), Fact::Of({DType::kF32, shape})};
  const Facts out = {Fact::Of({DType::kF32, shape})};
  const AttrMap none;
  const NodeView node{ops->Find("MatMul"), &none, in, out, "y"};
  const MatMulGeometry g = GeometryOf(attrs, shape, shape);
  EXPECT_TRUE(SizesOf(g, DType::kF32).sub_groups);
  EXPECT_FALSE(SizesOf(g, DType::kF16).sub_groups);
  for (const int64_t parts : {1, 2}) {
    const Recipe recipe =
        TiledMatMul("relu", g, {plan.tile, parts, 4096 / parts}, node, shape.elements(), arc);
    for (const Dispatch& d : recipe.dispatches) {
      const Status status = oncilla::testing::CheckSignature(d);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

TEST(OpenClTilePlans, TilesFitTheDevice) {
  Capabilities caps = Gpu(GpuFamily::kNvidia, 132);
  caps.max_work_group = 64;
  EXPECT_LE(PlanTiles({4096, 4096, 4096, 1}, caps).tile.threads(), 64);
  caps.local_memory = 12 << 10;
  EXPECT_LE(PlanTiles({4096, 4096, 4096, 1}, caps).tile.local_bytes(), 12 << 10);
  caps.local_memory = 1 << 10;
  EXPECT_FALSE(HasTiles(caps));
}

}  // namespace
}  // namespace oncilla::opencl
