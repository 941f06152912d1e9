// Flattening: frames (inlined calls), paths from an input to the node that computes it, and the
// flat nodes that fetches need.
#include "engine/import/tf/graph/functions.h"

#include "engine/graph/at_node.h"
#include "engine/import/tf/graph/flattener.h"

namespace oncilla {
namespace tf_flat {

Result<TfFlatGraph> Flattener::Run() {
  regions_.emplace_back();
  ONCILLA_TRY(AddFrame(&graph_.main(), nullptr, -1, -1, "").status());
  std::vector<Site> fetches, targets;
  for (const std::string& feed : request_.feeds) {
    ONCILLA_ASSIGN(const Site site, FindTensor(feed, "feed"));
    if (!feeds_.emplace(site, static_cast<int>(feeds_.size())).second) {
      return InvalidArgument("the tensor '", feed, "' is fed twice");
    }
  }
  regions_[0].graph.inputs.assign(request_.feeds.size(), -1);
  for (const std::string& fetch : request_.fetches) {
    ONCILLA_ASSIGN(const Site site, FindTensor(fetch, "fetch"));
    fetches.push_back(site);
  }
  targets = fetches;
  for (const std::string& target : request_.targets) {
    ONCILLA_ASSIGN(const Site site, FindTensor(target, "run"));
    targets.push_back(site);
  }
  ONCILLA_TRY(Walk(targets));
  ONCILLA_TRY(FindEffects());
  for (size_t r = 0; r < regions_.size(); ++r) {
    for (size_t e = 0; e < regions_[r].effects.size(); ++e) {
      ONCILLA_ASSIGN(const TfRef ref, Flat(regions_[r].effects[e], static_cast<int>(r)));
      regions_[r].graph.effects.push_back(ref.node);
    }
  }
  for (const Site& site : fetches) {
    ONCILLA_ASSIGN(const Site source, Follow(site));
    ONCILLA_ASSIGN(const TfRef ref, Flat(source, 0));
    regions_[0].graph.outputs.push_back(ref);
  }
  ONCILLA_TRY(Expand());
  // A region begins inside an earlier one, so the last ones are complete first.
  for (size_t r = regions_.size(); r-- > 0;) {
    SortTfFlatGraph(regions_[r].graph);
    if (r == 0) break;
    const Frame& frame = *frames_[regions_[r].frame];
    const Frame& outer = *frames_[frame.caller_frame];
    TfFlatNode& node =
        regions_[outer.region].graph.nodes[static_cast<size_t>(outer.flat[frame.caller_node])];
    node.bodies.insert(node.bodies.begin(), std::move(regions_[r].graph));
  }
  return std::move(regions_[0].graph);
}

Status Flattener::Fail(const Site& site, Status status) const {
  const TfNode& node = NodeAt(site);
  const std::string name = frames_[site.frame]->prefix + std::string(node.name);
  return AtNode(std::move(status), name, node.op);
}

Result<int> Flattener::AddFrame(const TfBody* body, const TfFunction* function, int caller_frame,
                                int caller_node, std::string prefix) {
  if (frames_.size() >= kMaxFrames) return Exhausted("more than ", kMaxFrames, " nested calls");
  // Each node of a frame's body takes about as much memory as an edge.
  ONCILLA_TRY(bounds_.Take(prefix.size(), body->nodes.size()));
  auto frame = std::make_unique<Frame>();
  frame->body = body;
  frame->function = function;
  frame->caller_frame = caller_frame;
  frame->caller_node = caller_node;
  frame->depth = caller_frame < 0 ? 0 : frames_[caller_frame]->depth + 1;
  frame->region = caller_frame < 0 ? 0 : frames_[caller_frame]->region;
  frame->prefix = std::move(prefix);
  frame->flat.assign(body->nodes.size(), -1);
  frame->seen.assign(body->nodes.size(), 0);
  frames_.push_back(std::move(frame));
  return static_cast<int>(frames_.size()) - 1;
}

Result<int> Flattener::Child(int frame_id, int node_id) {
  const auto known = frames_[frame_id]->children.find(node_id);
  if (known != frames_[frame_id]->children.end()) return known->second;
  const Site call{frame_id, node_id, 0};
  const TfNode& node = NodeAt(call);
  std::string name(node.op);
  if (!graph_.HasFunction(name)) {
    ONCILLA_ASSIGN(name, graph_.Attrs(node).Function("f"));
  }
  ONCILLA_ASSIGN(const TfFunction* function, FindFunction(call, name, node.data_inputs()));
  std::string prefix = frames_[frame_id]->prefix + std::string(node.name) + "/";
  ONCILLA_ASSIGN(const int child,
                 AddFrame(&function->body, function, frame_id, node_id, std::move(prefix)));
  frames_[frame_id]->children.emplace(node_id, child);
  return child;
}

Result<std::vector<int>> Flattener::Bodies(int frame_id, int node_id) {
  const auto known = frames_[frame_id]->bodies.find(node_id);
  if (known != frames_[frame_id]->bodies.end()) return known->second;
  const Site site{frame_id, node_id, 0};
  const TfNode& node = NodeAt(site);
  TfControlForm form = TfControlFormOf(node.op);
  const bool elements = form.attrs.empty();
  if (elements) {
    form.attrs = TfElementFunctionsOf(node.op);
    form.names.assign(form.attrs.begin(), form.attrs.end());
  }
  if (form.attrs.empty()) return std::vector<int>();
  std::vector<std::string> functions;
  if (form.attrs[0] == "branches") {
    const auto branches = TfAttr(node.FindAttr("branches")).Functions();
    if (!branches.ok()) return Fail(site, branches.status());
    for (Bytes branch : *branches) {
      form.names.push_back(StrCat("branch", functions.size()));
      functions.emplace_back(branch);
    }
  } else {
    for (std::string_view attr : form.attrs) {
      auto name = graph_.Attrs(node).Function(attr);
      if (!name.ok()) return Fail(site, name.status());
      functions.push_back(*std::move(name));
    }
  }
  std::vector<int> bodies;
  for (size_t b = 0; b < functions.size(); ++b) {
    ONCILLA_ASSIGN(const TfFunction* function,
                   FindFunction(site, functions[b],
                                elements ? kNumbersOnly : node.data_inputs() - form.shift));
    std::string prefix = StrCat(frames_[frame_id]->prefix, node.name, "/", form.names[b], "/");
    ONCILLA_ASSIGN(const int body,
                   AddFrame(&function->body, function, frame_id, node_id, std::move(prefix)));
    Frame& frame = *frames_[body];
    frame.begins_region = true;
    frame.shift = form.shift;
    frame.region = static_cast<int>(regions_.size());
    regions_.emplace_back();
    regions_.back().frame = body;
    regions_.back().graph.inputs.assign(function->args.size(), -1);
    bodies.push_back(body);
  }
  frames_[frame_id]->bodies.emplace(node_id, bodies);
  return bodies;
}

Result<Site> Flattener::Source(int frame_id, const TfInput& input) {
  const Frame& frame = *frames_[frame_id];
  const int arg = frame.function == nullptr ? -1 : frame.function->FindArg(input.node);
  if (arg < 0) return SourceInBody(frame_id, input);
  if (frame.begins_region) return ArgumentSite(frame_id, arg);
  // Child() has checked that the call has an input for each argument, and has bounded the depth.
  return Source(frame.caller_frame, CallOf(frame).inputs[static_cast<size_t>(arg)]);
}

Result<Site> Flattener::SourceInBody(int frame_id, const TfInput& input) {
  const Frame& frame = *frames_[frame_id];
  const int node = frame.body->Find(input.node);
  if (node < 0) {
    return DataLoss("the input '", input, "' of a node in '", frame.prefix,
                    "' names a node that is not there");
  }
  Site site{frame_id, node, input.index};
  ONCILLA_ASSIGN(site.output, graph_.OutputIndex(NodeAt(site), input));
  return site;
}

Result<Site> Flattener::Follow(Site site) {
  std::vector<Site> way;
  auto& known = followed_[has_state_ ? 1 : 0];
  for (;;) {
    if (const auto found = known.find(site); found != known.end()) {
      site = found->second;
      break;
    }
    ONCILLA_ASSIGN(const std::optional<Site> next, Step(site));
    if (!next.has_value()) break;
    if (static_cast<int64_t>(way.size()) > kMaxHopsPerInput || ++hops_ > kMaxHops) {
      return Fail(site, Exhausted("its inputs lead through too many calls, or in a cycle"));
    }
    way.push_back(site);
    site = *next;
  }
  for (const Site& passed : way) known.emplace(passed, site);
  return site;
}

Result<std::optional<Site>> Flattener::Step(const Site& site) {
  using Next = std::optional<Site>;
  if (IsArgument(site)) {
    const Frame& frame = *frames_[site.frame];
    const auto arg = static_cast<size_t>(ArgumentOf(site));
    if (frame.function->args[arg].tf_type != kTfResourceType) return Next();
    const size_t input = arg + static_cast<size_t>(frame.shift);
    ONCILLA_ASSIGN(const Site next, Source(frame.caller_frame, CallOf(frame).inputs[input]));
    return Next(next);
  }
  if (feeds_.count(site) != 0) return Next();
  const TfNode& node = NodeAt(site);
  if (IsCall(node)) {
    ONCILLA_ASSIGN(const int child, Child(site.frame, site.node));
    const TfFunction& function = *frames_[child]->function;
    if (site.output >= static_cast<int>(function.returns.size())) {
      return Fail(site, DataLoss("has no output ", site.output));
    }
    ONCILLA_ASSIGN(const Site next,
                   Source(child, function.returns[static_cast<size_t>(site.output)]));
    return Next(next);
  }
  ONCILLA_ASSIGN(const std::vector<int> bodies, Bodies(site.frame, site.node));
  if (!bodies.empty()) {
    const Frame& frame = *frames_[bodies.back()];
    const auto output = static_cast<size_t>(site.output);
    const auto& outputs = frame.function->outputs;
    if (output >= outputs.size() || outputs[output].tf_type != kTfResourceType) return Next();
    // A handle that a loop returns is the one that was passed in.
    const bool counts = node.op == "For";  // start, limit and delta precede the values
    if (!counts && node.op.find("While") == Bytes::npos) {
      return Fail(site, Unsupported("a branch chooses between resources"));
    }
    ONCILLA_ASSIGN(const Site next, Source(site.frame, node.inputs[output + (counts ? 3 : 0)]));
    return Next(next);
  }
  if (node.op == "XlaCallModule") {
    const int input = HloArgument(node, site.output);
    if (input < 0) return Next();
    ONCILLA_ASSIGN(const Site next, Source(site.frame, node.inputs[static_cast<size_t>(input)]));
    return Next(next);
  }
  if (!IsTfPassThrough(node.op)) return Next();
  if (site.output >= node.data_inputs() || (site.output > 0 && node.op != "IdentityN")) {
    return Fail(site, DataLoss("has no output ", site.output));
  }
  ONCILLA_ASSIGN(const Site next,
                 Source(site.frame, node.inputs[static_cast<size_t>(site.output)]));
  if (has_state_) {
    // A read has its place among the effects. A reference variable is read by the node that uses
    // it.
    Site read = next;
    if (node.op == "ReadVariableOp") {
      ONCILLA_ASSIGN(read, Follow(next));
    }
    if (IsState(read) && (node.op == "ReadVariableOp" || NodeAt(read).op != "VarHandleOp")) {
      return Next();
    }
  }
  return Next(next);
}

Result<Site> Flattener::FollowHandle(Site site) {
  for (int hops = 0; hops < kMaxCallDepth; ++hops) {
    ONCILLA_ASSIGN(site, Follow(site));
    if (IsArgument(site)) break;
    const TfNode& node = NodeAt(site);
    if (!PassesHandles(node.op) || node.data_inputs() == 0) break;
    ONCILLA_ASSIGN(site, Source(site.frame, node.inputs[0]));
  }
  return site;
}

bool Flattener::IsState(const Site& site) const {
  if (IsArgument(site)) return false;
  const TfNode& node = NodeAt(site);
  if (IsTfTable(node.op) || IsTfStack(node.op)) return true;
  if (!IsTfVariable(node.op)) return false;
  return written_.count({site.frame, site.node, 0}) != 0 ||
         (request_.is_state && request_.is_state(NameOf(site)));
}

Result<TfRef> Flattener::Flat(const Site& site, int region) {
  Region& in = regions_[region];
  const auto feed = feeds_.find(site);
  if (feed != feeds_.end() && region == 0) {
    int& id = in.graph.inputs[static_cast<size_t>(feed->second)];
    if (id < 0) {
      ONCILLA_ASSIGN(id, AddFlat(region, TfFlatNode::Kind::kInput, NodeAt(site), NameOf(site)));
      in.graph.nodes[static_cast<size_t>(id)].feed = feed->second;
    }
    return TfRef{id, 0};
  }
  if (IsArgument(site)) {
    const int arg = ArgumentOf(site);
    int& id = in.graph.inputs[static_cast<size_t>(arg)];
    if (id < 0) {
      const Frame& frame = *frames_[site.frame];
      std::string name =
          frame.prefix + std::string(frame.function->args[static_cast<size_t>(arg)].name);
      ONCILLA_ASSIGN(id, AddFlat(region, TfFlatNode::Kind::kInput, CallOf(frame), std::move(name)));
      in.graph.nodes[static_cast<size_t>(id)].feed = arg;
    }
    return TfRef{id, 0};
  }
  const TfNode& node = NodeAt(site);
  if (IsTfVariable(node.op) || IsTfTable(node.op) || IsTfStack(node.op)) {
    const auto [known, added] = in.shared.emplace(Site{site.frame, site.node, 0}, -1);
    if (!added) return TfRef{known->second, 0};
    const bool state = IsState(site);
    Tensor value;
    if (!state) {
      Result<Tensor> found = request_.variable(node);
      if (!found.ok()) return Fail(site, found.status());
      value = *std::move(found);
    }
    const auto kind = state ? TfFlatNode::Kind::kState : TfFlatNode::Kind::kVariable;
    ONCILLA_ASSIGN(known->second, AddFlat(region, kind, node, NameOf(site)));
    in.graph.nodes.back().value = std::move(value);
    return TfRef{known->second, 0};
  }
  // A handle from outside this region that is not a variable's: its users get the value in another
  // way.
  if (frames_[site.frame]->region != region) return TfRef{};
  int& id = frames_[site.frame]->flat[static_cast<size_t>(site.node)];
  if (id < 0) {
    ONCILLA_ASSIGN(id, AddFlat(region, TfFlatNode::Kind::kOp, node, NameOf(site)));
    in.graph.nodes.back().device = StoredDevice(site);
    pending_.push_back(site);
  }
  return TfRef{id, site.output};
}

Bytes Flattener::StoredDevice(const Site& site) const {
  Bytes device = NodeAt(site).device;
  for (int f = site.frame; device.empty() && frames_[f]->caller_frame >= 0;) {
    device = CallOf(*frames_[f]).device;
    f = frames_[f]->caller_frame;
  }
  return device;
}

Result<int> Flattener::AddFlat(int region, TfFlatNode::Kind kind, const TfNode& source,
                               std::string name) {
  if (++nodes_ > kMaxNodes) {
    return Exhausted("inlined calls make more than ", kMaxNodes, " nodes");
  }
  ONCILLA_TRY(bounds_.Take(name.size(), source.inputs.size()));
  TfFlatNode node;
  node.kind = kind;
  node.source = &source;
  node.name = std::move(name);
  std::vector<TfFlatNode>& nodes = regions_[region].graph.nodes;
  nodes.push_back(std::move(node));
  return static_cast<int>(nodes.size()) - 1;
}

Status Flattener::Expand() {
  while (!pending_.empty()) {
    const Site site = pending_.back();
    pending_.pop_back();
    const int region = frames_[site.frame]->region;
    const int id = frames_[site.frame]->flat[static_cast<size_t>(site.node)];
    const TfNode& node = NodeAt(site);
    std::vector<TfRef> inputs, controls;
    for (const TfInput& input : node.inputs) {
      if (input.control) {
        if (IsTfEffect(node.op) || IsTfRandom(node.op)) {
          // A pop has no other connection to the loop that it belongs to.
          const bool pops = node.op == "StackPopV2" || node.op == "StackPop";
          ONCILLA_TRY(FindPivots(site.frame, input, controls, pops));
        }
        continue;
      }
      ONCILLA_ASSIGN(const Site named, Source(site.frame, input));
      ONCILLA_ASSIGN(const Site source, Follow(named));
      ONCILLA_ASSIGN(const TfRef ref, Flat(source, region));
      inputs.push_back(ref);
      if (node.op == "Merge" || node.op == "RefMerge") {
        ONCILLA_ASSIGN(const TfRef pivot, FindPivotBehind(named));
        controls.push_back(pivot);
      } else if (IsTfRandom(node.op)) {
        // The constant shape of a random op may be its only connection to its loop or branch.
        ONCILLA_ASSIGN(const TfRef pivot, FindPivotBehind(named));
        if (pivot.node >= 0) controls.push_back(pivot);
      }
    }
    ONCILLA_ASSIGN(const std::vector<int> bodies, Bodies(site.frame, site.node));
    // The results of functions that control flow calls are flattened in their own regions.
    for (int body : bodies) {
      const TfFunction& function = *frames_[body]->function;
      const int inner = frames_[body]->region;
      if (!regions_[inner].graph.outputs.empty()) continue;
      for (const TfInput& result : function.returns) {
        ONCILLA_ASSIGN(const Site named, Source(body, result));
        ONCILLA_ASSIGN(const Site source, Follow(named));
        ONCILLA_ASSIGN(const TfRef ref, Flat(source, inner));
        regions_[inner].graph.outputs.push_back(ref);
      }
    }
    TfFlatNode& flat = regions_[region].graph.nodes[static_cast<size_t>(id)];
    flat.inputs = std::move(inputs);
    flat.controls = std::move(controls);
  }
  return {};
}

}  // namespace tf_flat

Result<TfFlatGraph> FlattenTfGraph(TfGraph& graph, const TfFlattenRequest& request) {
  return tf_flat::Flattener(graph, request).Run();
}

}  // namespace oncilla
