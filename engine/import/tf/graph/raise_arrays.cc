// TensorFlow 1.0's arrays. TensorArray and TensorArrayV2 return only a handle; the number "flow",
// which orders their writes, begins as an arbitrary constant. In this importer the flow is the list
// of elements itself (../ops/list.cc). The value that begins a flow is therefore replaced by a
// second output of the node that makes the array, as later versions have.
#include "engine/import/tf/graph/raise_parts.h"

namespace oncilla::tf_raise {
namespace {

bool IsMaker(const TfFlatNode& node) {
  return IsOp(node, "TensorArray") || IsOp(node, "TensorArrayV2");
}

// An op on such an array; its last input is the flow.
bool UsesOldArray(const TfFlatNode& node) {
  if (node.kind != TfFlatNode::Kind::kOp || IsMaker(node)) return false;
  const std::string_view op = node.op();
  return op.substr(0, 11) == "TensorArray" && op.substr(op.size() - 2) != "V3" &&
         op.find("Grad") == op.npos && op.find("Close") == op.npos && node.inputs.size() >= 2;
}

bool GivesFlow(const TfFlatNode& node) {
  constexpr std::string_view kOps[] = {
      "TensorArrayWrite",     "TensorArrayScatter", "TensorArraySplit",  "TensorArrayUnpack",
      "TensorArrayScatterV2", "TensorArraySplitV2", "TensorArrayWriteV2"};
  return std::find(std::begin(kOps), std::end(kOps), node.op()) != std::end(kOps);
}

bool HandsOn(const TfFlatNode& node) {
  for (std::string_view op : {"Enter", "Exit", "Switch", "Merge", "NextIteration", "Identity"}) {
    if (IsOp(node, op)) return true;
  }
  return false;
}

class ArrayRouter {
 public:
  explicit ArrayRouter(TfFlatGraph& graph) : graph_(graph) {}

  Status Run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!UsesOldArray(graph_.nodes[n])) continue;
      const int array = FindArray(graph_.nodes[n].inputs[0]);
      // Inside the function of a loop or branch, the flow comes from outside.
      if (array < 0) continue;
      ONCILLA_TRY(Route(static_cast<int>(n), array));
    }
    return {};
  }

 private:
  TfFlatNode& At(int n) { return graph_.nodes[static_cast<size_t>(n)]; }

  // The node that made the array of a handle, or -1.
  int FindArray(TfRef ref) {
    for (int hops = 0; ref.node >= 0 && hops < kMaxHops; ++hops) {
      const TfFlatNode& node = At(ref.node);
      if (node.kind != TfFlatNode::Kind::kOp) return -1;
      if (IsMaker(node)) return ref.node;
      if (!HandsOn(node) || node.inputs.empty()) return -1;
      ref = node.inputs[0];
    }
    return -1;
  }

  // Follows the flow of an op backwards, and replaces the values that begin it by the second output
  // of `array`.
  Status Route(int user, int array) {
    std::vector<std::pair<int, size_t>> edges;
    // A Merge passes on the flow of every input, a Switch that of its data, other ops their last
    // input.
    const auto follow = [&](int n) {
      const size_t inputs = At(n).inputs.size();
      if (IsOp(At(n), "Merge")) {
        for (size_t i = 0; i < inputs; ++i) edges.emplace_back(n, i);
      } else if (IsOp(At(n), "Switch")) {
        edges.emplace_back(n, 0);
      } else if (inputs > 0) {
        edges.emplace_back(n, inputs - 1);
      }
    };
    follow(user);
    while (!edges.empty()) {
      const std::pair<int, size_t> edge = edges.back();
      edges.pop_back();
      const auto [seen, first] = arrays_.emplace(edge, array);
      if (!first) {
        if (seen->second == array) continue;
        return Refuse(At(user), "its flow is that of two arrays");
      }
      TfRef& ref = At(edge.first).inputs[edge.second];
      if (ref.node < 0) continue;
      const TfFlatNode& from = At(ref.node);
      if (from.kind == TfFlatNode::Kind::kOp && (HandsOn(from) || GivesFlow(from))) {
        follow(ref.node);
      } else {
        ref = {array, 1};
      }
    }
    return {};
  }

  static constexpr int kMaxHops = 1 << 16;
  TfFlatGraph& graph_;
  std::map<std::pair<int, size_t>, int> arrays_;  // edges already followed, with their array
};

}  // namespace

Status RouteOldArrays(TfFlatGraph& graph) { return ArrayRouter(graph).Run(); }

}  // namespace oncilla::tf_raise
