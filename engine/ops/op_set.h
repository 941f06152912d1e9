// OpSet: the operations a Module may use. An object, not a global: a Runtime owns one, made of the
// built-in families and the rows registered with it. Immutable once shared; safe from any thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/ops/op_def.h"

namespace oncilla {

// The tables of the families (engine/ops/families.inc), each defined at the end of its family's
// file.
#define FAMILY_own(word) std::span<const OpDef> word##Ops();
#define FAMILY_none(word)
#define FAMILY(word, ops, cpu, opencl) FAMILY_##ops(word)
#include "engine/ops/families.inc"
#undef FAMILY_own
#undef FAMILY_none

class OpSet {
 public:
  // The built-in families, listed in families.inc.
  static std::shared_ptr<const OpSet> Builtin();

  // Null if there is no such op.
  const OpDef* Find(std::string_view name) const;
  std::span<const OpDef* const> ops() const { return ops_; }

  // Rows must outlive the set. AlreadyExists for a name that is taken.
  Status Add(std::span<const OpDef> family);

 private:
  std::vector<const OpDef*> ops_;
  std::map<std::string_view, const OpDef*> by_name_;
};

}  // namespace oncilla
