// Weights that are quantised while activations are not stay packed in memory instead of becoming
// float constants:
//   MatMul(x, Dequantize(w))     ->  MatMulPacked(x, w)
//   Gather(Dequantize(w), rows)  ->  Dequantize(Gather(w, rows))
// w is a constant matrix of 8, 4 or 2 bits with one scale, one per column (per row of a table), or
// one per block along the sums (along a row). This must run before constant folding, and only where
// all devices of the session accept the result.
#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/ops/math/matmul.h"
#include "engine/ops/math/packed.h"
#include "engine/ops/math/quantize.h"
#include "engine/passes/axis_order.h"
#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"
#include "engine/tensor/numbers.h"

namespace oncilla {
namespace {

// Smaller weights are faster as floats and take little memory.
constexpr int64_t kFewestWeights = int64_t{1} << 16;

// A constant matrix read through DequantizeLinear: `rows` of `width` numbers, each row with
// `blocks` scales.
struct Weights {
  DType dtype = DType::kInvalid;
  int64_t rows = 0, width = 0;
  int64_t block = 0, blocks = 0;
  std::vector<float> scales;   // [rows, blocks]
  std::vector<int64_t> zeros;  // [rows, blocks]
  // One byte per weight, offset so that the least value is 0; number i of row r is at r * row + i *
  // step.
  std::vector<uint8_t> codes;
  int64_t row = 0, step = 0;
  NodeId from = kNoNode;

  bool is_signed() const {
    return dtype == DType::kI8 || dtype == DType::kI4 || dtype == DType::kI2;
  }
  int64_t middle() const { return int64_t{1} << (BitsOf(dtype) - 1); }
};

bool IsWeightType(DType t) {
  return t == DType::kI8 || t == DType::kU8 || t == DType::kI4 || t == DType::kU4 ||
         t == DType::kI2 || t == DType::kU2;
}

class Keeper {
 public:
  Keeper(const Graph& graph, const PassContext& context, Patch& patch)
      : graph_(graph), context_(context), patch_(patch) {}

  Status Run() {
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (node.op->name == "MatMul") ONCILLA_TRY(KeepMatrix(NodeId{n}));
      if (node.op->name == "Gather") ONCILLA_TRY(KeepRows(NodeId{n}));
    }
    return Status();
  }

 private:
  // Reads the matrix `value`, whose axis `along` is summed over and becomes the last one.
  std::optional<Weights> Read(ValueId value, int along) const {
    // Transposes between the weights and the product only exchange the two axes.
    while (const Node* node = ProducerIf(graph_, value, "Transpose")) {
      const auto order = OrderOf(graph_, *node);
      if (!order || order->size() != 2) return {};
      along = (*order)[static_cast<size_t>(along)];
      value = node->inputs[0];
    }
    const Node* node = ProducerIf(graph_, value, "DequantizeLinear");
    if (node == nullptr) return {};
    const auto attrs = ReadAttrs<DequantizeLinearAttrs>(node->attrs);
    const Fact &w = graph_.fact(node->inputs[0]), &scale = graph_.fact(node->inputs[1]);
    if (!attrs.ok() || attrs->to != DType::kF32 || !IsWeightType(w.dtype) || !w.has_value() ||
        w.shape.rank() != 2 || scale.dtype != DType::kF32 || !scale.has_value()) {
      return {};
    }
    // Rows are the outputs (or table rows), the width is the summed axis (or the row's length).
    const Shape shape = w.value.shape();
    if (shape.elements() < kFewestWeights) return {};
    Weights out;
    out.dtype = w.dtype;
    out.from = IdOf(graph_, value);
    out.rows = shape[1 - along];
    out.width = shape[along];
    const auto axis = NormalizeAxis(attrs->axis, 2);
    if (!axis.ok()) return {};
    const auto places = PlacesOf(shape, scale.value.shape(), attrs->axis, attrs->block_size);
    if (!places.ok()) return {};
    // Scales along the summed axis but without blocks would mean one for each weight.
    const bool blocked = attrs->block_size != 0;
    if (blocked ? *axis != along : scale.value.elements() != 1 && *axis == along) return {};
    out.block = blocked ? attrs->block_size : out.width;
    out.blocks = blocked ? (out.width + out.block - 1) / out.block : 1;
    if (!ReadParameters(*node, out, along, blocked)) return {};
    out.row = along == 1 ? out.width : 1, out.step = along == 1 ? 1 : out.rows;
    // Unpack the codes to bytes and make signed ones unsigned by flipping the top bit.
    out.codes.resize(static_cast<size_t>(shape.elements()));
    const std::byte* bytes = w.value.bytes().data();
    if (IsPacked(w.dtype)) {
      UnpackCodes(w.dtype, bytes, shape.elements(), out.codes.data());
    } else {
      std::memcpy(out.codes.data(), bytes, out.codes.size());
    }
    if (out.is_signed()) {
      for (uint8_t& code : out.codes) code ^= static_cast<uint8_t>(out.middle());
    }
    return out;
  }

  // Reads scales and zero points as [rows, blocks].
  bool ReadParameters(const Node& node, Weights& out, int along, bool blocked) const {
    const auto count = static_cast<size_t>(out.rows * out.blocks);
    const auto numbers = [&](const Tensor& tensor) -> std::vector<double> {
      auto given = ToDoubles(tensor);
      std::vector<double> all(count);
      if (!given.ok() || given->empty()) return {};
      for (size_t i = 0; i < count; ++i) {
        size_t at = i;
        if (given->size() == 1) {
          at = 0;
        } else if (given->size() != count) {
          return {};
        } else if (blocked && along == 0) {
          at = i % static_cast<size_t>(out.blocks) * static_cast<size_t>(out.rows) +
               i / static_cast<size_t>(out.blocks);
        }
        all[i] = (*given)[at];
      }
      return all;
    };
    const std::vector<double> scales = numbers(graph_.fact(node.inputs[1]).value);
    if (scales.empty()) return false;
    out.scales.assign(scales.begin(), scales.end());
    out.zeros.assign(count, 0);
    if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return true;
    const Fact& zero = graph_.fact(node.inputs[2]);
    if (!zero.has_value()) return false;
    const std::vector<double> zeros = numbers(zero.value);
    out.zeros.assign(zeros.begin(), zeros.end());
    return !zeros.empty();
  }

  bool AllRun(std::string_view op, const AttrMap& attrs, const Facts& in, const Facts& out,
              std::string_view name) const {
    const NodeView view{graph_.ops().Find(op), &attrs, in, out, name};
    return std::all_of(context_.devices.begin(), context_.devices.end(),
                       [&](const Device* device) { return device->CanRun(view).ok(); });
  }

  Status KeepMatrix(NodeId id) {
    const Node& node = graph_.node(id);
    const Fact &x = graph_.fact(node.inputs[0]), &y = graph_.fact(node.outputs[0]);
    if (node.inputs.size() > 2 || StringAttr(node, "activation", "none") != "none" ||
        BoolAttr(node, "transpose_a", false) || x.dtype != DType::kF32 || !x.shape.ranked() ||
        x.shape.rank() < 2) {
      return Status();
    }
    const auto w = Read(node.inputs[1], BoolAttr(node, "transpose_b", false) ? 1 : 0);
    if (!w) return Status();
    const int bits = BitsOf(w->dtype);
    const int64_t per_byte = 8 / bits;
    MatMulPackedAttrs attrs;
    attrs.bits = bits;
    attrs.depth = w->width;
    // A single block may be padded to whole bytes; several must consist of whole bytes, or the
    // weights are not kept packed.
    attrs.block = w->blocks == 1 ? (w->block + per_byte - 1) / per_byte * per_byte : w->block;
    if (attrs.block % per_byte != 0) return Status();
    const AttrMap map = WriteAttrs(attrs);
    const Facts in = {x, Fact::Of(DType::kU8, Shape{w->rows, w->blocks, attrs.block / per_byte}),
                      Fact::Of(DType::kF32, Shape{w->rows, w->blocks}),
                      Fact::Of(DType::kU8, Shape{w->rows, (w->blocks + per_byte - 1) / per_byte})};
    if (!AllRun("MatMulPacked", map, in, {y}, node.name)) return Status();
    std::vector<ValueId> inputs = {node.inputs[0]};
    AddConstants(*w, attrs, inputs);
    ONCILLA_ASSIGN(const ValueId packed, patch_.Add("MatMulPacked", map, inputs, {id, w->from}));
    return patch_.Replace(node.outputs[0], packed);
  }

  void AddConstants(const Weights& w, const MatMulPackedAttrs& attrs,
                    std::vector<ValueId>& inputs) {
    const int64_t block_bytes = attrs.block * attrs.bits / 8;
    inputs.push_back(AddCodes(w, Shape{w.rows, w.blocks, block_bytes}));
    inputs.push_back(AddScales(w));
    // Zero points are offset like the weights; they may be left out if they are all the middle.
    const std::vector<uint8_t> zeros = ZeroCodes(w);
    const auto is_middle = [&](uint8_t zero) { return zero == w.middle(); };
    if (std::all_of(zeros.begin(), zeros.end(), is_middle)) return;
    const int64_t zero_bytes = (w.blocks * attrs.bits + 7) / 8;
    std::vector<uint8_t> packed(static_cast<size_t>(w.rows * zero_bytes));
    for (int64_t r = 0; r < w.rows; ++r) {
      for (int64_t i = 0; i < w.blocks; ++i) {
        packed[static_cast<size_t>(r * zero_bytes + i * attrs.bits / 8)] |= static_cast<uint8_t>(
            zeros[static_cast<size_t>(r * w.blocks + i)] << (i * attrs.bits % 8));
      }
    }
    inputs.push_back(
        patch_.AddConstant(Tensor::Of<uint8_t>(DType::kU8, Shape{w.rows, zero_bytes}, packed)));
  }

  // Adds the weights as rows of the number of bytes that `shape` gives.
  ValueId AddCodes(const Weights& w, const Shape& shape) {
    const int64_t bits = BitsOf(w.dtype), row_bytes = shape.elements() / w.rows;
    std::vector<uint8_t> bytes(static_cast<size_t>(shape.elements()));
    for (int64_t r = 0; r < w.rows; ++r) {
      uint8_t* to = bytes.data() + r * row_bytes;
      for (int64_t i = 0; i < w.width; ++i) {
        const int code = w.codes[static_cast<size_t>(r * w.row + i * w.step)];
        to[i * bits / 8] |= static_cast<uint8_t>(code << (i * bits % 8));
      }
    }
    return patch_.AddConstant(Tensor::Of<uint8_t>(DType::kU8, shape, bytes));
  }

  ValueId AddScales(const Weights& w) {
    return patch_.AddConstant(Tensor::Of<float>(DType::kF32, Shape{w.rows, w.blocks}, w.scales));
  }

  static std::vector<uint8_t> ZeroCodes(const Weights& w) {
    std::vector<uint8_t> codes;
    for (const int64_t zero : w.zeros) {
      codes.push_back(static_cast<uint8_t>(zero + (w.is_signed() ? w.middle() : 0)));
    }
    return codes;
  }

  Status KeepRows(NodeId id) {
    const Node& node = graph_.node(id);
    const Fact &rows = graph_.fact(node.inputs[1]), &y = graph_.fact(node.outputs[0]);
    if (IntAttr(node, "axis", 0) != 0 || IntAttr(node, "batch_dims", 0) != 0 ||
        !rows.shape.ranked() || !y.shape.ranked()) {
      return Status();
    }
    const auto w = Read(node.inputs[0], 1);
    if (!w) return Status();
    const int bits = BitsOf(w->dtype);
    if (w->width * bits % 8 != 0) return Status();
    // Codes of fewer than 8 bits are gathered as whole bytes and unpacked afterwards, so every
    // device must have UnpackBits.
    const auto wide = [&](DType type, int64_t width) {
      std::vector<Dim> dims = rows.shape.dims();
      dims.emplace_back(width);
      return Fact::Of(type, PartialShape(std::move(dims)));
    };
    const AttrMap unpack = WriteAttrs(UnpackBitsAttrs{.bits = bits});
    const Fact bytes = wide(DType::kU8, w->width * bits / 8), codes = wide(DType::kU8, w->width);
    if (bits < 8 && !AllRun("UnpackBits", unpack, {bytes}, {codes}, node.name)) return Status();

    // Gather codes, scales and zero points by the same indices, and dequantise only those rows.
    const std::vector<NodeId> from = {id, w->from};
    const auto gather = [&](ValueId table) {
      return patch_.Add("Gather", node.attrs, {table, node.inputs[1]}, from);
    };
    ONCILLA_ASSIGN(ValueId x, gather(AddCodes(*w, Shape{w->rows, w->width * bits / 8})));
    if (bits < 8) {
      ONCILLA_ASSIGN(x, patch_.Add("UnpackBits", unpack, {x}, from));
    }
    ONCILLA_ASSIGN(const ValueId scales, gather(AddScales(*w)));
    ONCILLA_ASSIGN(const ValueId zeros,
                   gather(patch_.AddConstant(
                       Tensor::Of<uint8_t>(DType::kU8, Shape{w->rows, w->blocks}, ZeroCodes(*w)))));
    const DequantizeLinearAttrs attrs = {.axis = -1, .block_size = w->block};
    ONCILLA_ASSIGN(const ValueId real,
                   patch_.Add("DequantizeLinear", WriteAttrs(attrs), {x, scales, zeros}, from));
    return patch_.Replace(node.outputs[0], real);
  }

  const Graph& graph_;
  const PassContext& context_;
  Patch& patch_;
};

}  // namespace

Status KeepPacked(const Graph& graph, const PassContext& context, Patch& patch) {
  return Keeper(graph, context, patch).Run();
}

}  // namespace oncilla
