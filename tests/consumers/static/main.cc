// Links its own libOpenCL, which must be the loader's and not symbols inside liboncilla.a.
#include <dlfcn.h>
#include <oncilla/oncilla.hpp>

#include <cstring>

extern "C" int clGetPlatformIDs(unsigned, void*, unsigned*);

int main() {
  Dl_info where{};
  dladdr(reinterpret_cast<void*>(&clGetPlatformIDs), &where);
  unsigned count = 0;
  clGetPlatformIDs(0, nullptr, &count);
  auto session = oncilla::Session::Create();
  const bool ok = where.dli_fname != nullptr && std::strstr(where.dli_fname, "libOpenCL") != nullptr &&
                  session.ok();
  std::printf("%s from %s\n", ok ? "consumer ok" : "consumer FAILED",
              where.dli_fname == nullptr ? "?" : where.dli_fname);
  return ok ? 0 : 1;
}
