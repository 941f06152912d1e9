// Flattening: visits everything that runs, and finds its order, its effects, and tensors by name.
#include "engine/base/near_names.h"
#include "engine/import/stablehlo/bytecode.h"
#include "engine/import/tf/graph/flattener.h"
#include "engine/import/tf/messages.h"

namespace oncilla::tf_flat {

Status Flattener::FindPivots(int frame, const TfInput& input, std::vector<TfRef>& pivots,
                             bool through) {
  std::vector<TfInput> stack = {input};
  for (int steps = 0; !stack.empty() && steps < 256; ++steps) {
    TfInput next = stack.back();
    stack.pop_back();
    if (frames_[frame]->function != nullptr && frames_[frame]->function->FindArg(next.node) >= 0) {
      continue;
    }
    next.control = false;
    ONCILLA_ASSIGN(const Site named, SourceInBody(frame, next));
    ONCILLA_ASSIGN(const Site source, Follow(named));
    if (IsArgument(source) || source.frame != frame) continue;
    const TfNode& node = NodeAt(source);
    if (node.op == "Switch") {
      ONCILLA_ASSIGN(const TfRef ref, Flat(source, frames_[frame]->region));
      pivots.push_back(ref);
    } else if (node.op == "NoOp" || node.op == "Const") {
      for (const TfInput& further : node.inputs) stack.push_back(further);
    } else if (through && node.data_inputs() > 0 && node.op != "Merge" && node.op != "Enter") {
      stack.push_back(node.inputs[0]);
    }
  }
  return {};
}

Result<TfRef> Flattener::FindPivotBehind(Site site) {
  for (int hops = 0; hops < 64 && !IsArgument(site); ++hops) {
    const TfNode& node = NodeAt(site);
    std::vector<TfRef> pivots;
    for (const TfInput& input : node.inputs) {
      if (input.control) ONCILLA_TRY(FindPivots(site.frame, input, pivots));
    }
    if (!pivots.empty()) return pivots[0];
    if (node.data_inputs() == 0 || IsCall(node) || node.op == "Switch" || node.op == "Merge" ||
        node.op == "NextIteration" || node.op == "Enter") {
      break;
    }
    ONCILLA_ASSIGN(site, Source(site.frame, node.inputs[0]));
  }
  return TfRef{};
}

Status Flattener::Walk(const std::vector<Site>& targets) {
  struct Visit {
    Site site;
    std::vector<Site> next;
    size_t at = 0;
  };
  std::vector<Visit> stack;
  const auto enter = [&](const Site& site) -> Status {
    if (IsArgument(site)) return {};
    char& seen = frames_[site.frame]->seen[static_cast<size_t>(site.node)];
    if (seen != 0) return {};
    seen = 1;
    if (feeds_.count({site.frame, site.node, 0}) != 0) return {};
    Visit visit{site, {}, 0};
    ONCILLA_ASSIGN(visit.next, RunsBefore(site));
    stack.push_back(std::move(visit));
    return {};
  };
  for (const Site& target : targets) {
    ONCILLA_TRY(enter(target));
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.at < top.next.size()) {
        const Site next = top.next[top.at++];
        ONCILLA_TRY(enter(next));
        continue;
      }
      visited_.push_back(top.site);
      stack.pop_back();
    }
  }
  return {};
}

Result<std::vector<Site>> Flattener::RunsBefore(const Site& site) {
  std::vector<Site> out;
  const TfNode& node = NodeAt(site);
  for (const TfInput& input : node.inputs) {
    if (input.control && frames_[site.frame]->function != nullptr &&
        frames_[site.frame]->body->Find(input.node) < 0 &&
        frames_[site.frame]->function->FindArg(input.node) >= 0) {
      continue;  // an argument is available before the call begins
    }
    ONCILLA_ASSIGN(const Site source, Source(site.frame, input));
    out.push_back(source);
  }
  std::vector<int> inside;
  if (IsCall(node)) {
    ONCILLA_ASSIGN(const int child, Child(site.frame, site.node));
    inside.push_back(child);
  } else {
    ONCILLA_ASSIGN(inside, Bodies(site.frame, site.node));
  }
  for (int frame : inside) {
    const TfFunction& function = *frames_[frame]->function;
    for (const TfInput& input : function.returns) {
      ONCILLA_ASSIGN(const Site source, Source(frame, input));
      out.push_back(source);
    }
    for (Bytes name : function.control_returns) {
      const int effect = function.body.Find(name);
      if (effect < 0) {
        return Fail(site, DataLoss("the function '", function.name, "' has no node '", name, "'"));
      }
      out.push_back({frame, effect, 0});
    }
  }
  return out;
}

Status Flattener::FindEffects() {
  for (const Site& site : visited_) {
    const TfNode& node = NodeAt(site);
    has_state_ |=
        IsTfTable(node.op) || IsTfStack(node.op) || (IsTfVariable(node.op) && IsState(site));
    if (!IsTfWrite(node.op) || node.data_inputs() == 0 || IsTfAssetPath(graph_, node)) continue;
    ONCILLA_ASSIGN(const Site named, Source(site.frame, node.inputs[0]));
    ONCILLA_ASSIGN(const Site target, FollowHandle(named));
    if (IsArgument(target)) continue;
    ONCILLA_ASSIGN(const bool idle, AssignsItself(site, target));
    if (idle) {
      idle_writes_.insert({site.frame, site.node, 0});
      continue;
    }
    // A path through handles ends at a variable that is written, so paths found earlier may be
    // outdated.
    if (written_.insert({target.frame, target.node, 0}).second) followed_[1].clear();
  }
  has_state_ |= !written_.empty();
  for (const Site& site : visited_) {
    const TfNode& node = NodeAt(site);
    bool effect = IsTfEffect(node.op) && !IsTfAssetPath(graph_, node), wanted = true;
    if (has_state_) {
      for (const TfInput& input : node.inputs) {
        if (input.control || IsCall(node) || IsTfPassThrough(node.op) || PassesHandles(node.op)) {
          break;
        }
        ONCILLA_TRY(LookAtState(site, input, effect, wanted));
      }
      if (node.op == "ReadVariableOp" || node.op == "Identity") {
        ONCILLA_ASSIGN(const Site end, Follow({site.frame, site.node, 0}));
        effect |= end.frame == site.frame && end.node == site.node;
      }
    }
    if (idle_writes_.count({site.frame, site.node, 0}) != 0) {
      // It matters only beside writes of other values, which may come between.
      ONCILLA_ASSIGN(const Site named, Source(site.frame, node.inputs[0]));
      ONCILLA_ASSIGN(const Site target, FollowHandle(named));
      if (!IsState(target)) continue;
    }
    ONCILLA_ASSIGN(const std::vector<int> bodies, Bodies(site.frame, site.node));
    for (int body : bodies) effect |= !regions_[frames_[body]->region].effects.empty();
    if (effect && wanted) {
      regions_[frames_[site.frame]->region].effects.push_back({site.frame, site.node, 0});
    }
  }
  return {};
}

// JAX's functions return the variables that they do not change, and what exports them assigns all.
Result<bool> Flattener::AssignsItself(const Site& site, const Site& variable) {
  const TfNode& node = NodeAt(site);
  if (node.op != "AssignVariableOp" || node.data_inputs() < 2) return false;
  ONCILLA_ASSIGN(const Site named, Source(site.frame, node.inputs[1]));
  ONCILLA_ASSIGN(const Site value, Follow(named));
  if (IsArgument(value) || IsArgument(variable)) return false;
  return value.frame == variable.frame && value.node == variable.node &&
         NodeAt(value).op == "VarHandleOp";
}

int Flattener::HloArgument(const TfNode& node, int output) {
  const auto [known, added] = passed_.emplace(&node, std::vector<int>());
  if (added) {
    const auto text = TfAttr(node.FindAttr("module")).String();
    const auto module =
        text.ok() ? ReadHloModule(*text, nullptr) : Result<HloModule>(text.status());
    // A damaged module is refused when it is lowered; one with further arguments numbers them
    // otherwise.
    if (module.ok()) {
      const auto main = module->functions.find("main");
      if (main != module->functions.end() &&
          static_cast<int>(main->second.arguments.size()) == node.data_inputs()) {
        known->second = module->PassedThrough("main");
      }
    }
  }
  if (output < 0 || static_cast<size_t>(output) >= known->second.size()) return -1;
  return known->second[static_cast<size_t>(output)];
}

Status Flattener::LookAtState(const Site& site, const TfInput& input, bool& effect, bool& wanted) {
  ONCILLA_ASSIGN(const Site named, Source(site.frame, input));
  ONCILLA_ASSIGN(const Site target, FollowHandle(named));
  if (!IsState(target)) return {};
  effect |= TfControlFormOf(NodeAt(site).op).attrs.empty();
  if (IsTfWrite(NodeAt(site).op) && request_.only_effects_on) {
    wanted &= request_.only_effects_on(NameOf(target));
  }
  return {};
}

int64_t Flattener::OutputCount(const TfNode& node) const {
  const TfOpDef* def = graph_.defs().Find(node.op);
  if (def == nullptr || def->outputs.empty()) return 0;
  int64_t outputs = 0;
  for (const TfOpDef::Output& output : def->outputs) {
    int64_t count = 1;
    if (!output.number_attr.empty()) {
      count = graph_.Attrs(node).Int(output.number_attr).value_or(-1);
    } else if (!output.type_list_attr.empty()) {
      const auto types = graph_.Attrs(node).TypeNumbers(output.type_list_attr);
      count = types.ok() ? static_cast<int64_t>(types->size()) : -1;
    }
    if (count < 0) return 0;
    outputs = SaturatingAdd(outputs, count);
  }
  return outputs;
}

Result<Site> Flattener::FindTensor(const std::string& text, std::string_view role) {
  ONCILLA_ASSIGN(const TfInput input, ParseName(text));
  Site site{0, graph_.main().Find(input.node), input.index};
  if (site.node < 0) {
    ONCILLA_ASSIGN(site, FindInside(input));
  }
  if (site.node < 0) {
    std::vector<std::string> names;
    for (const TfNode& node : graph_.main().nodes) names.emplace_back(node.name);
    const std::string theirs = role == "feed"    ? tf_messages::UnknownFeed(text)
                               : role == "fetch" ? tf_messages::UnknownFetch(text)
                                                 : tf_messages::UnknownTarget(text);
    return WithStage(NotFound(theirs, "; there is no tensor '", text, "' to ", role,
                              DidYouMean(input.node, names)),
                     Stage::kOptions);
  }
  if (const int64_t outputs = OutputCount(NodeAt(site)); outputs > 0 && site.output >= outputs) {
    return WithStage(InvalidArgument(tf_messages::NoSuchOutput(text, input.node, outputs)),
                     Stage::kOptions);
  }
  return site;
}

Result<TfInput> Flattener::ParseName(const std::string& text) {
  auto input = ParseTfInput(text);
  if (input.ok() && !input->control && input->arg.empty()) return input;
  return WithStage(InvalidArgument(tf_messages::NotATensorName(text)), Stage::kOptions);
}

Result<Site> Flattener::FindInside(const TfInput& input) {
  int frame = 0;
  Bytes rest = input.node;
  while (true) {
    const TfBody& body = *frames_[frame]->body;
    if (const int node = body.Find(rest); node >= 0) return Site{frame, node, input.index};
    // The longest prefix that names a call.
    int call = -1;
    size_t cut = rest.size();
    while (call < 0 && cut != Bytes::npos && cut > 0) {
      cut = rest.rfind('/', cut - 1);
      if (cut == Bytes::npos) break;
      const int node = body.Find(rest.substr(0, cut));
      if (node >= 0 && IsCall(body.nodes[static_cast<size_t>(node)])) call = node;
    }
    if (call >= 0) {
      rest.remove_prefix(cut + 1);
    } else {
      for (size_t n = 0; n < body.nodes.size() && frame != 0; ++n) {
        if (!IsCall(body.nodes[n])) continue;
        if (call >= 0) return Site{};
        call = static_cast<int>(n);
      }
    }
    if (call < 0) return Site{};
    ONCILLA_ASSIGN(frame, Child(frame, call));
  }
}

}  // namespace oncilla::tf_flat
