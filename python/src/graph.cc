// The class GraphBase: TensorFlow graphs built in code.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/handles.h"
#include "python/src/requests.h"

namespace oncilla_python {
namespace {

struct Graph {
  Handle<oncilla_graph, oncilla_graph_free> handle;
};

oncilla_graph* Get(const Graph& graph) { return graph.handle.get(); }
const char* NameOrNull(nb::handle name) { return name.is_none() ? nullptr : TextOf(name); }

std::vector<const char*> Texts(const std::vector<std::string>& from) {
  std::vector<const char*> texts;
  for (const std::string& text : from) texts.push_back(text.c_str());
  return texts;
}

std::string Constant(Graph& graph, const Tensor& value, nb::object name) {
  const char* tensor = nullptr;
  Check(oncilla_graph_constant(Get(graph), NameOrNull(name), value.handle.get(), &tensor));
  return tensor;
}

std::string Placeholder(Graph& graph, int dtype, const std::vector<int64_t>& dims,
                        nb::object name) {
  const char* tensor = nullptr;
  Check(oncilla_graph_placeholder(Get(graph), NameOrNull(name), static_cast<oncilla_dtype>(dtype),
                                  dims.data(), dims.size(), &tensor));
  return tensor;
}

std::string Op(Graph& graph, const std::string& op, const std::vector<std::string>& inputs,
               int dtype, nb::object name) {
  const auto names = Texts(inputs);
  const char* tensor = nullptr;
  Check(oncilla_graph_op(Get(graph), op.c_str(), NameOrNull(name), names.data(), names.size(),
                         static_cast<oncilla_dtype>(dtype), &tensor));
  return tensor;
}

void Load(Model& model, const Session& session, const Graph& graph, int stored_devices, bool eager,
          nb::object progress) {
  oncilla_session* in = Need(session);
  LoadBy(model, progress, "", stored_devices, eager,
         [&](const oncilla_load_options* options, oncilla_model** made) {
           return oncilla_model_load_graph(in, Get(graph), options, made);
         });
}

}  // namespace

void DefineGraph(nb::module_& m) {
  using Texted = const std::string&;
  nb::class_<Graph>(m, "GraphBase")
      .def("__init__",
           [](Graph* self) {
             oncilla_graph* made = nullptr;
             Check(oncilla_graph_create(&made));
             new (self) Graph{Handle<oncilla_graph, oncilla_graph_free>(made)};
           })
      .def("_constant", &Constant, nb::arg("value"), nb::arg("name").none())
      .def("_placeholder", &Placeholder, nb::arg("dtype"), nb::arg("dims"), nb::arg("name").none())
      .def("_op", &Op, nb::arg("op"), nb::arg("inputs"), nb::arg("dtype"), nb::arg("name").none())
      .def("_attr_int", [](Graph& g, Texted n,
                           int64_t v) { Check(oncilla_graph_attr_int(Get(g), n.c_str(), v)); })
      .def("_attr_float", [](Graph& g, Texted n,
                             float v) { Check(oncilla_graph_attr_float(Get(g), n.c_str(), v)); })
      .def("_attr_bool",
           [](Graph& g, Texted n, bool v) {
             Check(oncilla_graph_attr_bool(Get(g), n.c_str(), v ? 1 : 0));
           })
      .def("_attr_type",
           [](Graph& g, Texted n, int v) {
             Check(oncilla_graph_attr_type(Get(g), n.c_str(), static_cast<oncilla_dtype>(v)));
           })
      .def("_attr_string",
           [](Graph& g, Texted n, Texted v) {
             Check(oncilla_graph_attr_string(Get(g), n.c_str(), v.c_str()));
           })
      .def("_attr_ints",
           [](Graph& g, Texted n, const std::vector<int64_t>& v) {
             Check(oncilla_graph_attr_ints(Get(g), n.c_str(), v.data(), v.size()));
           })
      .def("_attr_floats",
           [](Graph& g, Texted n, const std::vector<float>& v) {
             Check(oncilla_graph_attr_floats(Get(g), n.c_str(), v.data(), v.size()));
           })
      .def("_attr_strings",
           [](Graph& g, Texted n, const std::vector<std::string>& v) {
             Check(oncilla_graph_attr_strings(Get(g), n.c_str(), Texts(v).data(), v.size()));
           })
      .def("_attr_types",
           [](Graph& g, Texted n, const std::vector<int>& v) {
             std::vector<oncilla_dtype> types;
             for (const int type : v) types.push_back(static_cast<oncilla_dtype>(type));
             Check(oncilla_graph_attr_types(Get(g), n.c_str(), types.data(), types.size()));
           })
      .def("_attr_shape",
           [](Graph& g, Texted n, const std::vector<int64_t>& v) {
             Check(oncilla_graph_attr_shape(Get(g), n.c_str(), v.data(), v.size()));
           })
      .def("_attr_tensor",
           [](Graph& g, Texted n, const Tensor& v) {
             Check(oncilla_graph_attr_tensor(Get(g), n.c_str(), v.handle.get()));
           })
      .def(
          "_push_device",
          [](Graph& g, Texted device) { Check(oncilla_graph_push_device(Get(g), device.c_str())); })
      .def("_pop_device", [](Graph& g) { Check(oncilla_graph_pop_device(Get(g))); })
      .def("_save",
           [](const Graph& g, Texted path) { Check(oncilla_graph_save(Get(g), path.c_str())); });
  m.def("_load_graph", &Load, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().none());
}

}  // namespace oncilla_python
