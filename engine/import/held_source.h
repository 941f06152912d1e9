// HeldSource: a model's source whose files can be released while its signatures stay available.
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/import/model_source.h"

namespace oncilla {

class HeldSource : public ModelSource {
 public:
  explicit HeldSource(std::unique_ptr<ModelSource> source)
      : format_(source->format()),
        signatures_(source->signatures().begin(), source->signatures().end()),
        file_bytes_(source->file_bytes()),
        has_tf_contents_(source->has_tf_contents()),
        has_sums_(source->has_sums()),
        source_(std::move(source)) {}

  std::string_view format() const override { return format_; }
  std::span<const Signature> signatures() const override { return signatures_; }
  int64_t file_bytes() const override { return file_bytes_; }
  bool has_tf_contents() const override { return has_tf_contents_; }
  bool has_sums() const override { return has_sums_; }

  Result<const Signature*> FindSignature(std::string_view key) const override {
    auto found = ModelSource::FindSignature(key);
    if (found.ok()) return found;
    const auto source = Held();
    if (source == nullptr) return found;
    ONCILLA_ASSIGN(const Signature* theirs, source->FindSignature(key));
    MutexLock lock(&mutex_);
    return &functions_.try_emplace(std::string(key), *theirs).first->second;
  }

  Result<Module> Import(const ImportRequest& request,
                        const std::shared_ptr<const OpSet>& ops) override {
    const auto source = Held();
    return source == nullptr ? Result<Module>(Gone()) : source->Import(request, ops);
  }
  Result<Module> ImportInitialiser(const std::vector<std::string>& resources,
                                   const std::shared_ptr<const OpSet>& ops) override {
    const auto source = Held();
    return source == nullptr ? Result<Module>(Gone()) : source->ImportInitialiser(resources, ops);
  }
  Result<std::vector<NodeJudgement>> JudgeNodes(
      const std::shared_ptr<const OpSet>& ops) const override {
    const auto source = Held();
    return source == nullptr ? Result<std::vector<NodeJudgement>>(Gone()) : source->JudgeNodes(ops);
  }
  Result<std::vector<TensorInfo>> Variables() const override {
    const auto source = Held();
    return source == nullptr ? Result<std::vector<TensorInfo>>(Gone()) : source->Variables();
  }
  Result<Tensor> VariableValue(std::string_view name) override {
    const auto source = Held();
    return source == nullptr ? Result<Tensor>(Gone()) : source->VariableValue(name);
  }
  void NoteState(const std::vector<std::string>& resources) override {
    if (const auto source = Held()) source->NoteState(resources);
  }
  Status CheckFeed(std::string_view name, const Fact& wanted, const Tensor& tensor) const override {
    const auto source = Held();
    return source == nullptr ? Status() : source->CheckFeed(name, wanted, tensor);
  }
  Status NotFed(std::string_view name, const Fact& wanted) const override {
    const auto source = Held();
    return source == nullptr ? ModelSource::NotFed(name, wanted) : source->NotFed(name, wanted);
  }
  SourceNodes source_nodes() const override {
    const auto source = Held();
    return source == nullptr ? SourceNodes() : source->source_nodes();
  }

  Files files() const override {
    const auto source = Held();
    return source == nullptr ? Files() : source->files();
  }

  // Releases the source: its files are unmapped once no tensor of them is left, and imports fail.
  void LetGo() {
    std::shared_ptr<ModelSource> source;  // destroyed after the lock is released
    MutexLock lock(&mutex_);
    source.swap(source_);
  }

 private:
  static Status Gone() { return Error(Code::kFailedPrecondition, "the model is unloaded"); }
  std::shared_ptr<ModelSource> Held() const {
    MutexLock lock(&mutex_);
    return source_;
  }

  const std::string format_;
  const std::vector<Signature> signatures_;
  const int64_t file_bytes_;
  const bool has_tf_contents_, has_sums_;
  mutable Mutex mutex_;
  std::shared_ptr<ModelSource> source_ ABSL_GUARDED_BY(mutex_);
  // Signatures of functions that are not in signatures() but were found by name.
  mutable std::map<std::string, Signature, std::less<>> functions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace oncilla
