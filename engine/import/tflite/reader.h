// A TFLite file as plain structs: subgraphs, tensors, operators, signatures.
//
// Everything is read and checked when the model is opened, except operators' options and sparsity,
// which stay tables that check each access, and tensors' bytes, which stay views into the file. All
// indices are in range after that, so users of them need not check. Field numbers are those of
// LiteRT's schema, version 3. The bytes must outlive everything here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/import/tflite/flat.h"

namespace oncilla {

// How integers represent real numbers: real = scale * (stored - zero_point), with one scale, or one
// per index along `axis`, or (kTfliteBlockwise) one for each block of `block` numbers of a row.
inline constexpr int64_t kTfliteBlockwise = 2;
struct TfliteQuantization {
  std::vector<float> scale;
  std::vector<int64_t> zero_point;  // as many, or none: all zero
  int32_t axis = 0;
  int64_t details = 0;              // not 0: another kind of quantisation
  int32_t block = 0;                // of kTfliteBlockwise: numbers in a block of the last axis
  std::vector<float> block_scales;  // row by row
};

struct TfliteTensor {
  std::string_view name;
  int8_t type = 0;             // a number of the schema's TensorType
  std::vector<int32_t> shape;  // the shape for which the file was made
  std::vector<int32_t> signature;
  bool has_signature = false;  // then sizes of -1 in `signature` are open
  bool has_rank = false;       // false: an empty shape means an unknown rank
  bool is_variable = false;    // keeps its value from run to run
  std::string_view data;       // empty: the tensor is computed, or fed
  TfliteQuantization quantization;
  FlatTable sparsity;  // valid if only some of the elements are stored
};

// An absent input of an operator, if it is optional.
inline constexpr int32_t kNoTensor = -1;

struct TfliteOp {
  int32_t code = 0;         // a number of the schema's BuiltinOperator
  std::string_view custom;  // the name of a custom op
  int32_t version = 1;
  std::vector<int32_t> inputs, outputs, intermediates;
  // Numbers of union types, and their tables; 0 if there is none.
  int options_type = 0, options2_type = 0;
  FlatTable options, options2;
  std::string_view custom_options;
};

struct TfliteSubgraph {
  std::string_view name;
  std::vector<TfliteTensor> tensors;
  std::vector<int32_t> inputs, outputs;
  std::vector<TfliteOp> ops;
};

struct TfliteSignature {
  std::string_view key;
  std::vector<std::pair<std::string_view, int32_t>> inputs, outputs;  // name, tensor
  size_t subgraph = 0;
};

struct TfliteModel {
  std::string_view description;
  std::vector<TfliteSubgraph> subgraphs;  // at least one: the main one
  std::vector<TfliteSignature> signatures;
};

// Whether the bytes identify themselves as a TFLite model.
bool LooksLikeTflite(std::string_view bytes);

// DataLoss for a damaged file, Unimplemented for another version of the schema.
Result<TfliteModel> ReadTfliteModel(std::string_view bytes);

// "CONV_2D"; "op 300" for an unknown one.
std::string TfliteOpName(const TfliteOp& op);
inline constexpr int32_t kTfliteCustom = 32;

}  // namespace oncilla
