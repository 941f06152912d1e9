// Kernels of the CPU for assertions, checks and messages.
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/move.h"
#include "backends/cpu/text/tensor_text.h"
#include "engine/base/decimal.h"
#include "engine/base/log.h"
#include "engine/ops/array/movement.h"
#include "engine/ops/check.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// The shortest of 6 and 9 digits (15 and 17 for a double) that reads back as the same number.
std::string Digits(double value, bool is_double) {
  if (std::isnan(value)) return "nan";
  std::string text;
  for (const int digits : is_double ? std::array{15, 17} : std::array{6, 9}) {
    text = GeneralText(value, digits);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    if (is_double ? back == value : static_cast<float>(back) == static_cast<float>(value)) break;
  }
  return text;
}

std::string ElementText(const Tensor& tensor, int64_t i) {
  const auto at = static_cast<size_t>(i);
  if (tensor.dtype() == DType::kString) return tensor.strings()[at];
  std::string out;
  DispatchDType(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    T value;
    std::memcpy(&value, tensor.bytes().data() + at * sizeof(T), sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      out = std::to_string(value);
    } else {
      out = Digits(static_cast<double>(value), std::is_same_v<T, double>);
    }
  });
  return out;
}

class Summary {
 public:
  Summary(const Tensor& tensor, int64_t most)
      : tensor_(tensor), limit_(most < 0 ? tensor.elements() : std::min(most, tensor.elements())) {
    if (tensor.shape().rank() == 0) {
      if (limit_ > 0) text_ = ElementText(tensor, 0);
    } else {
      Axis(0);
    }
    if (tensor.elements() > limit_) text_ += "...";
  }
  std::string text() && { return std::move(text_); }

 private:
  void Axis(int axis) {
    if (next_ >= limit_) return;
    const Shape& shape = tensor_.shape();
    const bool last = axis == shape.rank() - 1;
    for (int64_t i = 0; i < shape[axis]; ++i) {
      if (last) {
        if (next_ >= limit_) {
          if (axis != 0) text_ += "...";
          return;
        }
        if (i > 0) text_ += ' ';
        text_ += ElementText(tensor_, next_++);
        continue;
      }
      if (next_ >= limit_) return;
      text_ += '[';
      Axis(axis + 1);
      text_ += ']';
    }
  }

  const Tensor& tensor_;
  const int64_t limit_;
  int64_t next_ = 0;
  std::string text_;
};

Result<std::vector<Tensor>> Assert(const AssertAttrs& attrs, const NodeView&,
                                   std::span<const Tensor> in) {
  if (in[0].As<bool>()[0]) return std::vector<Tensor>();
  std::string text = "assertion failed:";
  for (const Tensor& data : in.subspan(1)) {
    text += " [" + SummaryOf(data, attrs.summarize) + "]";
  }
  return InvalidArgument(text);
}

Result<std::vector<Tensor>> Print(const PrintAttrs& attrs, const NodeView&,
                                  std::span<const Tensor> in) {
  std::string text = attrs.message;
  for (const Tensor& data : in) {
    if (attrs.plain && data.dtype() == DType::kString && data.elements() == 1) {
      text += data.strings()[0];
    } else {
      text += "[" + SummaryOf(data, attrs.summarize) + "]";
    }
  }
  // Written as a warning, because what a model prints is meant to be seen at the default level.
  DefaultLog().Write(LogLevel::kWarning, text);
  return std::vector<Tensor>();
}

Status CheckNumerics(const CheckNumericsAttrs& attrs, const Args& args) {
  std::atomic<bool> nan = false, plus = false, minus = false;
  const TensorDesc x = args.in(0);
  DispatchDType(x.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      ParallelFor(args.threads, x.elements(), 1 << 14, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto v = static_cast<double>(args.In<T>(0)[i]);
          if (std::isfinite(v)) continue;
          (std::isnan(v) ? nan : v > 0 ? plus : minus) = true;
        }
      });
    }
  });
  std::vector<std::string> found;
  if (attrs.signs) {
    if (minus) found.emplace_back("-Inf");
    if (plus) found.emplace_back("+Inf");
  } else if (plus || minus) {
    found.emplace_back("Inf");
  }
  if (nan) found.emplace_back("NaN");
  if (!found.empty()) {
    std::string list = found[0];
    for (size_t i = 1; i < found.size(); ++i) {
      list += (i + 1 < found.size() ? ", " : " and ") + found[i];
    }
    return InvalidArgument(attrs.message, " : Tensor had ", list, " values");
  }
  if (args.inputs[0] != args.outputs[0]) {
    std::memcpy(args.outputs[0], args.inputs[0], static_cast<size_t>(x.bytes()));
  }
  return Status();
}

const KernelRow kRows[] = {
    HostRow<Assert>("Assert", kBools),
    Row<CheckNumerics>("CheckNumerics", kFloats),
    HostRow<Print>("Print", kAll),
};

}  // namespace

std::string SummaryOf(const Tensor& tensor, int64_t most) { return Summary(tensor, most).text(); }

std::span<const KernelRow> CheckKernels() { return kRows; }

}  // namespace oncilla::cpu
