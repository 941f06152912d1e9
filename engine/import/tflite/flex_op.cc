// Builds a graph of one node from a select op's options, so that TensorFlow's rows can lower it.
#include "engine/import/tflite/flex_op.h"

#include "engine/import/tf/graph/builder.h"
#include "engine/import/tf/lowering.h"
#include "engine/import/tflite/flex_buffer.h"
#include "engine/import/wire/wire.h"

namespace oncilla {
namespace {

constexpr std::string_view kPrefix = "Flex";

// A length-delimited field: its number, length and bytes.
void AddField(std::string& to, int field, std::string_view bytes) {
  to += static_cast<char>(field << 3 | 2);
  size_t rest = bytes.size();
  for (; rest > 0x7F; rest >>= 7) to += static_cast<char>((rest & 0x7F) | 0x80);
  to += static_cast<char>(rest);
  to += bytes;
}

// Serializes a GraphDef (field 1 is a node) with this NodeDef. Only the op and the attributes are
// kept, since its inputs name nodes that do not exist here.
Result<std::string> GraphOf(std::string_view node) {
  constexpr uint32_t kOp = 2, kAttribute = 5;
  std::string kept, graph;
  AddField(kept, 1, "node");  // every node needs a name
  ONCILLA_TRY(ReadWire("the options of a select op", [&]() -> Status {
    WireMessage message(node);
    while (message.Next()) {
      const uint32_t field = message.field();
      if (field == kOp || field == kAttribute) {
        AddField(kept, static_cast<int>(field), message.View());
      }
    }
    return {};
  }));
  AddField(graph, 1, kept);
  return graph;
}

}  // namespace

bool IsFlexOp(const TfliteOp& op) {
  return op.code == kTfliteCustom && op.custom.starts_with(kPrefix);
}

Result<std::unique_ptr<TfGraph>> FlexNodeOf(const TfliteOp& op) {
  // The options are a list of the op's name and the serialized node.
  ONCILLA_ASSIGN(const FlexValue options, FlexValue::Root(op.custom_options));
  ONCILLA_ASSIGN(const FlexValue stored, options.Element(1));
  ONCILLA_ASSIGN(const std::string_view text, stored.Text());
  ONCILLA_ASSIGN(std::string kept, GraphOf(text));
  auto bytes = std::make_shared<const std::string>(std::move(kept));
  ONCILLA_ASSIGN(std::unique_ptr<TfGraph> graph,
                 TfGraph::Parse(*bytes, {}, "the options of a select op", bytes));
  if (graph->main().nodes.size() != 1) return DataLoss("its options hold no node");
  const TfNode& node = graph->main().nodes[0];
  if (node.op != op.custom.substr(kPrefix.size())) {
    return DataLoss("its options hold the op ", node.op);
  }
  return graph;
}

Result<Values> LowerFlexOp(Module& module, Graph& graph, const TfliteOp& op,
                           const std::string& name, Values inputs, bool complex) {
  const std::string_view kind = op.custom.substr(kPrefix.size());
  const TfOpRow* row = FindTfOp(kind);
  if (row == nullptr && FindTfComplexOp(kind) == nullptr) return Unsupported("");
  if (row != nullptr && row->takes_handles) return Unsupported("of handles");
  ONCILLA_ASSIGN(const std::unique_ptr<TfGraph> source, FlexNodeOf(op));
  const TfNode& node = source->main().nodes[0];
  if (row == nullptr || complex || HasComplexType(node)) row = FindTfComplexOp(kind);
  if (row == nullptr) return Unsupported("of complex numbers");
  if (static_cast<int>(inputs.size()) < row->min_inputs) {
    return DataLoss("has ", inputs.size(), " inputs and needs ", row->min_inputs);
  }
  TfFlatNode flat;
  flat.name = name;
  flat.source = &node;
  std::vector<const TfFlatNode*> producers(inputs.size(), nullptr);
  TfImportState state{*source, module, {}, {}, nullptr, {}};
  TfLowering lowering(state, graph, flat, std::move(inputs), std::move(producers));
  if (row->lower != nullptr) return row->lower(lowering);
  return One(lowering.Add(row->canonical, {}, lowering.all_inputs()));
}

}  // namespace oncilla
