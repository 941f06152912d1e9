// TensorFlow's parsers of records: Example messages, CSV, raw bytes.
#include <algorithm>

#include "engine/import/tf/lowering.h"
#include "engine/import/tf/tensor.h"
#include "engine/ops/data/messages.h"

namespace oncilla {
namespace {

// The strings of an input that names outputs; they must be known at import.
Result<std::vector<std::string>> KnownStrings(const TfLowering& b, size_t input,
                                              std::string_view what) {
  if (input >= b.inputs()) return DataLoss("input ", input, " is missing");
  const Fact& fact = b.in_fact(input);
  if (fact.dtype != DType::kString || !fact.has_value()) {
    return Unsupported(what, " is computed while running; it must be a constant");
  }
  return fact.value.strings();
}

// Reads a file that came with the model as one string.
Result<Values> LowerReadFile(TfLowering& b) {
  ONCILLA_ASSIGN(const std::vector<std::string> path, KnownStrings(b, 0, "the name of its file"));
  if (path.size() != 1) return InvalidArgument("a list of ", path.size(), " files");
  ONCILLA_ASSIGN(const auto file, b.OpenAsset(path[0]));
  return Values{b.Constant(Tensor::Strings({}, {std::string(file->text())}))};
}

Result<std::vector<std::string>> TypeNames(const TfLowering& b, std::string_view attr) {
  std::vector<std::string> names;
  ONCILLA_ASSIGN(const std::vector<int64_t> numbers, b.attrs().TypeNumbers(attr));
  for (int64_t number : numbers) names.emplace_back(Name(DTypeFromTf(number)));
  return names;
}

// The keys, as ParseExample, ParseExampleV2 and ParseSingleExample pass them.
struct Keys {
  std::vector<std::string> sparse, dense, ragged;
  size_t defaults = 0;  // index of the first default
};

Result<std::vector<std::string>> KeyInputs(const TfLowering& b, size_t& input, int64_t count) {
  std::vector<std::string> keys;
  for (int64_t i = 0; i < count; ++i) {
    ONCILLA_ASSIGN(const std::vector<std::string> key, KnownStrings(b, input++, "a key"));
    if (key.size() != 1) return InvalidArgument("a key has ", key.size(), " strings");
    keys.push_back(key[0]);
  }
  return keys;
}

Result<Keys> ReadKeys(const TfLowering& b) {
  Keys keys;
  if (b.op() == "ParseSingleExample") {
    ONCILLA_ASSIGN(keys.sparse, b.attrs().Strings("sparse_keys"));
    ONCILLA_ASSIGN(keys.dense, b.attrs().Strings("dense_keys"));
    keys.defaults = 1;
  } else if (b.op() == "ParseExample") {
    ONCILLA_ASSIGN(const int64_t sparse, b.attrs().Int("Nsparse"));
    ONCILLA_ASSIGN(const int64_t dense, b.attrs().Int("Ndense"));
    keys.defaults = 2;
    ONCILLA_ASSIGN(keys.sparse, KeyInputs(b, keys.defaults, sparse));
    ONCILLA_ASSIGN(keys.dense, KeyInputs(b, keys.defaults, dense));
  } else {
    ONCILLA_ASSIGN(keys.sparse, KnownStrings(b, 2, "sparse_keys"));
    ONCILLA_ASSIGN(keys.dense, KnownStrings(b, 3, "dense_keys"));
    ONCILLA_ASSIGN(keys.ragged, KnownStrings(b, 4, "ragged_keys"));
    keys.defaults = 5;
  }
  return keys;
}

Result<Values> LowerParseExample(TfLowering& b) {
  ONCILLA_ASSIGN(Keys keys, ReadKeys(b));
  ParseExamplesAttrs attrs;
  ONCILLA_ASSIGN(attrs.sparse_types, TypeNames(b, "sparse_types"));
  ONCILLA_ASSIGN(attrs.dense_types, TypeNames(b, "Tdense"));
  ONCILLA_ASSIGN(const std::vector<PartialShape> shapes, b.attrs().Shapes("dense_shapes"));
  const size_t dense = attrs.dense_types.size();
  if (attrs.sparse_types.size() != keys.sparse.size() || dense != keys.dense.size() ||
      shapes.size() != dense || b.inputs() != keys.defaults + dense) {
    return DataLoss("its keys, types, shapes and defaults differ in number");
  }
  for (const PartialShape& shape : shapes) {
    if (!shape.ranked()) return Unsupported("a dense feature of unknown rank");
    attrs.dense_ranks.push_back(shape.rank());
    for (int i = 0; i < shape.rank(); ++i) {
      if (!shape[i].known() && i > 0) return Unsupported("a dense feature of shape ", shape);
      attrs.dense_dims.push_back(shape[i].known() ? shape[i].size : -1);
    }
  }
  if (b.op() == "ParseExampleV2") {
    ONCILLA_ASSIGN(attrs.ragged_types, TypeNames(b, "ragged_value_types"));
    ONCILLA_ASSIGN(attrs.ragged_splits, TypeNames(b, "ragged_split_types"));
    attrs.ragged_keys = std::move(keys.ragged);
  }
  attrs.sparse_keys = std::move(keys.sparse);
  attrs.dense_keys = std::move(keys.dense);
  Values inputs = {b.in(0)};
  for (size_t i = keys.defaults; i < b.inputs(); ++i) inputs.push_back(b.in(i));
  return b.AddAll(attrs, std::move(inputs));
}

// The shapes of dense features: the number of axes of each, and all sizes in one list.
Status ReadShapes(const TfLowering& b, std::string_view attr, std::vector<int64_t>& ranks,
                  std::vector<int64_t>& dims) {
  ONCILLA_ASSIGN(const std::vector<PartialShape> shapes, b.attrs().Shapes(attr));
  for (const PartialShape& shape : shapes) {
    if (!shape.known()) return Unsupported("a dense feature of shape ", shape);
    ranks.push_back(shape.rank());
    for (const Dim& dim : shape.dims()) dims.push_back(dim.size);
  }
  return {};
}

// Keys and defaults of the three forms of ParseSequenceExample. Sets `defaults` to the index of the
// first default.
Status ReadSequenceKeys(const TfLowering& b, ParseSequencesAttrs& attrs, size_t* defaults) {
  std::vector<std::string> missing;
  if (b.op() == "ParseSequenceExampleV2") {
    ONCILLA_ASSIGN(attrs.context.sparse_keys, KnownStrings(b, 2, "context_sparse_keys"));
    ONCILLA_ASSIGN(attrs.context.dense_keys, KnownStrings(b, 3, "context_dense_keys"));
    ONCILLA_ASSIGN(attrs.context.ragged_keys, KnownStrings(b, 4, "context_ragged_keys"));
    ONCILLA_ASSIGN(attrs.list_sparse_keys, KnownStrings(b, 5, "feature_list_sparse_keys"));
    ONCILLA_ASSIGN(attrs.list_dense_keys, KnownStrings(b, 6, "feature_list_dense_keys"));
    ONCILLA_ASSIGN(attrs.list_ragged_keys, KnownStrings(b, 7, "feature_list_ragged_keys"));
    ONCILLA_ASSIGN(attrs.list_may_miss, b.KnownInts(8, "feature_list_dense_missing_assumed_empty"));
    ONCILLA_ASSIGN(attrs.context.ragged_types, TypeNames(b, "context_ragged_value_types"));
    ONCILLA_ASSIGN(attrs.context.ragged_splits, TypeNames(b, "context_ragged_split_types"));
    ONCILLA_ASSIGN(attrs.list_ragged_types, TypeNames(b, "feature_list_ragged_value_types"));
    ONCILLA_ASSIGN(attrs.list_ragged_splits, TypeNames(b, "feature_list_ragged_split_types"));
    *defaults = 9;
    return {};
  }
  if (b.op() == "ParseSequenceExample") {
    ONCILLA_ASSIGN(missing, b.attrs().Strings("feature_list_dense_missing_assumed_empty"));
    ONCILLA_ASSIGN(attrs.context.sparse_keys, b.attrs().Strings("context_sparse_keys"));
    ONCILLA_ASSIGN(attrs.context.dense_keys, b.attrs().Strings("context_dense_keys"));
    ONCILLA_ASSIGN(attrs.list_sparse_keys, b.attrs().Strings("feature_list_sparse_keys"));
    ONCILLA_ASSIGN(attrs.list_dense_keys, b.attrs().Strings("feature_list_dense_keys"));
    *defaults = 2;
  } else {
    ONCILLA_ASSIGN(missing, KnownStrings(b, 1, "feature_list_dense_missing_assumed_empty"));
    size_t input = 2;
    const auto keys = [&](std::string_view count, std::vector<std::string>& to) -> Status {
      ONCILLA_ASSIGN(const int64_t number, b.attrs().Int(count));
      ONCILLA_ASSIGN(to, KeyInputs(b, input, number));
      return {};
    };
    ONCILLA_TRY(keys("Ncontext_sparse", attrs.context.sparse_keys));
    ONCILLA_TRY(keys("Ncontext_dense", attrs.context.dense_keys));
    ONCILLA_TRY(keys("Nfeature_list_sparse", attrs.list_sparse_keys));
    ONCILLA_TRY(keys("Nfeature_list_dense", attrs.list_dense_keys));
    *defaults = input;
  }
  for (const std::string& key : attrs.list_dense_keys) {
    const bool may_miss = std::find(missing.begin(), missing.end(), key) != missing.end();
    attrs.list_may_miss.push_back(may_miss ? 1 : 0);
  }
  return {};
}

Result<Values> LowerParseSequence(TfLowering& b) {
  ParseSequencesAttrs attrs;
  size_t defaults = 0;
  ONCILLA_TRY(ReadSequenceKeys(b, attrs, &defaults));
  ONCILLA_ASSIGN(attrs.context.sparse_types, TypeNames(b, "context_sparse_types"));
  ONCILLA_ASSIGN(attrs.context.dense_types, TypeNames(b, "Tcontext_dense"));
  ONCILLA_ASSIGN(attrs.list_sparse_types, TypeNames(b, "feature_list_sparse_types"));
  ONCILLA_ASSIGN(attrs.list_dense_types, TypeNames(b, "feature_list_dense_types"));
  ONCILLA_TRY(
      ReadShapes(b, "context_dense_shapes", attrs.context.dense_ranks, attrs.context.dense_dims));
  ONCILLA_TRY(
      ReadShapes(b, "feature_list_dense_shapes", attrs.list_dense_ranks, attrs.list_dense_dims));
  const size_t dense = attrs.context.dense_keys.size();
  if (b.inputs() < defaults + dense) return DataLoss("it has too few defaults");
  Values inputs = {b.in(0)};
  for (size_t i = 0; i < dense; ++i) inputs.push_back(b.in(defaults + i));
  const size_t lengths = attrs.list_dense_keys.size();
  ONCILLA_ASSIGN(Values out, b.AddAll("ParseSequences", attrs, std::move(inputs)));
  // The form for a single message does not return lengths.
  if (b.op() == "ParseSingleSequenceExample") out.resize(out.size() - lengths);
  return out;
}

Result<Values> LowerDecodeCsv(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string separator, b.attrs().String("field_delim"));
  ONCILLA_ASSIGN(const std::string missing, b.attrs().String("na_value"));
  ONCILLA_ASSIGN(const bool quotes, b.attrs().Bool("use_quote_delim"));
  ONCILLA_ASSIGN(std::vector<int64_t> columns, b.attrs().Ints("select_cols"));
  return b.AddAll(DecodeCsvAttrs{.separator = separator,
                                 .missing = missing,
                                 .quotes = quotes,
                                 .columns = std::move(columns)},
                  b.all_inputs());
}

Result<Values> LowerDecodeRaw(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_type"));
  ONCILLA_ASSIGN(const bool little_endian, b.attrs().Bool("little_endian"));
  return One(b.Add(DecodeRawAttrs{.to = to, .little_endian = little_endian}, b.all_inputs()));
}

// A message states its type; for quantised types that is not the type of the integers that carry
// them.
Status RequireMessageType(const TfLowering& b, std::string_view attr) {
  ONCILLA_ASSIGN(const int64_t number, b.attrs().TypeNumber(attr));
  const std::string name = TfTypeName(number);
  if (name.find("qint") == std::string::npos && name.find("quint") == std::string::npos) return {};
  return Unsupported("of tensors of ", name);
}

Result<Values> LowerParseTensor(TfLowering& b) {
  ONCILLA_TRY(RequireMessageType(b, "out_type"));
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_type"));
  return One(b.Add("ParseTensor", ParseTensorAttrs{to}, {b.in(0)}));
}

Result<Values> LowerSerializeTensor(TfLowering& b) {
  ONCILLA_TRY(RequireMessageType(b, "T"));
  return One(b.Add("SerializeTensor", {}, {b.in(0)}));
}

Result<Values> LowerDecompress(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string type, b.attrs().String("compression_type"));
  if (type.empty()) return Values{b.in(0)};
  if (type != "ZLIB" && type != "GZIP") {
    return InvalidArgument("Only ZLIB, GZIP or NONE are supported compressions, not ", type);
  }
  return One(b.Add("Decompress", DecompressAttrs{type == "GZIP" ? "gzip" : "zlib"}, {b.in(0)}));
}

Result<Values> LowerFingerprint(TfLowering& b) {
  ONCILLA_ASSIGN(const std::vector<std::string> method, KnownStrings(b, 1, "the method"));
  if (method.size() != 1 || method[0] != "farmhash64") {
    return InvalidArgument("Unsupported fingerprint algorithm: ",
                           method.empty() ? "" : method[0].substr(0, 60));
  }
  return One(b.Add("Fingerprint", {}, {b.in(0)}));
}

constexpr TfOpRow kRows[] = {
    {"DecodeCompressed", 1, "", LowerDecompress},
    {"DecodeCSV", 2, "", LowerDecodeCsv},
    {"DecodePaddedRaw", 2, "", LowerDecodeRaw},
    {"DecodeRaw", 1, "", LowerDecodeRaw},
    {"Fingerprint", 2, "", LowerFingerprint},
    {"ParseExample", 2, "", LowerParseExample},
    {"ParseExampleV2", 5, "", LowerParseExample},
    {"ParseSequenceExample", 2, "", LowerParseSequence},
    {"ParseSequenceExampleV2", 9, "", LowerParseSequence},
    {"ParseSingleExample", 1, "", LowerParseExample},
    {"ParseSingleSequenceExample", 3, "", LowerParseSequence},
    {"ParseTensor", 1, "", LowerParseTensor},
    {"ReadFile", 1, "", LowerReadFile},
    {"SerializeTensor", 1, "", LowerSerializeTensor},
};

}  // namespace

std::span<const TfOpRow> TfRecordRows() { return kRows; }

}  // namespace oncilla
