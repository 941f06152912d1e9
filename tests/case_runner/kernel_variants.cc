// kernel_variants: writes every OpenCL program that the cases ask for, on devices of several kinds.
//
//   kernel_variants FOLDER CASE-FILE...
//
// No device and no driver is needed: recipes are pure functions of a node and a device's
// capabilities. Each different text becomes FOLDER/<family>_<kernel>_<hash>.cl, for compilers of
// devices that are not at hand (tools/compile_kernels). Prints how many there are of each source.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "backends/opencl/runtime/probe.h"
#include "backends/opencl/runtime/program_cache.h"
#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "tests/case_runner/case_file.h"
#include "tests/case_runner/case_recipes.h"

namespace oncilla::testing {
namespace {

class Variants {
 public:
  explicit Variants(std::string folder) : folder_(std::move(folder)) {}

  Status Add(const opencl::Source& source, std::string_view generated,
             const opencl::Defines& defines) {
    ONCILLA_ASSIGN(const std::string text, opencl::ProgramText(source, generated, defines));
    Sha256 hash;
    hash.UpdateField(text);
    const std::string key = hash.FinishHex().substr(0, 16);
    if (!seen_.insert(key).second) return Status();
    ++counts_[std::string(source.path)];
    std::string name(source.path.substr(0, source.path.rfind('.')));
    name[name.find('/')] = '_';
    const std::string path = folder_ + "/" + name + "_" + key + ".cl";
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    return file.good() ? Status() : Error(Code::kUnavailable, "cannot write ", path);
  }

  // The programs of one case on one device.
  Status Add(const Case& c, const OpSet& ops, const opencl::Capabilities& caps) {
    ONCILLA_ASSIGN(const auto recipe, RecipeOf(c, ops, caps));
    if (!recipe) return Status();
    for (const opencl::Dispatch& d : recipe->dispatches) {
      ONCILLA_TRY(Add(*d.source, d.generated, d.defines));
    }
    return Status();
  }

  void Print() const {
    size_t total = 0;
    for (const auto& [source, count] : counts_) {
      std::printf("%6zu %s\n", count, source.c_str());
      total += count;
    }
    std::printf("%zu programs of %zu sources, options %s\n", total, counts_.size(),
                std::string(opencl::ProgramOptions()).c_str());
  }

 private:
  const std::string folder_;
  std::set<std::string> seen_;
  std::map<std::string, size_t> counts_;
};

Status Main(int argc, char** argv) {
  if (argc < 3) return InvalidArgument("usage: kernel_variants FOLDER CASE-FILE...");
  const auto ops = OpSet::Builtin();
  Variants variants(argv[1]);
  const opencl::ProbeSources probes = opencl::ProbeSources::Embedded();
  for (const opencl::Source* probe : {probes.basics, probes.fp64, probes.fp16}) {
    ONCILLA_TRY(variants.Add(*probe, "", {}));
  }
  ONCILLA_TRY(variants.Add(*probes.sub_group, "", {{"LANES", "8"}}));
  for (int i = 2; i < argc; ++i) {
    ONCILLA_ASSIGN(const auto cases, ReadCases(argv[i], *ops));
    for (const Case& c : cases) {
      for (const opencl::Capabilities& caps : KindsOfDevices()) {
        if (Status s = variants.Add(c, *ops, caps); !s.ok()) return In(s, c.Where());
      }
    }
  }
  variants.Print();
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
