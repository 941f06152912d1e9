// What tests of Bfc share: regions that are numbers, and places that can be compared and printed.
#pragma once

#include <functional>
#include <ostream>
#include <vector>

#include "engine/memory/bfc.h"

namespace oncilla {

constexpr int64_t kMiB = int64_t{1} << 20;

// Numbers regions 0, 1, 2 ...; refuses what `refuse` says.
class TestSource : public RegionSource {
 public:
  Result<int> Allocate(int64_t bytes) override {
    asked.push_back(bytes);
    if (refuse && refuse(bytes)) return Exhausted("driver says no to ", bytes);
    if (lost) return Error(Code::kUnavailable, "device lost");
    sizes.push_back(bytes);
    return static_cast<int>(sizes.size()) - 1;
  }
  void Free(int region) override { freed.push_back(region); }
  int64_t available_bytes() const override { return available; }

  std::function<bool(int64_t)> refuse;
  bool lost = false;
  int64_t available = INT64_MAX;
  std::vector<int64_t> asked, sizes;
  std::vector<int> freed;
};

struct Place {
  int region;
  int64_t offset, bytes;
  friend bool operator==(const Place&, const Place&) = default;
};
inline std::ostream& operator<<(std::ostream& out, const Place& p) {
  return out << "(" << p.region << "," << p.offset << "," << p.bytes << ")";
}
inline Place PlaceOf(const Result<BfcChunk>& chunk) {
  if (!chunk.ok()) return {-2, 0, 0};
  return {chunk->region, chunk->offset, chunk->bytes};
}

}  // namespace oncilla
