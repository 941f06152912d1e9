// Recipes of the elementwise family: one op of the table, or a fused program of several, becomes
// one kernel whose body is generated here from the table's own expressions.
//
// The code depends on the program, the dtypes and the pattern of the broadcast (which operands are
// dense, scalar or broadcast, along how many merged axes), never on sizes. Integers are computed in
// 64 bits and truncated, as on the host; compilers narrow that again if it makes no difference.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/broadcast.h"
#include "engine/ops/math/elementwise_program.h"
#include "engine/ops/op_set.h"

namespace oncilla::opencl {
namespace {

using Kind = ElementwiseOperand::Kind;

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A number of the program as OpenCL C in the carrier's type. `t` is the dtype that an operand in
// its place would have.
std::string Literal(double number, DType t) {
  const char carrier = CarrierOf(t);
  if (carrier == 'f' || carrier == 'd') {
    std::string text;
    if (std::isnan(number)) {
      text = "NAN";
    } else if (std::isinf(number)) {
      text = number < 0 ? "-INFINITY" : "INFINITY";
    } else {
      char digits[32];
      const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
      text.assign(digits, end);
      if (text.find_first_of(".e") == text.npos) text += ".0";
    }
    const std::string value = StrCat("((", CarrierType(carrier), ")(", text, "))");
    // The number is rounded to the dtype, as a constant operand would be.
    return t == DType::kF16 || t == DType::kBF16 ? StrCat("CUT_f_", Name(t), "(", value, ")")
                                                 : value;
  }
  uint64_t bits = 0;
  if (t == DType::kBool) {
    bits = number != 0;
  } else if (carrier == 'l') {
    constexpr double kLimit = 0x1p63;
    const int64_t value = std::isnan(number) ? 0
                          : number >= kLimit ? std::numeric_limits<int64_t>::max()
                          : number < -kLimit ? std::numeric_limits<int64_t>::min()
                                             : static_cast<int64_t>(number);
    bits = static_cast<uint64_t>(value);
  } else {
    bits = std::isnan(number) || number <= 0 ? 0
           : number >= 0x1p64                ? std::numeric_limits<uint64_t>::max()
                                             : static_cast<uint64_t>(number);
  }
  return StrCat("CUT_", std::string(1, carrier), "_", Name(t), "((", CarrierType(carrier), ")",
                bits, "ul)");
}

// The bound that an absent operand stands for.
std::string Bound(bool lowest, DType t) {
  switch (CarrierOf(t)) {
    case 'f':
      return lowest ? "(-INFINITY)" : "INFINITY";
    case 'd':
      return lowest ? "((double)-INFINITY)" : "((double)INFINITY)";
    case 'l':
      return lowest ? "LONG_MIN" : "LONG_MAX";
    default:
      return lowest ? "0ul" : "ULONG_MAX";
  }
}

// The expression with operands in place of x, y and z, in the vocabulary of one carrier.
std::string Spell(std::string_view text, char carrier, std::span<const std::string> operands,
                  const ElementwiseCall& call) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (!IsWordChar(text[at])) {
      out += text[at++];
      continue;
    }
    size_t end = at;
    // A number such as "1.0507e3" is one word, although it holds a point.
    const bool number = std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    while (end < text.size() && (IsWordChar(text[end]) || (number && text[end] == '.'))) ++end;
    const std::string_view word = text.substr(at, end - at);
    at = end;
    if (word == "x" || word == "y" || word == "z") {
      out += operands[static_cast<size_t>(word[0] - 'x')];
    } else if (word == "alpha" || word == "beta") {
      const DType type = carrier == 'd' ? DType::kF64 : DType::kF32;
      out += Literal(ParameterAs(type, word == "alpha" ? call.alpha : call.beta), type);
    } else if (!number && at < text.size() && text[at] == '(') {
      out += StrCat(word, "_", std::string(1, carrier));
    } else {
      out += word;
    }
  }
  return out;
}

// Whether an integer expression gives the same bits for signed and unsigned operands. Such
// expressions are computed unsigned, because overflow of signed integers is undefined in C.
bool IsSignBlind(std::string_view text) {
  for (std::string_view word : {"<", ">", "Div", "Rem", "Shr", "Pow", "Abs", "Min", "Max"}) {
    if (text.find(word) != text.npos) return false;
  }
  return true;
}

// One statement, which computes the result of a step in the carrier of its dtype.
std::string Statement(const ElementwiseStep& step, size_t index, bool last) {
  const ElementwiseRow& row = *step.call.row;
  const DType compute = step.compute;
  char carrier = CarrierOf(compute);
  const std::string_view text = row.text[static_cast<int>(ClassOf(compute))];
  const bool to_bool = (row.flags & kToBool) != 0;
  const bool is_cast = (row.flags & kIsCast) != 0;
  const bool unsigned_instead = carrier == 'l' && !is_cast && IsSignBlind(text);
  if (unsigned_instead) carrier = 'u';

  std::vector<std::string> operands;
  for (int i = 0; i < row.inputs; ++i) {
    const ElementwiseOperand o = static_cast<size_t>(i) < step.operands.size()
                                     ? step.operands[static_cast<size_t>(i)]
                                     : ElementwiseOperand();
    const bool condition = i == 0 && (row.flags & kConditionFirst) != 0;
    std::string operand;
    switch (o.kind) {
      case Kind::kInput:
        operand = StrCat("v", o.index);
        break;
      case Kind::kStep:
        operand = StrCat("t", o.index);
        break;
      case Kind::kNumber:
        operand = Literal(o.number, compute);
        break;
      case Kind::kAbsent:
        operand = Bound(i == 1, compute);
        break;
    }
    operands.push_back(unsigned_instead && !condition ? StrCat("((ulong)", operand, ")") : operand);
  }
  std::string out;
  if ((row.flags & kDivides) != 0 && IsInteger(compute)) {
    out += StrCat("  if (", operands[1], " == 0) REPORT(ERROR_DIVISION); \\\n");
  }
  std::string value = Spell(text, carrier, operands, step.call);
  if (to_bool) {
    value = StrCat("(ulong)((", value, ") ? 1 : 0)");
  } else if (IsFloat(step.dtype) && IsFloat(compute) && !is_cast) {
    // Half and bfloat16 keep the precision of float until they are stored.
    value = StrCat("(", CarrierType(CarrierOf(step.dtype)), ")(", value, ")");
  } else if (!(last && is_cast && (step.dtype == DType::kF16 || step.dtype == DType::kBF16))) {
    value = StrCat("CUT_", std::string(1, carrier), "_", Name(step.dtype), "((",
                   CarrierType(carrier), ")(", value, "))");
  } else {
    value = StrCat("(float)(", value, ")");  // the store rounds
  }
  out +=
      StrCat("  const ", CarrierType(CarrierOf(step.dtype)), " t", index, " = ", value, "; \\\n");
  return out;
}

// How the work-items are laid out.
struct Grid {
  bool flat = false;   // one axis of work-items; places are found by division
  bool quads = false;  // each takes four elements along the innermost axis
  IndexType index;
  int64_t group = 1, rows = 1;  // work-items of a group along the innermost axes
  std::array<int64_t, 3> groups = {1, 1, 1};
};

// Whether each work-item takes four elements. Elements of fewer than four bytes are read and
// written four at a time, so that a work-item of a GPU moves whole words. Elements of four bytes
// are, too, if enough work-items remain to fill the device: an H200 then moves 4150 GB/s, and with
// single elements 2700. (CPU devices vectorise across work-items instead.)
bool TakesQuads(const NodeView& node, const BroadcastAxes& axes, const Capabilities& caps) {
  if (TuningOf(caps).lines || axes.rank == 0 || axes.sizes[axes.rank - 1] % 4 != 0) return false;
  int64_t least = 8, most = 0;
  const auto look = [&](const Fact& fact) {
    if (fact.absent()) return;
    const int64_t bytes = BytesOf(fact.dtype);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  };
  std::ranges::for_each(node.inputs, look);
  look(node.outputs[0]);
  constexpr int64_t kFills = 1024;  // work-items of a core
  return most <= 4 && (least < 4 || axes.elements / 4 >= kFills * caps.cores());
}

Grid Layout(const BroadcastAxes& axes, std::span<const Shape> shapes, bool quads,
            const Capabilities& caps) {
  Grid grid;
  grid.quads = quads;
  const int64_t step = quads ? 4 : 1;
  int64_t most = axes.elements;
  for (const Shape& s : shapes) most = std::max(most, s.elements());
  const Tuning& tuning = TuningOf(caps);
  grid.index = IndexType(most, std::numeric_limits<int32_t>::max() - step * tuning.flat_group);
  const int rank = std::max(axes.rank, 1);
  const int64_t inner = axes.rank > 0 ? axes.sizes[axes.rank - 1] / step : 1;
  const int64_t second = rank > 1 ? axes.sizes[rank - 2] : 1;
  const int64_t items = axes.elements / step;
  const int64_t outer = inner * second == 0 ? 0 : items / (inner * second);
  // Short rows would leave most of a group idle.
  grid.flat = rank > 1 && (inner < tuning.short_row || second > kMostGroups || outer > kMostGroups);
  // On CPU devices, half a group past the end of a row costs less than another group.
  const bool narrow =
      !grid.flat && rank > 1 && inner < (tuning.lines ? tuning.flat_group / 2 : tuning.flat_group);
  grid.group = caps.Group(narrow ? tuning.loop_group : tuning.flat_group);
  if (grid.flat || rank == 1) {
    if (tuning.lines) grid.group = caps.Group(tuning.line_items);
    grid.groups = {DivideUp(items, grid.group), 1, 1};
  } else {
    if (tuning.lines) {
      // A core runs the work-items of a group in a loop, so a group of a few rows costs less than a
      // group per row.
      grid.rows = std::max<int64_t>(caps.Group(tuning.line_items) / grid.group, 1);
    }
    grid.groups = {DivideUp(inner, grid.group), DivideUp(second, grid.rows), outer};
  }
  return grid;
}

// Writes the macro INDEX, and collects the sizes and strides that it and the loads read.
class IndexCode {
 public:
  using Sizes = std::vector<std::pair<std::string, int64_t>>;  // parameters and their values

  IndexCode(const BroadcastAxes& axes, const Grid& grid)
      : axes_(axes), grid_(grid), rank_(std::max(axes.rank, 1)) {}

  std::string type() const { return grid_.index.name(); }
  // Sizes and strides count from the innermost axis here.
  int64_t Size(int i) const { return axes_.rank > 0 ? axes_.sizes[axes_.rank - 1 - i] : 1; }
  int64_t Stride(int operand, int i) const {
    return axes_.rank > 0 ? axes_.strides[static_cast<size_t>(operand)][axes_.rank - 1 - i] : 0;
  }

  // The index of the operand's element for element i of the output.
  std::string Place(int operand, Sizes& sizes) const {
    if (axes_.dense(operand)) return "i";
    std::string place;
    for (int i = 0; i < rank_; ++i) {
      const int64_t stride = Stride(operand, i);
      if (stride == 0) continue;
      if (!place.empty()) place += " + ";
      if (i == 0) {  // dense tensors step by one along their last axis
        place += "a0";
        continue;
      }
      const std::string name = StrCat("s", operand, "_", i);
      place += StrCat("a", i, " * ", name);
      sizes.emplace_back(name, stride);
    }
    return place.empty() ? "0" : place;
  }

  Sizes Bounds() const {
    // The outermost size is only needed as a bound; with several axes of work-items it is not
    // needed at all.
    const int count =
        rank_ == 1 || grid_.flat ? rank_ : std::max(rank_ - 1, grid_.rows > 1 ? 2 : 1);
    Sizes sizes;
    for (int i = 0; i < count; ++i) sizes.emplace_back(StrCat("n", i), Size(i));
    return sizes;
  }

  std::string Index() const {
    const std::string id = StrCat("const ", type(), " ");
    const std::string first =
        grid_.quads ? StrCat("4 * (", type(), ")get_global_id(0)") : "get_global_id(0)";
    if (rank_ == 1) {
      return StrCat(id, "i = ", first, "; if (i >= n0) return; ", id, "a0 = i;");
    }
    std::string code;
    if (grid_.flat) {
      code = StrCat(id, "i = ", first, "; ", type(), " r = i; ");
      for (int i = 0; i < rank_ - 1; ++i) {
        code += StrCat(id, "a", i, " = r % n", i, "; r /= n", i, "; ");
      }
      return code + StrCat(id, "a", rank_ - 1, " = r; if (r >= n", rank_ - 1, ") return;");
    }
    code = StrCat(id, "a0 = ", first, "; if (a0 >= n0) return; ", id, "a1 = get_global_id(1); ");
    if (grid_.rows > 1) code += "if (a1 >= n1) return; ";
    if (rank_ == 2) return code + StrCat(id, "i = a1 * n0 + a0;");
    code += StrCat(id, "i = ((", type(), ")get_global_id(2) * n1 + a1) * n0 + a0; ");
    code += StrCat(type(), " r = get_global_id(2); ");
    for (int i = 2; i < rank_ - 1; ++i) {
      code += StrCat(id, "a", i, " = r % n", i, "; r /= n", i, "; ");
    }
    return code + StrCat(id, "a", rank_ - 1, " = r;");
  }

 private:
  const BroadcastAxes& axes_;
  const Grid& grid_;
  const int rank_;
};

Result<Recipe> MakeElementwise(const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const ElementwiseProgram program, ProgramOf(node));
  std::vector<Shape> shapes;
  for (const Fact& fact : node.inputs) {
    shapes.push_back(fact.absent() ? Shape() : fact.shape.ToShape());
  }
  const BroadcastAxes axes = MergeBroadcast(node.outputs[0].shape.ToShape(), shapes);
  const Grid grid = Layout(axes, shapes, TakesQuads(node, axes, caps), caps);
  const IndexCode index(axes, grid);

  DispatchBuilder b(cl::kElementwiseProgram, "program", grid.index);
  std::string params, quads, loads;
  IndexCode::Sizes sizes = index.Bounds();
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (node.inputs[k].absent()) continue;
    const std::string_view dtype = Name(node.inputs[k].dtype);
    params += StrCat("__global const MEM_", dtype, "* p", k, ", ");
    b.Arg(StrCat("p", k), In{static_cast<int>(k)});
    const std::string place = index.Place(static_cast<int>(k), sizes);
    const auto operand = static_cast<int>(k);
    std::string from = StrCat("(p", k, ", ", place, ")");
    if (grid.quads && (axes.dense(operand) || index.Stride(operand, 0) != 0)) {
      quads += StrCat("  const MEM4_", dtype, " w", k, " = *(__global const MEM4_", dtype, "*)(p",
                      k, " + ", place, "); \\\n");
      from = StrCat("((const MEM_", dtype, "*)&w", k, ", q)");
    }
    loads += StrCat("  const ", CarrierType(CarrierOf(node.inputs[k].dtype)), " v", k, " = LOAD_",
                    dtype, from, "; \\\n");
  }
  for (const auto& [name, value] : sizes) {
    params += StrCat("const ", index.type(), " ", name, ", ");
    b.Index(name, value);
  }
  std::string steps;
  bool divides = false;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const ElementwiseStep& step = program.steps[i];
    steps += Statement(step, i, i + 1 == program.steps.size());
    divides |= (step.call.row->flags & kDivides) != 0 && IsInteger(step.compute);
  }
  b.Arg("out", Out{0});
  if (divides) b.Error();
  int64_t parameter_bytes = 0;
  for (const Arg& arg : b.dispatch().args) {
    const bool number = std::holds_alternative<int32_t>(arg);
    parameter_bytes += number ? 4 : caps.sub_buffers ? 8 : 16;  // an operand may have an offset
  }
  if (parameter_bytes > caps.parameter_bytes) {
    return Unsupported("opencl: a program of ", node.inputs.size(), " inputs along ", axes.rank,
                       " axes has too many parameters for one kernel");
  }
  b.Define({{"GROUP", StrCat(grid.group)},
            {"ROWS", StrCat(grid.rows)},
            {"OUT", TypeName(node.outputs[0].dtype)},
            {"RESULT", StrCat("t", program.steps.size() - 1)},
            {"LAST_PARAMS", divides ? ", ERROR_PARAMS" : ""}});
  b.Generated(StrCat("#define PARAMS ", params, "\n#define INDEX ", index.Index(),
                     grid.quads ? StrCat("\n#define LOADS \\\n", quads) : "",
                     "\n#define STEPS \\\n", loads, steps));
  return b.Groups(grid.groups, {grid.group, grid.rows, 1}).Alone();
}

// A program may compute in double although no input or output is a double.
Status CheckElementwise(const NodeView& node, const Capabilities& caps) {
  ONCILLA_ASSIGN(const ElementwiseProgram program, ProgramOf(node));
  for (const ElementwiseStep& step : program.steps) {
    if (!caps.fp64 && (step.dtype == DType::kF64 || step.compute == DType::kF64)) {
      return Unsupported("opencl: ", node.op->name,
                         " computes in f64, and the device has no double arithmetic");
    }
  }
  return Status();
}

}  // namespace

std::span<const KernelRow> ElementwiseKernels() {
  static const std::vector<KernelRow> rows = [] {
    std::vector<KernelRow> out;
    for (const OpDef& op : ElementwiseOps()) {
      out.push_back({op.name, FirstDTypes(op), &MakeElementwise, &CheckElementwise, nullptr});
    }
    return out;
  }();
  return rows;
}

}  // namespace oncilla::opencl
