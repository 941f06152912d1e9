// Formulas: a sequence of canonical nodes, written without a check after each. The first failure is
// kept, and later calls then add nothing.
#pragma once

#include "engine/import/tf/lowering.h"

namespace oncilla {

class TfFormula {
 public:
  explicit TfFormula(TfLowering& b) : b_(b) {}

  // Adds a node that prepares the result; its name contains its number within the formula.
  ValueId operator()(std::string_view op, Values inputs) { return Do(op, AttrMap(), inputs); }
  template <class Attrs>
  ValueId operator()(std::string_view op, const Attrs& attrs, Values inputs) {
    return Do(op, WriteAttrs(attrs), std::move(inputs));
  }
  template <class Attrs>
  requires(!kOpOf<Attrs>.empty()) ValueId operator()(const Attrs& attrs, Values inputs) {
    return Do(kOpOf<Attrs>, WriteAttrs(attrs), std::move(inputs));
  }
  // All outputs of such a node, which must have `outputs` of them; kNoValue after a failure.
  template <class Attrs>
  Values All(std::string_view op, const Attrs& attrs, Values inputs, size_t outputs) {
    Values out;
    if (status_.ok()) {
      Result<Values> all = b_.AddAll(op, WriteAttrs(attrs), std::move(inputs), NextRole());
      if (all.ok()) out = *std::move(all);
      status_ = all.status();
    }
    out.resize(outputs, kNoValue);
    return out;
  }
  // A number of a type, rank 0.
  ValueId Number(DType dtype, double value) { return Keep(b_.Scalar(dtype, value)); }
  ValueId Cast(ValueId x, DType to) {
    return !status_.ok() || b_.fact(x).dtype == to ? x : (*this)(CastAttrs{to}, {x});
  }
  ValueId Ints(std::vector<int64_t> values) { return b_.Ints(std::move(values)); }
  ValueId Keep(Result<ValueId> value) {
    if (status_.ok()) status_ = value.status();
    return status_.ok() ? *value : kNoValue;
  }

  const Status& status() const { return status_; }
  // Adds the node with the result, which has the name of the foreign one.
  Result<Values> Last(std::string_view op, Values inputs) {
    ONCILLA_TRY(status_);
    return One(b_.Add(op, AttrMap(), std::move(inputs)));
  }
  template <class Attrs>
  requires(!kOpOf<Attrs>.empty()) Result<Values> Last(const Attrs& attrs, Values inputs) {
    ONCILLA_TRY(status_);
    return One(b_.Add(attrs, std::move(inputs)));
  }
  Result<Values> Done(Values outputs) {
    ONCILLA_TRY(status_);
    return outputs;
  }

 private:
  std::string NextRole() { return "part" + std::to_string(++parts_); }
  ValueId Do(std::string_view op, AttrMap attrs, Values inputs) {
    if (!status_.ok()) return kNoValue;
    return Keep(b_.Add(op, std::move(attrs), std::move(inputs), NextRole()));
  }

  TfLowering& b_;
  Status status_;
  int parts_ = 0;
};

}  // namespace oncilla
