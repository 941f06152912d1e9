// Movement kernels of the CPU: plain, exact code.
#include <cstring>

#include "backends/cpu/kernel.h"
#include "engine/ops/movement.h"

namespace oncilla::cpu {
namespace {

// Where input and output share memory there is nothing to do, and planning does not even ask.
Status Reshape(const ReshapeAttrs&, const Args& args) {
  if (args.inputs[0] != args.outputs[0]) {
    std::memcpy(args.outputs[0], args.inputs[0], static_cast<size_t>(args.in(0).bytes()));
  }
  return Status();
}

const KernelRow kRows[] = {
    Row<Reshape>("Reshape", kFixedSize),
};

}  // namespace

std::span<const KernelRow> MovementKernels() { return kRows; }

}  // namespace oncilla::cpu
