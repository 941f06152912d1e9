// Sound on the CPU. Spectra are computed in double, by a Fourier transform of radix 2.
#include "backends/cpu/algorithms/audio.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "engine/base/work_limits.h"
#include "engine/records/wave.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;
using Complex = std::complex<double>;

constexpr float kFullScale = 32768.0f;

int16_t SampleOf(float x) {
  const float scaled = std::round(x * kFullScale);
  if (std::isnan(scaled)) return 0;
  return static_cast<int16_t>(std::clamp(scaled, -kFullScale, kFullScale - 1));
}

// The Fourier transform of a power of two of points, in place.
class Fourier {
 public:
  explicit Fourier(int64_t points) : turns_(static_cast<size_t>(points / 2)) {
    for (size_t i = 0; i < turns_.size(); ++i) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(points);
      turns_[i] = {std::cos(angle), -std::sin(angle)};
    }
  }

  void operator()(std::span<Complex> x) const {
    const size_t n = x.size();
    for (size_t i = 1, j = 0; i < n; ++i) {  // each index with its bits in reverse order
      size_t bit = n >> 1;
      for (; (j & bit) != 0; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
    for (size_t half = 1; half < n; half *= 2) {
      const size_t step = n / (2 * half);
      for (size_t begin = 0; begin < n; begin += 2 * half) {
        for (size_t i = 0; i < half; ++i) {
          const Complex &turn = turns_[i * step], b = x[begin + half + i];
          // The product is written out, because std::complex's operator also checks for infinities
          // and NaN.
          const Complex turned(turn.real() * b.real() - turn.imag() * b.imag(),
                               turn.real() * b.imag() + turn.imag() * b.real());
          x[begin + half + i] = x[begin + i] - turned;
          x[begin + i] += turned;
        }
      }
    }
  }

 private:
  HostVector<Complex> turns_;
};

double MelOf(double hertz) { return 1127.0 * std::log1p(hertz / 700.0); }

// Triangular filters over the bins of a spectrum, by the rules of HTK. A bin lies on the falling
// side of one band, for which its weight is stored, and on the rising side of the next, for which
// it is one minus that.
struct Bands {
  int64_t begin = 0, end = 0;  // bins that are used
  HostVector<int64_t> falling;
  HostVector<double> weights;
};

Result<Bands> BandsOf(const MfccAttrs& attrs, int64_t bins, double rate) {
  if (bins < 2) return InvalidArgument("a spectrum of ", bins, " bins is too short");
  if (!(rate > 0)) return InvalidArgument("Input sample rate must be positive, not ", rate);
  const double per_bin = 0.5 * rate / static_cast<double>(bins - 1);
  if (!(attrs.upper / per_bin < static_cast<double>(bins))) {
    return InvalidArgument("the upper frequency ", attrs.upper,
                           " lies above half of the sample rate ", rate);
  }
  Bands out;
  out.begin = static_cast<int64_t>(1.5 + attrs.lower / per_bin);
  out.end = static_cast<int64_t>(attrs.upper / per_bin) + 1;
  const double low = MelOf(attrs.lower);
  const double spacing = (MelOf(attrs.upper) - low) / static_cast<double>(attrs.bands + 1);
  const auto centre = [&](int64_t band) { return low + spacing * static_cast<double>(band + 1); };
  out.falling.resize(static_cast<size_t>(bins));
  out.weights.resize(static_cast<size_t>(bins));
  int64_t band = 0;
  for (int64_t i = out.begin; i < out.end; ++i) {
    const double mel = MelOf(static_cast<double>(i) * per_bin);
    while (band < attrs.bands && centre(band) < mel) ++band;
    const int64_t own = band - 1;
    const double left = own >= 0 ? centre(own) : low;
    out.falling[static_cast<size_t>(i)] = own;
    out.weights[static_cast<size_t>(i)] = (centre(own + 1) - mel) / (centre(own + 1) - left);
  }
  return out;
}

}  // namespace

Tensors DecodeWav(const DecodeWavAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const Wave wave, ReadWave(in[0].strings()[0]));
  if (wave.rate > static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("the sample rate does not fit i32: ", wave.rate);
  }
  const int64_t samples = attrs.samples < 0 ? wave.samples : attrs.samples;
  const int64_t channels = attrs.channels < 0 ? wave.channels : attrs.channels;
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({DType::kF32, {samples, channels}}));
  const auto y = out.MutableAs<float>();
  WorkLook look;
  for (int64_t i = 0; i < std::min(samples, wave.samples); ++i) {
    ONCILLA_TRY(look.Go(channels));
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = static_cast<size_t>(2 * (i * wave.channels + std::min(c, wave.channels - 1)));
      const auto low = static_cast<uint8_t>(wave.data[at]);
      const auto high = static_cast<uint8_t>(wave.data[at + 1]);
      const auto value = static_cast<int16_t>(static_cast<uint16_t>(high << 8 | low));
      y[static_cast<size_t>(i * channels + c)] = static_cast<float>(value) / kFullScale;
    }
  }
  const auto rate = static_cast<int32_t>(wave.rate);
  return std::vector<Tensor>{std::move(out), Tensor::Of<int32_t>(DType::kI32, {}, {&rate, 1})};
}

Tensors EncodeWav(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const Shape& shape = in[0].shape();
  const int64_t samples = shape[0], channels = shape[1], rate = in[1].As<int32_t>()[0];
  if (rate <= 0) return InvalidArgument("sample_rate must be positive, not ", rate);
  if (channels < 1 || channels > 0x7FFF) {
    return InvalidArgument("channels must be in (0, 32768), not ", channels);
  }
  if (2 * channels * rate > std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument(channels, " channels at a sample rate of ", rate, " are too many");
  }
  const int64_t bytes = SaturatingMul(2 * channels, samples);
  if (bytes > std::numeric_limits<uint32_t>::max() - 36) {
    return InvalidArgument("Provided channels and samples cannot be encoded as wav: ", bytes,
                           " bytes");
  }
  HostCharge charge;
  ONCILLA_TRY(charge.Grow(bytes));
  std::string out = WaveHeader(static_cast<uint16_t>(channels), static_cast<uint32_t>(rate),
                               static_cast<uint32_t>(bytes));
  out.reserve(out.size() + static_cast<size_t>(bytes));
  for (const float x : in[0].As<float>()) {
    const auto bits = static_cast<uint16_t>(SampleOf(x));
    out += static_cast<char>(bits & 0xFF);
    out += static_cast<char>(bits >> 8);
  }
  return std::vector<Tensor>{Tensor::Strings({}, {std::move(out)})};
}

Status Spectrogram(const SpectrogramAttrs& attrs, const Args& args) {
  const Shape x = args.in(0).shape, y = args.out(0).shape;
  const int64_t points = SpectrumPoints(attrs.window), frames = y[1], bins = y[2];
  const Fourier transform(points);
  HostVector<double> window(static_cast<size_t>(attrs.window));
  for (size_t i = 0; i < window.size(); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(attrs.window);
    window[i] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * part);
  }
  const float* from = args.In<float>(0);
  ParallelFor(args.threads, y[0] * frames, GrainOf(points * 16, 1024), [&](int64_t b, int64_t e) {
    HostVector<Complex> work(static_cast<size_t>(points));
    for (int64_t k = b; k < e; ++k) {
      const int64_t channel = k / frames, start = k % frames * attrs.stride;
      std::fill(work.begin(), work.end(), Complex());
      for (int64_t i = 0; i < attrs.window; ++i) {
        const auto at = static_cast<size_t>(i);
        work[at] = static_cast<double>(from[(start + i) * x[1] + channel]) * window[at];
      }
      transform(work);
      float* to = args.Out<float>(0) + k * bins;
      for (int64_t i = 0; i < bins; ++i) {
        const Complex& bin = work[static_cast<size_t>(i)];
        const auto size = static_cast<float>(bin.real() * bin.real() + bin.imag() * bin.imag());
        to[i] = attrs.squared ? size : std::sqrt(size);
      }
    }
  });
  return Status();
}

Status Mfcc(const MfccAttrs& attrs, const Args& args) {
  // The floor under a band's energy before its logarithm: the level of silence.
  constexpr double kFloor = 1e-12;
  const Shape x = args.in(0).shape;
  const int64_t bins = x[2], count = attrs.coefficients;
  if (x[0] * x[1] == 0) return Status();
  ONCILLA_ASSIGN(const Bands bands,
                 BandsOf(attrs, bins, static_cast<double>(args.In<int32_t>(1)[0])));
  HostVector<double> cosines(static_cast<size_t>(count * attrs.bands));
  const double scale = std::sqrt(2.0 / static_cast<double>(attrs.bands));
  const double angle = std::numbers::pi / static_cast<double>(attrs.bands);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < attrs.bands; ++j) {
      cosines[static_cast<size_t>(i * attrs.bands + j)] =
          scale * std::cos(static_cast<double>(i) * angle * (static_cast<double>(j) + 0.5));
    }
  }
  HostVector<double> sums(static_cast<size_t>(attrs.bands));
  for (int64_t k = 0; k < x[0] * x[1] && !args.threads.ended(); ++k) {
    std::fill(sums.begin(), sums.end(), 0.0);
    const float* from = args.In<float>(0) + k * bins;
    for (int64_t i = bands.begin; i < bands.end; ++i) {
      const auto at = static_cast<size_t>(i);
      const double size = std::sqrt(static_cast<double>(from[i]));
      const double weighted = size * bands.weights[at];
      const int64_t own = bands.falling[at];
      if (own >= 0) sums[static_cast<size_t>(own)] += weighted;
      if (own + 1 < attrs.bands) sums[static_cast<size_t>(own + 1)] += size - weighted;
    }
    for (double& sum : sums) sum = std::log(sum < kFloor ? kFloor : sum);
    for (int64_t i = 0; i < count; ++i) {
      double total = 0;
      for (int64_t j = 0; j < attrs.bands; ++j) {
        total += cosines[static_cast<size_t>(i * attrs.bands + j)] * sums[static_cast<size_t>(j)];
      }
      args.Out<float>(0)[k * count + i] = static_cast<float>(total);
    }
  }
  return Status();
}

}  // namespace oncilla::cpu
