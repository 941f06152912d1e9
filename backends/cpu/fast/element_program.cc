// Translates elementwise programs to calls of lane functions. Quantised inputs and results are
// recognised by their steps, and scaled as they are read and written.
#include "backends/cpu/fast/element_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/fast/tiles.h"

namespace oncilla::cpu {
namespace {

using Kind = ElementwiseOperand::Kind;

Stream MakeStream(const BroadcastAxes& axes, int k, DType dtype) {
  using Layout = Stream::Layout;
  Stream s;
  s.dtype = dtype;
  if (axes.scalar(k)) {
    s.layout = Layout::kScalar;
  } else if (!axes.dense(k)) {
    // Is the input dense along the last axes and repeated along all others?
    int64_t period = 1;
    int i = axes.rank - 1;
    for (; i >= 0 && axes.strides[k][i] == period; --i) period *= axes.sizes[i];
    const bool repeats = std::all_of(axes.strides[k].begin(), axes.strides[k].begin() + i + 1,
                                     [](int64_t stride) { return stride == 0; });
    s.layout = period > 1 && repeats ? Layout::kRow : Layout::kStrided;
    s.period = period;
  }
  return s;
}

// The number of calls in an expression that cost more than an instruction or two.
int HeavyCalls(std::string_view text) {
  int calls = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] < 'A' || text[i] > 'Z') continue;
    size_t end = i;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    const std::string_view word = text.substr(i, end - i);
    constexpr std::string_view kLight[] = {"Select", "Min",  "Max", "Abs", "Floor",
                                           "Round",  "Ceil", "K",   "Fma"};
    const bool light = std::find(std::begin(kLight), std::end(kLight), word) != std::end(kLight);
    if (!light && end < text.size() && text[end] == '(') ++calls;
    i = end;
  }
  return calls;
}

// Rounds each float to what 16 bits hold.
template <DType kStored>
void RoundedAs(const float* x, const float*, const float*, float* out, int64_t n, float, float) {
  constexpr int64_t kRun = 256;
  uint16_t stored[kRun];
  for (int64_t begin = 0; begin < n; begin += kRun) {
    const int64_t count = std::min(kRun, n - begin);
    FromFloats(x + begin, count, kStored, stored);
    ToFloats(kStored, stored, count, out + begin);
  }
}

class Translator {
 public:
  Translator(const ElementwiseProgram& program, const NodeView& node, const BroadcastAxes& axes)
      : program_(program), node_(node), axes_(axes) {}

  // Returns nullopt if the program cannot run on vectors of float.
  std::optional<FastProgram> Run() {
    for (size_t k = 0; k < node_.inputs.size(); ++k) {
      // An input that is not given is never read, so any layout will do.
      const DType dtype = node_.inputs[k].absent() ? DType::kF32 : node_.inputs[k].dtype;
      out_.streams.push_back(MakeStream(axes_, static_cast<int>(k), dtype));
    }
    FindQuantised();
    FindByteSum();
    const size_t steps = program_.steps.size() - (out_.result_scale ? quantising_ : 0);
    for (size_t i = 0; i < steps; ++i) {
      if (dequantised_[i] >= 0) {
        value_of_step_.push_back(dequantised_[i]);
      } else if (!Translate(program_.steps[i])) {
        return std::nullopt;
      }
    }
    out_.result = out_.result_scale ? ValueOf(quantised_, false) : value_of_step_.back();
    if (out_.byte_sum) out_.cost = 1;
    AssignTiles();
    return std::move(out_);
  }

 private:
  static constexpr int kConstants = 1000, kTiles = 2000;  // first indices until they are known

  // The step that computes operand 0 of `step`, if it is an `op` whose result nothing else reads
  // and whose other operands are numbers (or, with `given`, inputs of one number); otherwise null.
  const ElementwiseStep* Before(const ElementwiseStep& step, std::string_view op,
                                bool given = false) const {
    const ElementwiseOperand& o = step.operands[0];
    if (o.kind != Kind::kStep || step_uses_[static_cast<size_t>(o.index)] != 1) return nullptr;
    const ElementwiseStep& before = program_.steps[static_cast<size_t>(o.index)];
    return IsStep(before, op, given) ? &before : nullptr;
  }
  bool IsStep(const ElementwiseStep& step, std::string_view op, bool given = false) const {
    if (step.call.row->name != op || (step.dtype != DType::kF32 && op != "Cast")) return false;
    return std::all_of(step.operands.begin() + 1, step.operands.end(), [&](const auto& o) {
      return o.kind == Kind::kNumber || (given && GivenNumber(o) >= 0);
    });
  }
  // The input that gives an operand as a single f32; -1 if there is none.
  int GivenNumber(const ElementwiseOperand& o) const {
    if (o.kind != Kind::kInput) return -1;
    const auto k = static_cast<size_t>(o.index);
    const bool one = !node_.inputs[k].absent() && out_.streams[k].dtype == DType::kF32 &&
                     out_.streams[k].layout == Stream::Layout::kScalar;
    return one ? o.index : -1;
  }
  static float NumberOf(const ElementwiseStep& step, size_t i) {
    return static_cast<float>(step.operands[i].number);
  }

  // Finds the steps that only dequantise an input as it is read, Mul(Sub(Cast(x), zero), scale) or
  // Sub(Cast(x), zero), and the last steps that quantise the result,
  // Cast(Clip(Add(Round(Div(y, scale)), zero), least, most)) or
  // Cast(Clip(Round(Add(Mul(y, scale), zero)), least, most)).
  void FindQuantised() {
    const size_t count = program_.steps.size();
    dequantised_.assign(count, -1);
    step_uses_.assign(count, 0);
    std::vector<int> input_uses(node_.inputs.size());
    for (const ElementwiseStep& step : program_.steps) {
      for (const ElementwiseOperand& o : step.operands) {
        if (o.kind == Kind::kStep) ++step_uses_[static_cast<size_t>(o.index)];
        if (o.kind == Kind::kInput) ++input_uses[static_cast<size_t>(o.index)];
      }
    }
    // Steps with a scale are found first, since the form without one is a part of them.
    for (const bool scaled : {true, false}) {
      for (size_t i = 0; i < count; ++i) FindDequantised(program_.steps[i], scaled, input_uses);
    }
    FindResultScale();
  }
  void FindDequantised(const ElementwiseStep& last, bool scaled, std::span<const int> input_uses) {
    if (!IsStep(last, scaled ? "Mul" : "Sub")) return;
    const ElementwiseStep* sub = scaled ? Before(last, "Sub") : &last;
    const ElementwiseStep* cast = Before(sub != nullptr ? *sub : last, "Cast");
    if (cast == nullptr || cast->dtype != DType::kF32) return;
    const ElementwiseOperand& x = cast->operands[0];
    if (x.kind != Kind::kInput || input_uses[static_cast<size_t>(x.index)] != 1) return;
    Stream& stream = out_.streams[static_cast<size_t>(x.index)];
    if (!HasByteScale(stream.dtype) || stream.layout != Stream::Layout::kDense || stream.scale)
      return;
    stream.scale = {.zero = sub != nullptr ? NumberOf(*sub, 1) : 0,
                    .scale = scaled ? NumberOf(last, 1) : 1};
    for (const ElementwiseStep* step : {cast, sub, &last}) {
      if (step != nullptr) {
        dequantised_[static_cast<size_t>(step - program_.steps.data())] = x.index;
      }
    }
  }
  void FindResultScale() {
    const ElementwiseStep& cast = program_.steps.back();
    if (cast.call.row->name != "Cast" || !HasByteScale(cast.dtype)) return;
    const ElementwiseStep* clip = Before(cast, "Clip");
    if (clip == nullptr || clip->operands.size() != 3) return;
    // The zero point is added after rounding a quotient, or before rounding a product.
    const ElementwiseStep* add = Before(*clip, "Add", true);
    const ElementwiseStep* round = Before(add != nullptr ? *add : *clip, "Round");
    const ElementwiseStep* scaled = round != nullptr ? Before(*round, "Div", true) : nullptr;
    const bool multiplies = round != nullptr && scaled == nullptr && add == nullptr;
    if (multiplies) {
      add = Before(*round, "Add");
      scaled = Before(add != nullptr ? *add : *round, "Mul");
    }
    // They must be the last steps of the program, so that all others run before them.
    const size_t steps = add != nullptr ? 5 : 4;
    if (scaled == nullptr || scaled != &program_.steps[program_.steps.size() - steps]) return;
    const ByteScale scale = {.zero = add != nullptr ? NumberOf(*add, 1) : 0,
                             .scale = NumberOf(*scaled, 1),
                             .least = NumberOf(*clip, 1),
                             .most = NumberOf(*clip, 2),
                             .multiplies = multiplies};
    if (!Holds(cast.dtype, scale.least) || !Holds(cast.dtype, scale.most)) return;
    quantising_ = steps;
    quantised_ = scaled->operands[0];
    out_.result_scale = scale;
    out_.scale_input = GivenNumber(scaled->operands[1]);
    if (add != nullptr) out_.zero_input = GivenNumber(add->operands[1]);
    out_.cost += 1;
  }

  // Finds the sum of two inputs of bytes,
  // Cast(Clip(Round(Fma(Cast(a), number, Fma(Cast(b), number, number))), least, most)).
  void FindByteSum() {
    const ElementwiseStep& cast = program_.steps.back();
    const bool bytes = cast.dtype == DType::kU8 || cast.dtype == DType::kI8;
    if (program_.steps.size() != 7 || cast.call.row->name != "Cast" || !bytes) return;
    const ElementwiseStep* clip = Before(cast, "Clip");
    const ElementwiseStep* round = clip != nullptr ? Before(*clip, "Round") : nullptr;
    if (round == nullptr || clip->operands.size() != 3) return;
    const ElementwiseStep* outer = Of(round->operands[0], "Fma");
    const ElementwiseStep* inner = outer != nullptr ? Of(outer->operands[2], "Fma") : nullptr;
    if (inner == nullptr || outer->operands[1].kind != Kind::kNumber || !IsStep(*inner, "Fma")) {
      return;
    }
    int a = -1, b = -1;
    DType from = cast.dtype;
    for (const DType dtype : {cast.dtype, DType::kU8}) {
      if (a >= 0 && b >= 0) break;
      a = BytesOf(outer->operands[0], dtype);
      b = BytesOf(inner->operands[0], dtype);
      from = dtype;
    }
    const ByteSum sum = {from,
                         cast.dtype,
                         NumberOf(*outer, 1),
                         NumberOf(*inner, 1),
                         NumberOf(*inner, 2),
                         NumberOf(*clip, 1),
                         NumberOf(*clip, 2)};
    const auto small = [](float x) { return std::abs(x) < 1e30F; };
    if (a < 0 || b < 0 || !small(sum.a_factor) || !small(sum.b_factor) || !small(sum.offset) ||
        !Holds(cast.dtype, sum.least) || !Holds(cast.dtype, sum.most)) {
      return;
    }
    out_.byte_sum = sum;
    out_.terms[0] = static_cast<size_t>(a), out_.terms[1] = static_cast<size_t>(b);
  }
  // The step that computes an operand, if it is an `op` of f32.
  const ElementwiseStep* Of(const ElementwiseOperand& o, std::string_view op) const {
    if (o.kind != Kind::kStep) return nullptr;
    const ElementwiseStep& step = program_.steps[static_cast<size_t>(o.index)];
    return step.call.row->name == op && step.dtype == DType::kF32 ? &step : nullptr;
  }
  // The dense input of type `dtype` whose Cast the operand is; -1 if it is not one.
  int BytesOf(const ElementwiseOperand& o, DType dtype) const {
    const ElementwiseStep* cast = Of(o, "Cast");
    if (cast == nullptr || cast->operands[0].kind != Kind::kInput) return -1;
    const int input = cast->operands[0].index;
    const Stream& stream = out_.streams[static_cast<size_t>(input)];
    return stream.dtype == dtype && stream.layout == Stream::Layout::kDense ? input : -1;
  }

  // Whether an integer type has this number.
  static bool Holds(DType dtype, float number) {
    return DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
      using Limits = std::numeric_limits<T>;
      return number >= static_cast<float>(Limits::lowest()) &&
             number <= static_cast<float>(Limits::max()) && number == std::floor(number);
    });
  }

  static bool Carried(DType t) {
    return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16 || t == DType::kBool;
  }

  int Constant(double value) {
    out_.constants.push_back(static_cast<float>(value));
    return kConstants + static_cast<int>(out_.constants.size()) - 1;
  }

  int ValueOf(const ElementwiseOperand& o, bool lowest) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (o.kind == Kind::kInput) return o.index;
    if (o.kind == Kind::kStep) return value_of_step_[o.index];
    return Constant(o.kind == Kind::kNumber ? o.number : lowest ? -kInf : kInf);
  }

  bool Translate(const ElementwiseStep& step) {
    const ElementwiseRow& row = *step.call.row;
    const bool last = &step == &program_.steps.back();
    if ((row.flags & kIsCast) != 0) {
      const bool from_integer = IsInteger(step.compute);
      // Integers exist in memory only: as inputs that are cast at once, and as the last result.
      if (from_integer && step.operands[0].kind != Kind::kInput) return false;
      if (!from_integer && !Carried(step.compute)) return false;
      if (!Carried(step.dtype) && !(last && IsInteger(step.dtype) && !from_integer)) return false;
      int value = ValueOf(step.operands[0], false);
      if (step.dtype == DType::kBool && step.compute != DType::kBool) {
        value = Add({LaneFunctionOf(*FindElementwise("NotEqual"), ElementClass::kFloat),
                     {value, Constant(0), 0}});
      } else if (!last &&
                 step.dtype != step.compute) {  // the last result is rounded as it is stored
        if (step.dtype == DType::kF16) value = Add({RoundedAs<DType::kF16>, {value, value, value}});
        if (step.dtype == DType::kBF16)
          value = Add({RoundedAs<DType::kBF16>, {value, value, value}});
      }
      value_of_step_.push_back(value);
      return true;
    }
    if (!Carried(step.compute)) return false;
    Instruction in;
    in.function = LaneFunctionOf(row, ClassOf(step.compute));
    for (int i = 0; i < row.inputs; ++i) {
      const bool given = i < static_cast<int>(step.operands.size());
      const ElementwiseOperand o = given ? step.operands[i] : ElementwiseOperand();
      in.operands[i] = ValueOf(o, i == 1);
    }
    for (int i = row.inputs; i < 3; ++i) in.operands[i] = in.operands[0];
    in.alpha = static_cast<float>(step.call.alpha);
    in.beta = static_cast<float>(step.call.beta);
    out_.cost += 8 * HeavyCalls(row.text[static_cast<int>(ClassOf(step.compute))]);
    value_of_step_.push_back(Add(in));
    return true;
  }

  int Add(Instruction in) {
    in.result = kTiles + static_cast<int>(out_.instructions.size());
    out_.instructions.push_back(in);
    out_.cost += 1;
    return in.result;
  }

  // Gives each result a tile; a tile is free again after its last reader.
  void AssignTiles() {
    auto& list = out_.instructions;
    std::vector<int> last_use(list.size(), -1), tile(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      for (int v : list[i].operands) {
        if (v >= kTiles) last_use[v - kTiles] = static_cast<int>(i);
      }
    }
    if (out_.result >= kTiles) last_use[out_.result - kTiles] = static_cast<int>(list.size());
    std::vector<int> busy_until;
    const int inputs = static_cast<int>(out_.streams.size());
    const int constants = static_cast<int>(out_.constants.size());
    auto settle = [&](int v) {
      if (v >= kTiles) return inputs + constants + tile[v - kTiles];
      return v >= kConstants ? inputs + v - kConstants : v;
    };
    for (size_t i = 0; i < list.size(); ++i) {
      // A tile whose last reader is this step may take the result: lane functions may write over an
      // operand.
      size_t t = 0;
      while (t < busy_until.size() && busy_until[t] > static_cast<int>(i)) ++t;
      if (t == busy_until.size()) busy_until.push_back(0);
      busy_until[t] = last_use[i];
      tile[i] = static_cast<int>(t);
    }
    out_.tiles = static_cast<int>(busy_until.size());
    for (Instruction& in : list) {
      in.result = settle(in.result);
      for (int& v : in.operands) v = settle(v);
    }
    out_.result = settle(out_.result);
  }

  const ElementwiseProgram& program_;
  const NodeView& node_;
  const BroadcastAxes& axes_;
  FastProgram out_;
  std::vector<int> value_of_step_;
  std::vector<int> step_uses_;
  std::vector<int> dequantised_;  // the input that a step is part of reading, or -1
  size_t quantising_ = 0;         // steps at the end that quantise the result
  ElementwiseOperand quantised_;  // the operand that they quantise
};

}  // namespace

std::optional<FastProgram> TranslateElementwise(const ElementwiseProgram& program,
                                                const NodeView& node, const BroadcastAxes& axes) {
  return Translator(program, node, axes).Run();
}

}  // namespace oncilla::cpu
