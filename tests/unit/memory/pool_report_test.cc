// The complete text that explains a pool when memory runs out.
#include <gtest/gtest.h>

#include "engine/memory/report.h"

namespace oncilla {
namespace {

// Numbers regions 0, 1, 2 ...
class TestSource : public RegionSource {
 public:
  Result<int> Allocate(int64_t) override { return next_++; }
  void Free(int) override {}
  int64_t available_bytes() const override { return INT64_MAX; }

 private:
  int next_ = 0;
};

TEST(PoolReport, ShowsEverythingInOrder) {
  TestSource source;
  Bfc bfc({.limit_bytes = 4096, .growth = false}, &source);
  const BfcChunk a = *bfc.Allocate(200, 7), b = *bfc.Allocate(1000, 8);
  const BfcChunk c = *bfc.Allocate(256, 7);
  ASSERT_TRUE(bfc.Free(b).ok());
  bfc.SetTag(c, 9);
  const std::string report =
      PoolReport(bfc.Snapshot(), {.pool = "GPU:0 arenas",
                                  .asked_bytes = 4000,
                                  .asked_by = "run 3",
                                  .tag_name = [](int64_t tag) { return StrCat("owner ", tag); }});
  EXPECT_EQ(report, R"(memory of GPU:0 arenas
asked: 4000 (3.91 KiB) by run 3
free in the pool 3.50 KiB, largest free chunk 2.50 KiB, could still be added 0 B, pool 4.00 KiB, limit 4.00 KiB
next region takes the whole limit, largest allocation 8.00 EiB, chunks are multiples of 256
bins:
  256 B: 2 chunks, 2 in use; 512 bytes, 512 in use, 456 asked for
  1.00 KiB: 1 chunks, 0 in use; 1024 bytes, 0 in use, 0 asked for
    free 1024 at 0:256, before it 256 in use (200 asked) bin 256 B, after it 256 in use (256 asked) bin 256 B
  2.00 KiB: 1 chunks, 0 in use; 2560 bytes, 0 in use, 0 asked for
    free 2560 at 0:1536, before it 256 in use (256 asked) bin 256 B
region 0: 4096 bytes
  in use 0 + 256 (200 asked) by owner 7
  free   256 + 1024
  in use 1280 + 256 (256 asked) by owner 9
  free   1536 + 2560
in use by size:
  2 x 256 = 512 B
limit 4096, in use 512 (456 asked for), peak in use 1536, pool 4096, peak pool 4096
allocations 3, largest 1024, chunks in use 2, regions 1, largest free chunk 2560, fragmentation 0.2857
[*****x_________________________******_______________________________________________________________]
)");
  EXPECT_EQ(PoolReportJson(bfc.Snapshot(), {.pool = "GPU:0 \"arenas\""}),
            R"({"pool":"GPU:0 \"arenas\"","granularity":256,"growth":false,)"
            R"("stats":{"limit_bytes":4096,"pool_bytes":4096,"peak_pool_bytes":4096,)"
            R"("bytes_in_use":512,"peak_bytes_in_use":1536,"requested_bytes":456,)"
            R"("waiting_bytes":0,"largest_free_bytes":2560,"growable_bytes":0,)"
            R"("next_region_bytes":8192,"max_region_bytes":9223372036854775552,)"
            R"("largest_allocation_bytes":1024,"allocations":3,"chunks_in_use":2,)"
            R"("fragmentation":0.285714},)"
            R"("bins":[{"bytes":256,"chunks":2,"chunks_in_use":2,"total_bytes":512,)"
            R"("bytes_in_use":512,"requested_bytes":456},)"
            R"({"bytes":1024,"chunks":1,"chunks_in_use":0,"total_bytes":1024,)"
            R"("bytes_in_use":0,"requested_bytes":0},)"
            R"({"bytes":2048,"chunks":1,"chunks_in_use":0,"total_bytes":2560,)"
            R"("bytes_in_use":0,"requested_bytes":0}],)"
            R"("regions":[{"id":0,"bytes":4096,"chunks":[)"
            R"({"offset":0,"bytes":256,"in_use":true,"requested_bytes":200,"owner":"7"},)"
            R"({"offset":256,"bytes":1024,"in_use":false},)"
            R"({"offset":1280,"bytes":256,"in_use":true,"requested_bytes":256,"owner":"9"},)"
            R"({"offset":1536,"bytes":2560,"in_use":false}]}]})");
  EXPECT_EQ(OccupancyBar(bfc.Snapshot(), 16), "*____*__________");
  ASSERT_TRUE(bfc.Free(a).ok());
  EXPECT_EQ(OccupancyBar(BfcSnapshot(), 16), "");
}

}  // namespace
}  // namespace oncilla
