// Messages with the wording of TensorFlow 2.21: that of its C++ session or, where the session has
// none, of its Python client.
#include "engine/import/tf/messages.h"

#include "engine/import/tf/tensor.h"
#include "engine/import/tf/write.h"

namespace oncilla::tf_messages {
namespace {

std::string TypeName(DType dtype) { return TfTypeName(tf_write::TypeOf(dtype)); }

// A shape as Python writes a tuple: "(2, None)", "(3,)".
std::string Tuple(const PartialShape& shape) {
  if (!shape.ranked()) return "<unknown>";
  std::string out = "(";
  for (int d = 0; d < shape.rank(); ++d) {
    out += d > 0 ? ", " : "";
    out += shape[d].known() ? StrCat(shape[d].size) : "None";
  }
  return out + (shape.rank() == 1 ? ",)" : ")");
}

PartialShape Known(const Shape& shape) {
  std::vector<Dim> dims;
  for (const int64_t size : shape) dims.emplace_back(size);
  return PartialShape(std::move(dims));
}

}  // namespace

std::string UnknownFeed(std::string_view tensor) {
  return StrCat("FeedInputs: unable to find feed output ", tensor);
}

std::string UnknownFetch(std::string_view tensor) {
  return StrCat("FetchOutputs node ", tensor, ": not found");
}

std::string UnknownTarget(std::string_view node) {
  return StrCat("PruneForTargets: Some target nodes not found: ", node);
}

std::string NoSuchOutput(std::string_view tensor, std::string_view node, int64_t outputs) {
  return StrCat("The name '", tensor, "' refers to a Tensor which does not exist. The operation, '",
                node, "', exists but only has ", outputs, " outputs.");
}

std::string NotATensorName(std::string_view text) {
  return StrCat("The name '", text,
                "' looks a like a Tensor name, but is not a valid one. Tensor names must be of the "
                "form \"<op_name>:<output_index>\".");
}

std::string FedTwice(std::string_view tensor) {
  return StrCat("Endpoint \"", tensor, "\" fed more than once.");
}

std::string FedAndFetched(std::string_view tensor) {
  return StrCat(tensor, " is both fed and fetched.");
}

std::string NothingAsked() { return "Must specify at least one target to fetch or execute."; }

std::string PlaceholderNotFed(std::string_view node, DType dtype, const PartialShape& shape) {
  std::string sizes = "<unknown>";
  if (shape.ranked()) {
    sizes = "[";
    for (int d = 0; d < shape.rank(); ++d) {
      sizes += d > 0 ? "," : "";
      sizes += shape[d].known() ? StrCat(shape[d].size) : "?";
    }
    sizes += "]";
  }
  return StrCat("You must feed a value for placeholder tensor '", node, "' with dtype ",
                TypeName(dtype), " and shape ", sizes);
}

std::string DoesNotFit(std::string_view name, const Fact& wanted, const Tensor& tensor) {
  if (tensor.dtype() != wanted.dtype) {
    return StrCat("Tensor ", name, " was expected to be a ", TypeName(wanted.dtype),
                  " tensor but is a ", TypeName(tensor.dtype()), " tensor");
  }
  if (wanted.shape.Accepts(tensor.shape())) return "";
  return StrCat("Cannot feed value of shape ", Tuple(Known(tensor.shape())), " for Tensor ", name,
                ", which has shape ", Tuple(wanted.shape));
}

}  // namespace oncilla::tf_messages
