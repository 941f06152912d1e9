// HttpFront: the REST form of the protocol, on one listener.
#pragma once

#include <memory>

#include "server/http/listener.h"
#include "server/http/routes.h"
#include "server/service.h"

namespace oncilla::server {

// Answers a call, or fails; see routes.h.
using HttpAnswer = absl::Status (*)(const std::string& path, HttpCall& call);

class HttpFront {
 public:
  // `answer`: the protocol (Answer), or the metrics alone (AnswerMetrics).
  HttpFront(Service* service, ListenerOptions options, HttpAnswer answer, FrontCounts* counts);
  absl::Status Start() { return listener_.Start(); }
  void Stop() { listener_.Stop(); }
  int port() const { return listener_.port(); }
  // Answers requests on a connected socket, on this thread; for tests.
  void ServeOn(int socket) { listener_.ServeOn(socket, nullptr); }

 private:
  using Request = httplib::Request;
  using Response = httplib::Response;
  void SetUp();
  // Refuses a request before its body is read; returns true if it did.
  absl::Status TooLong() const;
  bool RefusedAtHead(const Request& request, Response& response);
  void Handle(const Request& request, Response& response);
  void LogRequest(const Request& request, const Response& response);

  Service* const service_;
  const HttpAnswer answer_;
  FrontCounts* const counts_;
  const size_t max_body_bytes_;
  Listener listener_;
};

}  // namespace oncilla::server
