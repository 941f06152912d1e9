// One thread reads and discards what refused clients still send.
#include "server/http/farewell.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iterator>

namespace oncilla::server {
namespace {

constexpr size_t kMost = 512;
constexpr std::chrono::milliseconds kPatience{1000}, kLook{50};

// Whether the client may still send something.
bool Discard(int socket) {
  char bytes[4096];
  for (int i = 0; i < 64; ++i) {
    const ssize_t n = ::recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (n == 0) return false;
  }
  return true;
}

}  // namespace

Farewell::~Farewell() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const Waiting& one : taken_) ::close(one.socket);
}

void Farewell::Take(int socket) {
  ::shutdown(socket, SHUT_WR);
  {
    const std::lock_guard lock(mutex_);
    try {
      if (!thread_.joinable() && !ended_) thread_ = std::thread([this] { Run(); });
      if (count_ < kMost && !ended_) {
        taken_.push_back({socket, Clock::now() + kPatience});
        ++count_;
        socket = -1;
      }
    } catch (const std::exception&) {  // no thread or no memory left: it is closed at once
    }
  }
  if (socket >= 0) ::close(socket);
  changed_.notify_all();
}

void Farewell::Run() {
  std::vector<Waiting> all;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      count_ = all.size() + taken_.size();
      changed_.wait(lock, [&] { return ended_ || !taken_.empty() || !all.empty(); });
      if (ended_) break;
      std::move(taken_.begin(), taken_.end(), std::back_inserter(all));
      taken_.clear();
    }
    std::vector<pollfd> looks;
    for (const Waiting& one : all) looks.push_back({one.socket, POLLIN, 0});
    ::poll(looks.data(), looks.size(), static_cast<int>(kLook.count()));
    std::erase_if(all, [](const Waiting& one) {
      if (Discard(one.socket) && Clock::now() < one.until) return false;
      ::close(one.socket);
      return true;
    });
  }
  for (const Waiting& one : all) ::close(one.socket);
}

}  // namespace oncilla::server
