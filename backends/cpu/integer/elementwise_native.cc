// Elementwise programs on integers and booleans. Every value is a run of numbers in its dtype: an
// input read in place if it is dense, otherwise a tile. Steps on floats are those of
// elementwise.cc; conditions, which these steps read and write as floats, are converted around
// them.
#include "backends/cpu/integer/elementwise_native.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/fast/element_lanes.h"
#include "backends/cpu/fast/tiles.h"
#include "backends/cpu/integer/element_native.h"
#include "backends/cpu/move.h"

namespace oncilla::cpu {
namespace {

using Kind = ElementwiseOperand::Kind;

constexpr int64_t kTileElements = 1024, kTileBytes = kTileElements * 8;
constexpr int64_t kGrain = 16 * kTileElements;

// One call of a function: `native` or `lanes`, or a conversion when both are null. Operands and
// result are indices of values.
struct Instruction {
  NativeFunction native = nullptr;
  LaneFunction lanes = nullptr;
  int operands[3] = {0, 0, 0};
  int result = 0;
  float alpha = 0, beta = 0;
};

struct Value {
  DType dtype = DType::kF32;
  // Set is one of: an input, a constant's bits, the tile in which the value is computed.
  int input = -1;
  bool constant = false;
  uint64_t bits = 0;
  int tile = -1;
};

struct Program {
  std::vector<Value> values;  // inputs first
  std::vector<Instruction> instructions;
  int tiles = 0;
};

template <class T>
uint64_t BitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// Writes n copies of a value, doubling the run that is copied.
template <class T>
void Repeat(T value, int64_t n, T* to) {
  if (n > 0) *to = value;
  for (int64_t done = 1; done < n; done *= 2) std::copy_n(to, std::min(done, n - done), to + done);
}

class Translator {
 public:
  Translator(const ElementwiseProgram& program, const NodeView& node) : program_(program) {
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Fact& fact = node.inputs[k];
      out_.values.push_back(
          {.dtype = fact.absent() ? DType::kF32 : fact.dtype, .input = static_cast<int>(k)});
    }
  }

  std::optional<Program> Run() {
    const auto native = [](const Value& v) { return IsNative(v.dtype); };
    if (!std::all_of(out_.values.begin(), out_.values.end(), native)) return std::nullopt;
    for (const ElementwiseStep& step : program_.steps) {
      if (!IsNative(step.compute) || !IsNative(step.dtype)) return std::nullopt;
      const int result = Translate(step);
      if (result < 0) return std::nullopt;
      value_of_step_.push_back(result);
    }
    AssignTiles();
    return std::move(out_);
  }

 private:
  int NewValue(Value value) {
    out_.values.push_back(value);
    return static_cast<int>(out_.values.size()) - 1;
  }
  int Add(Instruction in, DType dtype) {
    in.result = NewValue({.dtype = dtype});
    out_.instructions.push_back(in);
    return in.result;
  }
  int Converted(int value, DType dtype) { return Add({.operands = {value, value, value}}, dtype); }

  // A number converted to the dtype, or the default bound for an absent operand.
  int Constant(const ElementwiseOperand& o, bool lowest, DType dtype) {
    Value value = {.dtype = dtype, .constant = true};
    DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
      using W = internal::WideType<T>;
      using Limits = std::numeric_limits<T>;
      const T low = Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
      const T high = Limits::has_infinity ? Limits::infinity() : Limits::max();
      value.bits = BitsOf(o.kind == Kind::kNumber ? ConvertElement<T>(ConvertElement<W>(o.number))
                          : lowest                ? low
                                                  : high);
    });
    return NewValue(value);
  }

  int ValueOf(const ElementwiseOperand& o, bool lowest, DType dtype) {
    if (o.kind == Kind::kInput) return o.index;
    if (o.kind == Kind::kStep) return value_of_step_[static_cast<size_t>(o.index)];
    return Constant(o, lowest, dtype);
  }

  // Returns the index of the result, or -1 if this kernel does not support the step.
  int Translate(const ElementwiseStep& step) {
    const ElementwiseRow& row = *step.call.row;
    if ((row.flags & kIsCast) != 0) {
      return Converted(ValueOf(step.operands[0], false, step.compute), step.dtype);
    }
    const bool floats = step.compute == DType::kF32;
    Instruction in = {.alpha = static_cast<float>(step.call.alpha),
                      .beta = static_cast<float>(step.call.beta)};
    if (floats) {
      in.lanes = LaneFunctionOf(row, ElementClass::kFloat);
    } else {
      in.native = NativeFunctionOf(row, step.compute);
    }
    if (in.lanes == nullptr && in.native == nullptr) return -1;
    for (int i = 0; i < row.inputs; ++i) {
      const bool given = i < static_cast<int>(step.operands.size());
      const bool condition = i == 0 && (row.flags & kConditionFirst) != 0;
      const int value = ValueOf(given ? step.operands[i] : ElementwiseOperand(), i == 1,
                                condition ? DType::kBool : step.compute);
      in.operands[i] = condition && floats ? Converted(value, DType::kF32) : value;
    }
    for (int i = row.inputs; i < 3; ++i) in.operands[i] = in.operands[0];
    if (!floats || (row.flags & kToBool) == 0) return Add(in, step.dtype);
    return Converted(Add(in, DType::kF32), DType::kBool);
  }

  // Gives each computed value a tile; a tile is free again after its last reader. No result shares
  // a tile with an operand, because native functions do not allow it.
  void AssignTiles() {
    const auto& list = out_.instructions;
    std::vector<size_t> last_use(out_.values.size(), 0), busy_until;
    for (size_t i = 0; i < list.size(); ++i) {
      for (int v : list[i].operands) last_use[static_cast<size_t>(v)] = i;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      size_t t = 0;
      while (t < busy_until.size() && busy_until[t] >= i) ++t;
      if (t == busy_until.size()) busy_until.push_back(0);
      const auto result = static_cast<size_t>(list[i].result);
      busy_until[t] = std::max(i, last_use[result]);
      out_.values[result].tile = static_cast<int>(t);
    }
    out_.tiles = static_cast<int>(busy_until.size());
  }

  const ElementwiseProgram& program_;
  Program out_;
  std::vector<int> value_of_step_;
};

class NativeElementwise : public CpuKernel {
 public:
  NativeElementwise(const NodeView& node, Program program, BroadcastAxes axes)
      : CpuKernel(node), program_(std::move(program)), axes_(std::move(axes)) {}

  std::string description() const override {
    return StrCat("vectors of integers, ", program_.instructions.size(), " steps");
  }

  Status Run(const Args& args) const override {
    ParallelFor(args.threads, axes_.elements, kGrain,
                [&](int64_t begin, int64_t end) { RunChunk(args, begin, end); });
    return Status();
  }

 private:
  void RunChunk(const Args& args, int64_t begin, int64_t end) const {
    const std::vector<Value>& values = program_.values;
    // A tile for each result, then one for each other value. Untouched pages cost nothing, so
    // unused tiles are free.
    const size_t tiles = static_cast<size_t>(program_.tiles) + values.size();
    const auto memory = std::make_unique_for_overwrite<uint64_t[]>(tiles * kTileElements);
    auto* const first = reinterpret_cast<std::byte*>(memory.get());
    std::vector<std::byte*> tile(values.size());
    std::vector<const std::byte*> at(values.size());
    for (size_t v = 0; v < values.size(); ++v) {
      const auto t = values[v].tile >= 0 ? static_cast<size_t>(values[v].tile)
                                         : static_cast<size_t>(program_.tiles) + v;
      at[v] = tile[v] = first + t * kTileBytes;
      Fill(args, values[v], std::min(kTileElements, end - begin), tile[v]);
    }
    for (int64_t n; begin < end; begin += n) {
      n = std::min(kTileElements, end - begin);
      for (size_t v = 0; v < args.inputs.size(); ++v) {
        const int k = static_cast<int>(v);
        if (!args.has_input(v) || axes_.scalar(k)) continue;
        if (axes_.dense(k)) {
          at[v] = args.inputs[v] + begin * BytesOf(values[v].dtype);
        } else {
          Gather(args, k, begin, n, tile[v]);
        }
      }
      for (const Instruction& in : program_.instructions) {
        const auto result = static_cast<size_t>(in.result);
        const bool last = &in == &program_.instructions.back();
        std::byte* const to =
            last ? args.outputs[0] + begin * BytesOf(values[result].dtype) : tile[result];
        Call(in, at, n, to);
      }
    }
  }

  void Call(const Instruction& in, const std::vector<const std::byte*>& at, int64_t n,
            std::byte* to) const {
    const std::byte* x[3];
    for (int i = 0; i < 3; ++i) x[i] = at[static_cast<size_t>(in.operands[i])];
    if (in.native != nullptr) {
      in.native(x[0], x[1], x[2], to, n);
    } else if (in.lanes != nullptr) {
      const auto floats = [&](int i) { return reinterpret_cast<const float*>(x[i]); };
      in.lanes(floats(0), floats(1), floats(2), reinterpret_cast<float*>(to), n, in.alpha, in.beta);
    } else {
      const std::vector<Value>& values = program_.values;
      ConvertNative(values[static_cast<size_t>(in.operands[0])].dtype, x[0], n,
                    values[static_cast<size_t>(in.result)].dtype, to);
    }
  }

  // Fills a tile with a value that is the same for all elements: a constant or a scalar.
  void Fill(const Args& args, const Value& value, int64_t n, std::byte* to) const {
    const bool scalar = value.input >= 0 && args.has_input(static_cast<size_t>(value.input)) &&
                        axes_.scalar(value.input);
    if (!scalar && !value.constant) return;
    DispatchBytes(BytesOf(value.dtype), [&]<class T>(T) {
      const void* from = &value.bits;
      if (scalar) from = args.inputs[static_cast<size_t>(value.input)];
      T number;
      std::memcpy(&number, from, sizeof(T));
      Repeat(number, n, reinterpret_cast<T*>(to));
    });
  }

  void Gather(const Args& args, int k, int64_t begin, int64_t n, std::byte* to) const {
    const auto input = static_cast<size_t>(k);
    DispatchBytes(BytesOf(args.node.inputs[input].dtype), [&]<class T>(T) {
      const T* from = args.In<T>(input);
      T* out = reinterpret_cast<T*>(to);
      ForRuns(axes_, k, begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
        if (stride == 0) {
          Repeat(from[offset], count, out);
        } else if (stride == 1) {
          std::copy_n(from + offset, count, out);
        } else {
          for (int64_t j = 0; j < count; ++j) out[j] = from[offset + j * stride];
        }
        out += count;
      });
    });
  }

  const Program program_;
  const BroadcastAxes axes_;
};

}  // namespace

std::unique_ptr<CpuKernel> MakeNativeElementwise(const NodeView& node,
                                                 const ElementwiseProgram& program,
                                                 const BroadcastAxes& axes) {
  auto native = Translator(program, node).Run();
  if (!native.has_value()) return nullptr;
  return std::make_unique<NativeElementwise>(node, *std::move(native), axes);
}

}  // namespace oncilla::cpu
