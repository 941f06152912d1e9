// Mixed precision: values are stored in 16 bits where that does little harm, and computed in 32.
// Options, and the report on what was stored how. docs/precision.md describes it for users.
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
#include "engine/graph/names_node.h"
#include "engine/graph/source_nodes.h"

namespace oncilla {

inline constexpr std::pair<DType, std::string_view> kPrecisionNames[] = {
    {DType::kF32, "fp32"},
    {DType::kF16, "fp16"},
    {DType::kBF16, "bf16"},
};

// Entries of the lists name nodes in the source model ('*' stands for any text, '?' for one
// character), or op types: "op:Conv2D" by the name in the model's format, "op:Conv" by the
// canonical one.
struct PrecisionOptions {
  DType storage = DType::kF32;          // kF16 or kBF16: of weights and of intermediate values
  std::vector<std::string> allow = {};  // store these in 16 bits although their op keeps fp32
  std::vector<std::string> deny = {};   // keep these in fp32; wins over `allow`

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
  std::vector<Kept> kept;  // nodes whose f32 results stay f32, in the order of the graph
  int64_t narrow_constants = 0;
  std::vector<std::string> unmatched;  // "deny 'conv*'": entries that name nothing in the module
};

// The reasons, most frequent first: "12 nodes: Exp keeps f32, ...".
std::vector<std::pair<std::string, int>> Reasons(const PrecisionReport& report);

// The options, with what is needed to match their lists.
struct StorageRequest {
  PrecisionOptions options = {};
  std::shared_ptr<const SourceNodes> sources = nullptr;  // null: unknown
};

// Why an op keeps f32; empty when it may store 16 bits.
std::string_view WhyNotNarrow(StorageRule storage);

}  // namespace oncilla
