// Connection: one client's socket, with or without TLS, as httplib's stream. It bounds what httplib
// does not: how long a request may take to arrive, and how many bytes its head and its body may
// have.
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "server/core/byte_budget.h"
#include "server/core/request.h"
#include "server/watch/log.h"

namespace oncilla::server {

struct ConnectionLimits {
  std::chrono::milliseconds idle{60'000};   // between requests
  std::chrono::milliseconds head{10'000};   // from a request's first byte to the end of its head
  std::chrono::milliseconds body{120'000};  // from there to the end of its body
  std::chrono::milliseconds write{30'000};  // that a client may stop reading
  size_t head_bytes = 64 << 10;
  size_t body_bytes = 256 << 20;
};

// Facts about the current request of a connection that httplib's request does not have.
struct RequestFacts {
  std::string
      path;  // httplib sees "/" alone: its patterns are regular expressions, slow on long paths
  std::string body_encoding;  // "gzip", "deflate"; empty: as it is
  bool takes_gzip = false;    // the client accepts a compressed response
  Clock::time_point begin;
  bool handled = false;  // a handler of ours had the request; else httplib refused it
  ByteHold held;         // for its body
  AccessRecord record;
};

class Connection : public httplib::Stream {
 public:
  RequestFacts facts;

  // `tls` may be null; neither it, the socket nor the budget is owned.
  Connection(int socket, SSL* tls, const ConnectionLimits& limits, ByteBudget* budget);

  // The connection whose request this thread handles; null elsewhere.
  static Connection* Current();
  class Scope;

  // Waits for the first byte of a request; false when none comes in time, or `stop` becomes true.
  bool AwaitRequest(const std::atomic<bool>& stop);
  // To be called when the head was read: from here on the limits are those of a body. `counted`:
  // its bytes are taken from the budget as they arrive, since its length is unknown.
  void BeginBody(bool counted);
  // The request is answered.
  void EndRequest() { facts.held = {}; }
  // Whether the client closed its side, so that it does not wait for a response.
  bool PeerGone() const;
  // Closes the connection after the response, whatever the request says.
  void CloseAfterwards() { close_ = true; }
  bool closes() const { return close_; }
  // Whether a part of a request had arrived when its time was over, or its head had too many bytes.
  bool overran() const { return overran_; }
  // Whether the body had too many bytes.
  bool too_long() const { return too_long_; }
  // Whether the requests of all connections left no room for the body.
  bool crowded() const { return crowded_; }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !PeerGone(); }
  using httplib::Stream::write;
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  bool Fill();
  ssize_t ReadSome(char* data, size_t size);
  bool AwaitSocket(short events, Clock::time_point until) const;

  const int socket_;
  SSL* const tls_;
  const ConnectionLimits& limits_;
  ByteBudget* const budget_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  Clock::time_point until_ = kNever;
  size_t allowance_ = 0;  // bytes that the request may still have
  bool close_ = false, overran_ = false, counted_ = false, crowded_ = false;
  bool in_body_ = false, too_long_ = false;
};

// Makes a connection the current one of this thread.
class Connection::Scope {
 public:
  explicit Scope(Connection* connection);
  ~Scope();
};

}  // namespace oncilla::server
