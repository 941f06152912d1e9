// Determines which nodes can be planned with the shapes at hand.
#include "engine/compile/classify.h"

#include <algorithm>

#include "engine/base/caught.h"
#include "engine/base/work_limits.h"
#include "engine/graph/at_node.h"

namespace oncilla {
namespace {

bool SameDims(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  return std::ranges::equal(
      a, b, [](const Dim& x, const Dim& y) { return x.size == y.size && x.name == y.name; });
}

bool SameValue(const Tensor& a, const Tensor& b) {
  if (!a.valid() || !b.valid()) return a.valid() == b.valid();
  if (a.is_list() || b.is_list() || a.dtype() != b.dtype()) return false;
  if (a.dtype() == DType::kString) return std::ranges::equal(a.strings(), b.strings());
  return std::ranges::equal(a.bytes(), b.bytes());
}

bool SameFact(const Fact& a, const Fact& b) {
  if (a.kind != b.kind || a.dtype != b.dtype || a.constant != b.constant) return false;
  if (a.shape.ranked() != b.shape.ranked() || !SameDims(a.shape.dims(), b.shape.dims())) {
    return false;
  }
  if (a.elements.has_value() != b.elements.has_value()) return false;
  if (a.elements.has_value() && !SameDims(*a.elements, *b.elements)) return false;
  return SameValue(a.value, b.value);
}

class Classifier {
 public:
  Classifier(const CompiledGraph& compiled, Device& cpu, const SegmentStart& start,
             const Classified* earlier)
      : graph_(compiled.graph), cpu_(cpu), earlier_(earlier) {
    out_.facts.resize(graph_.values().size());
    out_.values.assign(graph_.values().size(), Availability::kMissing);
    out_.own.resize(graph_.values().size());
    out_.same.resize(graph_.values().size());
    out_.done = start.done;
    out_.done.resize(graph_.nodes().size(), false);
    for (uint32_t i = 0; i < graph_.values().size(); ++i) {
      if (!graph_.value(ValueId{i}).is_constant()) continue;
      out_.own[i] = true;
      out_.same[i] = earlier_ != nullptr;
      out_.facts[i] = graph_.fact(ValueId{i});
      out_.values[i] = Availability::kSettled;
    }
    for (const auto& [id, fact] : start.available) {
      Know(id, fact, fact.has_value() ? Availability::kSettled : Availability::kGiven);
    }
  }

  Result<Classified> Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      if (out_.done[n]) continue;
      ONCILLA_TRY(WorkLook::Ask());
      const NodeId id{n};
      // Inference may be refused memory, too.
      if (Status s = Fenced([&] { return Visit(id); }); !s.ok()) {
        return WithStage(AtNode(std::move(s), graph_.node(id)), Stage::kRun);
      }
    }
    return std::move(out_);
  }

 private:
  // Whether everything that the node reads is a constant of the model or computed from constants
  // alone.
  bool IsOwn(const Node& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return id == kNoValue || out_.own[Index(id)]; });
  }

  Availability StateOf(ValueId id) const { return out_.values[Index(id)]; }

  void Mark(const Node& node, Availability state) {
    for (ValueId id : node.outputs) out_.values[Index(id)] = state;
  }

  void Know(ValueId id, Fact fact, Availability state) {
    const uint32_t i = Index(id);
    out_.facts[i] = std::move(fact);
    out_.values[i] = state;
    out_.same[i] = earlier_ != nullptr && earlier_->values[i] == state &&
                   SameFact(earlier_->facts[i], out_.facts[i]);
  }

  // Takes the results of a node from the earlier plan, where all that it reads is the same there.
  bool TakeOver(NodeId id, const Node& node) {
    if (earlier_ == nullptr || node.op->traits.has_effects || node.outputs.empty()) return false;
    for (ValueId input : node.inputs) {
      if (input != kNoValue && !out_.same[Index(input)]) return false;
    }
    const Availability state = earlier_->values[Index(node.outputs[0])];
    if (state != Availability::kPlanned && state != Availability::kSettled) return false;
    for (ValueId output : node.outputs) {
      if (earlier_->values[Index(output)] != state) return false;
    }
    for (ValueId output : node.outputs) {
      const uint32_t i = Index(output);
      out_.facts[i] = earlier_->facts[i];
      out_.values[i] = state;
      out_.own[i] = earlier_->own[i];
      out_.same[i] = true;
    }
    (state == Availability::kPlanned ? out_.steps : out_.settled_nodes).push_back(id);
    out_.done[Index(id)] = true;
    return true;
  }

  Status Visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (TakeOver(id, node)) return Status();
    const OpTraits& traits = node.op->traits;
    if (traits.has_effects && effects_wait_) return Later(node);
    // Collect what is known of the inputs. If one is computed after this segment, so is this node.
    Facts in;
    bool known = !traits.has_effects && !traits.is_random, after_host = false;
    for (ValueId input : node.inputs) {
      if (input == kNoValue) {
        in.push_back(Fact::Absent());
        continue;
      }
      const Availability state = StateOf(input);
      if (state == Availability::kLater || state == Availability::kMissing) return Later(node);
      after_host |= state == Availability::kHost;
      known &= state == Availability::kSettled && out_.facts[Index(input)].has_value();
      in.push_back(out_.facts[Index(input)]);
    }
    if (after_host && !RunsOnHost(graph_, node)) {
      // The shapes of its outputs may depend on what the host node computes.
      return Later(node);
    }
    if (after_host) return HostNode(id, node);
    // Values that inference alone determines need no run.
    ONCILLA_ASSIGN(Facts facts, node.op->infer(node.attrs, in));
    if (!facts.empty() &&
        std::all_of(facts.begin(), facts.end(), [](const Fact& f) { return f.has_value(); })) {
      return Settle(id, node, std::move(facts));
    }
    // Small values computed from known ones are evaluated on the host now.
    if (known && IsSmall(facts)) {
      const NodeView view{node.op, &node.attrs, in, facts, node.name};
      std::vector<Tensor> values;
      for (const Fact& fact : in) values.push_back(fact.value);
      auto evaluated = cpu_.Evaluate(view, values);
      // If only the model's own data are involved, the failure is the model's (compile), not that
      // of the run's inputs.
      const bool own = IsOwn(node);
      if (!evaluated.ok() && own) return WithStage(evaluated.status(), Stage::kCompile);
      ONCILLA_ASSIGN(const auto results, std::move(evaluated));
      for (ValueId output : node.outputs) out_.own[Index(output)] = own;
      for (size_t i = 0; i < facts.size(); ++i) {
        facts[i] = Fact::Constant(results[i]);
      }
      return Settle(id, node, std::move(facts));
    }
    if (RunsOnHost(graph_, node)) return HostNode(id, node);
    for (size_t i = 0; i < in.size(); ++i) {
      const bool plan_input = traits.IsPlanInput(i);
      if (!plan_input || in[i].absent() || in[i].has_value()) continue;
      // A device computes a value that determines a shape, so the segment ends before this node.
      out_.wanted_on_host.push_back(node.inputs[i]);
      return Later(node);
    }
    // Everything is known: the node becomes a step of this segment.
    for (size_t i = 0; i < facts.size(); ++i) {
      if (!facts[i].fixed())
        return Internal("output ", i, " has the unknown shape ", facts[i].shape);
      Know(node.outputs[i], std::move(facts[i]), Availability::kPlanned);
    }
    out_.steps.push_back(id);
    out_.done[Index(id)] = true;
    return Status();
  }

  Status Later(const Node& node) {
    Mark(node, Availability::kLater);
    out_.complete = false;
    // Effects happen in the order of the graph: later ones wait for this one.
    effects_wait_ |= node.op->traits.has_effects;
    return Status();
  }

  Status Settle(NodeId id, const Node& node, Facts facts) {
    for (size_t i = 0; i < facts.size(); ++i) {
      Know(node.outputs[i], std::move(facts[i]), Availability::kSettled);
    }
    out_.settled_nodes.push_back(id);
    out_.done[Index(id)] = true;
    return Status();
  }

  Status HostNode(NodeId id, const Node& node) {
    Mark(node, Availability::kHost);
    out_.host_nodes.push_back(id);
    out_.done[Index(id)] = true;
    return Status();
  }

  static bool IsSmall(const Facts& facts) {
    int64_t elements = 0;
    for (const Fact& fact : facts) {
      if (!fact.fixed()) return false;
      elements = SaturatingAdd(elements, fact.desc().elements());
    }
    return elements <= kMaxKnownInts;
  }

  const Graph& graph_;
  Device& cpu_;
  const Classified* const earlier_;  // may be null
  bool effects_wait_ = false;
  Classified out_;
};

}  // namespace

Result<Classified> Classify(const CompiledGraph& compiled, Device& cpu, const SegmentStart& start,
                            const Classified* earlier) {
  return Classifier(compiled, cpu, start, earlier).Run();
}

}  // namespace oncilla
