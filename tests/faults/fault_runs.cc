// Whole models with a driver that fails: fault_runs MODEL [--all] [--cold]
// MODEL: a path, or "net" for a small graph made here. Every call made while opening, loading and
// running fails once with each plausible error (--all: each call of it; otherwise the first, the
// middle and the last one; --cold: with an empty program cache). Then the device is lost, hangs,
// has too little memory, is slow. Each time there must be a clear error or the right result, then
// the same session must run correctly on what is left, and after closing no driver object may be
// alive. Needs OPENCL_LAYERS.
// OPENCL_LAYERS.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "engine/import/graph_builder.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/faults/fault_layer.h"

namespace oncilla {
namespace {

constexpr unsigned kMostSeconds = 60;  // of one trial; then the process ends and the test fails

const FaultControl& Faults() {
  static const FaultControl* const control = [] {
    const char* path = std::getenv("OPENCL_LAYERS");
    void* layer = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    auto get = layer == nullptr
                   ? nullptr
                   : reinterpret_cast<const FaultControl* (*)()>(dlsym(layer, "oncilla_faults"));
    if (get == nullptr) {
      std::fprintf(stderr, "the layer is not in the process: set OPENCL_LAYERS to its path\n");
      std::_Exit(2);
    }
    return get();
  }();
  return *control;
}

// 20 nodes: convolutions, products, elementwise chains, a reduction, two outputs.
std::string Net() {
  GraphBuilder g;
  const auto floats = [&](Shape shape, int seed) {
    Tensor t = Tensor::Allocate({DType::kF32, std::move(shape)}).value();
    auto values = t.MutableAs<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed)) % 11) / 11 - 0.4f;
    }
    return g.Constant(t);
  };
  auto x = g.Placeholder(DType::kF32, PartialShape(Shape{1, 8, 8, 4}), "x");
  const GraphBuilder::Attrs same = {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                                    {"padding", std::string("SAME")}};
  auto y = x;
  for (int i = 0; i < 3; ++i) {
    y = g.Op("Conv2D", {y, floats({3, 3, 4, 4}, i)}, same);
    y = g.Op("BiasAdd", {y, floats({4}, i + 5)});
    y = g.Op("Relu", {y});
  }
  const auto pooled = g.Op("MaxPool", {y},
                           {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                            {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                            {"padding", std::string("VALID")}});
  auto flat = g.Op(
      "Reshape",
      {pooled, g.Constant(Tensor::Of<int32_t>(DType::kI32, {2}, std::vector<int32_t>{1, 64}))});
  for (int i = 0; i < 2; ++i) {
    flat = g.Op("MatMul", {flat, floats({64, 64}, i + 9)});
    flat = g.Op("Tanh", {flat});
    flat = g.Op("AddV2", {flat, floats({64}, i + 13)});
  }
  g.Op("Softmax", {flat}, {}, "probabilities");
  g.Op("Exp", {g.Op("Sqrt", {g.Op("Abs", {flat})})}, {}, "others");
  return g.GraphDef().value();
}

class Trials {
 public:
  Trials(std::string model, std::string cache) : path_(std::move(model)), cache_(std::move(cache)) {
    RuntimeOptions options = RuntimeOptionsFromEnvironment();
    options.opencl_cpu_devices = true;
    options.threads = 2;
    options.cache_dir = cache_;
    runtime_ = Runtime::Create(options);
  }

  bool Prepare() {
    if (!runtime_->Resolve("gpu").ok()) {
      std::fprintf(stderr, "%s\n", std::string(Message(runtime_->Resolve("gpu").status())).c_str());
      return false;
    }
    auto first = Cycle({}, nullptr);  // fills the caches of programs
    if (!first.ok()) return Fail("without a fault", Message(first.status()));
    right_ = *std::move(first);
    return true;
  }

  // Calls that a whole cycle makes.
  long CountOf(const std::string& call) {
    if (counts_.empty()) {
      ForgetPrograms();
      Faults().reset();
      (void)Cycle({}, nullptr);
      for (const char* const* c = Faults().calls; *c != nullptr; ++c) {
        const std::string name(*c, std::strchr(*c, ':'));
        counts_[name] = Faults().count(name.c_str());
      }
      Faults().reset();
    }
    return counts_[call];
  }

  bool Sweep(bool all, bool cold) {
    cold_ = cold;
    for (const char* const* c = Faults().calls; *c != nullptr; ++c) {
      const std::string call(*c, std::strchr(*c, ':'));
      const int error = std::atoi(std::strchr(*c, ':') + 1);
      const long count = CountOf(call);
      std::set<long> which = {1, (count + 1) / 2, count};
      for (long n = 1; all && n <= count; ++n) which.insert(n);
      for (long n : which) {
        if (n < 1 || n > count) continue;
        const std::string what = StrCat(call, " number ", n, " gives ", error);
        if (!Trial(what, {}, [&] { Faults().fail(call.c_str(), n, 0, error); })) return false;
      }
    }
    cold_ = false;
    return true;
  }

  bool OtherFaults() {
    const long enqueues = std::max(CountOf("EnqueueNDRangeKernel"), 4L);
    SessionOptions falls_back;
    falls_back.fallback.on = {FallbackCause::kDeviceLost, FallbackCause::kNoDevice,
                              FallbackCause::kLoadOutOfMemory, FallbackCause::kRunOutOfMemory};
    falls_back.fallback.chain = {"cpu"};
    for (long after : {0L, 1L, enqueues / 2, enqueues - 1}) {
      const auto lose = [&] { Faults().lose_after(after); };
      // It is then unknown whether work on the device is over, so its memory may be leaked.
      may_leave_ = true;
      if (!Trial(StrCat("lost after ", after, " enqueues"), {}, lose)) return false;
      // A run that may fall back must do so and report it; opening may still fail.
      if (!Trial(StrCat("lost after ", after, ", with a fallback"), falls_back, lose, true)) {
        return false;
      }
    }
    may_leave_ = false;
    for (long long limit : {1LL, 1LL << 16, 1LL << 20}) {
      const auto few = [&] { Faults().limit_memory(limit); };
      if (!Trial(StrCat("no more than ", limit, " bytes"), {}, few)) return false;
      if (!Trial(StrCat(limit, " bytes, with a fallback"), falls_back, few, true)) return false;
    }
    if (!Trial("slow", {}, [] { Faults().delay(2000); })) return false;
    return Hang();
  }

  int trials() const { return trials_; }
  int failed_runs() const { return failed_runs_; }

 private:
  using Outputs = std::vector<NamedTensor>;

  RunRequest Request(const Model& model) const {
    RunRequest request;
    for (const TensorInfo& input : model.source().signatures()[0].inputs) {
      Shape shape;
      for (const Dim& dim : input.shape.dims()) {
        shape.push_back(dim.known() ? dim.size : shape.rank() == 0 ? 1 : 32);
      }
      Tensor t = Tensor::Allocate({input.dtype, shape}).value();
      // Arbitrary bytes are valid numbers; floats get magnitudes that do not overflow.
      auto bytes = t.mutable_bytes();
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 5);
      if (input.dtype == DType::kI32 || input.dtype == DType::kI64) {
        // Indices, mostly: within any table.
        const size_t size = static_cast<size_t>(BytesOf(input.dtype));
        for (size_t i = 0; i < bytes.size(); ++i) {
          bytes[i] = static_cast<std::byte>(i % size == 0 ? i / size % 3 : 0);
        }
      }
      if (input.dtype == DType::kF32) {
        auto values = t.MutableAs<float>();
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 9) / 9;
      }
      request.feeds.emplace_back(input.name, std::move(t));
    }
    return request;
  }

  Result<std::shared_ptr<Model>> Load(Session& session) {
    if (path_ == "net") return session.LoadGraph(Net(), "net", {});
    return session.Load(path_, {});
  }

  Result<std::shared_ptr<Session>> Open(SessionOptions options) {
    options.device = "gpu";
    return Session::Create(runtime_, options);
  }

  // Opens, loads, runs, closes. `session` and `model` stay open when they are asked for.
  Result<Outputs> Cycle(const SessionOptions& options, std::shared_ptr<Session>* session,
                        std::shared_ptr<Model>* model = nullptr) {
    ONCILLA_ASSIGN(auto opened, Open(options));
    if (session != nullptr) *session = opened;
    ONCILLA_ASSIGN(auto loaded, Load(*opened));
    if (model != nullptr) *model = loaded;
    ONCILLA_ASSIGN(auto result, loaded->Run(Request(*loaded)));
    return std::move(result.outputs);
  }

  bool Same(const Outputs& got) const {
    if (got.size() != right_.size()) return false;
    for (size_t i = 0; i < got.size(); ++i) {
      const Tensor& a = got[i].second;
      const Tensor& b = right_[i].second;
      if (a.desc() != b.desc()) return false;
      if (a.dtype() == DType::kString) {
        if (a.strings() != b.strings()) return false;
      } else if (a.dtype() == DType::kF32) {
        // The CPU may have computed it.
        for (size_t k = 0; k < a.As<float>().size(); ++k) {
          const float x = a.As<float>()[k], y = b.As<float>()[k];
          if (!(std::fabs(x - y) <= 1e-4f * (1 + std::fabs(y)))) return false;
        }
      } else if (!std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin())) {
        return false;
      }
    }
    return true;
  }

  bool Fail(const std::string& what, std::string_view why) const {
    std::printf("FAIL %s: %s: %s\n", path_.c_str(), what.c_str(), std::string(why).c_str());
    return false;
  }

  void ForgetPrograms() {
    std::error_code ignored;
    if (cold_ || counts_.empty()) std::filesystem::remove_all(cache_, ignored);
  }

  template <class Inject>
  bool Trial(const std::string& what, const SessionOptions& options, const Inject& inject,
             bool must_run = false) {
    alarm(kMostSeconds);
    ++trials_;
    if (cold_) ForgetPrograms();
    const long objects = Faults().live_objects();
    const long long bytes = Faults().live_bytes();
    std::shared_ptr<Session> session;
    std::shared_ptr<Model> model;
    Faults().reset();
    inject();
    const auto got = Cycle(options, &session, &model);
    const auto again_while_ill = must_run && model != nullptr
                                     ? model->Run(Request(*model))
                                     : Result<RunResult>(Internal("not asked for"));
    Faults().reset();
    if (got.ok() && !Same(*got)) return Fail(what, "a wrong answer");
    if (!got.ok()) {
      ++failed_runs_;
      if (Message(got.status()).empty()) return Fail(what, "an error without a word");
      if (must_run && model != nullptr) return Fail(what, Message(got.status()));
    }
    if (must_run && model != nullptr) {
      if (!again_while_ill.ok()) return Fail(what, Message(again_while_ill.status()));
      if (!Same(again_while_ill->outputs)) return Fail(what, "a wrong answer the second time");
    }
    if (model != nullptr) {
      RunRequest request = Request(*model);
      auto well = model->Run(request);
      if (!well.ok() && well.status().code() == Code::kUnavailable) {
        request.device = "cpu";  // the device counts as lost, the session lives on
        well = model->Run(request);
      }
      if (!well.ok()) return Fail(what, StrCat("afterwards: ", Message(well.status())));
      if (!Same(well->outputs)) return Fail(what, "a wrong answer afterwards");
    }
    model.reset();
    if (session != nullptr) session->Close();
    session.reset();
    alarm(0);
    if (may_leave_) return true;
    if (Faults().live_objects() != objects || Faults().live_bytes() != bytes) {
      return Fail(what, StrCat(Faults().live_objects() - objects, " objects and ",
                               Faults().live_bytes() - bytes, " bytes are left"));
    }
    return true;
  }

  // A run on a device that makes no progress must return at its time limit.
  bool Hang() {
    alarm(kMostSeconds);
    auto session = Open({});
    if (!session.ok()) return Fail("hang", Message(session.status()));
    auto model = Load(**session);
    if (!model.ok()) return Fail("hang", Message(model.status()));
    RunRequest request = Request(**model);
    auto before = (*model)->Run(request);
    if (!before.ok()) return Fail("hang", Message(before.status()));
    Faults().hang(1);
    request.timeout = std::chrono::milliseconds(300);
    const auto begin = std::chrono::steady_clock::now();
    const auto hung = (*model)->Run(request);
    const auto took = std::chrono::steady_clock::now() - begin;
    Faults().hang(0);
    if (hung.status().code() != Code::kDeadlineExceeded) {
      return Fail("hang", hung.ok() ? "it ran" : Message(hung.status()));
    }
    if (took > std::chrono::seconds(10)) return Fail("hang", "it came back after 10 s");
    request.timeout = std::chrono::milliseconds(0);
    const auto well = (*model)->Run(request);
    if (!well.ok()) return Fail("hang", StrCat("afterwards: ", Message(well.status())));
    if (!Same(well->outputs)) return Fail("hang", "a wrong answer afterwards");
    (*session)->Close();
    alarm(0);
    return true;
  }

  const std::string path_, cache_;
  std::shared_ptr<Runtime> runtime_;
  Outputs right_;
  std::map<std::string, long> counts_;
  bool cold_ = false, may_leave_ = false;
  int trials_ = 0, failed_runs_ = 0;
};

}  // namespace
}  // namespace oncilla

int main(int argc, char** argv) {
  using namespace oncilla;  // NOLINT: a program
  std::string model;
  bool all = false, cold = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--all") {
      all = true;
    } else if (flag == "--cold") {
      cold = true;
    } else {
      model = flag;
    }
  }
  if (model.empty()) {
    std::fprintf(stderr, "usage: fault_runs MODEL|net [--all] [--cold]\n");
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "oncilla_faults_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  bool passed = false;
  int trials = 0, failed_runs = 0;
  {
    Trials run(model, folder + "/programs");
    passed = run.Prepare() && run.Sweep(all, cold) && run.OtherFaults();
    trials = run.trials();
    failed_runs = run.failed_runs();
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  std::printf("%s: %d trials, %d of which ended in an error: %s\n", model.c_str(), trials,
              failed_runs, passed ? "all clean" : "FAILED");
  std::fflush(stdout);
  // Skips the driver's own cleanup at exit, which faults may have damaged.
  std::_Exit(passed ? 0 : 1);
}
