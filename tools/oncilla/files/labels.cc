// Scores are ranked as doubles; equal scores keep the order of their classes.
#include "tools/oncilla/files/labels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/base/file.h"
#include "tools/oncilla/files/json_tensor.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

constexpr int kBarColumns = 40;
constexpr uint64_t kMaxLabelBytes = 64 << 20;

Status NoScores(std::string_view why) {
  return WithStage(InvalidArgument("--topk: ", why), Stage::kOptions);
}

// The number of classes of a tensor with one row per image: the last axis; the other axes must be
// the batch.
int64_t Columns(const Shape& shape) {
  if (shape.rank() == 0) return 0;
  int64_t columns = 1;
  for (int i = shape.rank() == 1 ? 0 : 1; i < shape.rank(); ++i) columns *= shape[i];
  return shape.back() == columns || columns == 0 ? columns : 0;
}

bool IsDistribution(std::span<const double> row) {
  const double sum = std::accumulate(row.begin(), row.end(), 0.0);
  return std::all_of(row.begin(), row.end(), [](double v) { return v >= 0 && v <= 1 + 1e-3; }) &&
         sum <= 1 + 1e-2;
}

// Returns false, and changes nothing, if a score is not finite.
bool Softmax(std::span<double> row) {
  if (!std::all_of(row.begin(), row.end(), [](double v) { return std::isfinite(v); })) return false;
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& v : row) sum += v = std::exp(v - most);
  for (double& v : row) v /= sum;
  return true;
}

std::vector<LabelScore> Best(std::span<const double> row, size_t k,
                             const std::function<std::string(size_t)>& label) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  k = std::min(k, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
                    [&](size_t a, size_t b) {
                      // NaN last, so that this is a strict order.
                      if (std::isnan(row[a]) != std::isnan(row[b])) return std::isnan(row[b]);
                      return row[a] != row[b] && !std::isnan(row[a]) ? row[a] > row[b] : a < b;
                    });
  std::vector<LabelScore> best;
  for (size_t i = 0; i < k; ++i) best.push_back({label(order[i]), row[order[i]]});
  return best;
}

}  // namespace

Result<std::vector<std::string>> ReadLabels(const std::string& file) {
  ONCILLA_ASSIGN(const std::string text, ReadFile(file, kMaxLabelBytes));
  std::vector<std::string> labels;
  if (file.ends_with(".json")) {
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_array()) {
      auto tensor = ReadJsonTensor(text);
      if (!tensor.ok()) return In(tensor.status(), file);
      return tensor->strings();
    }
    for (const auto& item : json) {
      if (!item.is_string()) {
        return WithStage(DataLoss(file, ": the list holds something that is not a string"),
                         Stage::kFile);
      }
      labels.push_back(item.get<std::string>());
    }
    return labels;
  }
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    labels.push_back(text.substr(at, end - at));
    if (!labels.back().empty() && labels.back().back() == '\r') labels.back().pop_back();
    at = end + 1;
  }
  if (labels.empty()) return WithStage(DataLoss(file, ": holds no labels"), Stage::kFile);
  return labels;
}

Result<TopLabels> FindTopLabels(const std::vector<NamedTensor>& outputs, int k,
                                const std::vector<std::string>& labels) {
  const Tensor *names = nullptr, *scores = nullptr;
  TopLabels top;
  for (const auto& [name, tensor] : outputs) {
    if (tensor.dtype() != DType::kString || !labels.empty()) continue;
    for (const auto& [other, candidate] : outputs) {
      if (!IsFloat(candidate.dtype()) || candidate.shape() != tensor.shape()) continue;
      names = &tensor;
      scores = &candidate;
      top.output = other;
    }
  }
  for (const auto& [name, tensor] : outputs) {
    if (names || !IsFloat(tensor.dtype()) || Columns(tensor.shape()) < 2) continue;
    if (scores && Columns(scores->shape()) >= Columns(tensor.shape())) continue;
    scores = &tensor;
    top.output = name;
  }
  if (!scores) return NoScores("no output holds one score per class");
  const int64_t columns = Columns(scores->shape());
  if (columns == 0) return NoScores(StrCat("output '", top.output, "' holds no scores"));
  if (!labels.empty() && static_cast<int64_t>(labels.size()) < columns) {
    return NoScores(StrCat("output '", top.output, "' has ", columns, " classes, the labels' file ",
                           labels.size()));
  }
  ONCILLA_ASSIGN(std::vector<double> values, ToDoubles(*scores));
  const auto width = static_cast<size_t>(columns);
  for (size_t begin = 0; begin < values.size(); begin += width) {
    const std::span<double> row(values.data() + begin, width);
    if (!names && !IsDistribution(row)) top.softmax |= Softmax(row);
    top.rows.push_back(Best(row, static_cast<size_t>(k), [&](size_t i) {
      if (names) return names->strings()[begin + i];
      return labels.empty() ? StrCat("class ", i) : labels[i];
    }));
  }
  return top;
}

std::string PrintBars(const std::vector<LabelScore>& rows) {
  struct Line {
    std::string head;
    size_t columns = 0;
  };
  std::vector<Line> lines;
  size_t widest = 0;
  for (const LabelScore& row : rows) {
    char score[32];
    std::snprintf(score, sizeof(score), " %.2f", row.score);
    Line line{row.label + score, 0};
    // Counts columns, not bytes: continuation bytes of UTF-8 take none.
    for (const char c : line.head) line.columns += (c & 0xc0) != 0x80;
    widest = std::max(widest, line.columns);
    lines.push_back(std::move(line));
  }
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string bar = Bar(rows[i].score, kBarColumns);
    out += "  " + lines[i].head;
    if (!bar.empty()) out += std::string(widest - lines[i].columns + 2, ' ') + bar;
    out += '\n';
  }
  return out;
}

}  // namespace oncilla::tool
