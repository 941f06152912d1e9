// TensorFlow's readers of records: Example messages, CSV, raw bytes.
#include "engine/import/tf/lowering.h"
#include "engine/import/tf/tensor.h"

namespace oncilla {
namespace {

// The strings of an input, which name outputs and must be known.
Result<std::vector<std::string>> KnownStrings(const TfLowering& b, size_t input,
                                              std::string_view what) {
  if (input >= b.inputs()) return DataLoss("input ", input, " is missing");
  const Fact& fact = b.in_fact(input);
  if (fact.dtype != DType::kString || !fact.has_value()) {
    return Unsupported(what, " is computed while running; it must be a constant");
  }
  return fact.value.strings();
}

// A file that came with the model, as one string.
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

// How ParseExample, its second version and ParseSingleExample give their keys.
struct Keys {
  std::vector<std::string> sparse, dense, ragged;
  size_t defaults = 0;  // the first input that is one
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

constexpr TfOpRow kRows[] = {
    {"DecodeCSV", 2, "", LowerDecodeCsv},         {"DecodePaddedRaw", 2, "", LowerDecodeRaw},
    {"DecodeRaw", 1, "", LowerDecodeRaw},         {"ParseExample", 2, "", LowerParseExample},
    {"ParseExampleV2", 5, "", LowerParseExample}, {"ParseSingleExample", 1, "", LowerParseExample},
    {"ReadFile", 1, "", LowerReadFile},
};

}  // namespace

std::span<const TfOpRow> TfRecordRows() { return kRows; }

}  // namespace oncilla
