// Variables by name.
#include "engine/compile/variables.h"

namespace oncilla {

Result<Tensor> VariableStore::Read(std::string_view name) const {
  MutexLock lock(&mutex_);
  auto it = values_.find(name);
  if (it != values_.end()) return it->second;
  return Error(Code::kFailedPrecondition, "the variable '", name,
               "' has no value: nothing has initialised it");
}

void VariableStore::Assign(std::string_view name, Tensor value) {
  MutexLock lock(&mutex_);
  values_.insert_or_assign(std::string(name), std::move(value));
}

void VariableStore::Initialise(std::string_view name, Tensor value) {
  MutexLock lock(&mutex_);
  values_.emplace(std::string(name), std::move(value));
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
  int64_t bytes = 0;
  for (const auto& [name, value] : values_) {
    if (!value.is_list()) bytes = SaturatingAdd(bytes, value.desc().bytes());
  }
  return bytes;
}

void VariableStore::Clear() {
  std::map<std::string, Tensor, std::less<>> dropped;  // its memory goes back after the lock
  MutexLock lock(&mutex_);
  dropped.swap(values_);
}

Result<VariableStore::Turn> VariableStore::TakeTurn(const RunControl& control) {
  MutexLock lock(&mutex_);
  auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !writing_; };
  if (!AwaitReady(mutex_, control, free)) {
    return In(MayGoOn(control), "while another run was writing the model's variables");
  }
  writing_ = true;
  return Turn(this);
}

VariableStore::Turn::~Turn() {
  if (store_ == nullptr) return;
  MutexLock lock(&store_->mutex_);
  store_->writing_ = false;
}

}  // namespace oncilla
