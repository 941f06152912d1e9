// Authorisation and logging of gRPC calls.
#include "server/grpc/call.h"

namespace oncilla::server {
namespace {

std::string MetadataOf(const grpc::CallbackServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

}  // namespace

GrpcCall::GrpcCall(Service* service, grpc::CallbackServerContext* context, const char* rpc)
    : service_(service), context_(context) {
  record.protocol = "grpc";
  record.method = rpc;
  record.peer = context->peer();
  record.trace = ParseTraceparent(MetadataOf(*context, "traceparent"));
  if (!record.trace.empty()) context->AddInitialMetadata("traceparent", record.trace.Header());
}

absl::Status GrpcCall::Authorize() const {
  if (service_->Allows(MetadataOf(*context_, "authorization"))) return absl::OkStatus();
  return absl::UnauthenticatedError("the call needs the server's bearer token");
}

grpc::Status GrpcCall::Done(const absl::Status& status) {
  record.code = status.code();
  record.time = Clock::now() - begin_;
  FrontCounts& counts = service_->grpc_counts();
  ++counts.codes[static_cast<size_t>(record.code)];
  counts.bytes_in += record.bytes_in;
  counts.bytes_out += record.bytes_out;
  service_->log().Access(record);
  return ToGrpc(status);
}

}  // namespace oncilla::server
