// Files of fuzzers, and importing with checks.
#include "tests/fuzz/fuzz_model.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "engine/graph/verify.h"
#include "engine/import/model_source.h"
#include "engine/import/tf/contents.h"
#include "engine/import/tf/source.h"
#include "engine/ops/op_set.h"

namespace oncilla::fuzz {
namespace {

[[noreturn]] void Stop(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

}  // namespace

MemoryFile::MemoryFile() : fd_(::memfd_create("model", MFD_CLOEXEC)) {
  if (fd_ < 0) Stop("memfd_create failed");
  path_ = "/proc/self/fd/" + std::to_string(fd_);
}

void MemoryFile::Write(std::span<const uint8_t> bytes) {
  if (::ftruncate(fd_, 0) != 0 ||
      ::pwrite(fd_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    Stop("the input could not be written");
  }
}

MemoryFolder::MemoryFolder() {
  // Memory where the system has such a folder: a file is replaced for every input.
  const bool memory = ::access("/dev/shm", W_OK) == 0;
  std::string name = std::string(memory ? "/dev/shm" : "/tmp") + "/oncilla_fuzz_XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) Stop("no temporary folder");
  path_ = name;
}

MemoryFolder::~MemoryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void ImportEverything(const std::string& path) {
  static const auto ops = OpSet::Builtin();
  auto model = OpenModel(path, {});
  if (!model.ok()) return;
  (void)ReadTfContents(path, {});
  for (const Signature& signature : (*model)->signatures()) {
    if (auto* tensorflow = dynamic_cast<TfSource*>(model->get()); tensorflow != nullptr) {
      (void)tensorflow->Freeze({signature.key, {}, {}}, {});
    }
    auto module = (*model)->Import({signature.key, {}, {}}, ops);
    if (!module.ok()) continue;
    Status status = Verify(module->main);
    for (const auto& [name, function] : module->functions) {
      if (status.ok()) status = Verify(function);
    }
    if (!status.ok()) {
      Stop("imported without an error, and it is no correct graph: " +
           std::string(Message(status)));
    }
  }
}

}  // namespace oncilla::fuzz
