// Both messages use the same field numbers: 2 for the kind of the contents, 3 for tensors, 5 for
// sequences.
#include "engine/import/onnx/value.h"

#include "engine/import/onnx/tensor.h"
#include "engine/tensor/tensor_list.h"

namespace oncilla {
namespace {

// Values of onnx.SequenceProto.DataType and onnx.OptionalProto.DataType.
constexpr int64_t kUndefined = 0, kTensor = 1, kSequence = 3;

TensorList ListOf(const TensorInfo& info) {
  PartialShape element = info.shape;
  for (int i = 0; i < element.rank(); ++i) element[i].name.clear();
  return TensorList(info.dtype, std::move(element));
}

// Reads a tensor and aligns its bytes.
Result<Tensor> TensorFrom(Bytes proto, DType wanted, const std::shared_ptr<const void>& owner) {
  ONCILLA_ASSIGN(OnnxTensor tensor, TensorFromOnnx(proto, owner));
  const Tensor& value = tensor.value;
  if (value.dtype() == DType::kString) return std::move(tensor.value);
  // Data of type bfloat16 may be written as its bits, of type uint16.
  const bool bits = wanted == DType::kBF16 && value.dtype() == DType::kU16;
  if (value.aligned() && !bits) return std::move(tensor.value);
  return Tensor::Copy({bits ? wanted : value.dtype(), value.shape()}, value.bytes());
}

Result<Tensor> SequenceFrom(Bytes proto, const TensorInfo& info,
                            const std::shared_ptr<const void>& owner) {
  TensorList list = ListOf(info);
  WireMessage message(proto);
  while (message.Next()) {
    if (message.field() == 2) {
      const int64_t of = message.Int();
      if (of != kUndefined && of != kTensor)
        return Unsupported("a sequence of anything but tensors");
    } else if (message.field() == 3) {
      if (list.size() >= TensorList::kMaxSize) return DataLoss("a sequence of too many tensors");
      ONCILLA_ASSIGN(Tensor element, TensorFrom(message.View(), info.dtype, owner));
      if (element.dtype() != info.dtype || !info.shape.Accepts(element.shape())) {
        return WithStage(InvalidArgument("element ", list.size(), " is ", element.desc(),
                                         " in a sequence of ", Fact::Of(info.dtype, info.shape)),
                         Stage::kOptions);
      }
      list.Push(std::move(element));
    }
  }
  return Tensor::OfList(std::move(list));
}

}  // namespace

Tensor OptionalOf(const TensorInfo& info, const Tensor& held) {
  TensorList list = ListOf(info);
  if (!held.valid()) return Tensor::OfList(std::move(list));
  if (!held.is_list()) {
    list.Push(held);
    return Tensor::OfList(std::move(list));
  }
  list = held.list();
  list.Resize(list.size() + 1);
  return Tensor::OfList(std::move(list));
}

Result<Tensor> OnnxValueFrom(Bytes proto, const TensorInfo& info,
                             const std::shared_ptr<const void>& owner) {
  if (info.kind == TensorInfo::Kind::kTensor) return TensorFrom(proto, info.dtype, owner);
  if (info.kind == TensorInfo::Kind::kSequence) return SequenceFrom(proto, info, owner);
  const bool sequence = info.kind == TensorInfo::Kind::kOptionalSequence;
  Tensor held;
  WireMessage message(proto);
  while (message.Next()) {
    if (message.field() == 3 && !sequence) {
      ONCILLA_ASSIGN(held, TensorFrom(message.View(), info.dtype, owner));
    } else if (message.field() == 5 && sequence) {
      ONCILLA_ASSIGN(held, SequenceFrom(message.View(), info, owner));
    } else if (message.field() == 2) {
      const int64_t holds = message.Int();
      if (holds != kUndefined && holds != (sequence ? kSequence : kTensor)) {
        return WithStage(InvalidArgument("the optional value holds something of another kind"),
                         Stage::kOptions);
      }
    }
  }
  if (!sequence && held.valid() &&
      (held.dtype() != info.dtype || !info.shape.Accepts(held.shape()))) {
    return WithStage(InvalidArgument("the optional value holds ", held.desc(), ", not ",
                                     Fact::Of(info.dtype, info.shape)),
                     Stage::kOptions);
  }
  return OptionalOf(info, held);
}

}  // namespace oncilla
