// The paths of the REST form, each with the function that answers it.
#pragma once

#include <httplib.h>

#include <string>
#include <vector>

#include "server/service.h"

namespace oncilla::server {

// A call in progress: the names in its path, its body as sent, and its response.
struct HttpCall {
  Service& service;
  const httplib::Request& request;
  const std::string& body;
  httplib::Response& response;
  std::string model, version;  // or, of shared memory, `model` is the region
  bool packs = false;          // the response may be compressed
};

// Answers the call. NotFound for unknown paths. The caller turns a failure into a response.
absl::Status Answer(const std::string& path, HttpCall& call);
// GET /metrics, on a port of its own: see watch/metrics.h.
absl::Status AnswerMetrics(const std::string& path, HttpCall& call);
// Whether the path may be read without a token: health checks, and the document of the status page,
// which contains no data.
bool IsOpenPath(const std::string& path);

}  // namespace oncilla::server
