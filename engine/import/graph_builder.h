// GraphBuilder: a TensorFlow graph written in code, node by node, as a GraphDef.
//
// What it builds is loaded as any other GraphDef, and TensorFlow reads it too: ops, types and
// messages are TensorFlow's. Each output is known by its tensor's name and its type, which fills in
// the attributes that follow from inputs. Device scopes nest as tf.device does. The first failure
// is kept, and everything built on it fails with it, so that it is enough to look at the end. Not
// thread-safe.
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
  // One output of a node: "node:0". Invalid type: of a node that failed.
  struct Output {
    std::string tensor;
    DType dtype = DType::kInvalid;
  };
  using AttrValue = std::variant<int64_t, float, bool, std::string, DType, PartialShape,
                                 std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
                                 std::vector<DType>, Tensor>;
  using Attrs = std::vector<std::pair<std::string, AttrValue>>;

  // Names are made from the op where they are empty, and numbered ("add_1") where they are taken.
  Output Constant(const Tensor& value, std::string_view name = {});
  Output Placeholder(DType dtype, const PartialShape& shape, std::string_view name = {});
  // Any op of TensorFlow. Attributes that follow from the inputs of common ops (T, N, Tidx..) need
  // not be given; those with defaults neither. `outputs` outputs of type `dtype`, or of the first
  // input's when that is not given. Which op takes what is judged when the graph is loaded.
  Output Op(std::string_view op, const std::vector<Output>& inputs, const Attrs& attrs = {},
            std::string_view name = {}, DType dtype = DType::kInvalid);
  // Output `index` of the node that made `first`.
  Output Other(const Output& first, int index, DType dtype = DType::kInvalid) const;

  // What is built from now on is for this device, merged component by component into the scope
  // around it; "" stands for no device.
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
