// Flags that several commands share, and opening what they name: runtime, session, model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/early_end.h"
#include "engine/base/work_limits.h"
#include "engine/session/model.h"

namespace CLI {
class App;
}

namespace oncilla::tool {

struct RuntimeFlags {
  bool opencl_cpu_devices = false;
  std::string cache_dir;
  bool quiet = false;  // the library logs failures only; commands that have --quiet set it

  void AddTo(CLI::App& app);
  std::shared_ptr<Runtime> Create() const;
};

// Flags take precedence over the file of --config.
struct SessionFlags {
  RuntimeFlags runtime;
  std::string config;  // path
  std::string device;  // empty: not given
  bool strict = false;
  int threads = 0;
  std::string memory_limit;
  std::string precision;            // empty: not given
  std::vector<std::string> wide;    // entries for the deny list
  std::vector<std::string> narrow;  // and for the allow list
  std::string fallback;             // devices, separated by commas
  std::string tuning;               // empty: not given

  void AddTo(CLI::App& app);
  Result<SessionOptions> Options() const;
  // Which fields of the configuration have no effect.
  mutable std::vector<std::string> notes;
};

struct ModelFlags {
  std::string path;
  std::string tags;  // separated by commas
  std::string signature;
  std::string stored_devices = "ignore";
  std::vector<std::string> places;  // NODES=DEVICE, or op:TYPE=DEVICE

  void AddTo(CLI::App& app);
};

// What opening the model takes from these flags.
OpenModelOptions LoadOptionsOf(const ModelFlags& flags);
// The flags that only commands have which place nodes.
void AddPlacement(CLI::App& app, ModelFlags& flags);
// --timeout of a run, in milliseconds; 0: none.
void AddTimeout(CLI::App& app, int64_t& timeout_ms);

// Work of this thread during the object's life ends at the time limit; 0: none.
class TimedWork {
 public:
  explicit TimedWork(int64_t timeout_ms);

 private:
  EarlyEnd end_;
  WorkScope scope_;
};

struct OpenedModel {
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<Session> session;
  std::shared_ptr<Model> model;
  const Signature* signature = nullptr;  // the one asked for, or the default
  double load_s = 0;
};

// Failures are staged for ExitCodeOf. Shows progress.
Result<OpenedModel> Open(const ModelFlags& model, const SessionFlags& session);

// The graph for these names compiled, with a failure staged as the model's. Empty feeds: those
// inputs that the fetches need. `fed`: what is known of the feeds, see ImportRequest.
Result<std::shared_ptr<Executor>> CompileModel(const OpenedModel& opened,
                                               const std::vector<std::string>& feeds,
                                               const std::vector<std::string>& fetches,
                                               const std::vector<std::string>& targets = {},
                                               const GraphObserver& observe = nullptr,
                                               Facts fed = {});

// Values of flags; failures name `flag`.
// "1x3x224x224" as sizes; an empty text is a scalar's shape.
Result<Shape> ParseShape(std::string_view text, std::string_view flag);
// "64", "1.5k", "512MiB", "2G": decimal units, binary ones with an i.
Result<int64_t> ParseBytes(std::string_view text, std::string_view flag);
// "0.5,1,2" as numbers; an empty text is none.
Result<std::vector<double>> ParseNumbers(std::string_view text, std::string_view flag);
std::vector<std::string> SplitAt(std::string_view text, char separator);

// The names in "serve, gpu", without the blanks around them.
std::vector<std::string> TagsOf(std::string_view text);

// Names of tensors as users give them, in the form the signature has: a GraphDef's "node" for
// "node:0".
std::string FullName(const std::string& name, const std::vector<TensorInfo>& known);

}  // namespace oncilla::tool
