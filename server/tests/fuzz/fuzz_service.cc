// Writes small models in text form into a temporary folder, and serves them.
#include "server/tests/fuzz/fuzz_service.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "server/core/text.h"

namespace oncilla::server {
namespace {

namespace fs = std::filesystem;

std::string Placeholder(const char* name, const char* type, const char* dims) {
  return StrCat("node { name: '", name,
                "' op: 'Placeholder' attr { key: 'dtype' value { type: ", type,
                " } } attr { key: 'shape' value { shape { ", dims, " } } } }\n");
}

std::string Node(const char* name, const char* op, const char* type,
                 const std::vector<const char*>& inputs) {
  std::string text = StrCat("node { name: '", name, "' op: '", op, "' ");
  for (const char* input : inputs) StrAppend(&text, "input: '", input, "' ");
  return text + StrCat("attr { key: 'T' value { type: ", type, " } } }\n");
}

void Write(const fs::path& model, const std::string& graph, const std::string& config) {
  fs::create_directories(model / "1");
  std::ofstream(model / "1" / "model.pbtxt") << graph;
  std::ofstream(model / "config.yaml") << config;
}

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

Service* Make() {
  const fs::path folder = fs::temp_directory_path() / StrCat("oncilla_fuzz_", ::getpid());
  const char* open = "dim { size: -1 }";
  Write(folder / "affine",
        Placeholder("x", "DT_FLOAT", "dim { size: -1 } dim { size: 3 }") +
            Node("y", "Add", "DT_FLOAT", {"x", "x"}),
        "queue_size: 8\n");
  Write(folder / "words",
        Placeholder("x", "DT_STRING", open) + Node("y", "Identity", "DT_STRING", {"x"}), "");
  Write(folder / "numbers",
        Placeholder("a", "DT_INT32", open) + Placeholder("b", "DT_INT32", open) +
            Node("y", "Mul", "DT_INT32", {"a", "b"}),
        "");
  ServiceOptions options;
  options.repository.folder = folder.string();
  options.repository.device = "cpu";
  options.shared_memory = true;
  options.max_request_bytes = 1 << 20;
  options.max_held_bytes = 2 << 20;
  auto* log = new Log;
  if (!log->Open("off").ok()) Fail("the log cannot be opened");
  RuntimeOptions runtime_options;
  runtime_options.threads = 1;
  auto runtime = Runtime::Create(runtime_options);
  if (!runtime.ok()) Fail(runtime.status().message());
  auto* service = new Service(options, *std::move(runtime), log);
  if (const absl::Status status = service->Start(); !status.ok())
    Fail(std::string(Message(status)));
  while (!service->ready()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (const char* name : {"affine", "words", "numbers"}) {
    if (!service->ModelReady(name, "")) Fail(StrCat(name, " was not loaded"));
  }
  fs::remove_all(folder);  // mapped files stay valid
  return service;
}

}  // namespace

Service& FuzzService() {
  static auto* service = Make();
  return *service;
}

absl::StatusOr<InferResponse> Await(Service& service, InferRequest request) {
  auto outcome = std::make_shared<std::promise<absl::StatusOr<InferResponse>>>();
  auto there = outcome->get_future();
  service.Infer(std::move(request), [outcome](absl::StatusOr<InferResponse> value) {
    outcome->set_value(std::move(value));
  });
  if (there.wait_for(std::chrono::seconds(10)) != std::future_status::ready)
    Fail("a request was never answered");
  return there.get();
}

}  // namespace oncilla::server
