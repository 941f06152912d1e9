// The gRPC calls of the protocol, and the server that receives them.
#include "server/grpc/grpc.h"

#include <inference.grpc.pb.h>

#include <fstream>
#include <iterator>

#include "server/core/parameters.h"
#include "server/core/text.h"
#include "server/grpc/call.h"
#include "server/grpc/infer_calls.h"
#include "server/grpc/messages.h"

namespace oncilla::server {
namespace {

using Core = oncilla::server::Service;  // the base class has a Service of its own
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

class Calls final : public inference::GRPCInferenceService::CallbackService {
 public:
  explicit Calls(Core* service) : service_(service) {}

  // Probes of liveness have no token.
  ServerUnaryReactor* ServerLive(CallbackServerContext* context,
                                 const inference::ServerLiveRequest*,
                                 inference::ServerLiveResponse* response) override {
    response->set_live(true);
    return Reply(context, "ServerLive", false, [] { return absl::OkStatus(); });
  }
  ServerUnaryReactor* ServerReady(CallbackServerContext* context,
                                  const inference::ServerReadyRequest*,
                                  inference::ServerReadyResponse* response) override {
    response->set_ready(service_->ready());
    return Reply(context, "ServerReady", false, [] { return absl::OkStatus(); });
  }
  ServerUnaryReactor* ModelReady(CallbackServerContext* context,
                                 const inference::ModelReadyRequest* request,
                                 inference::ModelReadyResponse* response) override {
    return Reply(context, "ModelReady", true, [&] {
      response->set_ready(service_->ModelReady(request->name(), request->version()));
      return absl::OkStatus();
    });
  }
  ServerUnaryReactor* ServerMetadata(CallbackServerContext* context,
                                     const inference::ServerMetadataRequest*,
                                     inference::ServerMetadataResponse* response) override {
    return Reply(context, "ServerMetadata", true, [&] {
      response->set_name("oncilla");
      response->set_version(Version());
      for (const std::string& extension : Core::Extensions()) response->add_extensions(extension);
      return absl::OkStatus();
    });
  }
  ServerUnaryReactor* ModelMetadata(CallbackServerContext* context,
                                    const inference::ModelMetadataRequest* request,
                                    inference::ModelMetadataResponse* response) override {
    return Reply(context, "ModelMetadata", true, [&] {
      return Put(service_->Metadata(request->name(), request->version()), response);
    });
  }
  ServerUnaryReactor* ModelConfig(CallbackServerContext* context,
                                  const inference::ModelConfigRequest* request,
                                  inference::ModelConfigResponse* response) override {
    return Reply(context, "ModelConfig", true, [&] {
      return Put(service_->Describe(request->name(), request->version()), response);
    });
  }
  ServerUnaryReactor* TraceSetting(CallbackServerContext* context,
                                   const inference::TraceSettingRequest* request,
                                   inference::TraceSettingResponse* response) override {
    return Reply(context, "TraceSetting", true, [&] {
      return Put(service_->Tracing(request->model_name(), FromMessage(*request)), response);
    });
  }
  ServerUnaryReactor* LogSettings(CallbackServerContext* context,
                                  const inference::LogSettingsRequest* request,
                                  inference::LogSettingsResponse* response) override {
    return Reply(context, "LogSettings", true,
                 [&] { return Put(service_->Logging(FromMessage(*request)), response); });
  }
  ServerUnaryReactor* ModelInfer(CallbackServerContext* context,
                                 const inference::ModelInferRequest* request,
                                 inference::ModelInferResponse* response) override {
    return StartInfer(service_, context, request, response);
  }
  grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
  ModelStreamInfer(CallbackServerContext* context) override {
    return StartStream(service_, context);
  }
  ServerUnaryReactor* ModelStatistics(CallbackServerContext* context,
                                      const inference::ModelStatisticsRequest* request,
                                      inference::ModelStatisticsResponse* response) override {
    return Reply(context, "ModelStatistics", true, [&] {
      return Put(service_->StatisticsOf(request->name(), request->version()), response);
    });
  }
  ServerUnaryReactor* RepositoryIndex(CallbackServerContext* context,
                                      const inference::RepositoryIndexRequest* request,
                                      inference::RepositoryIndexResponse* response) override {
    return Reply(context, "RepositoryIndex", true, [&] {
      ToMessage(service_->Index(request->ready()), response);
      return absl::OkStatus();
    });
  }
  ServerUnaryReactor* RepositoryModelLoad(CallbackServerContext* context,
                                          const inference::RepositoryModelLoadRequest* request,
                                          inference::RepositoryModelLoadResponse*) override {
    const auto call = std::make_shared<GrpcCall>(service_, context, "RepositoryModelLoad");
    call->record.model = request->model_name();
    ServerUnaryReactor* reactor = context->DefaultReactor();
    call->record.bytes_in = request->ByteSizeLong();
    const auto held = std::make_shared<ByteHold>(&service_->requests_held());
    absl::Status status = call->Authorize();
    if (status.ok()) status = held->Grow(call->record.bytes_in);
    auto load = status.ok() ? FromMessage(*request, &service_->requests_held())
                            : absl::StatusOr<LoadRequest>(status);
    if (!load.ok()) {
      reactor->Finish(call->Done(load.status()));
      return reactor;
    }
    service_->Load(
        request->model_name(), *std::move(load),
        [call, held, reactor](const absl::Status& loaded) { reactor->Finish(call->Done(loaded)); });
    return reactor;
  }
  ServerUnaryReactor* RepositoryModelUnload(CallbackServerContext* context,
                                            const inference::RepositoryModelUnloadRequest* request,
                                            inference::RepositoryModelUnloadResponse*) override {
    return Reply(context, "RepositoryModelUnload", true,
                 [&] { return service_->Unload(request->model_name()); });
  }
  ServerUnaryReactor* SystemSharedMemoryStatus(
      CallbackServerContext* context, const inference::SystemSharedMemoryStatusRequest* request,
      inference::SystemSharedMemoryStatusResponse* response) override {
    return Reply(context, "SystemSharedMemoryStatus", true,
                 [&] { return Put(service_->shared_memory().Regions(request->name()), response); });
  }
  ServerUnaryReactor* SystemSharedMemoryRegister(
      CallbackServerContext* context, const inference::SystemSharedMemoryRegisterRequest* request,
      inference::SystemSharedMemoryRegisterResponse*) override {
    return Reply(context, "SystemSharedMemoryRegister", true, [&] {
      return service_->shared_memory().Register(
          {request->name(), request->key(), request->offset(), request->byte_size()});
    });
  }
  ServerUnaryReactor* SystemSharedMemoryUnregister(
      CallbackServerContext* context, const inference::SystemSharedMemoryUnregisterRequest* request,
      inference::SystemSharedMemoryUnregisterResponse*) override {
    return Reply(context, "SystemSharedMemoryUnregister", true, [&] {
      service_->shared_memory().Unregister(request->name());
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* CudaSharedMemoryStatus(CallbackServerContext* context,
                                             const inference::CudaSharedMemoryStatusRequest*,
                                             inference::CudaSharedMemoryStatusResponse*) override {
    return Reply(context, "CudaSharedMemoryStatus", true, [] { return absl::OkStatus(); });
  }
  ServerUnaryReactor* CudaSharedMemoryRegister(
      CallbackServerContext* context, const inference::CudaSharedMemoryRegisterRequest*,
      inference::CudaSharedMemoryRegisterResponse*) override {
    return Reply(context, "CudaSharedMemoryRegister", true, [] { return NoCuda(); });
  }
  ServerUnaryReactor* CudaSharedMemoryUnregister(
      CallbackServerContext* context, const inference::CudaSharedMemoryUnregisterRequest*,
      inference::CudaSharedMemoryUnregisterResponse*) override {
    return Reply(context, "CudaSharedMemoryUnregister", true, [] { return absl::OkStatus(); });
  }

 private:
  // Completes a call at once.
  template <class Answer>
  ServerUnaryReactor* Reply(CallbackServerContext* context, const char* rpc, bool needs_token,
                            const Answer& answer) {
    GrpcCall call(service_, context, rpc);
    absl::Status status = needs_token ? call.Authorize() : absl::OkStatus();
    if (status.ok()) status = answer();
    ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(call.Done(status));
    return reactor;
  }
  template <class Value, class Reply>
  static absl::Status Put(const absl::StatusOr<Value>& value, Reply* response) {
    if (value.ok()) ToMessage(*value, response);
    return value.status();
  }

  Core* const service_;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const GrpcOptions& options) {
  if (options.tls_certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({ReadFile(options.tls_key), ReadFile(options.tls_certificate)});
  return grpc::SslServerCredentials(tls);
}

}  // namespace

struct GrpcFront::State {
  State(Service* service, GrpcOptions options)
      : service(service), options(std::move(options)), calls(service) {}
  Service* const service;
  const GrpcOptions options;
  Calls calls;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

GrpcFront::GrpcFront(Service* service, GrpcOptions options)
    : state_(std::make_unique<State>(service, std::move(options))) {}

GrpcFront::~GrpcFront() { Stop(std::chrono::system_clock::now()); }

absl::Status GrpcFront::Start() {
  constexpr int kMostStreams = 256;  // calls at the same time on a connection
  const bool v6 = state_->options.host.find(':') != std::string::npos;
  const std::string host = v6 ? StrCat("[", state_->options.host, "]") : state_->options.host;
  const std::string address = StrCat(host, ":", state_->options.port);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, CredentialsOf(state_->options), &state_->port);
  builder.RegisterService(&state_->calls);
  builder.SetMaxReceiveMessageSize(static_cast<int>(state_->service->options().max_request_bytes));
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Detects clients that disappeared without closing, so that their calls are cancelled.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  // Closes connections that have made no call for this long. Clients open them again when they need
  // them.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             static_cast<int>(state_->options.idle.count()));
  // The bound on what gRPC buffers before calls reach the service, which refuses single requests
  // itself. When gRPC runs short of its quota, it closes connections with all calls on them, and it
  // counts both the bytes that it has read and the messages parsed from them. The quota is
  // therefore only an outer bound, which only many senders at once come close to.
  constexpr size_t kRoomToRead = 64 << 20;
  builder.SetResourceQuota(
      grpc::ResourceQuota("requests")
          .Resize(2 * static_cast<size_t>(state_->service->options().max_held_bytes) +
                  kRoomToRead));
  // Clients that ping to keep a connection open must not be treated as an attack.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  state_->server = builder.BuildAndStart();
  if (state_->server == nullptr || state_->port <= 0) {
    return absl::UnavailableError(
        StrCat("cannot listen on ", address,
               " for gRPC: the port is taken, the address is not this machine's, or the "
               "certificate cannot be used"));
  }
  return absl::OkStatus();
}

int GrpcFront::port() const { return state_->port; }

void GrpcFront::Stop(std::chrono::system_clock::time_point deadline) {
  if (state_->server == nullptr) return;
  state_->server->Shutdown(deadline);
  state_->server->Wait();
  state_->server = nullptr;
}

}  // namespace oncilla::server
