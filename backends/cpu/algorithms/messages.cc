// Tensors as serialised messages and back: host functions.
#include "backends/cpu/algorithms/messages.h"

#include <farmhash.h>

#include <bit>
#include <cstring>
#include <limits>

#include "backends/cpu/text/strings.h"
#include "engine/records/inflate.h"
#include "engine/records/tensor_message.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;
static_assert(std::endian::native == std::endian::little);

// Dtypes with their numbers in TensorFlow's DataType, and the lists that hold their values.
struct TypeRow {
  DType dtype;
  int64_t number;
  TensorValues values;
};
constexpr TypeRow kTypes[] = {
    {DType::kF32, 1, TensorValues::kFloats},     {DType::kF64, 2, TensorValues::kDoubles},
    {DType::kI32, 3, TensorValues::kInts},       {DType::kU8, 4, TensorValues::kInts},
    {DType::kI16, 5, TensorValues::kInts},       {DType::kI8, 6, TensorValues::kInts},
    {DType::kString, 7, TensorValues::kStrings}, {DType::kI64, 9, TensorValues::kInt64s},
    {DType::kBool, 10, TensorValues::kBools},    {DType::kBF16, 14, TensorValues::kHalves},
    {DType::kU16, 17, TensorValues::kInts},      {DType::kF16, 19, TensorValues::kHalves},
    {DType::kU32, 22, TensorValues::kUint32s},   {DType::kU64, 23, TensorValues::kUint64s},
};

Result<TypeRow> RowOf(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row;
  }
  return InvalidArgument("messages hold no ", dtype);
}

Result<Shape> ShapeOf(const TensorHeader& header) {
  if (header.unknown_rank) return InvalidArgument("the message does not say its tensor's shape");
  if (header.sizes.size() > kMaxRank) return Unsupported("rank ", header.sizes.size());
  for (const int64_t size : header.sizes) {
    if (size < 0) return InvalidArgument("the message's tensor has a size of ", size);
  }
  return Shape(header.sizes.begin(), header.sizes.end());
}

Tensors ParseStrings(std::string_view bytes, const TensorHeader& header, const Shape& shape) {
  if (!header.content.empty()) return Unsupported("strings in packed form");
  const int64_t elements = shape.elements();
  ONCILLA_ASSIGN(const auto values, ReadTensorStrings(bytes, elements));
  Growth growth;
  std::vector<std::string> out;
  for (int64_t i = 0; i < elements; ++i) {
    const auto at = static_cast<size_t>(i);
    const std::string_view text = values.empty()       ? ""
                                  : at < values.size() ? values[at]
                                                       : values.back();
    ONCILLA_TRY(growth.Add(std::ssize(text) + static_cast<int64_t>(sizeof(std::string))));
    out.emplace_back(text);
  }
  growth.Clear();
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

// Turns bytes into booleans: any but 0 becomes 1.
void MakeTruths(std::span<std::byte> bytes) {
  for (std::byte& b : bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
}

std::string BytesOfFingerprint(std::string_view bytes) {
  const uint64_t hash = util::Fingerprint64(bytes.data(), bytes.size());
  std::string out(sizeof(hash), '\0');
  std::memcpy(out.data(), &hash, sizeof(hash));
  return out;
}

}  // namespace

Tensors ParseTensor(const ParseTensorAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const std::string& bytes = in[0].strings()[0];
  ONCILLA_ASSIGN(const TypeRow row, RowOf(attrs.to));
  ONCILLA_ASSIGN(const TensorHeader header, ReadTensorHeader(bytes));
  if (header.type != row.number) {
    return InvalidArgument("the message holds a tensor of type ", header.type, ", not ", row.number,
                           " (", attrs.to, ")");
  }
  ONCILLA_ASSIGN(const Shape shape, ShapeOf(header));
  if (shape.elements() == std::numeric_limits<int64_t>::max()) {
    return Exhausted("a tensor of the shape ", shape);
  }
  if (attrs.to == DType::kString) return ParseStrings(bytes, header, shape);
  const TensorDesc desc = {attrs.to, shape};
  const bool block = !header.content.empty() && shape.elements() > 0;
  if (block && std::ssize(header.content) != desc.bytes()) {
    return InvalidArgument("a tensor ", desc, " has ", header.content.size(), " bytes, not ",
                           desc.bytes());
  }
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate(desc));
  std::byte* to = out.mutable_bytes().data();
  if (block) {
    std::memcpy(to, header.content.data(), header.content.size());
    if (attrs.to == DType::kBool) MakeTruths(out.mutable_bytes());
    return std::vector<Tensor>{std::move(out)};
  }
  ONCILLA_ASSIGN(const auto values, ReadTensorBits(bytes, row.values, shape.elements()));
  if (values.empty()) return std::vector<Tensor>{std::move(out)};
  const auto width = static_cast<size_t>(BytesOf(attrs.to));
  WorkLook look;
  for (size_t i = 0; i < static_cast<size_t>(shape.elements()); ++i) {
    ONCILLA_TRY(look.Go(1));
    uint64_t bits = values[std::min(i, values.size() - 1)];
    if (attrs.to == DType::kBool) bits = bits != 0 ? 1 : 0;
    std::memcpy(to + i * width, &bits, width);
  }
  return std::vector<Tensor>{std::move(out)};
}

Tensors SerializeTensor(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const TypeRow row, RowOf(in[0].dtype()));
  const Shape& shape = in[0].shape();
  const std::vector<int64_t> sizes(shape.begin(), shape.end());
  const bool text = in[0].dtype() == DType::kString;
  const auto block = in[0].bytes();
  const std::string_view content =
      text ? std::string_view()
           : std::string_view(reinterpret_cast<const char*>(block.data()), block.size());
  int64_t total = std::ssize(content);
  if (text) {
    for (const std::string& part : in[0].strings()) total += std::ssize(part);
  }
  // Protobuf limits a message to 2 GiB.
  if (total > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("a message of ", total, " bytes would be too long");
  }
  HostCharge charge;
  ONCILLA_TRY(charge.Grow(total));
  std::string message = WriteTensorMessage(
      row.number, sizes, content,
      text ? std::span<const std::string>(in[0].strings()) : std::span<const std::string>());
  return std::vector<Tensor>{Tensor::Strings({}, {std::move(message)})};
}

Tensors Decompress(const DecompressAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  return MapStrings(in[0],
                    [&](const std::string& x) { return Inflate(x, attrs.container == "gzip"); });
}

Tensors Fingerprint(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const Shape& x = in[0].shape();
  const auto rows = static_cast<size_t>(x[0]);
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({DType::kU8, {x[0], 8}}));
  const bool text = in[0].dtype() == DType::kString;
  const auto inner = static_cast<size_t>(x.Product(1, x.rank()));
  const std::byte* from = in[0].bytes().data();
  const size_t bytes = text ? 0 : inner * static_cast<size_t>(BytesOf(in[0].dtype()));
  WorkLook look;
  for (size_t i = 0; i < rows; ++i) {
    std::string hash;
    if (!text) {
      ONCILLA_TRY(look.Go(static_cast<int64_t>(bytes)));
      hash = BytesOfFingerprint({reinterpret_cast<const char*>(from + i * bytes), bytes});
    } else if (inner == 1) {
      hash = BytesOfFingerprint(in[0].strings()[i]);
    } else {
      std::string parts;
      for (size_t k = 0; k < inner; ++k) {
        const std::string& part = in[0].strings()[i * inner + k];
        ONCILLA_TRY(look.Go(std::ssize(part)));
        parts += BytesOfFingerprint(part);
      }
      hash = BytesOfFingerprint(parts);
    }
    std::memcpy(out.mutable_bytes().data() + i * hash.size(), hash.data(), hash.size());
  }
  return std::vector<Tensor>{std::move(out)};
}

}  // namespace oncilla::cpu
