// Accepts connections and serves each on a thread.
#include "server/http/listener.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "absl/strings/ascii.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

// Set while a connection above the limit is handled, which then gets a refusal.
thread_local bool refusing = false;

// Whether an Accept-Encoding names gzip, and not with the weight 0 (RFC 9110, 12.5.3).
bool TakesGzip(std::string accepted) {
  std::erase_if(accepted, [](char c) { return c == ' ' || c == '\t'; });
  std::ranges::transform(accepted, accepted.begin(), [](char c) { return absl::ascii_tolower(c); });
  for (const std::string& one : Split(accepted, ',')) {
    if (one == "gzip") return true;
    constexpr std::string_view kWeighed = "gzip;q=";
    if (one.starts_with(kWeighed)) return one.find_first_not_of("0.", kWeighed.size()) != one.npos;
  }
  return false;
}

}  // namespace

// One thread per connection, up to the limit; idle threads are kept for later connections.
class Listener::Threads : public httplib::TaskQueue {
 public:
  explicit Threads(size_t most) : most_(most) {}

  void enqueue(std::function<void()> task) override {
    {
      const std::lock_guard lock(mutex_);
      if (idle_ > tasks_.size() || threads_.size() < most_) {
        tasks_.push_back(std::move(task));
        if (idle_ < tasks_.size()) threads_.emplace_back([this] { Work(); });
        changed_.notify_one();
        return;
      }
    }
    refusing = true;
    task();
    refusing = false;
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      changed_.wait(lock, [&] { return ended_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ended_ = false;
};

Listener::Listener(ListenerOptions options, FrontCounts* counts, ByteBudget* budget)
    : options_(std::move(options)), counts_(counts), budget_(budget) {
  new_task_queue = [this] { return new Threads(options_.max_connections); };
  set_tcp_nodelay(true);
  set_keep_alive_timeout(
      std::chrono::duration_cast<std::chrono::seconds>(options_.limits.idle).count());
  set_keep_alive_max_count(1000000);
  set_payload_max_length(options_.limits.body_bytes);
  // Replaces httplib's default, which lets several processes share a port.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
}

Listener::~Listener() {
  Stop();
  if (tls_ != nullptr) ::SSL_CTX_free(tls_);
}

absl::Status Listener::SetUpTls() {
  if (options_.tls_certificate.empty()) return absl::OkStatus();
  tls_ = ::SSL_CTX_new(::TLS_server_method());
  if (tls_ == nullptr) return absl::InternalError("TLS cannot be set up");
  ::SSL_CTX_set_min_proto_version(tls_, TLS1_2_VERSION);
  ::SSL_CTX_set_mode(tls_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (::SSL_CTX_use_certificate_chain_file(tls_, options_.tls_certificate.c_str()) != 1) {
    return absl::InvalidArgumentError(
        StrCat("--tls-cert ", options_.tls_certificate, " is not a certificate"));
  }
  if (::SSL_CTX_use_PrivateKey_file(tls_, options_.tls_key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      ::SSL_CTX_check_private_key(tls_) != 1) {
    return absl::InvalidArgumentError(
        StrCat("--tls-key ", options_.tls_key, " is not the certificate's key"));
  }
  return absl::OkStatus();
}

absl::Status Listener::Start() {
  const absl::Status tls = SetUpTls();
  if (!tls.ok()) return tls;
  port_ = options_.port;
  const bool bound = options_.port == 0 ? (port_ = bind_to_any_port(options_.host)) > 0
                                        : bind_to_port(options_.host, options_.port);
  if (!bound) {
    return absl::UnavailableError(
        StrCat("cannot listen on ", options_.host, ":", options_.port,
               ": the port is taken, or the address is not this machine's"));
  }
  // httplib lets five connections wait to be accepted; more of them in a burst would be dropped
  // silently.
  constexpr int kWaitingConnections = 512;
  ::listen(svr_sock_, kWaitingConnections);
  acceptor_ = std::thread([this] { listen_after_bind(); });
  while (!is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return absl::OkStatus();
}

void Listener::Stop() {
  if (!acceptor_.joinable()) return;
  stopping_ = true;
  stop();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RD);  // requests that are half read
  }
  acceptor_.join();  // waits for the threads of connections, too
}

bool Listener::process_and_close_socket(socket_t socket) {
  if (refusing) {
    Refuse(socket);
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    sockets_.insert(socket);
  }
  ++counts_->connections;
  const bool read_all = Serve(socket);
  --counts_->connections;
  {
    const std::lock_guard lock(mutex_);
    sockets_.erase(socket);
  }
  if (read_all) {
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
  } else {
    farewell_.Take(socket);
  }
  return true;
}

void Listener::Refuse(int socket) {
  ++counts_->refused;
  if (tls_ != nullptr) {  // a handshake would block the thread that accepts
    ::close(socket);
    return;
  }
  static constexpr char kAnswer[] =
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: "
      "0\r\n\r\n";
  (void)::send(socket, kAnswer, sizeof(kAnswer) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  farewell_.Take(socket);
}

bool Listener::Serve(int socket) {
  if (tls_ == nullptr) return ServeOn(socket, nullptr);
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  SSL* tls = ::SSL_new(tls_);
  if (tls == nullptr) return true;
  ::SSL_set_fd(tls, socket);
  const auto until = After(options_.limits.head);
  bool accepted = false;
  while (Clock::now() < until) {
    ::ERR_clear_error();
    const int n = ::SSL_accept(tls);
    accepted = n == 1;
    const int error = accepted ? SSL_ERROR_NONE : ::SSL_get_error(tls, n);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) break;
    pollfd wait{socket, static_cast<short>(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    ::poll(&wait, 1, 250);
  }
  bool read_all = true;
  if (accepted) {
    read_all = ServeOn(socket, tls);
    ::SSL_shutdown(tls);
  }
  ::SSL_free(tls);
  return read_all;
}

bool Listener::ServeOn(int socket, SSL* tls) {
  Connection connection(socket, tls, options_.limits, budget_);
  const Connection::Scope scope(&connection);
  const auto head_read = [&](httplib::Request& request) {
    connection.BeginBody(/*counted=*/!request.has_header("Content-Length"));
    connection.facts.path = request.path;
    connection.facts.body_encoding = request.get_header_value("Content-Encoding");
    connection.facts.takes_gzip = TakesGzip(request.get_header_value("Accept-Encoding"));
    request.path = "/";
    if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding")) {
      // httplib would read until the client closes; by RFC 9112 there is no body.
      request.set_header("Content-Length", "0");
    } else if (request.method == "GET" || request.method == "HEAD") {
      connection.CloseAfterwards();  // httplib leaves their bodies unread
    }
    // httplib would apply ranges, parse forms, unpack bodies without a limit, and compress every
    // response, which Triton's server does with inferences only: its asynchronous client accepts
    // compressed responses for all calls and unpacks no other ones.
    request.ranges.clear();
    for (const char* header : {"Range", "Content-Type", "Content-Encoding", "Accept-Encoding"})
      request.headers.erase(header);
  };
  bool closed = false;
  while (!closed && !connection.closes() && connection.AwaitRequest(stopping_)) {
    if (!process_request(connection, stopping_, closed, head_read)) break;
    connection.EndRequest();
  }
  return !connection.closes();
}

}  // namespace oncilla::server
