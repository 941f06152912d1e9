// What host functions on strings share.
#pragma once

#include <string>
#include <vector>

#include "engine/base/work_limits.h"
#include "engine/tensor/tensor.h"

namespace oncilla::cpu {

// Maps strings of any shape, each independently.
template <class F>
Result<std::vector<Tensor>> MapStrings(const Tensor& x, F&& change) {
  std::vector<std::string> out;
  out.reserve(x.strings().size());
  Growth growth;
  for (const std::string& text : x.strings()) {
    Result<std::string> changed = change(text);
    if (changed.ok()) {
      if (Status room = growth.Add(std::ssize(*changed)); !room.ok()) changed = room;
    }
    if (!changed.ok()) return In(changed.status(), StrCat("element ", out.size()));
    out.push_back(*std::move(changed));
  }
  growth.Clear();
  return std::vector<Tensor>{Tensor::Strings(x.shape(), std::move(out))};
}

// A tensor of i32 or i64 numbers of rank 1.
inline Tensor WholeNumbers(DType dtype, const std::vector<int64_t>& values) {
  if (dtype == DType::kI64) return Tensor::Int64s(values);
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return Tensor::Of<int32_t>(DType::kI32, {std::ssize(narrow)}, narrow);
}

// Checks splits of rows: they begin at 0, end at `size`, and never decrease.
inline Status CheckSplits(const std::vector<int64_t>& splits, int64_t size) {
  if (splits.empty() || splits.front() != 0 || splits.back() != size) {
    return InvalidArgument("the splits do not reach from 0 to ", size);
  }
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1]) return InvalidArgument("split ", i, " is out of order");
  }
  return {};
}

}  // namespace oncilla::cpu
