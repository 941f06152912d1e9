// Compares ops with the peak rates of their device: which part of a run's time no better kernel
// could save, and which part could be saved.
//
// The roof of an op is the longer of two times: that of its operations at the device's rate of
// arithmetic for its type, and that of its bytes: constants at the rate of reading memory, the rest
// at that of copies of as many bytes. An op may be faster than its roof: Winograd's convolution
// multiplies less than the operations that are counted, and caches may hold more than is assumed.
#pragma once

#include <string>
#include <vector>

#include "tools/oncilla/commands/op_times.h"
#include "tools/oncilla/commands/peaks.h"

namespace oncilla::tool {

// What limits an op at best; kUnknown if its sizes depend on data or its device has no peaks.
enum class Bound { kCompute, kMemory, kUnknown };
std::string_view NameOf(Bound bound);

struct OpRoof {
  const OpTime* op = nullptr;
  Bound bound = Bound::kUnknown;
  double roof_s = 0;
  double above_s() const { return op->time_s > roof_s ? op->time_s - roof_s : 0; }
  // The part of its time that the roof allows.
  double allowed_s() const { return op->time_s - above_s(); }
};

// All ops of one kind.
struct KindOfOp {
  std::string op;
  int count = 0;
  double time_s = 0, allowed_s = 0, above_s = 0;
};

// A part of a run's time, and its cause.
struct Cause {
  const char* key;   // "above_compute"
  const char* name;  // "above the roof, bound by arithmetic"
  double time_s = 0;
};

struct Roofline {
  const OpTimes* times = nullptr;
  std::vector<Peaks> peaks;     // of the preferred device, then of others that ran ops
  std::vector<OpRoof> ops;      // slowest first
  std::vector<KindOfOp> kinds;  // those with most above the roof first
  std::vector<Cause> causes;    // together the run, or what the ops take where that is more

  double total_s() const;
  double allowed_s() const;  // of all ops
};

// `times` must outlive it. The first of `peaks` are the preferred device's.
Roofline RooflineOf(const OpTimes& times, std::vector<Peaks> peaks);

std::string RooflineText(const Roofline& roofline);
Json RooflineJson(const Roofline& roofline);

}  // namespace oncilla::tool
