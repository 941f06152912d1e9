// Fact: what is known about one value before it is computed: kind, dtype, shape and, where known,
// the value itself or some of its integers.
//
// Values are propagated by inference, so that chains such as Shape -> Slice -> Concat -> Reshape
// are folded while planning and never reach a device.
#pragma once

#include <optional>
#include <vector>

#include "engine/tensor/tensor.h"

namespace oncilla {

// A string tensor is a kTensor of dtype kString and exists on the host only. kAbsent is an optional
// input that is not given. For a kList, dtype and shape are those of its elements.
enum class ValueKind : uint8_t { kTensor, kList, kOptional, kResource, kAbsent };

struct Fact {
  ValueKind kind = ValueKind::kTensor;
  DType dtype = DType::kInvalid;
  PartialShape shape;
  // The whole value, when known (valid()).
  Tensor value;
  // Whether the value is the same in every run. A kernel gets such an input as PackingFor laid it
  // out, and must test this flag, not `value`: the bytes of a large constant are dropped once it is
  // packed.
  bool constant = false;
  // For integer tensors of rank 0 or 1 whose elements are partly known: one Dim per element.
  // Dims of unknown elements may carry a name, so that a reshape back to [batch, ...] keeps it.
  std::optional<std::vector<Dim>> elements;

  static Fact Of(DType dtype, PartialShape shape) {
    Fact fact;
    fact.dtype = dtype;
    fact.shape = std::move(shape);
    return fact;
  }
  static Fact Of(const TensorDesc& desc) { return Of(desc.dtype, PartialShape(desc.shape)); }
  static Fact List(DType dtype, PartialShape element) {
    Fact fact = Of(dtype, std::move(element));
    fact.kind = ValueKind::kList;
    return fact;
  }
  // The type of a tensor or list, without its contents.
  static Fact Of(const Tensor& value);
  static Fact Constant(Tensor value) {
    Fact fact = Of(value);
    if (!value.is_list()) fact.value = std::move(value);
    fact.constant = true;
    return fact;
  }
  static Fact Absent() {
    Fact fact;
    fact.kind = ValueKind::kAbsent;
    return fact;
  }

  // The type alone, for a value that changes.
  Fact WithoutContents() const {
    return kind == ValueKind::kList ? List(dtype, shape) : Of(dtype, shape);
  }

  bool absent() const { return kind == ValueKind::kAbsent; }
  bool has_value() const { return value.valid(); }
  // Whether dtype and every size are known, so that memory can be allocated for the value.
  bool fixed() const { return kind == ValueKind::kTensor && shape.known(); }
  TensorDesc desc() const { return {dtype, shape.ToShape()}; }
};
using Facts = std::vector<Fact>;
std::ostream& operator<<(std::ostream& out, const Fact& fact);  // f32[batch,3], list<f32[...]>
// Parses that text for a tensor or a list. InvalidArgument for anything else.
Result<Fact> ParseFact(std::string_view text);
// The type of a tensor or a list as an attribute declares it: names of sizes, which have no meaning
// outside their graph, become '?'.
std::string DeclaredType(const Fact& fact);

// The most elements that KnownInts() reads and that value propagation carries.
inline constexpr int64_t kMaxKnownInts = 4096;

// The integers of a fact of rank 0 or 1, each known or not; nothing if not even their number is
// known.
std::optional<std::vector<Dim>> KnownInts(const Fact& fact);
// The same when all are known. `what` names the input in the failure ("shape").
Result<std::vector<int64_t>> NeedInts(const Fact& fact, std::string_view what);
// True when NeedInts() would succeed.
bool AllIntsKnown(const Fact& fact);

}  // namespace oncilla
