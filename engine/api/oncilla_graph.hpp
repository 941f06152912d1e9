// Oncilla for C++17: graphs built in code. Included by oncilla.hpp.
//
//   oncilla::GraphBuilder g;
//   auto a = g.Constant({1, 2, 3}), b = g.Constant({4, 5, 6});
//   auto c = a + b;
//   auto model = session->Load(g);
//   auto result = model->Run({}, {.outputs = {c.tensor()}});
//
// Ops, types and devices are TensorFlow's, and Save() writes a file that TensorFlow reads. The
// first failure is kept and returned by Load(), Save() or status(). Not thread-safe.
#ifndef ONCILLA_GRAPH_HPP_
#define ONCILLA_GRAPH_HPP_

#include <initializer_list>
#include <memory>
#include <oncilla/oncilla.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace oncilla {
inline namespace v0 {

class GraphBuilder;

// An output of a node in a graph that is being built. Valid as long as its builder.
class GraphOutput {
 public:
  const std::string& tensor() const { return tensor_; }  // "add:0", for feeds and fetches

 private:
  friend class GraphBuilder;
  GraphOutput(GraphBuilder* graph, std::string tensor)
      : graph_(graph), tensor_(std::move(tensor)) {}
  friend GraphOutput operator+(const GraphOutput& a, const GraphOutput& b);
  friend GraphOutput operator-(const GraphOutput& a, const GraphOutput& b);
  friend GraphOutput operator*(const GraphOutput& a, const GraphOutput& b);
  friend GraphOutput operator/(const GraphOutput& a, const GraphOutput& b);
  friend GraphOutput operator-(const GraphOutput& a);
  GraphBuilder* graph_;
  std::string tensor_;
};

// The name of a node, as a parameter after values in braces. Unlike a std::string it cannot be made
// from a list of numbers by accident. It is made from anything that converts to a string; where it
// is empty, the builder makes a name.
class NodeName {
 public:
  NodeName() = default;
  template <class T, class = std::enable_if_t<std::is_convertible<const T&, std::string>::value>>
  NodeName(const T& name) : name_(name) {}
  const std::string& text() const { return name_; }

 private:
  std::string name_;
};

class GraphBuilder {
 public:
  GraphBuilder() : status_(oncilla_graph_create(&raw_)), graph_(raw_) {}
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  GraphOutput Constant(const Tensor& value, const std::string& name = {}) {
    return Taken(oncilla_graph_constant(get(), Name(name), value.get(), &text_));
  }
  // Constants: a vector, a scalar or a tensor of floats, or a vector of 32-bit integers (Ints).
  GraphOutput Constant(std::initializer_list<float> values, const NodeName& name = {}) {
    return OfValues<float>({static_cast<int64_t>(values.size())}, values.begin(), name.text());
  }
  GraphOutput Constant(float value, const NodeName& name = {}) {
    return OfValues<float>({}, &value, name.text());
  }
  GraphOutput Constant(const std::vector<int64_t>& dims, const std::vector<float>& values,
                       const NodeName& name = {}) {
    return OfValues<float>(dims, values.data(), name.text(), values.size());
  }
  GraphOutput Ints(std::initializer_list<int32_t> values, const NodeName& name = {}) {
    return OfValues<int32_t>({static_cast<int64_t>(values.size())}, values.begin(), name.text());
  }
  // An input of the graph. -1 stands for a size that is not known.
  GraphOutput Placeholder(oncilla_dtype dtype, const std::vector<int64_t>& dims,
                          const std::string& name = {}) {
    return Taken(
        oncilla_graph_placeholder(get(), Name(name), dtype, dims.data(), dims.size(), &text_));
  }
  // Adds any op of TensorFlow, by its name there.
  GraphOutput Op(const std::string& op, const std::vector<GraphOutput>& inputs,
                 const std::string& name = {}, oncilla_dtype dtype = oncilla_dtype(0)) {
    std::vector<const char*> names;
    for (const GraphOutput& input : inputs) names.push_back(input.tensor_.c_str());
    return Taken(
        oncilla_graph_op(get(), op.c_str(), Name(name), names.data(), names.size(), dtype, &text_));
  }
  GraphOutput MatMul(const GraphOutput& a, const GraphOutput& b, const std::string& name = {}) {
    return Op("MatMul", {a, b}, name);
  }
  // Sets an attribute of the next op: integers become ints, other numbers floats.
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  GraphBuilder& Attr(const char* name, T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return Noted(oncilla_graph_attr_bool(get(), name, value ? 1 : 0));
    } else if constexpr (std::is_integral_v<T>) {
      return Noted(oncilla_graph_attr_int(get(), name, static_cast<int64_t>(value)));
    } else {
      return Noted(oncilla_graph_attr_float(get(), name, static_cast<float>(value)));
    }
  }
  GraphBuilder& Attr(const char* name, oncilla_dtype value) {
    return Noted(oncilla_graph_attr_type(get(), name, value));
  }
  GraphBuilder& Attr(const char* name, const char* value) {
    return Noted(oncilla_graph_attr_string(get(), name, value));
  }
  GraphBuilder& Attr(const char* name, const std::string& value) {
    return Attr(name, value.c_str());
  }
  GraphBuilder& Attr(const char* name, const std::vector<int64_t>& values) {
    return Noted(oncilla_graph_attr_ints(get(), name, values.data(), values.size()));
  }
  GraphBuilder& Attr(const char* name, const std::vector<float>& values) {
    return Noted(oncilla_graph_attr_floats(get(), name, values.data(), values.size()));
  }
  GraphBuilder& Attr(const char* name, const std::vector<std::string>& values) {
    std::vector<const char*> texts;
    for (const std::string& value : values) texts.push_back(value.c_str());
    return Noted(oncilla_graph_attr_strings(get(), name, texts.data(), texts.size()));
  }
  GraphBuilder& Attr(const char* name, const std::vector<oncilla_dtype>& values) {
    return Noted(oncilla_graph_attr_types(get(), name, values.data(), values.size()));
  }
  GraphBuilder& Attr(const char* name, std::initializer_list<int> values) {
    return Attr(name, std::vector<int64_t>(values.begin(), values.end()));
  }
  GraphBuilder& Attr(const char* name, std::initializer_list<double> values) {
    return Attr(name, std::vector<float>(values.begin(), values.end()));
  }
  GraphBuilder& Attr(const char* name, std::initializer_list<const char*> values) {
    return Attr(name, std::vector<std::string>(values.begin(), values.end()));
  }
  // A shape; -1 stands for a size that is not known.
  GraphBuilder& ShapeAttr(const char* name, const std::vector<int64_t>& dims) {
    return Noted(oncilla_graph_attr_shape(get(), name, dims.data(), dims.size()));
  }
  GraphBuilder& Attr(const char* name, const Tensor& value) {
    return Noted(oncilla_graph_attr_tensor(get(), name, value.get()));
  }

  // Writes a serialized GraphDef, which TensorFlow can load.
  Status Save(const std::string& path) const {
    return status_.ok() ? Status(oncilla_graph_save(get(), path.c_str())) : status_;
  }
  const Status& status() const { return status_; }
  oncilla_graph* get() const { return graph_.get(); }

 private:
  friend class DeviceScope;
  static const char* Name(const std::string& name) { return name.empty() ? nullptr : name.c_str(); }
  GraphBuilder& Noted(oncilla_status* status) {
    Status now(status);
    if (status_.ok()) status_ = now;
    return *this;
  }
  GraphOutput Taken(oncilla_status* status) {
    Noted(status);
    GraphOutput out(this, text_ != nullptr ? text_ : "");
    text_ = nullptr;
    return out;
  }
  template <class T>
  GraphOutput OfValues(const std::vector<int64_t>& dims, const T* values, const std::string& name,
                       size_t count = size_t(-1)) {
    size_t elements = 1;
    for (const int64_t d : dims) elements *= static_cast<size_t>(d);
    const size_t given = count == size_t(-1) ? elements : count;
    auto tensor = Tensor::Of<T>(dims, std::vector<T>(values, values + given));
    if (!tensor.ok()) {
      if (status_.ok()) status_ = tensor.status();
      return GraphOutput(this, "");
    }
    return Constant(*tensor, name);
  }

  oncilla_graph* raw_ = nullptr;
  Status status_;
  internal::Handle<oncilla_graph, oncilla_graph_free> graph_;
  const char* text_ = nullptr;
};

// A device scope, like tf.device: nodes that are added during its lifetime are stored for this
// device.
class DeviceScope {
 public:
  DeviceScope(GraphBuilder& graph, const std::string& device) : graph_(graph) {
    graph_.Noted(oncilla_graph_push_device(graph_.get(), device.c_str()));
  }
  ~DeviceScope() { graph_.Noted(oncilla_graph_pop_device(graph_.get())); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  GraphBuilder& graph_;
};

inline GraphOutput operator+(const GraphOutput& a, const GraphOutput& b) {
  return a.graph_->Op("AddV2", {a, b}, "add");
}
inline GraphOutput operator-(const GraphOutput& a, const GraphOutput& b) {
  return a.graph_->Op("Sub", {a, b}, "sub");
}
inline GraphOutput operator*(const GraphOutput& a, const GraphOutput& b) {
  return a.graph_->Op("Mul", {a, b}, "mul");
}
inline GraphOutput operator/(const GraphOutput& a, const GraphOutput& b) {
  return a.graph_->Op("RealDiv", {a, b}, "div");
}
inline GraphOutput operator-(const GraphOutput& a) { return a.graph_->Op("Neg", {a}, "neg"); }

inline Result<Model> Session::Load(const GraphBuilder& graph, const LoadOptions& options) const {
  if (!graph.status().ok()) return graph.status();
  const internal::CLoadOptions l(options);
  oncilla_model* model = nullptr;
  Status status(oncilla_model_load_graph(session_.get(), graph.get(), &l.c, &model));
  if (!status.ok()) return status;
  return Model(model, session_);
}

}  // namespace v0
}  // namespace oncilla

#endif  // ONCILLA_GRAPH_HPP_
