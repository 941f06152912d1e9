// The C interface: graphs built in code.
#include <deque>
#include <map>

#include "engine/api/handles.h"
#include "engine/base/file.h"
#include "engine/import/graph_builder.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

struct oncilla_graph {
  GraphBuilder builder;
  GraphBuilder::Attrs attrs;  // for the next op
  std::deque<std::string> names;
  std::map<std::string, DType, std::less<>> types;  // dtypes of outputs, by tensor name

  Status Take(const GraphBuilder::Output& output, const char** tensor) {
    attrs.clear();
    if (!builder.status().ok()) return builder.status();
    types[output.tensor] = output.dtype;
    names.push_back(output.tensor);
    if (tensor != nullptr) *tensor = names.back().c_str();
    return Status();
  }
};

namespace {

std::string_view NameOf(const char* name) { return name == nullptr ? "" : name; }

Result<DType> TypeFrom(oncilla_dtype dtype) {
  const DType type = FromC(dtype);
  if (type == DType::kInvalid) {
    return InvalidArgument("dtype ", static_cast<int>(dtype), " is not a type");
  }
  return type;
}

Result<PartialShape> ShapeFrom(const int64_t* dims, size_t rank) {
  if (rank > kMaxRank) return InvalidArgument("rank ", rank, " is above ", kMaxRank);
  if (rank > 0) ONCILLA_TRY(NeedHandle(dims, "dims"));
  std::vector<Dim> sizes;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < -1) return InvalidArgument("dims[", i, "] is ", dims[i]);
    sizes.push_back(dims[i] < 0 ? Dim() : Dim(dims[i]));
  }
  return PartialShape(std::move(sizes));
}

template <class T>
oncilla_status* AddAttr(oncilla_graph* graph, const char* name, T value) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(name, "name"));
    graph->attrs.emplace_back(name, std::move(value));
    return Status();
  });
}

// A name without an entry is a further output (name:1, ...) of a node, whose first output is known.
Result<GraphBuilder::Output> Find(const oncilla_graph& graph, std::string_view tensor) {
  const auto found = graph.types.find(tensor);
  if (found != graph.types.end()) return GraphBuilder::Output{found->first, found->second};
  const size_t colon = tensor.rfind(':');
  const auto first = graph.types.find(StrCat(tensor.substr(0, colon), ":0"));
  if (first == graph.types.end()) {
    return NotFound("the graph has no tensor '", tensor, "'");
  }
  if (colon == std::string_view::npos) return GraphBuilder::Output{first->first, first->second};
  return GraphBuilder::Output{std::string(tensor), first->second};
}

}  // namespace

oncilla_status* oncilla_graph_create(oncilla_graph** graph) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    *graph = new oncilla_graph;
    return Status();
  });
}
void oncilla_graph_free(oncilla_graph* graph) { delete graph; }

oncilla_status* oncilla_graph_constant(oncilla_graph* graph, const char* name,
                                       const oncilla_tensor* value, const char** tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(value, "value"));
    return graph->Take(graph->builder.Constant(value->tensor, NameOf(name)), tensor);
  });
}

oncilla_status* oncilla_graph_placeholder(oncilla_graph* graph, const char* name,
                                          oncilla_dtype dtype, const int64_t* dims, size_t rank,
                                          const char** tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_ASSIGN(const DType type, TypeFrom(dtype));
    ONCILLA_ASSIGN(PartialShape shape, ShapeFrom(dims, rank));
    return graph->Take(graph->builder.Placeholder(type, shape, NameOf(name)), tensor);
  });
}

oncilla_status* oncilla_graph_op(oncilla_graph* graph, const char* op, const char* name,
                                 const char* const* inputs, size_t input_count, oncilla_dtype dtype,
                                 const char** tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(op, "op"));
    if (input_count > 0) ONCILLA_TRY(NeedHandle(inputs, "inputs"));
    DType type = DType::kInvalid;
    if (dtype != 0) {
      ONCILLA_ASSIGN(type, TypeFrom(dtype));
    }
    std::vector<GraphBuilder::Output> from;
    for (size_t i = 0; i < input_count; ++i) {
      ONCILLA_TRY(NeedHandle(inputs[i], StrCat("inputs[", i, "]")));
      ONCILLA_ASSIGN(auto input, Find(*graph, inputs[i]));
      from.push_back(std::move(input));
    }
    return graph->Take(graph->builder.Op(op, from, graph->attrs, NameOf(name), type), tensor);
  });
}

oncilla_status* oncilla_graph_attr_int(oncilla_graph* graph, const char* name, int64_t value) {
  return AddAttr(graph, name, value);
}
oncilla_status* oncilla_graph_attr_float(oncilla_graph* graph, const char* name, float value) {
  return AddAttr(graph, name, value);
}
oncilla_status* oncilla_graph_attr_bool(oncilla_graph* graph, const char* name, int value) {
  return AddAttr(graph, name, value != 0);
}
oncilla_status* oncilla_graph_attr_type(oncilla_graph* graph, const char* name,
                                        oncilla_dtype value) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(name, "name"));
    ONCILLA_ASSIGN(const DType type, TypeFrom(value));
    graph->attrs.emplace_back(name, type);
    return Status();
  });
}
oncilla_status* oncilla_graph_attr_string(oncilla_graph* graph, const char* name,
                                          const char* value) {
  return AddAttr(graph, name, std::string(NameOf(value)));
}
namespace {

// Adds a list attribute; `convert` gives a Result for each item.
template <class T, class F>
oncilla_status* AddList(oncilla_graph* graph, const char* name, const T* values, size_t count,
                        F&& convert) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(name, "name"));
    if (count > 0) ONCILLA_TRY(NeedHandle(values, "values"));
    std::vector<std::decay_t<decltype(*convert(values[0]))>> list;
    for (size_t i = 0; i < count; ++i) {
      ONCILLA_ASSIGN(auto item, convert(values[i]));
      list.push_back(std::move(item));
    }
    graph->attrs.emplace_back(name, std::move(list));
    return Status();
  });
}

}  // namespace

oncilla_status* oncilla_graph_attr_ints(oncilla_graph* graph, const char* name,
                                        const int64_t* values, size_t count) {
  return AddList(graph, name, values, count, [](int64_t v) { return Result<int64_t>(v); });
}
oncilla_status* oncilla_graph_attr_floats(oncilla_graph* graph, const char* name,
                                          const float* values, size_t count) {
  return AddList(graph, name, values, count, [](float v) { return Result<float>(v); });
}
oncilla_status* oncilla_graph_attr_strings(oncilla_graph* graph, const char* name,
                                           const char* const* values, size_t count) {
  return AddList(graph, name, values, count, [](const char* v) -> Result<std::string> {
    ONCILLA_TRY(NeedHandle(v, "a value of the list"));
    return std::string(v);
  });
}
oncilla_status* oncilla_graph_attr_types(oncilla_graph* graph, const char* name,
                                         const oncilla_dtype* values, size_t count) {
  return AddList(graph, name, values, count, [](oncilla_dtype v) { return TypeFrom(v); });
}
oncilla_status* oncilla_graph_attr_shape(oncilla_graph* graph, const char* name,
                                         const int64_t* dims, size_t rank) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(name, "name"));
    ONCILLA_ASSIGN(PartialShape shape, ShapeFrom(dims, rank));
    graph->attrs.emplace_back(name, std::move(shape));
    return Status();
  });
}
oncilla_status* oncilla_graph_attr_tensor(oncilla_graph* graph, const char* name,
                                          const oncilla_tensor* value) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(name, "name"));
    ONCILLA_TRY(NeedTensor(value, "value"));
    ONCILLA_ASSIGN(Tensor host, value->value().ToHost());
    graph->attrs.emplace_back(name, std::move(host));
    return Status();
  });
}

oncilla_status* oncilla_graph_push_device(oncilla_graph* graph, const char* device) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(device, "device"));
    graph->builder.PushDevice(device);
    return graph->builder.status();
  });
}
oncilla_status* oncilla_graph_pop_device(oncilla_graph* graph) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    graph->builder.PopDevice();
    return graph->builder.status();
  });
}

oncilla_status* oncilla_graph_save(const oncilla_graph* graph, const char* path) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(path, "path"));
    ONCILLA_ASSIGN(const std::string bytes, graph->builder.GraphDef());
    ONCILLA_ASSIGN(FileDraft draft, FileDraft::Create(path));
    ONCILLA_TRY(draft.Append(bytes));
    return draft.Commit();
  });
}

oncilla_status* oncilla_model_load_graph(oncilla_session* session, const oncilla_graph* graph,
                                         const oncilla_load_options* options,
                                         oncilla_model** model) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    ONCILLA_TRY(NeedHandle(graph, "graph"));
    ONCILLA_TRY(NeedHandle(model, "model"));
    oncilla_load_options given{};
    ONCILLA_TRY(ReadStruct(options, "oncilla_load_options", &given));
    ONCILLA_ASSIGN(const OpenModelOptions open, ReadLoadOptions(given, StoredDevices::kSoft));
    ONCILLA_ASSIGN(std::string bytes, graph->builder.GraphDef());
    const auto load = [&] { return session->session->LoadGraph(std::move(bytes), "graph", open); };
    ONCILLA_ASSIGN(auto loaded, LoadAsAsked(given, load));
    *model = MakeModel(std::move(loaded)).release();
    return Status();
  });
}
