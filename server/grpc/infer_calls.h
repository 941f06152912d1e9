// The two calls that infer: one request, and a stream of them.
#pragma once

#include <inference.grpc.pb.h>

#include "server/service.h"

namespace oncilla::server {

grpc::ServerUnaryReactor* StartInfer(Service* service, grpc::CallbackServerContext* context,
                                     const inference::ModelInferRequest* request,
                                     inference::ModelInferResponse* response);

// Requests of a stream run side by side, up to a bound; their answers come in the order of the
// requests.
grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
StartStream(Service* service, grpc::CallbackServerContext* context);

}  // namespace oncilla::server
