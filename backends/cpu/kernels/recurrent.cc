// Recurrent layers on the CPU: plain, exact code. Sums are double; after each step the state is
// rounded to the type of the tensors, or to float if they have 16 bits.
#include "engine/ops/nn/recurrent.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/fast/sample_steps.h"
#include "backends/cpu/kernel.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

template <class T>
T To(double v) {
  if constexpr (std::is_same_v<T, double>) return v;
  return static_cast<T>(static_cast<float>(v));
}
// The state as it is stored between steps.
template <class T>
double Kept(double v) {
  if constexpr (std::is_same_v<T, double>) return v;
  return static_cast<double>(static_cast<float>(v));
}

struct Layer {
  std::string_view op;
  bool bytes = false;  // h is rounded before it is multiplied
  std::array<RecurrentActivation, 3> act;
  int64_t steps = 0, samples = 0, units = 0, gates = 0;
  double clip = 0;

  double Clip(double x) const { return clip > 0 ? std::clamp(x, -clip, clip) : x; }
  double F(double x) const { return act[0](Clip(x)); }
  double G(double x) const { return act[1](Clip(x)); }
};

// sum[j] += h R[.., j] for the columns first <= j < last.
template <class T>
void AddProduct(const Layer& layer, const T* recurrent, const double* h, int64_t first,
                int64_t last, double* sum) {
  const int64_t width = layer.gates * layer.units;
  for (int64_t k = 0; k < layer.units; ++k) {
    const T* row = recurrent + k * width;
    const double scale = h[k];
    for (int64_t j = first; j < last; ++j) sum[j] += scale * static_cast<double>(row[j]);
  }
}

// Rounds h to the values that 8-bit quantisation gives, in float.
void RoundToBytes(std::vector<double>& h) {
  float least = 0, most = 0;
  for (const double v : h) {
    least = std::min(least, static_cast<float>(v));
    most = std::max(most, static_cast<float>(v));
  }
  float step = (most - least) / 255.0f;
  if (step == 0) step = 1;  // no range, or one too small for steps of float, which counts as none
  const float zero = std::nearbyint(std::clamp(-least / step, 0.0f, 255.0f));
  for (double& v : h) {
    const float place = std::nearbyint(static_cast<float>(v) / step) + zero;
    v = static_cast<double>((std::clamp(place, 0.0f, 255.0f) - zero) * step);
  }
}

// The recurrent weights of a ByteLstm whose weights are bytes, as numbers of the gates' type.
template <class T>
std::vector<T> WeightsOfBytes(const Args& args) {
  std::vector<T> weights(static_cast<size_t>(args.in(1).elements()));
  const int64_t columns = args.in(1).shape[1];
  const bool many_scales = args.in(6).elements() > 1;
  const bool has_zeros = args.has_input(7);
  const bool many_zeros = has_zeros && args.in(7).elements() > 1;
  const auto convert = [&]<class Byte>(TypeTag<Byte>) {
    const Byte* bytes = args.In<Byte>(1);
    for (size_t i = 0; i < weights.size(); ++i) {
      const int64_t c = static_cast<int64_t>(i) % columns;
      const int zero = has_zeros ? args.In<Byte>(7)[many_zeros ? c : 0] : 0;
      const float scale = args.In<float>(6)[many_scales ? c : 0];
      weights[i] = static_cast<T>(static_cast<float>(bytes[i] - zero) * scale);
    }
  };
  if (args.in(1).dtype == DType::kU8) {
    convert(TypeTag<uint8_t>());
  } else {
    convert(TypeTag<int8_t>());
  }
  return weights;
}

// Runs one sample from its first step to its last.
template <class T>
class Sample {
 public:
  Sample(const RecurrentAttrs& attrs, const Layer& layer, const Args& args, const T* recurrent,
         int64_t n)
      : attrs_(attrs),
        layer_(layer),
        args_(args),
        recurrent_(recurrent),
        n_(n),
        h_(Start(3)),
        c_(Start(4)) {
    if (layer.op == "Gru" && args.has_input(4)) bias_ = args.In<T>(4);
    if (layer.op == "Lstm" && args.has_input(5)) peepholes_ = args.In<T>(5);
    sum_.resize(static_cast<size_t>(layer.gates * layer.units));
  }

  void Run(int64_t length) {
    const int64_t units = layer_.units, width = layer_.gates * units;
    Lookout look(args_.threads);
    for (int64_t s = 0; s < layer_.steps; ++s) {
      if (look.Ended(units * width)) return;
      const int64_t t = s < length && attrs_.reverse ? length - 1 - s : s;
      const int64_t at = t * layer_.samples + n_;
      T* y = args_.Out<T>(0) + at * units;
      if (s >= length) {
        std::fill_n(y, units, T());
        continue;
      }
      if (layer_.bytes) RoundToBytes(h_);
      const T* gates = args_.In<T>(0) + at * width;
      for (int64_t j = 0; j < width; ++j) sum_[j] = static_cast<double>(gates[j]);
      if (layer_.op == "Lstm") {
        Lstm();
      } else if (layer_.op == "Gru") {
        Gru();
      } else {
        AddProduct(layer_, recurrent_, h_.data(), 0, width, sum_.data());
        for (int64_t j = 0; j < units; ++j) h_[j] = layer_.F(sum_[j]);
      }
      for (int64_t j = 0; j < units; ++j) {
        h_[j] = Kept<T>(h_[j]);
        y[j] = To<T>(h_[j]);
      }
    }
    for (int64_t j = 0; j < units; ++j) {
      args_.Out<T>(1)[n_ * units + j] = To<T>(h_[j]);
      if (layer_.op == "Lstm") args_.Out<T>(2)[n_ * units + j] = To<T>(c_[j]);
    }
  }

 private:
  std::vector<double> Start(size_t input) const {
    std::vector<double> state(static_cast<size_t>(layer_.units), 0.0);
    const bool has = args_.has_input(input) && (input == 3 || layer_.op == "Lstm");
    for (int64_t j = 0; has && j < layer_.units; ++j) {
      state[j] = static_cast<double>(args_.In<T>(input)[n_ * layer_.units + j]);
    }
    return state;
  }

  // None are not zeros: those would make NaN of a cell that is infinite.
  double Peephole(int64_t gate, int64_t j, double cell) const {
    return peepholes_ == nullptr ? 0
                                 : static_cast<double>(peepholes_[gate * layer_.units + j]) * cell;
  }

  void Lstm() {
    const int64_t units = layer_.units;
    AddProduct(layer_, recurrent_, h_.data(), 0, 4 * units, sum_.data());
    for (int64_t j = 0; j < units; ++j) {
      const double old = c_[j];
      const double i = layer_.F(sum_[j] + Peephole(0, j, old));
      const double f =
          attrs_.input_forget ? 1 - i : layer_.F(sum_[2 * units + j] + Peephole(2, j, old));
      const double c = f * old + i * layer_.G(sum_[3 * units + j]);
      const double o = layer_.F(sum_[units + j] + Peephole(1, j, c));
      h_[j] = o * layer_.act[2](c);
      c_[j] = Kept<T>(c);
    }
  }

  void Gru() {
    const int64_t units = layer_.units;
    AddProduct(layer_, recurrent_, h_.data(), 0, 2 * units, sum_.data());
    std::vector<double> z(static_cast<size_t>(units)), r(z);
    for (int64_t j = 0; j < units; ++j) {
      z[j] = layer_.F(sum_[j]);
      r[j] = layer_.F(sum_[units + j]);
    }
    if (attrs_.linear_before_reset) {
      std::vector<double> product(sum_.size());
      AddProduct(layer_, recurrent_, h_.data(), 2 * units, 3 * units, product.data());
      for (int64_t j = 0; j < units; ++j) {
        const double bias = bias_ == nullptr ? 0 : static_cast<double>(bias_[j]);
        sum_[2 * units + j] += r[j] * (product[2 * units + j] + bias);
      }
    } else {
      std::vector<double> reset(static_cast<size_t>(units));
      for (int64_t j = 0; j < units; ++j) reset[j] = Kept<T>(r[j] * h_[j]);
      AddProduct(layer_, recurrent_, reset.data(), 2 * units, 3 * units, sum_.data());
    }
    for (int64_t j = 0; j < units; ++j) {
      h_[j] = (1 - z[j]) * layer_.G(sum_[2 * units + j]) + z[j] * h_[j];
    }
  }

  const RecurrentAttrs& attrs_;
  const Layer& layer_;
  const Args& args_;
  const T* const recurrent_;
  const int64_t n_;
  std::vector<double> h_, c_, sum_;
  const T* bias_ = nullptr;
  const T* peepholes_ = nullptr;
};

Status Recurrent(const RecurrentAttrs& attrs, const Args& args) {
  Layer layer;
  layer.bytes = args.node.op->name == "ByteLstm";
  layer.op = layer.bytes ? "Lstm" : args.node.op->name;
  ONCILLA_ASSIGN(layer.act, ActivationsOf(attrs, layer.op));
  const Shape y = args.out(0).shape;
  layer.steps = y[0], layer.samples = y[1], layer.units = y[2];
  layer.gates = RecurrentGates(layer.op);
  layer.clip = attrs.clip;
  std::vector<int64_t> lengths(static_cast<size_t>(layer.samples));
  ONCILLA_TRY(ReadLengths(args, layer.steps, lengths));
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      std::vector<T> weights;
      if (args.in(1).dtype != args.in(0).dtype) weights = WeightsOfBytes<T>(args);
      const T* recurrent = weights.empty() ? args.In<T>(1) : weights.data();
      ParallelFor(args.threads, layer.samples, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          Sample<T>(attrs, layer, args, recurrent, n).Run(lengths[static_cast<size_t>(n)]);
        }
      });
    }
  });
  return Status();
}

// Runs one sample and head of linear attention over all steps, in double.
template <class T, class S>
void AttendLinearly(const LinearAttentionAttrs& attrs, const Args& args, int64_t sample,
                    int64_t head) {
  const int64_t steps = args.in(0).shape[1], queries = args.in(0).shape[2];
  const int64_t keys = args.in(1).shape[2], values = args.in(2).shape[2];
  const int64_t size = queries / attrs.query_heads, depth = values / attrs.heads;
  const int64_t group = attrs.query_heads / attrs.heads;
  const int64_t states = (sample * attrs.heads + head) * size * depth;
  const double scale = attrs.scale != 0 ? attrs.scale : 1 / std::sqrt(static_cast<double>(size));
  std::vector<double> state(static_cast<size_t>(size * depth), 0.0),
      change(static_cast<size_t>(depth));
  for (size_t i = 0; args.has_input(3) && i < state.size(); ++i) {
    state[i] = static_cast<double>(args.In<S>(3)[states + static_cast<int64_t>(i)]);
  }
  Lookout look(args.threads);
  for (int64_t t = 0; t < steps; ++t) {
    if (look.Ended(3 * size * depth * (1 + group))) return;
    const int64_t row = sample * steps + t;
    const T* k = args.In<T>(1) + row * keys + head * size;
    const T* v = args.In<T>(2) + row * values + head * depth;
    if (attrs.decays()) {
      const int64_t width = args.in(4).shape[2];
      const bool per_key = width != attrs.heads;
      const T* decay = args.In<T>(4) + row * width + head * (per_key ? size : 1);
      for (int64_t i = 0; i < size; ++i) {
        const double factor = std::exp(static_cast<double>(decay[per_key ? i : 0]));
        for (int64_t j = 0; j < depth; ++j) state[i * depth + j] *= factor;
      }
    }
    for (int64_t j = 0; j < depth; ++j) change[j] = static_cast<double>(v[j]);
    if (attrs.corrects()) {
      const int64_t width = args.in(5).shape[2];
      const auto beta = static_cast<double>(args.In<T>(5)[row * width + (width == 1 ? 0 : head)]);
      for (int64_t i = 0; i < size; ++i) {
        for (int64_t j = 0; j < depth; ++j) {
          change[j] -= static_cast<double>(k[i]) * state[i * depth + j];
        }
      }
      for (double& c : change) c *= beta;
    }
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < depth; ++j) {
        state[i * depth + j] += static_cast<double>(k[i]) * change[j];
      }
    }
    for (int64_t g = 0; g < group; ++g) {
      const int64_t reader = head * group + g;
      const T* q = args.In<T>(0) + row * queries + reader * size;
      T* y = args.Out<T>(0) + (row * attrs.query_heads + reader) * depth;
      for (int64_t j = 0; j < depth; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < size; ++i) {
          sum += static_cast<double>(q[i]) * state[i * depth + j];
        }
        y[j] = static_cast<T>(sum * scale);
      }
    }
  }
  for (size_t i = 0; i < state.size(); ++i) {
    args.Out<S>(1)[states + static_cast<int64_t>(i)] = static_cast<S>(state[i]);
  }
}

Status LinearAttention(const LinearAttentionAttrs& attrs, const Args& args) {
  for (size_t i : {size_t{4}, size_t{5}}) {
    if (args.has_input(i) && args.in(i).dtype != args.in(0).dtype) {
      return Unsupported("gates of ", args.in(i).dtype, " beside queries of ", args.in(0).dtype);
    }
  }
  const int64_t heads = args.in(0).shape[0] * attrs.heads;
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      DispatchDType(args.out(1).dtype, [&]<class S>(TypeTag<S>) {
        if constexpr (!std::is_integral_v<S>) {
          ParallelFor(args.threads, heads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              AttendLinearly<T, S>(attrs, args, i / attrs.heads, i % attrs.heads);
            }
          });
        }
      });
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<LinearAttention>("LinearAttention", kFloats),
    Row<Recurrent>("ByteLstm", kFloats, &MakeFastByteLstm, &ByteLstmPacking),
    Row<Recurrent>("Lstm", kFloats, &MakeFastRecurrent, &RecurrentPacking),
    Row<Recurrent>("Gru", kFloats, &MakeFastRecurrent, &RecurrentPacking),
    Row<Recurrent>("Rnn", kFloats, &MakeFastRecurrent, &RecurrentPacking),
};

}  // namespace

std::span<const KernelRow> RecurrentKernels() { return kRows; }

}  // namespace oncilla::cpu
