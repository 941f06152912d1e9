// The ops of each format, collected from the rows of the importers.
#include "engine/import/format_ops.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/import/onnx/lowering.h"
#include "engine/import/tf/lowering.h"
#include "engine/import/tflite/lowering.h"

namespace oncilla {
namespace {

FormatOps Listed(std::string format, const std::set<std::string>& ops) {
  return {std::move(format), {ops.begin(), ops.end()}};
}

FormatOps TensorflowOps() {
  std::set<std::string> ops;
  for (const std::span<const TfOpRow> family : TfOpFamilies()) {
    for (const TfOpRow& row : family) ops.emplace(row.op);
  }
  for (const TfOpRow& row : TfComplexRows()) ops.emplace(row.op);
  return Listed("TensorFlow", ops);
}

FormatOps TfliteOps() {
  std::set<std::string> ops;
  for (const std::span<const TfliteOpRow> family : TfliteOpFamilies()) {
    for (const TfliteOpRow& row : family) ops.emplace(row.op);
  }
  for (const TfliteOpRow& row : TfliteCustomRows()) ops.insert(StrCat(row.op, " (custom)"));
  return Listed("TFLite", ops);
}

// "Pad", or with the opset versions that have rows: "Upsample 7-9".
std::vector<FormatOps> OnnxOps() {
  struct Versions {
    int64_t first = kNewestOnnxOpset, last = 0;
  };
  std::map<std::string, std::map<std::string, Versions>> domains;
  for (const OnnxOpFamily& family : OnnxOpFamilies()) {
    if (family.refused) continue;
    for (const OnnxOpRow& row : family.rows) {
      Versions& v = domains[std::string(family.domain)][std::string(row.op)];
      v.first = std::min(v.first, row.since);
      v.last = std::max(v.last, row.until);
    }
  }
  for (const std::string_view control : {"If", "Loop", "Scan", "SequenceMap"}) {
    domains[""][std::string(control)] = {1, kNewestOnnxOpset};
  }
  domains["ai.onnx.preview.training"]["Gradient"] = {1, kNewestOnnxTraining};
  domains["com.microsoft"]["AttnLSTM"] = {1, kNewestOnnxMicrosoft};
  std::vector<FormatOps> out;
  for (const auto& [domain, ops] : domains) {
    FormatOps& listed = out.emplace_back();
    listed.format = domain.empty() ? "ONNX" : StrCat("ONNX, domain ", domain);
    for (const auto& [op, v] : ops) {
      const bool ended = domain.empty() && v.last < kNewestOnnxOpset;
      listed.ops.push_back(ended ? StrCat(op, " (to opset ", v.last, ")") : op);
    }
  }
  return out;
}

}  // namespace

std::vector<FormatOps> SupportedFormatOps() {
  std::vector<FormatOps> all = {TensorflowOps(), TfliteOps()};
  for (FormatOps& ops : OnnxOps()) all.push_back(std::move(ops));
  return all;
}

}  // namespace oncilla
