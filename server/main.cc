// oncilla_server: starts the service and its front ends, and ends them in order on SIGTERM and
// SIGINT.
#include <malloc.h>
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "server/core/text.h"
#include "server/grpc/grpc.h"
#include "server/http/http.h"
#include "server/options.h"
#include "server/service.h"

namespace oncilla::server {
namespace {

constexpr int kExitFailed = 1;
constexpr auto kSampleEvery = std::chrono::seconds(5);

// Only the main thread receives signals, by waiting for them.
sigset_t BlockSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// Whether one of the signals arrives within the time.
bool Signalled(const sigset_t& signals, std::chrono::milliseconds time) {
  const timespec wait{static_cast<time_t>(time.count() / 1000),
                      static_cast<long>(time.count() % 1000) * 1'000'000};
  return ::sigtimedwait(&signals, nullptr, &wait) > 0;
}

ListenerOptions ListenerFor(const ServerOptions& options, int port) {
  ListenerOptions listener;
  listener.host = options.host;
  listener.port = port;
  listener.max_connections = static_cast<size_t>(options.max_connections);
  listener.limits.idle = std::chrono::seconds(options.idle_s);
  listener.limits.body = std::chrono::seconds(options.request_s);
  listener.limits.body_bytes = options.service.max_request_bytes;
  listener.tls_certificate = options.tls_certificate;
  listener.tls_key = options.tls_key;
  return listener;
}

// Removes the locations of files on this machine from messages to clients.
void HidePaths(const ServerOptions& options) {
  std::error_code error;
  const std::filesystem::path folder = options.service.repository.folder;
  for (const auto& path :
       {folder, std::filesystem::absolute(folder, error), std::filesystem::canonical(folder, error),
        std::filesystem::temp_directory_path(error), std::filesystem::current_path(error)}) {
    HidePath(path.string());
  }
  if (const char* home = std::getenv("HOME")) HidePath(home);
}

class Server {
 public:
  Server(const ServerOptions& options, Runtime runtime, Log* log)
      : options_(options), log_(log), service_(options.service, std::move(runtime), log) {}

  absl::Status Start() {
    absl::Status status = service_.Start();
    if (status.ok() && options_.http_port >= 0) {
      http_ = std::make_unique<HttpFront>(&service_, ListenerFor(options_, options_.http_port),
                                          Answer, &service_.http_counts());
      status = http_->Start();
      if (status.ok()) Listening("http", http_->port());
    }
    if (status.ok() && options_.grpc_port >= 0) {
      grpc_ = std::make_unique<GrpcFront>(
          &service_, GrpcOptions{options_.host, options_.grpc_port, options_.tls_certificate,
                                 options_.tls_key, std::chrono::seconds(options_.idle_s)});
      status = grpc_->Start();
      if (status.ok()) Listening("grpc", grpc_->port());
    }
    if (status.ok() && options_.metrics_port >= 0) {
      metrics_ =
          std::make_unique<HttpFront>(&service_, ListenerFor(options_, options_.metrics_port),
                                      AnswerMetrics, &service_.metrics_counts());
      status = metrics_->Start();
      if (status.ok()) Listening("metrics", metrics_->port());
    }
    return status;
  }

  // Serves until a signal arrives.
  void Serve(const sigset_t& signals) {
    do {
      service_.SampleMemory();
    } while (!Signalled(signals, kSampleEvery));
  }

  // Waits for requests under way. A second signal ends this early.
  void Drain(const sigset_t& signals) {
    log_->Event("draining", "", "", "");
    service_.BeginDrain();
    Signalled(signals, std::chrono::seconds(options_.drain_delay_s));
    service_.Close(Clock::now() + std::chrono::seconds(options_.drain_s));
    if (grpc_ != nullptr) grpc_->Stop(std::chrono::system_clock::now() + std::chrono::seconds(1));
    if (http_ != nullptr) http_->Stop();
    if (metrics_ != nullptr) metrics_->Stop();
    log_->Event("ended", "", "", "");
  }

 private:
  void Listening(const char* what, int port) {
    log_->Event("listening", "", "", StrCat(what, " on ", options_.host, ":", port));
  }

  const ServerOptions options_;
  Log* const log_;
  Service service_;
  std::unique_ptr<HttpFront> http_, metrics_;
  std::unique_ptr<GrpcFront> grpc_;
};

int Fail(const std::string& message) {
  std::fprintf(stderr, "oncilla serve: %s\n", message.c_str());
  return kExitFailed;
}

int Main(int argc, char** argv) {
  ServerOptions options;
  int exit_code = 0;
  if (!ParseOptions(argc, argv, options, exit_code)) return exit_code;
  const sigset_t signals = BlockSignals();
  ::mallopt(M_ARENA_MAX,
            4);  // an arena per connection thread would keep memory of large requests
  HidePaths(options);
  Log log(options.log_verbose);
  absl::Status status = log.Open(options.access_log);
  if (!status.ok()) return Fail(std::string(Message(status)));
  RuntimeOptions runtime_options;
  runtime_options.threads = options.threads;
  runtime_options.opencl_cpu_devices = options.opencl_cpu_devices;
  runtime_options.log = [&log](oncilla_log_level level, const std::string& message) {
    log.Engine(level, message);
  };
  runtime_options.log_level = ONCILLA_LOG_DEBUG;  // the log's settings filter
  auto runtime = Runtime::Create(runtime_options);
  if (!runtime.ok()) return Fail(runtime.status().message());
  Server server(options, *std::move(runtime), &log);
  status = server.Start();
  if (!status.ok()) return Fail(std::string(Message(status)));
  server.Serve(signals);
  server.Drain(signals);
  return 0;
}

}  // namespace
}  // namespace oncilla::server

int main(int argc, char** argv) { return oncilla::server::Main(argc, argv); }
