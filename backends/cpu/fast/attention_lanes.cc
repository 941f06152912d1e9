// Attention of a block of queries, once per instruction set.
//
// Scores are stored transposed: a row for each key and a lane for each query. Keys can then be read
// in place, as the rows of A of the product's tile, and the softmax runs down the rows, for all
// queries at once and without sums across lanes. Keys are processed in blocks of kKeys, whose
// scores stay in the first-level cache. From one block to the next are carried the largest score,
// the sum of weights and the result so far (online softmax, Milakov and Gimelshein 2018). The
// blocks depend on sizes alone, so results do not depend on threads. The steps for a block of keys:
// Scores, Finish, Weights, Values.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/attention_lanes.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "backends/cpu/fast/attention_lanes.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "backends/cpu/fast/element_lanes.inl.h"
#include "backends/cpu/gemm/gemm_tile.inl.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

static_assert(kTileColumns <= kMostAttentionQueries);

// Keys of a block.
constexpr int64_t kKeys = 256;

// e^x for x <= 0, zero below e^-87; NaN stays NaN. 2^n times a polynomial of degree 6 for 2^f, |f|
// <= 1/2, fitted to 2e-9. Rounding x / ln 2 to float costs a relative error of 6e-8 times |x|,
// which is small where e^x is not.
HWY_INLINE Vector ExpOfNegative(Vector x) {
  const Floats d;
  const hn::RebindToSigned<Floats> ints;
  // The product is the second operand: max of x86 returns the second operand when one is NaN.
  const Vector z = hn::Max(hn::Set(d, -127.0f), hn::Mul(x, hn::Set(d, 1.44269504f)));
  const auto n = hn::NearestInt(z);
  const Vector f = hn::Sub(z, hn::ConvertTo(d, n));
  Vector p = hn::Set(d, 0.000153375755f);
  for (const float c :
       {0.00133998599f, 0.00961851981f, 0.0555032901f, 0.240226462f, 0.693147182f, 1.0f}) {
    p = hn::MulAdd(p, f, hn::Set(d, c));
  }
  const auto power = hn::ShiftLeft<23>(hn::Add(n, hn::Set(ints, 127)));
  return hn::Mul(p, hn::BitCast(d, power));
}

template <class T>
class BlockAttention {
 public:
  explicit BlockAttention(const AttentionBlock<T>& block)
      : b_(block),
        vectors_((block.queries + kLanes - 1) / kLanes),
        columns_((block.value_size + kTileColumns - 1) / kTileColumns * kTileColumns) {}

  void Run() {
    Start();
    int32_t first = b_.first[0], end = b_.end[0];
    for (int i = 0; i < b_.queries; ++i) {
      // A query that sees no key does not widen the range of keys that the block reads.
      if (b_.first[i] >= b_.end[i]) continue;
      first = std::min(first, b_.first[i]);
      end = std::max(end, b_.end[i]);
    }
    for (int64_t key = first; key < end; key += kKeys) {
      const int64_t count = std::min<int64_t>(kKeys, end - key);
      Scores(key, count);
      Finish(key, count);
      Weights(count);
      Values(key, count);
    }
    Store();
  }

 private:
  // Transposes and scales the queries, one per lane; lanes without a query are zero.
  void Start() {
    const Floats d;
    std::fill_n(q_, b_.size * kTileColumns, 0.0f);
    for (int i = 0; i < b_.queries; ++i) {
      for (int64_t s = 0; s < b_.size; ++s) {
        q_[s * kTileColumns + i] = static_cast<float>(b_.q[i][s]) * b_.scale;
      }
    }
    HWY_ALIGN float most[kTileColumns], total[kTileColumns];
    for (int i = 0; i < kTileColumns; ++i) {
      most[i] = i < b_.queries ? b_.sink[i] : -HUGE_VALF;
      total[i] = most[i] == -HUGE_VALF ? 0.0f : 1.0f;
    }
    for (int v = 0; v < vectors_; ++v) {
      most_[v] = hn::Load(d, most + v * kLanes);
      total_[v] = hn::Load(d, total + v * kLanes);
    }
    std::fill_n(y_, b_.queries * columns_, 0.0f);
  }

  static TileArgs<float> Tile() {
    static constexpr int64_t kOneTap = 0;
    TileArgs<float> t = {};
    t.taps = &kOneTap;
    t.tap_count = 1;
    return t;
  }

  // s = k q^T for a block of keys.
  void Scores(int64_t key, int64_t count) {
    TileArgs<float> t = Tile();
    t.run_step = 1;
    t.run = b_.size;
    t.b = q_;
    t.c_step = kTileColumns;
    const int64_t tiles = (count + kTileRows - 1) / kTileRows;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t row = count * tile / tiles;
      const int rows = static_cast<int>(count * (tile + 1) / tiles - row);
      const T* k = b_.k + (key + row) * b_.k_row;
      if constexpr (std::is_same_v<T, float>) {
        t.a = k;
        t.row_step = b_.k_row;
      } else {
        for (int i = 0; i < rows; ++i) Widen(k + i * b_.k_row, b_.size, k_ + i * b_.size);
        t.a = k_;
        t.row_step = b_.size;
      }
      t.c = s_ + row * kTileColumns;
      RunTile(rows, vectors_, t);
    }
  }
  static void Widen(const T* from, int64_t count, float* to) {
    for (int64_t i = 0; i < count; i += kLanes) {
      StoreSome(LoadSome(from + i, count - i), to + i, count - i);
    }
  }

  // Applies the soft cap and the mask, and hides keys outside of each query's range.
  void Finish(int64_t key, int64_t count) {
    const Floats d;
    const hn::RebindToSigned<Floats> ints;
    for (int v = 0; v < vectors_; ++v) {
      if (b_.softcap > 0) {
        const Lanes cap(hn::Set(d, b_.softcap)), part = Lanes(1.0) / cap;
        for (int64_t j = 0; j < count; ++j) {
          float* at = s_ + j * kTileColumns + v * kLanes;
          hn::Store((Tanh(Lanes(hn::Load(d, at)) * part) * cap).v, d, at);
        }
      }
      if (b_.has_mask) AddMask(key, count, v);
      if (SeenByAll(key, count, v)) continue;
      HWY_ALIGN int32_t first[kLanes], end[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const int lane = std::min(v * kLanes + i, b_.queries - 1);
        first[i] = b_.first[lane];
        end[i] = b_.end[lane];
      }
      const auto from = hn::Load(ints, first), to = hn::Load(ints, end);
      const Vector hidden = hn::Set(d, -HUGE_VALF);
      for (int64_t j = 0; j < count; ++j) {
        const auto place = hn::Set(ints, static_cast<int32_t>(key + j));
        const auto seen = hn::AndNot(hn::Lt(place, from), hn::Lt(place, to));
        float* at = s_ + j * kTileColumns + v * kLanes;
        hn::Store(hn::IfThenElse(hn::RebindMask(d, seen), hn::Load(d, at), hidden), d, at);
      }
    }
  }

  bool SeenByAll(int64_t key, int64_t count, int v) const {
    const int last = std::min(b_.queries, (v + 1) * kLanes);
    for (int i = v * kLanes; i < last; ++i) {
      if (b_.first[i] > key || b_.end[i] < key + count) return false;
    }
    return true;
  }

  void AddMask(int64_t key, int64_t count, int v) {
    const Floats d;
    const hn::RebindToSigned<Floats> ints;
    const int lane = v * kLanes, lanes = std::min(kLanes, b_.queries - lane);
    const T* base = b_.mask[lane];
    // The distance between the mask rows of neighbouring lanes, if it is the same for all.
    const int64_t step = lanes > 1 ? b_.mask[lane + 1] - base : 0;
    bool even = step >= 0 && step * kLanes < std::numeric_limits<int32_t>::max();
    for (int i = 1; even && i < lanes; ++i) even = b_.mask[lane + i] - base == i * step;
    const auto places =
        hn::Mul(hn::Iota(ints, 0), hn::Set(ints, even ? static_cast<int>(step) : 0));
    // Lanes without a query read the first row again, so that no gather leaves the mask.
    const auto index = hn::IfThenElseZero(hn::FirstN(ints, static_cast<size_t>(lanes)), places);
    HWY_ALIGN float lane_masks[kLanes] = {};
    for (int64_t j = 0; j < count; ++j) {
      const int64_t place = (key + j) * b_.mask_key;
      Vector add;
      if (even && step == 0) {
        add = hn::Set(d, static_cast<float>(base[place]));
      } else if (even && std::is_same_v<T, float>) {
        if constexpr (std::is_same_v<T, float>) add = hn::GatherIndex(d, base + place, index);
      } else {
        for (int i = 0; i < lanes; ++i) {
          lane_masks[i] = static_cast<float>(b_.mask[lane + i][place]);
        }
        add = hn::Load(d, lane_masks);
      }
      float* at = s_ + j * kTileColumns + lane;
      hn::Store(hn::Add(hn::Load(d, at), add), d, at);
    }
  }

  // Turns scores into weights relative to the largest score so far, and scales down the sum and
  // result so far when that largest score has grown.
  void Weights(int64_t count) {
    const Floats d;
    const Vector none = hn::Set(d, -HUGE_VALF);
    HWY_ALIGN float fade[kTileColumns];
    for (int v = 0; v < vectors_; ++v) {
      float* s = s_ + v * kLanes;
      Vector most = most_[v];
      for (int64_t j = 0; j < count; ++j) {
        most = hn::Max(hn::Load(d, s + j * kTileColumns), most);
      }
      // A query that has seen only hidden keys has minus infinity as its largest score. Zero stands
      // in for it, because the difference of two infinities is NaN.
      const Vector from = hn::IfThenElseZero(hn::Ne(most, none), most);
      const Vector less = ExpOfNegative(hn::Sub(most_[v], from));
      Vector sum = hn::Zero(d);
      for (int64_t j = 0; j < count; ++j) {
        const Vector e = ExpOfNegative(hn::Sub(hn::Load(d, s + j * kTileColumns), from));
        hn::Store(e, d, s + j * kTileColumns);
        sum = hn::Add(sum, e);
      }
      total_[v] = hn::MulAdd(total_[v], less, sum);
      most_[v] = most;
      hn::Store(less, d, fade + v * kLanes);
    }
    if (!started_) return;
    for (int i = 0; i < b_.queries; ++i) {
      const Vector less = hn::Set(d, fade[i]);
      float* y = y_ + i * columns_;
      for (int64_t c = 0; c < columns_; c += kLanes) {
        hn::Store(hn::Mul(hn::Load(d, y + c), less), d, y + c);
      }
    }
  }

  // y += weights times values.
  void Values(int64_t key, int64_t count) {
    TileArgs<float> t = Tile();
    t.row_step = 1;
    t.run_step = kTileColumns;
    t.run = count;
    t.b = v_;
    t.c_step = columns_;
    t.add_to_c = started_;
    const int64_t tiles = (b_.queries + kTileRows - 1) / kTileRows;
    for (int64_t column = 0; column < b_.value_size; column += kTileColumns) {
      const int64_t width = std::min<int64_t>(kTileColumns, b_.value_size - column);
      const int vectors = static_cast<int>((width + kLanes - 1) / kLanes);
      for (int64_t j = 0; j < count; ++j) {
        const T* from = b_.v + (key + j) * b_.v_row + column;
        for (int v = 0; v < vectors; ++v) {
          hn::Store(LoadSome(from + v * kLanes, width - v * kLanes), Floats(),
                    v_ + j * kTileColumns + v * kLanes);
        }
      }
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t row = b_.queries * tile / tiles;
        const int rows = static_cast<int>(b_.queries * (tile + 1) / tiles - row);
        t.a = s_ + row;
        t.c = y_ + row * columns_ + column;
        RunTile(rows, vectors, t);
      }
    }
    started_ = true;
  }

  void Store() {
    const Floats d;
    HWY_ALIGN float total[kTileColumns];
    for (int v = 0; v < vectors_; ++v) hn::Store(total_[v], d, total + v * kLanes);
    const float blind = b_.zero_blind ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    for (int i = 0; i < b_.queries; ++i) {
      const Vector factor = hn::Set(d, total[i] == 0 ? blind : 1 / total[i]);
      for (int64_t c = 0; c < b_.value_size; c += kLanes) {
        StoreSome(hn::Mul(hn::Load(d, y_ + i * columns_ + c), factor), b_.y[i] + c,
                  b_.value_size - c);
      }
    }
  }

  const AttentionBlock<T>& b_;
  const int vectors_;      // of queries
  const int64_t columns_;  // of a row of the result, in whole panels
  bool started_ = false;
  Vector most_[kTileVectors], total_[kTileVectors];
  HWY_ALIGN float q_[kMostAttentionSize * kTileColumns];  // [size][query]
  HWY_ALIGN float s_[kKeys * kTileColumns];               // [key][query]
  HWY_ALIGN float v_[kKeys * kTileColumns];               // a panel of values
  HWY_ALIGN float y_[kTileColumns * kMostAttentionSize];  // [query][column], sums so far
  HWY_ALIGN float k_[std::is_same_v<T, float> ? 1 : kTileRows * kMostAttentionSize];
};

template <class T>
void AttendBlockHere(const AttentionBlock<T>& block) {
  BlockAttention<T>(block).Run();
}
void AttendFloats(const AttentionBlock<float>& block) { AttendBlockHere(block); }
void AttendHalves(const AttentionBlock<Half>& block) { AttendBlockHere(block); }
void AttendBFloats(const AttentionBlock<BFloat16>& block) { AttendBlockHere(block); }
int QueriesHere() { return kTileColumns; }

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {

HWY_EXPORT(AttendFloats);
HWY_EXPORT(AttendHalves);
HWY_EXPORT(AttendBFloats);
HWY_EXPORT(QueriesHere);

int AttentionQueries() { return HWY_DYNAMIC_DISPATCH(QueriesHere)(); }
template <>
void AttendBlock(const AttentionBlock<float>& block) {
  HWY_DYNAMIC_DISPATCH(AttendFloats)(block);
}
template <>
void AttendBlock(const AttentionBlock<Half>& block) {
  HWY_DYNAMIC_DISPATCH(AttendHalves)(block);
}
template <>
void AttendBlock(const AttentionBlock<BFloat16>& block) {
  HWY_DYNAMIC_DISPATCH(AttendBFloats)(block);
}

}  // namespace oncilla::cpu
#endif
