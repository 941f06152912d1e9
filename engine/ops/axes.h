// The axes along which one node works, by the rule in its op's row (op_traits.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ops/op_def.h"

namespace oncilla {

// The axes of input 0 along which the node works, slices, repeats or reverses, each in [0, rank),
// in the node's own order. Nothing when the rank of input 0 or the input that names the axes is
// unknown, and for rules that name no axis of input 0 (kNone, kElementwise, kInserts, kPermutes,
// kProduct, ..). For kPerAxis, kPads and kStretches the list is empty: the rule's input has numbers
// for all axes.
std::optional<std::vector<int64_t>> NamedAxes(const NodeView& node);

// The integers in input i, if all are known.
std::optional<std::vector<int64_t>> KnownList(const NodeView& node, size_t i);

// An attribute of this type, `otherwise` when it is absent or of another type.
template <class T>
T AttrOr(const AttrMap& attrs, std::string_view name, T otherwise) {
  const auto found = attrs.find(name);
  if (found == attrs.end()) return otherwise;
  const T* value = std::get_if<T>(&found->second);
  return value == nullptr ? otherwise : *value;
}

}  // namespace oncilla
