// Elementwise programs on vectors of float, in tiles that stay in the first-level cache.
//
// Every value is a run of floats: an input read in place where it is dense f32, a tile otherwise.
// A row that repeats (a bias per channel) is expanded once per chunk, as often as it fits a tile,
// and tiles end at a multiple of its period, so that short rows need no inner loop. Quantised
// inputs and results are scaled as they are read and written. Booleans are 0 and 1; integers and
// 16-bit floats are converted when loaded and stored. Between steps, 16-bit results keep the
// precision of fp32, as in the fused kernels of OpenCL; a Cast rounds, since that is its purpose.
#include "backends/cpu/fast/elementwise.h"

#include <algorithm>

#include "backends/cpu/fast/element_program.h"
#include "backends/cpu/fast/tiles.h"
#include "backends/cpu/integer/elementwise_native.h"
#include "backends/cpu/integer/quantize_rows.h"

namespace oncilla::cpu {
namespace {

// All tiles of a program together should stay in the first-level cache: kCacheFloats is half of it.
// No tile is so short that the calls of lane functions become noticeable.
constexpr int64_t kCacheFloats = 6144, kTileFloats = 2048, kShortestTileFloats = 256;

class FastElementwise : public CpuKernel {
 public:
  FastElementwise(const NodeView& node, FastProgram program, BroadcastAxes axes)
      : CpuKernel(node), program_(std::move(program)), axes_(std::move(axes)) {
    out_dtype_ = node.outputs[0].dtype;
    const auto values =
        static_cast<int64_t>(program_.tiles + program_.streams.size() + program_.constants.size());
    tile_ = std::clamp(kCacheFloats / (values + 1) / 256 * 256, kShortestTileFloats, kTileFloats);
    step_ = tile_;
    int64_t longest = 1;  // of the short periods; each divides the longer ones
    for (Stream& s : program_.streams) {
      s.repeated = s.layout == Stream::Layout::kRow && s.period <= tile_ / 2;
      if (s.repeated) longest = std::max(longest, s.period);
    }
    step_ = tile_ / longest * longest;
    // A task of about ten microseconds, in whole steps.
    grain_ = std::max<int64_t>(1, static_cast<int64_t>(65536 / program_.cost) / step_) * step_;
  }

  std::string description() const override {
    if (program_.byte_sum) return "vectors of bytes, added";
    return StrCat("vectors, ", program_.instructions.size(), " steps",
                  program_.result_scale ? ", quantised" : "");
  }

  Status Run(const Args& args) const override {
    ParallelFor(args.threads, axes_.elements, grain_, [&](int64_t begin, int64_t end) {
      if (program_.byte_sum) {
        AddBytes(*program_.byte_sum, args.inputs[program_.terms[0]] + begin,
                 args.inputs[program_.terms[1]] + begin, end - begin, args.outputs[0] + begin);
      } else {
        RunChunk(args, begin, end);
      }
    });
    return Status();
  }

 private:
  void RunChunk(const Args& args, int64_t begin, int64_t end) const {
    const int inputs = static_cast<int>(program_.streams.size());
    const int constants = static_cast<int>(program_.constants.size());
    const int values = inputs + constants + program_.tiles;
    // A tile for every value, and one for a result that is converted. Untouched pages cost nothing,
    // so unused tiles are free.
    const auto memory =
        std::make_unique_for_overwrite<float[]>(static_cast<size_t>((values + 1) * tile_ + 16));
    float* const tiles =
        reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.get()) + 63) / 64 * 64);
    auto tile_of = [&](int value) { return tiles + value * tile_; };
    std::vector<const float*> at(static_cast<size_t>(values));
    std::vector<Held> held(static_cast<size_t>(inputs));
    for (int v = 0; v < values; ++v) at[v] = tile_of(v);
    const int64_t used = std::min(step_, end - begin);
    for (int k = 0; k < inputs; ++k) {
      if (program_.streams[k].once_per_chunk() && args.has_input(k)) {
        LayOut(program_.streams[k], args.inputs[k], used, tile_of(k));
      }
    }
    ByteScale result_scale = program_.result_scale.value_or(ByteScale());
    if (program_.scale_input >= 0) result_scale.scale = *args.In<float>(program_.scale_input);
    if (program_.zero_input >= 0) result_scale.zero = *args.In<float>(program_.zero_input);
    for (int c = 0; c < constants; ++c) {
      std::fill_n(tile_of(inputs + c), used, program_.constants[c]);
    }
    for (int64_t n; begin < end; begin += n) {
      n = std::min(step_, end - begin);
      for (const Stream& s : program_.streams) {
        if (s.period > 0 && !s.repeated && s.layout == Stream::Layout::kRow) {
          n = std::min(n, s.period - begin % s.period);
        }
      }
      const bool direct = out_dtype_ == DType::kF32;
      float* const out = direct ? args.Out<float>(0) + begin : tile_of(values);
      for (int k = 0; k < inputs; ++k) {
        if (program_.streams[k].once_per_chunk() || !args.has_input(k)) continue;
        // A program that only converts an input needs no tile.
        const bool alone = program_.instructions.empty();
        at[k] = Load(args, k, begin, n, alone ? out : tile_of(k), alone ? nullptr : &held[k]);
      }
      const float* result = at[program_.result];
      for (const Instruction& in : program_.instructions) {
        const bool last = &in == &program_.instructions.back() && in.result == program_.result;
        float* to = last && direct ? out : tile_of(in.result);
        in.function(at[in.operands[0]], at[in.operands[1]], at[in.operands[2]], to, n, in.alpha,
                    in.beta);
        if (last) result = to;
      }
      if (program_.result_scale) {
        ToScaled(result, n, result_scale, out_dtype_,
                 args.outputs[0] + begin * BytesOf(out_dtype_));
      } else if (!direct) {
        FromFloats(result, n, out_dtype_, args.outputs[0] + begin * BytesOf(out_dtype_));
      } else if (result != out) {
        std::copy_n(result, n, out);
      }
    }
  }

  // Repeats a scalar, or a short row, as often as it fits.
  static void LayOut(const Stream& s, const std::byte* from, int64_t n, float* to) {
    const int64_t period = s.layout == Stream::Layout::kScalar ? 1 : s.period;
    const int64_t first = std::min(period, n);
    ToFloats(s.dtype, from, first, to);
    for (int64_t done = first; done < n;) {
      const int64_t more = std::min(done, n - done);
      std::copy_n(to, more, to + done);
      done += more;
    }
  }

  // The number that fills the first elements of a tile. An input that is constant over many
  // elements, such as a scale per channel where channels come first, then fills its tile once.
  struct Held {
    int64_t offset = 0, count = 0;
  };

  // Elements [begin, begin + n) of input k as floats. `held` belongs to the tile, or is null.
  const float* Load(const Args& args, int k, int64_t begin, int64_t n, float* tile,
                    Held* held) const {
    const Stream& s = program_.streams[k];
    if (s.layout == Stream::Layout::kStrided) {
      Gather(args.inputs[k], s.dtype, k, begin, n, tile, held);
      return tile;
    }
    const int64_t from = s.layout == Stream::Layout::kRow ? begin % s.period : begin;
    const std::byte* data = args.inputs[k] + from * BytesOf(s.dtype);
    if (s.in_place()) return reinterpret_cast<const float*>(data);
    if (s.scale) {
      FromScaled(s.dtype, data, n, *s.scale, tile);
      return tile;
    }
    ToFloats(s.dtype, data, n, tile);
    return tile;
  }

  // Any strides: gathers run by run along the innermost axis.
  void Gather(const std::byte* data, DType dtype, int k, int64_t begin, int64_t n, float* to,
              Held* held) const {
    const auto bytes = static_cast<int64_t>(BytesOf(dtype));
    ForRuns(axes_, k, begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
      const std::byte* from = data + offset * bytes;
      if (stride == 1) {
        ToFloats(dtype, from, count, to);
      } else if (stride == 0) {
        const bool whole = count == n && held != nullptr;
        if (whole && held->offset == offset && held->count >= n) return;
        float value;
        ToFloats(dtype, from, 1, &value);
        FillFloats(value, count, to);
        if (held != nullptr) *held = {offset, whole ? count : 0};
      } else {
        DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
          const auto* elements = reinterpret_cast<const internal::Stored<T>*>(from);
          for (int64_t j = 0; j < count; ++j) {
            to[j] = internal::Widen<T, float>(elements[j * stride]);
          }
        });
      }
      to += count;
    });
  }

  FastProgram program_;
  BroadcastAxes axes_;
  DType out_dtype_;
  int64_t tile_, step_, grain_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastElementwise(const NodeView& node) {
  ONCILLA_ASSIGN(const ElementwiseProgram program, ProgramOf(node));
  std::vector<Shape> shapes;
  for (const Fact& fact : node.inputs) {
    shapes.push_back(fact.absent() ? Shape() : fact.shape.ToShape());
  }
  BroadcastAxes axes = MergeBroadcast(node.outputs[0].shape.ToShape(), shapes);
  const bool floats = std::any_of(program.steps.begin(), program.steps.end(),
                                  [](const auto& step) { return IsFloat(step.compute); });
  // Programs without floats, or with arithmetic on integers, run at the width of their types.
  if (!floats) {
    if (auto native = MakeNativeElementwise(node, program, axes)) return native;
  }
  if (auto rows = MakeQuantizeRows(node, program, axes)) return rows;
  auto fast = TranslateElementwise(program, node, axes);
  if (!fast.has_value()) return MakeNativeElementwise(node, program, axes);
  return std::unique_ptr<CpuKernel>(
      std::make_unique<FastElementwise>(node, *std::move(fast), std::move(axes)));
}

}  // namespace oncilla::cpu
