// Inference calls as reactors. A reactor lives until both gRPC and the service are done with it.
#include "server/grpc/infer_calls.h"

#include <deque>
#include <mutex>

#include "server/grpc/call.h"
#include "server/grpc/messages.h"

namespace oncilla::server {
namespace {

// The number of requests of a stream that run at the same time. Further ones are read when one is
// answered.
constexpr size_t kMostOfStream = 64;

Clock::time_point DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  constexpr auto kFar = std::chrono::hours(24 * 365);
  return left > kFar ? kNever : Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
}

// A request that may be cancelled before Infer has returned.
class Cancellable {
 public:
  void Set(PendingInfer pending) {
    std::unique_lock lock(mutex_);
    pending_ = std::move(pending);
    if (!cancelled_) return;
    lock.unlock();
    pending_.Cancel();
  }
  void Cancel() {
    std::unique_lock lock(mutex_);
    cancelled_ = true;
    const PendingInfer pending = pending_;
    lock.unlock();
    pending.Cancel();
  }

 private:
  std::mutex mutex_;
  PendingInfer pending_;
  bool cancelled_ = false;
};

class InferCall : public grpc::ServerUnaryReactor {
 public:
  static InferCall* Start(Service* service, grpc::CallbackServerContext* context,
                          const inference::ModelInferRequest* request,
                          inference::ModelInferResponse* response) {
    const std::shared_ptr<InferCall> call(new InferCall(service, context));
    call->self_ = call;
    call->Run(service, context, request, response);
    return call.get();
  }

  void OnCancel() override { pending_.Cancel(); }
  void OnDone() override { self_.reset(); }

 private:
  InferCall(Service* service, grpc::CallbackServerContext* context)
      : call_(service, context, "ModelInfer"), held_(&service->requests_held()) {}

  void Run(Service* service, grpc::CallbackServerContext* context,
           const inference::ModelInferRequest* message, inference::ModelInferResponse* response) {
    const std::shared_ptr<InferCall> self = self_;  // Finish may already be followed by OnDone
    call_.record.model = message->model_name();
    call_.record.id = message->id();
    call_.record.bytes_in = message->ByteSizeLong();
    absl::Status allowed = call_.Authorize();
    if (allowed.ok()) allowed = held_.Grow(call_.record.bytes_in);
    auto request = allowed.ok() ? FromMessage(*message, service->shared_memory()) : allowed;
    if (!request.ok()) return Finish(call_.Done(request.status()));
    request->deadline = std::min(request->deadline, DeadlineOf(*context));
    pending_.Set(service->Infer(*std::move(request),
                                [self, response](absl::StatusOr<InferResponse> outcome) {
                                  if (outcome.ok()) {
                                    ToMessage(*outcome, response);
                                    self->call_.record.Take(*outcome);
                                    self->call_.record.bytes_out = response->ByteSizeLong();
                                  }
                                  self->Finish(self->call_.Done(outcome.status()));
                                }));
  }

  GrpcCall call_;
  ByteHold held_;
  Cancellable pending_;
  std::shared_ptr<InferCall> self_;
};

class StreamCall : public grpc::ServerBidiReactor<inference::ModelInferRequest,
                                                  inference::ModelStreamInferResponse> {
 public:
  static StreamCall* Start(Service* service, grpc::CallbackServerContext* context) {
    const std::shared_ptr<StreamCall> call(new StreamCall(service, context));
    call->self_ = call;
    const absl::Status allowed = call->call_.Authorize();
    if (allowed.ok()) {
      call->StartRead(&call->message_);
    } else {
      call->finished_ = true;
      call->Finish(call->call_.Done(allowed));
    }
    return call.get();
  }

  void OnReadDone(bool ok) override {
    if (ok) Infer();
    {
      // Reading is allowed only from here on: until now the message is in use, and an answer that
      // arrives must not read the next request into it.
      const std::lock_guard lock(mutex_);
      reading_ = false;
      read_all_ |= !ok;
    }
    Advance();
  }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      answers_.pop_front();
      broken_ |= !ok;
    }
    Advance();
  }

  void OnCancel() override {
    std::deque<std::shared_ptr<Answer>> answers;
    {
      const std::lock_guard lock(mutex_);
      broken_ = true;
      answers = answers_;
    }
    for (const auto& answer : answers) answer->pending.Cancel();
    Advance();
  }

  void OnDone() override { self_.reset(); }

 private:
  struct Answer {
    inference::ModelStreamInferResponse message;
    bool ready = false;
    Cancellable pending;
    ByteHold held;  // of the request
  };

  StreamCall(Service* service, grpc::CallbackServerContext* context)
      : service_(service), context_(context), call_(service, context, "ModelStreamInfer") {}

  // Starts the request that was just read.
  void Infer() {
    const auto answer = std::make_shared<Answer>();
    {
      const std::lock_guard lock(mutex_);
      answers_.push_back(answer);
    }
    const size_t bytes = message_.ByteSizeLong();
    call_.record.bytes_in += bytes;
    answer->held = ByteHold(&service_->requests_held());
    const absl::Status room = answer->held.Grow(bytes);
    auto request = room.ok() ? FromMessage(message_, service_->shared_memory()) : room;
    const std::string id = message_.id();
    if (!request.ok()) return Ready(answer, id, request.status());
    request->deadline = std::min(request->deadline, DeadlineOf(*context_));
    answer->pending.Set(
        service_->Infer(*std::move(request), [self = self_, answer, id](auto outcome) {
          self->Ready(answer, id, std::move(outcome));
          self->Advance();
        }));
  }

  void Ready(const std::shared_ptr<Answer>& answer, const std::string& id,
             absl::StatusOr<InferResponse> outcome) {
    auto* response = answer->message.mutable_infer_response();
    if (outcome.ok()) {
      ToMessage(*outcome, response);
    } else {
      answer->message.set_error_message(ForClients(Message(outcome.status())));
      response->set_id(id);
    }
    // Each request has one answer. Clients that set this parameter want to know that it is the
    // last.
    (*response->mutable_parameters())["triton_final_response"].set_bool_param(true);
    const std::lock_guard lock(mutex_);
    call_.record.bytes_out += answer->message.ByteSizeLong();
    answer->ready = true;
  }

  // Takes all steps that are now possible: writes the first answer, reads on, or ends.
  void Advance() {
    bool finish = false;
    {
      const std::lock_guard lock(mutex_);
      if (finished_) return;
      if (!writing_ && !broken_ && !answers_.empty() && answers_.front()->ready) {
        writing_ = true;
        StartWrite(&answers_.front()->message);
      }
      if (!reading_ && !read_all_ && !broken_ && answers_.size() < kMostOfStream) {
        reading_ = true;
        StartRead(&message_);
      }
      finish = !finished_ && !writing_ && (broken_ || (read_all_ && answers_.empty()));
      finished_ |= finish;
    }
    if (finish)
      Finish(call_.Done(broken_ ? absl::CancelledError("the client went away") : absl::OkStatus()));
  }

  Service* const service_;
  grpc::CallbackServerContext* const context_;
  GrpcCall call_;
  inference::ModelInferRequest message_;
  // Held while an operation is started, so that none is started after Finish. It is recursive
  // because gRPC may call back during the call.
  std::recursive_mutex mutex_;
  std::deque<std::shared_ptr<Answer>> answers_;
  bool reading_ = true, read_all_ = false, writing_ = false, broken_ = false, finished_ = false;
  std::shared_ptr<StreamCall> self_;
};

}  // namespace

grpc::ServerUnaryReactor* StartInfer(Service* service, grpc::CallbackServerContext* context,
                                     const inference::ModelInferRequest* request,
                                     inference::ModelInferResponse* response) {
  return InferCall::Start(service, context, request, response);
}

grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
StartStream(Service* service, grpc::CallbackServerContext* context) {
  return StreamCall::Start(service, context);
}

}  // namespace oncilla::server
