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

// A tensor that a model names: how users speak of it, and what is known of it. Of a sequence, and
// of an optional value, dtype and shape are those of the tensors that it holds.
struct TensorInfo {
  // A sequence is passed as a list of tensors (Tensor::OfList); an optional tensor as a list of it,
  // or of nothing; an optional sequence as a list with an unwritten element behind those of the
  // sequence, or of nothing.
  enum class Kind : uint8_t { kTensor, kSequence, kOptional, kOptionalSequence };
  std::string name;    // signature key, "node:index", or graph name
  std::string source;  // the tensor's name in the file
  DType dtype = DType::kInvalid;
  PartialShape shape = {};
  Kind kind = Kind::kTensor;
};

// What messages and listings call its type: f32[batch,3], sequence<f32[...]>.
std::string TypeText(const TensorInfo& info);

// A node of a model's main graph, judged by itself.
struct NodeJudgement {
  std::string node;    // its name, else that of its first output
  std::string op;      // with its domain, where that is not the format's own
  std::string reason;  // why it is not supported; empty: it is
};

struct Signature {
  std::string key;  // empty for formats without signatures
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
};

struct ImportRequest {
  std::string signature;                  // empty: the default one
  std::vector<std::string> feeds;         // empty: the signature's inputs that the fetches need
  std::vector<std::string> fetches;       // empty: the signature's outputs, or none with targets
  std::vector<std::string> targets = {};  // nodes to run for their effects
  // What is known of each feed, in their order, or nothing at all: the graph need serve no others.
  // A graph is made so when it cannot be made for any feeds of these names.
  Facts fed = {};
};

std::vector<std::string> NamesOf(std::span<const TensorInfo> tensors);
// NotFound for an input or output (`role`) that is not there, with near names or all `names`.
Status NoSuchTensor(std::string_view role, std::string_view name,
                    const std::vector<std::string>& names);

// InvalidArgument where targets are asked for of a format that has none.
Status CheckNoTargets(const ImportRequest& asked, std::string_view format);

class ModelSource {
 public:
  virtual ~ModelSource() = default;
  virtual std::string_view format() const = 0;  // "SavedModel", "GraphDef", "ONNX", "TFLite"
  virtual std::span<const Signature> signatures() const = 0;
  // The named signature; for an empty key the default one (serving_default, else the only one).
  // NotFound lists what there is.
  // What is found lives as long as this.
  virtual Result<const Signature*> FindSignature(std::string_view key) const;
  // A graph whose inputs and outputs carry the names asked for, in that order. Unimplemented lists
  // every unsupported op at once (op, version, nodes). NotFound for an unknown name gives near
  // ones.
  virtual Result<Module> Import(const ImportRequest& request,
                                const std::shared_ptr<const OpSet>& ops) = 0;
  // Judges every node of the main graph, in the order of the file, by the same code that imports
  // it. A node behind one that is not supported is judged all the same, from the type and shape
  // that the file states for what it reads. Unimplemented for formats that do not offer it.
  virtual Result<std::vector<NodeJudgement>> JudgeNodes(
      const std::shared_ptr<const OpSet>& ops) const {
    (void)ops;
    return Unsupported("nodes are judged one by one in ONNX models only, and this is a ", format());
  }
  // A graph without inputs and outputs that gives these variables and tables (ModuleVariable's
  // resources) their first values. Empty when the model has nothing that does.
  virtual Result<Module> ImportInitialiser(const std::vector<std::string>& resources,
                                           const std::shared_ptr<const OpSet>& ops) {
    (void)resources;
    return Module(Graph(ops));
  }
  // The variables of the model, in the order of its graph: trained weights, and what its graphs
  // change. `source` is the framework's own name for one, where it has another than the graph.
  // None where all weights are constants.
  virtual Result<std::vector<TensorInfo>> Variables() const { return std::vector<TensorInfo>(); }
  // One of them by name; NotFound with near names.
  Result<TensorInfo> FindVariable(std::string_view name) const;
  // The value that the files give a variable, whatever it has become since. FailedPrecondition when
  // they give none.
  virtual Result<Tensor> VariableValue(std::string_view name) {
    return Error(Code::kFailedPrecondition, "the model's files have no value for the variable '",
                 name, "'");
  }
  // Why a tensor cannot be fed as `name`, of which `wanted` is known: InvalidArgument, in the words
  // of the model's framework. OK when it can, and where the engine's own words say enough.
  virtual Status CheckFeed(std::string_view name, const Fact& wanted, const Tensor& tensor) const;
  // The failure for an input that is needed and got no tensor.
  virtual Status NotFed(std::string_view name, const Fact& wanted) const;
  // Tells the source that variables change, which later imports must not take for constants.
  virtual void NoteState(const std::vector<std::string>& resources) { (void)resources; }
  // Its graph is one of TensorFlow's, whose contents can be listed (tf/contents.h).
  virtual bool has_tf_contents() const { return false; }
  // The file holds sums of the weights' bytes, which can be verified (container/container.h).
  virtual bool has_sums() const { return false; }
  // The nodes of all graphs imported so far.
  virtual SourceNodes source_nodes() const { return {}; }
  // Files of the model and their bytes, for reports.
  virtual int64_t file_bytes() const = 0;
  // The files that were opened so far, whose bytes constants may be views of. Ask CheckUnchanged()
  // of each before and behind a use of constants.
  using Files = std::vector<std::shared_ptr<const MappedFile>>;
  virtual Files files() const { return {}; }
};

// What to do with the devices that a model's nodes say they were made for.
enum class StoredDevices {
  kIgnore,   // they are only reported
  kSoft,     // followed where the device is there and can run the node; else as if there were none
  kRespect,  // followed, or the model is refused
};

struct OpenModelOptions {
  std::vector<std::string> tags;  // of a SavedModel alone; empty: {"serve"}, else its only set
  StoredDevices stored_devices = StoredDevices::kIgnore;
};

// Finds the format from the content. DataLoss for what is damaged or no model, NotFound for a path
// that is not there.
Result<std::unique_ptr<ModelSource>> OpenModel(const std::string& path,
                                               const OpenModelOptions& options);
// The same for a model in one file that is in memory; see MappedFile::OfBytes.
Result<std::unique_ptr<ModelSource>> OpenModelBytes(std::shared_ptr<const MappedFile> file,
                                                    const OpenModelOptions& options);

// A GraphDef's bytes; `name` stands for the file in messages.
Result<std::unique_ptr<ModelSource>> OpenGraphDefBytes(std::shared_ptr<const std::string> bytes,
                                                       const std::string& name);

// DataLoss when one of the files was changed since it was opened.
Status CheckUnchanged(const ModelSource::Files& files);

}  // namespace oncilla
