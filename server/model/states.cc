// Compares declared states with a model's signature.
#include "server/model/states.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "server/core/tensor_codec.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

absl::Status Bad(const DeclaredState& state, const std::string& what) {
  return absl::InvalidArgumentError(
      StrCat("the state '", state.input_name, "' of sequence_batching ", what));
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return StrCat("[", absl::StrJoin(shape, ","), "]");
}

TensorMetadata* Named(std::vector<TensorMetadata>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorMetadata& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

// Sizes that are known on both sides must be equal.
bool Agree(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](int64_t x, int64_t y) { return x < 0 || y < 0 || x == y; });
}

// The sizes of a state as far as both tensors and the configuration state them, -1 for open ones;
// without the batch axis if requests are joined.
absl::StatusOr<std::vector<int64_t>> DimsOf(const DeclaredState& state, const TensorMetadata& input,
                                            const TensorMetadata& output, bool joins) {
  std::vector<std::vector<int64_t>> known;
  if (state.dims) known.push_back(*state.dims);
  for (const TensorMetadata* tensor : {&input, &output}) {
    if (!tensor->ranked) continue;
    std::vector<int64_t> own = tensor->shape;
    if (joins && (own.empty() || own[0] >= 0))
      return Bad(state, StrCat("needs an open first axis in '", tensor->name,
                               "' where requests are joined, whose shape is ", ShapeText(own)));
    if (joins) own.erase(own.begin());
    known.push_back(std::move(own));
  }
  if (known.empty()) return Bad(state, "needs dims, since the model does not tell its rank");
  std::vector<int64_t> dims = known[0];
  for (const auto& other : known) {
    if (!Agree(dims, other))
      return Bad(state, StrCat("is ", ShapeText(dims), " on one side and ", ShapeText(other),
                               " on the other"));
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = std::max(dims[i], other[i]);
  }
  if (joins && std::any_of(dims.begin(), dims.end(), [](int64_t size) { return size < 0; }))
    return Bad(state, StrCat("has the open sizes ", ShapeText(dims),
                             ": requests are joined where all but the batch's axis are known"));
  return dims;
}

absl::StatusOr<Tensor> Initial(const DeclaredState& state, const std::string& datatype,
                               const std::vector<int64_t>& shape, int64_t most) {
  const auto dtype = DtypeOf(datatype);
  if (!dtype.ok()) return dtype.status();
  const auto elements = ElementsOf(state.input_name, shape);
  if (!elements.ok()) return elements.status();
  const size_t each = std::max<size_t>(ElementBytes(*dtype), 1);
  if (*elements > static_cast<size_t>(most) / each)
    return Bad(state, StrCat("has the initial shape ", ShapeText(shape),
                             ", which takes more than the memory_limit of sequence_batching"));
  return ZeroTensor(state.input_name, *dtype, shape);
}

absl::StatusOr<StateTensor> FindState(DeclaredState& state, ModelMetadata& metadata, bool joins,
                                      int64_t most) {
  const TensorMetadata* input = Named(metadata.inputs, state.input_name);
  const TensorMetadata* output = Named(metadata.outputs, state.output_name);
  if (input == nullptr || output == nullptr) {
    return Bad(state, StrCat("names the ", input == nullptr ? "input '" : "output '",
                             input == nullptr ? state.input_name : state.output_name,
                             "', which the model does not have, or which is a state twice"));
  }
  const std::string type = ConfigTypeOf(input->datatype);
  if (input->datatype != output->datatype)
    return Bad(state, StrCat("is ", type, ", and the output '", output->name, "' is ",
                             ConfigTypeOf(output->datatype)));
  if (!state.data_type.empty() && state.data_type != type)
    return Bad(state, StrCat("is declared as ", state.data_type, "; the model's is ", type));
  auto dims = DimsOf(state, *input, *output, joins);
  if (!dims.ok()) return dims.status();
  std::vector<int64_t> initial = *dims;
  for (int64_t& size : initial) size = size < 0 ? 1 : size;
  if (state.initial_dims) {
    if (!Agree(*dims, *state.initial_dims))
      return Bad(state, StrCat("has the initial shape ", ShapeText(*state.initial_dims), "; it is ",
                               ShapeText(*dims)));
    initial = *state.initial_dims;
  }
  state.data_type = type;
  state.dims = *dims;
  if (joins) {
    initial.insert(initial.begin(), 1);
    dims->insert(dims->begin(), 1);
  }
  auto zeros = Initial(state, input->datatype, initial, most);
  if (!zeros.ok()) return zeros.status();
  return StateTensor{state.input_name, state.output_name, /*variable=*/false, *std::move(dims),
                     *std::move(zeros)};
}

void Remove(std::vector<TensorMetadata>& tensors, const std::string& name) {
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                               [&](const TensorMetadata& t) { return t.name == name; }),
                tensors.end());
}

absl::StatusOr<StateTensor> FindVariable(const Model& model, const std::vector<TensorInfo>& known,
                                         const std::string& name) {
  const auto info =
      std::find_if(known.begin(), known.end(), [&](const TensorInfo& v) { return v.name == name; });
  if (info == known.end()) {
    const std::string names = absl::StrJoin(known, ", ", [](std::string* out, const TensorInfo& v) {
      StrAppend(out, "'", v.name, "'");
    });
    return absl::InvalidArgumentError(
        StrCat("the model has no variable '", name, "' that could be kept for each sequence",
               names.empty() ? std::string(": those of TensorFlow's models are")
                             : StrCat("; it has ", names)));
  }
  auto value = model.ReadVariable(name);
  if (!value.ok()) return FromEngine(value.status(), StrCat("variable '", name, "'"));
  // If no graph changes the variable, assigning it causes the graphs that read it to be compiled
  // again. That is done now, and not in the first request.
  const absl::Status assigned = FromEngine(model.AssignVariable(name, *value));
  if (!assigned.ok()) return assigned;
  const std::string key = StrCat(kVariableKey, name);
  return StateTensor{key, key, /*variable=*/true, info->ranked ? info->dims : value->dims(),
                     *value};
}

}  // namespace

absl::Status FindVariables(const ModelConfig& config, const ModelMetadata& metadata,
                           const Model& model, SequenceOptions& options) {
  if (config.sequences->variables.empty()) return absl::OkStatus();
  for (const auto* tensors : {&metadata.inputs, &metadata.outputs}) {
    for (const TensorMetadata& tensor : *tensors) {
      if (tensor.name.starts_with(kVariableKey))
        return absl::UnimplementedError(
            StrCat("'", tensor.name, "' is named as variables are here"));
    }
  }
  const std::vector<TensorInfo> known = model.variables();
  for (const std::string& name : config.sequences->variables) {
    auto state = FindVariable(model, known, name);
    if (!state.ok()) return state.status();
    options.states.push_back(*std::move(state));
  }
  return absl::OkStatus();
}

absl::StatusOr<SequenceOptions> FindStates(ModelConfig& config, ModelMetadata& metadata) {
  SequenceBatching& declared = *config.sequences;
  SequenceOptions options;
  options.max_idle = std::chrono::microseconds(declared.max_idle_us);
  options.max_live = static_cast<size_t>(declared.max_sequences);
  options.max_bytes = declared.memory_limit_bytes;
  for (DeclaredState& state : declared.state) {
    auto found = FindState(state, metadata, config.joins(), declared.memory_limit_bytes);
    if (!found.ok()) return found.status();
    Remove(metadata.inputs, state.input_name);
    options.states.push_back(*std::move(found));
  }
  for (const DeclaredState& state : declared.state) {
    const bool shown =
        std::any_of(config.outputs.begin(), config.outputs.end(),
                    [&](const DeclaredTensor& d) { return d.name == state.output_name; });
    if (!shown) Remove(metadata.outputs, state.output_name);
  }
  return options;
}

}  // namespace oncilla::server
