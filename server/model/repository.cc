// Loads, replaces and retires versions of models.
#include "server/model/repository.h"

#include <algorithm>
#include <filesystem>
#include <future>

#include "server/core/text.h"
#include "server/model/layout.h"
#include "server/model/protocol_config.h"

namespace oncilla::server {
namespace {

// How messages refer to the configuration of a load request.
constexpr const char* kRequestedConfig = "the parameter 'config', as a config.yaml";

}  // namespace

Repository::Repository(RepositoryOptions options, Runtime runtime, RepositoryEvent event)
    : options_(std::move(options)),
      runtime_(std::move(runtime)),
      event_(std::move(event)),
      files_held_(options_.load_files_bytes) {}

Repository::~Repository() { Close(Clock::now()); }

absl::Status Repository::Start() {
  const auto names = ModelsOf(options_.folder);
  if (!names.ok()) return names.status();
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : *names) models_[name].unloaded = !options_.load_at_start;
    left_of_start_ = 1 + (options_.load_at_start ? names->size() : 0);
    loading_ = static_cast<size_t>(options_.load_threads);
    next_poll_ = After(options_.poll);
  }
  for (const std::string& name : *names) {
    if (!options_.load_at_start) continue;
    Enqueue({name, [this, name] {
               (void)Refresh(name);
               EndOfStart();
             }});
  }
  EndOfStart();
  for (int i = 0; i < options_.load_threads; ++i) loaders_.emplace_back([this] { Work(); });
  retirer_ = std::thread([this] { RetireWork(); });
  return absl::OkStatus();
}

// Counts down the loads at the start; the call that begins them counts as one.
void Repository::EndOfStart() {
  const std::lock_guard lock(mutex_);
  if (--left_of_start_ == 0) started_ = true;
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

std::optional<Repository::Task> Repository::Take() {
  for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
    if (busy_.count(it->model) != 0) continue;
    Task task = std::move(*it);
    tasks_.erase(it);
    if (!task.model.empty()) busy_.insert(task.model);
    return task;
  }
  if (stopping_ || Clock::now() < next_poll_) return std::nullopt;
  next_poll_ = After(options_.poll);
  return Task{"", [this] { Poll(); }};
}

void Repository::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    std::optional<Task> task = Take();
    if (!task) {
      if (stopping_ && tasks_.empty()) break;  // requests that wait for an answer still get one
      if (next_poll_ == kNever || stopping_)
        changed_.wait(lock);
      else
        changed_.wait_until(lock, next_poll_);
      continue;
    }
    lock.unlock();
    task->work();
    task->work = nullptr;
    lock.lock();
    busy_.erase(task->model);
    changed_.notify_all();
  }
  --loading_;
  changed_.notify_all();
}

void Repository::RetireWork() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock,
                  [&] { return !retired_.empty() || (stopping_ && close_by_ && loading_ == 0); });
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
    found->second = {State::kUnavailable, "unloaded", "", nullptr, nullptr};
  }
}

// The mutex must be held.
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
  if (!names.ok()) return;  // a temporarily missing repository must not unload all models
  const std::set<std::string> there(names->begin(), names->end());
  {
    const std::lock_guard lock(mutex_);
    std::set<std::string> all = there;
    for (const auto& [name, entry] : models_) {
      if (!entry.unloaded && entry.files == nullptr)
        all.insert(name);
      else
        all.erase(name);
    }
    for (const std::string& name : all) {
      // A model that is still being polled already has a task.
      if (!polled_.insert(name).second) continue;
      tasks_.push_back(
          {name, [this, name, found = there.count(name) != 0] { PollModel(name, found); }});
    }
  }
  changed_.notify_all();
}

void Repository::PollModel(const std::string& name, bool there) {
  {
    const std::lock_guard lock(mutex_);
    polled_.erase(name);
    const auto entry = models_.find(name);
    // It may have been unloaded since the folder was listed.
    if (stopping_) return;
    if (entry != models_.end() && (entry->second.unloaded || entry->second.files)) return;
  }
  if (there) {
    (void)Refresh(name);
    return;
  }
  (void)Unload(name);
  const std::lock_guard lock(mutex_);
  models_[name].unloaded = false;  // it may reappear
  models_[name].problem = "it is no longer in the repository";
}

absl::StatusOr<ModelConfig> Repository::ConfigOf(const std::string& name, std::string& text) const {
  std::optional<std::string> requested;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = models_.find(name);
    if (entry != models_.end()) requested = entry->second.config;
    if (requested && entry->second.files != nullptr) {  // which come with a configuration
      text = *requested;
      return ParseConfig(text, kRequestedConfig);
    }
  }
  auto read = ConfigText(StrCat(options_.folder, "/", name));
  if (!read.ok()) return read.status();
  text = *std::move(read);
  auto config = ParseConfig(text);
  if (!config.ok() || !requested) return config;
  auto instead = ParseConfig(*requested, kRequestedConfig);
  if (instead.ok()) instead->session = config->session;  // clients cannot set the session's options
  StrAppend(&text, "\n", *requested);
  return instead;
}

std::string Repository::FolderOf(const std::string& name,
                                 std::shared_ptr<const ModelFiles>& files) const {
  const std::lock_guard lock(mutex_);
  const auto entry = models_.find(name);
  if (entry != models_.end()) files = entry->second.files;
  return files != nullptr ? files->folder() : StrCat(options_.folder, "/", name);
}

absl::Status Repository::Refresh(const std::string& name) {
  std::shared_ptr<const ModelFiles> files;
  const std::string folder = FolderOf(name, files);
  if (std::error_code error; !std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(StrCat("there is no model '", name, "'"));
  }
  std::string text;
  const auto config = ConfigOf(name, text);
  if (!config.ok()) return SetProblem(name, config.status());
  return RefreshVersions(name, *config, text);
}

absl::Status Repository::RefreshVersions(const std::string& name, const ModelConfig& config,
                                         const std::string& config_text) {
  std::shared_ptr<const ModelFiles> own;
  const std::string folder = FolderOf(name, own);
  const auto wanted = Wanted(VersionsOf(folder), config.version_policy);
  if (!wanted.ok()) return SetProblem(name, wanted.status());
  {
    const std::lock_guard lock(mutex_);
    models_[name].problem.clear();
  }
  absl::Status first_failure;
  for (auto version = wanted->rbegin(); version != wanted->rend();
       ++version) {  // newest first, so that it serves first
    const std::string files = StrCat(own != nullptr ? folder : std::string(),
                                     FilesOf(StrCat(folder, "/", *version)), "\n", config_text);
    if (!NeedsLoading(name, *version, files)) continue;
    const absl::Status status = LoadVersion(name, *version, config, files);
    if (!status.ok() && first_failure.ok()) first_failure = status;
  }
  RetireOthers(name, *wanted);
  const std::lock_guard lock(mutex_);
  if (first_failure.ok() && (models_[name].unloaded || stopping_)) {
    return absl::AbortedError("the model was unloaded meanwhile");
  }
  return first_failure;
}

// Whether the version is not loaded in this form. If so, it is marked as loading.
bool Repository::NeedsLoading(const std::string& name, int64_t version, const std::string& files) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || models_[name].unloaded) return false;
  Version& entry = models_[name].versions[version];
  if (entry.files == files) return false;
  entry.files = files;
  entry.load = std::make_shared<LoadInterrupt>();
  if (entry.served == nullptr) {
    entry.state = State::kLoading;
    entry.reason.clear();
  }
  return true;
}

absl::Status Repository::LoadVersion(const std::string& name, int64_t version,
                                     const ModelConfig& config, const std::string& files) {
  const std::string label = StrCat(version);
  std::shared_ptr<const ModelFiles> own;
  const std::string folder = StrCat(FolderOf(name, own), "/", label);
  std::shared_ptr<LoadInterrupt> interrupt;
  {
    const std::lock_guard lock(mutex_);
    interrupt = models_[name].versions[version].load;
  }
  const auto path = ModelPath(folder, config.file);
  absl::StatusOr<std::shared_ptr<ServedModel>> loaded =
      path.ok() ? ServedModel::Load(runtime_, {name, label, *path, options_.device, config, own},
                                    promises_, interrupt.get())
                : absl::StatusOr<std::shared_ptr<ServedModel>>(path.status());
  const std::string failure(Message(loaded.status()));  // only the log names the file
  if (path.ok() && !loaded.ok()) loaded = WithoutPath(loaded.status(), *path);
  absl::Status status;
  {
    const std::lock_guard lock(mutex_);
    status = NoteLoaded(name, version, files, loaded);
  }
  const bool interrupted = status.code() == absl::StatusCode::kAborted;
  event_(status.ok()   ? "loaded"
         : interrupted ? "interrupted"
                       : "failed",
         name, label, interrupted ? std::string(Message(status)) : failure);
  return status;
}

absl::Status Repository::NoteLoaded(const std::string& name, int64_t version,
                                    const std::string& files,
                                    const absl::StatusOr<std::shared_ptr<ServedModel>>& loaded) {
  Entry& model = models_[name];
  Version& entry = model.versions[version];
  entry.load = nullptr;
  if (model.unloaded || stopping_) {
    const char* why = stopping_ ? "the server is ending" : "unloaded on request";
    if (loaded.ok()) Retire(*loaded);
    if (entry.served == nullptr)
      entry = {loaded.ok() ? State::kUnloading : State::kUnavailable, why, "", nullptr, nullptr};
    return absl::AbortedError(StrCat("the load ended early: ", why));
  }
  if (loaded.ok()) {
    Retire(std::move(entry.served));
    entry = {State::kReady, "", files, *loaded, nullptr};
    return absl::OkStatus();
  }
  entry.reason = ForClients(Message(loaded.status()));
  if (entry.served == nullptr) entry.state = State::kUnavailable;
  return loaded.status();
}

// Retires versions that are no longer wanted, once all wanted ones serve, so that there is no gap.
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
      version = {State::kUnloading, "replaced", "", nullptr, nullptr};
    } else if (version.state != State::kUnloading) {
      version = {State::kUnavailable, "not wanted by version_policy", "", nullptr, nullptr};
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

void Repository::Load(const std::string& name, LoadRequest request,
                      std::function<void(absl::Status)> done) {
  const absl::Status status = CheckLoad(name, request);
  if (!status.ok()) return done(status);
  // A task must be copyable, which its request is not.
  const auto held = std::make_shared<LoadRequest>(std::move(request));
  Enqueue({name, [this, name, held, done = std::move(done)] { done(LoadRequested(name, *held)); }});
}

// Checks a load request, and turns its configuration into the text of a config.yaml.
absl::Status Repository::CheckLoad(const std::string& name, LoadRequest& request) const {
  if (!IsModelName(name)) return absl::NotFoundError("there is no model of that name");
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return absl::UnavailableError("the server is ending");
  }
  if (!request.files.empty()) {
    if (options_.load_files_bytes == 0) {
      return absl::FailedPreconditionError(
          "this server takes no files in load requests (--load-files)");
    }
    if (!request.config) {
      return absl::InvalidArgumentError(
          "files in a load request need the parameter 'config' beside them");
    }
    const absl::Status status = ModelFiles::Check(request.files);
    if (!status.ok()) return status;
  }
  if (!request.config) return absl::OkStatus();
  auto keys = ConfigFromProtocol(name, *request.config);
  if (!keys.ok()) return keys.status();
  request.config = *std::move(keys);
  return ParseConfig(*request.config, kRequestedConfig).status();
}

absl::Status Repository::LoadRequested(const std::string& name, const LoadRequest& request) {
  std::shared_ptr<const ModelFiles> files;
  if (!request.files.empty()) {
    auto written = ModelFiles::Write(request.files, &files_held_);
    if (!written.ok()) return written.status();
    files = *std::move(written);
  } else if (std::error_code error;
             !std::filesystem::is_directory(StrCat(options_.folder, "/", name), error)) {
    return absl::NotFoundError(StrCat("there is no model '", name, "'"));
  }
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return absl::UnavailableError("the server is ending");
    Entry& entry = models_[name];
    entry.unloaded = false;
    entry.config = request.config;
    entry.files.swap(files);
    // On request, a failed version is tried again even if its files have not changed.
    for (auto& [number, version] : entry.versions) {
      if (version.served == nullptr) version.files.clear();
    }
  }
  return Refresh(name);
}

absl::Status Repository::Unload(const std::string& name) {
  std::shared_ptr<const ModelFiles> files;  // removed after the mutex is released
  const std::lock_guard lock(mutex_);
  const auto entry = models_.find(name);
  if (entry == models_.end())
    return absl::NotFoundError(StrCat("there is no model '", name.substr(0, 128), "'"));
  entry->second.unloaded = true;
  files.swap(entry->second.files);
  for (auto& [number, version] : entry->second.versions) {
    if (version.load != nullptr) version.load->Interrupt();
    if (version.served == nullptr) continue;
    Retire(std::move(version.served));
    version = {State::kUnloading, "unloaded on request", "", nullptr, version.load};
  }
  return absl::OkStatus();
}

void Repository::Close(Clock::time_point deadline) {
  if (!retirer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    close_by_ = deadline;
    for (auto& [name, entry] : models_) {
      for (auto& [number, version] : entry.versions) {
        if (version.load != nullptr) version.load->Interrupt();
      }
    }
  }
  changed_.notify_all();
  for (std::thread& loader : loaders_) loader.join();
  std::vector<std::shared_ptr<ServedModel>> all;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [name, entry] : models_) {
      for (auto& [number, version] : entry.versions) {
        if (version.served == nullptr) continue;
        all.push_back(std::move(version.served));
        version = {State::kUnavailable, "the server is ending", "", nullptr, nullptr};
      }
    }
  }
  // Closed in parallel, since they share one deadline.
  std::vector<std::future<void>> closing;
  for (const auto& model : all) {
    closing.push_back(
        std::async(std::launch::async, [model, deadline] { model->Close(deadline); }));
  }
  for (auto& each : closing) each.wait();
  retirer_.join();
}

}  // namespace oncilla::server
