// Farewell: connections that were refused. Closed at once, with bytes of the client's unread, they
// would be reset, and the client would not see the response; so the client is given a moment to
// read it and to close.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "server/core/request.h"

namespace oncilla::server {

// Thread-safe.
class Farewell {
 public:
  Farewell() = default;
  ~Farewell();

  // Takes over a connected socket that nothing more is written to, and closes it once the client
  // has, or after a second; at once when too many wait, or there is no thread or memory for it.
  void Take(int socket);

 private:
  struct Waiting {
    int socket;
    Clock::time_point until;
  };
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting> taken_;  // not yet seen by the thread
  size_t count_ = 0;            // of all that wait
  bool ended_ = false;
  std::thread thread_;  // runs from the first socket on
};

}  // namespace oncilla::server
