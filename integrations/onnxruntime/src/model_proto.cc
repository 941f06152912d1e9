// Writes a part of a graph as a serialized onnx.ModelProto. The numbers of fields are those of
// onnx.proto.
#include <cstring>
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <unordered_set>

#include "integrations/onnxruntime/src/graph.h"

namespace oncilla::ort {
namespace {

using protozero::pbf_writer;

// protozero writes lengths as 32-bit numbers, and readers take them as signed.
constexpr size_t kMostBytes = std::numeric_limits<int32_t>::max() - (1 << 20);
constexpr int64_t kIrVersion = 10;

// AttributeProto.AttributeType
enum {
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8
};

class Writer {
 public:
  Writer(const Graph& graph, std::string& bytes) : graph_(graph), bytes_(bytes) {}

  void Model(const std::vector<size_t>& nodes, const Boundary& boundary) {
    pbf_writer model(bytes_);
    model.add_int64(1, kIrVersion);
    for (const auto& [domain, version] : graph_.opsets) {
      pbf_writer opset(model, 8);
      opset.add_string(1, domain);
      opset.add_int64(2, version);
    }
    pbf_writer graph(model, 7);
    Body(graph, graph_, nodes, boundary, {});
  }

 private:
  using Names = std::unordered_set<std::string>;

  // Writes a GraphProto. `outer` are tensors of the enclosing graphs, which it reads by name.
  void Body(pbf_writer& out, const Graph& graph, const std::vector<size_t>& nodes,
            const Boundary& boundary, const Names& outer) {
    out.add_string(2, graph.name.empty() ? "graph" : graph.name);
    Names written = outer;
    for (const size_t i : nodes) {
      const GraphNode& node = graph.nodes[i];
      Node(out, node, written);
      for (const auto* list : {&node.inputs, &node.captures}) {
        for (const std::string& name : *list) {
          if (name.empty() || graph.value(name).constant == nullptr) continue;
          if (written.insert(name).second) Tensor(out, 5, name, graph.value(name).constant);
        }
      }
    }
    for (const std::string& name : boundary.inputs) ValueInfo(out, 11, graph.value(name));
    for (const std::string& name : boundary.outputs) ValueInfo(out, 12, graph.value(name));
    // The types of intermediate values are written as well, so that a node after an unsupported one
    // can be judged.
    for (const auto* list : {&boundary.inputs, &boundary.outputs}) {
      written.insert(list->begin(), list->end());
    }
    for (const size_t i : nodes) {
      for (const std::string& name : graph.nodes[i].outputs) {
        if (name.empty() || !graph.value(name).tensor) continue;
        if (written.insert(name).second) ValueInfo(out, 13, graph.value(name));
      }
    }
  }

  void Grow(size_t bytes) const {
    if (bytes_.size() < kMostBytes && bytes < kMostBytes - bytes_.size()) return;
    throw Failure(kOrtNotImplemented,
                  "oncilla: its constants have more than 2 GB, the most that a model in memory may "
                  "have");
  }

  void ValueInfo(pbf_writer& parent, uint32_t field, const GraphValue& value) {
    const TensorType& type = value.type;
    pbf_writer info(parent, field);
    info.add_string(1, value.name);
    if (!value.tensor) return;
    pbf_writer held(info, 2), tensor(held, 1);
    tensor.add_int32(1, type.element);
    if (!type.ranked) return;
    // Empty messages are written explicitly: the writer would omit them, and with them the rank.
    if (type.dims.empty()) return tensor.add_message(2, "", 0);
    pbf_writer shape(tensor, 2);
    for (size_t i = 0; i < type.dims.size(); ++i) {
      if (type.dims[i] < 0 && type.names[i].empty()) {
        shape.add_message(1, "", 0);
        continue;
      }
      pbf_writer dim(shape, 1);
      if (type.dims[i] >= 0) {
        dim.add_int64(1, type.dims[i]);
      } else {
        dim.add_string(2, type.names[i]);
      }
    }
  }

  void Tensor(pbf_writer& parent, uint32_t field, const std::string& name, const OrtValue* value) {
    const TensorType type = TypeOf(value);
    if (type.element <= 0 || type.element > kOrtLastElementType) {
      throw Failure(kOrtNotImplemented, "oncilla: the constant '" + name +
                                            "' has the element type " +
                                            std::to_string(type.element));
    }
    pbf_writer tensor(parent, field);
    size_t count = 1;
    for (const int64_t dim : type.dims) {
      tensor.add_int64(1, dim);
      count *= static_cast<size_t>(dim);
    }
    tensor.add_int32(2, type.element);
    if (type.element == kOrtString) {
      for (const std::string& text : StringsOf(value, count)) {
        Grow(text.size());
        tensor.add_bytes(6, text);
      }
    } else {
      size_t bytes = 0;
      const void* data = nullptr;
      Check(Ort().GetTensorSizeInBytes(value, &bytes));
      if (bytes > 0) Check(Ort().GetTensorData(value, &data));
      Grow(bytes);
      tensor.add_bytes(9, static_cast<const char*>(data), bytes);
    }
    if (!name.empty()) tensor.add_string(8, name);
  }

  // The bytes of an attribute's value; `size` is that of one element.
  static std::string Read(const OrtOpAttr* attr, int type, const std::string& name) {
    // The first call fails if the attribute has any bytes, and returns their number.
    size_t bytes = 0;
    OrtStatus* status = Ort().ReadOpAttr(attr, type, nullptr, 0, &bytes);
    if (status != nullptr) Ort().ReleaseStatus(status);
    std::string data(bytes, '\0');
    if (bytes == 0) return data;
    Check(Ort().ReadOpAttr(attr, type, data.data(), bytes, &bytes));
    if (bytes > data.size()) throw Failure(kOrtFail, "oncilla: attribute '" + name + "' grew");
    data.resize(bytes);
    return data;
  }
  template <class T>
  static std::vector<T> Elements(const std::string& data) {
    std::vector<T> all(data.size() / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), data.data(), all.size() * sizeof(T));
    return all;
  }

  void Attribute(pbf_writer& parent, const OrtOpAttr* attr) {
    const char* text = nullptr;
    Check(Ort().OpAttr_GetName(attr, &text));
    const std::string name = text == nullptr ? "" : text;
    int type = 0;
    Check(Ort().OpAttr_GetType(attr, &type));
    if (type == kOrtAttrGraph) return;  // written by Node()
    pbf_writer out(parent, 5);
    out.add_string(1, name);
    const auto one = [&](const std::string& data, size_t size) {
      if (data.size() != size) {
        throw Failure(kOrtFail, "oncilla: attribute '" + name + "' has " +
                                    std::to_string(data.size()) + " bytes");
      }
    };
    switch (type) {
      case kOrtAttrInt: {
        const std::string data = Read(attr, type, name);
        one(data, sizeof(int64_t));
        out.add_int64(3, Elements<int64_t>(data)[0]);
        out.add_int32(20, kInt);
        return;
      }
      case kOrtAttrFloat: {
        const std::string data = Read(attr, type, name);
        one(data, sizeof(float));
        out.add_float(2, Elements<float>(data)[0]);
        out.add_int32(20, kFloat);
        return;
      }
      case kOrtAttrInts:
        for (const int64_t value : Elements<int64_t>(Read(attr, type, name))) {
          out.add_int64(8, value);
        }
        out.add_int32(20, kInts);
        return;
      case kOrtAttrFloats:
        for (const float value : Elements<float>(Read(attr, type, name))) out.add_float(7, value);
        out.add_int32(20, kFloats);
        return;
      case kOrtAttrString: {
        std::string data = Read(attr, type, name);
        // The size may include the terminating zero.
        if (!data.empty() && data.back() == '\0') data.pop_back();
        out.add_bytes(4, data);
        out.add_int32(20, kString);
        return;
      }
      case kOrtAttrStrings: {
        const std::string data = Read(attr, type, name);
        // The strings follow one another, each with a terminating zero.
        for (size_t begin = 0; begin < data.size();) {
          const size_t end = std::min(data.find('\0', begin), data.size());
          out.add_bytes(9, data.data() + begin, end - begin);
          begin = end + 1;
        }
        out.add_int32(20, kStrings);
        return;
      }
      case kOrtAttrTensor: {
        OrtValue* value = nullptr;
        Check(Ort().OpAttr_GetTensorAttributeAsOrtValue(attr, &value));
        const std::unique_ptr<OrtValue, void (*)(OrtValue*)> held(value, Ort().ReleaseValue);
        Tensor(out, 5, "", value);
        out.add_int32(20, kTensor);
        return;
      }
      default:
        throw Failure(
            kOrtNotImplemented,
            "oncilla: attribute '" + name + "' is of a kind that ONNX Runtime does not hand over");
    }
  }

  void Node(pbf_writer& parent, const GraphNode& node, const Names& known) {
    pbf_writer out(parent, 1);
    for (const std::string& name : node.inputs) out.add_string(1, name);
    for (const std::string& name : node.outputs) out.add_string(2, name);
    out.add_string(3, node.name);
    out.add_string(4, node.op);
    size_t count = 0;
    Check(Ort().Node_GetNumAttributes(node.node, &count));
    std::vector<const OrtOpAttr*> attrs(count);
    if (count > 0) Check(Ort().Node_GetAttributes(node.node, attrs.data(), count));
    for (const OrtOpAttr* attr : attrs) Attribute(out, attr);
    for (const auto& [attr, graph] : node.graphs) {
      const Graph held(graph);
      Boundary ends;
      ends.inputs = held.inputs;
      ends.outputs = held.outputs;
      std::vector<size_t> nodes(held.nodes.size());
      for (size_t i = 0; i < nodes.size(); ++i) nodes[i] = i;
      Names outer = known;
      outer.insert(node.captures.begin(), node.captures.end());
      pbf_writer attribute(out, 5);
      attribute.add_string(1, attr);
      attribute.add_int32(20, kGraph);
      pbf_writer body(attribute, 6);
      Body(body, held, nodes, ends, outer);
    }
    out.add_string(7, node.domain);
  }

  const Graph& graph_;
  std::string& bytes_;
};

}  // namespace

std::string ModelOf(const Graph& graph, const std::vector<size_t>& nodes,
                    const Boundary& boundary) {
  std::string bytes;
  Writer(graph, bytes).Model(nodes, boundary);
  return bytes;
}

}  // namespace oncilla::ort
