// NumPy's distributions of the numbers of a Mersenne twister.
#include "backends/cpu/algorithms/numpy_random.h"

#include <cmath>

namespace oncilla::cpu {

double NumpyRandom::Uniform() {
  const auto high = static_cast<double>(source_() >> 5), low = static_cast<double>(source_() >> 6);
  return (high * 67108864.0 + low) / 9007199254740992.0;  // 2^26, 2^53
}

// Marsaglia's polar method.
double NumpyRandom::Normal() {
  if (std::exchange(has_spare_, false)) return spare_;
  double x = 0, y = 0, square = 0;
  do {
    x = 2.0 * Uniform() - 1.0;
    y = 2.0 * Uniform() - 1.0;
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  const double factor = std::sqrt(-2.0 * std::log(square) / square);
  spare_ = factor * x;
  has_spare_ = true;
  return factor * y;
}

// Draws whether an event of this chance occurs, by inversion: the rarer of the two answers is
// counted. The probability of the other one is computed through a logarithm, and a number beyond
// both is drawn again.
bool NumpyRandom::Hit(double chance) {
  const bool rare = chance <= 0.5;
  const double p = rare ? chance : 1.0 - chance, q = 1.0 - p, none = std::exp(std::log(q));
  for (;;) {
    const double u = Uniform();
    if (!(u > none)) return !rare;
    if (!(u - none > p * none / q)) return rare;
  }
}

}  // namespace oncilla::cpu
