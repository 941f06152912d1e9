// Reduced precision: f32 values are stored in 16 bits. One pass in the graph's order.
//
// A node is converted if its op allows it (its storage rule says so), no deny entry names it, its
// weights keep their values, and its device has a kernel for it. Kernels take one dtype, so an f32
// input is cast, once per value and device, and each result also exists cast back to f32; casts
// that nobody reads disappear when the patch is applied.
#include <cmath>
#include <map>

#include "engine/graph/shape_fixers.h"
#include "engine/passes/pass.h"
#include "engine/passes/precision.h"
#include "engine/passes/rewrite.h"
#include "engine/tensor/narrow.h"

namespace oncilla {
namespace {

// Constants with fewer elements are not weights but parameters (an epsilon, a mask's value); they
// must keep their values nearly unchanged.
constexpr int64_t kFewElements = 64;
constexpr double kParameterError = 1.0 / 256;
constexpr double kLargestHalf = 65504;

class Narrower {
 public:
  Narrower(const Graph& graph, std::span<Device* const> devices, const StorageRequest& request,
           Patch& patch, PrecisionReport& report)
      : graph_(graph),
        devices_(devices),
        options_(request.options),
        sources_(request.sources.get()),
        patch_(patch),
        report_(report),
        fixes_shapes_(FindShapeFixers(graph)),
        narrow_(graph.values().size(), kNoValue),
        large_(graph.values().size()),
        fetched_(graph.values().size()) {
    for (const NamedValue& output : graph.outputs()) fetched_[Index(output.value)] = true;
  }

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (!TouchesFloats(node)) continue;
      ONCILLA_ASSIGN(const std::string why, TryNode(NodeId{n}));
      if (why.empty()) {
        ++report_.narrow_nodes;
        continue;
      }
      MarkLarge(node);
      report_.kept.push_back({node.name, std::string(node.op->name), why});
    }
    for (const auto& [id, constant] : constants_) {
      report_.narrow_constants += constant.narrow != kNoValue && constant.used;
    }
    return Status();
  }

 private:
  struct Constant {
    ValueId narrow = kNoValue;
    std::string why = {};  // why there is no 16-bit form
    bool used = false;
  };

  bool IsFloat32(ValueId id) const {
    return id != kNoValue && graph_.fact(id).kind == ValueKind::kTensor &&
           graph_.fact(id).dtype == DType::kF32;
  }
  static bool IsPlanInput(const Node& node, size_t i) {
    return node.op->traits.IsPlanInput(i);
  }
  bool IsData(const Node& node, size_t i) const {
    return !IsPlanInput(node, i) && IsFloat32(node.inputs[i]);
  }
  bool TouchesFloats(const Node& node) const {
    for (ValueId id : node.outputs) {
      if (IsFloat32(id)) return true;
    }
    return false;
  }

  std::string_view EntryFor(const std::vector<std::string>& list, const Node& node) const {
    for (const std::string& entry : list) {
      if (NamesNode(entry, node, sources_)) return entry;
    }
    return {};
  }

  // Returns an empty text if the node was converted, else the reason why it was not.
  Result<std::string> TryNode(NodeId id) {
    const Node& node = graph_.node(id);
    if (const auto entry = EntryFor(options_.deny, node); !entry.empty()) {
      return StrCat("denied by '", entry, "'");
    }
    if (node.device < 0) return std::string("it runs on no device");
    const std::string_view why_not = WhyNotNarrow(node.op->traits.storage);
    const bool allowed = !why_not.empty() && !EntryFor(options_.allow, node).empty();
    if (!why_not.empty() && !allowed) return std::string(why_not);
    for (ValueId value : node.outputs) {
      if (fixes_shapes_[Index(value)]) return std::string("its result fixes a shape");
    }
    bool any = allowed, weights = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!IsData(node, i)) continue;
      const ValueId input = node.inputs[i];
      any |= narrow_[Index(input)] != kNoValue;
      weights |=
          graph_.value(input).is_constant() && graph_.fact(input).desc().elements() >= kFewElements;
      if (large_[Index(input)]) {
        return std::string("it reads numbers that may lie beyond what 16 bits hold");
      }
    }
    if (node.op->traits.storage == StorageRule::kStarts) any = true;
    if (!any) return std::string("what it reads is f32");
    // A result of the graph keeps full precision, unless the node's weights are large: most of the
    // memory is theirs.
    for (ValueId value : node.outputs) {
      if (fetched_[Index(value)] && !weights && !allowed)
        return std::string("its result is fetched");
    }
    return Narrow(id);
  }

  Result<std::string> Narrow(NodeId id) {
    const Node& node = graph_.node(id);
    // The device is asked first, with facts alone, before anything is added to the patch.
    Facts in = graph_.FactsOf(node.inputs);
    for (size_t i = 0; i < in.size(); ++i) {
      if (!IsData(node, i)) continue;
      ONCILLA_ASSIGN(in[i], NarrowFact(node.inputs[i]));
      if (in[i].absent()) return constants_[Index(node.inputs[i])].why;
    }
    const AttrMap& attrs = node.attrs;
    const auto out = InferNode(graph_.ops(), node.name, node.op->name, attrs, in);
    if (!out.ok()) return StrCat("no such op: ", Message(out.status()));
    for (size_t i = 0; i < out->size(); ++i) {
      const bool was = IsFloat32(node.outputs[i]);
      const DType expected = was ? options_.storage : graph_.fact(node.outputs[i]).dtype;
      if ((*out)[i].dtype != expected) return std::string("its result's dtype is its own");
    }
    const NodeView view{node.op, &attrs, in, *out, node.name};
    if (const Status can = devices_[node.device]->CanRun(view); !can.ok()) {
      return std::string(Message(can));
    }
    // Add the node in 16 bits, and casts back to f32 for readers that stay in f32.
    std::vector<ValueId> inputs = node.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!IsData(node, i)) continue;
      ONCILLA_ASSIGN(inputs[i], NarrowValue(inputs[i], id));
    }
    ONCILLA_ASSIGN(const auto made, patch_.AddNode(node.op->name, attrs, inputs, {id}));
    for (size_t i = 0; i < made.size(); ++i) {
      ValueId wide = made[i];
      if (IsFloat32(node.outputs[i])) {
        narrow_[Index(node.outputs[i])] = made[i];
        ONCILLA_ASSIGN(wide, patch_.Add("Cast", {{"to", DType::kF32}}, {made[i]}, {id}));
      }
      ONCILLA_TRY(patch_.Replace(node.outputs[i], wide));
    }
    return std::string();
  }

  // The fact of a value in 16 bits; absent for a constant that would lose its value.
  Result<Fact> NarrowFact(ValueId id) {
    if (narrow_[Index(id)] != kNoValue) return patch_.fact(narrow_[Index(id)]);
    if (graph_.value(id).is_constant()) {
      ONCILLA_ASSIGN(const Constant* constant, NarrowConstant(id));
      return constant->narrow == kNoValue ? Fact::Absent() : patch_.fact(constant->narrow);
    }
    return Fact::Of(options_.storage, graph_.fact(id).shape);
  }

  Result<ValueId> NarrowValue(ValueId id, NodeId reader) {
    if (narrow_[Index(id)] != kNoValue) return narrow_[Index(id)];
    if (graph_.value(id).is_constant()) {
      ONCILLA_ASSIGN(Constant * constant, NarrowConstant(id));
      constant->used = true;
      return constant->narrow;
    }
    const std::pair key(Index(id), graph_.node(reader).device);
    auto it = casts_.find(key);
    if (it == casts_.end()) {
      // The cast is placed with the producer if that is on the same device.
      const NodeId producer = graph_.value(id).producer;
      const bool near =
          producer != kNoNode && graph_.node(producer).device == graph_.node(reader).device;
      ONCILLA_ASSIGN(const ValueId cast, patch_.Add("Cast", {{"to", options_.storage}}, {id},
                                                    {near ? producer : reader}));
      it = casts_.emplace(key, cast).first;
    }
    return it->second;
  }

  Result<Constant*> NarrowConstant(ValueId id) {
    const auto [it, fresh] = constants_.try_emplace(Index(id));
    Constant& constant = it->second;
    if (!fresh) return &constant;
    const Tensor& value = graph_.fact(id).value;
    ONCILLA_ASSIGN(Narrowing narrowing, Narrowed(value, options_.storage));
    if (!narrowing.tensor.valid()) {
      constant.why = StrCat("a constant holds ", narrowing.largest, ", which ",
                            PrecisionName(options_.storage), " does not");
    } else if (value.elements() < kFewElements && narrowing.relative_error > kParameterError) {
      constant.why = StrCat("a constant of few elements would lose its value in ",
                            PrecisionName(options_.storage));
    } else {
      constant.narrow = patch_.AddConstant(std::move(narrowing.tensor), graph_.value(id).name);
    }
    return &constant;
  }

  // Masks are made of numbers that stand for infinity. Values computed from them stay f32 too, up
  // to the first op that brings numbers back into a safe range.
  void MarkLarge(const Node& node) {
    if (node.op->traits.storage != StorageRule::kCarries) return;
    bool large = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!IsData(node, i)) continue;
      const Value& value = graph_.value(node.inputs[i]);
      const auto known = constants_.find(Index(node.inputs[i]));
      large |= large_[Index(node.inputs[i])] ||
               (known != constants_.end() && known->second.narrow == kNoValue) ||
               (value.is_constant() && value.fact.has_value() &&
                value.fact.value.elements() < kFewElements &&
                Largest(value.fact.value) >= kLargestHalf / 2);
    }
    for (ValueId id : node.outputs) large_[Index(id)] = large && IsFloat32(id);
  }

  static double Largest(const Tensor& tensor) {
    double largest = 0;
    if (const auto values = ToDoubles(tensor); values.ok()) {
      for (const double v : *values) largest = std::max(largest, std::abs(v));
    }
    return largest;
  }

  const Graph& graph_;
  const std::span<Device* const> devices_;
  const PrecisionOptions& options_;
  const SourceNodes* const sources_;
  Patch& patch_;
  PrecisionReport& report_;
  const std::vector<bool> fixes_shapes_;
  std::vector<ValueId> narrow_;  // per value: its 16-bit form; kNoValue: none
  std::vector<bool> large_;      // per value: f32 that may exceed 16 bits
  std::vector<bool> fetched_;
  std::map<uint32_t, Constant> constants_;
  std::map<std::pair<uint32_t, int>, ValueId> casts_;  // by value and device
};

}  // namespace

// Runs once, after placement and the fusions into kernels. A value between two nodes that both take
// the 16-bit dtype gets that dtype; Casts are inserted around all others. Inputs and outputs of the
// graph keep their dtypes. Each device is asked whether it accepts a node with these dtypes.
Status NarrowStorage(const Graph& graph, const PassContext& context, Patch& patch) {
  if (context.storage == nullptr || context.precision == nullptr) return Status();
  const StorageRequest& request = *context.storage;
  context.precision->storage = request.options.storage;
  if (!request.options.narrow()) return Status();
  return Narrower(graph, context.devices, request, patch, *context.precision).Run();
}

}  // namespace oncilla
