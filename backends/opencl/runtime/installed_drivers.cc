// Opens drivers in processes that already contain an LLVM.
#include "backends/opencl/runtime/installed_drivers.h"

#include <dlfcn.h>

#include <cstdlib>

#include "engine/base/file.h"

namespace oncilla::opencl {
namespace {

// Whether the symbols of an LLVM are global in this process. Not cached, because TensorFlow may
// have been imported since.
bool HasAnotherLlvm() { return ::dlsym(RTLD_DEFAULT, "LLVMContextCreate") != nullptr; }

// The library that a file NAME.icd refers to.
std::string NamedIn(const std::string& path) {
  constexpr uint64_t kMostBytes = 64 << 10;
  const Result<std::string> text = ReadFile(path, kMostBytes);
  if (!text.ok()) return "";
  std::string line = text->substr(0, text->find_first_of("\r\n"));
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.pop_back();
  return line;
}

void Add(std::string name, std::vector<std::string>& names) {
  if (!name.empty()) names.push_back(std::move(name));
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::vector<std::string> InstalledDrivers(const DriverChoice& choice) {
  std::vector<std::string> names;
  for (size_t at = 0; at < choice.filenames.size();) {
    const size_t end = std::min(choice.filenames.find(':', at), choice.filenames.size());
    Add(choice.filenames.substr(at, end - at), names);
    at = end + 1;
  }
  const std::string& chosen = choice.vendors.empty() ? choice.folder : choice.vendors;
  if (FolderExists(chosen)) {
    const Result<std::vector<FolderEntry>> entries = ListFolder(chosen);
    if (!entries.ok()) return names;
    for (const FolderEntry& entry : *entries) {
      if (entry.name.ends_with(".icd")) Add(NamedIn(JoinPath(chosen, entry.name)), names);
    }
  } else if (chosen.ends_with(".icd")) {
    Add(NamedIn(JoinPath(choice.folder, chosen)), names);
  } else if (!choice.vendors.empty()) {
    Add(chosen, names);
  }
  return names;
}

void* OpenLibrary(const std::string& name) {
  return ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | (HasAnotherLlvm() ? RTLD_DEEPBIND : 0));
}

void OpenDriversApart() {
  if (!HasAnotherLlvm()) return;
  const DriverChoice choice{Variable("OCL_ICD_FILENAMES"), Variable("OCL_ICD_VENDORS")};
  for (const std::string& name : InstalledDrivers(choice)) OpenLibrary(name);
}

}  // namespace oncilla::opencl
