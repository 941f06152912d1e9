// Flattening works on frames: one per call, with a body, a prefix for names and the call it stands
// for. A site is an output of a node in a frame. Locate() walks from an input through arguments,
// calls and identities to the site that computes it; what it finds becomes a flat node, once.
// Nothing here recurses, so depth in a hostile file costs a clear error, not the stack.
#include "engine/import/tf_functions.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_set>

#include "engine/base/near_names.h"

namespace oncilla {
namespace {

constexpr int kMaxCallDepth = 128;
constexpr size_t kMaxFrames = 1 << 16;
constexpr size_t kMaxNodes = 1 << 22;
constexpr int64_t kMaxHops = int64_t{1} << 27;  // in one flattening
constexpr int64_t kMaxHopsPerInput = int64_t{1} << 20;

template <size_t N>
bool OneOf(std::string_view op, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}
bool StartsWith(std::string_view op, std::string_view prefix) {
  return op.substr(0, prefix.size()) == prefix;
}

// Ops whose output is their input.
bool IsPassThrough(std::string_view op) {
  static constexpr std::array<std::string_view, 7> kOps = {
      "Identity", "IdentityN",      "StopGradient",          "PreventGradient",
      "Snapshot", "ReadVariableOp", "PlaceholderWithDefault"};
  return OneOf(op, kOps);
}

// Ops that are run for what they do, even where nobody reads what they give: they may fail the run,
// or write a message.
bool IsCheck(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kOps = {"Assert", "CheckNumerics",
                                                           "CheckNumericsV2", "Print", "PrintV2"};
  return OneOf(op, kOps);
}

bool IsVariable(std::string_view op) {
  static constexpr std::array<std::string_view, 3> kOps = {"VarHandleOp", "VariableV2", "Variable"};
  return OneOf(op, kOps);
}

// Ops that change a variable, a table or another resource.
bool IsWrite(std::string_view op) {
  static constexpr std::array<std::string_view, 12> kPrefixes = {
      "Assign",    "ResourceApply",       "ResourceSparseApply",  "ResourceScatter",
      "Apply",     "SparseApply",         "ResourceStridedSlice", "ResourceCountUpTo",
      "CountUpTo", "ResourceAccumulator", "LookupTableInsert",    "LookupTableRemove"};
  for (std::string_view prefix : kPrefixes) {
    if (StartsWith(op, prefix)) return true;
  }
  // ScatterNd makes a tensor; the other Scatter ops write a reference variable.
  return StartsWith(op, "Scatter") && op != "ScatterNd" && op != "ScatterNdNonAliasingAdd";
}

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
  int branch = -1;                 // of a conditional: 0 else, 1 then
  std::map<int, int> branches[2];  // conditional -> frame
  int depth = 0;
  std::string prefix;
  std::map<int, int> children;  // call node -> frame
  std::vector<int> flat;        // node -> flat node, or -1
  std::vector<char> seen;       // by the search for effects
};

class Flattener {
 public:
  Flattener(TfGraph& graph, const TfFlattenRequest& request) : graph_(graph), request_(request) {}

  Result<TfFlatGraph> Run() {
    ONCILLA_TRY(AddFrame(&graph_.main(), nullptr, -1, -1, "").status());
    std::vector<Site> fetches;
    for (const std::string& feed : request_.feeds) {
      ONCILLA_ASSIGN(const Site site, FindTensor(feed, "feed"));
      if (!feeds_.emplace(site, static_cast<int>(feeds_.size())).second) {
        return InvalidArgument("the tensor '", feed, "' is fed twice");
      }
    }
    out_.inputs.assign(request_.feeds.size(), -1);
    for (const std::string& fetch : request_.fetches) {
      ONCILLA_ASSIGN(const Site site, FindTensor(fetch, "fetch"));
      fetches.push_back(site);
    }
    for (const Site& site : fetches) {
      ONCILLA_ASSIGN(const Site source, Follow(site));
      ONCILLA_ASSIGN(const TfRef ref, Flat(source));
      out_.outputs.push_back(ref);
    }
    ONCILLA_TRY(Expand());
    ONCILLA_TRY(FindEffects(fetches));
    // What an effect waits for was found after it.
    std::reverse(checks_.begin(), checks_.end());
    for (const Site& check : checks_) ONCILLA_TRY(Flat(check).status());
    ONCILLA_TRY(Expand());
    Order();
    return std::move(out_);
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
    ONCILLA_ASSIGN(const int child, Enter(call, name, 0));
    frames_[frame_id]->children.emplace(node_id, child);
    return child;
  }

  // The frame of one branch of a conditional.
  Result<int> Branch(const Site& site, int branch) {
    auto& known = frames_[site.frame]->branches[branch];
    if (const auto it = known.find(site.node); it != known.end()) return it->second;
    const char* attr = branch == 1 ? "then_branch" : "else_branch";
    ONCILLA_ASSIGN(const std::string name, graph_.Attrs(NodeAt(site)).Function(attr));
    ONCILLA_ASSIGN(const int child, Enter({site.frame, site.node, 0}, name, 1));
    frames_[child]->branch = branch;
    frames_[site.frame]->branches[branch].emplace(site.node, child);
    return child;
  }

  // A new frame for the body of a function, whose arguments are the inputs from `first` on.
  Result<int> Enter(const Site& call, const std::string& name, int first) {
    const int frame_id = call.frame;
    const TfNode& node = NodeAt(call);
    for (int f = frame_id; f >= 0; f = frames_[f]->caller_frame) {
      if (frames_[f]->function != nullptr && frames_[f]->function->name == name) {
        return Fail(call, Unsupported("the function '", name, "' calls itself"));
      }
    }
    if (frames_[frame_id]->depth >= kMaxCallDepth) {
      return Fail(call, Exhausted("calls are nested deeper than ", kMaxCallDepth));
    }
    auto function = graph_.Function(name);
    if (!function.ok()) return Fail(call, function.status());
    if (static_cast<int>((*function)->args.size()) != node.data_inputs() - first) {
      return Fail(call, DataLoss("gives ", node.data_inputs() - first, " inputs to the function '",
                                 name, "', which takes ", (*function)->args.size()));
    }
    std::string prefix = frames_[frame_id]->prefix + std::string(node.name) + "/";
    return AddFrame(&(*function)->body, *function, frame_id, call.node, std::move(prefix));
  }

  // The site that an input names directly: arguments lead to the caller.
  Result<Site> Source(int frame_id, const TfInput& input) {
    const Frame& frame = *frames_[frame_id];
    const int arg = frame.function == nullptr ? -1 : frame.function->FindArg(input.node);
    if (arg < 0) return SourceInBody(frame_id, input);
    // Child() has checked that the call has an input for each argument, and bounded the depth.
    const TfNode& call =
        frames_[frame.caller_frame]->body->nodes[static_cast<size_t>(frame.caller_node)];
    const int first = frame.branch >= 0 ? 1 : 0;  // a conditional's own condition is no argument
    return Source(frame.caller_frame, call.inputs[static_cast<size_t>(arg + first)]);
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

  // From a site through calls and identities to the site that computes the value.
  Result<Site> Follow(Site site) {
    for (int64_t hops = 0;; ++hops) {
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
      if (!IsPassThrough(node.op)) return site;
      if (site.output >= node.data_inputs() || (site.output > 0 && node.op != "IdentityN")) {
        return Fail(site, DataLoss("has no output ", site.output));
      }
      ONCILLA_ASSIGN(site, Source(site.frame, node.inputs[static_cast<size_t>(site.output)]));
    }
  }

  // The flat node of a site that Follow() returned; new ones wait in `pending_`.
  Result<TfRef> Flat(const Site& site) {
    const auto feed = feeds_.find(site);
    if (feed != feeds_.end()) {
      int& id = out_.inputs[static_cast<size_t>(feed->second)];
      if (id < 0) {
        ONCILLA_ASSIGN(id, AddFlat(TfFlatNode::Kind::kInput, site));
        out_.nodes[static_cast<size_t>(id)].feed = feed->second;
      }
      return TfRef{id, 0};
    }
    int& id = frames_[site.frame]->flat[static_cast<size_t>(site.node)];
    if (id < 0) {
      const TfNode& node = NodeAt(site);
      if (IsVariable(node.op)) {
        Result<Tensor> value = request_.variable(node);
        if (!value.ok()) return Fail(site, value.status());
        ONCILLA_ASSIGN(id, AddFlat(TfFlatNode::Kind::kVariable, site));
        out_.nodes.back().value = *std::move(value);
      } else {
        ONCILLA_ASSIGN(id, AddFlat(TfFlatNode::Kind::kOp, site));
        pending_.push_back(site);
      }
    }
    return TfRef{id, site.output};
  }

  Result<int> AddFlat(TfFlatNode::Kind kind, const Site& site) {
    if (out_.nodes.size() >= kMaxNodes) {
      return Exhausted("inlined calls make more than ", kMaxNodes, " nodes");
    }
    TfFlatNode node;
    node.kind = kind;
    node.source = &NodeAt(site);
    node.name = frames_[site.frame]->prefix + std::string(node.source->name);
    out_.nodes.push_back(std::move(node));
    return static_cast<int>(out_.nodes.size()) - 1;
  }

  // Gives every flat node its inputs, adding what they need.
  Status Expand() {
    while (!pending_.empty()) {
      const Site site = pending_.back();
      pending_.pop_back();
      const int id = frames_[site.frame]->flat[static_cast<size_t>(site.node)];
      std::vector<TfRef> inputs;
      Guards guards;
      for (const TfInput& input : NodeAt(site).inputs) {
        if (input.control) break;
        ONCILLA_ASSIGN(const Site named, Source(site.frame, input));
        ONCILLA_ASSIGN(Site source, Follow(named));
        if (NodeAt(site).op == "Assert") {
          ONCILLA_ASSIGN(source, BehindSwitches(source, guards));
        }
        ONCILLA_ASSIGN(const TfRef ref, Flat(source));
        inputs.push_back(ref);
      }
      if (NodeAt(site).op == "Assert") {
        ONCILLA_TRY(BranchesAround(site, guards));
        for (const auto& [ref, when] : guards) {
          inputs.push_back(ref);
          out_.nodes[static_cast<size_t>(id)].guards.push_back(when ? 1 : 0);
        }
      }
      out_.nodes[static_cast<size_t>(id)].inputs = std::move(inputs);
    }
    return {};
  }

  using Guards = std::vector<std::pair<TfRef, bool>>;

  // TensorFlow 1 passes what an assertion reads through Switch nodes: it runs when the branch is
  // taken that it reads from. Gives the site before them.
  Result<Site> BehindSwitches(Site site, Guards& guards) {
    while (feeds_.count(site) == 0 &&
           (NodeAt(site).op == "Switch" || NodeAt(site).op == "RefSwitch")) {
      const TfNode& node = NodeAt(site);
      if (node.data_inputs() != 2) return Fail(site, DataLoss("has no two inputs"));
      ONCILLA_TRY(AddGuard(site.frame, node.inputs[1], site.output == 1, guards));
      ONCILLA_ASSIGN(const Site named, Source(site.frame, node.inputs[0]));
      ONCILLA_ASSIGN(site, Follow(named));
    }
    return site;
  }

  // The conditionals in whose branches a site lies.
  Status BranchesAround(const Site& site, Guards& guards) {
    for (int f = site.frame; f >= 0; f = frames_[f]->caller_frame) {
      const Frame& frame = *frames_[f];
      if (frame.branch < 0) continue;
      const TfNode& node =
          frames_[frame.caller_frame]->body->nodes[static_cast<size_t>(frame.caller_node)];
      ONCILLA_TRY(AddGuard(frame.caller_frame, node.inputs[0], frame.branch == 1, guards));
    }
    return {};
  }

  Status AddGuard(int frame, const TfInput& condition, bool when, Guards& guards) {
    ONCILLA_ASSIGN(const Site named, Source(frame, condition));
    ONCILLA_ASSIGN(const Site source, Follow(named));
    ONCILLA_ASSIGN(const TfRef ref, Flat(source));
    for (const auto& [known, value] : guards) {
      if (known.node == ref.node && known.output == ref.output && value == when) return {};
    }
    guards.emplace_back(ref, when);
    return {};
  }

  // Walks over everything that TensorFlow would run for the fetches, control edges and the side
  // effects of calls included. Refuses writes; checks are kept in `checks_`.
  Status FindEffects(const std::vector<Site>& fetches) {
    std::vector<Site> stack = fetches;
    const auto visit = [&](Site site) {
      char& seen = frames_[site.frame]->seen[static_cast<size_t>(site.node)];
      if (seen == 0) stack.push_back(site);
      seen = 1;
    };
    while (!stack.empty()) {
      const Site site = stack.back();
      stack.pop_back();
      const TfNode& node = NodeAt(site);
      if (feeds_.count({site.frame, site.node, 0}) != 0) continue;
      if (IsWrite(node.op)) return Write(site);
      const bool guarded = InBranch(site.frame);
      if (node.op == "Assert" || (IsCheck(node.op) && !guarded)) {
        checks_.push_back({site.frame, site.node, 0});
      }
      for (const TfInput& input : node.inputs) {
        if (input.control && frames_[site.frame]->body->Find(input.node) < 0 &&
            frames_[site.frame]->function != nullptr &&
            frames_[site.frame]->function->FindArg(input.node) >= 0) {
          continue;  // waits for an argument, which is there before the call begins
        }
        ONCILLA_ASSIGN(const Site source, Source(site.frame, input));
        visit(source);
      }
      std::vector<int> children;
      if (IsCall(node)) {
        ONCILLA_ASSIGN(const int child, Child(site.frame, site.node));
        children.push_back(child);
      } else if (node.op == "If" || node.op == "StatelessIf") {
        for (const int branch : {0, 1}) {
          ONCILLA_ASSIGN(const int child, Branch(site, branch));
          children.push_back(child);
        }
      }
      for (const int child : children) {
        const TfFunction& function = *frames_[child]->function;
        for (const TfInput& input : function.returns) {
          ONCILLA_ASSIGN(const Site source, Source(child, input));
          visit(source);
        }
        for (Bytes name : function.control_returns) {
          const int effect = function.body.Find(name);
          if (effect < 0) {
            return Fail(site,
                        DataLoss("the function '", function.name, "' has no node '", name, "'"));
          }
          visit({child, effect, 0});
        }
      }
    }
    return {};
  }

  bool InBranch(int frame) const {
    for (; frame >= 0; frame = frames_[frame]->caller_frame) {
      if (frames_[frame]->branch >= 0) return true;
    }
    return false;
  }

  Status Write(const Site& site) {
    const TfNode& node = NodeAt(site);
    std::string what = "a resource";
    if (node.data_inputs() > 0) {
      ONCILLA_ASSIGN(const Site named, Source(site.frame, node.inputs[0]));
      auto target = Follow(named);
      if (target.ok()) {
        what = StrCat("'", frames_[target->frame]->prefix, NodeAt(*target).name, "' (",
                      NodeAt(*target).op, ")");
      }
    }
    return Fail(site, Unsupported("a run would write the variable ", what,
                                  "; models that change their variables are not supported"));
  }

  // Sorts the nodes so that each comes after what it reads (depth first, without recursion).
  void Order() {
    const size_t count = out_.nodes.size();
    std::vector<int> place(count, -1), order;
    std::vector<char> state(count, 0);  // 1: on the stack, 2: placed
    std::vector<std::pair<int, size_t>> stack;
    for (size_t root = 0; root < count; ++root) {
      if (state[root] == 0) stack.emplace_back(static_cast<int>(root), 0);
      while (!stack.empty()) {
        auto& [id, next] = stack.back();
        const TfFlatNode& node = out_.nodes[static_cast<size_t>(id)];
        state[static_cast<size_t>(id)] = 1;
        if (next < node.inputs.size()) {
          const int input = node.inputs[next++].node;
          const char there = state[static_cast<size_t>(input)];
          if (there == 0) stack.emplace_back(input, 0);
          if (there == 1 && out_.cycle.empty()) out_.cycle = node.name;
          continue;
        }
        state[static_cast<size_t>(id)] = 2;
        place[static_cast<size_t>(id)] = static_cast<int>(order.size());
        order.push_back(id);
        stack.pop_back();
      }
    }
    std::vector<TfFlatNode> sorted;
    sorted.reserve(count);
    for (int id : order) {
      TfFlatNode node = std::move(out_.nodes[static_cast<size_t>(id)]);
      for (TfRef& ref : node.inputs) ref.node = place[static_cast<size_t>(ref.node)];
      sorted.push_back(std::move(node));
    }
    out_.nodes = std::move(sorted);
    for (TfRef& ref : out_.outputs) ref.node = place[static_cast<size_t>(ref.node)];
    for (int& id : out_.inputs) {
      if (id >= 0) id = place[static_cast<size_t>(id)];
    }
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
  std::map<Site, int> feeds_;
  std::vector<Site> pending_;
  std::vector<Site> checks_;
  int64_t hops_ = 0;
  TfFlatGraph out_;
};

}  // namespace

Result<TfFlatGraph> FlattenTfGraph(TfGraph& graph, const TfFlattenRequest& request) {
  return Flattener(graph, request).Run();
}

}  // namespace oncilla
