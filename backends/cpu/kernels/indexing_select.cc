// Ops that select elements by a rule, on the CPU: plain code. Ops whose number of results depends
// on data are host functions.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/move.h"
#include "engine/ops/array/indexing.h"

namespace oncilla::cpu {
namespace {

Result<std::vector<Tensor>> NonZero(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  std::vector<int64_t> places;
  DispatchDType(in[0].dtype(), [&]<class T>(TypeTag<T>) {
    const auto x = in[0].As<T>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] != static_cast<T>(0.0f)) places.push_back(static_cast<int64_t>(i));
    }
  });
  const Shape& shape = in[0].shape();
  const auto n = static_cast<int64_t>(places.size());
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({DType::kI64, {shape.rank(), n}}));
  auto y = out.MutableAs<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    int64_t left = places[static_cast<size_t>(i)];
    for (int axis = shape.rank(); axis-- > 0; left /= shape[axis]) {
      y[static_cast<size_t>(axis * n + i)] = left % shape[axis];
    }
  }
  return std::vector<Tensor>{std::move(out)};
}

// The diagonal k of a triangle; 0 when absent.
Result<int64_t> Diagonal(const NodeView& node) {
  if (!node.has_input(1)) return 0;
  ONCILLA_ASSIGN(const auto k, NeedInts(node.inputs[1], "k"));
  return k[0];
}

template <class T>
void CopyTriangle(const TriluAttrs& attrs, const Shape& shape, int64_t k, const T* x, T* y) {
  const int64_t rows = shape[shape.rank() - 2], columns = shape.back();
  const int64_t n = shape.Product(0, shape.rank() - 1);
  for (int64_t r = 0; r < n; ++r, x += columns, y += columns) {
    // Columns [begin, end) are kept.
    const int64_t i = r % rows;
    const int64_t begin = attrs.upper ? std::clamp<int64_t>(SaturatingAdd(i, k), 0, columns) : 0;
    const int64_t end =
        attrs.upper ? columns
                    : std::clamp<int64_t>(SaturatingAdd(SaturatingAdd(i, k), 1), 0, columns);
    std::fill_n(y, columns, T());
    std::copy_n(x + begin, end - begin, y + begin);
  }
}

Status Trilu(const TriluAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const int64_t k, Diagonal(args.node));
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T) {
    CopyTriangle(attrs, args.in(0).shape, k, args.In<T>(0), args.Out<T>(0));
  });
  return Status();
}

// Slices [outer, n, inner] of a tensor, compared as lists of elements.
template <class T>
class SliceOrder {
 public:
  SliceOrder(const T* x, int64_t outer, int64_t n, int64_t inner)
      : x_(x), outer_(outer), n_(n), inner_(inner) {}

  bool operator()(int64_t a, int64_t b) const { return Compare(a, b) < 0; }

  bool HasNan(int64_t a) const {
    if constexpr (!std::is_same_v<T, std::string> && !std::is_integral_v<T>) {
      for (int64_t o = 0; o < outer_; ++o) {
        const T* p = x_ + (o * n_ + a) * inner_;
        if (std::any_of(p, p + inner_, [](const T& v) { return v != v; })) return true;
      }
    }
    return false;
  }

  int Compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer_; ++o) {
      const T* pa = x_ + (o * n_ + a) * inner_;
      const T* pb = x_ + (o * n_ + b) * inner_;
      for (int64_t i = 0; i < inner_; ++i) {
        if (Less(pa[i], pb[i])) return -1;
        if (Less(pb[i], pa[i])) return 1;
      }
    }
    return 0;
  }

 private:
  // NaNs are equal to each other and above all numbers.
  static bool Less(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, std::string> || std::is_integral_v<T>) {
      return a < b;
    } else {
      return a < b || (b != b && a == a);
    }
  }

  const T* x_;
  int64_t outer_, n_, inner_;
};

// What Unique returns about n slices, whatever their elements are.
struct Groups {
  IntList first, inverse, counts;
};

template <class T>
Groups GroupsOf(const SliceOrder<T>& less, int64_t n, const UniqueAttrs& attrs) {
  IntList order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  WorkLook look;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    look.GoOrThrow(8);
    return less(a, b);
  });
  // In this order equal slices are adjacent, and the first one in x comes first.
  HostVector<std::pair<size_t, size_t>> runs;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || less.Compare(order[i - 1], order[i]) != 0 ||
        (!attrs.equal_nans && less.HasNan(order[i]))) {
      runs.emplace_back(i, i);
    }
    ++runs.back().second;
  }
  if (!attrs.sorted) {
    std::sort(runs.begin(), runs.end(),
              [&](const auto& a, const auto& b) { return order[a.first] < order[b.first]; });
  }
  Groups out;
  out.inverse.resize(order.size());
  for (const auto& [begin, end] : runs) {
    for (size_t i = begin; i < end; ++i) {
      out.inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(out.first.size());
    }
    out.first.push_back(order[begin]);
    out.counts.push_back(static_cast<int64_t>(end - begin));
  }
  return out;
}

// Equal numbers have equal hashes: those of both zeros, and of all NaNs.
template <class T>
uint64_t HashOf(const T& x) {
  uint64_t bits = 0;
  if constexpr (std::is_same_v<T, std::string>) {
    bits = std::hash<std::string>()(x);
  } else if constexpr (std::is_integral_v<T>) {
    bits = static_cast<uint64_t>(x);
  } else {
    const auto wide = static_cast<double>(x);
    if (wide != 0) bits = wide != wide ? 1 : std::bit_cast<uint64_t>(wide);
  }
  bits *= 0x9E3779B97F4A7C15;  // spreads what differs in a few bits over the upper ones
  return bits ^ bits >> 32;
}

// The same for slices of one element, which are found in a table instead of sorted.
template <class T>
Groups GroupsOfElements(const T* x, const SliceOrder<T>& less, int64_t n,
                        const UniqueAttrs& attrs) {
  Groups out;
  out.inverse.resize(static_cast<size_t>(n));
  // Groups by hash, in the first free place behind it.
  const uint64_t places = std::bit_ceil(static_cast<uint64_t>(n) * 2 + 1);
  IntList table(places, -1);
  WorkLook look;
  for (int64_t i = 0; i < n; ++i) {
    const auto add = [&] {
      out.first.push_back(i);
      out.counts.push_back(0);
      return std::ssize(out.first) - 1;
    };
    look.GoOrThrow(8);
    int64_t group = -1;
    if (!attrs.equal_nans && less.HasNan(i)) {
      group = add();
    } else {
      uint64_t at = HashOf(x[i]) & (places - 1);
      while (table[at] >= 0 && less.Compare(out.first[static_cast<size_t>(table[at])], i) != 0) {
        look.GoOrThrow(8);
        at = (at + 1) & (places - 1);
      }
      if (table[at] < 0) table[at] = add();
      group = table[at];
    }
    out.inverse[static_cast<size_t>(i)] = group;
    ++out.counts[static_cast<size_t>(group)];
  }
  if (!attrs.sorted) return out;
  const size_t count = out.first.size();
  IntList order(count), rank(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    look.GoOrThrow(8);
    return less(out.first[static_cast<size_t>(a)], out.first[static_cast<size_t>(b)]);
  });
  const IntList first = out.first, counts = out.counts;
  for (size_t i = 0; i < count; ++i) {
    const auto from = static_cast<size_t>(order[i]);
    rank[from] = static_cast<int64_t>(i);
    out.first[i] = first[from];
    out.counts[i] = counts[from];
  }
  for (int64_t& group : out.inverse) group = rank[static_cast<size_t>(group)];
  return out;
}

template <class T>
Groups GroupsOfSlices(const T* x, int64_t outer, int64_t n, int64_t inner,
                      const UniqueAttrs& attrs) {
  const SliceOrder<T> less(x, outer, n, inner);
  if (outer == 1 && inner == 1) return GroupsOfElements(x, less, n, attrs);
  return GroupsOf(less, n, attrs);
}

template <class T>
void CopyFirsts(std::span<const int64_t> first, int64_t outer, int64_t n, int64_t inner, const T* x,
                T* y) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i : first) y = std::copy_n(x + (o * n + i) * inner, inner, y);
  }
}

Result<std::vector<Tensor>> Unique(const UniqueAttrs& attrs, const NodeView&,
                                   std::span<const Tensor> in) {
  const bool flat = attrs.axis == kFlatAxis;
  Shape shape = in[0].shape();
  if (flat) shape = {shape.elements()};
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(flat ? 0 : attrs.axis, shape.rank()));
  const int64_t outer = shape.Product(0, axis), n = shape[axis];
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  Groups groups;
  Tensor y;
  auto kept = [&] {
    Shape out = shape;
    out[axis] = static_cast<int64_t>(groups.first.size());
    return out;
  };
  if (in[0].dtype() == DType::kString) {
    const std::string* x = in[0].strings().data();
    groups = GroupsOfSlices(x, outer, n, inner, attrs);
    std::vector<std::string> out(static_cast<size_t>(kept().elements()));
    CopyFirsts(groups.first, outer, n, inner, x, out.data());
    y = Tensor::Strings(kept(), std::move(out));
  } else {
    DispatchDType(in[0].dtype(), [&]<class T>(TypeTag<T>) {
      groups = GroupsOfSlices(in[0].As<T>().data(), outer, n, inner, attrs);
    });
    ONCILLA_ASSIGN(y, Tensor::Allocate({in[0].dtype(), kept()}));
    DispatchBytes(BytesOf(in[0].dtype()), [&]<class T>(T) {
      CopyFirsts(groups.first, outer, n, inner, in[0].As<T>().data(), y.MutableAs<T>().data());
    });
  }
  return std::vector<Tensor>{std::move(y), Tensor::Int64s(groups.first),
                             Tensor::Int64s(groups.inverse), Tensor::Int64s(groups.counts)};
}

struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

Box BoxOf(const float* p, bool center_point) {
  if (center_point) {
    const float half_width = p[2] / 2, half_height = p[3] / 2;
    return {p[1] - half_height, p[0] - half_width, p[1] + half_height, p[0] + half_width};
  }
  // The box is given by any two opposite corners.
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}

// The boxes that were kept, which hide others: coordinates in lists of their own and in whole
// blocks, so that compilers compare a block by vectors.
class KeptBoxes {
 public:
  // A box that is empty, or has no area for a NaN, hides nothing.
  void Add(const Box& box) {
    if (!(box.area() > 0)) return;
    if (count_ % kBlock == 0) blocks_.emplace_back();
    Block& block = blocks_.back();
    const int64_t i = count_++ % kBlock;
    block.y1[i] = box.y1;
    block.x1[i] = box.x1;
    block.y2[i] = box.y2;
    block.x2[i] = box.x2;
    block.area[i] = box.area();
  }

  // Whether the intersection of `box` with one of them, over their union, is above the threshold;
  // in float as other engines compute it, so that decisions at the threshold agree.
  bool Hide(const Box& box, float threshold) const {
    const float area = box.area();
    if (!(area > 0)) return false;
    for (const Block& block : blocks_) {
      int hides = 0;
      for (int i = 0; i < kBlock; ++i) {
        const float height = std::min(block.y2[i], box.y2) - std::max(block.y1[i], box.y1);
        const float width = std::min(block.x2[i], box.x2) - std::max(block.x1[i], box.x1);
        const float both = height * width;
        const float share = both / (block.area[i] + area - both);
        hides |= static_cast<int>(height > 0) & static_cast<int>(width > 0) &
                 static_cast<int>(share > threshold);
      }
      if (hides != 0) return true;
    }
    return false;
  }

 private:
  static constexpr int kBlock = 16;
  struct Block {
    // Boxes that are not there overlap nothing.
    Block() {
      std::fill_n(y1, kBlock, 0.0f);
      std::fill_n(x1, kBlock, 0.0f);
      std::fill_n(y2, kBlock, -std::numeric_limits<float>::infinity());
      std::fill_n(x2, kBlock, -std::numeric_limits<float>::infinity());
      std::fill_n(area, kBlock, 1.0f);
    }
    float y1[kBlock], x1[kBlock], y2[kBlock], x2[kBlock], area[kBlock];
  };
  std::vector<Block> blocks_;
  int64_t count_ = 0;
};

Result<std::vector<Tensor>> NonMaxSuppression(const NonMaxSuppressionAttrs& attrs,
                                              const NodeView& node, std::span<const Tensor> in) {
  int64_t most = 0;
  if (node.has_input(2)) {
    ONCILLA_ASSIGN(const auto max, NeedInts(node.inputs[2], "max"));
    most = max[0];
  }
  const float iou = node.has_input(3) ? in[3].As<float>()[0] : 0.0f;
  if (!(iou >= 0 && iou <= 1)) return InvalidArgument("iou is ", iou, ", not between 0 and 1");
  const Shape& shape = in[1].shape();
  const int64_t batches = shape[0], classes = shape[1], n = shape[2];
  std::vector<int64_t> out;
  WorkLook look;
  for (int64_t batch = 0; batch < batches; ++batch) {
    const float* boxes = in[0].As<float>().data() + batch * n * 4;
    for (int64_t c = 0; c < classes; ++c) {
      const float* scores = in[1].As<float>().data() + (batch * classes + c) * n;
      std::vector<int64_t> order;
      for (int64_t i = 0; i < n; ++i) {
        // A NaN is never better than another score.
        const bool counts =
            node.has_input(4) ? scores[i] > in[4].As<float>()[0] : scores[i] == scores[i];
        if (counts) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
      KeptBoxes kept;
      int64_t count = 0;
      for (int64_t i : order) {
        if (count >= most) break;
        ONCILLA_TRY(look.Go(8 + count));
        const Box box = BoxOf(boxes + i * 4, attrs.center_point_box);
        if (kept.Hide(box, iou)) continue;
        kept.Add(box);
        ++count;
        out.insert(out.end(), {batch, c, i});
      }
    }
  }
  return std::vector<Tensor>{
      Tensor::Int64s(out).Reshaped({static_cast<int64_t>(out.size()) / 3, 3})};
}

const KernelRow kRows[] = {
    HostRow<NonZero>("NonZero", kFixedSize),
    Row<Trilu>("Trilu", kFixedSize),
    HostRow<Unique>("Unique", kAll),
    HostRow<NonMaxSuppression>("NonMaxSuppression", Set(DType::kF32)),
};

}  // namespace

std::span<const KernelRow> SelectKernels() { return kRows; }

}  // namespace oncilla::cpu
