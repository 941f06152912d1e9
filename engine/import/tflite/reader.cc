// Reads the tables of the schema by field number, and checks every index in them.
#include "engine/import/tflite/reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/half.h"
#include "engine/import/tflite/tensor.h"
#include "engine/tensor/shape.h"

namespace oncilla {
namespace {

constexpr uint32_t kSchemaVersion = 3;

// Limits the total size of tables, since many offsets in a small file can lead to one large table.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file), budget_(8 * file.size() + 4096) {}

  Result<TfliteModel> Run() {
    ONCILLA_ASSIGN(const FlatTable root, FlatTable::Root(file_));
    ONCILLA_ASSIGN(const uint32_t version, root.Number<uint32_t>(0, 0));
    if (version != kSchemaVersion) {
      return Unsupported("a TFLite model of schema version ", version, "; version ", kSchemaVersion,
                         " is read");
    }
    TfliteModel model;
    ONCILLA_ASSIGN(model.description, root.String(3));
    ONCILLA_TRY(ReadCodes(root));
    ONCILLA_TRY(ReadBuffers(root));
    ONCILLA_ASSIGN(const auto subgraphs, Tables(root, 2));
    for (const FlatTable& table : subgraphs) {
      ONCILLA_ASSIGN(TfliteSubgraph subgraph, ReadSubgraph(table));
      model.subgraphs.push_back(std::move(subgraph));
    }
    if (model.subgraphs.empty()) return DataLoss("a TFLite model without a subgraph");
    ONCILLA_ASSIGN(const auto signatures, Tables(root, 7));
    for (const FlatTable& table : signatures) {
      ONCILLA_ASSIGN(TfliteSignature signature, ReadSignature(table, model));
      model.signatures.push_back(std::move(signature));
    }
    return model;
  }

 private:
  struct OpCode {
    int32_t code = 0;
    std::string_view custom;
    int32_t version = 1;
  };

  // To be called before `elements` elements are read; fails if the total is too large.
  Status Take(size_t elements) {
    if (elements > budget_) return DataLoss("tables of the file overlap");
    budget_ -= elements;
    return {};
  }

  Result<std::vector<FlatTable>> Tables(const FlatTable& table, int field) {
    ONCILLA_ASSIGN(const size_t count, table.Count(field, 4));
    ONCILLA_TRY(Take(4 * count));
    return table.Tables(field);
  }

  template <class T>
  Result<std::vector<T>> Numbers(const FlatTable& table, int field) {
    ONCILLA_ASSIGN(const size_t count, table.Count(field, sizeof(T)));
    ONCILLA_TRY(Take(sizeof(T) * count));
    return table.Numbers<T>(field);
  }

  Status ReadCodes(const FlatTable& root) {
    ONCILLA_ASSIGN(const auto tables, Tables(root, 1));
    for (const FlatTable& table : tables) {
      OpCode code;
      ONCILLA_ASSIGN(code.custom, table.String(1));
      ONCILLA_ASSIGN(code.version, table.Number<int32_t>(2, 1));
      // Old files have the op's number in a byte; newer ones store a placeholder there if it is in
      // another field.
      ONCILLA_ASSIGN(const int8_t old, table.Number<int8_t>(0, 0));
      ONCILLA_ASSIGN(const int32_t number, table.Number<int32_t>(3, 0));
      code.code = std::max<int32_t>(old, number);
      codes_.push_back(code);
    }
    return {};
  }

  // A buffer's bytes are inside its table or, in files above 2 GB, after all tables.
  Status ReadBuffers(const FlatTable& root) {
    ONCILLA_ASSIGN(const auto tables, Tables(root, 4));
    for (const FlatTable& table : tables) {
      ONCILLA_ASSIGN(std::string_view bytes, table.Bytes(0));
      ONCILLA_ASSIGN(const uint64_t offset, table.Number<uint64_t>(1, 0));
      ONCILLA_ASSIGN(const uint64_t size, table.Number<uint64_t>(2, 0));
      if (offset > 1) {
        if (offset > file_.size() || size > file_.size() - offset) {
          return DataLoss("buffer ", buffers_.size(), " lies outside of the file");
        }
        bytes = file_.substr(offset, size);
      }
      buffers_.push_back(bytes);
    }
    return {};
  }

  Result<TfliteQuantization> ReadQuantization(const FlatTable& table) {
    TfliteQuantization out;
    ONCILLA_ASSIGN(out.scale, Numbers<float>(table, 2));
    ONCILLA_ASSIGN(out.zero_point, Numbers<int64_t>(table, 3));
    ONCILLA_ASSIGN(const uint8_t details, table.Number<uint8_t>(4, 0));
    out.details = details;
    ONCILLA_ASSIGN(out.axis, table.Number<int32_t>(6, 0));
    return out;
  }

  Result<TfliteTensor> ReadTensor(const FlatTable& table) {
    TfliteTensor out;
    ONCILLA_ASSIGN(out.shape, Numbers<int32_t>(table, 0));
    ONCILLA_ASSIGN(out.type, table.Number<int8_t>(1, 0));
    ONCILLA_ASSIGN(const uint32_t buffer, table.Number<uint32_t>(2, 0));
    ONCILLA_ASSIGN(out.name, table.String(3));
    ONCILLA_ASSIGN(const FlatTable quantization, table.Table(4));
    ONCILLA_ASSIGN(out.quantization, ReadQuantization(quantization));
    ONCILLA_ASSIGN(const uint8_t variable, table.Number<uint8_t>(5, 0));
    ONCILLA_ASSIGN(out.sparsity, table.Table(6));
    ONCILLA_ASSIGN(out.signature, Numbers<int32_t>(table, 7));
    ONCILLA_ASSIGN(const uint8_t has_rank, table.Number<uint8_t>(8, 0));
    ONCILLA_ASSIGN(const uint32_t external, table.Number<uint32_t>(10, 0));
    out.is_variable = variable != 0;
    out.has_rank = has_rank != 0;
    out.has_signature = table.Has(7) && out.signature.size() == out.shape.size();
    if (external != 0) return Unsupported("tensor '", out.name, "' in a file of its own");
    if (buffer >= buffers_.size()) {
      return DataLoss("tensor '", out.name, "' is in buffer ", buffer, " of ", buffers_.size());
    }
    out.data = buffers_[buffer];
    return out;
  }

  static Status CheckIndices(const std::vector<int32_t>& indices, size_t count, bool optional,
                             std::string_view what) {
    for (int32_t i : indices) {
      if (i == kNoTensor && optional) continue;
      if (i < 0 || static_cast<size_t>(i) >= count) {
        return DataLoss(what, " is tensor ", i, " of ", count);
      }
    }
    return {};
  }

  Result<TfliteOp> ReadOp(const FlatTable& table, size_t tensors) {
    TfliteOp op;
    ONCILLA_ASSIGN(const uint32_t code, table.Number<uint32_t>(0, 0));
    if (code >= codes_.size()) return DataLoss("an op has code ", code, " of ", codes_.size());
    op.code = codes_[code].code;
    op.custom = codes_[code].custom;
    op.version = codes_[code].version;
    ONCILLA_ASSIGN(op.inputs, Numbers<int32_t>(table, 1));
    ONCILLA_ASSIGN(op.outputs, Numbers<int32_t>(table, 2));
    ONCILLA_ASSIGN(op.intermediates, Numbers<int32_t>(table, 8));
    ONCILLA_ASSIGN(const uint8_t type, table.Number<uint8_t>(3, 0));
    ONCILLA_ASSIGN(const uint8_t type2, table.Number<uint8_t>(11, 0));
    op.options_type = type;
    op.options2_type = type2;
    ONCILLA_ASSIGN(op.options, table.Table(4));
    ONCILLA_ASSIGN(op.options2, table.Table(12));
    ONCILLA_ASSIGN(op.custom_options, table.Bytes(5));
    ONCILLA_ASSIGN(const uint64_t offset, table.Number<uint64_t>(9, 0));
    ONCILLA_ASSIGN(const uint64_t size, table.Number<uint64_t>(10, 0));
    if (offset > 1) {
      if (offset > file_.size() || size > file_.size() - offset) {
        return DataLoss("the options of an op lie outside of the file");
      }
      op.custom_options = file_.substr(offset, size);
    }
    ONCILLA_TRY(CheckIndices(op.inputs, tensors, true, "an input of an op"));
    ONCILLA_TRY(CheckIndices(op.outputs, tensors, true, "an output of an op"));
    ONCILLA_TRY(CheckIndices(op.intermediates, tensors, true, "an intermediate of an op"));
    return op;
  }

  // The scales of a tensor that is quantised in blocks, which are another tensor of its subgraph.
  Status ReadBlocks(const FlatTable& table, std::vector<TfliteTensor>& tensors,
                    TfliteTensor& tensor) {
    if (tensor.quantization.details != kTfliteBlockwise) return {};
    ONCILLA_ASSIGN(const FlatTable quantization, table.Table(4));
    ONCILLA_ASSIGN(const FlatTable blocks, quantization.Table(5));
    ONCILLA_ASSIGN(const int32_t scales, blocks.Number<int32_t>(0, 0));
    ONCILLA_ASSIGN(const int32_t zeros, blocks.Number<int32_t>(1, kNoTensor));
    ONCILLA_ASSIGN(const int32_t block, blocks.Number<int32_t>(2, 0));
    const std::string where = StrCat("tensor '", tensor.name, "'");
    if (zeros != kNoTensor) return Unsupported(where, " with a zero point for each block");
    if (block < 1 || scales < 0 || static_cast<size_t>(scales) >= tensors.size()) {
      return DataLoss(where, " has blocks of ", block, " with the scales of tensor ", scales);
    }
    const TfliteTensor& from = tensors[static_cast<size_t>(scales)];
    const DType dtype = DTypeFromTflite(from.type);
    int64_t count = 1;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      int64_t size = tensor.shape[i];
      if (i + 1 == tensor.shape.size()) size = (size + block - 1) / block;
      count = SaturatingMul(count, std::max<int64_t>(size, 0));
    }
    if ((dtype != DType::kF16 && dtype != DType::kF32) || tensor.shape.empty() ||
        std::ssize(from.data) != SaturatingMul(count, BytesOf(dtype))) {
      return DataLoss(where, " needs ", count, " scales of its blocks");
    }
    std::vector<float>& to = tensor.quantization.block_scales;
    to.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < to.size(); ++i) {
      if (dtype == DType::kF32) {
        std::memcpy(&to[i], from.data.data() + 4 * i, 4);
      } else {
        Half half;
        std::memcpy(&half, from.data.data() + 2 * i, 2);
        to[i] = static_cast<float>(half);
      }
      if (!std::isfinite(to[i])) return DataLoss(where, " has a scale of ", to[i]);
    }
    tensor.quantization.block = block;
    return {};
  }

  Result<TfliteSubgraph> ReadSubgraph(const FlatTable& table) {
    TfliteSubgraph out;
    ONCILLA_ASSIGN(out.name, table.String(4));
    ONCILLA_ASSIGN(const auto tensors, Tables(table, 0));
    for (const FlatTable& tensor : tensors) {
      ONCILLA_ASSIGN(TfliteTensor read, ReadTensor(tensor));
      out.tensors.push_back(std::move(read));
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      ONCILLA_TRY(ReadBlocks(tensors[i], out.tensors, out.tensors[i]));
    }
    ONCILLA_ASSIGN(out.inputs, Numbers<int32_t>(table, 1));
    ONCILLA_ASSIGN(out.outputs, Numbers<int32_t>(table, 2));
    const size_t count = out.tensors.size();
    ONCILLA_TRY(CheckIndices(out.inputs, count, false, "an input of a subgraph"));
    ONCILLA_TRY(CheckIndices(out.outputs, count, false, "an output of a subgraph"));
    ONCILLA_ASSIGN(const auto ops, Tables(table, 3));
    for (const FlatTable& op : ops) {
      ONCILLA_ASSIGN(TfliteOp read, ReadOp(op, count));
      out.ops.push_back(std::move(read));
    }
    return out;
  }

  Result<TfliteSignature> ReadSignature(const FlatTable& table, const TfliteModel& model) {
    TfliteSignature out;
    ONCILLA_ASSIGN(out.key, table.String(2));
    ONCILLA_ASSIGN(const uint32_t subgraph, table.Number<uint32_t>(4, 0));
    if (subgraph >= model.subgraphs.size()) {
      return DataLoss("signature '", out.key, "' is subgraph ", subgraph, " of ",
                      model.subgraphs.size());
    }
    out.subgraph = subgraph;
    const size_t count = model.subgraphs[subgraph].tensors.size();
    for (int side = 0; side < 2; ++side) {
      auto& list = side == 0 ? out.inputs : out.outputs;
      ONCILLA_ASSIGN(const auto maps, Tables(table, side));
      for (const FlatTable& map : maps) {
        ONCILLA_ASSIGN(const std::string_view name, map.String(0));
        ONCILLA_ASSIGN(const uint32_t tensor, map.Number<uint32_t>(1, 0));
        if (tensor >= count) {
          return DataLoss("'", name, "' of signature '", out.key, "' is tensor ", tensor, " of ",
                          count);
        }
        list.emplace_back(name, static_cast<int32_t>(tensor));
      }
    }
    return out;
  }

  const std::string_view file_;
  size_t budget_;
  std::vector<OpCode> codes_;
  std::vector<std::string_view> buffers_;
};

}  // namespace

bool LooksLikeTflite(std::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3";
}

Result<TfliteModel> ReadTfliteModel(std::string_view bytes) { return Reader(bytes).Run(); }

}  // namespace oncilla
