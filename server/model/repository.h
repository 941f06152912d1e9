// Repository: the folder of models, and which versions of them are loaded. A few threads load
// models, each a different one at a time; another thread lets models that are replaced or unloaded
// finish their requests; a version is replaced only when its successor is ready.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <oncilla/oncilla.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/core/request.h"
#include "server/model/model_files.h"
#include "server/model/served_model.h"

namespace oncilla::server {

struct RepositoryOptions {
  std::string folder;
  std::string device = "auto";     // of models whose config names none
  std::chrono::seconds poll{0};    // how often the folder is looked through; 0: never
  bool load_at_start = true;       // false: models are loaded on request only
  std::chrono::seconds drain{30};  // how long requests of a model that is unloaded may take
  int load_threads = 1;            // so many models are loaded at the same time
  size_t load_files_bytes = 0;     // of load requests' files on disk, for all models; 0: none
};

// An event for the server's log: a model was loaded, failed, or was unloaded.
using RepositoryEvent = std::function<void(const std::string& what, const std::string& model,
                                           const std::string& version, const std::string& reason)>;

class Repository {
 public:
  Repository(RepositoryOptions options, Runtime runtime, RepositoryEvent event);
  ~Repository();

  // Begins to load in the background. InvalidArgument where the folder cannot be read.
  absl::Status Start();
  // Whether everything that is loaded at the start has been loaded, or has failed.
  bool started() const;

  // The version that serves; an empty `version` is the highest that is ready. NotFound for unknown
  // names, Unavailable with the reason for versions that are not ready.
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(const std::string& name,
                                                    const std::string& version) const;
  // The versions of a model that are ready, in ascending order.
  std::vector<std::string> ReadyVersions(const std::string& name) const;
  std::vector<std::shared_ptr<ServedModel>> ReadyModels() const;
  std::vector<IndexEntry> Index(bool only_ready) const;

  // Loads a model, or its new versions. `done` is called on a loading thread, or at once. A
  // configuration in the request replaces config.yaml, except for the session's options there, and
  // its files replace the model's folder, until the next request to load it.
  void Load(const std::string& name, LoadRequest request, std::function<void(absl::Status)> done);
  // Takes a model out of service; requests in progress still finish, and a load in progress is
  // interrupted. NotFound if it does not exist.
  absl::Status Unload(const std::string& name);

  // Interrupts loading, then closes all models; requests still in progress at `deadline` fail.
  void Close(Clock::time_point deadline);

 private:
  enum class State { kLoading, kReady, kUnloading, kUnavailable };
  struct Version {
    State state = State::kLoading;
    std::string reason;
    std::string files;  // sizes and times of its files when it was loaded, or failed to
    std::shared_ptr<ServedModel> served;
    std::shared_ptr<LoadInterrupt> load;  // the load under way
  };
  struct Entry {
    std::map<int64_t, Version> versions;
    std::string problem;    // of the model as a whole: a config.yaml that cannot be read
    bool unloaded = false;  // on request: polls leave it alone
    std::optional<std::string> config;        // of the last load request, as text of a config.yaml
    std::shared_ptr<const ModelFiles> files;  // of the last load request; null: the repository's
  };
  // Work of the loading threads. Tasks of one model follow each other in their order.
  struct Task {
    std::string model;  // empty: of none
    std::function<void()> work;
  };

  void Work();
  void RetireWork();
  void Enqueue(Task task);
  // Takes the first task whose model no other thread works on; nothing if there is none.
  std::optional<Task> Take();
  void EndOfStart();
  void Poll();
  void PollModel(const std::string& name, bool there);
  absl::Status CheckLoad(const std::string& name, LoadRequest& request) const;
  absl::Status LoadRequested(const std::string& name, const LoadRequest& request);
  // The folder of the model's versions; `files` are those of a load request.
  std::string FolderOf(const std::string& name, std::shared_ptr<const ModelFiles>& files) const;
  // The model's configuration: its config.yaml's, or that of the last load request. `text`: what it
  // was read from.
  absl::StatusOr<ModelConfig> ConfigOf(const std::string& name, std::string& text) const;
  absl::Status Refresh(const std::string& name);
  absl::Status RefreshVersions(const std::string& name, const ModelConfig& config,
                               const std::string& config_text);
  bool NeedsLoading(const std::string& name, int64_t version, const std::string& files);
  absl::Status LoadVersion(const std::string& name, int64_t version, const ModelConfig& config,
                           const std::string& files);
  void RetireOthers(const std::string& name, const std::vector<int64_t>& wanted);
  // Records the result of a load, with the mutex held. Aborted if the model was unloaded meanwhile.
  absl::Status NoteLoaded(const std::string& name, int64_t version, const std::string& files,
                          const absl::StatusOr<std::shared_ptr<ServedModel>>& loaded);
  // With the mutex held.
  void Retire(std::shared_ptr<ServedModel> model);
  absl::Status SetProblem(const std::string& name, absl::Status status);

  const RepositoryOptions options_;
  const Runtime runtime_;
  const RepositoryEvent event_;
  ByteBudget files_held_;  // before those who refer to it

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> models_;
  std::deque<Task> tasks_;
  std::set<std::string> busy_;    // models that a loading thread is at
  std::set<std::string> polled_;  // models that a poll has a task for
  Clock::time_point next_poll_ = kNever;
  std::deque<std::shared_ptr<ServedModel>> retired_;
  size_t left_of_start_ = 0, loading_ = 0;  // models; threads that have not ended
  bool started_ = false, stopping_ = false;
  std::optional<Clock::time_point> close_by_;
  std::vector<std::thread> loaders_;
  std::thread retirer_;
  const std::shared_ptr<Promises> promises_ = std::make_shared<Promises>();
};

}  // namespace oncilla::server
