// GraphBuilder: builds a TensorFlow graph in code, node by node, as a GraphDef.
//
// The result is loaded as any other GraphDef, and TensorFlow can read it too: ops, types and
// messages are TensorFlow's. An output is identified by its tensor's name and its type, from which
// attributes that depend on inputs are derived. Device scopes nest as with tf.device. The first
// failure is kept, and everything built on it fails too, so that it is enough to check at the end.
// Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/placement/device_name.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

class GraphBuilder {
 public:
  // One output of a node: "node:0". The type is invalid if the node failed.
  struct Output {
    std::string tensor;
    DType dtype = DType::kInvalid;
  };
  using AttrValue = std::variant<int64_t, float, bool, std::string, DType, PartialShape,
                                 std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
                                 std::vector<DType>, Tensor>;
  using Attrs = std::vector<std::pair<std::string, AttrValue>>;

  // An empty name is derived from the op; a name that is taken gets a number ("add_1").
  Output Constant(const Tensor& value, std::string_view name = {});
  Output Placeholder(DType dtype, const PartialShape& shape, std::string_view name = {});
  // Adds any op of TensorFlow. Attributes that follow from the inputs of common ops (T, N, Tidx..)
  // and those with defaults may be omitted. The outputs have type `dtype`, or by default that of
  // the first input. The inputs of an op are checked only when the graph is loaded.
  Output Op(std::string_view op, const std::vector<Output>& inputs, const Attrs& attrs = {},
            std::string_view name = {}, DType dtype = DType::kInvalid);
  // Output `index` of the node that has the output `first`.
  Output Other(const Output& first, int index, DType dtype = DType::kInvalid) const;

  // Nodes added from now on get this device, merged component by component into the enclosing
  // scope; "" means no device.
  void PushDevice(std::string_view device);
  void PopDevice();

  // The first failure so far.
  const Status& status() const { return status_; }
  // A serialized GraphDef, or the first failure.
  Result<std::string> GraphDef() const;

 private:
  Output Fail(Status status);
  std::string Unique(std::string_view name, std::string_view op);

  Status status_;
  std::string nodes_;  // serialized, each as field 1 of a GraphDef
  std::vector<std::string> names_;
  std::vector<DeviceName> devices_;  // scopes, each merged with those around it
};

}  // namespace oncilla
