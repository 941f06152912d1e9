// Oncilla for C++17: the functions of oncilla.h as classes that free what they hold. Header-only;
// it needs only the standard library and liboncilla.
//
//   #include <oncilla/oncilla.hpp>
//   int main() {
//     auto session = oncilla::Session::Create().value();      // the first GPU, else the CPU
//     auto model = session.Load("efficientnet_lite0").value();
//     auto image = oncilla::Tensor::Of<float>({1, 2}, {0.5f, 1.5f}).value();
//     auto result = model.Run({{"x", image}}).value();
//     std::printf("%f\n", result[0].data<float>()[0]);
//   }
//
// No call throws, except that reading the value of a Result that holds a failure throws
// oncilla::Error. A model keeps its session alive: both are closed when the last of them is
// destroyed, or earlier by Close(). The thread rules are those of oncilla.h.
#ifndef ONCILLA_HPP_
#define ONCILLA_HPP_

#include <oncilla/oncilla.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <oncilla/oncilla_runs.hpp>
#include <oncilla/oncilla_runtime.hpp>
#include <oncilla/oncilla_tensor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace oncilla {
inline namespace v0 {

// Where an output is to be written: exactly as many bytes as its dense row-major form.
struct OutputMemory {
  std::string output;
  void* data = nullptr;
  size_t bytes = 0;
};

struct RunOptions {
  std::string signature = {};  // empty: the default one
  // The outputs to compute; empty: all, or none where there are targets.
  std::vector<std::string> outputs = {};
  // The run fails as DEADLINE_EXCEEDED after this time; 0: the session's time limit, else none.
  int64_t timeout_ms = 0;
  // Nodes of a TensorFlow graph that run for their side effects: an initialiser, an assignment.
  std::vector<std::string> targets = {};
  // The device of this run; empty: the session's. Graph and weights are kept on each device used.
  std::string device = {};
  Cancellation cancellation = {};
  // Outputs that stay on the device that computes them, for values that are fed to a later run.
  std::vector<std::string> keep = {};
  bool keep_all = false;
  int trace_level = ONCILLA_TRACE_NONE;  // what is recorded for RunResult::Trace
  // Memory of the caller that outputs are written to; see oncilla_run_options::into. The result's
  // tensors refer to it, so it must outlive them.
  std::vector<OutputMemory> into = {};
};

// The device for a node of this name, op and stored device; empty: no preference.
using PlacementRule = std::function<std::string(const std::string& node, const std::string& op,
                                                const std::string& stored)>;

// An input or output as a signature declares it.
struct TensorInfo {
  std::string name;
  oncilla_dtype dtype = static_cast<oncilla_dtype>(0);
  bool ranked = false;        // false: the rank is not known
  std::vector<int64_t> dims;  // -1: not known
  oncilla_kind kind = ONCILLA_KIND_TENSOR;
};

// A node of a model's file: `reason` says why it is not supported, and is empty where it is.
struct NodeJudgement {
  std::string node, op, reason;
};

struct PrepareOptions {
  std::string signature = {};             // empty: the default one
  std::vector<std::string> outputs = {};  // empty: all
  std::string device = {};                // empty: the session's
};

namespace internal {
// The text that read(text, size, &needed) writes; it may grow between two calls.
template <class Read>
Result<std::string> WholeText(const Read& read) {
  for (size_t size = 1 << 16;;) {
    std::string text(size, ' ');
    size_t needed = 0;
    Status status(read(text.data(), size, &needed));
    if (!status.ok()) return status;
    if (needed <= size) {
      text.resize(needed - 1);
      return text;
    }
    size = needed + needed / 8;
  }
}
}  // namespace internal

class Model {
 public:
  using Inputs = std::vector<std::pair<std::string, Tensor>>;
  Result<RunResult> Run(const Inputs& inputs, const RunOptions& options = {}) const {
    const Arguments a(inputs, options);
    oncilla_result* result = nullptr;
    Status status(oncilla_model_run(model_.get(), a.names.data(), a.tensors.data(), a.names.size(),
                                    &a.c, &result));
    if (!status.ok()) return status;
    return RunResult(result);
  }
  // Runs on a thread of the session and returns at once. `done` is called on that thread when the
  // run is over; see oncilla_done_fn.
  Result<AsyncRun> RunAsync(const Inputs& inputs, const RunOptions& options = {},
                            std::function<void()> done = nullptr) const {
    const Arguments a(inputs, options);
    std::unique_ptr<std::function<void()>> kept;
    if (done) kept = std::make_unique<std::function<void()>>(std::move(done));
    const oncilla_done_fn call = [](void* user) {
      const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(user));
      (*own)();
    };
    oncilla_run* run = nullptr;
    Status status(oncilla_model_run_async(model_.get(), a.names.data(), a.tensors.data(),
                                          a.names.size(), &a.c, kept ? call : nullptr, kept.get(),
                                          &run));
    if (!status.ok()) return status;
    (void)kept.release();  // `call` has it
    return AsyncRun(run);
  }
  Result<Callable> MakeCallable(const CallableOptions& options) const {
    const auto inputs = Pointers(options.inputs), outputs = Pointers(options.outputs),
               targets = Pointers(options.targets), keep = Pointers(options.keep);
    oncilla_callable_options c{};
    c.size = sizeof(c);
    c.signature = options.signature.empty() ? nullptr : options.signature.c_str();
    c.inputs = inputs.data();
    c.input_count = inputs.size();
    c.outputs = outputs.data();
    c.output_count = outputs.size();
    c.targets = targets.data();
    c.target_count = targets.size();
    c.keep = keep.data();
    c.keep_count = keep.size();
    c.keep_all = options.keep_all;
    oncilla_callable* callable = nullptr;
    Status status(oncilla_model_make_callable(model_.get(), &c, &callable));
    if (!status.ok()) return status;
    return Callable(callable);
  }
  // Runs the default signature on its one input, whatever the name of that is.
  Result<RunResult> operator()(const Tensor& input) const {
    const std::vector<TensorInfo> declared = inputs();
    return Run({{declared.size() == 1 ? declared[0].name : std::string(), input}});
  }
  // Does the work of a first run except for computing: compiles the graph, makes the plan and the
  // kernels for inputs of these shapes, and uploads the weights. Only the shapes and types of the
  // examples matter, except for inputs whose values determine shapes.
  Status Prepare(const Inputs& examples, const PrepareOptions& options = {}) const {
    RunOptions run;
    run.signature = options.signature;
    run.outputs = options.outputs;
    run.device = options.device;
    const Arguments a(examples, run);
    return Status(oncilla_model_prepare(model_.get(), a.names.data(), a.tensors.data(),
                                        a.names.size(), &a.c));
  }
  // The keys of the model's signatures, in the order of its file. A format without signatures has
  // one, with an empty key.
  std::vector<std::string> signatures() const {
    std::vector<std::string> keys;
    for (size_t i = 0; i < oncilla_model_signature_count(model_.get()); ++i) {
      keys.emplace_back(oncilla_model_signature_key(model_.get(), i));
    }
    return keys;
  }
  // The inputs of a signature, given by its key; empty: serving_default, else the only one. An
  // empty list where there is no such signature.
  std::vector<TensorInfo> inputs(const std::string& signature = {}) const {
    return Infos(signature, oncilla_model_input_count, oncilla_model_input);
  }
  std::vector<TensorInfo> outputs(const std::string& signature = {}) const {
    return Infos(signature, oncilla_model_output_count, oncilla_model_output);
  }
  // The variables of the model: trained weights, and those that its graphs change.
  std::vector<TensorInfo> variables() const {
    std::vector<TensorInfo> all(oncilla_model_variable_count(model_.get()));
    for (size_t i = 0; i < all.size(); ++i) {
      oncilla_tensor_info c{};
      c.size = sizeof(c);
      if (!Status(oncilla_model_variable(model_.get(), i, &c)).ok()) continue;
      all[i] = {c.name, c.dtype, c.ranked != 0, {c.dims, c.dims + c.rank}, c.kind};
    }
    return all;
  }
  // See oncilla_model_read_variable.
  Result<Tensor> ReadVariable(const std::string& name) const {
    oncilla_tensor* tensor = nullptr;
    Status status(oncilla_model_read_variable(model_.get(), name.c_str(), &tensor));
    if (!status.ok()) return status;
    return Tensor::Adopt(tensor);
  }
  Status AssignVariable(const std::string& name, const Tensor& value) const {
    return Status(oncilla_model_assign_variable(model_.get(), name.c_str(), value.get()));
  }
  // From the next run on, the nodes whose names match run on `device`; see oncilla_model_place.
  Status Place(const std::string& nodes, const std::string& device) const {
    return Status(oncilla_model_place(model_.get(), nodes.c_str(), nullptr, device.c_str()));
  }
  // From the next run on, all nodes of a type ("Conv2D") run on `device`.
  Status PlaceType(const std::string& op, const std::string& device) const {
    return Status(oncilla_model_place(model_.get(), nullptr, op.c_str(), device.c_str()));
  }
  // Asks `rule` for the device of each node of a graph that is compiled from now on, given its
  // name, op and the device that the model stores for it; an empty answer is no preference. It is
  // called from any thread, until the placement is cleared or the model is gone.
  Status PlaceBy(PlacementRule rule) const {
    auto kept = std::make_unique<PlacementRule>(std::move(rule));
    const oncilla_place_fn call = [](void* user, const char* node, const char* op,
                                     const char* stored) {
      static thread_local std::string device;
      device = (*static_cast<PlacementRule*>(user))(node, op, stored);
      return device.empty() ? nullptr : device.c_str();
    };
    const bool given = *kept != nullptr;
    Status status(
        oncilla_model_place_by(model_.get(), given ? +call : nullptr, kept.get(),
                               [](void* user) { delete static_cast<PlacementRule*>(user); }));
    if (status.ok()) (void)kept.release();  // goes with the rule
    return status;
  }
  Status ClearPlacement() const { return Status(oncilla_model_clear_placement(model_.get())); }
  // Where each node of a signature runs and why, one line each.
  Result<std::string> Placement(const std::string& signature = {},
                                const std::string& device = {}) const {
    size_t needed = 0;
    const char* s = signature.empty() ? nullptr : signature.c_str();
    const char* d = device.empty() ? nullptr : device.c_str();
    Status status(oncilla_model_placement(model_.get(), s, d, nullptr, 0, &needed));
    if (!status.ok()) return status;
    std::string text(needed, ' ');
    status = Status(oncilla_model_placement(model_.get(), s, d, text.data(), needed, nullptr));
    if (!status.ok()) return status;
    text.pop_back();
    return text;
  }
  // Which nodes of an ONNX model can run, in the order of the file; see oncilla_model_judge_nodes.
  Result<std::vector<NodeJudgement>> JudgeNodes() const {
    std::vector<NodeJudgement> all;
    const oncilla_judge_fn note = [](void* user, size_t, const char* node, const char* op,
                                     const char* reason) {
      static_cast<std::vector<NodeJudgement>*>(user)->push_back({node, op, reason});
    };
    Status status(oncilla_model_judge_nodes(model_.get(), note, &all));
    if (!status.ok()) return status;
    return all;
  }
  // The part of Session::MemoryReport that is about this model, as a JSON object.
  Result<std::string> MemoryReport() const {
    return internal::WholeText([&](char* text, size_t size, size_t* needed) {
      return oncilla_model_memory_report(model_.get(), text, size, needed);
    });
  }
  // Frees the model's memory and returns how many bytes that was.
  Result<int64_t> Unload() {
    int64_t bytes = 0;
    Status status(oncilla_model_unload(model_.get(), &bytes));
    if (!status.ok()) return status;
    return bytes;
  }
  oncilla_model* get() const { return model_.get(); }

 private:
  friend class Session;
  friend struct PrecisionCheck;  // oncilla_precision.hpp
  static std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& t : texts) pointers.push_back(t.c_str());
    return pointers;
  }
  // The arguments of a run in the form of the C interface. It refers to both parameters.
  struct Arguments {
    Arguments(const Inputs& inputs, const RunOptions& options)
        : outputs(Pointers(options.outputs)),
          targets(Pointers(options.targets)),
          keep(Pointers(options.keep)) {
      for (const auto& [name, tensor] : inputs) {
        names.push_back(name.c_str());
        tensors.push_back(tensor.get());
      }
      c.size = sizeof(c);
      c.signature = options.signature.empty() ? nullptr : options.signature.c_str();
      c.timeout_ms = options.timeout_ms;
      c.outputs = outputs.data();
      c.output_count = outputs.size();
      c.targets = targets.data();
      c.target_count = targets.size();
      c.cancellation = options.cancellation.get();
      c.keep = keep.data();
      c.keep_count = keep.size();
      c.keep_all = options.keep_all;
      c.device = options.device.empty() ? nullptr : options.device.c_str();
      c.trace_level = options.trace_level;
      for (const OutputMemory& m : options.into)
        into.push_back({m.output.c_str(), m.data, m.bytes});
      c.into = into.data();
      c.into_count = into.size();
    }
    std::vector<oncilla_output_memory> into;
    std::vector<const char*> names, outputs, targets, keep;
    std::vector<const oncilla_tensor*> tensors;
    oncilla_run_options c{};
  };
  template <class Count, class Get>
  std::vector<TensorInfo> Infos(const std::string& signature, Count&& count, Get&& get) const {
    const std::vector<std::string> keys = signatures();
    const std::string wanted = signature.empty() ? "serving_default" : signature;
    size_t index = keys.size() == 1 && signature.empty() ? 0 : keys.size();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == wanted) index = i;
    }
    std::vector<TensorInfo> all(index < keys.size() ? count(model_.get(), index) : 0);
    for (size_t i = 0; i < all.size(); ++i) {
      oncilla_tensor_info c{};
      c.size = sizeof(c);
      if (!Status(get(model_.get(), index, i, &c)).ok()) continue;
      all[i] = {c.name, c.dtype, c.ranked != 0, {c.dims, c.dims + c.rank}, c.kind};
    }
    return all;
  }
  Model(oncilla_model* owned, std::shared_ptr<oncilla_session> session)
      : session_(std::move(session)), model_(owned) {}
  std::shared_ptr<oncilla_session> session_;  // kept alive by its models
  internal::Handle<oncilla_model, oncilla_model_free> model_;
};

// What to do with the devices that are stored on the nodes of a TensorFlow model; see
// oncilla_load_options.
enum class StoredDevices {
  // kSoft for graphs that are built in code, where a DeviceScope was written on purpose; kIgnore
  // for files.
  kDefault = ONCILLA_STORED_DEVICES_DEFAULT,
  kIgnore = ONCILLA_STORED_DEVICES_IGNORE,
  kSoft = ONCILLA_STORED_DEVICES_SOFT,
  kRespect = ONCILLA_STORED_DEVICES_RESPECT,
};

// When the graphs of a model are compiled; see oncilla_load_options.
enum class LoadPolicy {
  kLazy = ONCILLA_LOAD_LAZY,    // in the first run that needs them
  kEager = ONCILLA_LOAD_EAGER,  // the default signature's while loading, where failures then show
};

// The tags of one meta graph of a SavedModel: {"serve", "gpu"}, or one text with commas.
class Tags : public std::vector<std::string> {
 public:
  Tags() = default;
  Tags(const char* tags) : Tags(std::string(tags)) {}  // NOLINT: as text
  Tags(const std::string& tags) {                      // NOLINT
    for (size_t begin = 0; begin < tags.size();) {
      const size_t end = std::min(tags.find(',', begin), tags.size());
      const size_t first = tags.find_first_not_of(' ', begin),
                   last = tags.find_last_not_of(' ', end - 1);
      if (first < end) push_back(tags.substr(first, last - first + 1));
      begin = end + 1;
    }
  }
  // Takes no strings: {{"serve", "gpu"}} must never become one string made from two pointers.
  Tags(std::initializer_list<const char*> tags)
      : std::vector<std::string>(tags.begin(), tags.end()) {}
  Tags(std::vector<std::string> tags) : std::vector<std::string>(std::move(tags)) {}  // NOLINT
};

struct LoadOptions {
  Tags tags = {};  // SavedModel; empty: "serve", else the only set there is
  StoredDevices stored_devices = StoredDevices::kDefault;
  LoadPolicy load_policy = LoadPolicy::kLazy;
  // Called during the load, on its thread, with what is done ("load", then with kEager "compile")
  // and the share of it that is, from 0 to 1.
  std::function<void(const std::string& what, double fraction)> progress = nullptr;
  std::string name = {};  // LoadBytes: stands for the file in messages; empty: "bytes"
};

namespace internal {
// The options in the form of the C interface. `c` refers to `tags` and to the options.
struct CLoadOptions {
  explicit CLoadOptions(const LoadOptions& options) {
    for (const std::string& tag : options.tags) tags += (tags.empty() ? "" : ",") + tag;
    c.size = sizeof(c);
    c.tags = tags.empty() ? nullptr : tags.c_str();
    c.stored_devices = static_cast<int>(options.stored_devices);
    c.load_policy = static_cast<int>(options.load_policy);
    if (!options.progress) return;
    c.progress = [](void* user, const char* what, double fraction) {
      static_cast<const LoadOptions*>(user)->progress(what, fraction);
    };
    c.progress_user = const_cast<LoadOptions*>(&options);
  }
  CLoadOptions(const CLoadOptions&) = delete;
  std::string tags;
  oncilla_load_options c{};
};
}  // namespace internal

class GraphBuilder;  // oncilla_graph.hpp

struct SessionOptions {
  // Where nodes run unless they are placed elsewhere: auto (the first GPU, else the CPU), cpu,
  // cpu:plain, gpu, gpu:1 or a device name.
  std::string device = "auto";
  // Fail instead of running a node on another device because its own has no kernel for it.
  bool strict = false;
  // > 0: a thread pool of the session's own, of this size; 0: the runtime's pool.
  int threads = 0;
  // The most bytes taken on each device; lower it to leave room for others. 0: nearly all.
  int64_t memory_limit_bytes = 0;
  // See RuntimeOptions; only for Create() without a runtime.
  bool opencl_cpu_devices = false;
  // A configuration as text, JSON or a serialized ConfigProto of TensorFlow (docs/config.md). The
  // other members take precedence.
  std::string config = {};
  // The most runs at once per model and shapes; others wait. Each takes memory of its own. 0: 4.
  int max_concurrent_runs = 0;
};

namespace internal {
inline oncilla_session_options ToC(const SessionOptions& options) {
  oncilla_session_options s{};
  s.size = sizeof(s);
  if (options.device != "auto") s.device = options.device.c_str();
  if (!options.config.empty()) s.config = options.config.data();
  s.config_size = options.config.size();
  s.strict = options.strict;
  s.threads = options.threads;
  s.memory_limit_bytes = options.memory_limit_bytes;
  s.max_concurrent_runs = options.max_concurrent_runs;
  return s;
}
}  // namespace internal

// A device as a session sees it.
struct SessionDevice {
  std::string name;         // the full name, as the session numbers it
  std::string driver_name;  // of the physical device
  bool in_use = false;      // opened: it has a limit and memory
  bool preferred = false;   // nodes run here unless they are placed elsewhere
  int64_t limit_bytes = 0;
  int64_t pool_bytes = 0;  // allocated from the driver
};

class Session {
 public:
  // Creates a session with its own runtime.
  static Result<Session> Create(const SessionOptions& options = {}) {
    RuntimeOptions r;
    r.opencl_cpu_devices = options.opencl_cpu_devices;
    auto runtime = Runtime::Create(r);
    if (!runtime.ok()) return runtime.status();
    return Create(*runtime, options);
  }
  static Result<Session> Create(const Runtime& runtime, const SessionOptions& options = {}) {
    const oncilla_session_options s = internal::ToC(options);
    oncilla_session* session = nullptr;
    Status status(oncilla_session_create(runtime.get(), &s, &session));
    if (!status.ok()) return status;
    return Session(session);
  }
  Result<Model> Load(const std::string& path, const LoadOptions& options = {}) const {
    const internal::CLoadOptions l(options);
    oncilla_model* model = nullptr;
    Status status(oncilla_model_load(session_.get(), path.c_str(), &l.c, &model));
    if (!status.ok()) return status;
    return Model(model, session_);
  }
  // Loads a model in one file (ONNX, TFLite, a GraphDef, or Oncilla's own) from memory. The bytes
  // are copied or, where there is a `release`, used in place until that is called; see
  // oncilla_model_load_bytes.
  Result<Model> LoadBytes(const void* bytes, size_t size, const LoadOptions& options = {},
                          std::function<void()> release = nullptr) const {
    const internal::CLoadOptions l(options);
    std::unique_ptr<std::function<void()>> kept;
    if (release) kept = std::make_unique<std::function<void()>>(std::move(release));
    const auto call = [](void* user) {
      const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(user));
      (*own)();
    };
    oncilla_model* model = nullptr;
    Status status(oncilla_model_load_bytes(session_.get(), bytes, size,
                                           options.name.empty() ? nullptr : options.name.c_str(),
                                           kept ? +call : nullptr, kept.get(), &l.c, &model));
    if (!status.ok()) return status;
    (void)kept.release();  // `call` has it
    return Model(model, session_);
  }
  // Loads the graph of a builder. Its device scopes are followed; see StoredDevices::kDefault.
  Result<Model> Load(const GraphBuilder& graph, const LoadOptions& options = {}) const;
  // Frees the memory that no run holds at the moment and returns how many bytes that was. Weights
  // stay.
  Result<int64_t> Trim() {
    int64_t bytes = 0;
    Status status(oncilla_session_trim(session_.get(), &bytes));
    if (!status.ok()) return status;
    return bytes;
  }
  // Compacts the weights in memory and frees what is left over. Fails while runs are in progress.
  Result<int64_t> Defragment() {
    int64_t bytes = 0;
    Status status(oncilla_session_defragment(session_.get(), &bytes));
    if (!status.ok()) return status;
    return bytes;
  }
  // Unloads all models; the session stays usable.
  Result<int64_t> Reset() {
    int64_t bytes = 0;
    Status status(oncilla_session_reset(session_.get(), &bytes));
    if (!status.ok()) return status;
    return bytes;
  }
  // The memory of a device in use, given by its full name or a short one ("gpu:0").
  Result<oncilla_memory_info> MemoryInfo(const std::string& device) const {
    oncilla_memory_info info{};
    info.size = sizeof(info);
    Status status(oncilla_session_memory(session_.get(), device.c_str(), &info));
    if (!status.ok()) return status;
    return info;
  }
  // The devices that the session sees; for those in use, their limits and what is taken of them.
  std::vector<SessionDevice> Devices() const {
    std::vector<SessionDevice> all(oncilla_session_device_count(session_.get()));
    for (size_t i = 0; i < all.size(); ++i) {
      oncilla_session_device c{};
      c.size = sizeof(c);
      if (!Status(oncilla_session_device_info(session_.get(), i, &c)).ok()) continue;
      all[i] = {c.name,           c.driver_name, c.in_use != 0,
                c.preferred != 0, c.limit_bytes, c.pool_bytes};
    }
    return all;
  }
  Status ResetPeaks() { return Status(oncilla_session_reset_peaks(session_.get())); }
  // Keeps the latest `changes` changes of memory for MemoryReport(); 0: none.
  Status RecordMemory(size_t changes) {
    return Status(oncilla_session_record_memory(session_.get(), changes));
  }
  // What holds memory, where peaks occur, and what happened when memory ran out.
  Result<std::string> MemoryReport(bool json = false) const {
    return internal::WholeText([&](char* text, size_t size, size_t* needed) {
      return oncilla_session_memory_report(session_.get(), json, text, size, needed);
    });
  }
  Status SetMemoryLimit(const std::string& device, int64_t bytes) {
    return Status(oncilla_session_set_memory_limit(session_.get(), device.c_str(), bytes));
  }
  // All options that were set, as JSON that SessionOptions::config accepts.
  std::string config() const { return oncilla_session_config(session_.get()); }
  // Copies a tensor to a device in use, given by its full name or a short one; empty: the session's
  // device. On the CPU the copy is a tensor in host memory.
  Result<Tensor> Upload(const Tensor& tensor, const std::string& device = {}) const {
    oncilla_tensor* copy = nullptr;
    Status status(oncilla_session_upload(session_.get(), device.empty() ? nullptr : device.c_str(),
                                         tensor.get(), &copy));
    if (!status.ok()) return status;
    return Tensor::Adopt(copy);
  }
  // Closes the session, and cancels runs in progress: at once, or those that take longer than
  // `timeout_ms`.
  Result<int64_t> CloseWithin(bool cancel, int64_t timeout_ms = 0) {
    int64_t bytes = 0;
    Status status(oncilla_session_close_within(session_.get(), cancel, timeout_ms, &bytes));
    if (!status.ok()) return status;
    return bytes;
  }
  // Waits for runs, frees all memory and returns how many bytes that was.
  Result<int64_t> Close() {
    int64_t bytes = 0;
    Status status(oncilla_session_close(session_.get(), &bytes));
    if (!status.ok()) return status;
    return bytes;
  }
  oncilla_session* get() const { return session_.get(); }

 private:
  explicit Session(oncilla_session* owned) : session_(owned, oncilla_session_free) {}
  std::shared_ptr<oncilla_session> session_;
};

}  // namespace v0
}  // namespace oncilla

#include <oncilla/oncilla_graph.hpp>

#endif  // ONCILLA_HPP_
