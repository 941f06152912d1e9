// The common part of all gRPC calls: authorization, logging, counting, and the form of failures.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "server/service.h"

namespace oncilla::server {

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), ForClients(Message(status)));
}

// Records a call from its start; Done() logs and counts it, once.
class GrpcCall {
 public:
  GrpcCall(Service* service, grpc::CallbackServerContext* context, const char* rpc);
  // Unauthenticated where the call lacks the server's token.
  absl::Status Authorize() const;
  // Logs the call and returns its status for gRPC.
  grpc::Status Done(const absl::Status& status);

  AccessRecord record;

 private:
  Service* const service_;
  grpc::CallbackServerContext* const context_;
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace oncilla::server
