// The numbers of NumPy's RandomState, which ONNX's reference draws from: the Mersenne twister
// (std::mt19937, seeded alike), and what NumPy makes of its numbers, in its order.
#pragma once

#include <cstdint>
#include <mutex>
#include <random>
#include <utility>

namespace oncilla::cpu {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : source_(seed) {}

  // [0, 1), of 53 bits: rand, random_sample and uniform(0, 1).
  double Uniform();
  // randn. Numbers come in pairs, of which one waits for the next call.
  double Normal();
  // binomial(1, chance), for a chance from 0 to 1.
  bool Hit(double chance);

 private:
  std::mt19937 source_;
  double spare_ = 0;
  bool has_spare_ = false;
};

// One that goes on from run to run. Each number needs those before it, so that a run has the
// generator for itself while it draws.
class NumpyStream {
 public:
  explicit NumpyStream(uint32_t seed) : random_(seed) {}

  template <class F>
  void Draw(F&& draw) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::forward<F>(draw)(random_);
  }

 private:
  mutable std::mutex mutex_;
  mutable NumpyRandom random_;
};

}  // namespace oncilla::cpu
