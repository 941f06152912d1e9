// Flattening works on frames: one per call, with a body, a prefix for names and the call it stands
// for. A site is an output of a node in a frame. Follow() walks from an input through arguments,
// calls and identities to the site that computes it; what it finds becomes a flat node, once.
//
// The function of a loop or branch is a frame too, but begins a region, a flat graph of its own:
// there a walk ends at the arguments, except for handles, which are followed out to the variable.
// Nothing here recurses, so depth in a hostile file costs a clear error, not the stack.
#include "engine/import/tf_functions.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_set>

#include "engine/base/near_names.h"
#include "engine/import/tf_op_kinds.h"

namespace oncilla {
namespace {

constexpr int kMaxCallDepth = 128;
constexpr size_t kMaxFrames = 1 << 16;
constexpr size_t kMaxNodes = 1 << 22;
constexpr int64_t kMaxHops = int64_t{1} << 27;  // in one flattening
constexpr int64_t kMaxHopsPerInput = int64_t{1} << 20;

struct Site {
  int frame = 0;
  int node = -1;
  int output = 0;
  friend bool operator<(const Site& a, const Site& b) {
    return std::tie(a.frame, a.node, a.output) < std::tie(b.frame, b.node, b.output);
  }
};

struct Frame {
  const TfBody* body = nullptr;
  const TfFunction* function = nullptr;  // null for the main graph
  int caller_frame = -1, caller_node = -1;
  int depth = 0;
  int region = 0;
  bool begins_region = false;  // the function of a loop or branch
  int shift = 0;               // then: input i of the caller is argument i - shift
  std::string prefix;
  std::map<int, int> children;             // call node -> frame
  std::map<int, std::vector<int>> bodies;  // loop or branch -> frames
  std::vector<int> flat;                   // node -> flat node, or -1
  std::vector<char> seen;                  // by the walk over everything that runs
};

// A flat graph in the making.
struct Region {
  TfFlatGraph graph;
  int frame = 0;               // the one that begins it
  std::vector<Site> effects;   // in order
  std::map<Site, int> shared;  // variables and arguments
};

class Flattener {
 public:
  Flattener(TfGraph& graph, const TfFlattenRequest& request) : graph_(graph), request_(request) {}

  Result<TfFlatGraph> Run() {
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
    // Regions begin inside earlier ones, so the last are complete first.
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

 private:
  Status Fail(const Site& site, Status status) const {
    const TfNode& node = NodeAt(site);
    const std::string name = frames_[site.frame]->prefix + std::string(node.name);
    return WithNode(In(std::move(status), StrCat("node '", name, "' (", node.op, ")")), name);
  }

  const TfNode& NodeAt(const Site& site) const {
    return frames_[site.frame]->body->nodes[static_cast<size_t>(site.node)];
  }

  Result<int> AddFrame(const TfBody* body, const TfFunction* function, int caller_frame,
                       int caller_node, std::string prefix) {
    if (frames_.size() >= kMaxFrames) return Exhausted("more than ", kMaxFrames, " nested calls");
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

  bool IsCall(const TfNode& node) const {
    return node.op == "PartitionedCall" || node.op == "StatefulPartitionedCall" ||
           graph_.HasFunction(node.op);
  }

  // The frame of a call, made at the first request.
  Result<int> Child(int frame_id, int node_id) {
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

  // A function called with so many arguments; refused when it is being called already.
  Result<const TfFunction*> FindFunction(const Site& call, const std::string& name, int arguments) {
    for (int f = call.frame; f >= 0; f = frames_[f]->caller_frame) {
      if (frames_[f]->function != nullptr && frames_[f]->function->name == name) {
        return Fail(call, Unsupported("the function '", name, "' calls itself"));
      }
    }
    if (frames_[call.frame]->depth >= kMaxCallDepth) {
      return Fail(call, Exhausted("calls are nested deeper than ", kMaxCallDepth));
    }
    auto function = graph_.Function(name);
    if (!function.ok()) return Fail(call, function.status());
    if (static_cast<int>((*function)->args.size()) != arguments) {
      return Fail(call, DataLoss("gives ", arguments, " inputs to the function '", name,
                                 "', which takes ", (*function)->args.size()));
    }
    return *function;
  }

  // The frames of a loop's or branch's functions, made at the first request; none for other nodes.
  Result<std::vector<int>> Bodies(int frame_id, int node_id) {
    const auto known = frames_[frame_id]->bodies.find(node_id);
    if (known != frames_[frame_id]->bodies.end()) return known->second;
    const Site site{frame_id, node_id, 0};
    const TfNode& node = NodeAt(site);
    TfControlForm form = TfControlFormOf(node.op);
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
                     FindFunction(site, functions[b], node.data_inputs() - form.shift));
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

  // An argument of a region's function, as a site.
  static Site ArgumentSite(int frame, int arg) { return {frame, -2 - arg, 0}; }
  static bool IsArgument(const Site& site) { return site.node < -1; }
  static int ArgumentOf(const Site& site) { return -2 - site.node; }

  // The site that an input names directly: arguments lead to the caller.
  Result<Site> Source(int frame_id, const TfInput& input) {
    const Frame& frame = *frames_[frame_id];
    const int arg = frame.function == nullptr ? -1 : frame.function->FindArg(input.node);
    if (arg < 0) return SourceInBody(frame_id, input);
    if (frame.begins_region) return ArgumentSite(frame_id, arg);
    // Child() has checked that the call has an input for each argument, and bounded the depth.
    return Source(frame.caller_frame, CallOf(frame).inputs[static_cast<size_t>(arg)]);
  }

  const TfNode& CallOf(const Frame& frame) const {
    return frames_[frame.caller_frame]->body->nodes[static_cast<size_t>(frame.caller_node)];
  }

  Result<Site> SourceInBody(int frame_id, const TfInput& input) {
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

  // From a site through calls and identities to the site that computes the value. Ends at reads of
  // variables that change, and at the arguments of a region unless they are handles.
  Result<Site> Follow(Site site) {
    for (int64_t hops = 0;; ++hops) {
      if (IsArgument(site)) {
        const Frame& frame = *frames_[site.frame];
        const auto arg = static_cast<size_t>(ArgumentOf(site));
        if (frame.function->args[arg].tf_type != kTfResourceType) return site;
        const size_t input = arg + static_cast<size_t>(frame.shift);
        ONCILLA_ASSIGN(site, Source(frame.caller_frame, CallOf(frame).inputs[input]));
        continue;
      }
      if (hops > kMaxHopsPerInput || ++hops_ > kMaxHops) {
        return Fail(site, Exhausted("its inputs lead through too many calls, or in a circle"));
      }
      if (feeds_.count(site) != 0) return site;
      const TfNode& node = NodeAt(site);
      if (IsCall(node)) {
        ONCILLA_ASSIGN(const int child, Child(site.frame, site.node));
        const TfFunction& function = *frames_[child]->function;
        if (site.output >= static_cast<int>(function.returns.size())) {
          return Fail(site, DataLoss("has no output ", site.output));
        }
        ONCILLA_ASSIGN(site, Source(child, function.returns[static_cast<size_t>(site.output)]));
        continue;
      }
      ONCILLA_ASSIGN(const std::vector<int> bodies, Bodies(site.frame, site.node));
      if (!bodies.empty()) {
        const Frame& frame = *frames_[bodies.back()];
        const auto output = static_cast<size_t>(site.output);
        const auto& outputs = frame.function->outputs;
        if (output >= outputs.size() || outputs[output].tf_type != kTfResourceType) return site;
        // A handle that comes out of a loop is the one that went in.
        if (node.op.find("While") == Bytes::npos) {
          return Fail(site, Unsupported("a branch chooses between resources"));
        }
        ONCILLA_ASSIGN(site, Source(site.frame, node.inputs[output]));
        continue;
      }
      if (!IsTfPassThrough(node.op)) return site;
      if (site.output >= node.data_inputs() || (site.output > 0 && node.op != "IdentityN")) {
        return Fail(site, DataLoss("has no output ", site.output));
      }
      ONCILLA_ASSIGN(const Site next,
                     Source(site.frame, node.inputs[static_cast<size_t>(site.output)]));
      if (has_state_) {
        // A read has its place among the effects. A reference variable is read by what follows it.
        Site read = next;
        if (node.op == "ReadVariableOp") {
          ONCILLA_ASSIGN(read, Follow(next));
        }
        if (IsState(read) && (node.op == "ReadVariableOp" || NodeAt(read).op != "VarHandleOp")) {
          return site;
        }
      }
      site = next;
    }
  }

  // A variable or table whose value may change.
  bool IsState(const Site& site) const {
    if (IsArgument(site)) return false;
    const TfNode& node = NodeAt(site);
    if (IsTfTable(node.op)) return true;
    if (!IsTfVariable(node.op)) return false;
    return written_.count({site.frame, site.node, 0}) != 0 ||
           (request_.is_state && request_.is_state(NameOf(site)));
  }

  std::string NameOf(const Site& site) const {
    return frames_[site.frame]->prefix + std::string(NodeAt(site).name);
  }

  // The flat node in a region of a site that Follow() returned; new ones wait in `pending_`.
  Result<TfRef> Flat(const Site& site, int region) {
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
        ONCILLA_ASSIGN(id,
                       AddFlat(region, TfFlatNode::Kind::kInput, CallOf(frame), std::move(name)));
        in.graph.nodes[static_cast<size_t>(id)].feed = arg;
      }
      return TfRef{id, 0};
    }
    const TfNode& node = NodeAt(site);
    if (IsTfVariable(node.op) || IsTfTable(node.op)) {
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
    // A handle of something else, made outside: what uses it has its value by another way.
    if (frames_[site.frame]->region != region) return TfRef{};
    int& id = frames_[site.frame]->flat[static_cast<size_t>(site.node)];
    if (id < 0) {
      ONCILLA_ASSIGN(id, AddFlat(region, TfFlatNode::Kind::kOp, node, NameOf(site)));
      pending_.push_back(site);
    }
    return TfRef{id, site.output};
  }

  Result<int> AddFlat(int region, TfFlatNode::Kind kind, const TfNode& source, std::string name) {
    if (++nodes_ > kMaxNodes) {
      return Exhausted("inlined calls make more than ", kMaxNodes, " nodes");
    }
    TfFlatNode node;
    node.kind = kind;
    node.source = &source;
    node.name = std::move(name);
    std::vector<TfFlatNode>& nodes = regions_[region].graph.nodes;
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
  }

  // Gives every flat node its inputs, adding what they need; loops and branches bring the results
  // of their functions.
  Status Expand() {
    while (!pending_.empty()) {
      const Site site = pending_.back();
      pending_.pop_back();
      const int region = frames_[site.frame]->region;
      const int id = frames_[site.frame]->flat[static_cast<size_t>(site.node)];
      const TfNode& node = NodeAt(site);
      std::vector<TfRef> inputs, controls;
      for (const TfInput& input : node.inputs) {
        if (input.control) {
          if (IsTfEffect(node.op)) ONCILLA_TRY(FindPivots(site.frame, input, controls));
          continue;
        }
        ONCILLA_ASSIGN(const Site named, Source(site.frame, input));
        ONCILLA_ASSIGN(const Site source, Follow(named));
        ONCILLA_ASSIGN(const TfRef ref, Flat(source, region));
        inputs.push_back(ref);
        if (node.op == "Merge" || node.op == "RefMerge") {
          ONCILLA_ASSIGN(const TfRef pivot, FindPivotBehind(named));
          controls.push_back(pivot);
        }
      }
      ONCILLA_ASSIGN(const std::vector<int> bodies, Bodies(site.frame, site.node));
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

  // The old-style pivots that a control edge waits for, by identities and nodes that do nothing.
  Status FindPivots(int frame, const TfInput& input, std::vector<TfRef>& pivots) {
    std::vector<TfInput> stack = {input};
    for (int steps = 0; !stack.empty() && steps < 256; ++steps) {
      TfInput next = stack.back();
      stack.pop_back();
      if (frames_[frame]->function != nullptr &&
          frames_[frame]->function->FindArg(next.node) >= 0) {
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
      }
    }
    return {};
  }

  // A constant's only tie to its branch is a control edge: of the constant, or of an identity
  // between it and the Merge.
  Result<TfRef> FindPivotBehind(Site site) {
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

  // Visits everything that TensorFlow would run for the targets, control edges and the side effects
  // of calls included, each after what it waits for.
  Status Walk(const std::vector<Site>& targets) {
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

  // What must have run when a node has: its inputs, then the insides of its functions.
  Result<std::vector<Site>> RunsBefore(const Site& site) {
    std::vector<Site> out;
    const TfNode& node = NodeAt(site);
    for (const TfInput& input : node.inputs) {
      if (input.control && frames_[site.frame]->function != nullptr &&
          frames_[site.frame]->body->Find(input.node) < 0 &&
          frames_[site.frame]->function->FindArg(input.node) >= 0) {
        continue;  // waits for an argument, which is there before the call begins
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
          return Fail(site,
                      DataLoss("the function '", function.name, "' has no node '", name, "'"));
        }
        out.push_back({frame, effect, 0});
      }
    }
    return out;
  }

  // From all that runs, what has effects, in order; and which variables are written.
  Status FindEffects() {
    for (const Site& site : visited_) {
      const TfNode& node = NodeAt(site);
      has_state_ |= IsTfTable(node.op) || (IsTfVariable(node.op) && IsState(site));
      if (!IsTfWrite(node.op) || node.data_inputs() == 0) continue;
      ONCILLA_ASSIGN(const Site named, Source(site.frame, node.inputs[0]));
      ONCILLA_ASSIGN(const Site target, Follow(named));
      if (IsArgument(target)) continue;
      written_.insert({target.frame, target.node, 0});
    }
    has_state_ |= !written_.empty();
    for (const Site& site : visited_) {
      const TfNode& node = NodeAt(site);
      bool effect = IsTfEffect(node.op), wanted = true;
      if (has_state_) {
        for (const TfInput& input : node.inputs) {
          if (input.control || IsCall(node) || IsTfPassThrough(node.op)) break;
          ONCILLA_TRY(LookAtState(site, input, effect, wanted));
        }
        if (node.op == "ReadVariableOp" || node.op == "Identity") {
          ONCILLA_ASSIGN(const Site end, Follow({site.frame, site.node, 0}));
          effect |= end.frame == site.frame && end.node == site.node;
        }
      }
      ONCILLA_ASSIGN(const std::vector<int> bodies, Bodies(site.frame, site.node));
      for (int body : bodies) effect |= !regions_[frames_[body]->region].effects.empty();
      if (effect && wanted) {
        regions_[frames_[site.frame]->region].effects.push_back({site.frame, site.node, 0});
      }
    }
    return {};
  }

  // Reading or writing what changes is an effect; `wanted` tells whether that one is asked for.
  Status LookAtState(const Site& site, const TfInput& input, bool& effect, bool& wanted) {
    ONCILLA_ASSIGN(const Site named, Source(site.frame, input));
    ONCILLA_ASSIGN(const Site target, Follow(named));
    if (!IsState(target)) return {};
    effect |= TfControlFormOf(NodeAt(site).op).attrs.empty();
    if (IsTfWrite(NodeAt(site).op) && request_.only_effects_on) {
      wanted &= request_.only_effects_on(NameOf(target));
    }
    return {};
  }

  // A name as users spell it: "node:0", or "call/inner/node" into the bodies of calls. Where a
  // function only wraps another call, that call's name may be left out, as TensorFlow's own freezer
  // does.
  Result<Site> FindTensor(const std::string& text, std::string_view role) {
    ONCILLA_ASSIGN(const TfInput input, ParseName(text));
    Site site{0, graph_.main().Find(input.node), input.index};
    if (site.node < 0) {
      ONCILLA_ASSIGN(site, FindInside(input));
    }
    if (site.node < 0) {
      std::vector<std::string> names;
      for (const TfNode& node : graph_.main().nodes) names.emplace_back(node.name);
      return WithStage(
          NotFound("there is no tensor '", text, "' to ", role, DidYouMean(input.node, names)),
          Stage::kOptions);
    }
    return site;
  }

  Result<TfInput> ParseName(const std::string& text) {
    auto input = ParseTfInput(text);
    if (input.ok() && !input->control && input->arg.empty()) return input;
    return WithStage(InvalidArgument("'", text, "' is not a tensor name (node:0)"),
                     Stage::kOptions);
  }

  Result<Site> FindInside(const TfInput& input) {
    int frame = 0;
    Bytes rest = input.node;
    while (true) {
      const TfBody& body = *frames_[frame]->body;
      if (const int node = body.Find(rest); node >= 0) return Site{frame, node, input.index};
      // The longest prefix that is a call.
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

  TfGraph& graph_;
  const TfFlattenRequest& request_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::deque<Region> regions_;  // 0 is the main graph
  std::map<Site, int> feeds_;
  std::vector<Site> visited_;  // all that runs, each after what it waits for
  std::set<Site> written_;
  bool has_state_ = false;
  std::vector<Site> pending_;
  int64_t hops_ = 0;
  size_t nodes_ = 0;
};

}  // namespace

Result<TfFlatGraph> FlattenTfGraph(TfGraph& graph, const TfFlattenRequest& request) {
  return Flattener(graph, request).Run();
}

}  // namespace oncilla
