// Attributes of ops that generate random numbers with the Philox generator (4 x 32 bits, 10
// rounds), in the order of TensorFlow's CPU kernels, or with the Mersenne twister as in NumPy, bit
// for bit.
//
// A Philox generator is a key and a counter of 128 bits; each step of the counter gives four
// numbers of 32 bits. Ops with a `key` input give the same results for the same inputs. Ops with
// seeds continue from run to run; two zero seeds mean an arbitrary start.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// RandomKey(seed[2]) -> key u64[1], counter u64[2]: scrambled, so that similar seeds give unrelated
// keys.

// RandomNumbers(*shape, key u64[1], counter u64[2], low[]?, high[]?) and RandomStream(*shape, low?,
// high?). uniform: [0, 1); uniform_int: [low, high); full_int: the type's full range;
// truncated_normal: within two standard deviations.
struct RandomAttrs {
  std::string distribution = "uniform";  // normal, truncated_normal, uniform_int, full_int
  DType to = DType::kF32;
  int64_t seed = 0, seed2 = 0;  // of RandomStream
  void Fields(auto&& field) {
    field("distribution", distribution);
    field("to", to);
    field("seed", seed);
    field("seed2", seed2);
  }
};

// ShuffleRows(x, key, counter) and ShuffleStream(x): the slices along the first axis in random
// order.
struct ShuffleAttrs {
  int64_t seed = 0, seed2 = 0;
  void Fields(auto&& field) {
    field("seed", seed);
    field("seed2", seed2);
  }
};

// SampleClasses(logits[N, classes], *count, key, counter) and SampleStream(logits, *count) -> [N,
// count]: classes with probabilities proportional to exp(logits).
struct SampleAttrs {
  DType to = DType::kI64;
  int64_t seed = 0, seed2 = 0;  // of SampleStream
  void Fields(auto&& field) {
    field("to", to);
    field("seed", seed);
    field("seed2", seed2);
  }
};

// MersenneStream(*shape) -> f64: NumPy's RandomState(seed): uniform: rand; normal: randn.
// BernoulliStream(chance) -> bool: its binomial(1, chance). Both continue from run to run.
struct MersenneAttrs {
  std::string distribution = "uniform";  // normal
  int64_t seed = 0;                      // of 32 bits
  void Fields(auto&& field) {
    field("distribution", distribution);
    field("seed", seed);
  }
};
struct BernoulliAttrs {
  int64_t seed = 0;
  void Fields(auto&& field) { field("seed", seed); }
};

}  // namespace oncilla
