// The text form of graphs.
#include "engine/graph/print.h"

#include <sstream>

#include "engine/base/format.h"

namespace oncilla {
namespace {

// Short constants are printed in full, longer ones by dtype and shape alone.
void PrintConstant(std::ostream& out, const Tensor& tensor) {
  if (tensor.elements() > 8) return;
  if (tensor.dtype() == DType::kString) {
    for (size_t i = 0; i < tensor.strings().size(); ++i) {
      out << (i ? "," : " = ") << '"' << tensor.strings()[i] << '"';
    }
    return;
  }
  auto values = ToDoubles(tensor);
  for (size_t i = 0; values.ok() && i < values->size(); ++i) {
    out << (i ? "," : " = ") << ToString(AttrValue((*values)[i]));
  }
}

}  // namespace

std::string Print(const Graph& graph) {
  std::ostringstream out;
  const auto readers = Consumers(graph);
  for (const NamedValue& input : graph.inputs()) {
    out << "input  %" << Index(input.value) << ' ' << OneLine(input.name) << ' '
        << graph.fact(input.value) << '\n';
  }
  auto is_output = [&](ValueId id) {
    for (const NamedValue& output : graph.outputs()) {
      if (output.value == id) return true;
    }
    return false;
  };
  for (uint32_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.value(ValueId{i});
    if (!value.is_constant() || (readers[i].empty() && !is_output(ValueId{i}))) continue;
    out << "const  %" << i << ' ' << value.fact;
    PrintConstant(out, value.fact.value);
    if (!value.name.empty()) out << " '" << OneLine(value.name) << '\'';
    out << '\n';
  }
  for (const Node& node : graph.nodes()) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      out << (i ? ", %" : "%") << Index(node.outputs[i]) << ' ' << graph.fact(node.outputs[i]);
    }
    out << " = " << node.op->name << '(';
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      out << (i ? ", " : "");
      if (node.inputs[i] == kNoValue) {
        out << '-';
      } else {
        out << '%' << Index(node.inputs[i]);
      }
    }
    out << ')';
    if (!node.attrs.empty()) out << ' ' << ToString(node.attrs);
    if (node.device != kUnplaced) out << " @" << node.device;
    if (!node.name.empty()) out << " '" << OneLine(node.name) << '\'';
    out << '\n';
  }
  for (const NamedValue& output : graph.outputs()) {
    out << "output " << OneLine(output.name) << " %" << Index(output.value) << '\n';
  }
  return std::move(out).str();
}

}  // namespace oncilla
