// Field numbers are those of node_def.proto, attr_value.proto, tensor.proto and tensor_shape.proto.
#include "engine/import/tf/write.h"

#include "engine/import/tf/tensor.h"

namespace oncilla::tf_write {

WireRope TypeAttr(int64_t tf_type) {
  WireRope value;
  value.Varint(6, static_cast<uint64_t>(tf_type));
  return value;
}
WireRope IntAttr(int64_t number) {
  WireRope value;
  value.Varint(3, static_cast<uint64_t>(number));
  return value;
}
WireRope FunctionAttr(Bytes name) {
  WireRope function, value;
  function.Text(1, name);
  value.Message(10, std::move(function));
  return value;
}
WireRope FunctionsAttr(const std::vector<std::string>& names) {
  WireRope list, value;
  for (const std::string& name : names) {
    WireRope function;
    function.Text(1, name);
    list.Message(9, std::move(function));
  }
  value.Message(1, std::move(list));
  return value;
}
WireRope TypesAttr(const std::vector<int64_t>& types) {
  WireRope list, value;
  for (const int64_t type : types) list.Varint(6, static_cast<uint64_t>(type));
  value.Message(1, std::move(list));
  return value;
}
WireRope ShapeProto(const PartialShape& shape) {
  WireRope proto;
  if (!shape.ranked()) {
    proto.Varint(3, 1);
    return proto;
  }
  for (const Dim& dim : shape.dims()) {
    WireRope size;
    size.Varint(1, static_cast<uint64_t>(dim.known() ? dim.size : -1));
    proto.Message(2, std::move(size));
  }
  return proto;
}
WireRope ShapeAttr(const PartialShape& shape) {
  WireRope value;
  value.Message(7, ShapeProto(shape));
  return value;
}

void AddAttr(WireRope& node, Bytes name, WireRope value) {
  WireRope entry;
  entry.Text(1, name);
  entry.Message(2, std::move(value));
  node.Message(5, std::move(entry));
}

WireRope NodeHead(Bytes name, Bytes op) {
  WireRope node;
  node.Text(1, name);
  node.Text(2, op);
  return node;
}

WireRope TensorAttr(const Tensor& tensor, int64_t tf_type) {
  WireRope proto, value;
  proto.Varint(1, static_cast<uint64_t>(tf_type));
  std::vector<Dim> dims;
  for (const int64_t size : tensor.shape()) dims.emplace_back(size);
  proto.Message(2, ShapeProto(PartialShape(std::move(dims))));
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.strings()) proto.Text(8, text);
  } else {
    const auto bytes = tensor.bytes();
    proto.View(4, Bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  value.Message(8, std::move(proto));
  return value;
}

int64_t TypeOf(DType dtype) {
  for (int64_t type = 1; type < 24; ++type) {
    const bool quantised = (type >= 11 && type <= 13) || type == 15 || type == 16;
    if (!quantised && dtype != DType::kInvalid && DTypeFromTf(type) == dtype) return type;
  }
  return 0;
}

}  // namespace oncilla::tf_write
