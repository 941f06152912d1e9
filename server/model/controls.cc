// Compares declared controls with a model's inputs, and makes the tensors that are fed to them.
#include "server/model/controls.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "absl/strings/str_join.h"
#include "server/core/tensor_codec.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

absl::Status Bad(const DeclaredControl& control, const std::string& what) {
  return absl::InvalidArgumentError(
      StrCat("the control_input '", control.name, "' of sequence_batching ", what));
}

template <class T>
absl::StatusOr<Tensor> One(T value, oncilla_dtype dtype, const std::vector<int64_t>& shape) {
  auto tensor = Tensor::Copy(dtype, shape, &value, sizeof(value));
  if (!tensor.ok()) return FromEngine(tensor.status());
  return *std::move(tensor);
}

absl::StatusOr<Tensor> Choice(double value, oncilla_dtype dtype,
                              const std::vector<int64_t>& shape) {
  if (dtype == ONCILLA_BOOL) return One<uint8_t>(value != 0 ? 1 : 0, dtype, shape);
  if (dtype == ONCILLA_INT32) return One(static_cast<int32_t>(value), dtype, shape);
  return One(static_cast<float>(value), dtype, shape);
}

// The shape of a single element with the model's rank: all sizes of the input must allow 1.
absl::StatusOr<std::vector<int64_t>> ShapeOf(const DeclaredControl& control,
                                             const TensorMetadata& input, bool joins) {
  if (!input.ranked) return joins ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{1};
  if (joins && (input.shape.empty() || input.shape[0] >= 0)) {
    return Bad(control, StrCat("needs an open first axis where requests are joined; its shape is [",
                               absl::StrJoin(input.shape, ","), "]"));
  }
  if (std::any_of(input.shape.begin(), input.shape.end(),
                  [](int64_t size) { return size != 1 && size >= 0; })) {
    return Bad(control, StrCat("has the shape [", absl::StrJoin(input.shape, ","),
                               "] in the model; it is fed with one element"));
  }
  return std::vector<int64_t>(input.shape.size(), 1);
}

template <class T>
absl::StatusOr<Tensor> NumberId(const ControlTensor& control, const std::string& id) {
  T value = 0;
  const auto parsed = std::from_chars(id.data(), id.data() + id.size(), value);
  if (parsed.ec == std::errc() && parsed.ptr == id.data() + id.size())
    return One(value, control.dtype, control.shape);
  const bool text = id.front() == '"';
  return absl::InvalidArgumentError(
      StrCat("the model takes the sequence's id as ", DatatypeOf(control.dtype), ", and ",
             text ? "the request's is a text" : StrCat(id, " is out of its range")));
}

absl::StatusOr<Tensor> Id(const ControlTensor& control, const std::string& id) {
  switch (control.dtype) {
    case ONCILLA_INT32:
      return NumberId<int32_t>(control, id);
    case ONCILLA_UINT32:
      return NumberId<uint32_t>(control, id);
    case ONCILLA_INT64:
      return NumberId<int64_t>(control, id);
    case ONCILLA_UINT64:
      return NumberId<uint64_t>(control, id);
    default:
      break;
  }
  // A number as text would be the same to the model as that text, which is another sequence.
  if (id.front() != '"') {
    return absl::InvalidArgumentError(StrCat(
        "the model takes the sequence's id as a text, and the request's is the number ", id));
  }
  auto tensor = Tensor::Strings(control.shape, {id.substr(1, id.size() - 2)});
  if (!tensor.ok()) return FromEngine(tensor.status());
  return *std::move(tensor);
}

absl::StatusOr<ControlTensor> FindControl(const DeclaredControl& declared,
                                          const ModelMetadata& metadata, bool joins) {
  const auto input = std::find_if(metadata.inputs.begin(), metadata.inputs.end(),
                                  [&](const TensorMetadata& t) { return t.name == declared.name; });
  if (input == metadata.inputs.end())
    return Bad(declared, "is not an input of the model, or one that is something else already");
  const std::string type = ConfigTypeOf(input->datatype);
  if (type != declared.data_type)
    return Bad(declared, StrCat("is declared as ", declared.data_type, "; the model's is ", type));
  ControlTensor control;
  control.input = declared.name;
  control.kind = declared.kind;
  const auto dtype = DtypeOf(input->datatype);
  if (!dtype.ok()) return dtype.status();
  control.dtype = *dtype;
  auto shape = ShapeOf(declared, *input, joins);
  if (!shape.ok()) return shape.status();
  control.shape = *std::move(shape);
  if (control.kind == ControlKind::kId) return control;
  for (const auto& [value, tensor] :
       {std::pair{declared.no, &control.no}, std::pair{declared.yes, &control.yes}}) {
    auto made = Choice(value, control.dtype, control.shape);
    if (!made.ok()) return made.status();
    *tensor = *std::move(made);
  }
  return control;
}

}  // namespace

absl::StatusOr<std::vector<ControlTensor>> FindControls(const ModelConfig& config,
                                                        ModelMetadata& metadata) {
  std::vector<ControlTensor> controls;
  for (const DeclaredControl& declared : config.sequences->controls) {
    auto control = FindControl(declared, metadata, config.joins());
    if (!control.ok()) return control.status();
    metadata.inputs.erase(
        std::find_if(metadata.inputs.begin(), metadata.inputs.end(),
                     [&](const TensorMetadata& t) { return t.name == declared.name; }));
    controls.push_back(*std::move(control));
  }
  return controls;
}

absl::Status AddControls(const std::vector<ControlTensor>& controls, InferRequest& request) {
  const SequenceMark& mark = request.sequence;
  if (mark.id.empty()) return absl::OkStatus();
  for (const ControlTensor& control : controls) {
    if (control.kind == ControlKind::kId) {
      auto id = Id(control, mark.id);
      if (!id.ok()) return id.status();
      request.inputs.push_back({control.input, *std::move(id)});
      continue;
    }
    // CONTROL_SEQUENCE_READY is always true, since a batch here has no rows without a request.
    const bool yes = control.kind == ControlKind::kStart ? mark.start
                     : control.kind == ControlKind::kEnd ? mark.end
                                                         : true;
    request.inputs.push_back({control.input, yes ? control.yes : control.no});
  }
  return absl::OkStatus();
}

}  // namespace oncilla::server
