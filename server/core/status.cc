// HTTP codes of failures, and the texts of failures without private facts.
#include "server/core/status.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "server/core/text.h"

namespace oncilla::server {
namespace {

constexpr size_t kLongestMessage = 4096;

struct HttpRow {
  absl::StatusCode code;
  int http;
};

constexpr HttpRow kHttpCodes[] = {
    {absl::StatusCode::kOk, 200},
    {absl::StatusCode::kCancelled, 499},  // the client has disconnected; only the log shows it
    {absl::StatusCode::kInvalidArgument, 400},
    {absl::StatusCode::kDeadlineExceeded, 504},
    {absl::StatusCode::kNotFound, 404},
    {absl::StatusCode::kAlreadyExists, 409},
    {absl::StatusCode::kPermissionDenied, 403},
    {absl::StatusCode::kResourceExhausted, 429},
    {absl::StatusCode::kFailedPrecondition, 409},
    {absl::StatusCode::kAborted, 409},
    {absl::StatusCode::kOutOfRange, 400},
    {absl::StatusCode::kUnimplemented, 501},
    {absl::StatusCode::kUnavailable, 503},
    {absl::StatusCode::kUnauthenticated, 401},
};

// Text that ForClients removes, the longest first.
std::vector<std::string>& Hidden() {
  static auto* hidden = new std::vector<std::string>;  // lives as long as any thread
  return *hidden;
}

void ReplaceAll(std::string& text, const std::string& what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

const std::string& HostName() {
  static const auto* name = [] {
    char text[256] = {};
    if (::gethostname(text, sizeof(text) - 1) != 0) text[0] = 0;
    return new std::string(text);
  }();
  return *name;
}

}  // namespace

absl::Status FromEngine(const oncilla::Status& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.code());
  if (what.empty()) return absl::Status(code, status.message());
  return absl::Status(code, StrCat(what, ": ", status.message()));
}

int HttpCodeOf(absl::StatusCode code) {
  for (const HttpRow& row : kHttpCodes) {
    if (row.code == code) return row.http;
  }
  return 500;
}

std::string NameOf(absl::StatusCode code) { return absl::StatusCodeToString(code); }

void HidePath(const std::string& path) {
  if (path.size() < 2) return;  // the root folder is the beginning of every path
  std::vector<std::string>& hidden = Hidden();
  if (std::find(hidden.begin(), hidden.end(), path) != hidden.end()) return;
  hidden.push_back(path);
  std::sort(hidden.begin(), hidden.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

absl::Status WithoutPath(const absl::Status& status, const std::string& path) {
  std::string text(Message(status));
  if (!path.empty()) ReplaceAll(text, path, "the model");
  return absl::Status(status.code(), text);
}

std::string ForClients(std::string_view message) {
  std::string text(message);
  for (const std::string& path : Hidden()) {
    ReplaceAll(text, path + "/", "");
    ReplaceAll(text, path, "the repository");
  }
  // A machine called "localhost" reveals nothing, and the names of devices contain that word.
  if (HostName().size() > 2 && HostName() != "localhost")
    ReplaceAll(text, HostName(), "the server");
  text = ValidUtf8(text);
  if (text.size() > kLongestMessage) {
    size_t end = kLongestMessage;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
    text += " ..";
  }
  return text;
}

}  // namespace oncilla::server
