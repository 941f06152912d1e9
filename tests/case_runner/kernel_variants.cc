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

#include "backends/opencl/kernels.h"
#include "backends/opencl/probe.h"
#include "backends/opencl/program_cache.h"
#include "backends/opencl/recipe.h"
#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "tests/case_runner/case_file.h"

namespace oncilla::testing {
namespace {

// The kinds of devices whose programs differ; limits are those of common ones.
std::vector<opencl::Capabilities> Devices() {
  opencl::Capabilities gpu;
  gpu.fp64 = gpu.fp16_math = gpu.local_groups = true;
  gpu.max_work_group = 1024;
  gpu.local_memory = 48 << 10;
  gpu.compute_units = 64;
  gpu.max_allocation = int64_t{1} << 32;
  opencl::Capabilities small_gpu = gpu;  // a phone's
  small_gpu.fp64 = false;
  small_gpu.max_work_group = 64;
  small_gpu.local_memory = 16 << 10;
  small_gpu.compute_units = 4;
  opencl::Capabilities bare = small_gpu;  // the floor: no groups, no optional types
  bare.fp16_math = bare.local_groups = false;
  bare.max_work_group = 1;
  std::vector<opencl::Capabilities> all = {gpu, small_gpu, bare};
  for (const int64_t width : {4, 8, 16}) {
    opencl::Capabilities cpu = gpu;
    cpu.shape = opencl::KernelShape::kCpu;
    cpu.fp16_math = width == 16;
    cpu.max_work_group = 4096;
    cpu.local_memory = 1 << 20;
    cpu.compute_units = 8;
    cpu.vector_width = width;
    all.push_back(cpu);
  }
  return all;
}

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

  // The programs of one case on one device; cases that must fail, or that the device leaves to the
  // CPU, have none.
  Status Add(const Case& c, const OpSet& ops, const opencl::Capabilities& caps) {
    const OpDef& op = *ops.Find(c.op);
    Facts in;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      const CaseInput& input = c.inputs[i];
      const bool known = input.constant || (i < 32 && (op.traits.plan_inputs >> i & 1) != 0);
      in.push_back(input.absent ? Fact::Absent()
                   : known      ? Fact::Constant(input.value)
                                : Fact::Of(input.value.desc()));
    }
    if (c.error) return Status();
    ONCILLA_ASSIGN(const Facts out, op.infer(c.attrs, in));
    for (const Fact& fact : out) {
      if (!fact.fixed()) return Status();
    }
    const NodeView node{&op, &c.attrs, in, out, c.op};
    const auto row = opencl::FindRunnable(node, caps);
    if (!row.ok()) return Status();
    ONCILLA_ASSIGN(const opencl::Recipe recipe, (*row)->make(node, caps));
    for (const opencl::Dispatch& d : recipe.dispatches) {
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
  for (int i = 2; i < argc; ++i) {
    ONCILLA_ASSIGN(const auto cases, ReadCases(argv[i], *ops));
    for (const Case& c : cases) {
      for (const opencl::Capabilities& caps : Devices()) {
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
