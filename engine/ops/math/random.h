// Attributes of ops that make random numbers with the Philox generator (4 x 32 bits, 10 rounds), in
// the order in which TensorFlow's CPU kernels do, or with the Mersenne twister as NumPy does, to
// the last bit.
//
// A Philox generator is a key and a counter of 128 bits; each step of the counter gives four
// numbers of 32 bits. Ops named after their `key` compute the same for the same inputs. Those with
// seeds go on from run to run, where the last one ended; both seeds zero mean any start.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// RandomKey(seed[2]) -> key u64[1], counter u64[2]: scrambled, so that near seeds differ.

// RandomNumbers(*shape, key u64[1], counter u64[2], low[]?, high[]?) and RandomStream(*shape, low?,
// high?). uniform: [0, 1); uniform_int: [low, high); full_int: any; truncated_normal: within two
// deviations.
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

// ShuffleRows(x, key, counter) and ShuffleStream(x): the slices along the first axis in another
// order.
struct ShuffleAttrs {
  int64_t seed = 0, seed2 = 0;
  void Fields(auto&& field) {
    field("seed", seed);
    field("seed2", seed2);
  }
};

// SampleClasses(logits[N, classes], *count, key, counter) and SampleStream(logits, *count) ->
// [N, count]: classes, as likely as exp(logits) says.
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
// BernoulliStream(chance) -> bool: its binomial(1, chance). Both go on from run to run.
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
