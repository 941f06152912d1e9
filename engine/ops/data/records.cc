// Ops that parse records in strings: inference and rows.
#include "engine/ops/data/records.h"

#include "engine/ops/data/messages.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Status RequireString(const Fact& fact, std::string_view what) {
  if (fact.dtype == DType::kString) return Status();
  return InvalidArgument(what, " must be strings, not ", fact.dtype);
}

Result<DType> ValueType(const std::string& name) {
  const auto dtype = DTypeFromName(name);
  if (dtype == DType::kF32 || dtype == DType::kI64 || dtype == DType::kString) return *dtype;
  return InvalidArgument("examples hold no ", name);
}

Result<Facts> InferParseExamples(const ParseExamplesAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "serialized"));
  const PartialShape& x = in[0].shape;
  if (x.ranked() && x.rank() > 1) return InvalidArgument("serialized has shape ", x);
  if (attrs.sparse_keys.size() != attrs.sparse_types.size() ||
      attrs.dense_keys.size() != attrs.dense_types.size() ||
      attrs.dense_keys.size() != attrs.dense_ranks.size() ||
      attrs.ragged_keys.size() != attrs.ragged_types.size() ||
      attrs.ragged_keys.size() != attrs.ragged_splits.size()) {
    return InvalidArgument("keys and types differ in number");
  }
  if (in.size() != 1 + attrs.dense_keys.size()) {
    return InvalidArgument(in.size() - 1, " defaults for ", attrs.dense_keys.size(), " keys");
  }
  const bool single = x.ranked() && x.rank() == 0;
  Facts out;
  const Dim index = x.ranked() ? Dim(x.rank() + 1) : Dim();
  for (size_t i = 0; i < attrs.sparse_keys.size(); ++i) {
    out.push_back(Fact::Of(DType::kI64, PartialShape({Dim(), index})));
  }
  for (const std::string& name : attrs.sparse_types) {
    ONCILLA_ASSIGN(const DType dtype, ValueType(name));
    out.push_back(Fact::Of(dtype, PartialShape::OfRank(1)));
  }
  for (size_t i = 0; i < attrs.sparse_keys.size(); ++i) {
    out.push_back(Fact::Of(DType::kI64, PartialShape({index})));
  }
  size_t at = 0;
  for (size_t i = 0; i < attrs.dense_keys.size(); ++i) {
    ONCILLA_ASSIGN(const DType dtype, ValueType(attrs.dense_types[i]));
    if (in[1 + i].dtype != dtype) {
      return InvalidArgument("the default of '", attrs.dense_keys[i], "' is ", in[1 + i].dtype,
                             ", not ", dtype);
    }
    const int64_t rank = attrs.dense_ranks[i];
    if (rank < 0 || rank > kMaxRank - 1 ||
        attrs.dense_dims.size() - at < static_cast<size_t>(rank)) {
      return InvalidArgument("the shape of '", attrs.dense_keys[i], "' has ", rank, " axes");
    }
    std::vector<Dim> dims;
    if (!single) dims.push_back(x.ranked() ? x[0] : Dim());
    for (int64_t k = 0; k < rank; ++k, ++at) {
      const int64_t size = attrs.dense_dims[at];
      if (size < (k == 0 ? -1 : 0)) return InvalidArgument("a size is ", size);
      dims.push_back(size < 0 ? Dim() : Dim(size));
    }
    out.push_back(Fact::Of(dtype, x.ranked() ? PartialShape(std::move(dims)) : PartialShape()));
  }
  if (!attrs.ragged_keys.empty() && single) {
    return Unsupported("ragged features of a single example");
  }
  for (const std::string& name : attrs.ragged_types) {
    ONCILLA_ASSIGN(const DType dtype, ValueType(name));
    out.push_back(Fact::Of(dtype, PartialShape::OfRank(1)));
  }
  for (const std::string& name : attrs.ragged_splits) {
    const auto dtype = DTypeFromName(name);
    if (dtype != DType::kI32 && dtype != DType::kI64) return InvalidArgument("splits of ", name);
    const bool known = x.ranked() && x[0].known();
    out.push_back(Fact::Of(*dtype, PartialShape({known ? Dim(x[0].size + 1) : Dim()})));
  }
  return out;
}

Result<Facts> InferParseSequences(const ParseSequencesAttrs& attrs, std::span<const Fact> in) {
  for (const int64_t size : attrs.context.dense_dims) {
    if (size < 0) return Unsupported("a feature of the context with a size that is not known");
  }
  ONCILLA_ASSIGN(Facts out, InferParseExamples(attrs.context, in));
  const size_t dense = attrs.list_dense_keys.size();
  if (attrs.list_sparse_keys.size() != attrs.list_sparse_types.size() ||
      dense != attrs.list_dense_types.size() || dense != attrs.list_dense_ranks.size() ||
      dense != attrs.list_may_miss.size() ||
      attrs.list_ragged_keys.size() != attrs.list_ragged_types.size() ||
      attrs.list_ragged_keys.size() != attrs.list_ragged_splits.size()) {
    return InvalidArgument("keys and types of lists differ in number");
  }
  const PartialShape& x = in[0].shape;
  const bool single = x.ranked() && x.rank() == 0;
  const Dim batch = x.ranked() && !single ? x[0] : Dim();
  const Dim index = x.ranked() ? Dim(x.rank() + 2) : Dim();
  const size_t sparse = attrs.list_sparse_keys.size(), ragged = attrs.list_ragged_keys.size();
  out.insert(out.end(), sparse, Fact::Of(DType::kI64, PartialShape({Dim(), index})));
  for (const std::string& name : attrs.list_sparse_types) {
    ONCILLA_ASSIGN(const DType dtype, ValueType(name));
    out.push_back(Fact::Of(dtype, PartialShape::OfRank(1)));
  }
  out.insert(out.end(), sparse, Fact::Of(DType::kI64, PartialShape({index})));
  size_t at = 0;
  for (size_t i = 0; i < dense; ++i) {
    ONCILLA_ASSIGN(const DType dtype, ValueType(attrs.list_dense_types[i]));
    const int64_t rank = attrs.list_dense_ranks[i];
    if (rank < 0 || rank > kMaxRank - 2 ||
        attrs.list_dense_dims.size() - at < static_cast<size_t>(rank)) {
      return InvalidArgument("the shape of '", attrs.list_dense_keys[i], "' has ", rank, " axes");
    }
    std::vector<Dim> dims;
    if (!single) dims.push_back(batch);
    dims.emplace_back();
    for (int64_t k = 0; k < rank; ++k, ++at) {
      if (attrs.list_dense_dims[at] < 0) {
        return Unsupported("a list with a size that is not known");
      }
      dims.emplace_back(attrs.list_dense_dims[at]);
    }
    out.push_back(Fact::Of(dtype, x.ranked() ? PartialShape(std::move(dims)) : PartialShape()));
  }
  const PartialShape lengths = single ? PartialShape(Shape{}) : PartialShape({batch});
  out.insert(out.end(), dense, Fact::Of(DType::kI64, x.ranked() ? lengths : PartialShape()));
  if (ragged > 0 && single) return Unsupported("ragged features of a single example");
  for (const std::string& name : attrs.list_ragged_types) {
    ONCILLA_ASSIGN(const DType dtype, ValueType(name));
    out.push_back(Fact::Of(dtype, PartialShape::OfRank(1)));
  }
  for (const bool inner : {false, true}) {
    for (const std::string& name : attrs.list_ragged_splits) {
      const auto dtype = DTypeFromName(name);
      if (dtype != DType::kI32 && dtype != DType::kI64) return InvalidArgument("splits of ", name);
      const bool known = !inner && batch.known();
      out.push_back(Fact::Of(*dtype, PartialShape({known ? Dim(batch.size + 1) : Dim()})));
    }
  }
  return out;
}

Result<Facts> InferDecodeCsv(const DecodeCsvAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "records"));
  if (attrs.separator.size() != 1) return InvalidArgument("the separator must be one character");
  if (!attrs.columns.empty() && attrs.columns.size() + 1 != in.size()) {
    return InvalidArgument(attrs.columns.size(), " columns for ", in.size() - 1, " defaults");
  }
  for (size_t i = 0; i < attrs.columns.size(); ++i) {
    if (attrs.columns[i] < 0 || (i > 0 && attrs.columns[i] <= attrs.columns[i - 1])) {
      return InvalidArgument("columns must ascend from 0");
    }
  }
  Facts out;
  for (size_t i = 1; i < in.size(); ++i) {
    const DType t = in[i].dtype;
    if (t != DType::kF32 && t != DType::kF64 && t != DType::kI32 && t != DType::kI64 &&
        t != DType::kString) {
      return InvalidArgument("a column cannot be ", t);
    }
    const Dim count = in[i].shape.elements();
    if (count.known() && count.size > 1) {
      return InvalidArgument("default ", i - 1, " has ", count.size, " elements");
    }
    out.push_back(Fact::Of(t, in[0].shape));
  }
  return out;
}

Result<Facts> InferDecodeRaw(const DecodeRawAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  if (!IsNumber(attrs.to) && attrs.to != DType::kBool) {
    return InvalidArgument("bytes cannot become ", attrs.to);
  }
  const bool fixed = in.size() > 1 && !in[1].absent();
  Dim elements;
  if (fixed && AllIntsKnown(in[1])) {
    ONCILLA_ASSIGN(const std::vector<int64_t> length, NeedInts(in[1], "length"));
    const int64_t width = BytesOf(attrs.to);
    if (length.size() != 1 || length[0] < 1 || length[0] % width != 0) {
      return InvalidArgument("length must be a multiple of ", width);
    }
    elements = Dim(length[0] / width);
  }
  if (!in[0].shape.ranked()) return Facts{Fact::Of(attrs.to, PartialShape())};
  std::vector<Dim> dims = in[0].shape.dims();
  dims.push_back(elements);
  return Facts{Fact::Of(attrs.to, PartialShape(std::move(dims)))};
}

Result<Facts> InferPackBytes(const NoAttrs&, std::span<const Fact> in) {
  if (in[0].dtype != DType::kU8) return InvalidArgument("x must be u8, not ", in[0].dtype);
  if (!in[0].shape.ranked()) return Facts{Fact::Of(DType::kString, PartialShape())};
  if (in[0].shape.rank() == 0) return InvalidArgument("x has no axis of bytes");
  std::vector<Dim> dims = in[0].shape.dims();
  dims.pop_back();
  return Facts{Fact::Of(DType::kString, PartialShape(std::move(dims)))};
}

// The number and type of the elements are known only from the message.
Result<Facts> InferParseTensor(const ParseTensorAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "serialized"));
  ONCILLA_TRY(RequireRank(in[0], 0, "serialized"));
  if (attrs.to != DType::kString && attrs.to != DType::kBool && !IsNumber(attrs.to)) {
    return InvalidArgument("messages hold no ", attrs.to);
  }
  return Facts{Fact::Of(attrs.to, PartialShape())};
}

Result<Facts> InferSerializeTensor(const NoAttrs&, std::span<const Fact> in) {
  const DType dtype = in[0].dtype;
  if (dtype != DType::kString && dtype != DType::kBool && !IsNumber(dtype)) {
    return InvalidArgument("messages hold no ", dtype);
  }
  return Facts{Fact::Of(DType::kString, PartialShape(Shape{}))};
}

Result<Facts> InferDecompress(const DecompressAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  if (attrs.container != "zlib" && attrs.container != "gzip") {
    return InvalidArgument("there is no container '", attrs.container, "'");
  }
  return Facts{Fact::Of(DType::kString, in[0].shape)};
}

Result<Facts> InferFingerprint(const NoAttrs&, std::span<const Fact> in) {
  if (in[0].dtype != DType::kString && in[0].dtype != DType::kBool && !IsNumber(in[0].dtype)) {
    return InvalidArgument("x cannot be ", in[0].dtype);
  }
  const PartialShape& x = in[0].shape;
  if (x.ranked() && x.rank() == 0) return InvalidArgument("x must have rows, not shape ", x);
  return Facts{Fact::Of(DType::kU8, PartialShape({x.ranked() ? x[0] : Dim(), Dim(8)}))};
}

constexpr OpDef kRecordOps[] = {
    Op<InferParseExamples>("ParseExamples",
                           {.inputs = {1, kVariadic}, .host_only = true, .data_dependent = true}),
    Op<InferParseSequences>("ParseSequences",
                            {.inputs = {1, kVariadic}, .host_only = true, .data_dependent = true}),
    Op<InferDecodeCsv>("DecodeCsv", {.inputs = {2, kVariadic}, .host_only = true}),
    Op<InferDecodeRaw>(
        "DecodeRaw",
        {.inputs = {1, 2}, .plan_inputs = 0b10, .host_only = true, .data_dependent = true}),
    Op<InferPackBytes>("PackBytes", {.inputs = {1, 1}, .host_only = true}),
    Op<InferParseTensor>("ParseTensor",
                         {.inputs = {1, 1}, .host_only = true, .data_dependent = true}),
    Op<InferSerializeTensor>("SerializeTensor", {.inputs = {1, 1}, .host_only = true}),
    Op<InferDecompress>("Decompress", {.inputs = {1, 1}, .host_only = true}),
    Op<InferFingerprint>("Fingerprint", {.inputs = {1, 1}, .host_only = true}),
};

}  // namespace

std::span<const OpDef> RecordOps() { return kRecordOps; }

}  // namespace oncilla
