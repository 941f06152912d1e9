// Recipe: what to launch for one node, as plain data.
//
// A family's file turns a node into a Recipe, with DispatchBuilder; it never calls OpenCL. So
// recipes are tested without a device, printed in a stable form and cached by value; device.cc
// builds programs, binds arguments and enqueues. What changes a kernel's code is a define; what
// changes per call is an argument.
//
//   Result<Recipe> Softmax(const SoftmaxAttrs& attrs, const NodeView& node, const Capabilities&
//   caps); const KernelRow kRows[] = {Row<Softmax>("Softmax", kFloats)};
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backends/opencl/recipes/source.h"
#include "backends/opencl/runtime/capabilities.h"
#include "backends/opencl/runtime/places.h"
#include "engine/device/device.h"
#include "engine/tensor/dtype_set.h"

namespace oncilla::opencl {

// Arguments. A tensor operand is a buffer that begins at the tensor's first element, whatever slot
// it lies in; an absent or empty one is some small buffer that must not be touched.
struct In {
  int index;
  // For a constant whose packing has parts: where the part begins, a multiple of
  // Capabilities::base_alignment, and its bytes; 0: all that follow.
  int64_t offset = 0, bytes = 0;
  // Read only where something rare happens; estimates of time leave it out.
  bool seldom = false;
};
struct Out {
  int index;
};
// Part of the step's scratch memory, see Recipe::AddScratch.
struct Scratch {
  int64_t offset, bytes;
};
// A long: how many elements of `unit` bytes the operand begins after its buffer. Giving one lets
// the operand be a view that the device cannot address as a buffer of its own; without it such a
// view is copied. Follows or precedes its operand anywhere in the list.
struct Offset {
  bool output;
  int index;
  int64_t unit;
};
// Two parameters: `__global int* run_error, const int run_step` (common/error.clh).
struct ErrorWord {};
// `__local` memory.
struct Local {
  int64_t bytes;
};
using Arg = std::variant<In, Out, Scratch, Offset, ErrorWord, Local, int32_t, uint32_t, int64_t,
                         uint64_t, float>;

struct Dispatch {
  const Source* source = nullptr;
  std::string entry = {};
  Defines defines = {};
  std::vector<Arg> args = {};
  // The parameter of each argument (an ErrorWord's has two).
  std::vector<std::string> names = {};
  std::array<int64_t, 3> global = {1, 1, 1};  // each a multiple of `local`; 0 launches nothing
  std::array<int64_t, 3> local = {1, 1, 1};
  // The most trips that any loop of one work-item can make at this geometry; some drivers cap it.
  int64_t longest_loop = 0;
  // OpenCL C between the defines and the source, for kernels made at run time.
  std::string generated = {};
};

// What a recipe chose where it could choose (choices.h); empty where no table was there.
struct Decision {
  std::string layer = {};    // the class of the layer, as tables name it
  std::string choice = {};   // what was taken
  bool tuned = false;        // because a table says so,
  std::string driver = {};   // which had that of another version of the driver
  std::string ignored = {};  // the table's choice, which is none here
  std::vector<std::string> choices = {};
};

struct Recipe {
  std::vector<Dispatch> dispatches = {};  // run in this order
  int64_t scratch_bytes = 0;
  Decision decision = {};

  // Room for `bytes` at an aligned place.
  Scratch AddScratch(int64_t bytes, const Capabilities& caps);
};

// What a driver without sub-buffers needs to know of the kernel (places.h); nothing elsewhere.
Places PlacesOf(const Dispatch& dispatch, const Capabilities& caps);

// "norm/softmax.cl:softmax_rows T=f32 GROUP=64 (in0 out0 i32:1000) global=64 local=64 loop=16", one
// line per dispatch; then, where a table decided, "tuned: product 64x64x64 f32 -> TM=8 ..".
std::string ToString(const Recipe& recipe);
// Its kernels and their sizes in a few words: "conv/winograd:input + matmul/panels V=16 ROWS=8 +
// conv/winograd:output"; "nothing" where none is launched.
std::string NameOf(const Recipe& recipe);
// What a kernel made of it says of itself: the name, and the text in the lines below.
std::string DescriptionOf(const Recipe& recipe);

// Refuses a recipe that breaks its own rules or that this device cannot launch; drivers abort on
// some of these. `inputs` and `outputs` are the node's counts.
Status CheckRecipe(const Recipe& recipe, const Capabilities& caps, int inputs, int outputs);

// The smallest multiple of `step` that is at least n.
constexpr int64_t RoundUp(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
constexpr int64_t DivideUp(int64_t n, int64_t step) { return (n + step - 1) / step; }

// OpenCL type with as many bytes as an element, for kernels that only move elements: "uint".
std::string_view MoveType(DType dtype);

struct KernelRow {
  std::string_view op;
  DTypeSet dtypes = kFixedSize;  // of input 0
  // All facts are fixed and plan inputs have values. Pure.
  Result<Recipe> (*make)(const NodeView&, const Capabilities&) = nullptr;
  // Null, or a refusal beyond dtypes, as a sentence. May see partly known facts. Pure.
  Status (*can_run)(const NodeView&, const Capabilities&) = nullptr;
  // Null, or how constant input i is laid out. Pure.
  Result<Packing> (*packing)(const NodeView&, int input, const Capabilities&) = nullptr;
};

namespace internal {
template <auto Make>
Result<Recipe> MakeErased(const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<oncilla::internal::AttrsOf<Make>>(*node.attrs));
  return Make(attrs, node, caps);
}
template <auto Check>
Status CheckErased(const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<oncilla::internal::AttrsOf<Check>>(*node.attrs));
  return Check(attrs, node, caps);
}
template <auto Pack>
Result<Packing> PackErased(const NodeView& node, int input, const Capabilities& caps) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<oncilla::internal::AttrsOf<Pack>>(*node.attrs));
  return Pack(attrs, node, input, caps);
}
}  // namespace internal

// Typed functions with their attributes read: Row<Make>, and where needed
//   .CanRun<Check>(): Status Check(const Attrs&, const NodeView&, const Capabilities&)
//   .Packs<Pack>():   Result<Packing> Pack(const Attrs&, const NodeView&, int, const Capabilities&)
struct RowBuilder : KernelRow {
  template <auto Check>
  constexpr RowBuilder CanRun() const {
    RowBuilder row = *this;
    row.can_run = &internal::CheckErased<Check>;
    return row;
  }
  template <auto Pack>
  constexpr RowBuilder Packs() const {
    RowBuilder row = *this;
    row.packing = &internal::PackErased<Pack>;
    return row;
  }
};
template <auto Make>
constexpr RowBuilder Row(std::string_view op, DTypeSet dtypes) {
  return RowBuilder{{op, dtypes, &internal::MakeErased<Make>, nullptr, nullptr}};
}

// The row of an op, from the families listed in kernels.cc; null when there is none.
const KernelRow* FindKernel(std::string_view op);

// What CanRun of the device answers: row, dtypes, sizes, the row's own refusal.
Result<const KernelRow*> FindRunnable(const NodeView& node, const Capabilities& caps);

}  // namespace oncilla::opencl
