// Winograd's convolution on a device, in both shapes, against sums in double: errors of ResNet-50's
// layers, borders, blocks, infinities and NaN where direct sums have them; and which convolutions
// take it.
#include "backends/opencl/recipes/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "backends/cpu/windows.h"
#include "backends/opencl/device.h"
#include "backends/opencl/recipes/tuning.h"
#include "engine/ops/op_set.h"
#include "tests/unit/support/environment.h"
#include "tests/unit/support/opencl_device.h"

namespace oncilla::opencl {
namespace {

std::vector<float> Numbers(int64_t count, uint32_t seed, float low = -1, float high = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> v(static_cast<size_t>(count));
  for (float& f : v) f = uniform(random);
  return v;
}

// A convolution with a bias and, where not empty, a residual.
struct Problem {
  Problem(Shape image, int64_t columns, std::vector<int64_t> pads)
      : x_shape(std::move(image)), w_shape{3, 3, x_shape[3], columns} {
    attrs.pads = std::move(pads);
    x = Numbers(x_shape.elements(), 1);
    w = Numbers(w_shape.elements(), 2);
    bias = Numbers(columns, 3);
    y_shape = {x_shape[0], x_shape[1] + attrs.pads[0] + attrs.pads[2] - 2,
               x_shape[2] + attrs.pads[1] + attrs.pads[3] - 2, columns};
  }
  ConvAttrs attrs;
  Shape x_shape, w_shape, y_shape;
  std::vector<float> x, w, bias, residual;
};

class OpenClWinograd : public ::testing::TestWithParam<KernelShape> {
 protected:
  void SetUp() override {
    ONCILLA_NEEDS_OPENCL();
    Open(WinogradChoice::kTwo);
    if (!device_->capabilities().local_groups) GTEST_SKIP() << "groups of one only";
  }
  void Open(WinogradChoice choice) {
    const FoundDevice& found = *TheTestDevice().found;
    DeviceInfo info;
    info.name = found.facts.name;
    info.alignment_bytes = std::max<int64_t>(found.facts.base_alignment, 128);
    device_.reset();
    ClDeviceOptions options;
    options.shape = GetParam();
    options.winograd = choice;
    auto opened = ClDevice::Open(found, info, options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = *std::move(opened);
  }

  std::vector<float> Run(const Problem& p) {
    Facts in = {Fact::Of({DType::kF32, p.x_shape}), Fact::Of({DType::kF32, p.w_shape}),
                Fact::Of({DType::kF32, p.bias.empty() ? Shape{} : Shape{p.w_shape[3]}})};
    in[1].constant = true;
    if (!p.residual.empty()) in.push_back(Fact::Of({DType::kF32, p.y_shape}));
    const Facts out = {Fact::Of({DType::kF32, p.y_shape})};
    const AttrMap attrs = WriteAttrs(p.attrs);
    const NodeView node{ops_->Find("Conv"), &attrs, in, out, "y"};
    auto packing = device_->PackingFor(node, 1);
    EXPECT_TRUE(packing.ok()) << packing.status();
    EXPECT_TRUE(packing->name.starts_with("winograd")) << packing->name;
    Tensor weights = Tensor::Allocate({DType::kF32, p.w_shape}).value();
    std::memcpy(weights.mutable_bytes().data(), p.w.data(), p.w.size() * 4);
    std::vector<std::byte> packed(static_cast<size_t>(packing->bytes));
    EXPECT_TRUE(packing->write(weights, packed).ok());
    auto kernel = device_->Prepare(node);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_NE((*kernel)->description().find("conv/winograd.cl:output"), std::string::npos);
    EXPECT_TRUE((*kernel)->description().starts_with("conv/winograd:input"));

    std::vector<std::span<const std::byte>> inputs = {std::as_bytes(std::span(p.x)), packed,
                                                      std::as_bytes(std::span(p.bias))};
    if (!p.residual.empty()) inputs.push_back(std::as_bytes(std::span(p.residual)));
    std::vector<float> y(static_cast<size_t>(p.y_shape.elements()), -1);
    std::vector<BufferView> views;
    int64_t bytes = 0;
    const auto add = [&](int64_t count) {
      views.push_back({nullptr, bytes, count});
      bytes += RoundUp(count, device_->info().alignment_bytes);
    };
    for (const auto& input : inputs) add(static_cast<int64_t>(input.size()));
    add(static_cast<int64_t>(y.size() * 4));
    add((*kernel)->scratch_bytes());
    auto region = device_->AllocateRegion(bytes).value();
    for (BufferView& view : views) view.region = region.get();
    std::vector<Upload> uploads;
    for (size_t i = 0; i < inputs.size(); ++i) uploads.push_back({views[i], inputs[i]});
    Step step{kernel->get(), {}, {{views[inputs.size()]}}, views.back(), "y"};
    for (size_t i = 0; i < inputs.size(); ++i) step.inputs.push_back({views[i]});
    {
      auto queue = device_->OpenQueue().value();
      auto recording = device_->Record({step});
      EXPECT_TRUE(recording.ok()) << recording.status();
      const auto wait = [&](const Result<EventPtr>& event) {
        EXPECT_TRUE(event.ok()) << event.status();
        EXPECT_TRUE(device_->Wait(*event, kNoDeadline).ok());
      };
      wait(device_->Transfer(*queue, uploads, {}));
      wait(device_->Submit(*queue, **recording, {}, {}));
      const Download download{std::as_writable_bytes(std::span(y)), views[inputs.size()]};
      wait(device_->Transfer(*queue, {}, {&download, 1}));
    }
    EXPECT_TRUE(device_->ReleaseRegion(std::move(region)).ok());
    return y;
  }

  const std::shared_ptr<const OpSet> ops_ = OpSet::Builtin();
  std::unique_ptr<ClDevice> device_;
};

// Sums in double, of every `each`-th output.
std::vector<double> Expected(const Problem& p, size_t each = 1) {
  WindowGeometry g;
  g.batch = p.x_shape[0];
  g.in_channels = p.x_shape[3];
  g.out_channels = p.w_shape[3];
  for (int i = 0; i < 2; ++i) {
    g.axis[static_cast<size_t>(1 + i)] = {.in = p.x_shape[1 + i],
                                          .out = p.y_shape[1 + i],
                                          .kernel = 3,
                                          .pad_begin = p.attrs.pads[static_cast<size_t>(i)]};
  }
  std::vector<double> y;
  for (int64_t at = 0; at < p.y_shape.elements(); at += static_cast<int64_t>(each)) {
    const int64_t n = at % g.out_channels;
    double sum = static_cast<double>(p.bias[static_cast<size_t>(n)]);
    if (!p.residual.empty()) sum += static_cast<double>(p.residual[static_cast<size_t>(at)]);
    cpu::ForTaps(g, at / g.out_channels, [&](int64_t pixel, int64_t tap) {
      for (int64_t c = 0; c < g.in_channels; ++c) {
        sum += static_cast<double>(p.x[static_cast<size_t>(pixel * g.in_channels + c)]) *
               static_cast<double>(
                   p.w[static_cast<size_t>((tap * g.in_channels + c) * g.out_channels + n)]);
      }
    });
    y.push_back(p.attrs.activation == "relu" && sum < 0 ? 0 : sum);
  }
  return y;
}

// The tolerance of cases (tests/case_runner/case_file.h), which also requires equal infinities;
// single sums of 64 channels in tiles of 4 x 4 reach 1.1e-5 instead of its 1e-5.
void ExpectRight(const Problem& p, const std::vector<float>& y) {
  const std::vector<double> want = Expected(p);
  ASSERT_EQ(y.size(), want.size());
  double largest = 0;
  for (const double v : want) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  }
  int wrong = 0;
  for (size_t i = 0; i < y.size() && wrong < 4; ++i) {
    const double got = static_cast<double>(y[i]),
                 w = static_cast<double>(static_cast<float>(want[i]));
    const bool right = std::isnan(w)   ? std::isnan(got)
                       : std::isinf(w) ? got == w
                                       : std::abs(got - w) <= 2e-5 * (std::abs(w) + 0.1 * largest);
    if (right) continue;
    ++wrong;
    ADD_FAILURE() << "element " << i << " is " << got << ", expected " << w << "; largest "
                  << largest;
  }
}

constexpr WinogradChoice kBoth[] = {WinogradChoice::kTwo, WinogradChoice::kFour};

// The layers of ResNet-50 that have a tile, with numbers whose sums are harder than those of nets:
// the documented relative error is 1e-6.
TEST_P(OpenClWinograd, ErrorsOfResNet50sLayers) {
  for (const auto& [side, channels] : {std::pair{56, 64}, {28, 128}, {14, 256}}) {
    const Problem p({1, side, side, channels}, channels, {1, 1, 1, 1});
    Open(WinogradChoice::kEstimate);
    const int tile = WinogradTileFor(p.attrs, {DType::kF32, p.w_shape}, device_->capabilities());
    EXPECT_EQ(tile, channels <= 128 ? 4 : 2);
    Open(tile == 4 ? WinogradChoice::kFour : WinogradChoice::kTwo);
    const std::vector<float> y = Run(p);
    constexpr size_t kEach = 37;
    const std::vector<double> want = Expected(p, kEach);
    double error = 0, all = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error += std::pow(static_cast<double>(y[i * kEach]) - want[i], 2);
      all += std::pow(want[i], 2);
    }
    const double relative = std::sqrt(error / all);
    EXPECT_LE(relative, 1e-6) << channels << " channels";
    std::printf("%s, %d channels: relative error %.2e\n", std::string(Name(GetParam())).c_str(),
                channels, relative);
  }
}

TEST_P(OpenClWinograd, BordersChannelsAndBatches) {
  for (const WinogradChoice choice : kBoth) {
    Open(choice);
    for (const auto& [height, width, channels, columns] : {std::tuple{1, 2, 4, 8},

                                                           {5, 9, 36, 20},
                                                           {13, 6, 132, 32}}) {
      for (const std::vector<int64_t>& pads :
           {std::vector<int64_t>{1, 1, 1, 1}, {2, 0, 0, 3}, {0, 1, 2, 0}}) {
        if (height + pads[0] + pads[2] < 3 || width + pads[1] + pads[3] < 3) continue;
        SCOPED_TRACE(StrCat(height, " x ", width, ", ", channels, " to ", columns));
        Problem p({2, height, width, channels}, columns, pads);
        p.residual = Numbers(p.y_shape.elements(), 4);
        ExpectRight(p, Run(p));
      }
    }
  }
}

// More tiles than a block holds, on devices that process them in blocks; and bit-identical results
// when repeated.
TEST_P(OpenClWinograd, ManyTiles) {
  for (const WinogradChoice choice : kBoth) {
    Open(choice);
    Problem p({1, 135, 93, 32}, 36, {1, 1, 1, 0});
    const std::vector<float> y = Run(p);
    ExpectRight(p, y);
    EXPECT_EQ(std::memcmp(y.data(), Run(p).data(), y.size() * 4), 0);
  }
}

TEST_P(OpenClWinograd, InfinitiesAndNanStandWhereSumsHaveThem) {
  constexpr float kInf = INFINITY;
  for (const WinogradChoice choice : kBoth) {
    Open(choice);
    Problem p({1, 11, 10, 8}, 36, {1, 1, 1, 1});
    for (size_t i = 0; i < p.w.size(); ++i) {
      if (i % 3 == 0) p.w[i] = 0;
      if (i % 7 == 1) p.w[i] *= 1e-12f;
    }
    for (const float strange : {kInf, -kInf, NAN}) {
      for (size_t pixel = 0; pixel < 110; pixel += 17) {
        SCOPED_TRACE(StrCat(strange, " in pixel ", pixel));
        Problem one = p;
        one.x[pixel * 8 + pixel % 8] = strange;
        ExpectRight(one, Run(one));
        one.x[(pixel + 12) % 110 * 8] = -kInf;
        one.attrs.activation = "relu";
        ExpectRight(one, Run(one));
      }
    }
    // From the epilogue, not from the convolution.
    p.bias[5] = kInf;
    p.residual = Numbers(p.y_shape.elements(), 4);
    p.residual[200] = NAN;
    ExpectRight(p, Run(p));
  }
}

TEST_P(OpenClWinograd, OverflowOnTheWayIsNotOneOfTheResult) {
  for (const WinogradChoice choice : kBoth) {
    Open(choice);
    Problem p({1, 9, 10, 4}, 20, {1, 1, 1, 1});
    for (size_t i = 0; i < p.x.size(); i += 5) p.x[i] = i % 2 == 0 ? 1.5e38f : -1.5e38f;
    for (float& w : p.w) w *= 0.0625f;
    ExpectRight(p, Run(p));
  }
}

TEST_P(OpenClWinograd, WeightsThatAreNotTransformed) {
  for (const WinogradChoice choice : kBoth) {
    Open(choice);
    for (const float strange : {INFINITY, -INFINITY, NAN, 1e35f, 0.0f}) {
      SCOPED_TRACE(strange);
      Problem p({1, 8, 8, 4}, 12, {0, 0, 0, 0});
      p.w[17] = strange;
      if (strange == 0) {
        for (float& w : p.w) w *= 1e-33f;
        std::ranges::fill(p.bias, 0.0f);
      }
      ExpectRight(p, Run(p));
    }
    Problem zeros({1, 8, 8, 4}, 12, {1, 1, 1, 1});
    std::ranges::fill(zeros.w, 0.0f);
    ExpectRight(zeros, Run(zeros));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, OpenClWinograd,
                         ::testing::Values(KernelShape::kGpu, KernelShape::kCpu),
                         [](const auto& info) { return std::string(Name(info.param)); });

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

// Depends on the filter alone, since it is packed before sizes are known.
TEST(OpenClWinogradChoice, WhichFilters) {
  const Capabilities caps = Gpu(GpuFamily::kNvidia, 28);
  const auto tile = [&](const ConvAttrs& attrs, const Shape& filter, DType dtype = DType::kF32) {
    return WinogradTileFor(attrs, {dtype, filter}, caps);
  };
  const ConvAttrs plain;
  EXPECT_EQ(tile(plain, {3, 3, 64, 64}), 4);
  EXPECT_EQ(tile(plain, {3, 3, 128, 96}), 4);
  EXPECT_EQ(tile(plain, {3, 3, 256, 256}), 2);
  EXPECT_EQ(tile(plain, {3, 3, 64, 64}, DType::kF16), 0);
  for (const Shape& filter :
       {Shape{3, 3, 3, 64}, Shape{3, 3, 512, 512}, Shape{5, 5, 64, 64}, Shape{3, 1, 64, 64},
        Shape{3, 64, 64}, Shape{3, 3, 3, 64, 64}, Shape{3, 3, 66, 64}, Shape{3, 3, 64, 66}}) {
    EXPECT_EQ(tile(plain, filter), 0) << filter;
  }
  for (const auto change : {+[](ConvAttrs& a) {
                              a.strides = {1, 2};
                            },
                            +[](ConvAttrs& a) {
                              a.dilations = {2, 1};
                            },
                            +[](ConvAttrs& a) { a.groups = 2; }}) {
    ConvAttrs other = plain;
    change(other);
    EXPECT_EQ(tile(other, {3, 3, 64, 64}), 0);
  }
  Capabilities none = caps;
  none.winograd = WinogradChoice::kNone;
  EXPECT_EQ(WinogradTileFor(plain, {DType::kF32, {3, 3, 64, 64}}, none), 0);
  EXPECT_EQ(WinogradTileFor(plain, {DType::kF32, {3, 3, 64, 64}}, Gpu(GpuFamily::kMali, 10)), 0);
}

WindowGeometry Square(int64_t batch, int64_t side, int64_t channels) {
  WindowGeometry g;
  g.batch = batch;
  g.in_channels = g.out_channels = channels;
  g.axis[1] = g.axis[2] = {.in = side, .out = side, .kernel = 3, .pad_begin = 1, .pad_end = 1};
  return g;
}

TEST(OpenClWinogradChoice, TheEnvironmentSaysSo) {
  ExpectChosenByEnvironment<WinogradChoice>("ONCILLA_CL_WINOGRAD", WinogradFromEnvironment,
                                            {{"none", WinogradChoice::kNone},
                                             {"2", WinogradChoice::kTwo},
                                             {"4", WinogradChoice::kFour},
                                             {"", WinogradChoice::kEstimate}},
                                            "3");
}

TEST(OpenClWinogradChoice, TheEstimateTakesItWhereItGains) {
  const Capabilities rdna = Gpu(GpuFamily::kAmdWave32, 20), geforce = Gpu(GpuFamily::kNvidia, 28);
  EXPECT_TRUE(WinogradPays(Square(64, 28, 128), 4, rdna));
  EXPECT_TRUE(WinogradPays(Square(1, 14, 256), 2, rdna));
  // So few outputs that reading four times the weights dominates the time.
  EXPECT_FALSE(WinogradPays(Square(1, 7, 256), 2, geforce));
  EXPECT_FALSE(WinogradPays(Square(1, 4, 128), 4, rdna));
  Capabilities cpu = Gpu(GpuFamily::kAny, 2);
  cpu.shape = KernelShape::kCpu;
  cpu.vector_width = 16;
  EXPECT_TRUE(WinogradPays(Square(1, 56, 64), 4, cpu));
  EXPECT_FALSE(WinogradPays(Square(1, 4, 64), 4, cpu));
}

}  // namespace
}  // namespace oncilla::opencl
