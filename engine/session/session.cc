// Opening devices and models, and giving everything back.
#include "engine/session/session.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/base/caught.h"
#include "engine/base/file.h"
#include "engine/placement/device_name.h"
#include "engine/session/model.h"

namespace oncilla {
namespace {

// Tests enable the checks by this variable in every session, also in other programs.
SessionOptions WithEnvironment(SessionOptions options) {
  const char* verify = std::getenv("ONCILLA_VERIFY");
  options.verify |= verify != nullptr && std::string_view(verify) == "1";
  return options;
}

// Identifies a model's files, and distinguishes them from changed versions; empty if that is
// impossible.
std::string IdentityOf(const std::string& path) {
  constexpr size_t kMostFiles = 1000;
  std::vector<std::string> files = {path};
  for (size_t i = 0; i < files.size(); ++i) {  // the list grows in the loop
    if (!FolderExists(files[i])) continue;
    const auto entries = ListFolder(files[i]);
    if (!entries.ok() || files.size() + entries->size() > kMostFiles) return "";
    for (const FolderEntry& entry : *entries) files.push_back(StrCat(files[i], "/", entry.name));
  }
  std::string identity;
  for (const std::string& file : files) {
    struct stat s = {};
    if (::stat(file.c_str(), &s) != 0) return "";
    identity += StrCat(s.st_dev, " ", s.st_ino, " ", s.st_size, " ", s.st_mtim.tv_sec, " ",
                       s.st_mtim.tv_nsec, "\n");
  }
  return identity;
}

Released Sum(const std::map<std::string, int64_t>& by_device) {
  Released sum;
  for (const auto& [name, bytes] : by_device) {
    sum.bytes += bytes;
    sum.by_device.emplace_back(name, bytes);
  }
  return sum;
}

}  // namespace

Session::Session(std::shared_ptr<Runtime> runtime, SessionOptions options,
                 std::shared_ptr<ThreadPool> pool)
    : runtime_(std::move(runtime)),
      options_(WithEnvironment(std::move(options))),
      threads_(std::move(pool)),
      tasks_(options_.max_concurrent_runs),
      devices_(*runtime_, options_, threads(), memory_.ledger(), memory_.owner()) {}

Session::~Session() {
  CloseCounting({}, [](size_t, int64_t) {});
}

Result<std::shared_ptr<Session>> Session::Create(std::shared_ptr<Runtime> runtime,
                                                 SessionOptions options) {
  ONCILLA_TRY(runtime->CheckProcess());
  std::shared_ptr<ThreadPool> threads;
  if (!options.thread_pool.empty()) {
    ONCILLA_ASSIGN(threads, runtime->NamedThreads(options.thread_pool, options.threads));
  } else if (options.threads > 0) {
    threads = std::make_shared<ThreadPool>(options.threads);
  }
  std::shared_ptr<Session> session(
      new Session(std::move(runtime), std::move(options), std::move(threads)));
  ONCILLA_TRY(session->devices_.Open());
  session->runtime_->Note(session);
  return session;
}

Result<std::shared_ptr<Model>> Session::Load(const std::string& path,
                                             const OpenModelOptions& options) {
  if (closed()) return Error(Code::kFailedPrecondition, "the session is closed");
  // Taken before the files are opened: if they change after this, the model does not share these
  // weights.
  auto constants = ConstantsOf(path);
  return Adopt(OpenModel(path, options), path, options, std::move(constants));
}

Result<std::shared_ptr<Model>> Session::LoadGraph(std::string graph_def, const std::string& name,
                                                  const OpenModelOptions& options) {
  auto bytes = std::make_shared<const std::string>(std::move(graph_def));
  return Adopt(OpenGraphDefBytes(std::move(bytes), name), name, options, nullptr);
}

Result<std::shared_ptr<Model>> Session::LoadBytes(std::span<const std::byte> bytes,
                                                  std::shared_ptr<const void> owner,
                                                  const std::string& name,
                                                  const OpenModelOptions& options) {
  auto file = MappedFile::OfBytes(bytes, std::move(owner), name);
  return Adopt(OpenModelBytes(std::move(file), options), name, options, nullptr);
}

void Session::WarnOnce(const std::string& warning) {
  {
    MutexLock lock(&mutex_);
    if (!warnings_.insert(warning).second) return;
  }
  runtime_->log().Warning(warning);
}

Result<std::shared_ptr<Model>> Session::Adopt(Result<std::unique_ptr<ModelSource>> source,
                                              const std::string& name,
                                              const OpenModelOptions& options,
                                              std::shared_ptr<SharedConstants> constants) {
  ONCILLA_TRY(runtime_->CheckProcess());
  if (!source.ok()) return WithStage(source.status(), Stage::kLoad);
  auto model = std::make_shared<Model>(shared_from_this(), name, *std::move(source),
                                       options.stored_devices, std::move(constants));
  MutexLock lock(&mutex_);
  if (closed_) return Error(Code::kFailedPrecondition, "the session is closed");
  std::erase_if(models_, [](const auto& m) { return m.expired(); });
  models_.push_back(model);
  return model;
}

std::shared_ptr<SharedConstants> Session::ConstantsOf(const std::string& path) {
  const std::string identity = IdentityOf(path);
  if (identity.empty()) return nullptr;
  MutexLock lock(&mutex_);
  std::erase_if(constants_, [](const auto& item) { return item.second.expired(); });
  std::weak_ptr<SharedConstants>& slot = constants_[identity];
  auto shared = slot.lock();
  if (shared == nullptr) slot = shared = std::make_shared<SharedConstants>();
  return shared;
}

Released Session::Close(const CloseOptions& options) {
  if (closed()) return {};
  // If no memory can be had for the list of devices, the session closes all the same, and only the
  // sum is returned.
  Released released;
  (void)Fenced([&] {
    std::vector<std::pair<std::string, int64_t>> devices(devices_.size());
    for (size_t d = 0; d < devices.size(); ++d) devices[d].first = devices_.names()[d];
    released.by_device = std::move(devices);
    return Status();
  });
  CloseCounting(options, [&released](size_t device, int64_t bytes) {
    released.bytes += bytes;
    if (device < released.by_device.size()) released.by_device[device].second += bytes;
  });
  return released;
}

void Session::CloseCounting(const CloseOptions& options, const DeviceCounter& count) {
  // Closing allocates nothing, so that it ends and releases everything if no memory can be had.
  {
    MutexLock lock(&mutex_);
    if (closed_) return;
    closed_ = true;
  }
  const Deadline deadline = DeadlineAfter(std::chrono::steady_clock::now(), options.timeout);
  if (options.timeout.count() > 0) {
    // Runs that are cancelled at the end of draining get a moment to finish.
    constexpr std::chrono::milliseconds kMoment(100);
    devices_.CloseBy(options.mode == CloseMode::kDrain ? DeadlineAfter(deadline, kMoment)
                                                       : deadline);
  }
  if (options.mode == CloseMode::kDrain && options.timeout.count() > 0) {
    bool idle = true;
    ForEachModel([&](Model& model) { idle &= model.Drain(deadline); });
    if (!idle) stop_.Cancel();
  }
  if (options.mode == CloseMode::kCancel) stop_.Cancel();
  ForEachModel([&](Model& model) { model.UnloadCounting(count); });
  for (size_t d = 0; d < devices_.size(); ++d) count(d, memory_.CloseKeptPools(d, /*all=*/true));
  devices_.Close(count);
}

bool Session::closed() const {
  MutexLock lock(&mutex_);
  return closed_;
}

std::vector<std::shared_ptr<Model>> Session::models() const {
  std::vector<std::shared_ptr<Model>> models;
  MutexLock lock(&mutex_);
  for (const auto& weak : models_) {
    if (auto model = weak.lock()) models.push_back(std::move(model));
  }
  return models;
}

template <class F>
void Session::ForEachModel(F&& body) {
  // From the last to the first: if Reset erases models meanwhile, those left move towards the
  // beginning, so that none is left out.
  for (size_t left = SIZE_MAX; left > 0;) {
    std::shared_ptr<Model> model;
    {
      MutexLock lock(&mutex_);
      left = std::min(left, models_.size());
      if (left > 0) model = models_[--left].lock();
    }
    if (model != nullptr) body(*model);
  }
}

Released Session::Reset() {
  std::map<std::string, int64_t> by_device;
  for (const auto& model : models()) {
    for (const auto& [name, bytes] : model->Unload().by_device) by_device[name] += bytes;
  }
  {
    MutexLock lock(&mutex_);
    std::erase_if(models_, [](const auto& weak) {
      const auto model = weak.lock();
      return model == nullptr || model->unloaded();
    });
  }
  for (const auto& [name, bytes] : memory_.Trim().by_device) by_device[name] += bytes;
  return Sum(by_device);
}

ResetReport CloseSessions(Runtime& runtime) {
  ResetReport report;
  const auto note = [&](const std::string& what, int64_t times) {
    if (times <= 0) return;
    report.still_referenced.push_back(StrCat(what, " (", times, times == 1 ? " time)" : " times)"));
  };
  int number = 0;
  for (const auto& weak : runtime.TakeSessions()) {
    std::shared_ptr<Session> session = weak.lock();
    if (session == nullptr) continue;
    std::vector<std::shared_ptr<Model>> models = session->models();
    report.bytes += session->Close().bytes;
    const auto count = static_cast<int64_t>(models.size());
    for (const auto& model : models) {
      note(StrCat("model '", model->path(), "'"), model.use_count() - 1);
    }
    // Each model holds a reference to its session too.
    note(StrCat("session ", number++), session.use_count() - 1 - count);
  }
  return report;
}

}  // namespace oncilla
