// Writes nodes of a GraphDef: a NodeDef begins with NodeHead, then come its inputs as texts of
// field 3, then attributes.
#pragma once

#include <string>
#include <vector>

#include "engine/import/wire/wire_rope.h"
#include "engine/tensor/tensor.h"

namespace oncilla::tf_write {

WireRope NodeHead(Bytes name, Bytes op);
void AddAttr(WireRope& node, Bytes name, WireRope value);

// AttrValues.
WireRope TypeAttr(int64_t tf_type);
WireRope TypesAttr(const std::vector<int64_t>& types);
WireRope IntAttr(int64_t number);
WireRope FunctionAttr(Bytes name);
WireRope FunctionsAttr(const std::vector<std::string>& names);
WireRope ShapeAttr(const PartialShape& shape);
// Numbers as one block; a view of the tensor's bytes if they are large.
WireRope TensorAttr(const Tensor& tensor, int64_t tf_type);

WireRope ShapeProto(const PartialShape& shape);

// TensorFlow's number of a type; 0 for one that it does not have.
int64_t TypeOf(DType dtype);

}  // namespace oncilla::tf_write
