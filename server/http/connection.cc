// Reads and writes a socket within limits of time and size.
#include "server/http/connection.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace oncilla::server {
namespace {

thread_local Connection* current = nullptr;

constexpr size_t kBufferBytes = 64 << 10;
// How often a waiting connection checks whether it should end.
constexpr auto kLookUp = std::chrono::milliseconds(250);

void AddressOf(int socket, bool remote, std::string& ip, int& port) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if ((remote ? ::getpeername(socket, generic, &length)
              : ::getsockname(socket, generic, &length)) != 0)
    return;
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    port = ntohs(v4->sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    port = ntohs(v6->sin6_port);
  }
  ip = text;
}

}  // namespace

Connection::Scope::Scope(Connection* connection) { current = connection; }
Connection::Scope::~Scope() { current = nullptr; }
Connection* Connection::Current() { return current; }

Connection::Connection(int socket, SSL* tls, const ConnectionLimits& limits, ByteBudget* budget)
    : socket_(socket), tls_(tls), limits_(limits), budget_(budget), buffer_(kBufferBytes) {}

bool Connection::AwaitSocket(short events, Clock::time_point until) const {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait{socket_, events, 0};
    const int n = ::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, 1'000'000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

bool Connection::AwaitRequest(const std::atomic<bool>& stop) {
  const auto until = After(limits_.idle);
  while (begin_ == end_ && !(tls_ != nullptr && ::SSL_pending(tls_) > 0)) {
    if (stop || Clock::now() >= until) return false;
    if (AwaitSocket(POLLIN, std::min(until, Clock::now() + kLookUp))) break;
  }
  until_ = After(limits_.head);
  allowance_ = limits_.head_bytes;
  overran_ = counted_ = crowded_ = in_body_ = too_long_ = false;
  facts = {};
  facts.held = ByteHold(budget_);
  facts.begin = Clock::now();
  return true;
}

void Connection::BeginBody(bool counted) {
  counted_ = counted;
  in_body_ = true;
  until_ = After(limits_.body);
  // Chunks have headers, so some room is added.
  allowance_ = limits_.body_bytes + limits_.body_bytes / 8 + (64 << 10);
}

bool Connection::PeerGone() const {
  pollfd look{socket_, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

ssize_t Connection::ReadSome(char* data, size_t size) {
  while (true) {
    if (tls_ != nullptr) {
      ::ERR_clear_error();  // errors of earlier connections would be taken for this one's
      const int n = ::SSL_read(tls_, data, static_cast<int>(std::min<size_t>(size, 1 << 30)));
      if (n > 0) return n;
      const int error = ::SSL_get_error(tls_, n);
      if (error == SSL_ERROR_WANT_READ && AwaitSocket(POLLIN, until_)) continue;
      if (error == SSL_ERROR_WANT_WRITE && AwaitSocket(POLLOUT, until_)) continue;
      overran_ = Clock::now() >= until_;
      return -1;
    }
    const ssize_t n = ::recv(socket_, data, size, MSG_DONTWAIT);
    if (n > 0) return n;
    if (n == 0) return -1;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (!AwaitSocket(POLLIN, until_)) {
      overran_ = true;
      return -1;
    }
  }
}

bool Connection::Fill() {
  begin_ = end_ = 0;
  if (Clock::now() >= until_) {
    overran_ = true;  // catches a client that sends a byte now and then
    return false;
  }
  const ssize_t n = ReadSome(buffer_.data(), buffer_.size());
  if (n <= 0) return false;
  end_ = static_cast<size_t>(n);
  return true;
}

ssize_t Connection::read(char* data, size_t size) {
  if (allowance_ == 0) {
    (in_body_ ? too_long_ : overran_) = true;
    return -1;
  }
  if (begin_ == end_ && !Fill()) return -1;
  const size_t n = std::min({size, end_ - begin_, allowance_});
  if (counted_ && !facts.held.Grow(n).ok()) {
    crowded_ = true;
    return -1;
  }
  std::memcpy(data, buffer_.data() + begin_, n);
  begin_ += n;
  allowance_ -= n;
  return static_cast<ssize_t>(n);
}

ssize_t Connection::write(const char* data, size_t size) {
  while (true) {
    const auto until = After(limits_.write);
    if (tls_ != nullptr) {
      ::ERR_clear_error();
      const int n = ::SSL_write(tls_, data, static_cast<int>(std::min<size_t>(size, 1 << 30)));
      if (n > 0) return n;
      const int error = ::SSL_get_error(tls_, n);
      if (error == SSL_ERROR_WANT_WRITE && AwaitSocket(POLLOUT, until)) continue;
      if (error == SSL_ERROR_WANT_READ && AwaitSocket(POLLIN, until)) continue;
      return -1;
    }
    const ssize_t n = ::send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || !AwaitSocket(POLLOUT, until)) return -1;
  }
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  AddressOf(socket_, true, ip, port);
}
void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  AddressOf(socket_, false, ip, port);
}

}  // namespace oncilla::server
