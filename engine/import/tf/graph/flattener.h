// The Flattener class, for the files that implement it: functions.cc (frames, and tracing a fetch
// to the flat nodes that it needs) and flatten_effects.cc (which nodes run, in which order, which
// of them have effects; names as users spell them).
//
// Flattening works on frames: one per call, with a body, a prefix for names and the call that it
// belongs to. A site is an output of a node in a frame. Follow() traces an input through arguments,
// calls and identities to the site that computes it; that site becomes a flat node, once.
//
// The function of a loop or branch is a frame too, but begins a region, a flat graph of its own:
// there tracing ends at the arguments, except for handles, which are traced to the variable
// outside. Nothing here recurses, so deep nesting in a hostile file gives a clear error and does
// not overflow the stack.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "engine/import/import_bounds.h"
#include "engine/import/tf/graph/functions.h"
#include "engine/import/tf/op_kinds.h"

namespace oncilla::tf_flat {

inline constexpr int kMaxCallDepth = 128;
inline constexpr size_t kMaxFrames = 1 << 16;
inline constexpr size_t kMaxNodes = 1 << 22;
inline constexpr int64_t kMaxHops = int64_t{1} << 27;  // in one flattening
inline constexpr int64_t kMaxHopsPerInput = int64_t{1} << 20;

struct Site {
  int frame = 0;
  int node = -1;
  int output = 0;
  friend bool operator<(const Site& a, const Site& b) {
    return std::tie(a.frame, a.node, a.output) < std::tie(b.frame, b.node, b.output);
  }
  friend bool operator==(const Site& a, const Site& b) {
    return std::tie(a.frame, a.node, a.output) == std::tie(b.frame, b.node, b.output);
  }
  struct Hash {
    size_t operator()(const Site& s) const {
      const auto number = static_cast<uint64_t>(s.frame) << 40 ^
                          static_cast<uint64_t>(static_cast<uint32_t>(s.node)) << 8 ^
                          static_cast<uint64_t>(s.output);
      return std::hash<uint64_t>()(number);
    }
  };
};

struct Frame {
  const TfBody* body = nullptr;
  const TfFunction* function = nullptr;  // null for the main graph
  int caller_frame = -1, caller_node = -1;
  int depth = 0;
  int region = 0;
  bool begins_region = false;  // the function of a loop or branch
  int shift = 0;               // then input i of the caller is argument i - shift
  std::string prefix;
  std::map<int, int> children;             // call node -> frame
  std::map<int, std::vector<int>> bodies;  // loop or branch -> frames
  std::vector<int> flat;                   // node -> flat node, or -1
  std::vector<char> seen;                  // by the traversal of everything that runs
};

// A flat graph that is being built.
struct Region {
  TfFlatGraph graph;
  int frame = 0;               // the frame that begins it
  std::vector<Site> effects;   // in order
  std::map<Site, int> shared;  // variables and arguments
};

class Flattener {
 public:
  Flattener(TfGraph& graph, const TfFlattenRequest& request) : graph_(graph), request_(request) {}

  Result<TfFlatGraph> Run();

 private:
  Status Fail(const Site& site, Status status) const;

  const TfNode& NodeAt(const Site& site) const {
    return frames_[site.frame]->body->nodes[static_cast<size_t>(site.node)];
  }

  Result<int> AddFrame(const TfBody* body, const TfFunction* function, int caller_frame,
                       int caller_node, std::string prefix);

  bool IsCall(const TfNode& node) const {
    return node.op == "PartitionedCall" || node.op == "StatefulPartitionedCall" ||
           graph_.HasFunction(node.op);
  }

  // The frame of a call, created on first request.
  Result<int> Child(int frame_id, int node_id);

  // A function called with so many arguments; recursion is refused. A function of numbers takes
  // none of the node's inputs, and no handles.
  static constexpr int kNumbersOnly = -1;
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
    if (arguments == kNumbersOnly) {
      for (const TfFunction::Arg& arg : (*function)->args) {
        if (arg.tf_type != kTfResourceType) continue;
        return Fail(call, DataLoss("the function '", name, "' takes a handle"));
      }
    } else if (static_cast<int>((*function)->args.size()) != arguments) {
      return Fail(call, DataLoss("gives ", arguments, " inputs to the function '", name,
                                 "', which takes ", (*function)->args.size()));
    }
    return *function;
  }

  // The frames of a loop's or branch's functions, created on first request; none for other nodes.
  Result<std::vector<int>> Bodies(int frame_id, int node_id);

  // An argument of a region's function, as a site.
  static Site ArgumentSite(int frame, int arg) { return {frame, -2 - arg, 0}; }
  static bool IsArgument(const Site& site) { return site.node < -1; }
  static int ArgumentOf(const Site& site) { return -2 - site.node; }

  // The site that an input names directly; an argument is resolved to the caller's input.
  Result<Site> Source(int frame_id, const TfInput& input);

  const TfNode& CallOf(const Frame& frame) const {
    return frames_[frame.caller_frame]->body->nodes[static_cast<size_t>(frame.caller_node)];
  }

  Result<Site> SourceInBody(int frame_id, const TfInput& input);

  // Traces a site through calls and identities to the site that computes the value. Ends at reads
  // of variables that change, and at the arguments of a region unless they are handles.
  Result<Site> Follow(Site site);
  // One step of Follow(); nothing at its end.
  Result<std::optional<Site>> Step(const Site& site);
  // The input that an output of an XlaCallModule is, unchanged, or -1.
  int HloArgument(const TfNode& node, int output);

  static bool PassesHandles(std::string_view op) {
    return op == "Switch" || op == "RefSwitch" || op == "Enter" || op == "RefEnter";
  }

  // The variable behind a site; also traces through old-style control flow.
  Result<Site> FollowHandle(Site site);

  // Whether a site is a variable or table whose value may change.
  bool IsState(const Site& site) const;

  std::string NameOf(const Site& site) const {
    return frames_[site.frame]->prefix + std::string(NodeAt(site).name);
  }

  // The device stored on a node, else on the call that contains it; mostly empty.
  Bytes StoredDevice(const Site& site) const;

  // The flat node in a region for a site that Follow() returned; new ones are queued in `pending_`.
  Result<TfRef> Flat(const Site& site, int region);

  Result<int> AddFlat(int region, TfFlatNode::Kind kind, const TfNode& source, std::string name);

  // Gives every flat node its inputs, adding the nodes that they need; for loops and branches also
  // the results of their functions.
  Status Expand();

  // The old-style pivots that a control edge waits for, through identities and no-ops. With
  // `through`, also through ops that compute.
  Status FindPivots(int frame, const TfInput& input, std::vector<TfRef>& pivots,
                    bool through = false);

  // The pivot of a constant whose only connection to its branch is a control edge: of the constant,
  // or of an identity between it and the Merge.
  Result<TfRef> FindPivotBehind(Site site);

  // Visits everything that TensorFlow would run for the targets, including control edges and the
  // side effects of calls, each after what it depends on.
  Status Walk(const std::vector<Site>& targets);

  // What must run before a node completes: its inputs, then the contents of its functions.
  Result<std::vector<Site>> RunsBefore(const Site& site);

  // Finds the nodes with effects among all that run, in order; and which variables are written.
  Status FindEffects();

  // Reading or writing a variable that changes is an effect; `wanted` is whether the request
  // includes it.
  // Whether an assignment gives a variable the value that it has.
  Result<bool> AssignsItself(const Site& site, const Site& variable);
  Status LookAtState(const Site& site, const TfInput& input, bool& effect, bool& wanted);

  // Resolves a name as users spell it: "node:0", or "call/inner/node" for the bodies of calls. If a
  // function only wraps another call, that call's name may be omitted, as in TensorFlow's own
  // freezer.
  Result<Site> FindTensor(const std::string& text, std::string_view role);

  Result<TfInput> ParseName(const std::string& text);

  // The number of outputs of a node by its op's definition; 0 if unknown.
  int64_t OutputCount(const TfNode& node) const;

  Result<Site> FindInside(const TfInput& input);

  TfGraph& graph_;
  const TfFlattenRequest& request_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::deque<Region> regions_;  // 0 is the main graph
  std::map<Site, int> feeds_;
  std::vector<Site> visited_;  // all that runs, each after what it depends on
  std::set<Site> written_;
  std::set<Site> idle_writes_;  // those that assign a variable its own value
  std::unordered_map<const TfNode*, std::vector<int>> passed_;  // by HloArgument
  bool has_state_ = false;
  std::vector<Site> pending_;
  // The ends of traces that were made already, so that a chain of identities is traced once;
  // without state, or with it.
  std::unordered_map<Site, Site, Site::Hash> followed_[2];
  int64_t hops_ = 0;
  size_t nodes_ = 0;
  ImportBounds bounds_;
};

}  // namespace oncilla::tf_flat
