// Converts pixels to an input: channels as in the input's shape, then resizing, mean and scale,
// layout, and type.
#include "tools/oncilla/files/image.h"

#include <algorithm>
#include <cmath>

#include "engine/base/half.h"

namespace oncilla::tool {
namespace {

// The source pixels of one target pixel along one axis, with their weights.
struct Tap {
  int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Tap> MakeTaps(int64_t from, int64_t to) {
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(1.0, ratio);
  std::vector<Tap> taps(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * ratio;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - reach)));
    const auto last = std::min<int64_t>(from, static_cast<int64_t>(std::ceil(centre + reach)));
    Tap& tap = taps[static_cast<size_t>(i)];
    tap.first = first;
    double sum = 0;
    std::vector<double> weights;
    for (int64_t k = first; k < last; ++k) {
      const double distance = std::abs(static_cast<double>(k) + 0.5 - centre) / reach;
      weights.push_back(std::max(0.0, 1.0 - distance));
      sum += weights.back();
    }
    for (double w : weights) tap.weights.push_back(static_cast<float>(w / sum));
  }
  return taps;
}

struct InputForm {
  bool channels_first = false;
  int64_t channels = 3;
};

Result<InputForm> FormOf(const PartialShape& shape, const ImageOptions& options) {
  InputForm form;
  if (options.layout && *options.layout != "nhwc" && *options.layout != "nchw") {
    return WithStage(InvalidArgument("layout '", *options.layout, "' is neither nhwc nor nchw"),
                     Stage::kOptions);
  }
  const auto is_channels = [](const Dim& dim) {
    return dim.size == 1 || dim.size == 3 || dim.size == 4;
  };
  const bool ranked = shape.ranked() && (shape.rank() == 3 || shape.rank() == 4);
  const int first = ranked ? shape.rank() - 3 : 0, last = ranked ? shape.rank() - 1 : 0;
  if (options.layout) {
    form.channels_first = *options.layout == "nchw";
  } else if (ranked) {
    form.channels_first = !is_channels(shape[last]) && is_channels(shape[first]);
  }
  if (ranked) {
    const Dim& channels = shape[form.channels_first ? first : last];
    if (is_channels(channels)) form.channels = channels.size;
  }
  return form;
}

Status CheckPerChannel(const std::vector<double>& values, int64_t channels, std::string_view flag) {
  if (values.size() <= 1 || static_cast<int64_t>(values.size()) == channels) return {};
  return WithStage(InvalidArgument(flag, " has ", values.size(), " numbers, the image ", channels,
                                   " channels: give one number, or one per channel"),
                   Stage::kOptions);
}

template <class T>
T FromPixel(float value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::lround(value));
  } else {
    return T(value);
  }
}

template <class T>
void Store(const std::vector<float>& pixels, int64_t area, int64_t channels, bool channels_first,
           Tensor& out) {
  const std::span<T> to = out.MutableAs<T>();
  for (int64_t i = 0; i < area; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t at = channels_first ? c * area + i : i * channels + c;
      to[static_cast<size_t>(at)] = FromPixel<T>(pixels[static_cast<size_t>(i * channels + c)]);
    }
  }
}

}  // namespace

std::vector<float> Resize(const Image& image, int64_t height, int64_t width) {
  const int64_t channels = image.channels;
  if (height == image.height && width == image.width) {
    return {image.pixels.begin(), image.pixels.end()};
  }
  const std::vector<Tap> columns = MakeTaps(image.width, width);
  std::vector<float> wide(static_cast<size_t>(image.height * width * channels));
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* row = image.pixels.data() + y * image.width * channels;
    for (int64_t x = 0; x < width; ++x) {
      const Tap& tap = columns[static_cast<size_t>(x)];
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (size_t k = 0; k < tap.weights.size(); ++k) {
          sum += tap.weights[k] * row[(tap.first + static_cast<int64_t>(k)) * channels + c];
        }
        wide[static_cast<size_t>((y * width + x) * channels + c)] = sum;
      }
    }
  }
  const std::vector<Tap> rows = MakeTaps(image.height, height);
  const int64_t stride = width * channels;
  std::vector<float> out(static_cast<size_t>(height * stride));
  for (int64_t y = 0; y < height; ++y) {
    const Tap& tap = rows[static_cast<size_t>(y)];
    float* to = out.data() + y * stride;
    for (size_t k = 0; k < tap.weights.size(); ++k) {
      const float* from = wide.data() + (tap.first + static_cast<int64_t>(k)) * stride;
      for (int64_t i = 0; i < stride; ++i) to[i] += tap.weights[k] * from[i];
    }
  }
  return out;
}

Result<Tensor> ImageTensor(std::span<const std::byte> bytes, DType dtype, const PartialShape& shape,
                           const ImageOptions& options) {
  ONCILLA_ASSIGN(const InputForm form, FormOf(shape, options));
  if (dtype == DType::kInvalid) dtype = options.changes_values() ? DType::kF32 : DType::kU8;
  if (!IsFloat(dtype) && (dtype != DType::kU8 || options.changes_values())) {
    return WithStage(
        InvalidArgument("the input is ", dtype, "; an image gives ",
                        options.changes_values() ? "float types once --mean or --scale are given"
                                                 : "uint8 or float types"),
        Stage::kOptions);
  }
  ONCILLA_TRY(CheckPerChannel(options.mean, form.channels, "--mean"));
  ONCILLA_TRY(CheckPerChannel(options.scale, form.channels, "--scale"));
  ONCILLA_ASSIGN(const Image image, DecodeImage(bytes, form.channels));
  const int64_t height = options.resize ? (*options.resize)[0] : image.height;
  const int64_t width = options.resize ? (*options.resize)[1] : image.width;
  std::vector<float> pixels = Resize(image, height, width);
  const auto per_channel = [](const std::vector<double>& values, size_t c, double otherwise) {
    return values.empty() ? otherwise : values[values.size() == 1 ? 0 : c];
  };
  if (options.changes_values()) {
    const auto channels = static_cast<size_t>(form.channels);
    for (size_t i = 0; i < pixels.size(); ++i) {
      const double mean = per_channel(options.mean, i % channels, 0);
      const double scale = per_channel(options.scale, i % channels, 1);
      pixels[i] = static_cast<float>((pixels[i] - mean) * scale);
    }
  }
  const Shape out_shape = form.channels_first ? Shape{1, form.channels, height, width}
                                              : Shape{1, height, width, form.channels};
  const bool batched = !shape.ranked() || shape.rank() != 3;
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({dtype, out_shape}));
  const int64_t area = height * width;
  if (dtype == DType::kU8) Store<uint8_t>(pixels, area, form.channels, form.channels_first, out);
  if (dtype == DType::kF32) Store<float>(pixels, area, form.channels, form.channels_first, out);
  if (dtype == DType::kF64) Store<double>(pixels, area, form.channels, form.channels_first, out);
  if (dtype == DType::kF16) Store<Half>(pixels, area, form.channels, form.channels_first, out);
  if (dtype == DType::kBF16) Store<BFloat16>(pixels, area, form.channels, form.channels_first, out);
  if (batched) return out;
  Shape unbatched(out_shape.begin() + 1, out_shape.end());
  return out.Reshaped(std::move(unbatched));
}

}  // namespace oncilla::tool
