// Philox 4x32 with 10 rounds, after Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
#pragma once

#include <array>
#include <cstdint>

namespace oncilla::cpu {

class Philox {
 public:
  using Four = std::array<uint32_t, 4>;

  Philox() = default;
  // With two seeds as TensorFlow's ops use them.
  Philox(uint64_t seed, uint64_t seed2) : Philox(seed, 0, seed2) {}
  // The counter's lower and upper half.
  Philox(uint64_t key, uint64_t low, uint64_t high) : key_{Lower(key), Upper(key)} {
    counter_ = {Lower(low), Upper(low), Lower(high), Upper(high)};
  }

  void Skip(uint64_t steps) {
    const uint64_t low = Join(counter_[0], counter_[1]), sum = low + steps;
    counter_[0] = Lower(sum);
    counter_[1] = Upper(sum);
    if (sum < low && ++counter_[2] == 0) ++counter_[3];
  }

  Four operator()() {
    Four x = counter_;
    uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * x[0], b = uint64_t{0xCD9E8D57} * x[2];
      x = {Upper(b) ^ x[1] ^ k0, Lower(b), Upper(a) ^ x[3] ^ k1, Lower(a)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    Skip(1);
    return x;
  }

  static uint64_t Join(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

 private:
  static uint32_t Lower(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t Upper(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  std::array<uint32_t, 2> key_ = {};
  Four counter_ = {};
};

// The generator's numbers one at a time.
class PhiloxSequence {
 public:
  explicit PhiloxSequence(Philox generator) : generator_(generator) {}
  uint32_t operator()() {
    if (used_ == 4) {
      four_ = generator_();
      used_ = 0;
    }
    return four_[used_++];
  }

 private:
  Philox generator_;
  Philox::Four four_ = {};
  size_t used_ = 4;
};

}  // namespace oncilla::cpu
