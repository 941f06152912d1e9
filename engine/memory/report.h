// The text that explains the state of a pool, for out-of-memory failures.
//
// Totals per bin with every free chunk and its neighbours, every region chunk by chunk with its
// owner, chunks in use by size, statistics, and a bar that shows where the free chunks are. Pure
// functions of a snapshot; the text is stable, so tests compare it whole.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/memory/bfc.h"

namespace oncilla {

// Names the owner of a chunk from its tag, for example "model 'resnet' constants".
using TagName = std::function<std::string(int64_t tag)>;

struct PoolReportRequest {
  std::string_view pool = {};  // "GPU:0 arenas"
  // The request that failed; 0 and empty if there is none.
  int64_t asked_bytes = 0;
  std::string_view asked_by = {};
  TagName tag_name = nullptr;  // null: tags as numbers
};
std::string PoolReport(const BfcSnapshot& snapshot, const PoolReportRequest& request);
// The same as a JSON object: "pool", "asked_bytes", "asked_by", "stats", "bins", "regions" with
// their chunks by offset.
std::string PoolReportJson(const BfcSnapshot& snapshot, const PoolReportRequest& request);

// `columns` characters over all regions: '_' free, '*' asked for, 'x' padding inside chunks. Each
// shows the byte in the middle of its stretch.
std::string OccupancyBar(const BfcSnapshot& snapshot, int columns = 100);

}  // namespace oncilla
