// libFuzzer on the REST form. The input is what a client sends on one connection: heads and bodies
// of any number of requests, one after the other. The connection is a pair of sockets of this
// process.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "server/http/http.h"
#include "server/tests/fuzz/fuzz_service.h"

namespace oncilla::server {
namespace {

HttpFront& Front() {
  static auto* front = [] {
    ListenerOptions options;
    options.limits.body_bytes = FuzzService().options().max_request_bytes;
    options.limits.write = std::chrono::milliseconds(20);  // nothing reads beyond the pair's buffer
    return new HttpFront(&FuzzService(), options, Answer, &FuzzService().http_counts());
  }();
  return *front;
}

}  // namespace
}  // namespace oncilla::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oncilla::server;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) std::abort();
  const int room = 1 << 20;
  for (const int socket : pair) ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
  size_t sent = 0;
  while (sent < size) {
    const ssize_t n = ::send(pair[0], data + sent, size - sent, MSG_DONTWAIT);
    if (n <= 0) break;
    sent += static_cast<size_t>(n);
  }
  ::shutdown(pair[0], SHUT_WR);
  Front().ServeOn(pair[1]);
  ::close(pair[1]);
  // A response must begin as HTTP does.
  char begin[9] = {};
  const ssize_t n = ::recv(pair[0], begin, 8, MSG_DONTWAIT);
  if (n > 0 && std::string_view(begin, static_cast<size_t>(n)) != "HTTP/1.1") std::abort();
  ::close(pair[0]);
  // Nothing may be held for a client that has disconnected.
  if (FuzzService().requests_held().held() != 0) std::abort();
  return 0;
}
