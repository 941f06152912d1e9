// Every TFLite op that has a row, against what LiteRT itself computed: the cases of testdata/tflite
// (see tests/models/make_tflite_cases.py), each a signature of its file. They run in sessions on
// the CPU's fast and plain code and, where there is a device, on OpenCL. Where LiteRT refused, so
// must the engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "engine/base/file.h"
#include "engine/graph/verify.h"
#include "engine/import/tflite/lowering.h"
#include "engine/import/tflite/source.h"
#include "engine/session/model.h"
#include "engine/session/session.h"

namespace oncilla {
namespace {

const std::string kFolder = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tflite";
constexpr double kTolerance = 1e-4;  // of the largest value

struct TfliteCase {
  std::string path, name;
  std::set<std::string> ops;
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::map<std::string, Tensor> expected, again;  // of a first run, and of one behind it
  std::string error;                              // LiteRT's message where it failed
  double steps = 0;                               // by how many integers may differ
  double part = kTolerance;                       // and floats, of the largest
};

std::vector<std::string> Files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const bool refused = entry.path().stem() == "refused";  // see tflite_import_test.cc
    if (entry.path().extension() == ".tflite" && !refused) out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// The inputs and the recorded outputs are tensors of the case's subgraph.
TfliteCase ReadCase(const std::string& path, const TfliteSignature& signature,
                    const TfliteSubgraph& subgraph, const std::shared_ptr<const void>& owner) {
  TfliteCase c;
  c.path = path;
  c.name = std::string(signature.key);
  for (const TfliteOp& op : subgraph.ops) c.ops.insert(TfliteOpName(op));
  for (const TfliteTensor& tensor : subgraph.tensors) {
    const bool feed = tensor.name.starts_with("feed:");
    const bool expect = tensor.name.starts_with("expect:");
    const bool again = tensor.name.starts_with("again:");
    const bool limit = tensor.name == "steps" || tensor.name == "part";
    if (!feed && !expect && !again && !limit && tensor.name != "error") continue;
    auto value = TensorFromTflite(tensor, owner);
    EXPECT_TRUE(value.ok()) << value.status();
    if (!value.ok()) continue;
    const std::string name(tensor.name.substr(tensor.name.find(':') + 1));
    if (feed) c.feeds.emplace_back(name, *value);
    if (expect) c.expected.emplace(name, *value);
    if (again) c.again.emplace(name, *value);
    if (tensor.name == "steps") c.steps = (*ToDoubles(*value))[0];
    if (tensor.name == "part") c.part = (*ToDoubles(*value))[0];
    if (tensor.name == "error") c.error = value->strings()[0];
  }
  return c;
}

std::vector<TfliteCase> Cases(const std::string& path) {
  std::vector<TfliteCase> out;
  auto file = MappedFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  auto model = ReadTfliteModel((*file)->text());
  EXPECT_TRUE(model.ok()) << model.status();
  for (const TfliteSignature& signature : model->signatures) {
    out.push_back(ReadCase(path, signature, model->subgraphs[signature.subgraph], *file));
  }
  return out;
}

// Floats are compared relative to the largest, integers within the case's steps.
std::string Difference(const TfliteCase& c, const Tensor& got, const Tensor& wanted) {
  if (got.desc() != wanted.desc()) return StrCat(got.desc(), " instead of ", wanted.desc());
  if (got.dtype() == DType::kString)
    return got.strings() == wanted.strings() ? "" : "other strings";
  const auto a = *ToDoubles(got), b = *ToDoubles(wanted);
  double top = 0;
  for (double v : b) top = std::isfinite(v) ? std::max(top, std::abs(v)) : top;
  const double most = IsFloat(got.dtype()) ? c.part * top : c.steps;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (same || std::abs(a[i] - b[i]) <= most) continue;
    return StrCat("element ", i, " is ", a[i], " instead of ", b[i]);
  }
  return "";
}

std::string Compare(const TfliteCase& c, const RunResult& result,
                    const std::map<std::string, Tensor>& answers) {
  for (const auto& [name, tensor] : result.outputs) {
    const auto it = answers.find(name);
    if (it == answers.end()) return "no answer for " + name;
    const std::string why = Difference(c, tensor, it->second);
    if (!why.empty()) return StrCat(name, ": ", why);
  }
  return "";
}

std::string RunCase(Model& model, const TfliteCase& c) {
  RunRequest request;
  request.signature = c.name;
  request.feeds.assign(c.feeds.begin(), c.feeds.end());
  auto result = model.Run(request);
  if (!c.error.empty()) {
    if (result.ok()) return "runs, and LiteRT says: " + c.error;
    const Code code = result.status().code();
    return code == Code::kInvalidArgument || code == Code::kUnimplemented ||
                   code == Code::kOutOfRange
               ? ""
               : StrCat(result.status());
  }
  if (!result.ok()) return StrCat(result.status());
  if (result->outputs.size() != c.expected.size()) return "another number of outputs";
  const std::string first = Compare(c, *result, c.expected);
  if (!first.empty() || c.again.empty()) return first;
  result = model.Run(request);
  return result.ok() ? Compare(c, *result, c.again) : StrCat(result.status());
}

void AgreeOn(const std::string& device) {
  RuntimeOptions runtime;
  runtime.opencl_cpu_devices = true;
  auto session = Session::Create(Runtime::Create(runtime), {.device = device, .threads = 1});
  if (!session.ok() && device == "gpu") {
    GTEST_SKIP() << "not run: no OpenCL (" << session.status() << ")";
  }
  ASSERT_TRUE(session.ok()) << session.status();
  size_t count = 0;
  for (const std::string& path : Files()) {
    auto model = (*session)->Load(path, {});
    ASSERT_TRUE(model.ok()) << model.status();
    for (const TfliteCase& c : Cases(path)) {
      EXPECT_EQ(RunCase(**model, c), "") << path << ": " << c.name;
      ++count;
    }
    (*model)->Unload();
  }
  EXPECT_GT(count, 200u);
}

TEST(TfliteOps, AgreeWithLiteRtOnTheCpu) { AgreeOn("cpu"); }
TEST(TfliteOps, AgreeWithLiteRtInPlainCode) { AgreeOn("cpu:plain"); }
TEST(TfliteOps, AgreeWithLiteRtOnOpenCl) { AgreeOn("gpu"); }

// Graphs as they are imported, before any pass.
TEST(TfliteOps, GraphsAreCorrect) {
  for (const std::string& path : Files()) {
    auto model = OpenModel(path, {});
    ASSERT_TRUE(model.ok()) << model.status();
    for (const Signature& signature : (*model)->signatures()) {
      const auto module = (*model)->Import({signature.key, {}, {}}, OpSet::Builtin());
      if (!module.ok()) continue;  // judged above
      const Status status = Verify(module->main);
      EXPECT_TRUE(status.ok()) << signature.key << ": " << status;
    }
  }
}

// A row without a case could be wrong unnoticed.
TEST(TfliteOps, EveryRowHasACase) {
  std::set<std::string> seen;
  for (const std::string& path : Files()) {
    for (const TfliteCase& c : Cases(path)) {
      if (c.error.empty()) seen.insert(c.ops.begin(), c.ops.end());
    }
  }
  size_t rows = 0;
  for (std::span<const TfliteOpRow> family : TfliteOpFamilies()) {
    for (const TfliteOpRow& row : family) {
      ++rows;
      EXPECT_TRUE(seen.contains(std::string(row.op))) << row.op;
    }
  }
  EXPECT_GE(rows, 100u);
}

}  // namespace
}  // namespace oncilla
