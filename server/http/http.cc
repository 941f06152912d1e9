// Passes httplib's requests to the routes, and turns failures into JSON.
#include "server/http/http.h"

#include <zlib.h>

#include <cstring>

#include "server/core/text.h"
#include "server/http/json_replies.h"

namespace oncilla::server {
namespace {

constexpr size_t kLongestPath = 1024;

// Sets the response of a failure. A status that was set before stays.
void Fail(httplib::Response& response, const absl::Status& status) {
  RequestFacts& facts = Connection::Current()->facts;
  facts.record.code = status.code();
  if (response.status < 400) response.status = HttpCodeOf(status.code());
  if (response.status == 429 || response.status == 503) response.set_header("Retry-After", "1");
  response.set_content(Dump(ErrorJson(ForClients(Message(status)))), "application/json");
}

// Unpacks a body that was compressed with gzip or deflate, to at most `most` bytes.
absl::StatusOr<std::string> Unpacked(const std::string& body, size_t most, ByteHold& held) {
  z_stream stream{};
  constexpr int kAnyHeader = 32 + MAX_WBITS;
  if (::inflateInit2(&stream, kAnyHeader) != Z_OK)
    return absl::InternalError("zlib cannot be set up");
  std::string out;
  char buffer[64 << 10];
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  int result = Z_OK;
  absl::Status room;
  while (result == Z_OK && out.size() <= most && room.ok()) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof(buffer);
    result = ::inflate(&stream, Z_NO_FLUSH);
    const size_t more = sizeof(buffer) - stream.avail_out;
    room = held.Grow(more);
    if (room.ok()) out.append(buffer, more);
  }
  const bool whole = result == Z_STREAM_END && stream.avail_in == 0;
  ::inflateEnd(&stream);
  if (!room.ok()) return room;
  if (out.size() > most)
    return absl::ResourceExhaustedError(StrCat("the body expands to more than ", most, " bytes"));
  if (!whole) return absl::InvalidArgumentError("the body is not what its Content-Encoding says");
  return out;
}

}  // namespace

HttpFront::HttpFront(Service* service, ListenerOptions options, HttpAnswer answer,
                     FrontCounts* counts)
    : service_(service),
      answer_(answer),
      counts_(counts),
      max_body_bytes_(std::min<size_t>(options.limits.body_bytes, size_t{1} << 31)),
      listener_(std::move(options), counts, &service->requests_held()) {
  SetUp();
}

void HttpFront::SetUp() {
  const auto handle = [this](const Request& request, Response& response) {
    Handle(request, response);
  };
  listener_.Get("/", handle);
  listener_.Post("/", handle);
  listener_.set_pre_routing_handler([this](const Request& request, Response& response) {
    return RefusedAtHead(request, response) ? httplib::Server::HandlerResponse::Handled
                                            : httplib::Server::HandlerResponse::Unhandled;
  });
  listener_.set_expect_100_continue_handler([this](const Request& request, Response&) {
    const auto length = ParseNumber(request.get_header_value("Content-Length"));
    return length && static_cast<size_t>(*length) > max_body_bytes_ ? 413 : 100;
  });
  // Called for requests that httplib itself refuses because they cannot be read. It is then unknown
  // where the next request begins, so the connection is closed.
  listener_.set_error_handler([this](const Request&, Response& response) {
    Connection* connection = Connection::Current();
    if (connection->facts.handled) return;
    connection->CloseAfterwards();
    if (connection->overran()) response.status = 408;
    if (connection->too_long()) response.status = 413;
    if (connection->crowded()) response.status = 429;
    if (!response.body.empty()) return;
    if (connection->crowded()) return Fail(response, absl::ResourceExhaustedError(kCrowded));
    if (connection->too_long()) return Fail(response, TooLong());
    const bool missing = response.status == 404;
    Fail(response, missing ? absl::NotFoundError("there is no such call")
                           : absl::InvalidArgumentError(
                                 "the request cannot be read, or did not come in time"));
  });
  listener_.set_exception_handler([](const Request&, Response& response, std::exception_ptr) {
    response.status = 500;
    Fail(response, absl::InternalError("the request failed for lack of memory"));
  });
  listener_.set_logger(
      [this](const Request& request, const Response& response) { LogRequest(request, response); });
}

absl::Status HttpFront::TooLong() const {
  return absl::ResourceExhaustedError(StrCat("a request may have ", max_body_bytes_, " bytes"));
}

bool HttpFront::RefusedAtHead(const Request& request, Response& response) {
  Connection* connection = Connection::Current();
  RequestFacts& facts = connection->facts;
  facts.record.trace = ParseTraceparent(request.get_header_value("traceparent"));
  if (!facts.record.trace.empty()) response.set_header("traceparent", facts.record.trace.Header());
  absl::Status refused;
  const auto length = ParseNumber(request.get_header_value("Content-Length"));
  if (facts.path.size() > kLongestPath) {
    response.status = 414;
    refused = absl::InvalidArgumentError("the path is too long");
  } else if (request.has_header("Content-Length") && !length) {
    refused = absl::InvalidArgumentError("Content-Length must be a whole number");
  } else if (request.get_header_value_count("Content-Length") > 1 ||
             (length && request.has_header("Transfer-Encoding"))) {
    refused = absl::InvalidArgumentError("the request gives its length in two ways");
  } else if (length && static_cast<size_t>(*length) > max_body_bytes_) {
    response.status = 413;
    refused = TooLong();
  } else if (!IsOpenPath(facts.path) &&
             !service_->Allows(request.get_header_value("Authorization"))) {
    response.set_header("WWW-Authenticate", "Bearer");
    refused = absl::UnauthenticatedError("the request needs the server's bearer token");
  } else if (!facts.body_encoding.empty() && facts.body_encoding != "identity" &&
             facts.body_encoding != "gzip" && facts.body_encoding != "deflate") {
    response.status = 415;
    refused = absl::UnimplementedError("a body may be compressed with gzip or deflate only");
  } else if (length) {
    refused = facts.held.Grow(static_cast<size_t>(*length));
    // httplib appends to the body piece by piece, which would take up to three times the memory, so
    // the memory is reserved first.
    if (refused.ok()) const_cast<Request&>(request).body.reserve(static_cast<size_t>(*length));
  }
  if (refused.ok()) return false;
  facts.handled = true;
  connection->CloseAfterwards();  // the body is not read
  response.set_header("Connection", "close");
  Fail(response, refused);
  return true;
}

void HttpFront::Handle(const Request& request, Response& response) {
  RequestFacts& facts = Connection::Current()->facts;
  facts.handled = true;
  absl::StatusOr<std::string> unpacked = std::string();
  const bool packed =
      !facts.body_encoding.empty() && facts.body_encoding != "identity" && !request.body.empty();
  if (packed) unpacked = Unpacked(request.body, max_body_bytes_, facts.held);
  if (!unpacked.ok()) return Fail(response, unpacked.status());
  HttpCall call{*service_, request, packed ? *unpacked : request.body, response, "", ""};
  const absl::Status status = answer_(facts.path, call);
  if (!status.ok()) return Fail(response, status);
  response.status = 200;
  // httplib compresses what the request accepts.
  if (call.packs && facts.takes_gzip) {
    const_cast<Request&>(request).set_header("Accept-Encoding", "gzip");
  }
}

void HttpFront::LogRequest(const Request& request, const Response& response) {
  Connection* connection = Connection::Current();
  if (connection == nullptr) return;
  AccessRecord& record = connection->facts.record;
  record.method = request.method;
  record.target = connection->facts.path;
  record.peer = request.remote_addr;
  record.http_status = response.status;
  record.bytes_in = request.body.size();
  record.bytes_out = response.body.size();
  record.time = Clock::now() - connection->facts.begin;
  ++counts_->codes[static_cast<size_t>(record.code)];
  counts_->bytes_in += record.bytes_in;
  counts_->bytes_out += record.bytes_out;
  service_->log().Access(record);
}

}  // namespace oncilla::server
