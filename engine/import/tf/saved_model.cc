// SavedModel, MetaGraphDef and SignatureDef, read from the wire format. Field numbers are those of
// saved_model.proto, meta_graph.proto, saver.proto and saved_object_graph.proto.
#include "engine/import/tf/saved_model.h"

#include <algorithm>

#include "engine/import/tf/text.h"

namespace oncilla {
namespace {

struct MetaGraphTags {
  Bytes meta_graph;
  std::vector<std::string> tags;  // sorted
};

std::string ToText(const std::vector<std::string>& tags) {
  std::string out = "{";
  for (const std::string& tag : tags) out += (out.size() > 1 ? ", " : "") + tag;
  return out + "}";
}

MetaGraphTags ReadTags(Bytes meta_graph) {
  MetaGraphTags out{meta_graph, {}};
  WireMessage message(meta_graph);
  while (message.Next()) {
    if (message.field() != 1) continue;
    WireMessage info(message.View());
    while (info.Next()) {
      if (info.field() == 4) out.tags.emplace_back(info.View());
    }
  }
  std::sort(out.tags.begin(), out.tags.end());
  out.tags.erase(std::unique(out.tags.begin(), out.tags.end()), out.tags.end());
  return out;
}

Result<const MetaGraphTags*> Choose(const std::vector<MetaGraphTags>& all,
                                    std::span<const std::string> asked) {
  std::vector<std::string> tags(asked.begin(), asked.end());
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  if (asked.empty()) tags = {"serve"};
  for (const MetaGraphTags& candidate : all) {
    if (candidate.tags == tags) return &candidate;
  }
  if (asked.empty() && all.size() == 1) return &all[0];
  std::string there;
  for (const MetaGraphTags& candidate : all) {
    there += (there.empty() ? "" : ", ") + ToText(candidate.tags);
  }
  return NotFound("there is no meta graph with the tags ", ToText(tags), "; there is: ", there);
}

Status ReadTensorInfo(Bytes tensor_info, TensorInfo* out) {
  WireMessage message(tensor_info);
  while (message.Next()) {
    if (message.field() == 1) out->source = message.View();
    if (message.field() == 2) out->dtype = DTypeFromTf(message.Int());
    if (message.field() == 3) {
      ONCILLA_ASSIGN(out->shape, ShapeFromTf(message.View()));
    }
  }
  return {};
}

// Reads an entry of the map `inputs` or `outputs`.
Result<TensorInfo> ReadSignatureEntry(Bytes entry_proto) {
  TensorInfo info;
  WireMessage entry(entry_proto);
  while (entry.Next()) {
    if (entry.field() == 1) info.name = entry.View();
    if (entry.field() == 2) ONCILLA_TRY(ReadTensorInfo(entry.View(), &info));
  }
  return info;
}

void SortByName(std::vector<TensorInfo>* list) {
  std::sort(list->begin(), list->end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
}

Result<Signature> ReadSignature(Bytes entry_proto) {
  Signature signature;
  WireMessage entry(entry_proto);
  while (entry.Next()) {
    if (entry.field() == 1) signature.key = entry.View();
    if (entry.field() != 2 || !entry.is_view()) continue;
    WireMessage def(entry.View());
    while (def.Next()) {
      if (def.field() != 1 && def.field() != 2) continue;
      auto& list = def.field() == 1 ? signature.inputs : signature.outputs;
      ONCILLA_ASSIGN(TensorInfo info, ReadSignatureEntry(def.View()));
      list.push_back(std::move(info));
    }
  }
  SortByName(&signature.inputs);
  SortByName(&signature.outputs);
  return signature;
}

// The node's name: "node" of "node:0".
std::string NodeOf(const std::string& tensor) { return tensor.substr(0, tensor.find(':')); }

// The initialisation op of TensorFlow 1 models, kept in a node collection of a certain name; empty
// for other collections.
std::string ReadInitCollection(Bytes entry_proto) {
  Bytes key;
  std::string node;
  WireMessage entry(entry_proto);
  while (entry.Next()) {
    if (entry.field() == 1) key = entry.View();
    if (entry.field() != 2 || !entry.is_view()) continue;
    WireMessage collection(entry.View());
    while (collection.Next()) {
      if (collection.field() != 1 || !collection.is_view()) continue;
      WireMessage list(collection.View());
      while (list.Next()) {
        if (list.field() == 1) node = list.View();
      }
    }
  }
  const bool init = key == "saved_model_main_op" || key == "legacy_init_op";
  return init ? NodeOf(node) : "";
}

// An AssetFileDef: the tensor that holds the path of a file, and the file's name.
void ReadAsset(Bytes asset_proto, std::map<std::string, std::string, std::less<>>* assets) {
  std::string tensor, file;
  WireMessage asset(asset_proto);
  while (asset.Next()) {
    if (asset.field() == 2) file = asset.View();
    if (asset.field() != 1) continue;
    WireMessage info(asset.View());
    while (info.Next()) {
      if (info.field() == 1) tensor = info.View();
    }
  }
  (*assets)[NodeOf(tensor)] = file;
}

// The same from an entry of a collection (a list of Any), as TensorFlow 1 stored it.
void ReadAssetCollection(Bytes entry_proto,
                         std::map<std::string, std::string, std::less<>>* assets) {
  Bytes key, collection;
  for (WireMessage entry(entry_proto); entry.Next();) {
    if (entry.field() == 1) key = entry.View();
    if (entry.field() == 2) collection = entry.View();
  }
  if (key != "saved_model_assets") return;
  for (WireMessage kinds(collection); kinds.Next();) {
    if (kinds.field() != 5) continue;  // any_list
    for (WireMessage list(kinds.View()); list.Next();) {
      if (list.field() != 1) continue;
      for (WireMessage any(list.View()); any.Next();) {
        if (any.field() == 2) ReadAsset(any.View(), assets);
      }
    }
  }
}

bool LooksLikeMetaGraph(Bytes bytes) {
  bool has_part = false;
  WireMessage message(bytes);
  while (message.Next()) {
    if (message.field() < 1 || message.field() > 7) return false;
    (void)message.View();  // every field of a MetaGraphDef is a message
    has_part |= message.field() == 1 || message.field() == 2;
  }
  return has_part;
}

bool LooksLikeNode(Bytes bytes) {
  Bytes name, op;
  WireMessage message(bytes);
  while (message.Next()) {
    if (message.field() == 1) name = message.View();
    if (message.field() == 2) op = message.View();
  }
  return !name.empty() && !op.empty();
}

// Says what to do with a folder without saved_model.pb; it may hold another kind of saved model.
Status NoModelFile(const std::string& folder) {
  // A folder that cannot be read or entered would look empty, so report that first.
  ONCILLA_TRY(ListFolder(folder).status());
  const Status opened = MappedFile::Open(JoinPath(folder, "saved_model.pb")).status();
  if (opened.code() == Code::kPermissionDenied) return opened;
  if (FileExists(JoinPath(folder, "saved_model.cpb"))) {
    return Unsupported(folder,
                       ": saved_model.cpb (the split form for graphs above 2 GB) is not read; in "
                       "TensorFlow, tf.saved_model.save(tf.saved_model.load('OLD'), 'NEW') without "
                       "experimental_image_format writes saved_model.pb");
  }
  if (FileExists(JoinPath(folder, "keras_metadata.pb")) ||
      FileExists(JoinPath(folder, "config.json"))) {
    return NotFound(folder,
                    ": there is no saved_model.pb; in Keras, "
                    "keras.saving.load_model(..).export('FOLDER') writes a SavedModel");
  }
  return NotFound(folder, ": there is no saved_model.pb or saved_model.pbtxt in this folder");
}

}  // namespace

TfFileKind DetectTfFile(Bytes bytes) {
  TfFileKind kind = TfFileKind::kUnknown;
  const Status status = ReadWire("the file", [&] {
    WireMessage message(bytes);
    while (kind == TfFileKind::kUnknown && message.Next()) {
      if (message.field() == 2 && message.is_view() && LooksLikeMetaGraph(message.View())) {
        kind = TfFileKind::kSavedModel;
      } else if (message.field() == 1 && message.is_view()) {
        if (!LooksLikeNode(message.View())) return;
        kind = TfFileKind::kGraphDef;
      }
    }
  });
  return status.ok() ? kind : TfFileKind::kUnknown;
}

Status SavedModel::ReadMetaGraph(Bytes meta_graph) {
  WireMessage message(meta_graph);
  while (message.Next()) {
    // The cases are the fields of MetaGraphDef (meta_graph.proto).
    switch (message.field()) {
      case 1: {
        WireMessage info(message.View());
        while (info.Next()) {
          if (info.field() == 2) op_list_ = info.View();
        }
        break;
      }
      case 2:
        graph_def_ = message.View();
        break;
      case 3: {
        WireMessage saver(message.View());
        while (saver.Next()) {
          if (saver.field() == 3) restore_op_ = saver.View();
        }
        break;
      }
      case 5: {
        ONCILLA_ASSIGN(Signature signature, ReadSignature(message.View()));
        // Keys that begin with two underscores belong to TensorFlow (initialisation, training).
        if (signature.key == "__saved_model_init_op" && !signature.outputs.empty()) {
          init_op_ = NodeOf(signature.outputs[0].source);
        }
        if (signature.key.compare(0, 2, "__") != 0) signatures_.push_back(std::move(signature));
        break;
      }
      case 4: {
        const Bytes collection = message.View();
        if (init_op_.empty()) init_op_ = ReadInitCollection(collection);
        ReadAssetCollection(collection, &assets_);
        break;
      }
      case 6:
        ReadAsset(message.View(), &assets_);
        break;
      case 7:
        object_graph_ = message.View();
        break;
    }
  }
  std::sort(signatures_.begin(), signatures_.end(),
            [](const Signature& a, const Signature& b) { return a.key < b.key; });
  return {};
}

Result<std::unique_ptr<SavedModel>> SavedModel::Open(const std::string& folder,
                                                     std::span<const std::string> tags,
                                                     const std::string& file_name) {
  auto model = std::make_unique<SavedModel>();
  model->folder_ = folder;
  model->path_ = JoinPath(folder, file_name.empty() ? "saved_model.pb" : file_name);
  if (file_name.empty() && !FileExists(model->path_)) model->path_ += "txt";
  if (!FileExists(model->path_)) return WithStage(NoModelFile(folder), Stage::kFile);
  ONCILLA_ASSIGN(const auto file, MappedFile::Open(model->path_));
  model->file_ = file;
  model->owner_ = file;
  model->bytes_ = file->text();
  if (DetectTfFile(model->bytes_) == TfFileKind::kUnknown &&
      DetectTfText(model->bytes_) == TfFileKind::kSavedModel) {
    ONCILLA_ASSIGN(std::string converted,
                   TfTextToBytes(file->text(), TfFileKind::kSavedModel, model->path_));
    const auto bytes = std::make_shared<const std::string>(std::move(converted));
    model->owner_ = bytes;
    model->bytes_ = *bytes;
  }
  std::vector<MetaGraphTags> all;
  ONCILLA_TRY(ReadWire(model->path_, [&]() -> Status {
    WireMessage message(model->bytes_);
    while (message.Next()) {
      if (message.field() == 2) all.push_back(ReadTags(message.View()));
    }
    if (all.empty()) return DataLoss(model->path_, " holds no meta graph: not a SavedModel");
    auto chosen = Choose(all, tags);
    if (!chosen.ok()) return WithStage(In(chosen.status(), folder), Stage::kOptions);
    for (const MetaGraphTags& one : all) model->all_tags_.push_back(one.tags);
    model->tags_ = (*chosen)->tags;
    model->meta_graph_ = (*chosen)->meta_graph;
    return In(model->ReadMetaGraph((*chosen)->meta_graph), model->path_);
  }));
  // Opened together with the graph that they belong to: another model may be in this folder by the
  // time they are read.
  auto variables = Checkpoint::Open(JoinPath(folder, "variables/variables"));
  model->no_variables_ = variables.status();
  if (variables.ok()) model->variables_ = *std::move(variables);
  return model;
}

Result<TfGraph*> SavedModel::Graph() {
  if (graph_ == nullptr) {
    ONCILLA_ASSIGN(graph_, TfGraph::Parse(graph_def_, op_list_, path_, owner_));
    graph_->SetAssets(JoinPath(folder_, "assets"), assets_);
  }
  return graph_.get();
}

Result<std::map<Bytes, std::vector<int64_t>>> SavedModel::BoundInputs() const {
  std::map<Bytes, std::vector<int64_t>> out;
  ONCILLA_TRY(ReadWire(StrCat(path_, ": the object graph"), [&] {
    WireMessage graph(object_graph_);
    while (graph.Next()) {
      if (graph.field() != 2) continue;
      Bytes key;
      std::vector<int64_t> ids;
      WireMessage entry(graph.View());
      while (entry.Next()) {
        if (entry.field() == 1) key = entry.View();
        if (entry.field() != 2 || !entry.is_view()) continue;
        WireMessage function(entry.View());
        while (function.Next()) {
          if (function.field() == 2) function.EachInt([&](int64_t id) { ids.push_back(id); });
        }
      }
      out[key] = std::move(ids);
    }
  }));
  return out;
}

Result<Checkpoint*> SavedModel::Variables() {
  ONCILLA_TRY(no_variables_);
  return variables_.get();
}

int64_t SavedModel::file_bytes() const {
  int64_t bytes = static_cast<int64_t>(bytes_.size());
  if (auto entries = ListFolder(JoinPath(folder_, "variables")); entries.ok()) {
    for (const FolderEntry& entry : *entries) bytes += static_cast<int64_t>(entry.bytes);
  }
  return bytes;
}

}  // namespace oncilla
