// Crops, projective transforms and glimpses on the CPU, in float as TensorFlow computes them.
#include "engine/ops/nn/image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// Calls fn(const T*) with the first input's data in its type.
template <class F>
Status WithImages(const Args& args, F&& fn) {
  Status status;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) status = fn(args.In<T>(0));
  });
  return status;
}

Status CropAndResize(const CropAndResizeAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape, out = args.out(0).shape;
  const int64_t height = x[1], width = x[2], depth = x[3];
  const IntList images = ReadInts(args.inputs[2], args.in(2).dtype, out[0]);
  for (int64_t image : images) {
    if (image < 0 || image >= x[0]) return IndexError(image, 0, x[0]);
  }
  const float* boxes = args.In<float>(1);
  const auto outside = static_cast<float>(attrs.outside);
  // The coordinate of row (or column) `i` of a crop.
  const auto place = [](float from, float to, int64_t i, int64_t crop, int64_t size) {
    const auto last = static_cast<float>(size - 1);
    if (crop <= 1) return 0.5f * (from + to) * last;
    const float scale = (to - from) * last / static_cast<float>(crop - 1);
    return from * last + static_cast<float>(i) * scale;
  };
  return WithImages(args, [&]<class T>(const T* data) -> Status {
    ParallelFor(args.threads, out[0] * out[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* box = boxes + r / out[1] * 4;
        const T* image = data + images[static_cast<size_t>(r / out[1])] * height * width * depth;
        float* to = args.Out<float>(0) + r * out[2] * depth;
        const float y = place(box[0], box[2], r % out[1], out[1], height);
        const bool row_inside = y >= 0 && y <= LastPlace(height);
        for (int64_t i = 0; i < out[2]; ++i, to += depth) {
          const float at = place(box[1], box[3], i, out[2], width);
          if (!row_inside || !(at >= 0 && at <= LastPlace(width))) {
            std::fill_n(to, depth, outside);
            continue;
          }
          if (attrs.nearest) {
            const auto row = static_cast<int64_t>(std::round(y));
            const T* from = image + (row * width + static_cast<int64_t>(std::round(at))) * depth;
            for (int64_t c = 0; c < depth; ++c) to[c] = static_cast<float>(from[c]);
            continue;
          }
          const auto top = static_cast<int64_t>(std::floor(y));
          const auto left = static_cast<int64_t>(std::floor(at));
          const auto bottom = static_cast<int64_t>(std::ceil(y));
          const auto right = static_cast<int64_t>(std::ceil(at));
          const float down = y - static_cast<float>(top), over = at - static_cast<float>(left);
          for (int64_t c = 0; c < depth; ++c) {
            const auto pixel = [&](int64_t row, int64_t column) {
              return static_cast<float>(image[(row * width + column) * depth + c]);
            };
            const float above = pixel(top, left) + (pixel(top, right) - pixel(top, left)) * over;
            const float below =
                pixel(bottom, left) + (pixel(bottom, right) - pixel(bottom, left)) * over;
            to[c] = above + (below - above) * down;
          }
        }
      }
    });
    return {};
  });
}

struct ResampleKernel {
  std::string name;
  float radius = 1;
  explicit ResampleKernel(const std::string& kernel) : name(kernel) {
    if (name == "lanczos3") radius = 3;
    if (name == "lanczos5") radius = 5;
    if (name == "gaussian") radius = 1.5f;
    if (name == "box") radius = 0.5f;
    if (name == "keyscubic" || name == "mitchellcubic") radius = 2;
  }
  float operator()(float x) const {
    x = std::abs(x);
    if (name == "box") return x < 0.5f ? 1.0f : x == 0.5f ? 0.5f : 0.0f;
    if (name == "triangle") return x < 1.0f ? 1.0f - x : 0.0f;
    if (name == "gaussian") {
      const float sigma = radius / 3.0f;
      return x >= radius ? 0.0f : std::exp(-x * x / (2.0f * sigma * sigma));
    }
    if (name == "keyscubic") {
      if (x >= 2.0f) return 0.0f;
      if (x >= 1.0f) return ((-0.5f * x + 2.5f) * x - 4.0f) * x + 2.0f;
      return ((1.5f * x - 2.5f) * x) * x + 1.0f;
    }
    if (name == "mitchellcubic") {
      if (x >= 2.0f) return 0.0f;
      if (x >= 1.0f) {
        return (((-7.0f / 18.0f) * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f;
      }
      return (((7.0f / 6.0f) * x - 2.0f) * x) * x + 8.0f / 9.0f;
    }
    constexpr float kPi = std::numbers::pi_v<float>;
    if (x > radius) return 0.0f;
    if (x <= 1e-3f) return 1.0f;
    return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
  }
};

// The input pixels that an output of an axis sees, with their weights.
struct Span {
  int64_t start = 0;
  std::vector<float> weights;
};

std::vector<Span> SpansOf(const ResampleKernel& kernel, int64_t out, int64_t in, float scale,
                          float translation, bool antialias) {
  std::vector<Span> spans(static_cast<size_t>(out));
  const float inverse = 1.0f / scale, moved = -inverse * translation;
  const float wide = antialias ? std::max(inverse, 1.0f) : 1.0f;
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * inverse + moved;
    if (!(at >= 0 && at <= static_cast<float>(in))) continue;
    const float reach = kernel.radius * wide;
    const auto clamp = [&](float v) {
      return static_cast<int64_t>(std::clamp(v, 0.0f, LastPlace(in)));
    };
    Span& span = spans[static_cast<size_t>(i)];
    span.start = clamp(std::ceil(at - reach - 0.5f));
    const int64_t end = clamp(std::floor(at + reach - 0.5f)) + 1;
    float total = 0;
    for (int64_t s = span.start; s < end; ++s) {
      span.weights.push_back(kernel((static_cast<float>(s) + 0.5f - at) / wide));
      total += span.weights.back();
    }
    if (std::abs(total) >= 1000.0f * std::numeric_limits<float>::min()) {
      for (float& w : span.weights) w *= 1.0f / total;
    } else {
      span.weights.clear();
    }
  }
  return spans;
}

Status ScaleAndTranslate(const ScaleAndTranslateAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape, out = args.out(0).shape;
  const float *scale = args.In<float>(2), *translation = args.In<float>(3);
  for (int i = 0; i < 2; ++i) {
    if (!(scale[i] > 0)) return InvalidArgument("scale = ", scale[i], " must be positive");
  }
  const ResampleKernel kernel(attrs.kernel);
  const auto rows = SpansOf(kernel, out[1], x[1], scale[0], translation[0], attrs.antialias);
  const auto columns = SpansOf(kernel, out[2], x[2], scale[1], translation[1], attrs.antialias);
  const int64_t depth = x[3], line = x[2] * depth;
  return WithImages(args, [&]<class T>(const T* data) -> Status {
    ParallelFor(args.threads, out[0] * out[1], 4, [&](int64_t begin, int64_t end) {
      std::vector<float> mixed(static_cast<size_t>(line));
      for (int64_t r = begin; r < end; ++r) {
        const Span& row = rows[static_cast<size_t>(r % out[1])];
        const T* image = data + r / out[1] * x[1] * line;
        std::fill(mixed.begin(), mixed.end(), 0.0f);
        for (size_t t = 0; t < row.weights.size(); ++t) {
          const T* from = image + (row.start + static_cast<int64_t>(t)) * line;
          for (int64_t k = 0; k < line; ++k) {
            mixed[static_cast<size_t>(k)] += row.weights[t] * static_cast<float>(from[k]);
          }
        }
        float* to = args.Out<float>(0) + r * out[2] * depth;
        for (int64_t i = 0; i < out[2]; ++i, to += depth) {
          const Span& column = columns[static_cast<size_t>(i)];
          std::fill_n(to, depth, 0.0f);
          for (size_t t = 0; t < column.weights.size(); ++t) {
            const float* from = mixed.data() + (column.start + static_cast<int64_t>(t)) * depth;
            for (int64_t c = 0; c < depth; ++c) to[c] += column.weights[t] * from[c];
          }
        }
      }
    });
    return {};
  });
}

// Maps a coordinate outside an axis of `size` pixels back into it, by the rule for what lies
// beyond.
float Within(const std::string& beyond, float at, int64_t size) {
  if (beyond == "constant" || std::isnan(at)) return at;
  const float length = static_cast<float>(size), last = LastPlace(size);
  if (beyond == "reflect") {
    if (size <= 1) return 0;
    const float twice = 2 * length;
    if (at < 0) {
      at = twice * std::trunc(-at / twice) + at;
      at = at < -length ? at + twice : -at - 1;
    } else if (at > last) {
      at -= twice * std::trunc(at / twice);
      if (at >= length) at = twice - at - 1;
    }
  } else if (beyond == "wrap") {
    if (size <= 1) return 0;
    if (at < 0) {
      at += length * (std::trunc(-at / last) + 1);
    } else if (at > last) {
      at -= length * std::trunc(at / last);
    }
  }
  return std::clamp(at, 0.0f, last);
}

Status ProjectImage(const ProjectImageAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape, out = args.out(0).shape;
  const int64_t depth = x[3];
  const bool one = args.in(1).shape[0] == 1;
  const float fill_value = args.In<float>(3)[0];
  return WithImages(args, [&]<class T>(const T* data) -> Status {
    const T fill = static_cast<T>(fill_value);
    ParallelFor(args.threads, out[0] * out[1], 4, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* t = args.In<float>(1) + (one ? 0 : r / out[1]) * 8;
        const T* image = data + r / out[1] * x[1] * x[2] * depth;
        T* to = args.Out<T>(0) + r * out[2] * depth;
        const auto row = static_cast<float>(r % out[1]);
        for (int64_t i = 0; i < out[2]; ++i, to += depth) {
          const auto column = static_cast<float>(i);
          // The projective transform of the output's pixel; if k is 0, the source is at infinity.
          const float k = t[6] * column + t[7] * row + 1.0f;
          if (k == 0) {
            std::fill_n(to, depth, fill);
            continue;
          }
          const float px = Within(attrs.beyond, (t[0] * column + t[1] * row + t[2]) / k, x[2]);
          const float py = Within(attrs.beyond, (t[3] * column + t[4] * row + t[5]) / k, x[1]);
          for (int64_t c = 0; c < depth; ++c) {
            const auto pixel = [&](float y, float at) {
              const bool inside = y >= 0 && y < static_cast<float>(x[1]) && at >= 0 &&
                                  at < static_cast<float>(x[2]);
              if (!inside) return fill;
              return image[(static_cast<int64_t>(y) * x[2] + static_cast<int64_t>(at)) * depth + c];
            };
            if (!attrs.bilinear) {
              to[c] = pixel(std::round(py), std::round(px));
              continue;
            }
            const float top = std::floor(py), left = std::floor(px);
            const float bottom = top + 1, right = left + 1;
            const auto across = [&](float y) {
              return (right - px) * static_cast<float>(pixel(y, left)) +
                     (px - left) * static_cast<float>(pixel(y, right));
            };
            to[c] = static_cast<T>((bottom - py) * across(top) + (py - top) * across(bottom));
          }
        }
      }
    });
    return {};
  });
}

Status ExtractGlimpse(const ExtractGlimpseAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape, out = args.out(0).shape;
  const int64_t depth = x[3];
  for (int64_t n = 0; n < out[0]; ++n) {
    int64_t first[2];
    for (int axis = 0; axis < 2; ++axis) {
      const auto size = static_cast<float>(x[1 + axis]);
      const auto window = static_cast<float>(out[1 + axis]);
      float at = args.In<float>(2)[n * 2 + axis];
      const bool plain = attrs.second && !attrs.normalized;
      if (attrs.normalized) at *= size;
      if (attrs.centered) at = at / (plain ? 1.0f : 2.0f) + size / 2.0f;
      if (!attrs.second || (attrs.centered && !plain)) at -= window / 2.0f;
      if (!(std::abs(at) < 1e9f)) return InvalidArgument("an offset is out of range: ", at);
      first[axis] = static_cast<int64_t>(at);
    }
    const float* image = args.In<float>(0) + n * x[1] * x[2] * depth;
    float* to = args.Out<float>(0) + n * out[1] * out[2] * depth;
    for (int64_t i = 0; i < out[1]; ++i) {
      for (int64_t j = 0; j < out[2]; ++j, to += depth) {
        const int64_t row = first[0] + i, column = first[1] + j;
        if (row >= 0 && row < x[1] && column >= 0 && column < x[2]) {
          std::copy_n(image + (row * x[2] + column) * depth, depth, to);
        } else if (attrs.random) {
          return Unsupported("a glimpse that reaches beyond the image, with noise there");
        } else {
          std::fill_n(to, depth, 0.0f);
        }
      }
    }
  }
  return {};
}

constexpr std::array<std::array<float, 4>, 10> kColors = {{{1, 1, 0, 1},
                                                           {0, 0, 1, 1},
                                                           {1, 0, 0, 1},
                                                           {0, 1, 0, 1},
                                                           {0.5f, 0, 0.5f, 1},
                                                           {0.5f, 0.5f, 0, 1},
                                                           {0.5f, 0, 0, 1},
                                                           {0, 0, 0.5f, 1},
                                                           {0, 1, 1, 1},
                                                           {1, 0, 1, 1}}};

Status DrawBoxes(const NoAttrs&, const Args& args) {
  const Shape x = args.in(0).shape;
  const int64_t height = x[1], width = x[2], depth = x[3], boxes = args.in(1).shape[1];
  std::vector<std::vector<float>> colors;
  if (args.has_input(2) && args.in(2).shape[0] > 0) {
    const Shape table = args.in(2).shape;
    for (int64_t i = 0; i < table[0]; ++i) {
      const float* row = args.In<float>(2) + i * table[1];
      colors.emplace_back(row, row + table[1]);
    }
  } else {
    for (const auto& color : kColors) colors.emplace_back(color.begin(), color.end());
  }
  for (std::vector<float>& color : colors) {
    if (depth == 1) color[0] = 1;
  }
  return WithImages(args, [&]<class T>(const T* data) -> Status {
    T* out = args.Out<T>(0);
    std::copy_n(data, x.elements(), out);
    for (int64_t n = 0; n < x[0]; ++n) {
      for (int64_t b = 0; b < boxes; ++b) {
        const float* box = args.In<float>(1) + (n * boxes + b) * 4;
        const std::vector<float>& color = colors[static_cast<size_t>(b) % colors.size()];
        int64_t edge[4];
        bool number = true;
        for (int i = 0; i < 4; ++i) {
          const float at = box[i] * static_cast<float>((i % 2 == 0 ? height : width) - 1);
          number = number && std::abs(at) < 1e9f;
          edge[i] = number ? static_cast<int64_t>(at) : 0;
        }
        const auto [top, left, bottom, right] = edge;
        if (!number || top > bottom || left > right || top >= height || bottom < 0 ||
            left >= width || right < 0) {
          continue;
        }
        const auto paint = [&](int64_t row, int64_t column) {
          T* to = out + ((n * height + row) * width + column) * depth;
          for (int64_t c = 0; c < depth; ++c) {
            to[c] = static_cast<T>(color[static_cast<size_t>(c)]);
          }
        };
        const int64_t first_row = std::max<int64_t>(top, 0), first = std::max<int64_t>(left, 0);
        const int64_t last_row = std::min(bottom, height - 1), last = std::min(right, width - 1);
        for (int64_t j = first; j <= last; ++j) {
          if (top >= 0) paint(top, j);
          if (bottom < height) paint(bottom, j);
        }
        for (int64_t i = first_row; i <= last_row; ++i) {
          if (left >= 0) paint(i, left);
          if (right < width) paint(i, right);
        }
      }
    }
    return {};
  });
}

const KernelRow kRows[] = {
    Row<CropAndResize>("CropAndResize", kNumbers),
    Row<ScaleAndTranslate>("ScaleAndTranslate", kNumbers),
    Row<ProjectImage>("ProjectImage", kNumbers),
    Row<ExtractGlimpse>("ExtractGlimpse", Set(DType::kF32)),
    Row<DrawBoxes>("DrawBoxes", kFloats),
};

}  // namespace

std::span<const KernelRow> ImageKernels() { return kRows; }

}  // namespace oncilla::cpu
