// ModelSource: an opened model file of any format, from which graphs are imported.
//
// Opening reads names and signatures only. A graph is imported per set of feeds and fetches, so an
// unsupported op fails only runs that need it. Constants are views into the mapped files, which
// stay open as long as any tensor of them lives. Safe to use from several threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/graph/graph.h"
#include "engine/graph/source_nodes.h"

namespace oncilla {

// A named tensor of a model: its names, and what is known of it. For a sequence or an optional
// value, dtype and shape are those of the tensors in it.
struct TensorInfo {
  // A sequence is passed as a list of tensors (Tensor::OfList); an optional tensor as a list with
  // that tensor, or an empty list; an optional sequence as a list with an unwritten element after
  // those of the sequence, or an empty list.
  enum class Kind : uint8_t { kTensor, kSequence, kOptional, kOptionalSequence };
  std::string name;    // signature key, "node:index", or graph name
  std::string source;  // the tensor's name in the file
  DType dtype = DType::kInvalid;
  PartialShape shape = {};
  Kind kind = Kind::kTensor;
  // Whether a run that does not feed it takes a value from the file, as far as the signature says.
  bool has_default = false;
};

// Its type in messages and listings: f32[batch,3], sequence<f32[...]>.
std::string TypeText(const TensorInfo& info);

// Whether a node of a model's main graph is supported, checked independently of the others.
struct NodeJudgement {
  std::string node;    // its name, or that of its first output
  std::string op;      // with its domain, if that is not the format's own
  std::string reason;  // why it is not supported; empty: it is supported
};

struct Signature {
  std::string key;  // empty for formats without signatures
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
};

struct ImportRequest {
  std::string signature;                  // empty: the default one
  std::vector<std::string> feeds;         // empty: the signature's inputs that the fetches need
                                          // and that have no default
  std::vector<std::string> fetches;       // empty: the signature's outputs, or none with targets
  std::vector<std::string> targets = {};  // nodes to run for their effects
  // What is known of each feed, in their order, or empty: the graph need not accept other feeds.
  // Used when a graph cannot be imported for any feeds of these names.
  Facts fed = {};
};

std::vector<std::string> NamesOf(std::span<const TensorInfo> tensors);
// NotFound for an unknown input or output (`role`), with near names or all `names`.
Status NoSuchTensor(std::string_view role, std::string_view name,
                    const std::vector<std::string>& names);

// InvalidArgument if targets are requested from a format that has none.
Status CheckNoTargets(const ImportRequest& asked, std::string_view format);

class ModelSource {
 public:
  virtual ~ModelSource() = default;
  virtual std::string_view format() const = 0;  // "SavedModel", "GraphDef", "ONNX", "TFLite"
  virtual std::span<const Signature> signatures() const = 0;
  // The named signature; for an empty key the default one (serving_default, else the only one).
  // NotFound lists the signatures. The result lives as long as this object.
  virtual Result<const Signature*> FindSignature(std::string_view key) const;
  // A graph whose inputs and outputs have the requested names, in that order. Unimplemented lists
  // every unsupported op at once (op, version, nodes). NotFound for an unknown name, with near
  // names.
  virtual Result<Module> Import(const ImportRequest& request,
                                const std::shared_ptr<const OpSet>& ops) = 0;
  // Checks every node of the main graph, in the order of the file, with the code that imports it. A
  // node that follows an unsupported one is checked all the same, by the type and shape that the
  // file states for its inputs. Unimplemented for formats that do not offer it.
  virtual Result<std::vector<NodeJudgement>> JudgeNodes(
      const std::shared_ptr<const OpSet>& ops) const {
    (void)ops;
    return Unsupported("nodes are judged one by one in ONNX models only, and this is a ", format());
  }
  // A graph without inputs and outputs that assigns the initial values of these variables and
  // tables (ModuleVariable's resources). Empty when the model has none.
  virtual Result<Module> ImportInitialiser(const std::vector<std::string>& resources,
                                           const std::shared_ptr<const OpSet>& ops) {
    (void)resources;
    return Module(Graph(ops));
  }
  // The variables of the model, in the order of its graph: trained weights, and those that its
  // graphs change. `source` is the framework's own name of a variable, if it differs from the
  // graph's. Empty if all weights are constants.
  virtual Result<std::vector<TensorInfo>> Variables() const { return std::vector<TensorInfo>(); }
  // One of them by name; NotFound with near names.
  Result<TensorInfo> FindVariable(std::string_view name) const;
  // The value of a variable in the files, regardless of later assignments. FailedPrecondition when
  // they contain none.
  virtual Result<Tensor> VariableValue(std::string_view name) {
    return Error(Code::kFailedPrecondition, "the model's files have no value for the variable '",
                 name, "'");
  }
  // Why a tensor cannot be fed as `name`, of which `wanted` is known: InvalidArgument, with the
  // message of the model's framework. OK when it can be fed, and where the engine's own message is
  // sufficient.
  virtual Status CheckFeed(std::string_view name, const Fact& wanted, const Tensor& tensor) const;
  // The failure for an input that is needed and was not fed.
  virtual Status NotFed(std::string_view name, const Fact& wanted) const;
  // Tells the source that variables change, so that later imports do not treat them as constants.
  virtual void NoteState(const std::vector<std::string>& resources) { (void)resources; }
  // Whether its graph is one of TensorFlow's, whose contents can be listed (tf/contents.h).
  virtual bool has_tf_contents() const { return false; }
  // Whether the file contains checksums of the weights, which can be verified
  // (container/container.h).
  virtual bool has_sums() const { return false; }
  // The nodes of all graphs imported so far.
  virtual SourceNodes source_nodes() const { return {}; }
  // Files of the model and their bytes, for reports.
  virtual int64_t file_bytes() const = 0;
  // The files opened so far, of whose bytes constants may be views. Call CheckUnchanged() on each
  // before and after using constants.
  using Files = std::vector<std::shared_ptr<const MappedFile>>;
  virtual Files files() const { return {}; }
};

// What to do with the devices that are stored on a model's nodes.
enum class StoredDevices {
  kIgnore,   // they are only reported
  kSoft,     // used if the device exists and can run the node; else ignored
  kRespect,  // used, or the model is refused
};

struct OpenModelOptions {
  std::vector<std::string> tags;  // of a SavedModel alone; empty: {"serve"}, else its only set
  StoredDevices stored_devices = StoredDevices::kIgnore;
};

// Detects the format from the content. DataLoss for a damaged file or one that is not a model,
// NotFound for a path that does not exist.
Result<std::unique_ptr<ModelSource>> OpenModel(const std::string& path,
                                               const OpenModelOptions& options);
// The same for a single-file model in memory; see MappedFile::OfBytes.
Result<std::unique_ptr<ModelSource>> OpenModelBytes(std::shared_ptr<const MappedFile> file,
                                                    const OpenModelOptions& options);

// A GraphDef's bytes; `name` stands for the file in messages.
Result<std::unique_ptr<ModelSource>> OpenGraphDefBytes(std::shared_ptr<const std::string> bytes,
                                                       const std::string& name);

// DataLoss when one of the files was changed since it was opened.
Status CheckUnchanged(const ModelSource::Files& files);

}  // namespace oncilla
