// Writing small ONNX models for tests, field by field.
#pragma once

#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

namespace oncilla::testing {

// One NodeProto and its attributes.
class OnnxNodeText {
 public:
  OnnxNodeText(const std::string& op, const std::vector<std::string>& inputs,
               const std::vector<std::string>& outputs, const std::string& name = "") {
    for (const std::string& input : inputs) writer_.add_string(1, input);
    for (const std::string& output : outputs) writer_.add_string(2, output);
    if (!name.empty()) writer_.add_string(3, name);
    writer_.add_string(4, op);
  }
  OnnxNodeText& Domain(const std::string& domain) {
    writer_.add_string(7, domain);
    return *this;
  }
  OnnxNodeText& Int(const std::string& name, int64_t value) {
    protozero::pbf_writer attr(writer_, 5);
    attr.add_string(1, name);
    attr.add_int64(3, value);
    attr.add_enum(20, 2);
    return *this;
  }
  OnnxNodeText& Float(const std::string& name, float value) {
    protozero::pbf_writer attr(writer_, 5);
    attr.add_string(1, name);
    attr.add_float(2, value);
    attr.add_enum(20, 1);
    return *this;
  }
  OnnxNodeText& Ints(const std::string& name, const std::vector<int64_t>& values) {
    protozero::pbf_writer attr(writer_, 5);
    attr.add_string(1, name);
    for (int64_t value : values) attr.add_int64(8, value);
    attr.add_enum(20, 7);
    return *this;
  }
  OnnxNodeText& Floats(const std::string& name, const std::vector<float>& values) {
    protozero::pbf_writer attr(writer_, 5);
    attr.add_string(1, name);
    for (float value : values) attr.add_float(7, value);
    attr.add_enum(20, 6);
    return *this;
  }
  OnnxNodeText& String(const std::string& name, const std::string& value) {
    protozero::pbf_writer attr(writer_, 5);
    attr.add_string(1, name);
    attr.add_bytes(4, value);
    attr.add_enum(20, 3);
    return *this;
  }
  OnnxNodeText& Strings(const std::string& name, const std::vector<std::string>& values) {
    protozero::pbf_writer attr(writer_, 5);
    attr.add_string(1, name);
    for (const std::string& value : values) attr.add_bytes(9, value);
    attr.add_enum(20, 8);
    return *this;
  }
  OnnxNodeText& Reference(const std::string& name, const std::string& of, int type) {
    protozero::pbf_writer attr(writer_, 5);
    attr.add_string(1, name);
    attr.add_enum(20, type);
    attr.add_string(21, of);
    return *this;
  }
  OnnxNodeText& Graph(const std::string& name, const std::string& graph) {
    protozero::pbf_writer attr(writer_, 5);
    attr.add_string(1, name);
    attr.add_message(6, graph);
    attr.add_enum(20, 5);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  protozero::pbf_writer writer_{bytes_};
};

// A negative size is written as unknown, with the name that follows it if there is one.
struct OnnxDimText {
  OnnxDimText(int64_t s) : size(s) {}                // NOLINT
  OnnxDimText(const char* n) : size(-1), name(n) {}  // NOLINT
  int64_t size;
  std::string name;
};

class OnnxGraphText {
 public:
  OnnxGraphText& Node(const OnnxNodeText& node) { return Node(node.bytes()); }
  OnnxGraphText& Node(const std::string& bytes) {
    writer_.add_message(1, bytes);
    return *this;
  }
  OnnxGraphText& Input(const std::string& name, const std::vector<OnnxDimText>& shape,
                       int type = 1) {
    return ValueInfo(11, name, shape, type);
  }
  OnnxGraphText& Output(const std::string& name, const std::vector<OnnxDimText>& shape,
                        int type = 1) {
    return ValueInfo(12, name, shape, type);
  }
  // A float tensor of a rank that the file does not state.
  OnnxGraphText& Unranked(const std::string& name) { return UnrankedInfo(11, name); }
  OnnxGraphText& UnrankedOutput(const std::string& name, int type = 1) {
    return UnrankedInfo(12, name, type);
  }
  // The type of a tensor between nodes.
  OnnxGraphText& Between(const std::string& name, const std::vector<OnnxDimText>& shape,
                         int type = 1) {
    return ValueInfo(13, name, shape, type);
  }
  // The type of a sequence of float tensors.
  OnnxGraphText& Sequence(const std::string& name, const std::vector<OnnxDimText>& shape) {
    return SequenceInfo(11, name, shape);
  }
  // The type of an optional float tensor.
  OnnxGraphText& Optional(const std::string& name, const std::vector<OnnxDimText>& shape) {
    protozero::pbf_writer info(writer_, 11);
    info.add_string(1, name);
    protozero::pbf_writer type_proto(info, 2);
    protozero::pbf_writer optional(type_proto, 9);
    protozero::pbf_writer element(optional, 1);
    TensorType(element, shape, 1);
    return *this;
  }
  OnnxGraphText& SequenceOutput(const std::string& name, const std::vector<OnnxDimText>& shape) {
    return SequenceInfo(12, name, shape);
  }
  OnnxGraphText& Ints(const std::string& name, const std::vector<int64_t>& shape,
                      const std::vector<int64_t>& values) {
    protozero::pbf_writer tensor(writer_, 5);
    for (int64_t size : shape) tensor.add_int64(1, size);
    tensor.add_int32(2, 7);
    tensor.add_packed_int64(7, values.begin(), values.end());
    tensor.add_string(8, name);
    return *this;
  }
  OnnxGraphText& Bools(const std::string& name, const std::vector<int64_t>& shape,
                       const std::vector<int32_t>& values) {
    protozero::pbf_writer tensor(writer_, 5);
    for (int64_t size : shape) tensor.add_int64(1, size);
    tensor.add_int32(2, 9);
    tensor.add_packed_int32(5, values.begin(), values.end());
    tensor.add_string(8, name);
    return *this;
  }
  // A float initializer with raw data.
  OnnxGraphText& Floats(const std::string& name, const std::vector<int64_t>& shape,
                        const std::vector<float>& values) {
    protozero::pbf_writer tensor(writer_, 5);
    for (int64_t size : shape) tensor.add_int64(1, size);
    tensor.add_int32(2, 1);
    tensor.add_string(8, name);
    tensor.add_bytes(9, reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
    return *this;
  }
  OnnxGraphText& External(const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<std::pair<std::string, std::string>>& entries) {
    protozero::pbf_writer tensor(writer_, 5);
    for (int64_t size : shape) tensor.add_int64(1, size);
    tensor.add_int32(2, 1);
    tensor.add_string(8, name);
    for (const auto& [key, value] : entries) {
      protozero::pbf_writer entry(tensor, 13);
      entry.add_string(1, key);
      entry.add_string(2, value);
    }
    tensor.add_enum(14, 1);
    return *this;
  }
  // A SparseTensorProto of floats.
  OnnxGraphText& Sparse(const std::string& name, const std::vector<int64_t>& shape,
                        const std::vector<float>& values, const std::vector<int64_t>& places_shape,
                        const std::vector<int64_t>& places) {
    protozero::pbf_writer sparse(writer_, 15);
    {
      protozero::pbf_writer tensor(sparse, 1);
      tensor.add_int64(1, static_cast<int64_t>(values.size()));
      tensor.add_int32(2, 1);
      tensor.add_packed_float(4, values.begin(), values.end());
      tensor.add_string(8, name);
    }
    {
      protozero::pbf_writer tensor(sparse, 2);
      for (int64_t size : places_shape) tensor.add_int64(1, size);
      tensor.add_int32(2, 7);
      tensor.add_packed_int64(7, places.begin(), places.end());
    }
    for (int64_t size : shape) sparse.add_int64(3, size);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  OnnxGraphText& ValueInfo(int field, const std::string& name,
                           const std::vector<OnnxDimText>& shape, int type) {
    protozero::pbf_writer info(writer_, static_cast<protozero::pbf_tag_type>(field));
    info.add_string(1, name);
    protozero::pbf_writer type_proto(info, 2);
    TensorType(type_proto, shape, type);
    return *this;
  }
  OnnxGraphText& UnrankedInfo(int field, const std::string& name, int type = 1) {
    protozero::pbf_writer info(writer_, static_cast<protozero::pbf_tag_type>(field));
    info.add_string(1, name);
    protozero::pbf_writer type_proto(info, 2);
    protozero::pbf_writer tensor(type_proto, 1);
    tensor.add_int32(1, type);
    return *this;
  }
  OnnxGraphText& SequenceInfo(int field, const std::string& name,
                              const std::vector<OnnxDimText>& shape) {
    protozero::pbf_writer info(writer_, static_cast<protozero::pbf_tag_type>(field));
    info.add_string(1, name);
    protozero::pbf_writer type_proto(info, 2);
    protozero::pbf_writer sequence(type_proto, 4);
    protozero::pbf_writer element(sequence, 1);
    TensorType(element, shape, 1);
    return *this;
  }
  static void TensorType(protozero::pbf_writer& type_proto, const std::vector<OnnxDimText>& shape,
                         int type) {
    protozero::pbf_writer tensor(type_proto, 1);
    tensor.add_int32(1, type);
    protozero::pbf_writer shape_proto(tensor, 2);
    for (const OnnxDimText& dim : shape) {
      protozero::pbf_writer entry(shape_proto, 1);
      if (dim.size >= 0) entry.add_int64(1, dim.size);
      if (!dim.name.empty()) entry.add_string(2, dim.name);
    }
  }

  std::string bytes_;
  protozero::pbf_writer writer_{bytes_};
};

// A ModelProto; `functions` are FunctionProtos, `domains` are imported beside ai.onnx.
inline std::string OnnxModelText(const OnnxGraphText& graph, int64_t opset = 17,
                                 const std::vector<std::string>& functions = {},
                                 const std::vector<std::pair<std::string, int64_t>>& domains = {}) {
  std::string bytes;
  protozero::pbf_writer model(bytes);
  model.add_int64(1, 8);
  model.add_string(2, "tests");
  model.add_message(7, graph.bytes());
  {
    protozero::pbf_writer import(model, 8);
    import.add_string(1, "");
    import.add_int64(2, opset);
  }
  {
    protozero::pbf_writer import(model, 8);
    import.add_string(1, "own");
    import.add_int64(2, 1);
  }
  for (const auto& [domain, version] : domains) {
    protozero::pbf_writer import(model, 8);
    import.add_string(1, domain);
    import.add_int64(2, version);
  }
  protozero::pbf_writer entry(model, 14);
  entry.add_string(1, "key");
  entry.add_string(2, "value");
  entry.commit();
  for (const std::string& function : functions) model.add_message(25, function);
  return bytes;
}

}  // namespace oncilla::testing
