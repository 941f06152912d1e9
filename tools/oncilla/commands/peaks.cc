// Measures peak rates: arithmetic by products as the engine computes them, and, on the CPU, memory
// by the C library's copy and by sums.
#include "tools/oncilla/commands/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/pair_tile.h"
#include "backends/cpu/integer/byte_product.h"
#include "engine/ops/op_set.h"
#include "tools/oncilla/commands/node_time.h"

namespace oncilla::tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBudget = 0.1;  // seconds of each measurement
// The sides of square products. The smaller product comes close to the peak and ends before another
// program gets its time slice, so that some of many runs are undisturbed. The larger one gives
// sleeping threads the time to join.
constexpr int64_t kSide = 512, kLargeSide = 1024;
constexpr int64_t kLargest = int64_t{64} << 20;  // of an array
constexpr int64_t kPiece = 1 << 18;              // floats that are read by one thread
// Bytes of a large array that are timed at once, so that, as with small products, some runs are
// undisturbed.
constexpr int64_t kWindow = int64_t{8} << 20;

double Cube(int64_t side) {
  return 2.0 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
}

// The least time of run(0), run(1), .. of at least three runs.
template <class F>
double Least(F&& run) {
  double least = 0;
  const auto begin = Clock::now();
  auto now = begin;
  for (int64_t i = 0; i < 3 || now - begin < std::chrono::duration<double>(kBudget); ++i) {
    const auto start = now;
    run(i);
    now = Clock::now();
    const double time_s = std::chrono::duration<double>(now - start).count();
    least = i == 0 ? time_s : std::min(least, time_s);
  }
  return least;
}

// Products grow until a run takes milliseconds, because a small product does not fill a large GPU.
Result<double> BestProduct(Device& device, const OpSet& ops) {
  double best = 0;
  for (int64_t side = kSide; side <= 8 * kSide; side *= 2) {
    const TensorDesc square{DType::kF32, {side, side}};
    ONCILLA_ASSIGN(const double time_s,
                   LeastTime(device, *ops.Find("MatMul"), {}, {{square}, {square, true}}, kBudget));
    best = std::max(best, Cube(side) / time_s);
    if (time_s > 0.004) break;
  }
  return best;
}

Result<double> ByteProduct(Device& device, const OpSet& ops) {
  double best = 0;
  for (const int64_t side : {kSide, kLargeSide}) {
    const Shape square{side, side};
    ONCILLA_ASSIGN(const double time_s,
                   LeastTime(device, *ops.Find("MatMulInteger"), {},
                             {{{DType::kU8, square}}, {{DType::kI8, square}, true}}, kBudget));
    best = std::max(best, Cube(side) / time_s);
  }
  return best;
}

// The rate of products of pairs of bfloat16. It is measured even if the engine prefers float
// products because they are as fast on this processor.
double PairProduct(ThreadPool& pool, int64_t side) {
  using cpu::BFloat16Pair;
  const std::vector<BFloat16> a(static_cast<size_t>(side * side), BFloat16(0.5f));
  std::vector<BFloat16> c(a.size());
  std::vector<BFloat16Pair> b(static_cast<size_t>(cpu::PackedCount<BFloat16Pair>(side, side)));
  cpu::Pack<BFloat16, BFloat16Pair>(&pool, a.data(), side, 1, side, side, b.data());
  static constexpr int64_t kOneTap = 0;
  cpu::Product<BFloat16, BFloat16Pair> product;
  product.line_rows = product.row_step = product.run = product.columns = product.c_step = side;
  product.taps = &kOneTap;
  product.a = a.data();
  product.b = b.data();
  product.c = c.data();
  const cpu::Split split = cpu::SplitOf(product);
  return Cube(side) / Least([&](int64_t) {
           pool.ParallelFor(split.tasks(), 1, [&](int64_t task, int64_t end, int) {
             for (; task < end; ++task) cpu::RunTask(product, split, task);
           });
         });
}

// Copies between two arrays of `bytes` each. They are always divided among the threads in the same
// way, so that what fits a core's cache stays there. Large arrays are copied window by window.
CopyRate Copy(ThreadPool& pool, const std::byte* from, std::byte* to, int64_t bytes) {
  const int64_t window = std::min(bytes, kWindow);
  const int64_t part = (window + pool.size() - 1) / pool.size();
  // Small arrays are copied repeatedly, so that the start of the threads does not count.
  const int64_t times = std::max<int64_t>(1, kWindow / bytes);
  const double time_s = Least([&](int64_t run) {
    const int64_t offset = run % (bytes / window) * window;
    pool.ParallelFor(pool.size(), 1, [&](int64_t i, int64_t end, int) {
      for (; i < end; ++i) {
        const int64_t first = offset + std::min(window, i * part);
        const int64_t last = offset + std::min(window, (i + 1) * part);
        for (int64_t t = 0; t < times; ++t) {
          std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
        }
      }
    });
  });
  return {static_cast<double>(2 * bytes), static_cast<double>(2 * window * times) / time_s};
}

double Read(ThreadPool& pool, const float* from) {
  constexpr int64_t kPieces = kWindow / static_cast<int64_t>(sizeof(float)) / kPiece;
  std::vector<float> sums(kPieces);  // kept, so that they are computed
  const double time_s = Least([&](int64_t run) {
    const float* window = from + run % (kLargest / kWindow) * kPieces * kPiece;
    pool.ParallelFor(kPieces, 1, [&](int64_t i, int64_t end, int) {
      for (; i < end; ++i) {
        const float* piece = window + i * kPiece;
        sums[static_cast<size_t>(i)] = cpu::Dot(piece, piece + kPiece / 2, kPiece / 2);
      }
    });
  });
  return static_cast<double>(kWindow) / time_s;
}

Status MeasureCpu(Device& device, ThreadPool& pool, const OpSet& ops, Peaks& peaks) {
  if (cpu::PairTilesHere() != nullptr && cpu::PanelColumns() == cpu::PairTiles::kColumns) {
    peaks.bf16_flops = std::max(PairProduct(pool, kSide), PairProduct(pool, kLargeSide));
  }
  if (cpu::LayoutOfBytes().quads) {
    ONCILLA_ASSIGN(peaks.int8_ops, ByteProduct(device, ops));
  }
  ONCILLA_ASSIGN(auto from, device.AllocateRegion(kLargest));
  ONCILLA_ASSIGN(auto to, device.AllocateRegion(kLargest));
  std::memset(from->host(), 0, kLargest);  // otherwise a single page of zeros backs all of it
  std::memset(to->host(), 0, kLargest);
  const int64_t least = int64_t{128} << 10;
  for (int64_t bytes = least * pool.size(); bytes < kLargest; bytes *= 8) {
    peaks.copies.push_back(Copy(pool, from->host(), to->host(), bytes));
  }
  peaks.copies.push_back(Copy(pool, from->host(), to->host(), kLargest));
  peaks.read_bytes = Read(pool, reinterpret_cast<const float*>(from->host()));
  ONCILLA_TRY(device.ReleaseRegion(std::move(from)));
  return device.ReleaseRegion(std::move(to));
}

// Measured by an op that reads and writes each element once.
Status MeasureCopies(Device& device, const OpSet& ops, Peaks& peaks) {
  for (const int64_t bytes : {kLargest / 64, kLargest / 8, kLargest}) {
    const TensorDesc array{DType::kF32, {bytes / static_cast<int64_t>(sizeof(float))}};
    ONCILLA_ASSIGN(const double time_s,
                   LeastTime(device, *ops.Find("Neg"), {}, {{array}}, kBudget));
    const auto moved = static_cast<double>(2 * bytes);
    peaks.copies.push_back({moved, moved / time_s});
  }
  return Status();
}

std::string Giga(double rate, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof(text), "%.*f %s",
                rate < 1e10   ? 2
                : rate < 1e11 ? 1
                              : 0,
                rate * 1e-9, unit);
  return text;
}

}  // namespace

double Peaks::copy_rate(double bytes) const {
  const auto fits = [&](const CopyRate& copy) { return copy.bytes >= bytes; };
  const auto found = std::find_if(copies.begin(), copies.end(), fits);
  return found == copies.end() ? copy_bytes() : found->bytes_per_s;
}

double Peaks::rate_of(DType dtype) const {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8:
      return std::max(fp32_flops, int8_ops.value_or(0));
    case DType::kF16:
    case DType::kBF16:
      return std::max(fp32_flops, bf16_flops.value_or(0));
    default:
      return fp32_flops;
  }
}

Result<Peaks> MeasurePeaks(Session& session, size_t index) {
  Device& device = *session.device_set().devices()[index];
  const OpSet& ops = *session.runtime().ops();
  Peaks peaks;
  peaks.device = session.device_set().names()[index];
  ONCILLA_ASSIGN(peaks.fp32_flops, BestProduct(device, ops));
  if (device.info().can_evaluate) {
    ONCILLA_TRY(MeasureCpu(device, session.threads(), ops, peaks));
  } else {
    ONCILLA_TRY(MeasureCopies(device, ops, peaks));
  }
  return peaks;
}

std::string PeaksText(const Peaks& peaks) {
  std::string text = StrCat(Giga(peaks.fp32_flops, "GFLOP/s"), " fp32");
  if (peaks.bf16_flops) text += StrCat(", ", Giga(*peaks.bf16_flops, "GFLOP/s"), " bf16");
  if (peaks.int8_ops) text += StrCat(", ", Giga(*peaks.int8_ops, "GOP/s"), " int8");
  text += StrCat("; copies ", Giga(peaks.copy_bytes(), "GB/s"));
  if (peaks.copies.size() > 1) {
    text += StrCat(" (", Giga(peaks.copies.front().bytes_per_s, "GB/s"), " in caches)");
  }
  if (peaks.read_bytes) text += StrCat(", reads ", Giga(*peaks.read_bytes, "GB/s"));
  return text;
}

Json PeaksJson(const Peaks& peaks) {
  const auto number = [](const std::optional<double>& rate) {
    return rate ? Json(*rate) : Json(nullptr);
  };
  Json json = {{"fp32_flops_per_s", peaks.fp32_flops},
               {"bf16_flops_per_s", number(peaks.bf16_flops)},
               {"int8_ops_per_s", number(peaks.int8_ops)},
               {"copy_bytes_per_s", peaks.copy_bytes()},
               {"read_bytes_per_s", number(peaks.read_bytes)}};
  json["copies"] = Json::array();
  for (const CopyRate& copy : peaks.copies) {
    json["copies"].push_back({{"bytes", copy.bytes}, {"bytes_per_s", copy.bytes_per_s}});
  }
  return json;
}

}  // namespace oncilla::tool
