// Every data set of a test must pass; the first failure is the outcome.
#include "tests/conformance/onnx_case.h"

#include <algorithm>
#include <cmath>

#include "engine/base/file.h"
#include "engine/import/onnx/reader.h"
#include "engine/import/onnx/value.h"
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
#include "engine/tensor/tensor_list.h"

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

// Reads a value of the kind and type in `info`.
Result<Tensor> ReadAs(const std::string& path, const TensorInfo& info) {
  ONCILLA_ASSIGN(const auto file, MappedFile::Open(path));
  Result<Tensor> value = DataLoss(path, " was not read");
  const Status status = ReadWire(path, [&]() -> Status {
    value = OnnxValueFrom(file->text(), info, file);
    return value.status();
  });
  if (!status.ok()) return status;
  return value;
}

// Counts where the nodes of each family of ops ran. Those of the family "other" count as run on the
// host: no other backend has kernels for them. After fusion a node may have the name of any node
// that was fused into it.
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
    const TensorInfo& info = signature.inputs[i];
    if (!FileExists(path)) {
      // An optional value without a file is absent.
      if (info.kind == TensorInfo::Kind::kTensor || info.kind == TensorInfo::Kind::kSequence) break;
      request.feeds.emplace_back(info.name, OptionalOf(info, Tensor()));
      continue;
    }
    ONCILLA_ASSIGN(Tensor value, ReadAs(path, info));
    request.feeds.emplace_back(info.name, std::move(value));
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
    TensorInfo info = signature.outputs[i];
    // The expected value is read as the type of the result, not the type that the model states.
    info.dtype = result.outputs[i].second.dtype();
    ONCILLA_ASSIGN(const Tensor expected, ReadAs(path, info));
    ONCILLA_TRY(In(CompareAsOnnx(result.outputs[i].second, expected),
                   StrCat("output '", result.outputs[i].first, "'")));
  }
  return {};
}

// A difference found by CompareAsOnnx; its code distinguishes it from other failures.
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
  // Before the data is read: the error for an unsupported type or op is more useful.
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
  if (got.is_list() != expected.is_list()) return Differs("is a list where none is expected");
  if (got.is_list()) {
    const TensorList &a = got.list(), &b = expected.list();
    if (a.size() != b.size() || a.dtype() != b.dtype()) {
      return Differs("is a list of ", a.size(), " ", a.dtype(), ", expected ", b.size(), " ",
                     b.dtype());
    }
    for (int64_t i = 0; i < a.size(); ++i) {
      ONCILLA_TRY(In(CompareAsOnnx(a.at(i), b.at(i)), StrCat("element ", i)));
    }
    return {};
  }
  // The end of an optional sequence (engine/import/model_source.h).
  if (!got.valid() && !expected.valid()) return {};
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
      // There are several NaNs.
      const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
      if (!same) return Differs("element ", i, " is ", a[i], ", expected ", b[i]);
    }
    return IsSmallFloat(got.dtype()) ? Status() : Differs("has other bytes");
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
