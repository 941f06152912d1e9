// Every data set of a test must pass; the first failure is the outcome.
#include "tests/conformance/onnx_case.h"

#include <algorithm>
#include <cmath>

#include "engine/base/file.h"
#include "engine/import/onnx/reader.h"
#include "engine/import/onnx/tensor.h"
#include "engine/ops/array/indexing.h"
#include "engine/ops/array/movement.h"
#include "engine/ops/data/text.h"
#include "engine/ops/math/elementwise.h"
#include "engine/ops/math/matmul.h"
#include "engine/ops/math/reduce.h"
#include "engine/ops/nn/conv.h"
#include "engine/ops/nn/norm.h"
#include "engine/ops/nn/pool.h"
#include "engine/ops/nn/recurrent.h"
#include "engine/ops/nn/resize.h"
#include "engine/ops/nn/sampling.h"
#include "engine/session/model.h"

namespace oncilla::testing {
namespace {

std::string FamilyOf(std::string_view op) {
  static const auto families = [] {
    std::map<std::string_view, std::string> map;
    const auto add = [&](const char* family, std::initializer_list<std::span<const OpDef>> lists) {
      for (std::span<const OpDef> list : lists) {
        for (const OpDef& def : list) map.emplace(def.name, family);
      }
    };
    add("elementwise", {ElementwiseOps()});
    add("recurrent", {RecurrentOps()});
    add("reduce", {ReduceOps()});
    add("norm", {NormOps()});
    add("matmul", {MatMulOps()});
    add("conv", {ConvOps()});
    add("pool", {PoolOps()});
    add("movement", {MovementOps(), SliceOps(), PadOps(), SpaceOps()});
    add("indexing", {IndexingOps(), SelectOps(), ShapeOps()});
    add("resize", {ResizeOps(), SamplingOps()});
    add("text", {TextOps()});
    return map;
  }();
  const auto it = families.find(op);
  return it == families.end() ? "other" : it->second;
}

Result<Tensor> ReadTensor(const std::string& path) {
  ONCILLA_ASSIGN(const auto file, MappedFile::Open(path));
  Tensor value;
  ONCILLA_TRY(ReadWire(path, [&]() -> Status {
    ONCILLA_ASSIGN(OnnxTensor tensor, TensorFromOnnx(file->text(), file));
    value = std::move(tensor.value);
    return {};
  }));
  // The reader's typed lists are aligned, raw bytes in a file need not be.
  return value.dtype() == DType::kString ? value : Tensor::Copy(value.desc(), value.bytes());
}

// Data of bfloat16 is written as the numbers of its bits, of type uint16.
Result<Tensor> ReadAs(const std::string& path, DType wanted) {
  ONCILLA_ASSIGN(Tensor value, ReadTensor(path));
  if (wanted != DType::kBF16 || value.dtype() != DType::kU16) return value;
  return Tensor::Copy({DType::kBF16, value.shape()}, value.bytes());
}

// Of a family that no other backend has kernels for, the CPU is where nodes run. After fusion a
// node may bear the name of any node that went into it.
void CountFamilies(const CompiledGraph& compiled, const RunStats& stats, int preferred,
                   OnnxOutcome& outcome) {
  std::map<std::string_view, const NodePlacement*> placed;
  for (const NodePlacement& node : compiled.placement.nodes) placed.emplace(node.node, &node);
  for (uint32_t n = 0; n < compiled.graph.nodes().size(); ++n) {
    const Node& node = compiled.graph.node(NodeId{n});
    FamilyShare& share = outcome.families[FamilyOf(node.op->name)];
    const auto found = placed.find(node.name);
    switch (stats.fates[n]) {
      case NodeFate::kElsewhere:
      case NodeFate::kSettled:
      case NodeFate::kUnneeded:
        ++share.planned;
        break;
      case NodeFate::kHost:
        ++share.host[std::string(node.op->name)];
        break;
      case NodeFate::kStep:
      case NodeFate::kView:
        if (node.device == preferred) {
          ++share.on_device;
        } else if (found != placed.end() && found->second->reason == PlacementReason::kShapes) {
          ++share.shapes;
        } else if (FamilyOf(node.op->name) == "other") {
          ++share.host[std::string(node.op->name)];
        } else {
          ++share.refused[StrCat(node.op->name, ": ",
                                 found == placed.end() ? "unplaced" : found->second->detail)];
        }
    }
  }
}

Status RunDataSet(const std::string& folder, Model& model, OnnxOutcome& outcome) {
  const Signature& signature = model.source().signatures()[0];
  RunRequest request;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const std::string path = StrCat(folder, "/input_", i, ".pb");
    if (!FileExists(path)) break;
    ONCILLA_ASSIGN(Tensor value, ReadAs(path, signature.inputs[i].dtype));
    request.feeds.emplace_back(signature.inputs[i].name, std::move(value));
  }
  ONCILLA_ASSIGN(const RunResult result, model.Run(request));
  ImportRequest names;
  for (const NamedTensor& feed : request.feeds) names.feeds.push_back(feed.first);
  ONCILLA_ASSIGN(const auto executor, model.Executable(names));
  outcome.families.clear();
  CountFamilies(executor->compiled(), result.report.stats, model.session().device_set().preferred(),
                outcome);
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const std::string path = StrCat(folder, "/output_", i, ".pb");
    if (!FileExists(path)) continue;
    ONCILLA_ASSIGN(const Tensor expected, ReadAs(path, result.outputs[i].second.dtype()));
    ONCILLA_TRY(In(CompareAsOnnx(result.outputs[i].second, expected),
                   StrCat("output '", result.outputs[i].first, "'")));
  }
  return {};
}

// A difference found by CompareAsOnnx, told apart from failures by its code.
template <class... Parts>
Status Differs(const Parts&... parts) {
  return Error(Code::kOutOfRange, parts...);
}

Status RunAll(const std::string& folder, const std::shared_ptr<Session>& session,
              OnnxOutcome& outcome) {
  const std::string path = folder + "/model.onnx";
  {
    ONCILLA_ASSIGN(const auto file, MappedFile::Open(path));
    ONCILLA_ASSIGN(const OnnxModel model, ReadOnnxModel(file->text(), path));
    for (const OnnxNode& node : model.graph.nodes) outcome.ops.emplace_back(node.op);
    std::sort(outcome.ops.begin(), outcome.ops.end());
    outcome.ops.erase(std::unique(outcome.ops.begin(), outcome.ops.end()), outcome.ops.end());
  }
  ONCILLA_ASSIGN(const auto model, session->Load(path, {}));
  // Before the data is read: what a model's types and ops are refused for says more.
  ONCILLA_TRY(model->Executable({}).status());
  ONCILLA_ASSIGN(const auto entries, ListFolder(folder));
  int sets = 0;
  for (const FolderEntry& entry : entries) {
    if (!entry.is_folder || entry.name.rfind("test_data_set_", 0) != 0) continue;
    ++sets;
    ONCILLA_TRY(RunDataSet(folder + "/" + entry.name, *model, outcome));
  }
  if (sets == 0) return NotFound(folder, " has no test data");
  return {};
}

}  // namespace

std::string_view Name(OnnxVerdict verdict) {
  constexpr std::string_view kNames[] = {"pass", "unsupported", "wrong", "failed", "crashed"};
  return kNames[static_cast<int>(verdict)];
}

Status CompareAsOnnx(const Tensor& got, const Tensor& expected) {
  if (got.desc() != expected.desc()) {
    return Differs("is ", got.desc(), ", expected ", expected.desc());
  }
  if (got.dtype() == DType::kString) {
    if (got.strings() != expected.strings()) return Differs("has other strings");
    return {};
  }
  if (!IsFloat(got.dtype())) {
    if (std::ranges::equal(got.bytes(), expected.bytes())) return {};
    ONCILLA_ASSIGN(const auto a, ToDoubles(got));
    ONCILLA_ASSIGN(const auto b, ToDoubles(expected));
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i]) return Differs("element ", i, " is ", a[i], ", expected ", b[i]);
    }
    return Differs("has other bytes");
  }
  ONCILLA_ASSIGN(const auto a, ToDoubles(got));
  ONCILLA_ASSIGN(const auto b, ToDoubles(expected));
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                      std::fabs(a[i] - b[i]) <= 1e-7 + 1e-3 * std::fabs(b[i]);
    if (!same || std::isnan(a[i]) != std::isnan(b[i])) {
      return Differs("element ", i, " of ", a.size(), " is ", a[i], ", expected ", b[i]);
    }
  }
  return {};
}

OnnxOutcome RunOnnxCase(const std::string& folder, const std::shared_ptr<Session>& session) {
  OnnxOutcome outcome;
  const Status status = RunAll(folder, session, outcome);
  outcome.reason = Message(status);
  const std::string prefix = folder + "/model.onnx: ";
  if (outcome.reason.rfind(prefix, 0) == 0) outcome.reason.erase(0, prefix.size());
  if (status.ok()) {
    outcome.verdict = OnnxVerdict::kPass;
  } else if (status.code() == Code::kUnimplemented) {
    outcome.verdict = OnnxVerdict::kUnsupported;
  } else if (status.code() == Code::kOutOfRange) {
    outcome.verdict = OnnxVerdict::kWrong;
  } else {
    outcome.verdict = OnnxVerdict::kFailed;
  }
  return outcome;
}

}  // namespace oncilla::testing
