// The steps of the samples of a recurrent layer, where samples may have different lengths.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/kernel.h"

namespace oncilla::cpu {

// Reads input 2, the lengths, if the node has it; otherwise every sample has all steps.
// InvalidArgument if a length is not in [0, steps].
Status ReadLengths(const Args& args, int64_t steps, std::span<int64_t> lengths);

// Which rows of [steps, samples] a step of the computation reads and writes. Samples of different
// lengths are ordered by them, the longest first, so that those that are not at their end yet are
// always the first ones, and their states lie side by side for the product.
class SampleSteps {
 public:
  // The bytes of memory that it needs where the node has lengths: whole lines of the cache, so that
  // what is behind them stays aligned.
  static int64_t MemoryOf(int64_t samples) { return (16 * samples + 63) / 64 * 64; }
  // Reads and checks the lengths of a call.
  Status Read(const Args& args, bool reverse, int64_t steps, int64_t samples, std::byte* memory);

  // Whether samples have different lengths, or all end before the last step.
  bool ragged() const { return ragged_; }
  // The steps of the longest sample.
  int64_t longest() const { return longest_; }
  // The number of samples that have step s; does not increase with s.
  int64_t CountAt(int64_t s) const;
  // The sample whose state is at place i.
  int64_t SampleAt(int64_t i) const { return ragged_ ? order_[i] : i; }
  // Its number of steps.
  int64_t LengthAt(int64_t i) const { return ragged_ ? lengths_[order_[i]] : steps_; }
  // The row that the sample at place i has in step s.
  int64_t RowAt(int64_t s, int64_t i) const {
    return (reverse_ ? LengthAt(i) - 1 - s : s) * samples_ + SampleAt(i);
  }

  // Writes zeros to the rows y[steps, samples, units] behind the samples' ends.
  template <class T>
  void ClearBehind(const Threads& threads, int64_t units, T* y) const {
    if (!ragged_) return;
    ParallelFor(threads, steps_, GrainOf(samples_ * units, steps_), [&](int64_t t, int64_t end) {
      for (; t < end; ++t) {
        for (int64_t n = 0; n < samples_; ++n) {
          if (t >= lengths_[n]) std::fill_n(y + (t * samples_ + n) * units, units, T());
        }
      }
    });
  }

 private:
  bool ragged_ = false, reverse_ = false;
  int64_t steps_ = 0, samples_ = 0, longest_ = 0;
  int64_t *lengths_ = nullptr, *order_ = nullptr;  // of each sample; of each place
};

}  // namespace oncilla::cpu
