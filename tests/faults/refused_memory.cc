// Whole models while allocations fail: refused_memory [--all | --positions N | --at N] MODEL...
// The program's own operator new fails at one position while a session is opened, a model loaded,
// run and closed, once or from there on, for synchronous and asynchronous runs. Each time there
// must be a status that says so or the right result, no abort, no leak, and the next run must work.
// If an allocation fails at a node, the failure must name it. --all: at every position of each;
// otherwise at N of them, spread (60), or at one.
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/oncilla.h"

namespace {

std::atomic<int64_t> asked{0}, alive{0};
std::atomic<int64_t> refuse_at{0};  // counted from 1; 0: never
std::atomic<bool> for_good{false};

constexpr int kMostFrames = 64;
void* refused_in[kMostFrames];  // the calls that the first refusal was inside of
int refused_frames = 0;

bool Refused() {
  const int64_t n = ++asked;
  const int64_t at = refuse_at;
  if (at <= 0 || n < at || (!for_good && n > at)) return false;
  if (n == at && refused_frames == 0) refused_frames = backtrace(refused_in, kMostFrames);
  return true;
}

// Whether the failure was within protobuf, parts of which leak when an allocation fails.
bool RefusedInProtobuf() {
  for (int i = 0; i < refused_frames; ++i) {
    Dl_info info{};
    if (dladdr(refused_in[i], &info) == 0 || info.dli_fname == nullptr) continue;
    if (std::strstr(info.dli_fname, "protobuf") != nullptr) return true;
  }
  return false;
}

void* Take(size_t bytes, size_t alignment) noexcept {
  if (Refused()) return nullptr;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(bytes != 0 ? bytes : 1)
                     : std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
  if (memory != nullptr) ++alive;
  return memory;
}
void* TakeOrThrow(size_t bytes, size_t alignment) {
  void* memory = Take(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void Give(void* memory) noexcept {
  if (memory != nullptr) --alive;
  std::free(memory);
}

}  // namespace

void* operator new(size_t n) { return TakeOrThrow(n, 1); }
void* operator new[](size_t n) { return TakeOrThrow(n, 1); }
void* operator new(size_t n, std::align_val_t a) { return TakeOrThrow(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, std::align_val_t a) {
  return TakeOrThrow(n, static_cast<size_t>(a));
}
void* operator new(size_t n, const std::nothrow_t&) noexcept { return Take(n, 1); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return Take(n, 1); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return Take(n, static_cast<size_t>(a));
}
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return Take(n, static_cast<size_t>(a));
}
void operator delete(void* p) noexcept { Give(p); }
void operator delete[](void* p) noexcept { Give(p); }
void operator delete(void* p, size_t) noexcept { Give(p); }
void operator delete[](void* p, size_t) noexcept { Give(p); }
void operator delete(void* p, std::align_val_t) noexcept { Give(p); }
void operator delete[](void* p, std::align_val_t) noexcept { Give(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { Give(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { Give(p); }

namespace {

struct Trial {
  const char* model = nullptr;
  bool async = false, good = false;
  int64_t position = 0;
};

Trial current;  // for whoever asks after a crash

void Tell(const Trial& trial, const char* what) {
  std::fprintf(stderr, "%s, %s, position %lld refused %s: %s\n", trial.model,
               trial.async ? "asynchronous" : "waited for", static_cast<long long>(trial.position),
               trial.good ? "for good" : "once", what);
}

void OnCrash(int signal) {
  refuse_at = 0;
  Tell(current, signal == SIGABRT ? "abort" : "crash");
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

[[noreturn]] void Fail(const Trial& trial, const std::string& what) {
  refuse_at = 0;
  Tell(trial, what.c_str());
  std::exit(1);
}

// The number of failures after one refused allocation, and of those that named a node.
int64_t told = 0, named = 0;

// Checks that a failure, if any, is about refused memory. Frees the status.
void Expect(const Trial& trial, oncilla_status* status, const char* call) {
  if (status == nullptr) return;
  if (!trial.good) {
    ++told;
    named += oncilla_status_node(status)[0] != 0 ? 1 : 0;
  }
  const bool fine = oncilla_status_code(status) == ONCILLA_RESOURCE_EXHAUSTED &&
                    oncilla_status_message(status)[0] != 0;
  if (!fine) {
    refuse_at = 0;
    Fail(trial, std::string(call) + " gave code " + std::to_string(oncilla_status_code(status)) +
                    ": " + oncilla_status_message(status));
  }
  oncilla_status_free(status);
}

// Ones, or words, for each input of the first signature.
class Inputs {
 public:
  explicit Inputs(oncilla_model* model) {
    for (size_t i = 0; i < oncilla_model_input_count(model, 0); ++i) {
      oncilla_tensor_info info{};
      info.size = sizeof(info);
      if (oncilla_model_input(model, 0, i, &info) != nullptr) std::abort();
      std::vector<int64_t> dims;
      int64_t elements = 1;
      for (size_t d = 0; d < info.rank; ++d) {
        dims.push_back(info.dims[d] < 0 ? 2 : info.dims[d]);
        elements *= dims.back();
      }
      oncilla_tensor* tensor = nullptr;
      oncilla_status* made = nullptr;
      if (info.dtype == ONCILLA_STRING) {
        const std::vector<const char*> words(static_cast<size_t>(elements), "word");
        made = oncilla_tensor_create_strings(dims.data(), dims.size(), words.data(), nullptr,
                                             words.size(), &tensor);
      } else {
        const size_t width = info.dtype == ONCILLA_FLOAT32 || info.dtype == ONCILLA_INT32 ? 4
                             : info.dtype == ONCILLA_BOOL || info.dtype == ONCILLA_UINT8  ? 1
                                                                                          : 8;
        std::vector<unsigned char> bytes(static_cast<size_t>(elements) * width, 0);
        made = oncilla_tensor_create(info.dtype, dims.data(), dims.size(), bytes.data(),
                                     bytes.size(), &tensor);
      }
      if (made != nullptr) {
        std::fprintf(stderr, "%s: %s\n", info.name, oncilla_status_message(made));
        std::exit(1);
      }
      names.emplace_back(info.name);
      tensors.push_back(tensor);
    }
    for (const std::string& name : names) texts.push_back(name.c_str());
  }
  ~Inputs() {
    for (oncilla_tensor* tensor : tensors) oncilla_tensor_free(tensor);
  }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  std::vector<std::string> names;
  std::vector<const char*> texts;
  std::vector<oncilla_tensor*> tensors;
};

oncilla_status* RunOnce(oncilla_model* model, const Inputs& in, bool async,
                        oncilla_result** result) {
  const oncilla_tensor* const* tensors = in.tensors.data();
  oncilla_run_options options{};
  options.size = sizeof(options);
  options.signature = oncilla_model_signature_key(model, 0);
  if (!async) {
    return oncilla_model_run(model, in.texts.data(), tensors, in.tensors.size(), &options, result);
  }
  oncilla_run* run = nullptr;
  oncilla_status* status = oncilla_model_run_async(
      model, in.texts.data(), tensors, in.tensors.size(), &options, [](void*) {}, nullptr, &run);
  if (status != nullptr) return status;
  status = oncilla_run_wait(run, 60000, result);
  oncilla_run_free(run);
  return status;
}

std::vector<unsigned char> BytesOf(const oncilla_result* result) {
  std::vector<unsigned char> all;
  for (size_t i = 0; i < oncilla_result_count(result); ++i) {
    const oncilla_tensor* tensor = oncilla_result_tensor(result, i);
    const auto* data = static_cast<const unsigned char*>(oncilla_tensor_data(tensor));
    all.insert(all.end(), data, data + oncilla_tensor_bytes(tensor));
  }
  return all;
}

// Opens, loads, runs and closes, with allocations refused as the trial says; then everything once
// more without refusals. Returns the number of allocations.
int64_t Try(const Trial& trial, oncilla_runtime* runtime, const Inputs& inputs,
            const std::vector<unsigned char>& wanted) {
  oncilla_session* session = nullptr;
  oncilla_model* model = nullptr;
  oncilla_result* result = nullptr;
  oncilla_session_options options{};
  options.size = sizeof(options);
  options.device = "cpu";
  current = trial;
  refused_frames = 0;
  asked = 0;
  for_good = trial.good;
  refuse_at = trial.position;
  Expect(trial, oncilla_session_create(runtime, &options, &session), "oncilla_session_create");
  if (session != nullptr) {
    Expect(trial, oncilla_model_load(session, trial.model, nullptr, &model), "oncilla_model_load");
  }
  if (model != nullptr) {
    Expect(trial, RunOnce(model, inputs, trial.async, &result), "a run");
  }
  oncilla_result_free(result);
  const int64_t count = asked;
  refuse_at = 0;
  if (session == nullptr) {
    Expect(Trial(), oncilla_session_create(runtime, &options, &session), "the next session");
  }
  if (model == nullptr) {
    Expect(Trial(), oncilla_model_load(session, trial.model, nullptr, &model), "the next load");
  }
  // The same model still runs, and one loaded again gives the expected results (some models count
  // their runs, so that the first may not).
  for (const bool anew : {false, true}) {
    if (anew) {
      oncilla_model_free(model);
      Expect(Trial(), oncilla_model_load(session, trial.model, nullptr, &model), "the next load");
    }
    result = nullptr;
    if (oncilla_status* status = RunOnce(model, inputs, trial.async, &result); status != nullptr) {
      Fail(trial, std::string("the next run fails: ") + oncilla_status_message(status));
    }
    if (anew && BytesOf(result) != wanted) Fail(trial, "the next run gives something else");
    oncilla_result_free(result);
  }
  // Closing, with memory refused from the beginning, after the model is freed or before. It always
  // closes.
  const bool before = trial.position % 2 == 1;
  if (!before) oncilla_model_free(model);
  for_good = true;
  refuse_at = trial.good ? 1 : 0;
  asked = 0;
  oncilla_session_free(session);
  refuse_at = 0;
  if (before) {
    result = nullptr;
    oncilla_status* status = RunOnce(model, inputs, trial.async, &result);
    if (status == nullptr || oncilla_status_code(status) != ONCILLA_FAILED_PRECONDITION) {
      Fail(trial, "the model still runs after its session was closed");
    }
    oncilla_status_free(status);
    oncilla_result_free(result);
    oncilla_model_free(model);
  }
  return count;
}

// The number of live allocations beyond `before`. A thread that has reported the end of a run may
// still be freeing what belonged to it.
int64_t AliveAbove(int64_t before) {
  for (int i = 0; i < 200 && alive > before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i < 20 ? 1 : 10));
  }
  return alive - before;
}

void TryAll(const char* path, int64_t positions, int64_t only) {
  Trial trial;
  trial.model = path;
  oncilla_runtime* runtime = nullptr;
  oncilla_runtime_options options{};
  options.size = sizeof(options);
  options.threads = 2;
  Expect(trial, oncilla_runtime_create(&options, &runtime), "oncilla_runtime_create");
  oncilla_session_options cpu{};
  cpu.size = sizeof(cpu);
  cpu.device = "cpu";
  oncilla_session* session = nullptr;
  oncilla_model* model = nullptr;
  oncilla_result* result = nullptr;
  Expect(trial, oncilla_session_create(runtime, &cpu, &session), "oncilla_session_create");
  if (oncilla_status* s = oncilla_model_load(session, path, nullptr, &model); s != nullptr) {
    Fail(trial, oncilla_status_message(s));
  }
  {
    const Inputs inputs(model);
    if (oncilla_status* s = RunOnce(model, inputs, false, &result); s != nullptr) {
      Fail(trial, oncilla_status_message(s));
    }
    const std::vector<unsigned char> wanted = BytesOf(result);
    oncilla_result_free(result);
    oncilla_model_free(model);
    oncilla_session_free(session);
    for (const bool async : {false, true}) {
      trial.async = async;
      trial.good = false;
      trial.position = 0;
      const int64_t all = Try(trial, runtime, inputs, wanted);
      AliveAbove(0);
      int64_t before = alive;
      const int64_t step = positions == 0 ? 1 : std::max<int64_t>(1, all / positions);
      int64_t tried = 0;
      for (const bool good : {false, true}) {
        trial.good = good;
        for (int64_t at = only > 0 ? only : 1; at <= all; at += only > 0 ? all : step) {
          trial.position = at;
          Try(trial, runtime, inputs, wanted);
          ++tried;
          if (const int64_t more = AliveAbove(before); more > 0) {
            if (RefusedInProtobuf() && more <= 2) {
              before += more;
              continue;
            }
            Fail(trial, std::to_string(more) + " allocations are left behind");
          }
        }
      }
      std::printf("%s, %s: %lld positions of %lld, once and for good\n", path,
                  async ? "asynchronous" : "waited for", static_cast<long long>(tried),
                  static_cast<long long>(all));
      std::fflush(stdout);
    }
  }
  oncilla_runtime_free(runtime);
}

}  // namespace

int main(int argc, char** argv) {
  refused_frames = backtrace(refused_in, 1);  // takes memory when it is first called
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS}) std::signal(signal, OnCrash);
  int64_t positions = 60, only = 0;
  std::vector<const char*> models;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--all") == 0) {
      positions = 0;
    } else if (std::strcmp(argv[i], "--positions") == 0 && i + 1 < argc) {
      positions = std::atoll(argv[++i]);
    } else if (std::strcmp(argv[i], "--at") == 0 && i + 1 < argc) {
      only = std::atoll(argv[++i]);
    } else {
      models.push_back(argv[i]);
    }
  }
  if (models.empty()) {
    std::fprintf(stderr, "refused_memory [--all | --positions N | --at N] MODEL...\n");
    return 2;
  }
  for (const char* model : models) TryAll(model, positions, only);
  std::printf("%lld of %lld failures name a node\n", static_cast<long long>(named),
              static_cast<long long>(told));
  // Kernels alone account for a thirtieth of them; importing and planning also name nodes.
  if (only == 0 && named * 12 < told) {
    std::fprintf(stderr, "fewer than one in twelve\n");
    return 1;
  }
  std::puts("refused memory: ok");
}
