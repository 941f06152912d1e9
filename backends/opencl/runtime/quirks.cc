// The table of known driver faults. A row needs a reason that a test or measurement has shown.
#include "backends/opencl/runtime/quirks.h"

#include <algorithm>
#include <charconv>

#include "backends/opencl/runtime/discovery.h"

namespace oncilla::opencl {
namespace {

// The major version: "22.3.6" -> 22; 0 for text without a leading number.
int MajorOf(const std::string& driver) {
  int major = 0;
  const size_t digit = driver.find_first_of("0123456789");
  if (digit == driver.npos) return 0;
  std::from_chars(driver.data() + digit, driver.data() + driver.size(), major);
  return major;
}

constexpr Quirk kQuirks[] = {
    {"rusticl", 0, 23,
     "llvmpipe of Mesa 22 leaves any loop after 65535 trips and goes on with a wrong result",
     [](Capabilities& c) {
       c.max_loop_trips =
           c.max_loop_trips == 0 ? 65536 : std::min<int64_t>(c.max_loop_trips, 65536);
     }},
    {"rusticl", 0, 1 << 30,
     "its binaries are an intermediate form (machine code is made at the first launch), so they "
     "save little, and damaged ones abort the process",
     [](Capabilities& c) { c.program_binaries = false; }},
    {"Oclgrind", 0, 1 << 30, "asserts when two threads enqueue, even on different queues",
     [](Capabilities& c) { c.one_caller = true; }},
    {"NVIDIA CUDA", 0, 1 << 30,
     "580.159 crashes in clReleaseMemObject of sub-buffers that kernels used, after nets of "
     "several "
     "steps, whose views overlap",
     [](Capabilities& c) { c.sub_buffers = false; }},
};

}  // namespace

std::span<const Quirk> Quirks() { return kQuirks; }

bool Applies(const Quirk& quirk, const DeviceFacts& facts) {
  const int major = MajorOf(facts.driver);
  return facts.platform == quirk.platform && major >= quirk.first_major && major < quirk.end_major;
}

}  // namespace oncilla::opencl
