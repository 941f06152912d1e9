// Defines become #define lines in front of the source rather than -D options: their values may then
// hold any tokens, which drivers' option parsers do not all quote alike.
#include "backends/opencl/program_cache.h"

#include "engine/base/hash.h"

namespace oncilla::opencl {
namespace {

// Change it when the text given to the driver is put together differently.
constexpr std::string_view kFormat = "program 1";
constexpr char kOptions[] = "-cl-std=CL1.2";

}  // namespace

Result<std::string> ProgramText(const Source& source, std::string_view generated,
                                const Defines& defines) {
  std::string text;
  for (const auto& [macro, value] : defines) {
    if (value.find('\n') != value.npos) {
      return Internal(source.path, ": the define ", macro, " has several lines");
    }
    text += StrCat("#define ", macro, " ", value, "\n");
  }
  if (!generated.empty()) text += StrCat("#line 1 \"generated\"\n", generated, "\n");
  text += source.text;
  return text;
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

ProgramCache::ProgramCache(const Api& api, cl_context context, const FoundDevice& device,
                           bool keep_binaries, DiskCache* disk, size_t most_programs)
    : api_(api),
      context_(context),
      device_(device.id),
      identity_(CacheIdentity(device.facts)),
      options_(kOptions),
      keep_binaries_(keep_binaries),
      disk_(disk),
      most_programs_(most_programs) {}

Result<std::shared_ptr<const BuiltProgram>> ProgramCache::Get(const Source& source,
                                                              std::string_view generated,
                                                              const Defines& defines) {
  std::string name(source.path);
  for (const auto& [macro, value] : defines) name += StrCat(" -D", macro, "=", value);
  // Two sources of one name differ by where they are.
  const std::string key = StrCat(name, "\n", reinterpret_cast<uintptr_t>(source.text.data()), " ",
                                 source.text.size(), "\n", generated);

  std::shared_ptr<Slot> slot;
  {
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
    slot = found->second.slot;
  }
  std::lock_guard<std::mutex> lock(slot->mutex);
  // A failure stays out of the slot, so that the next call tries again.
  if (slot->program == nullptr) {
    ONCILLA_ASSIGN(const std::string text, ProgramText(source, generated, defines));
    ONCILLA_ASSIGN(slot->program, Make(source, text, std::move(name)));
  }
  return slot->program;
}

Result<std::shared_ptr<const BuiltProgram>> ProgramCache::Make(const Source& source,
                                                               const std::string& text,
                                                               std::string name) {
  Sha256 hash;
  hash.UpdateField(kFormat);
  hash.UpdateField(identity_);
  hash.UpdateField(options_);
  hash.UpdateField(text);
  const std::string key = hash.FinishHex();

  auto made = std::make_shared<BuiltProgram>();
  made->name = std::move(name);
  made->bytes = static_cast<int64_t>(text.size());
  DiskCache* disk = keep_binaries_ ? disk_ : nullptr;
  if (disk != nullptr) {
    if (const std::optional<std::string> binary = disk->Load(key)) {
      DiskCache::InUse in_use(*disk, key);
      auto program = BuildFromBinary(api_, context_, device_, source.path, *binary, options_);
      if (program.ok()) {
        ++loaded_;
        made->program = *std::move(program);
        made->bytes += static_cast<int64_t>(binary->size());
        return made;
      }
      disk->Drop(key);
    }
  }
  auto program = BuildFromSource(api_, context_, device_, made->name, text, options_);
  if (!program.ok()) return program.status();
  ++built_;
  made->program = *std::move(program);
  if (disk != nullptr) {
    const Result<std::string> binary = BinaryOf(api_, made->program.get());
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
    std::lock_guard<std::mutex> lock(slot->mutex);
    if (slot->program != nullptr) total += slot->program->bytes;
  }
  return total;
}

size_t ProgramCache::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

}  // namespace oncilla::opencl
