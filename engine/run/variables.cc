// Variables, by name.
#include "engine/run/variables.h"

#include "engine/tensor/tensor_list.h"

namespace oncilla {

Result<Tensor> VariableStore::Read(std::string_view name) const {
  MutexLock lock(&mutex_);
  auto it = values_.find(name);
  if (it != values_.end()) return it->second;
  return Error(Code::kFailedPrecondition, "the variable '", name,
               "' has no value: nothing has initialised it");
}

Status VariableStore::Put(std::string_view name, Tensor value) {
  const auto known = values_.find(name);
  const int64_t before = known == values_.end() ? 0 : HeldBytesOf(known->second);
  const int64_t bytes = bytes_ + HeldBytesOf(value) - before;
  if (Status s = held_.Set(bytes); !s.ok()) return In(s, StrCat("variable '", name, "'"));
  bytes_ = bytes;
  values_.insert_or_assign(std::string(name), std::move(value));
  return Status();
}

Status VariableStore::Assign(std::string_view name, Tensor value) {
  MutexLock lock(&mutex_);
  return Put(name, std::move(value));
}

Status VariableStore::Initialise(std::string_view name, Tensor value) {
  MutexLock lock(&mutex_);
  return values_.find(name) == values_.end() ? Put(name, std::move(value)) : Status();
}

void VariableStore::CountOn(HeldMemory held) {
  MutexLock lock(&mutex_);
  held_ = std::move(held);
}

std::vector<std::pair<std::string, Tensor>> VariableStore::Values() const {
  MutexLock lock(&mutex_);
  return {values_.begin(), values_.end()};
}

bool VariableStore::Has(std::string_view name) const {
  MutexLock lock(&mutex_);
  return values_.find(name) != values_.end();
}

std::vector<std::string> VariableStore::Names() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) names.push_back(name);
  return names;
}

int64_t VariableStore::bytes() const {
  MutexLock lock(&mutex_);
  return bytes_;
}

void VariableStore::Clear() {
  std::map<std::string, Tensor, std::less<>> dropped;  // freed after the lock is released
  MutexLock lock(&mutex_);
  dropped.swap(values_);
  bytes_ = 0;
  (void)held_.Set(0);
}

}  // namespace oncilla
