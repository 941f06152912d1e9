// Printing and checking of recipes. No OpenCL here.
#include "backends/opencl/recipes/recipe.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

namespace oncilla::opencl {
namespace {

struct ArgPrinter {
  std::ostream& out;
  void operator()(In a) {
    out << "in" << a.index;
    if (a.offset > 0 || a.bytes > 0) out << "[" << a.offset << "+" << a.bytes << "]";
    if (a.seldom) out << "?";
  }
  void operator()(Out a) { out << "out" << a.index; }
  void operator()(Scratch a) { out << "scratch[" << a.offset << "+" << a.bytes << "]"; }
  void operator()(Offset a) { out << "offset:" << (a.output ? "out" : "in") << a.index; }
  void operator()(ErrorWord) { out << "error"; }
  void operator()(Local a) { out << "local:" << a.bytes; }
  void operator()(int32_t v) { out << "i32:" << v; }
  void operator()(uint32_t v) { out << "u32:" << v; }
  void operator()(int64_t v) { out << "i64:" << v; }
  void operator()(uint64_t v) { out << "u64:" << v; }
  void operator()(float v) {
    char text[32];  // the shortest form that reads back as the same float
    const auto end = std::to_chars(text, text + sizeof(text), v).ptr;
    out << "f32:" << std::string_view(text, static_cast<size_t>(end - text));
  }
};

// Prints "64" or "64,2": trailing ones are left out.
void PrintSizes(std::ostream& out, const std::array<int64_t, 3>& sizes) {
  size_t count = 3;
  while (count > 1 && sizes[count - 1] == 1) --count;
  for (size_t i = 0; i < count; ++i) out << (i == 0 ? "" : ",") << sizes[i];
}

struct ArgChecker {
  const Recipe& recipe;
  const Capabilities& caps;
  int inputs, outputs;
  int64_t& local_bytes;

  Status Operand(bool output, int index) const {
    if (index >= 0 && index < (output ? outputs : inputs)) return Status();
    return Internal("there is no ", output ? "output " : "input ", index);
  }
  Status operator()(In a) const {
    if (a.offset < 0 || a.bytes < 0 || a.offset % caps.base_alignment != 0) {
      return Internal("input ", a.index, " from byte ", a.offset, " on, ", a.bytes, " bytes");
    }
    return Operand(false, a.index);
  }
  Status operator()(Out a) const { return Operand(true, a.index); }
  Status operator()(Scratch a) const {
    if (a.offset < 0 || a.bytes <= 0 || a.offset % caps.base_alignment != 0 ||
        a.offset > recipe.scratch_bytes - a.bytes) {
      return Internal("scratch ", a.offset, "+", a.bytes, " of ", recipe.scratch_bytes);
    }
    return Status();
  }
  Status operator()(Offset a) const {
    if (a.unit <= 0) return Internal("an offset in elements of ", a.unit, " bytes");
    return Operand(a.output, a.index);
  }
  Status operator()(Local a) const {
    if (a.bytes <= 0) return Internal("local memory of ", a.bytes, " bytes");
    local_bytes = SaturatingAdd(local_bytes, a.bytes);
    return Status();
  }
  template <class T>
  Status operator()(const T&) const {
    return Status();
  }
};

Status CheckDispatch(const Recipe& recipe, const Dispatch& d, const Capabilities& caps, int inputs,
                     int outputs) {
  if (d.source == nullptr || d.entry.empty()) return Internal("it names no kernel");
  int64_t group = 1;
  for (size_t i = 0; i < 3; ++i) {
    if (d.local[i] < 1 || d.global[i] < 0 || d.global[i] % d.local[i] != 0) {
      return Internal("global size ", d.global[i], " is not a multiple of local size ", d.local[i]);
    }
    group = SaturatingMul(group, d.local[i]);
  }
  if (group > caps.max_work_group) {
    return Unsupported("it needs groups of ", group, ", the device has ", caps.max_work_group);
  }
  int64_t local_bytes = 0;
  for (const Arg& arg : d.args) {
    ONCILLA_TRY(std::visit(ArgChecker{recipe, caps, inputs, outputs, local_bytes}, arg));
  }
  if (local_bytes > caps.local_memory) {
    return Unsupported("it needs ", local_bytes, " bytes of local memory, the device has ",
                       caps.local_memory);
  }
  if (caps.max_loop_trips > 0 && d.longest_loop >= caps.max_loop_trips) {
    return Unsupported("it loops ", d.longest_loop, " times, the device's driver stops loops at ",
                       caps.max_loop_trips);
  }
  return Status();
}

}  // namespace

Scratch Recipe::AddScratch(int64_t bytes, const Capabilities& caps) {
  const int64_t offset = scratch_bytes;
  scratch_bytes = SaturatingAdd(offset, RoundUp(bytes, caps.base_alignment));
  return {offset, bytes};
}

Places PlacesOf(const Dispatch& dispatch, const Capabilities& caps) {
  Places places;
  if (caps.sub_buffers) return places;
  places.entry = dispatch.entry;
  for (size_t i = 0; i < dispatch.args.size(); ++i) {
    const Arg& arg = dispatch.args[i];
    if (std::holds_alternative<In>(arg) || std::holds_alternative<Out>(arg) ||
        std::holds_alternative<Scratch>(arg)) {
      places.operands.push_back(i < dispatch.names.size() ? dispatch.names[i] : "");
    }
  }
  return places;
}

std::string ToString(const Recipe& recipe) {
  std::ostringstream out;
  for (const Dispatch& d : recipe.dispatches) {
    out << d.source->path << ":" << d.entry;
    for (const auto& [name, value] : d.defines) out << " " << name << "=" << value;
    out << " (";
    for (size_t i = 0; i < d.args.size(); ++i) {
      if (i > 0) out << " ";
      std::visit(ArgPrinter{out}, d.args[i]);
    }
    out << ") global=";
    PrintSizes(out, d.global);
    out << " local=";
    PrintSizes(out, d.local);
    if (d.longest_loop > 0) out << " loop=" << d.longest_loop;
    out << "\n";
    for (size_t at = 0; at < d.generated.size();) {
      const size_t end = std::min(d.generated.find('\n', at), d.generated.size());
      out << "  | " << std::string_view(d.generated).substr(at, end - at) << "\n";
      at = end + 1;
    }
  }
  if (recipe.scratch_bytes > 0) out << "scratch=" << recipe.scratch_bytes << "\n";
  if (const Decision& d = recipe.decision; d.tuned) {
    out << "tuned: " << d.layer << " -> " << d.choice;
    if (!d.driver.empty()) out << " (measured with another driver, " << d.driver << ")";
    out << "\n";
  }
  return std::move(out).str();
}

std::string NameOf(const Recipe& recipe) {
  std::string name;
  for (const Dispatch& d : recipe.dispatches) {
    std::string_view path = d.source->path;
    path = path.substr(0, path.rfind('.'));
    if (!name.empty()) name += " + ";
    name += path;
    // The main kernel of a file has the file's name.
    if (path.substr(path.find('/') + 1) != d.entry) name += ":" + d.entry;
    for (const auto& [define, value] : d.defines) {
      const bool number = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
      if (number && value != "0" && value != "1") name += " " + define + "=" + value;
    }
  }
  return name.empty() ? "nothing" : name;
}

std::string DescriptionOf(const Recipe& recipe) {
  std::string text = ToString(recipe);
  if (!text.empty()) text.pop_back();  // the last newline
  return NameOf(recipe) + (text.empty() ? "" : "\n") + text;
}

Status CheckRecipe(const Recipe& recipe, const Capabilities& caps, int inputs, int outputs) {
  if (recipe.scratch_bytes < 0 || recipe.scratch_bytes > caps.max_allocation) {
    return Exhausted("it needs ", recipe.scratch_bytes,
                     " bytes of scratch, one buffer holds at most ", caps.max_allocation);
  }
  for (const Dispatch& d : recipe.dispatches) {
    const Status status = CheckDispatch(recipe, d, caps, inputs, outputs);
    if (!status.ok()) {
      return oncilla::In(status, StrCat("kernel ", d.entry, " of ",
                                        d.source == nullptr ? "no source" : d.source->path));
    }
  }
  return Status();
}

std::string_view MoveType(DType dtype) {
  switch (BitsOf(dtype)) {
    case 8:
      return "uchar";
    case 16:
      return "ushort";
    case 32:
      return "uint";
    case 64:
      return "ulong";
    default:
      return "";
  }
}

Result<const KernelRow*> FindRunnable(const NodeView& node, const Capabilities& caps) {
  const std::string_view op = node.op->name;
  if (node.op->traits.host_only) return Unsupported("opencl: ", op, " runs on the host");
  if (node.op->traits.data_dependent) {
    return Unsupported("opencl: the sizes of ", op, "'s outputs depend on data");
  }
  const KernelRow* row = FindKernel(op);
  if (row == nullptr) return Unsupported("opencl has no kernel for ", op);
  bool first = true;
  auto check = [&](const Fact& fact, bool plan_input) -> Status {
    if (fact.absent() || plan_input) return Status();
    if (fact.kind != ValueKind::kTensor) return Unsupported("opencl: ", op, " takes only tensors");
    if (fact.dtype == DType::kString) return Unsupported("opencl: strings live on the host");
    if ((Set(fact.dtype) & kSmall) != 0) {
      return Unsupported("opencl has no ", op, " for ", fact.dtype);
    }
    if (fact.dtype == DType::kF64 && !caps.fp64) {
      return Unsupported("opencl: ", op, " for f64, and the device has no double arithmetic");
    }
    if (fact.shape.known()) {
      const int64_t bytes = fact.desc().bytes();
      if (bytes > caps.max_allocation) {
        return Exhausted("opencl: a tensor of ", bytes, " bytes, and one buffer holds at most ",
                         caps.max_allocation);
      }
    }
    return Status();
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Fact& fact = node.inputs[i];
    const bool plan_input = node.op->traits.IsPlanInput(i);
    if (first && !fact.absent() && !plan_input && fact.kind == ValueKind::kTensor &&
        (row->dtypes & Set(fact.dtype)) == 0) {
      return Unsupported("opencl has no ", op, " for ", fact.dtype);
    }
    first = false;
    ONCILLA_TRY(check(fact, plan_input));
  }
  for (const Fact& fact : node.outputs) ONCILLA_TRY(check(fact, false));
  if (row->can_run != nullptr) ONCILLA_TRY(row->can_run(node, caps));
  return row;
}

}  // namespace oncilla::opencl
