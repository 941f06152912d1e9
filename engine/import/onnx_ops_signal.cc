// ONNX's window functions.
#include <numbers>

#include "engine/import/onnx_lowering.h"

namespace oncilla {
namespace {

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N) for n below `size`, where N is size, or size - 1 for
// a symmetric window.
Result<Values> LowerWindow(OnnxLowering& b) {
  double a0 = 0.5, a1 = 0.5, a2 = 0;
  if (b.op() == "HammingWindow") a0 = 25.0 / 46, a1 = 1 - a0;
  if (b.op() == "BlackmanWindow") a0 = 0.42, a1 = 0.5, a2 = 0.08;
  ONCILLA_ASSIGN(const bool periodic, b.Flag("periodic", true));
  ONCILLA_ASSIGN(const DType to, b.Type("output_datatype", DType::kF32));
  ONCILLA_ASSIGN(const ValueId size, b.Cast(b.in(0), DType::kI64, "size"));
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(const ValueId places, b.Add("Range", {}, {none, size, one}, "places"));
  ValueId period = size;
  if (!periodic) {
    ONCILLA_ASSIGN(period, b.Add("Sub", {}, {size, one}, "period"));
  }
  const DType compute = to == DType::kF64 ? to : DType::kF32;
  ONCILLA_ASSIGN(const ValueId n, b.Cast(places, compute, "n"));
  ONCILLA_ASSIGN(const ValueId whole, b.Cast(period, compute, "whole"));
  const auto wave = [&](double turns, double factor, const std::string& name) -> Result<ValueId> {
    ONCILLA_ASSIGN(const ValueId step, b.Scalar(compute, turns * 2 * std::numbers::pi));
    ONCILLA_ASSIGN(ValueId angle, b.Add("Mul", {}, {n, step}, name + "_turns"));
    ONCILLA_ASSIGN(angle, b.Add("Div", {}, {angle, whole}, name + "_angle"));
    ONCILLA_ASSIGN(const ValueId cosine, b.Add("Cos", {}, {angle}, name + "_cosine"));
    ONCILLA_ASSIGN(const ValueId height, b.Scalar(compute, factor));
    return b.Add("Mul", {}, {cosine, height}, name);
  };
  ONCILLA_ASSIGN(const ValueId base, b.Scalar(compute, a0));
  ONCILLA_ASSIGN(const ValueId first, wave(1, -a1, "first"));
  const bool last = a2 == 0 && to == compute;
  ONCILLA_ASSIGN(ValueId y, b.Add("Add", {}, {first, base}, last ? "" : "raised"));
  if (a2 != 0) {
    ONCILLA_ASSIGN(const ValueId second, wave(2, a2, "second"));
    ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, second}, to == compute ? "" : "sum"));
  }
  return One(b.Cast(y, to, ""));
}

constexpr OnnxOpRow kRows[] = {
    {"BlackmanWindow", 17, kNewestOnnxOpset, 1, "", LowerWindow},
    {"HammingWindow", 17, kNewestOnnxOpset, 1, "", LowerWindow},
    {"HannWindow", 17, kNewestOnnxOpset, 1, "", LowerWindow},
};

}  // namespace

std::span<const OnnxOpRow> OnnxSignalRows() { return kRows; }

}  // namespace oncilla
