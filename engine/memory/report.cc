// One function per section, in the order in which the sections are printed.
#include "engine/memory/report.h"

#include <map>
#include <sstream>
#include <vector>

#include "engine/base/format.h"
#include "engine/base/json_writer.h"

namespace oncilla {
namespace {

using Chunk = BfcSnapshot::Chunk;

void PrintHead(std::ostream& out, const BfcSnapshot& snapshot, const PoolReportRequest& request) {
  const BfcStats& s = snapshot.stats;
  out << "memory of " << request.pool << "\n";
  if (request.asked_bytes > 0) {
    out << "asked: " << request.asked_bytes << " (" << HumanBytes(request.asked_bytes) << ")";
    if (!request.asked_by.empty()) out << " by " << request.asked_by;
    out << "\n";
  }
  out << "free in the pool " << HumanBytes(s.free_in_pool()) << ", largest free chunk "
      << HumanBytes(s.largest_free_bytes) << ", could still be added "
      << HumanBytes(s.growable_bytes) << ", pool " << HumanBytes(s.pool_bytes) << ", limit "
      << HumanBytes(s.limit_bytes) << "\n";
  out << "next region "
      << (snapshot.growth ? HumanBytes(s.next_region_bytes) : std::string("takes the whole limit"))
      << ", largest allocation " << HumanBytes(s.max_region_bytes) << ", chunks are multiples of "
      << snapshot.granularity << "\n";
}

void PrintFreeChunk(std::ostream& out, const BfcSnapshot::Region& region, size_t i) {
  auto neighbour = [&](const char* side, const Chunk& c) {
    out << ", " << side << " " << c.bytes << (c.in_use ? " in use" : " free");
    if (c.in_use) out << " (" << c.requested << " asked)";
    out << " bin " << HumanBytes(Bfc::BinBytes(c.bin));
  };
  out << "    free " << region.chunks[i].bytes << " at " << region.id << ":"
      << region.chunks[i].offset;
  if (i > 0) neighbour("before it", region.chunks[i - 1]);
  if (i + 1 < region.chunks.size()) neighbour("after it", region.chunks[i + 1]);
  out << "\n";
}

struct BinTotal {
  int64_t chunks = 0, in_use = 0, bytes = 0, bytes_in_use = 0, requested = 0;
};

std::vector<BinTotal> BinTotals(const BfcSnapshot& snapshot) {
  std::vector<BinTotal> totals(Bfc::kBins);
  for (const auto& region : snapshot.regions) {
    for (const Chunk& c : region.chunks) {
      BinTotal& t = totals[static_cast<size_t>(c.bin)];
      ++t.chunks;
      t.bytes += c.bytes;
      if (!c.in_use) continue;
      ++t.in_use;
      t.bytes_in_use += c.bytes;
      t.requested += c.requested;
    }
  }
  return totals;
}

void PrintBins(std::ostream& out, const BfcSnapshot& snapshot) {
  const std::vector<BinTotal> totals = BinTotals(snapshot);
  out << "bins:\n";
  for (int bin = 0; bin < Bfc::kBins; ++bin) {
    const BinTotal& t = totals[static_cast<size_t>(bin)];
    if (t.chunks == 0) continue;
    out << "  " << HumanBytes(Bfc::BinBytes(bin)) << ": " << t.chunks << " chunks, " << t.in_use
        << " in use; " << t.bytes << " bytes, " << t.bytes_in_use << " in use, " << t.requested
        << " asked for\n";
    for (const auto& region : snapshot.regions) {
      for (size_t i = 0; i < region.chunks.size(); ++i) {
        if (region.chunks[i].bin == bin && !region.chunks[i].in_use) PrintFreeChunk(out, region, i);
      }
    }
  }
}

void PrintRegions(std::ostream& out, const BfcSnapshot& snapshot, const TagName& tag_name) {
  for (const auto& region : snapshot.regions) {
    out << "region " << region.id << ": " << region.bytes << " bytes\n";
    for (const Chunk& c : region.chunks) {
      out << "  " << (c.in_use ? "in use " : "free   ") << c.offset << " + " << c.bytes;
      if (c.in_use) {
        out << " (" << c.requested << " asked) by "
            << (tag_name ? tag_name(c.tag) : std::to_string(c.tag));
      }
      if (c.stamp > 0) out << ", waits for stamp " << c.stamp;
      out << "\n";
    }
  }
}

void PrintSizes(std::ostream& out, const BfcSnapshot& snapshot) {
  std::map<int64_t, int64_t> counts;
  for (const auto& region : snapshot.regions) {
    for (const Chunk& c : region.chunks) counts[c.bytes] += c.in_use ? 1 : 0;
  }
  out << "in use by size:\n";
  for (const auto& [bytes, count] : counts) {
    if (count > 0)
      out << "  " << count << " x " << bytes << " = " << HumanBytes(count * bytes) << "\n";
  }
}

void PrintStats(std::ostream& out, const BfcStats& s) {
  out << "limit " << s.limit_bytes << ", in use " << s.bytes_in_use << " (" << s.requested_bytes
      << " asked for), peak in use " << s.peak_bytes_in_use << ", pool " << s.pool_bytes
      << ", peak pool " << s.peak_pool_bytes << "\n"
      << "allocations " << s.allocations << ", largest " << s.largest_allocation_bytes
      << ", chunks in use " << s.chunks_in_use << ", regions " << s.regions
      << ", largest free chunk " << s.largest_free_bytes << ", fragmentation "
      << static_cast<double>(static_cast<int64_t>(s.fragmentation() * 10000 + 0.5)) / 10000 << "\n";
}

}  // namespace

std::string OccupancyBar(const BfcSnapshot& snapshot, int columns) {
  std::string bar;
  const double total = static_cast<double>(snapshot.stats.pool_bytes);
  double region_begin = 0;
  for (const auto& region : snapshot.regions) {
    for (const Chunk& c : region.chunks) {
      const double begin = region_begin + static_cast<double>(c.offset);
      const double asked = begin + static_cast<double>(c.in_use ? c.requested : 0);
      const double end = begin + static_cast<double>(c.bytes);
      for (;;) {
        const double middle = (static_cast<double>(bar.size()) + 0.5) * total / columns;
        if (static_cast<int>(bar.size()) >= columns || middle >= end) break;
        bar += !c.in_use ? '_' : middle < asked ? '*' : 'x';
      }
    }
    region_begin += static_cast<double>(region.bytes);
  }
  return bar;
}

std::string PoolReport(const BfcSnapshot& snapshot, const PoolReportRequest& request) {
  std::ostringstream out;
  PrintHead(out, snapshot, request);
  PrintBins(out, snapshot);
  PrintRegions(out, snapshot, request.tag_name);
  PrintSizes(out, snapshot);
  PrintStats(out, snapshot.stats);
  out << "[" << OccupancyBar(snapshot) << "]\n";
  return std::move(out).str();
}

std::string PoolReportJson(const BfcSnapshot& snapshot, const PoolReportRequest& request) {
  const BfcStats& s = snapshot.stats;
  JsonWriter json;
  json.Open('{').Field("pool", request.pool);
  if (request.asked_bytes > 0) {
    json.Field("asked_bytes", request.asked_bytes).Field("asked_by", request.asked_by);
  }
  json.Field("granularity", snapshot.granularity).Field("growth", snapshot.growth);
  json.Key("stats").Open('{');
  json.Field("limit_bytes", s.limit_bytes)
      .Field("pool_bytes", s.pool_bytes)
      .Field("peak_pool_bytes", s.peak_pool_bytes)
      .Field("bytes_in_use", s.bytes_in_use)
      .Field("peak_bytes_in_use", s.peak_bytes_in_use)
      .Field("requested_bytes", s.requested_bytes)
      .Field("waiting_bytes", s.waiting_bytes)
      .Field("largest_free_bytes", s.largest_free_bytes)
      .Field("growable_bytes", s.growable_bytes)
      .Field("next_region_bytes", s.next_region_bytes)
      .Field("max_region_bytes", s.max_region_bytes)
      .Field("largest_allocation_bytes", s.largest_allocation_bytes)
      .Field("allocations", s.allocations)
      .Field("chunks_in_use", s.chunks_in_use)
      .Field("fragmentation", s.fragmentation())
      .Close('}');
  json.Key("bins").Open('[');
  const std::vector<BinTotal> totals = BinTotals(snapshot);
  for (int bin = 0; bin < Bfc::kBins; ++bin) {
    const BinTotal& t = totals[static_cast<size_t>(bin)];
    if (t.chunks == 0) continue;
    json.Open('{')
        .Field("bytes", Bfc::BinBytes(bin))
        .Field("chunks", t.chunks)
        .Field("chunks_in_use", t.in_use)
        .Field("total_bytes", t.bytes)
        .Field("bytes_in_use", t.bytes_in_use)
        .Field("requested_bytes", t.requested)
        .Close('}');
  }
  json.Close(']').Key("regions").Open('[');
  for (const auto& region : snapshot.regions) {
    json.Open('{').Field("id", region.id).Field("bytes", region.bytes).Key("chunks").Open('[');
    for (const Chunk& c : region.chunks) {
      json.Open('{').Field("offset", c.offset).Field("bytes", c.bytes).Field("in_use", c.in_use);
      if (c.in_use) {
        json.Field("requested_bytes", c.requested)
            .Field("owner", request.tag_name ? request.tag_name(c.tag) : std::to_string(c.tag));
      }
      if (c.stamp > 0) json.Field("waits_for", c.stamp);
      json.Close('}');
    }
    json.Close(']').Close('}');
  }
  json.Close(']').Close('}');
  return json.Take();
}

}  // namespace oncilla
