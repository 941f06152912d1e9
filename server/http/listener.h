// Listener: httplib's server on our own connections, which are limited in number and time, with or
// without TLS.
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "server/http/connection.h"
#include "server/http/farewell.h"
#include "server/service.h"

namespace oncilla::server {

struct ListenerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any that is free
  size_t max_connections = 256;
  ConnectionLimits limits;
  std::string tls_certificate, tls_key;  // PEM files; empty: no TLS
};

class Listener : public httplib::Server {
 public:
  // `counts` and `budget` (of what requests hold) outlive it.
  Listener(ListenerOptions options, FrontCounts* counts, ByteBudget* budget);
  ~Listener() override;

  // Binds and begins to accept. InvalidArgument for certificates that cannot be used, Unavailable
  // for a taken port.
  absl::Status Start();
  int port() const { return port_; }
  // Answers requests on a connected socket until one side closes it. `tls` may be null.
  // Returns whether all that the client had sent was read.
  bool ServeOn(int socket, SSL* tls);
  // Ends idle connections, waits for requests under way and stops.
  void Stop();

 private:
  class Threads;
  absl::Status SetUpTls();
  bool process_and_close_socket(socket_t socket) override;
  bool Serve(int socket);
  void Refuse(int socket);  // and closes it

  const ListenerOptions options_;
  FrontCounts* const counts_;
  ByteBudget* const budget_;
  SSL_CTX* tls_ = nullptr;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::set<int> sockets_;  // of connections that are served
  Farewell farewell_;
  std::thread acceptor_;
};

}  // namespace oncilla::server
