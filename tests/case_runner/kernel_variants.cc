// kernel_variants: writes every OpenCL program that the cases ask for, on devices of several kinds.
//
//   kernel_variants FOLDER CASE-FILE...
//
// No device and no driver is needed: recipes are pure functions of a node and a device's
// capabilities. Each different text becomes FOLDER/<family>_<kernel>_<hash>.cl, for compilers of
// devices that are not available (tools/compile_kernels). Prints their number for each source.
#include <cstdio>
#include <iostream>
#include <map>

#include "backends/opencl/runtime/probe.h"
#include "backends/opencl/runtime/program_cache.h"
#include "backends/opencl/simulated/program_files.h"
#include "tests/case_runner/case_file.h"
#include "tests/case_runner/case_recipes.h"

namespace oncilla::testing {
namespace {

// The programs of one case on one device.
Status Add(const Case& c, const OpSet& ops, const opencl::Capabilities& caps,
           opencl::ProgramFiles& files) {
  ONCILLA_ASSIGN(const auto recipe, RecipeOf(c, ops, caps));
  if (!recipe) return Status();
  for (const opencl::Dispatch& d : recipe->dispatches) {
    ONCILLA_TRY(files.Add(*d.source, d.generated, d.defines, PlacesOf(d, caps)).status());
  }
  return Status();
}

void Print(const std::map<std::string, size_t>& counts) {
  size_t total = 0;
  for (const auto& [source, count] : counts) {
    std::printf("%6zu %s\n", count, source.c_str());
    total += count;
  }
  std::printf("%zu programs of %zu sources, options %s\n", total, counts.size(),
              std::string(opencl::ProgramOptions()).c_str());
}

Status Main(int argc, char** argv) {
  if (argc < 3) return InvalidArgument("usage: kernel_variants FOLDER CASE-FILE...");
  const auto ops = OpSet::Builtin();
  opencl::ProgramFiles files(argv[1]);
  const opencl::ProbeSources probes = opencl::ProbeSources::Embedded();
  for (const opencl::Source* probe : {probes.basics, probes.fp64, probes.fp16}) {
    ONCILLA_TRY(files.Add(*probe, "", {}).status());
  }
  ONCILLA_TRY(files.Add(*probes.sub_group, "", {{"LANES", "8"}}).status());
  ONCILLA_TRY(files.Add(*probes.dot4, "", {}).status());
  for (const char* define : {"DOT_KHR", "DOT_PTX"}) {
    ONCILLA_TRY(files.Add(*probes.dot4, "", {{define, "1"}}).status());
  }
  for (int i = 2; i < argc; ++i) {
    ONCILLA_ASSIGN(const auto cases, ReadCases(argv[i], *ops));
    for (const Case& c : cases) {
      for (const opencl::Capabilities& caps : KindsOfDevices()) {
        if (Status s = Add(c, *ops, caps, files); !s.ok()) return In(s, c.Where());
      }
    }
  }
  Print(files.counts());
  return Status();
}

}  // namespace
}  // namespace oncilla::testing

int main(int argc, char** argv) {
  const oncilla::Status status = oncilla::testing::Main(argc, argv);
  if (status.ok()) return 0;
  std::cerr << oncilla::Message(status) << "\n";
  return 1;
}
