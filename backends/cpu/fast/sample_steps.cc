// Lengths of samples: reading, checking and ordering them.
#include "backends/cpu/fast/sample_steps.h"

#include <algorithm>
#include <numeric>

#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {

Status ReadLengths(const Args& args, int64_t steps, std::span<int64_t> lengths) {
  if (!args.has_input(2)) {
    std::fill(lengths.begin(), lengths.end(), steps);
    return Status();
  }
  DispatchDType(args.in(2).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      const T* given = args.In<T>(2);
      for (size_t n = 0; n < lengths.size(); ++n) lengths[n] = static_cast<int64_t>(given[n]);
    }
  });
  for (size_t n = 0; n < lengths.size(); ++n) {
    if (lengths[n] >= 0 && lengths[n] <= steps) continue;
    return InvalidArgument("sample ", n, " has ", lengths[n], " of ", steps,
                           " steps: an index out of range");
  }
  return Status();
}

Status SampleSteps::Read(const Args& args, bool reverse, int64_t steps, int64_t samples,
                         std::byte* memory) {
  reverse_ = reverse;
  steps_ = longest_ = steps;
  samples_ = samples;
  if (!args.has_input(2)) return Status();
  lengths_ = reinterpret_cast<int64_t*>(memory);
  order_ = lengths_ + samples;
  const std::span<int64_t> lengths(lengths_, static_cast<size_t>(samples));
  ONCILLA_TRY(ReadLengths(args, steps, lengths));
  ragged_ = std::ranges::any_of(lengths, [&](int64_t length) { return length < steps; });
  if (!ragged_) return Status();
  std::iota(order_, order_ + samples, int64_t{0});
  std::sort(order_, order_ + samples, [&](int64_t a, int64_t b) {
    return lengths_[a] != lengths_[b] ? lengths_[a] > lengths_[b] : a < b;
  });
  longest_ = lengths_[order_[0]];
  return Status();
}

int64_t SampleSteps::CountAt(int64_t s) const {
  if (!ragged_) return samples_;
  return std::partition_point(order_, order_ + samples_,
                              [&](int64_t n) { return lengths_[n] > s; }) -
         order_;
}

}  // namespace oncilla::cpu
