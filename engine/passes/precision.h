// Mixed precision: numbers are stored in 16 bits where that does little harm, and computed with in
// 32. What a user asks for, and what came of it. docs/precision.md has the words for users.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/options.h"
#include "engine/device/device.h"
#include "engine/graph/patch.h"
#include "engine/graph/source_nodes.h"

namespace oncilla {

inline constexpr std::pair<DType, std::string_view> kPrecisionNames[] = {
    {DType::kF32, "fp32"},
    {DType::kF16, "fp16"},
    {DType::kBF16, "bf16"},
};

// Entries of the lists name nodes in the source model ('*' stands for any text, '?' for one
// character), or types of op: "op:Conv2D" in the words of the model's format, "op:Conv" in ours.
struct PrecisionOptions {
  DType storage = DType::kF32;          // kF16 or kBF16: of weights and of intermediate values
  std::vector<std::string> allow = {};  // store these narrow although their op is left alone
  std::vector<std::string> deny = {};   // leave these alone; wins over `allow`

  bool narrow() const { return storage != DType::kF32; }

  static void Fields(auto& self, auto&& field) {
    field({.name = "storage",
           .doc = "How weights and intermediate values are stored: fp32, fp16 or bf16; sums are in "
                  "fp32 in any case. 16 bits halve the memory",
           .flag = "--precision"},
          self.storage, kPrecisionNames);
    field({.name = "allow", .doc = "Nodes or op:TYPE stored in 16 bits although their op is not"},
          self.allow);
    field({.name = "deny", .doc = "Nodes or op:TYPE that keep fp32; wins over allow"}, self.deny);
  }
  friend bool operator==(const PrecisionOptions&, const PrecisionOptions&) = default;
};

// "fp32", "fp16", "bf16".
std::string_view PrecisionName(DType storage);
Result<DType> PrecisionFromName(std::string_view name);

struct PrecisionReport {
  struct Kept {
    std::string node, op, why;
  };
  DType storage = DType::kF32;
  int64_t narrow_nodes = 0;
  std::vector<Kept> kept;  // nodes that compute f32 and store it so, in the graph's order
  int64_t narrow_constants = 0;
  std::vector<std::string> unmatched;  // "deny 'conv*'": entries that name nothing in the module
};

// The reasons, most frequent first: "12 nodes: Exp keeps f32, ...".
std::vector<std::pair<std::string, int>> Reasons(const PrecisionReport& report);

// What is asked for, with what is needed to read it.
struct StorageRequest {
  PrecisionOptions options = {};
  std::shared_ptr<const SourceNodes> sources = nullptr;  // null: nothing is known
};

// An entry of one of the lists fits the node.
bool NamesNode(std::string_view entry, const Node& node, const SourceNodes* sources);

// Runs once, after placement and the fusions into kernels. Values between two nodes that take the
// narrow dtype get it; around all others stand Casts. Inputs and outputs keep their dtypes. Every
// device is asked whether it takes a node so.
Status NarrowStorage(const Graph& graph, std::span<Device* const> devices,
                     const StorageRequest& request, Patch& patch, PrecisionReport& report);

// What an op does to numbers, as far as storing them in 16 bits goes.
enum class StorageRule {
  kCarries,  // narrow if its data is: results are as large and as exact as what comes in
  kStarts,   // narrow also where only its weights are: most of the memory is theirs
  kKeeps,    // f32 unless a user allows it
};
struct StorageRuling {
  StorageRule rule = StorageRule::kKeeps;
  std::string_view why = {};  // of kKeeps
};
StorageRuling StorageRulingOf(std::string_view op);

}  // namespace oncilla
