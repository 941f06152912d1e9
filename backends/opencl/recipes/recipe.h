// Recipe: the launches for one node, as plain data.
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

// Arguments. A tensor operand is a buffer that begins at the tensor's first element, wherever its
// memory is; an absent or empty one is some small buffer that must not be accessed.
struct In {
  int index;
  // For a constant whose packing has parts: where the part begins, a multiple of
  // Capabilities::base_alignment, and its bytes; 0: all that follow.
  int64_t offset = 0, bytes = 0;
  // Rarely read; time estimates ignore it.
  bool seldom = false;
};
struct Out {
  int index;
};
// Part of the step's scratch memory, see Recipe::AddScratch.
struct Scratch {
  int64_t offset, bytes;
};
// A long: the distance, in elements of `unit` bytes, from the start of the buffer to the operand.
// With it the operand may be a view that the device cannot address as a buffer of its own; without
// it such a view is copied. It may precede or follow its operand anywhere in the list.
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
  // The largest trip count of any loop of one work-item at this geometry; some drivers limit it.
  int64_t longest_loop = 0;
  // OpenCL C between the defines and the source, for kernels made at run time.
  std::string generated = {};
};

// What a recipe chose among several choices (choices.h); empty without a table.
struct Decision {
  std::string layer = {};    // the class of the layer, as tables name it
  std::string choice = {};   // the choice that was made
  bool tuned = false;        // it comes from a table,
  std::string driver = {};   // from measurements with this other version of the driver
  std::string ignored = {};  // the table's choice, if it is not valid here
  std::vector<std::string> choices = {};
};

struct Recipe {
  std::vector<Dispatch> dispatches = {};  // run in this order
  int64_t scratch_bytes = 0;
  Decision decision = {};

  // Reserves `bytes` at an aligned offset.
  Scratch AddScratch(int64_t bytes, const Capabilities& caps);
};

// What a driver without sub-buffers needs to know about the kernel (places.h); empty for others.
Places PlacesOf(const Dispatch& dispatch, const Capabilities& caps);

// "norm/softmax.cl:softmax_rows T=f32 GROUP=64 (in0 out0 i32:1000) global=64 local=64 loop=16", one
// line per dispatch; then, if a table decided, "tuned: product 64x64x64 f32 -> TM=8 ..".
std::string ToString(const Recipe& recipe);
// Its kernels and their sizes in short: "conv/winograd:input + matmul/panels V=16 ROWS=8 +
// conv/winograd:output"; "nothing" if none is launched.
std::string NameOf(const Recipe& recipe);
// The description of a kernel made from it: the name, and the text in the lines below.
std::string DescriptionOf(const Recipe& recipe);

// Refuses a recipe that is inconsistent or that this device cannot launch; drivers abort on some of
// these. `inputs` and `outputs` are the node's counts.
Status CheckRecipe(const Recipe& recipe, const Capabilities& caps, int inputs, int outputs);

// The smallest multiple of `step` that is at least n.
constexpr int64_t RoundUp(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
constexpr int64_t DivideUp(int64_t n, int64_t step) { return (n + step - 1) / step; }

// The OpenCL type of the same size as an element, for kernels that only move elements: "uint".
std::string_view MoveType(DType dtype);

struct KernelRow {
  std::string_view op;
  DTypeSet dtypes = kFixedSize;  // of input 0
  // Called with fixed facts and known plan inputs. Pure.
  Result<Recipe> (*make)(const NodeView&, const Capabilities&) = nullptr;
  // Null, or returns a refusal beyond dtypes, as a sentence. Facts may be partly known. Pure.
  Status (*can_run)(const NodeView&, const Capabilities&) = nullptr;
  // Null, or returns the layout of constant input i. Pure.
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

// The row of an op, from the families listed in kernels.cc; null if there is none.
const KernelRow* FindKernel(std::string_view op);

// Implements CanRun of the device: checks row, dtypes, sizes, and the row's own refusal.
Result<const KernelRow*> FindRunnable(const NodeView& node, const Capabilities& caps);

}  // namespace oncilla::opencl
