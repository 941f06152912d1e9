// Defines become #define lines in front of the source instead of -D options: drivers parse options
// differently, and the values of defines may hold any tokens.
#include "backends/opencl/runtime/program_cache.h"

#include <algorithm>
#include <functional>
#include <system_error>
#include <thread>

#include "engine/base/hash.h"

namespace oncilla::opencl {
namespace {

// To be changed if the text that the driver gets is composed differently.
constexpr std::string_view kFormat = "program 1";
constexpr char kOptions[] = "-cl-std=CL1.2";

}  // namespace

Result<std::string> ProgramText(const Source& source, std::string_view generated,
                                const Defines& defines, const Places& places) {
  std::string text;
  for (const auto& [macro, value] : defines) {
    if (value.find('\n') != value.npos) {
      return Internal(source.path, ": the define ", macro, " has several lines");
    }
    text += StrCat("#define ", macro, " ", value, "\n");
  }
  if (!generated.empty()) text += StrCat("#line 1 \"generated\"\n", generated, "\n");
  const auto kernels = WithPlaces(source.text, places);
  if (!kernels.ok()) return oncilla::In(kernels.status(), source.path);
  return text + *kernels;
}

std::string_view ProgramOptions() { return kOptions; }

std::string CacheIdentity(const DeviceFacts& f) {
  Sha256 hash;
  for (const std::string& field :
       {f.platform, f.platform_version, f.name, f.vendor, f.driver, f.version}) {
    hash.UpdateField(field);
  }
  return hash.FinishHex();
}

Result<KernelLimits> BuiltProgram::LimitsOf(const Api& api, cl_device_id device,
                                            const std::string& kernel) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto known = limits_.find(kernel); known != limits_.end()) return known->second;
  ONCILLA_ASSIGN(const KernelObject object, CreateKernel(api, program.get(), kernel));
  size_t most = 0;
  cl_ulong local = 0;
  ONCILLA_TRY(Check(api.GetKernelWorkGroupInfo(object.get(), device, CL_KERNEL_WORK_GROUP_SIZE,
                                               sizeof(most), &most, nullptr),
                    "clGetKernelWorkGroupInfo(CL_KERNEL_WORK_GROUP_SIZE)"));
  ONCILLA_TRY(Check(api.GetKernelWorkGroupInfo(object.get(), device, CL_KERNEL_LOCAL_MEM_SIZE,
                                               sizeof(local), &local, nullptr),
                    "clGetKernelWorkGroupInfo(CL_KERNEL_LOCAL_MEM_SIZE)"));
  const KernelLimits limits{static_cast<int64_t>(most), static_cast<int64_t>(local)};
  limits_[kernel] = limits;
  return limits;
}

namespace {

// Compilations whose callers may stop waiting. The exit of a process destroys objects that these
// threads use, so it waits for them, for a limited time.
class Compilations {
 public:
  static Compilations& Get() {
    static Compilations all;
    return all;
  }
  ~Compilations() {
    constexpr std::chrono::seconds kLimit(5);
    MutexLock lock(&state_->mutex);
    state_->mutex.AwaitUntil(
        std::chrono::steady_clock::now() + kLimit,
        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) { return state_->running == 0; });
  }

  // Runs `compile` on a new thread, or on this one if the system cannot start a thread.
  void Do(std::function<void()> compile) {
    {
      MutexLock lock(&state_->mutex);
      ++state_->running;
    }
    auto task = [state = state_, compile = std::move(compile)]() mutable {
      compile();
      compile = nullptr;  // releases what it holds before the process may exit
      MutexLock lock(&state->mutex);
      --state->running;
    };
    try {
      std::thread(task).detach();
    } catch (const std::system_error&) {
      task();
    }
  }

 private:
  struct State {
    Mutex mutex;
    int running ABSL_GUARDED_BY(mutex) = 0;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

ProgramCache::ProgramCache(std::shared_ptr<DeviceContext> context, const FoundDevice& device,
                           bool keep_binaries, std::shared_ptr<DiskCache> disk,
                           size_t most_programs)
    : maker_(std::make_shared<Maker>()), most_programs_(most_programs) {
  maker_->context = std::move(context);
  maker_->device = device.id;
  maker_->identity = CacheIdentity(device.facts);
  if (keep_binaries) maker_->disk = std::move(disk);
}

std::shared_ptr<ProgramCache::Slot> ProgramCache::SlotOf(const std::string& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    while (entries_.size() >= most_programs_) {
      entries_.erase(used_.front());
      used_.pop_front();
    }
    used_.push_back(key);
    found = entries_.emplace(key, Entry{std::make_shared<Slot>(), std::prev(used_.end())}).first;
  } else {
    used_.splice(used_.end(), used_, found->second.place);
  }
  return found->second.slot;
}

Result<std::shared_ptr<const BuiltProgram>> ProgramCache::Get(const Source& source,
                                                              std::string_view generated,
                                                              const Defines& defines,
                                                              const EarlyEnd& end,
                                                              const Places& places) {
  constexpr std::chrono::milliseconds kLook(4);  // how soon a cancelled run is noticed
  std::string name(source.path);
  for (const auto& [macro, value] : defines) name += StrCat(" -D", macro, "=", value);
  // Two sources of the same name differ in their address.
  const std::string key =
      StrCat(name, "\n", reinterpret_cast<uintptr_t>(source.text.data()), " ", source.text.size(),
             "\n", places.operands.empty() ? "" : places.entry, "\n", generated);
  const std::shared_ptr<Slot> slot = SlotOf(key);
  bool mine = false;
  {
    MutexLock lock(&slot->mutex);
    if (slot->program != nullptr) return slot->program;
    if (!slot->making) {
      mine = slot->making = true;
      slot->since = std::chrono::steady_clock::now();
    }
  }
  if (mine) {
    auto text = ProgramText(source, generated, defines, places);
    auto make = [maker = maker_, slot, path = source.path, text, name]() mutable {
      auto made = [&]() -> Result<std::shared_ptr<const BuiltProgram>> {
        ONCILLA_TRY(text.status());
        const auto lock = maker->context->Caller();
        return maker->Make(path, *text, std::move(name));
      }();
      maker = nullptr;  // after Publish, a waiting caller may close the device
      Publish(*slot, std::move(made));
    };
    if (end.possible() && text.ok()) {
      Compilations::Get().Do(std::move(make));
    } else {
      make();
    }
  }
  MutexLock lock(&slot->mutex);
  const auto made = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(slot->mutex) { return !slot->making; };
  while (!slot->mutex.AwaitUntil(std::min(end.deadline, std::chrono::steady_clock::now() + kLook),
                                 made)) {
    ONCILLA_TRY(MayWait(end, slot->since, StrCat("the compilation of ", name)));
  }
  if (slot->program != nullptr) return slot->program;
  return slot->failure;
}

void ProgramCache::Publish(Slot& slot, Result<std::shared_ptr<const BuiltProgram>> made) {
  MutexLock lock(&slot.mutex);
  // Callers that wait now get the failure; the next caller tries again.
  slot.failure = made.status();
  if (made.ok()) slot.program = *std::move(made);
  slot.making = false;
}

// The thread that compiled a program may hold its slot a moment longer, so the slot is emptied
// here.
ProgramCache::~ProgramCache() {
  for (const auto& [key, entry] : entries_) {
    std::shared_ptr<const BuiltProgram> program;  // destroyed after the lock is released
    MutexLock lock(&entry.slot->mutex);
    program.swap(entry.slot->program);
  }
}

Result<std::shared_ptr<const BuiltProgram>> ProgramCache::Maker::Make(std::string_view path,
                                                                      const std::string& text,
                                                                      std::string name) {
  const Api& api = *context->api;
  const cl_context raw = context->context.get();
  const std::string options = kOptions;
  Sha256 hash;
  hash.UpdateField(kFormat);
  hash.UpdateField(identity);
  hash.UpdateField(options);
  hash.UpdateField(text);
  const std::string key = hash.FinishHex();

  auto made = std::make_shared<BuiltProgram>();
  made->context = context;
  made->name = std::move(name);
  made->bytes = static_cast<int64_t>(text.size());
  if (disk != nullptr) {
    if (const std::optional<std::string> binary = disk->Load(key)) {
      DiskCache::InUse in_use(*disk, key);
      auto program = BuildFromBinary(api, raw, device, path, *binary, options);
      if (program.ok()) {
        ++loaded;
        made->program = *std::move(program);
        made->bytes += static_cast<int64_t>(binary->size());
        return made;
      }
      disk->Drop(key);
    }
  }
  auto program = BuildFromSource(api, raw, device, made->name, text, options);
  if (!program.ok()) return program.status();
  ++built;
  made->program = *std::move(program);
  if (disk != nullptr) {
    const Result<std::string> binary = BinaryOf(api, made->program.get());
    if (binary.ok() && !binary->empty()) {
      disk->Store(key, *binary);
      made->bytes += static_cast<int64_t>(binary->size());
    }
  }
  return made;
}

int64_t ProgramCache::bytes() const {
  std::vector<std::shared_ptr<Slot>> slots;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, entry] : entries_) slots.push_back(entry.slot);
  }
  int64_t total = 0;
  for (const auto& slot : slots) {
    MutexLock lock(&slot->mutex);
    if (slot->program != nullptr) total += slot->program->bytes;
  }
  return total;
}

size_t ProgramCache::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

}  // namespace oncilla::opencl
