// Gradient of ai.onnx.preview.training: the part of the graph from the values that it names to y
// is lowered again for the values that it is given, and then differentiated.
#include "engine/import/lowering/derivative.h"
#include "engine/import/onnx/control.h"

namespace oncilla {
namespace {

constexpr int kMaxDepth = 64;

// What the nodes of a scope do not compute themselves: its inputs, constants and captured values.
void TakeGiven(const OnnxScope& around, OnnxScope& inner) {
  OnnxNames computed;
  for (const OnnxNode& node : around.nodes) {
    computed.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const auto& [name, value] : around.values) {
    if (!computed.contains(name)) inner.values.emplace(name, value);
  }
  for (const auto& [name, failed] : around.failed) {
    if (!computed.contains(name)) inner.failed.emplace(name, failed);
  }
  inner.initializers = around.initializers;
  inner.ranks = around.ranks;
}

}  // namespace

Result<Values> LowerOnnxGradient(OnnxBuilder& builder, OnnxLowering& b) {
  if (b.version() > kNewestOnnxTraining) return Unsupported("of opset ", b.version());
  ONCILLA_ASSIGN(const std::vector<Bytes> xs, b.StringList("xs"));
  ONCILLA_ASSIGN(std::vector<Bytes> names, b.StringList("zs"));
  ONCILLA_ASSIGN(const std::string y_name, b.String("y", ""));
  names.insert(names.begin(), xs.begin(), xs.end());
  if (xs.empty() || y_name.empty()) return DataLoss("xs and y must name tensors");
  if (b.inputs() != names.size()) {
    return DataLoss("has ", b.inputs(), " inputs for ", names.size(), " names in xs and zs");
  }
  OnnxScope& around = builder.scope();
  if (around.depth >= kMaxDepth) return DataLoss("gradients of gradients are nested too deeply");
  // Gradients of several gradients each multiply, and every scope is a copy.
  int64_t& budget = builder.state().budget;
  budget -= std::ssize(around.nodes) + std::ssize(around.values);
  if (budget < 0) return DataLoss("gradients of gradients make too many nodes");
  OnnxScope inner(around.target, around.nodes, around.opsets);
  inner.prefix = b.name() + "/";
  inner.depth = around.depth + 1;
  TakeGiven(around, inner);
  Values by;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!b.has(i)) return DataLoss("input ", i, " is missing");
    // A value of its own, because the same value may be given for two names.
    ONCILLA_ASSIGN(const ValueId x, b.Add("Identity", {}, {b.in(i)}, StrCat("at", i)));
    inner.values[names[i]] = x;
    if (i >= xs.size()) continue;
    if (!IsFloat(b.dtype(i))) return Unsupported("derivatives by '", xs[i], "' of ", b.dtype(i));
    by.push_back(x);
  }
  const size_t first = builder.graph().nodes().size();
  OnnxBuilder part(builder.state(), inner);
  // An independent value that neither xs nor zs names is missing there.
  const Status built = part.Build(std::vector<std::string_view>{y_name});
  if (!built.ok()) return In(built, StrCat("the part from xs and zs to '", y_name, "'"));
  ONCILLA_ASSIGN(const ValueId y, part.Find(y_name));
  if (y == kNoValue) return Unsupported(kOnnxGraphFailed);
  if (!IsFloat(b.fact(y).dtype)) {
    return Unsupported("derivatives of '", y_name, "' of ", b.fact(y).dtype);
  }
  return AddDerivatives(b, first, y, by);
}

}  // namespace oncilla
