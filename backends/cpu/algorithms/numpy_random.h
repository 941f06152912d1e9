// The random numbers of NumPy's RandomState, which ONNX's reference uses: the Mersenne twister
// (std::mt19937 with the same seed), and the distributions that NumPy derives from it, in NumPy's
// order.
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
  // randn. Numbers are generated in pairs, of which one is kept for the next call.
  double Normal();
  // binomial(1, chance), for a chance from 0 to 1.
  bool Hit(double chance);

 private:
  std::mt19937 source_;
  double spare_ = 0;
  bool has_spare_ = false;
};

// A generator that continues from run to run. Each number depends on those before it, so one run at
// a time uses the generator.
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
