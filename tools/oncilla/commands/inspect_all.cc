// TfContents reads what the files contain; importing each signature shows what the engine supports.
#include "tools/oncilla/commands/inspect_all.h"

#include <algorithm>
#include <set>

#include "engine/base/format.h"
#include "engine/import/tf/contents.h"
#include "engine/import/tf/tensor.h"
#include "tools/oncilla/report.h"

namespace oncilla::tool {
namespace {

// The result of importing a signature.
struct Verdict {
  std::string key;
  Status status;                   // why it does not run; OK when it does
  std::vector<std::string> state;  // variables that change, and tables
};

struct All {
  TfContents contents;
  std::vector<Verdict> verdicts;  // one per signature that can be requested
  std::vector<TfContents> other_sets;
  std::string default_key;
  bool has_default = false;
};

Verdict Judge(ModelSource& source, const Signature& signature) {
  Verdict verdict{signature.key, {}, {}};
  const auto module = source.Import({signature.key, {}, {}}, OpSet::Builtin());
  verdict.status = module.status();
  if (!module.ok()) return verdict;
  for (const ModuleVariable& variable : module->variables) verdict.state.push_back(variable.name);
  return verdict;
}

Result<All> Gather(const ModelFlags& model, ModelSource& source) {
  All all;
  std::vector<std::string> tags;
  if (!model.tags.empty()) tags = TagsOf(model.tags);
  ONCILLA_ASSIGN(all.contents, ReadTfContents(model.path, tags));
  for (const std::vector<std::string>& set : all.contents.tags) {
    if (set == all.contents.chosen || set.empty()) continue;
    ONCILLA_ASSIGN(TfContents other, ReadTfContents(model.path, set));
    all.other_sets.push_back(std::move(other));
  }
  if (const auto found = source.FindSignature(""); found.ok()) {
    all.default_key = (*found)->key;
    all.has_default = true;
  }
  for (const Signature& signature : source.signatures()) {
    all.verdicts.push_back(Judge(source, signature));
  }
  return all;
}

std::string Joined(const std::vector<std::string>& tags) {
  std::string out;
  for (const std::string& tag : tags) out += (out.empty() ? "" : ", ") + tag;
  return out;
}

std::string OpsText(const std::vector<TfContents::OpCount>& ops, size_t most) {
  std::string out;
  for (size_t i = 0; i < ops.size() && i < most; ++i) {
    out += StrCat(i == 0 ? "" : " ", ops[i].op, " ", ops[i].nodes);
  }
  if (ops.size() > most) out += StrCat(" and ", ops.size() - most, " more ops");
  return out;
}

std::string TensorText(std::string_view role, const TfContents::Tensor& tensor) {
  // An operation without a result, such as the initialiser, has type 0.
  const std::string type =
      tensor.dtype == TfTypeName(0) ? "" : StrCat(tensor.dtype, tensor.shape, "  ");
  return StrCat("  ", role, tensor.key, "  ", type,
                tensor.tensor.empty() ? "several tensors" : tensor.tensor, "\n");
}

std::string SignaturesText(const TfContents& contents, const All* all) {
  std::string out;
  for (const TfContents::SignatureDef& signature : contents.signatures) {
    out += StrCat("signature '", signature.key, "'");
    if (all != nullptr && all->has_default && signature.key == all->default_key) {
      out += " (the default)";
    }
    if (!signature.method.empty()) out += ", method " + signature.method;
    out += "\n";
    for (const auto& tensor : signature.inputs) out += TensorText("input   ", tensor);
    for (const auto& tensor : signature.outputs) out += TensorText("output  ", tensor);
  }
  for (const TfContents::Function& function : contents.functions) {
    for (const std::string& call : function.calls) {
      out += StrCat("function ", function.name, call, "\n");
    }
    if (function.calls.empty()) out += StrCat("function ", function.name, " (never traced)\n");
  }
  return out;
}

// The inputs and outputs of a frozen graph are inferred, since the file does not name any.
std::string FoundText(const Signature& signature) {
  std::string out;
  for (const TensorInfo& info : signature.inputs) {
    out += StrCat("  input   ", info.name, "  ", TypeText(info), "\n");
  }
  for (const TensorInfo& info : signature.outputs) out += StrCat("  output  ", info.name, "\n");
  return out;
}

std::string VariablesText(const All& all) {
  std::set<std::string> state;
  for (const Verdict& verdict : all.verdicts) {
    state.insert(verdict.state.begin(), verdict.state.end());
  }
  std::string out;
  int64_t total = 0;
  for (const TfContents::Variable& variable : all.contents.variables) {
    out += StrCat("  ", variable.name, "  ", variable.dtype, variable.shape);
    if (variable.bytes >= 0) {
      out += "  " + HumanBytes(variable.bytes);
      total = SaturatingAdd(total, variable.bytes);
    }
    if (state.count(variable.name) > 0) out += "  changes";
    out += "\n";
  }
  std::string head = StrCat("variables ", all.contents.variables.size());
  if (total > 0) head += ", " + HumanBytes(total);
  if (all.contents.checkpoint_tensors >= 0) {
    head += StrCat("; in the checkpoint ", all.contents.checkpoint_tensors, " tensors, ",
                   HumanBytes(all.contents.checkpoint_bytes));
  }
  return StrCat(head, "\n", out);
}

std::string Text(const ModelFlags& model, const ModelSource& source, const All& all) {
  const TfContents& contents = all.contents;
  std::string out =
      StrCat(model.path, ": ", contents.format, ", ", HumanBytes(source.file_bytes()));
  if (!contents.tensorflow_version.empty()) {
    out += ", written by TensorFlow " + contents.tensorflow_version;
  }
  out += "\n";
  if (contents.format == "SavedModel") {
    out += StrCat("tags {", Joined(contents.chosen), "}\n", SignaturesText(contents, &all));
  } else if (!source.signatures().empty()) {
    out += FoundText(source.signatures()[0]);
  }
  out += StrCat("ops  ", contents.nodes, " nodes");
  if (contents.library_functions > 0) {
    out +=
        StrCat(", and ", contents.function_nodes, " in ", contents.library_functions, " functions");
  }
  out += StrCat("\n  ", OpsText(contents.ops, contents.ops.size()), "\n");
  out += contents.devices.empty() ? "stored devices  none\n" : "stored devices\n";
  for (const TfContents::Device& device : contents.devices) {
    out += StrCat("  '", device.device, "'  ", device.nodes,
                  device.nodes == 1 ? " node: " : " nodes: ", OpsText(device.ops, 8), "\n");
  }
  out += VariablesText(all);
  out += "supported\n";
  for (const Verdict& verdict : all.verdicts) {
    out += verdict.key.empty() ? "  " : StrCat("  '", verdict.key, "'  ");
    out += verdict.status.ok() ? "yes" : StrCat("no: ", Message(verdict.status));
    if (!verdict.state.empty()) out += "; state: " + Joined(verdict.state);
    out += "\n";
  }
  for (const TfContents& other : all.other_sets) {
    out += StrCat("tags {", Joined(other.chosen), "}, chosen with --tags\n",
                  SignaturesText(other, nullptr));
  }
  return out;
}

Json ShapeJson(const PartialShape& shape) {
  if (!shape.ranked()) return nullptr;
  Json json = Json::array();
  for (const Dim& dim : shape.dims()) json.push_back(dim.known() ? Json(dim.size) : Json(nullptr));
  return json;
}

Json TensorsJson(const std::vector<TfContents::Tensor>& list) {
  Json json = Json::array();
  for (const TfContents::Tensor& tensor : list) {
    json.push_back({{"key", JsonText(tensor.key)},
                    {"tensor", JsonText(tensor.tensor)},
                    {"dtype", tensor.dtype},
                    {"shape", ShapeJson(tensor.shape)}});
  }
  return json;
}

Json OpsJson(const std::vector<TfContents::OpCount>& ops) {
  Json json = Json::array();
  for (const auto& [op, nodes] : ops) json.push_back({{"op", JsonText(op)}, {"nodes", nodes}});
  return json;
}

Json TagsJson(const std::vector<std::string>& tags) {
  Json json = Json::array();
  for (const std::string& tag : tags) json.push_back(JsonText(tag));
  return json;
}

Json MetaGraphJson(const TfContents& contents) {
  Json json;
  json["tags"] = TagsJson(contents.chosen);
  json["tensorflow_version"] = JsonText(contents.tensorflow_version);
  json["signatures"] = Json::array();
  for (const TfContents::SignatureDef& signature : contents.signatures) {
    json["signatures"].push_back({{"key", JsonText(signature.key)},
                                  {"method", JsonText(signature.method)},
                                  {"inputs", TensorsJson(signature.inputs)},
                                  {"outputs", TensorsJson(signature.outputs)}});
  }
  json["functions"] = Json::array();
  for (const TfContents::Function& function : contents.functions) {
    Json calls = Json::array();
    for (const std::string& call : function.calls) calls.push_back(JsonText(call));
    json["functions"].push_back({{"name", JsonText(function.name)}, {"calls", std::move(calls)}});
  }
  json["nodes"] = contents.nodes;
  json["function_nodes"] = contents.function_nodes;
  json["library_functions"] = contents.library_functions;
  json["ops"] = OpsJson(contents.ops);
  json["stored_devices"] = Json::array();
  for (const TfContents::Device& device : contents.devices) {
    json["stored_devices"].push_back({{"device", JsonText(device.device)},
                                      {"nodes", device.nodes},
                                      {"ops", OpsJson(device.ops)}});
  }
  json["variables"] = Json::array();
  for (const TfContents::Variable& variable : contents.variables) {
    json["variables"].push_back(
        {{"name", JsonText(variable.name)},
         {"dtype", variable.dtype},
         {"shape", ShapeJson(variable.shape)},
         {"bytes", variable.bytes >= 0 ? Json(variable.bytes) : Json(nullptr)}});
  }
  json["checkpoint"] = nullptr;
  if (contents.checkpoint_tensors >= 0) {
    json["checkpoint"] = {{"tensors", contents.checkpoint_tensors},
                          {"bytes", contents.checkpoint_bytes}};
  }
  return json;
}

Json ToJson(const ModelFlags& model, const ModelSource& source, const All& all) {
  Json json = DocumentJson("inspect_all");
  json["model"] = {{"path", JsonText(model.path)},
                   {"format", all.contents.format},
                   {"file_bytes", source.file_bytes()}};
  json["meta_graphs"] = Json::array({MetaGraphJson(all.contents)});
  for (const TfContents& other : all.other_sets)
    json["meta_graphs"].push_back(MetaGraphJson(other));
  json["supported"] = Json::array();
  for (const Verdict& verdict : all.verdicts) {
    Json state = Json::array();
    for (const std::string& name : verdict.state) state.push_back(JsonText(name));
    json["supported"].push_back(
        {{"signature", JsonText(verdict.key)},
         {"supported", verdict.status.ok()},
         {"reason", verdict.status.ok() ? Json(nullptr) : Json(JsonText(Message(verdict.status)))},
         {"state", std::move(state)}});
  }
  return json;
}

}  // namespace

Status InspectAll(const ModelFlags& model, ModelSource& source, bool json) {
  ONCILLA_ASSIGN(const All all, Gather(model, source));
  if (json) return PrintDocument(ToJson(model, source, all));
  return PrintResult(Text(model, source, all));
}

}  // namespace oncilla::tool
