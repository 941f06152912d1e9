// GrpcFront: the gRPC form of the protocol, on one port. Built on gRPC's callbacks: no thread waits
// for a result.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/service.h"

namespace oncilla::server {

struct GrpcOptions {
  std::string host = "127.0.0.1";
  int port = 0;                            // 0: any that is free
  std::string tls_certificate, tls_key;    // PEM files; empty: no TLS
  std::chrono::milliseconds idle{60'000};  // that a connection may make no call
};

class GrpcFront {
 public:
  GrpcFront(Service* service, GrpcOptions options);
  ~GrpcFront();

  absl::Status Start();
  int port() const;
  // Accepts no further calls; those in progress are cancelled at `deadline`.
  void Stop(std::chrono::system_clock::time_point deadline);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace oncilla::server
