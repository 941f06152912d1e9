// Winograd's convolution: when it pays, its filters, and its launches.
//
// The estimate compares the clocks of a direct convolution with those of three launches:
// transforming the inputs, the products of all planes, and transforming their sums. GPUs compute
// the products by tiles; CPU devices by panels and block by block, so that the data between two
// launches stay in the caches.
#include "backends/opencl/recipes/winograd.h"

#include <algorithm>

#include "backends/opencl/recipes/matmul_recipe.h"
#include "backends/opencl/recipes/tiles.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

// The channels that 4 x 4 tiles sum before the partial sum is added to the rest; winograd.h states
// the errors.
constexpr int64_t kLongestSum = 64;
// The estimates are good to some ten percent, and a direct convolution needs less memory, so the
// gain must be larger.
constexpr double kGain = 0.9;
// Bounds on the channels of a filter. With fewer channels, the transforms cost what the products
// save. Filters with more channels usually belong to small images, for which reading so many
// weights is not worth it; 4 x 4 tiles have four times as many weights.
constexpr int64_t kLeastChannels = 32, kMostChannels = 256, kMostForFour = 128;

// Sizes that follow from the geometry and the tile.
struct Sizes {
  Sizes(const WindowGeometry& g, int tile)
      : planes((tile + 2) * (tile + 2)),
        tiles1(DivideUp(g.axis[1].out, tile)),
        tiles2(DivideUp(g.axis[2].out, tile)),
        tiles(SaturatingMul(g.batch, SaturatingMul(tiles1, tiles2))) {}
  int64_t planes, tiles1, tiles2, tiles;
};

// The channels that products by panels sum separately: all of them, or equal parts; 0 if no equal
// parts are short enough.
int64_t PanelRun(int64_t channels, int tile) {
  if (tile == 2 || channels <= kLongestSum) return channels;
  for (int64_t run = kLongestSum; run >= kLongestSum / 4; --run) {
    if (channels % run == 0) return run;
  }
  return 0;
}

// Channels of a vector in the transforms on CPU devices.
int64_t VectorOf(int64_t channels, int64_t columns, const Capabilities& caps) {
  if (!TuningOf(caps).panels) return 1;
  int64_t vector = PanelOf(caps).vector;
  while (channels % vector != 0 || columns % vector != 0) vector /= 2;
  return vector;
}

bool CanTransform(const ConvAttrs& attrs, const TensorDesc& filter, const Capabilities& caps) {
  const auto ones = [](const std::vector<int64_t>& v) {
    return std::ranges::all_of(v, [](int64_t i) { return i == 1; });
  };
  const Shape& s = filter.shape;
  if (caps.winograd == WinogradChoice::kNone || filter.dtype != DType::kF32 || s.rank() != 4 ||
      s[0] != 3 || s[1] != 3 || s[2] < 4 || s[3] < 4 || s[2] % 4 != 0 || s[3] % 4 != 0 ||
      attrs.groups != 1 || !ones(attrs.strides) || !ones(attrs.dilations)) {
    return false;
  }
  const Tuning& tuning = TuningOf(caps);
  if (tuning.panels) return s[3] <= kMostGroups;
  return !tuning.tiles.empty() && caps.local_groups;
}

ProductSizes ProductSizesOf(const WindowGeometry& g, int tile) {
  const Sizes sizes(g, tile);
  return {sizes.tiles,  g.out_channels, g.in_channels,
          sizes.planes, true,           tile == 4 ? kLongestSum : 0,
          true};
}

// The device clocks of a launch on a GPU that moves `bytes`. They come from the shared cache if
// that holds twice as many, otherwise from memory.
double MovingClocks(double bytes, const Capabilities& caps) {
  const Tuning& t = TuningOf(caps);
  const int64_t cores = NominalCores(caps);
  const double cache =
      static_cast<double>(cores * (cores < t.many_cores ? t.shared_cache : t.shared_cache_of_many));
  const double rate = 2 * bytes > cache ? t.memory_bytes : t.cache_bytes;
  return bytes / (static_cast<double>(cores) * rate);
}
double WeightClocks(double bytes, const Capabilities& caps) {
  return bytes / (static_cast<double>(NominalCores(caps)) * TuningOf(caps).memory_bytes);
}

double Bytes(const WindowGeometry& g, bool output) {
  return 4.0 * static_cast<double>(g.batch) *
         static_cast<double>(output ? g.out_pixels() * g.out_channels
                                    : g.in_pixels() * g.in_channels);
}

double GpuDirect(const WindowGeometry& g, const Capabilities& caps) {
  const double weights = 36.0 * static_cast<double>(g.in_channels * g.out_channels);
  return std::max(
             ExpectedClocks(SizesOf(g, DType::kF32), caps),
             WeightClocks(weights, caps) + MovingClocks(Bytes(g, false) + Bytes(g, true), caps)) +
         TuningOf(caps).launch_clocks;
}

// `inputs` and `sums` are the bytes that one launch passes to the next.
double GpuWinograd(const WindowGeometry& g, int tile, double inputs, double sums,
                   const Capabilities& caps) {
  // A launch of a transform waits for memory twice in sequence.
  constexpr double kWaits = 1000;
  const double weights = 4.0 * static_cast<double>(Sizes(g, tile).planes) *
                         static_cast<double>(g.in_channels * g.out_channels);
  return MovingClocks(Bytes(g, false) + inputs, caps) +
         std::max(ExpectedClocks(ProductSizesOf(g, tile), caps),
                  WeightClocks(weights, caps) + MovingClocks(inputs + sums, caps)) +
         MovingClocks(sums + Bytes(g, true), caps) + 2 * kWaits + 3 * TuningOf(caps).launch_clocks;
}

// The launches of one convolution.
class Launches {
 public:
  Launches(const WindowGeometry& g, int tile, const Capabilities& caps)
      : g_(g),
        tile_(tile),
        caps_(caps),
        sizes_(g, tile),
        panels_(TuningOf(caps).panels),
        vector_(VectorOf(g.in_channels, g.out_channels, caps)) {
    block_ = sizes_.tiles;
    if (panels_) {
      v_row_ = OddLines(g.in_channels);
      m_row_ = OddLines(g.out_channels);
      // The data passed from one launch to the next should stay in the caches of the cores.
      const int64_t bytes = 4 * sizes_.planes * (v_row_ + m_row_);
      const int64_t blocks =
          std::min(DivideUp(SaturatingMul(bytes, sizes_.tiles), kBlockBytes), kMostBlocks);
      block_ = DivideUp(sizes_.tiles, std::max<int64_t>(blocks, 1));
    } else {
      v_row_ = g.in_channels;
      m_row_ = g.out_channels;
      plan_ = PlanTiles(ProductSizesOf(g, tile), caps);
    }
  }

  // The number of elements that one launch passes to the next.
  int64_t inputs() const { return SaturatingMul(SaturatingMul(sizes_.planes, block_), v_row_); }
  int64_t sums() const {
    return SaturatingMul(SaturatingMul(sizes_.planes * plan_.parts, block_), m_row_);
  }

  Recipe Make(const std::string& activation, int64_t direct_bytes, const NodeView& node) const {
    Recipe recipe;
    const Scratch v = recipe.AddScratch(4 * inputs(), caps_);
    const In filter{1, 0, direct_bytes, true}, u{1, RoundUp(direct_bytes, caps_.base_alignment)};
    std::optional<Scratch> m;
    if (panels_) m = recipe.AddScratch(4 * sums(), caps_);
    for (int64_t first = 0; first < sizes_.tiles; first += block_) {
      const int64_t tiles = std::min(block_, sizes_.tiles - first);
      AddInput(first, tiles, v, recipe);
      if (panels_) {
        AddPanels(tiles, v, u, *m, node, recipe);
      } else {
        m = AddTiles(v, u, node, recipe);
      }
      AddOutput(first, tiles, *m, filter, activation, node, recipe);
    }
    return recipe;
  }

 private:
  static constexpr int64_t kBlockBytes = 8 << 20, kMostBlocks = 64;

  // Rounds up to an odd number of cache lines, so that rows do not all map to the same sets of a
  // cache.
  static int64_t OddLines(int64_t floats) { return (DivideUp(floats, 16) | 1) * 16; }

  // Indices of tiles may lie in the padding on any side.
  IndexType Index() const {
    int64_t around = SaturatingMul(g_.batch, g_.in_channels);
    for (const WindowAxis& axis : g_.axis) {
      around = SaturatingMul(around, axis.in + axis.pad_begin + axis.pad_end + 8);
    }
    return IndexType(
        std::max({inputs(), sums(), around, g_.batch * g_.out_pixels() * g_.out_channels,
                  9 * RoundUp(g_.out_channels, 64) * g_.in_channels}));
  }
  DispatchBuilder Transform(const char* entry) const {
    DispatchBuilder b(cl::kConvWinograd, entry, Index());
    b.Define({{"TILE", StrCat(tile_)},
              {"VEC", StrCat(vector_)},
              {"WHOLE", Flag(panels_)},
              {"PANEL", StrCat(panels_ ? PanelColumns(caps_) : 0)},
              {"IDX", Index().name()}});
    return b;
  }
  // A work-item transforms a tile, or one vector of a tile's channels.
  int64_t ItemsOf(int64_t tiles, int64_t channels) const {
    return panels_ ? tiles : tiles * (channels / vector_);
  }
  void SetItems(int64_t tiles, int64_t channels, int64_t loop, DispatchBuilder& b,
                Recipe& recipe) const {
    const int64_t group = panels_ ? 1 : caps_.Group(TuningOf(caps_).transform_group);
    b.Define("GROUP", StrCat(group));
    b.Items(ItemsOf(tiles, channels), group);
    b.Loop(std::max(loop, panels_ ? channels / vector_ : 1)).AddTo(recipe);
  }

  void AddInput(int64_t first, int64_t tiles, Scratch v, Recipe& recipe) const {
    DispatchBuilder b = Transform("input");
    b.Define("ACTIVATION", "ACT_none").Arg("x", In{0}).Arg("v", v);
    b.Index({{"items", ItemsOf(tiles, g_.in_channels)}, {"first", first}});
    b.Int({{"channels", g_.in_channels}, {"in1", g_.axis[1].in}, {"in2", g_.axis[2].in}});
    b.Int({{"pad1", g_.axis[1].pad_begin}, {"pad2", g_.axis[2].pad_begin}});
    b.Int({{"tiles1", sizes_.tiles1}, {"tiles2", sizes_.tiles2}});
    b.Index({{"v_row", v_row_}, {"v_plane", tiles * v_row_}});
    SetItems(tiles, g_.in_channels, 1, b, recipe);
  }

  void AddPanels(int64_t tiles, Scratch v, const In& u, Scratch m, const NodeView& node,
                 Recipe& recipe) const {
    PanelLaunch launch;
    ConvProduct& p = launch.shape;
    p.run = PanelRun(g_.in_channels, tile_);
    p.tap_count = {1, 1, g_.in_channels / p.run};
    p.tap_step = {0, 0, p.run};
    p.line_rows = tiles;
    p.row_step = v_row_;
    p.line_count = {1, 1, 1};
    p.line_step = {0, 0, 0};
    p.columns = g_.out_channels;
    const int64_t plane = PackedElements(g_.in_channels, g_.out_channels, caps_);
    launch.row_y = m_row_;
    launch.y_step = tiles * m_row_;
    launch.batch.axes = {{sizes_.planes, tiles * v_row_, plane}};
    launch.products = sizes_.planes;
    launch.most = std::max({inputs(), sums(), sizes_.planes * plane});
    launch.sums = m;
    launch.partial = p.run < g_.in_channels;
    opencl::AddPanels(launch, v, u, node, "none", caps_, recipe);
  }

  Scratch AddTiles(Scratch v, const In& u, const NodeView& node, Recipe& recipe) const {
    MatMulGeometry p;
    p.batch = sizes_.planes;
    p.m = sizes_.tiles;
    p.n = p.b_row = g_.out_channels;
    p.k = p.a_row = g_.in_channels;
    p.a_col = p.b_col = 1;
    p.batch_dims = {sizes_.planes};
    p.a_steps = {p.m * p.k};
    p.b_steps = {p.k * p.n};
    const int64_t most = std::max({inputs(), sums(), sizes_.planes * p.k * p.n});
    return AddParts(ProductSizesOf(g_, tile_), p, plan_, v, u, node, most, caps_, recipe);
  }

  void AddOutput(int64_t first, int64_t tiles, Scratch m, const In& filter,
                 const std::string& activation, const NodeView& node, Recipe& recipe) const {
    DispatchBuilder b = Transform("output");
    b.Arg("m", m).Arg("x", In{0, 0, 0, true}).Arg("filter", filter);
    AddEpilogue(node, activation, b);
    b.Arg("y", Out{0}).Index({{"items", ItemsOf(tiles, g_.out_channels)}, {"first", first}});
    b.Int({{"channels", g_.in_channels}, {"columns", g_.out_channels}});
    b.Int({{"in1", g_.axis[1].in}, {"in2", g_.axis[2].in}});
    b.Int({{"out1", g_.axis[1].out}, {"out2", g_.axis[2].out}});
    b.Int({{"pad1", g_.axis[1].pad_begin}, {"pad2", g_.axis[2].pad_begin}});
    b.Int({{"tiles1", sizes_.tiles1}, {"tiles2", sizes_.tiles2}, {"part_count", plan_.parts}});
    b.Index({{"m_row", m_row_}, {"m_part", tiles * m_row_}});
    SetItems(tiles, g_.out_channels, std::max(g_.in_channels, plan_.parts), b, recipe);
  }

  const WindowGeometry& g_;
  const int tile_;
  const Capabilities& caps_;
  const Sizes sizes_;
  const bool panels_;
  const int64_t vector_;
  int64_t block_ = 0;  // tiles that are processed together
  int64_t v_row_ = 0, m_row_ = 0;
  TilePlan plan_;
};

// Costs on CPU devices, in clocks of all cores. Measured on PoCL with AVX-512, to some ten percent.
constexpr double kVectorsPerClock = 1.5;    // multiply-adds of panels
constexpr double kTransformClocks = 2;      // a vector of transformed inputs or sums
constexpr double kWeightBytesPerClock = 8;  // out of memory
constexpr double kLaunch = 30'000;

double CpuProduct(double multiplies, double weights, const Capabilities& caps) {
  const auto lanes = static_cast<double>(caps.compute_units * PanelOf(caps).vector);
  return std::max(multiplies / (lanes * kVectorsPerClock), 4 * weights / kWeightBytesPerClock);
}
double CpuDirect(const WindowGeometry& g, const Capabilities& caps) {
  const auto weights = static_cast<double>(9 * g.in_channels * g.out_channels);
  const auto pixels = static_cast<double>(g.batch * g.out_pixels());
  return CpuProduct(weights * pixels, weights, caps) + (ProductOf(g).pads ? 2 : 1) * kLaunch;
}
double CpuWinograd(const WindowGeometry& g, int tile, const Capabilities& caps) {
  const Sizes sizes(g, tile);
  const auto weights = static_cast<double>(sizes.planes * g.in_channels * g.out_channels);
  const auto tiles = static_cast<double>(sizes.tiles);
  const double transformed =
      static_cast<double>(sizes.planes * (g.in_channels + g.out_channels)) * tiles;
  const auto lanes = static_cast<double>(caps.compute_units * PanelOf(caps).vector);
  return CpuProduct(weights * tiles, weights, caps) + transformed * kTransformClocks / lanes +
         3 * kLaunch;
}

// The gain of tiles of this size: the time without them over the time with them; 0 where they
// cannot be used.
double Gain(const WindowGeometry& g, int tile, const Capabilities& caps) {
  const bool panels = TuningOf(caps).panels;
  if (!panels && !HasTiles(caps)) return 0;
  const Launches launches(g, tile, caps);
  if (SaturatingAdd(launches.inputs(), launches.sums()) > caps.max_allocation / 16) return 0;
  if (panels) return CpuDirect(g, caps) / CpuWinograd(g, tile, caps);
  return GpuDirect(g, caps) / GpuWinograd(g, tile, 4.0 * static_cast<double>(launches.inputs()),
                                          4.0 * static_cast<double>(launches.sums()), caps);
}

}  // namespace

int WinogradTileFor(const ConvAttrs& attrs, const TensorDesc& filter, const Capabilities& caps) {
  if (!CanTransform(attrs, filter, caps)) return 0;
  const int64_t channels = filter.shape[2], columns = filter.shape[3];
  const auto can = [&](int tile) { return !TuningOf(caps).panels || PanelRun(channels, tile) > 0; };
  if (caps.winograd == WinogradChoice::kTwo) return 2;
  if (caps.winograd == WinogradChoice::kFour) return can(4) ? 4 : 2;
  const int64_t least = std::min(channels, columns), most = std::max(channels, columns);
  if (least < kLeastChannels || most > kMostChannels) return 0;
  return most <= kMostForFour && can(4) ? 4 : 2;
}

bool WinogradPays(const WindowGeometry& g, int tile, const Capabilities& caps) {
  if (caps.winograd == WinogradChoice::kTwo || caps.winograd == WinogradChoice::kFour) {
    return TuningOf(caps).panels || HasTiles(caps);
  }
  return caps.winograd == WinogradChoice::kEstimate && Gain(g, tile, caps) > 1 / kGain;
}

Recipe WinogradConv(const std::string& activation, const WindowGeometry& g, int tile,
                    int64_t direct_bytes, const NodeView& node, const Capabilities& caps) {
  return Launches(g, tile, caps).Make(activation, direct_bytes, node);
}

}  // namespace oncilla::opencl
