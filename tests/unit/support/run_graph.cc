// A graph computed node by node on the CPU device.
#include "tests/unit/support/run_graph.h"

#include "engine/base/thread_pool.h"
#include "engine/device/linked_backends.h"

namespace oncilla::testing {

Result<std::vector<Tensor>> RunGraph(const Graph& graph, const std::map<std::string, Tensor>& feeds,
                                     std::vector<Tensor>* values) {
  ThreadPool threads(1);
  const Backend& cpu = *LinkedBackends()[0];
  std::vector<std::string> notes;
  OpenOptions options;
  options.plain = true;
  options.threads = &threads;
  ONCILLA_ASSIGN(const auto device, cpu.open(cpu.discover({}, notes).at(0), options));

  std::vector<Tensor> all(graph.values().size());
  for (uint32_t i = 0; i < all.size(); ++i) {
    const Value& value = graph.value(ValueId{i});
    if (value.is_constant()) all[i] = value.fact.value;
  }
  for (const NamedValue& input : graph.inputs()) {
    const auto feed = feeds.find(input.name);
    if (feed == feeds.end()) return InvalidArgument("no value for the input '", input.name, "'");
    all[Index(input.value)] = feed->second;
  }
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> in;
    Facts in_facts;
    for (ValueId id : node.inputs) {
      in.push_back(id == kNoValue ? Tensor() : all[Index(id)]);
      in_facts.push_back(id == kNoValue ? Fact::Absent() : Fact::Constant(in.back()));
    }
    const std::string where = StrCat("node '", node.name, "' (", node.op->name, ")");
    auto out_facts = node.op->infer(node.attrs, in_facts);
    if (!out_facts.ok()) return In(out_facts.status(), where);
    const NodeView view{node.op, &node.attrs, in_facts, *out_facts, node.name};
    auto out = device->Evaluate(view, in);
    if (!out.ok()) return In(out.status(), where);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Fact& known = graph.fact(node.outputs[i]);
      if (known.dtype != (*out)[i].dtype() || !known.shape.Accepts((*out)[i].shape())) {
        return Internal(where, " gives ", (*out)[i].desc(), " where the graph says ", known);
      }
      all[Index(node.outputs[i])] = (*out)[i];
    }
  }
  std::vector<Tensor> results;
  for (const NamedValue& output : graph.outputs()) results.push_back(all[Index(output.value)]);
  if (values != nullptr) *values = std::move(all);
  return results;
}

}  // namespace oncilla::testing
