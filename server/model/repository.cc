// Loading, replacing and retiring versions.
#include "server/model/repository.h"

#include <algorithm>
#include <filesystem>
#include <future>

#include "server/core/text.h"
#include "server/model/layout.h"

namespace oncilla::server {

Repository::Repository(RepositoryOptions options, Runtime runtime, RepositoryEvent event)
    : options_(std::move(options)), runtime_(std::move(runtime)), event_(std::move(event)) {}

Repository::~Repository() { Close(Clock::now()); }

absl::Status Repository::Start() {
  const auto names = ModelsOf(options_.folder);
  if (!names.ok()) return names.status();
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : *names) models_[name].unloaded = !options_.load_at_start;
  }
  for (const std::string& name : *names) {
    if (options_.load_at_start) Enqueue([this, name] { (void)Refresh(name); });
  }
  Enqueue([this] {
    const std::lock_guard lock(mutex_);
    started_ = true;
  });
  loader_ = std::thread([this] { Work(); });
  retirer_ = std::thread([this] { RetireWork(); });
  return absl::OkStatus();
}

bool Repository::started() const {
  const std::lock_guard lock(mutex_);
  return started_ && !stopping_;
}

void Repository::Enqueue(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void Repository::Work() {
  auto next_poll = After(options_.poll);
  std::unique_lock lock(mutex_);
  while (true) {
    const auto due = [&] { return stopping_ || !tasks_.empty(); };
    if (next_poll == kNever)
      changed_.wait(lock, due);
    else
      changed_.wait_until(lock, next_poll, due);
    if (stopping_ && tasks_.empty()) break;  // those that wait for an answer get one
    Task task;
    if (!tasks_.empty()) {
      task = std::move(tasks_.front());
      tasks_.pop_front();
    } else {
      task = [this] { Poll(); };
      next_poll = After(options_.poll);
    }
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
  loading_ended_ = true;
  changed_.notify_all();
}

void Repository::RetireWork() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock,
                  [&] { return !retired_.empty() || (stopping_ && close_by_ && loading_ended_); });
    if (retired_.empty()) return;
    std::shared_ptr<ServedModel> model = std::move(retired_.front());
    retired_.pop_front();
    const auto until = std::min(After(options_.drain), close_by_.value_or(kNever));
    lock.unlock();
    model->Close(until);
    const std::string name = model->metadata().name, version = model->version();
    model.reset();
    event_("unloaded", name, version, "");
    lock.lock();
    const auto entry = models_.find(name);
    if (entry == models_.end()) continue;
    const auto found = entry->second.versions.find(*ParseNumber(version));
    if (found == entry->second.versions.end() || found->second.state != State::kUnloading) continue;
    found->second = {State::kUnavailable, "unloaded", "", nullptr};
  }
}

// With the mutex held.
void Repository::Retire(std::shared_ptr<ServedModel> model) {
  if (model == nullptr) return;
  retired_.push_back(std::move(model));
  changed_.notify_all();
}

absl::Status Repository::SetProblem(const std::string& name, absl::Status status) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = models_[name];
    const std::string problem = ForClients(Message(status));
    news = entry.problem != problem;
    entry.problem = problem;
  }
  if (news) event_("failed", name, "", std::string(Message(status)));
  return status;
}

void Repository::Poll() {
  const auto names = ModelsOf(options_.folder);
  if (!names.ok())
    return;  // a repository that is away for a moment is no reason to unload all models
  std::vector<std::string> known;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, entry] : models_) {
      if (!entry.unloaded) known.push_back(name);
    }
    for (const std::string& name : *names) {
      if (models_.count(name) == 0) known.push_back(name);
    }
  }
  for (const std::string& name : known) {
    if (std::find(names->begin(), names->end(), name) != names->end()) {
      (void)Refresh(name);
      continue;
    }
    (void)Unload(name);
    const std::lock_guard lock(mutex_);
    models_[name].unloaded = false;  // it may come back
    models_[name].problem = "it is no longer in the repository";
  }
}

absl::Status Repository::Refresh(const std::string& name) {
  const std::string folder = StrCat(options_.folder, "/", name);
  if (std::error_code error; !std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(StrCat("there is no model '", name, "'"));
  }
  const auto text = ConfigText(folder);
  if (!text.ok()) return SetProblem(name, text.status());
  const auto config = ParseConfig(*text);
  if (!config.ok()) return SetProblem(name, config.status());
  return RefreshVersions(name, *config, *text);
}

absl::Status Repository::RefreshVersions(const std::string& name, const ModelConfig& config,
                                         const std::string& config_text) {
  const std::string folder = StrCat(options_.folder, "/", name);
  const auto wanted = Wanted(VersionsOf(folder), config.version_policy);
  if (!wanted.ok()) return SetProblem(name, wanted.status());
  {
    const std::lock_guard lock(mutex_);
    models_[name].problem.clear();
  }
  absl::Status first_failure;
  for (auto version = wanted->rbegin(); version != wanted->rend();
       ++version) {  // the newest serves first
    const std::string files = StrCat(FilesOf(StrCat(folder, "/", *version)), "\n", config_text);
    if (!NeedsLoading(name, *version, files)) continue;
    const absl::Status status = LoadVersion(name, *version, config, files);
    if (!status.ok() && first_failure.ok()) first_failure = status;
  }
  RetireOthers(name, *wanted);
  return first_failure;
}

// Whether the version is not there in this form; it is then marked as loading.
bool Repository::NeedsLoading(const std::string& name, int64_t version, const std::string& files) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return false;
  Version& entry = models_[name].versions[version];
  if (entry.files == files) return false;
  entry.files = files;
  if (entry.served == nullptr) {
    entry.state = State::kLoading;
    entry.reason.clear();
  }
  return true;
}

absl::Status Repository::LoadVersion(const std::string& name, int64_t version,
                                     const ModelConfig& config, const std::string& files) {
  const std::string label = StrCat(version);
  const std::string folder = StrCat(options_.folder, "/", name, "/", label);
  const auto path = ModelPath(folder, config.file);
  absl::StatusOr<std::shared_ptr<ServedModel>> loaded =
      path.ok() ? ServedModel::Load(runtime_, {name, label, *path, options_.device, config})
                : absl::StatusOr<std::shared_ptr<ServedModel>>(path.status());
  {
    const std::lock_guard lock(mutex_);
    Version& entry = models_[name].versions[version];
    if (loaded.ok()) {
      Retire(std::move(entry.served));
      entry = {State::kReady, "", files, *loaded};
    } else {
      entry.reason = ForClients(Message(loaded.status()));
      if (entry.served == nullptr) entry.state = State::kUnavailable;
    }
  }
  event_(loaded.ok() ? "loaded" : "failed", name, label, std::string(Message(loaded.status())));
  return loaded.status();
}

// Versions that are no longer wanted go when all that are wanted serve, so that there is no gap.
void Repository::RetireOthers(const std::string& name, const std::vector<int64_t>& wanted) {
  const std::lock_guard lock(mutex_);
  auto& versions = models_[name].versions;
  const bool complete = std::all_of(wanted.begin(), wanted.end(), [&](int64_t version) {
    const auto found = versions.find(version);
    return found != versions.end() && found->second.served != nullptr;
  });
  if (!complete) return;
  for (auto& [number, version] : versions) {
    if (std::find(wanted.begin(), wanted.end(), number) != wanted.end()) continue;
    if (version.served != nullptr) {
      Retire(std::move(version.served));
      version = {State::kUnloading, "replaced", "", nullptr};
    } else if (version.state != State::kUnloading) {
      version = {State::kUnavailable, "not wanted by version_policy", "", nullptr};
    }
  }
}

absl::StatusOr<std::shared_ptr<ServedModel>> Repository::Find(const std::string& name,
                                                              const std::string& version) const {
  const std::lock_guard lock(mutex_);
  const auto entry = models_.find(name);
  if (entry == models_.end())
    return absl::NotFoundError(StrCat("there is no model '", name.substr(0, 128), "'"));
  const auto& versions = entry->second.versions;
  if (version.empty()) {
    for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
      if (it->second.served != nullptr) return it->second.served;
    }
    std::string reason = entry->second.problem;
    if (reason.empty() && !versions.empty()) reason = versions.rbegin()->second.reason;
    return absl::UnavailableError(
        StrCat("model '", name, "' is not ready", reason.empty() ? "" : ": ", reason));
  }
  const auto number = ParseNumber(version);
  const auto found = number ? versions.find(*number) : versions.end();
  if (found == versions.end()) {
    return absl::NotFoundError(
        StrCat("model '", name, "' has no version '", version.substr(0, 32), "'"));
  }
  if (found->second.served != nullptr) return found->second.served;
  return absl::UnavailableError(StrCat("version ", version, " of model '", name, "' is not ready",
                                       found->second.reason.empty() ? "" : ": ",
                                       found->second.reason));
}

std::vector<std::string> Repository::ReadyVersions(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> ready;
  const auto entry = models_.find(name);
  if (entry == models_.end()) return ready;
  for (const auto& [number, version] : entry->second.versions) {
    if (version.served != nullptr) ready.push_back(StrCat(number));
  }
  return ready;
}

std::vector<std::shared_ptr<ServedModel>> Repository::ReadyModels() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ServedModel>> ready;
  for (const auto& [name, entry] : models_) {
    for (const auto& [number, version] : entry.versions) {
      if (version.served != nullptr) ready.push_back(version.served);
    }
  }
  return ready;
}

std::vector<IndexEntry> Repository::Index(bool only_ready) const {
  static constexpr const char* kStates[] = {"LOADING", "READY", "UNLOADING", "UNAVAILABLE"};
  const std::lock_guard lock(mutex_);
  std::vector<IndexEntry> index;
  for (const auto& [name, entry] : models_) {
    if (!entry.problem.empty() || entry.versions.empty()) {
      const std::string state = entry.problem.empty() ? "UNKNOWN" : "UNAVAILABLE";
      if (!only_ready) index.push_back({name, "", state, entry.problem});
    }
    for (const auto& [number, version] : entry.versions) {
      if (only_ready && version.served == nullptr) continue;
      index.push_back(
          {name, StrCat(number), kStates[static_cast<int>(version.state)], version.reason});
    }
  }
  return index;
}

void Repository::Load(const std::string& name, std::function<void(absl::Status)> done) {
  if (!IsModelName(name)) return done(absl::NotFoundError("there is no model of that name"));
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return done(absl::UnavailableError("the server is ending"));
  }
  Enqueue([this, name, done = std::move(done)] {
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
      const auto entry = models_.find(name);
      if (entry != models_.end()) {
        entry->second.unloaded = false;
        // What failed is tried again on request, even if its files are as they were.
        for (auto& [number, version] : entry->second.versions) {
          if (version.served == nullptr) version.files.clear();
        }
      }
    }
    done(stopping ? absl::UnavailableError("the server is ending") : Refresh(name));
  });
}

absl::Status Repository::Unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto entry = models_.find(name);
  if (entry == models_.end())
    return absl::NotFoundError(StrCat("there is no model '", name.substr(0, 128), "'"));
  entry->second.unloaded = true;
  for (auto& [number, version] : entry->second.versions) {
    if (version.served == nullptr) continue;
    Retire(std::move(version.served));
    version = {State::kUnloading, "unloaded on request", "", nullptr};
  }
  return absl::OkStatus();
}

void Repository::Close(Clock::time_point deadline) {
  if (!loader_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    close_by_ = deadline;
  }
  changed_.notify_all();
  loader_.join();
  std::vector<std::shared_ptr<ServedModel>> all;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [name, entry] : models_) {
      for (auto& [number, version] : entry.versions) {
        if (version.served == nullptr) continue;
        all.push_back(std::move(version.served));
        version = {State::kUnavailable, "the server is ending", "", nullptr};
      }
    }
  }
  // At the same time, since the deadline is one for all of them.
  std::vector<std::future<void>> closing;
  for (const auto& model : all) {
    closing.push_back(
        std::async(std::launch::async, [model, deadline] { model->Close(deadline); }));
  }
  for (auto& each : closing) each.wait();
  retirer_.join();
}

}  // namespace oncilla::server
