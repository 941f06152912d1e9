// The op set: the rows of every family.
#include "engine/ops/op_set.h"

namespace oncilla {

std::shared_ptr<const OpSet> OpSet::Builtin() {
  auto set = std::make_shared<OpSet>();
  for (std::span<const OpDef> family : {
#define FAMILY_own(word) word##Ops(),
#define FAMILY_none(word)
#define FAMILY(word, ops, cpu, opencl) FAMILY_##ops(word)
#include "engine/ops/families.inc"
       }) {
    if (!set->Add(family).ok()) return nullptr;  // two rows have one name: no test would start
  }
  return set;
}

const OpDef* OpSet::Find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Status OpSet::Add(std::span<const OpDef> family) {
  for (const OpDef& op : family) {
    if (!by_name_.emplace(op.name, &op).second) {
      return Error(Code::kAlreadyExists, "there is already an op ", op.name);
    }
    ops_.push_back(&op);
  }
  return Status();
}

}  // namespace oncilla
