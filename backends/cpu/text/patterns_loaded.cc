// Regular expressions in the shared library: RE2 is in a separate module, which is opened for the
// first pattern.
#include <dlfcn.h>

#include "backends/cpu/text/patterns.h"
#include "engine/base/format.h"

namespace oncilla::cpu {
namespace {

// A sanitizer's runtime does not support modules that prefer their own symbols (RTLD_DEEPBIND).
bool IsSanitized() {
  return dlsym(RTLD_DEFAULT, "__asan_init") != nullptr ||
         dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

Result<const PatternFunctions*> Load() {
  Dl_info self = {};
  if (dladdr(reinterpret_cast<const void*>(&FindPatternFunctions), &self) == 0) {
    return Unsupported("patterns: the path of the library is unknown");
  }
  const std::string library(self.dli_fname);
  const std::string module =
      StrCat(library.substr(0, library.rfind('/') + 1), ONCILLA_PATTERN_MODULE);
  const int own_names_first = IsSanitized() ? 0 : RTLD_DEEPBIND;
  void* const handle = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL | own_names_first);
  if (handle == nullptr) return Unsupported("patterns need ", module, ": ", dlerror());
  const auto get = reinterpret_cast<decltype(&oncilla_pattern_functions)>(
      dlsym(handle, "oncilla_pattern_functions"));
  const PatternFunctions* const functions = get == nullptr ? nullptr : get();
  if (functions == nullptr || functions->version != kPatternFunctions) {
    return Unsupported("patterns: ", module, " is of another version of Oncilla");
  }
  return functions;
}

}  // namespace

Result<const PatternFunctions*> FindPatternFunctions() {
  static const Result<const PatternFunctions*> functions = Load();
  return functions;
}

}  // namespace oncilla::cpu
