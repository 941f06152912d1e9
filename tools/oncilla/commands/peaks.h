// Measured peak rates of a device: of arithmetic by its fastest products, and of memory by copies.
// bench compares ops with them.
//
// The rate of memory depends on how much is moved: small arrays stay in a cache. So copies are
// measured in several sizes, and an op is compared with the copy that is about as large.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/session/session.h"
#include "tools/oncilla/report.h"

namespace oncilla::tool {

struct CopyRate {
  double bytes = 0;        // read and written
  double bytes_per_s = 0;  // likewise
};

// All are per second. Empty where a processor lacks the instructions, or where a rate is not
// measured on this kind of device.
struct Peaks {
  std::string device;                 // its full name
  double fp32_flops = 0;              // a large product of floats
  std::optional<double> bf16_flops;   // one whose instructions multiply pairs of bfloat16
  std::optional<double> int8_ops;     // one whose instructions multiply four bytes
  std::optional<double> read_bytes;   // of an array that no second cache holds
  std::vector<CopyRate> copies = {};  // the smallest first; the last does not fit caches

  double copy_bytes() const { return copies.back().bytes_per_s; }
  // The rate of a copy of so many bytes or, where none was measured, of the next larger one.
  double copy_rate(double bytes) const;
  // The rate for operands of this type. Floats of 16 bits may be widened.
  double rate_of(DType dtype) const;
};

// Measures a device of the session. About 1.5 s on a CPU; a driver may have to compile first.
Result<Peaks> MeasurePeaks(Session& session, size_t device);

std::string PeaksText(const Peaks& peaks);
Json PeaksJson(const Peaks& peaks);

}  // namespace oncilla::tool
