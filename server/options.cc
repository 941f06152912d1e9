// Reads and checks the flags of the command line.
#include "server/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <oncilla/oncilla.hpp>
#include <thread>

namespace oncilla::server {
namespace {

constexpr int kExitUsage = 2;

// A port, or "off".
void AddPort(CLI::App& app, const std::string& name, int* port, const std::string& what) {
  app.add_option_function<std::string>(
         name,
         [port, name](const std::string& text) {
           if (text == "off") {
             *port = -1;
             return;
           }
           char* end = nullptr;
           const long value = std::strtol(text.c_str(), &end, 10);
           if (text.empty() || *end != 0 || value < 0 || value > 65535) {
             throw CLI::ValidationError(name, "must be a port from 0 to 65535, or off");
           }
           *port = static_cast<int>(value);
         },
         what)
      ->type_name("PORT|off");
}

// The token is read from a file, so that it does not appear in lists of processes.
void ReadToken(const std::string& path, std::string* token) {
  std::ifstream file(path);
  std::getline(file, *token);
  while (!token->empty() && (token->back() == '\r' || token->back() == ' ')) token->pop_back();
  if (!file || token->size() < 8)
    throw CLI::ValidationError("--token-file", "must be a file with 8 characters or more");
}

void AddFlags(CLI::App& app, ServerOptions& o) {
  ServiceOptions& s = o.service;
  // A part of loading uses only one thread. More loads at once would take memory and save little
  // time.
  s.repository.load_threads =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 4);
  app.add_option("MODEL_REPOSITORY", s.repository.folder,
                 "A folder of models: NAME/VERSION/model..")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--host", o.host, "The address to listen on; 0.0.0.0 for all")
      ->capture_default_str();
  AddPort(app, "--http", &o.http_port, "REST and the status page (8000); 0: any that is free");
  AddPort(app, "--grpc", &o.grpc_port, "gRPC (8001)");
  AddPort(app, "--metrics", &o.metrics_port, "Prometheus' metrics (8002)");
  app.add_option("--device", s.repository.device,
                 "Where models run whose config.yaml names no device")
      ->capture_default_str();
  app.add_option("--threads", o.threads, "Threads of the CPU device; 0: all processors")
      ->check(CLI::Range(0, 4096));
  app.add_flag("--opencl-cpu-devices", o.opencl_cpu_devices,
               "List OpenCL devices of type CPU as GPUs, for tests");
  app.add_option_function<int>(
         "--poll", [&s](const int& v) { s.repository.poll = std::chrono::seconds(v); },
         "Look for new and changed models every so many seconds")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 86400));
  app.add_flag_callback(
      "--no-load", [&s] { s.repository.load_at_start = false; }, "Load models on request only");
  app.add_flag("--shared-memory", s.shared_memory,
               "Let clients name POSIX shared memory: to the server's user's regions, for clients "
               "you trust");
  app.add_option_function<int64_t>(
         "--load-files",
         [&s](const int64_t& v) { s.repository.load_files_bytes = static_cast<size_t>(v) << 20; },
         "Let clients send models' files in load requests, so many MiB for all models: for clients "
         "you trust")
      ->type_name("MIB")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  app.add_option_function<std::string>(
      "--token-file", [&s](const std::string& v) { ReadToken(v, &s.token); },
      "Clients must send the token in this file's first line");
  auto* cert = app.add_option("--tls-cert", o.tls_certificate,
                              "TLS on all ports, with this certificate chain (PEM)")
                   ->check(CLI::ExistingFile);
  auto* key =
      app.add_option("--tls-key", o.tls_key, "and this key (PEM)")->check(CLI::ExistingFile);
  cert->needs(key);
  key->needs(cert);
  app.add_option_function<int64_t>(
         "--max-request-mib",
         [&s](const int64_t& v) { s.max_request_bytes = static_cast<size_t>(v) << 20; },
         "The largest request (256)")
      ->check(CLI::Range(1, 2047));
  app.add_option_function<int64_t>(
         "--max-held-mib",
         [&s](const int64_t& v) { s.max_held_bytes = static_cast<size_t>(v) << 20; },
         "What requests may hold together until they are answered (1024, or two of the largest)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  app.add_option("--load-threads", s.repository.load_threads, "Models loaded at the same time")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--max-connections", o.max_connections, "HTTP connections at the same time")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--idle", o.idle_s, "Seconds that a connection may idle")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  app.add_option("--request-time", o.request_s, "Seconds that a request's body may take to arrive")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  app.add_option("--drain", o.drain_s, "Seconds that requests under way may take after SIGTERM")
      ->capture_default_str()
      ->check(CLI::Range(0, 86400));
  app.add_option("--drain-delay", o.drain_delay_s,
                 "Seconds of further service, not ready, before that")
      ->capture_default_str()
      ->check(CLI::Range(0, 86400));
  app.add_option("--access-log", o.access_log, "- (standard error), off, or a file")
      ->capture_default_str();
  app.add_option("--log-verbose", o.log_verbose,
                 "1: events tell what the engine does, too; clients may change it")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
}

}  // namespace

bool ParseOptions(int argc, char** argv, ServerOptions& options, int& exit_code) {
  CLI::App app("Serves models by the Open Inference Protocol: REST, gRPC, Prometheus' metrics.",
               "oncilla serve");
  app.set_version_flag("--version", "oncilla_server " + Version());
  app.footer("How a repository lies on disk, config.yaml, limits, security: docs/serving.md");
  AddFlags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    exit_code = app.exit(success);
    return false;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "oncilla serve: %s\n", error.what());
    exit_code = kExitUsage;
    return false;
  }
  options.service.repository.drain = std::chrono::seconds(options.drain_s);
  ServiceOptions& service = options.service;
  if (service.max_held_bytes == 0) {
    service.max_held_bytes = std::max<size_t>(size_t{1} << 30, 2 * service.max_request_bytes);
  }
  if (service.max_held_bytes < service.max_request_bytes) {
    std::fprintf(stderr, "oncilla serve: --max-held-mib must be at least --max-request-mib\n");
    exit_code = kExitUsage;
    return false;
  }
  if (options.http_port < 0 && options.grpc_port < 0) {
    std::fprintf(stderr, "oncilla serve: one of --http and --grpc must be on\n");
    exit_code = kExitUsage;
    return false;
  }
  return true;
}

}  // namespace oncilla::server
