// The command line of oncilla_server.
#pragma once

#include <string>

#include "server/service.h"

namespace oncilla::server {

struct ServerOptions {
  ServiceOptions service;
  std::string host = "127.0.0.1";
  int http_port = 8000, grpc_port = 8001, metrics_port = 8002;  // -1: off; 0: any that is free
  std::string tls_certificate, tls_key;
  std::string access_log = "-";
  uint64_t log_verbose = 0;
  int max_connections = 256;
  int idle_s = 60, request_s = 120;  // of a connection between requests; of a request's arrival
  int drain_delay_s = 0;             // between the end of readiness and the end of service
  int drain_s = 30;                  // that requests under way may take then
  int threads = 0;                   // of the CPU device, shared by all models
  bool opencl_cpu_devices = false;
};

// Parses argv. Where there is nothing to serve (--help, an error, which it prints), returns false
// and sets `exit_code`.
bool ParseOptions(int argc, char** argv, ServerOptions& options, int& exit_code);

}  // namespace oncilla::server
