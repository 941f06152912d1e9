// Non-maximum suppression of boxes, by TensorFlow's rules.
#include <algorithm>
#include <cmath>
#include <queue>

#include "backends/cpu/kernel.h"
#include "engine/ops/nn/image.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

// Intersection over union of two boxes, each given by any two opposite corners.
float Overlap(const float* a, const float* b) {
  const float a_top = std::min(a[0], a[2]), a_left = std::min(a[1], a[3]);
  const float a_bottom = std::max(a[0], a[2]), a_right = std::max(a[1], a[3]);
  const float b_top = std::min(b[0], b[2]), b_left = std::min(b[1], b[3]);
  const float b_bottom = std::max(b[0], b[2]), b_right = std::max(b[1], b[3]);
  const float a_area = (a_bottom - a_top) * (a_right - a_left);
  const float b_area = (b_bottom - b_top) * (b_right - b_left);
  if (a_area <= 0 || b_area <= 0) return 0;
  const float high = std::max(std::min(a_bottom, b_bottom) - std::max(a_top, b_top), 0.0f);
  const float wide = std::max(std::min(a_right, b_right) - std::max(a_left, b_left), 0.0f);
  return high * wide / (a_area + b_area - high * wide);
}

struct Candidate {
  float score;
  int64_t box;
  size_t compared = 0;  // the first `compared` chosen boxes have lowered the score already
  // For a heap whose top is the best candidate: the highest score, and of equal scores the first
  // box.
  bool operator<(const Candidate& other) const {
    return score == other.score ? box > other.box : score < other.score;
  }
};

struct Rules {
  int64_t most = 0;
  float iou = 0, score = 0, sigma = 0;
};

// The chosen candidates, best first. `similar(i, j)` is the overlap of two boxes.
template <class F>
std::vector<Candidate> Choose(std::span<const float> scores, const Rules& rules, F&& similar) {
  std::priority_queue<Candidate> queue;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > rules.score) queue.push({scores[i], static_cast<int64_t>(i)});
  }
  const bool soft = rules.sigma > 0;
  const float scale = soft ? -0.5f / rules.sigma : 0.0f;
  std::vector<Candidate> chosen;
  while (std::ssize(chosen) < rules.most && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    bool hidden = false;
    for (size_t j = chosen.size(); j-- > next.compared;) {
      const float overlap = similar(next.box, chosen[j].box);
      if (soft) {
        next.score *= std::exp(scale * overlap * overlap);
      } else if (overlap > rules.iou) {
        hidden = true;
        break;
      }
      if (next.score <= rules.score) break;
    }
    next.compared = chosen.size();
    if (hidden) continue;
    if (next.score == before) {
      chosen.push_back(next);
    } else if (next.score > rules.score) {
      queue.push(next);
    }
  }
  return chosen;
}

float Number(const Tensor& t) { return t.As<float>()[0]; }

Tensors SelectBoxes(const SelectBoxesAttrs& attrs, const NodeView& node,
                    std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const std::vector<int64_t> max, NeedInts(node.inputs[2], "max"));
  if (max[0] < 0) return InvalidArgument("max_output_size must be non-negative, not ", max[0]);
  Rules rules{max[0], Number(in[3]), Number(in[4]), Number(in[5])};
  if (!attrs.overlaps && !(rules.iou >= 0 && rules.iou <= 1)) {
    return InvalidArgument("iou_threshold must be in [0, 1], not ", rules.iou);
  }
  if (rules.sigma < 0) return InvalidArgument("soft_nms_sigma must be >= 0, not ", rules.sigma);
  if (attrs.pad && rules.most > (int64_t{1} << 28)) {
    return Exhausted("max_output_size is too large: ", rules.most);
  }
  const float* boxes = in[0].As<float>().data();
  const auto scores = in[1].As<float>();
  const auto n = std::ssize(scores);
  const std::vector<Candidate> chosen = Choose(scores, rules, [&](int64_t i, int64_t j) {
    return attrs.overlaps ? boxes[i * n + j] : Overlap(boxes + i * 4, boxes + j * 4);
  });
  std::vector<int32_t> which;
  std::vector<float> kept;
  for (const Candidate& c : chosen) {
    which.push_back(static_cast<int32_t>(c.box));
    kept.push_back(c.score);
  }
  if (attrs.pad) {
    which.resize(static_cast<size_t>(rules.most), 0);
    kept.resize(static_cast<size_t>(rules.most), 0);
  }
  const int32_t valid = static_cast<int32_t>(chosen.size());
  return std::vector<Tensor>{Tensor::Of<int32_t>(DType::kI32, {std::ssize(which)}, which),
                             Tensor::Of<float>(DType::kF32, {std::ssize(kept)}, kept),
                             Tensor::Of<int32_t>(DType::kI32, {}, {&valid, 1})};
}

Status SelectBoxesByClass(const SelectBoxesByClassAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const std::vector<int64_t> per_class, args.Ints(2, "max per class"));
  const Shape boxes = args.in(0).shape, scores = args.in(1).shape;
  const int64_t n = scores[1], classes = scores[2], sets = boxes[2];
  const int64_t room = args.out(0).shape[1];
  const Rules rules{per_class[0], args.In<float>(4)[0], args.In<float>(5)[0], 0};
  if (!(rules.iou >= 0 && rules.iou <= 1)) {
    return InvalidArgument("iou_threshold must be in [0, 1], not ", rules.iou);
  }
  struct Found {
    float score;
    int64_t type, box;
  };
  for (int64_t image = 0; image < scores[0]; ++image) {
    const float* from = args.In<float>(0) + image * n * sets * 4;
    std::vector<Found> found;
    std::vector<float> own(static_cast<size_t>(n));
    for (int64_t c = 0; c < classes && !args.threads.ended(); ++c) {
      for (int64_t i = 0; i < n; ++i) {
        own[static_cast<size_t>(i)] = args.In<float>(1)[(image * n + i) * classes + c];
      }
      const auto at = [&](int64_t i) { return from + (i * sets + (sets > 1 ? c : 0)) * 4; };
      for (const Candidate& k :
           Choose(own, rules, [&](int64_t i, int64_t j) { return Overlap(at(i), at(j)); })) {
        found.push_back({k.score, c, k.box});
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.score > b.score; });
    const auto count = std::min(room, std::ssize(found));
    for (int64_t i = 0; i < room; ++i) {
      float* box = args.Out<float>(0) + (image * room + i) * 4;
      float &score = args.Out<float>(1)[image * room + i],
            &type = args.Out<float>(2)[image * room + i];
      std::fill_n(box, 4, 0.0f);
      score = type = 0;
      if (i >= count) continue;
      const Found& f = found[static_cast<size_t>(i)];
      const float* own_box = from + (f.box * sets + (sets > 1 ? f.type : 0)) * 4;
      for (int k = 0; k < 4; ++k) {
        box[k] = attrs.clip ? std::max(std::min(own_box[k], 1.0f), 0.0f) : own_box[k];
      }
      score = f.score;
      type = static_cast<float>(f.type);
    }
    args.Out<int32_t>(3)[image] = static_cast<int32_t>(count);
  }
  return {};
}

const KernelRow kRows[] = {
    HostRow<SelectBoxes>("SelectBoxes", Set(DType::kF32)),
    Row<SelectBoxesByClass>("SelectBoxesByClass", Set(DType::kF32)),
};

}  // namespace

std::span<const KernelRow> BoxKernels() { return kRows; }

}  // namespace oncilla::cpu
