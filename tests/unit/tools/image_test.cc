// Photographs: pixels as Pillow decodes them (digests of testdata/files/make_files.py), channels,
// resizing, mean and scale, layout, and the SVG of a result.
#include "tools/oncilla/files/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "tools/oncilla/files/svg.h"

namespace oncilla::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Bytes(const std::string& name) {
  return *ReadFile(std::string(ONCILLA_SOURCE_DIR "/testdata/files/") + name, 1 << 20);
}

Result<Image> Decode(const std::string& bytes, int64_t channels) {
  return DecodeImage(std::as_bytes(std::span(bytes)), channels);
}

std::string Digest(const Image& image) {
  return Sha256Hex({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
}

TEST(ImageTest, DecodesWhatPillowDecodes) {
  const std::pair<const char*, const char*> kImages[] = {
      {"rgb.png", "96b45ed4d7d1e32ac1e9cef9c6989104a93fcc8379d20ce338d3922aafa28c37"},
      {"rgba.png", "96b45ed4d7d1e32ac1e9cef9c6989104a93fcc8379d20ce338d3922aafa28c37"},
      {"grey.png", "fa68da2d3fb4aef8f669f707cae706d550709a7cdfa95294fbd525bd9ada43f3"},
      {"grey16.png", "fa68da2d3fb4aef8f669f707cae706d550709a7cdfa95294fbd525bd9ada43f3"},
      {"palette.png", "6c56d0b093b227f30bf1443e174a6612f0bdcb25c80f42b00e0248a023db0280"},
      {"smooth.jpg", "a2df5b5b845e322fcbf04ef7d68b5487dcb296aa51c9cf1fc7993a4b043da0b2"},
      {"grey.jpg", "20a22bbd71f4266b733b33cd2bc79b668833f0f64d6af9019d6c27cf90774e02"},
  };
  for (const auto& [name, digest] : kImages) {
    const Result<Image> image = Decode(Bytes(name), 3);
    ASSERT_TRUE(image.ok()) << name << image.status();
    EXPECT_EQ(Digest(*image), digest) << name;
  }
  EXPECT_EQ(Digest(*Decode(Bytes("rgb.png"), 1)),
            "504d91a165fc49150838a99bca540ddeff1f2b0131ef2ee28f9ee72a6a3c4266");
}

TEST(ImageTest, KeepsAlphaWhereThereIsAChannelForIt) {
  const Image rgba = *Decode(Bytes("rgba.png"), 4);
  EXPECT_EQ(rgba.channels, 4);
  EXPECT_NE(rgba.pixels[3], rgba.pixels[7]);
  EXPECT_EQ(Decode(Bytes("smooth.jpg"), 4)->pixels[3], 255);
}

TEST(ImageTest, RefusesEveryTruncation) {
  for (const char* name : {"rgb.png", "palette.png", "smooth.jpg", "grey.jpg"}) {
    const std::string whole = Bytes(name);
    for (size_t i = 0; i < whole.size(); ++i) {
      const Status status = Decode(whole.substr(0, i), 3).status();
      // What follows the last pixel (end marks) may be missing in a JPEG read to its last row.
      EXPECT_TRUE(!status.ok() || i + 16 >= whole.size()) << name << " " << i;
    }
  }
  EXPECT_THAT(Message(Decode(Bytes("cmyk.jpg"), 1).status()), HasSubstr("color conversion"));
  EXPECT_THAT(Message(Decode("GIF89a", 3).status()), HasSubstr("neither"));
}

TEST(ImageTest, SurvivesFlippedBits) {
  for (const char* name : {"rgb.png", "palette.png", "smooth.jpg"}) {
    const std::string whole = Bytes(name);
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
      const Result<Image> image = Decode(flipped, 3);
      if (image.ok()) {
        EXPECT_EQ(image->pixels.size(), size_t(image->height * image->width * image->channels));
      }
    }
  }
}

TEST(ImageTest, ResizesAsPillowDoes) {
  const Image image = *Decode(Bytes("rgb.png"), 3);
  const std::vector<float> small = Resize(image, 5, 7), large = Resize(image, 30, 40);
  const auto expect = [](const std::vector<float>& pixels, size_t at, std::array<float, 3> rgb) {
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(pixels[at * 3 + c], rgb[c], 1e-3) << at;
  };
  expect(small, 0, {165.76945f, 123.28834f, 89.78834f});
  expect(small, 2 * 7 + 3, {148.68024f, 142.39743f, 90.545685f});
  expect(small, 4 * 7 + 6, {150.045f, 124.90833f, 102.655556f});
  expect(large, 0, {248, 194, 190});
  expect(large, 13 * 40 + 21, {123.575005f, 173.515f, 68.89375f});
  expect(large, 29 * 40 + 39, {147, 83, 13});
}

Result<Tensor> Prepare(DType dtype, const PartialShape& shape, const ImageOptions& options) {
  const std::string bytes = Bytes("rgb.png");
  return ImageTensor(std::as_bytes(std::span(bytes)), dtype, shape, options);
}

TEST(ImageTensorTest, FollowsTheInputsTypeLayoutAndChannels) {
  const PartialShape nhwc({Dim(), Dim(), Dim(), Dim(3)});
  const Tensor plain = *Prepare(DType::kU8, nhwc, {});
  EXPECT_EQ(plain.desc(), (TensorDesc{DType::kU8, {1, 12, 17, 3}}));
  const PartialShape nchw({Dim(1), Dim(3), Dim(224), Dim(224)});
  const Tensor planes = *Prepare(DType::kF32, nchw, {});
  EXPECT_EQ(planes.desc(), (TensorDesc{DType::kF32, {1, 3, 12, 17}}));
  EXPECT_EQ(planes.As<float>()[12 * 17 + 5], plain.As<uint8_t>()[5 * 3 + 1]);
  EXPECT_EQ(Prepare(DType::kF32, PartialShape({Dim(), Dim(), Dim(1)}), {})->shape(),
            (Shape{12, 17, 1}));
  EXPECT_EQ(Prepare(DType::kInvalid, PartialShape(), {})->desc(), plain.desc());
  ImageOptions forced;
  forced.layout = "nchw";
  EXPECT_EQ(Prepare(DType::kU8, PartialShape(), forced)->shape(), (Shape{1, 3, 12, 17}));
}

TEST(ImageTensorTest, ResizesThenSubtractsThenScales) {
  ImageOptions options;
  options.resize = {{5, 7}};
  options.mean = {100, 110, 120};
  options.scale = {0.5};
  const Tensor out = *Prepare(DType::kF32, PartialShape(), options);
  EXPECT_EQ(out.shape(), (Shape{1, 5, 7, 3}));
  EXPECT_NEAR(out.As<float>()[0], (165.76945 - 100) / 2, 1e-3);
  EXPECT_NEAR(out.As<float>()[2], (89.78834 - 120) / 2, 1e-3);
  EXPECT_EQ(Prepare(DType::kU8, PartialShape(), {})->dtype(), DType::kU8);
}

TEST(ImageTensorTest, RefusesWhatDoesNotFit) {
  ImageOptions options;
  options.mean = {1, 2};
  EXPECT_THAT(Message(Prepare(DType::kF32, PartialShape(), options).status()),
              HasSubstr("--mean has 2 numbers"));
  options.mean = {1};
  EXPECT_THAT(Message(Prepare(DType::kU8, PartialShape(), options).status()), HasSubstr("float"));
  EXPECT_FALSE(Prepare(DType::kI64, PartialShape(), {}).ok());
  ImageOptions layout;
  layout.layout = "chwn";
  EXPECT_EQ(Details(Prepare(DType::kF32, PartialShape(), layout).status()).stage, Stage::kOptions);
}

TEST(SvgTest, EscapesTextAndEmbedsThePhotograph) {
  const std::string photo = Bytes("rgb.png");
  ClassificationPicture picture{
      "a<b>.png", "x & y", std::as_bytes(std::span(photo)), {{"\"cup\"", 0.9}, {"bad \xff", 0}}};
  const std::string svg = *ClassificationSvg(picture);
  EXPECT_THAT(svg, HasSubstr("<title>a&lt;b&gt;.png</title>"));
  EXPECT_THAT(svg, HasSubstr("&quot;cup&quot;"));
  EXPECT_THAT(svg, HasSubstr("90.0 %"));
  EXPECT_THAT(svg, HasSubstr("bad ?"));
  EXPECT_THAT(svg, HasSubstr("x &amp; y"));
  EXPECT_THAT(svg, HasSubstr("href=\"data:image/png;base64,iVBORw0KGgo"));
  picture.photo = std::as_bytes(std::span(photo).first(40));
  EXPECT_FALSE(ClassificationSvg(picture).ok());
}

}  // namespace
}  // namespace oncilla::tool
