// LoadInterrupt: ends a load before it is done, from another thread and without waiting for it.
#pragma once

#include <mutex>
#include <oncilla/oncilla.hpp>
#include <optional>
#include <thread>

namespace oncilla::server {

class LoadInterrupt {
 public:
  ~LoadInterrupt();

  // The load's session from here on; closed at once where the load was interrupted already.
  void Watch(const Session& session);
  // The load is over: its session is the model's, and is closed no more. Returns whether the load
  // was interrupted; the session is then closed.
  bool Finish();
  // Closes the session on a thread of its own: what compiles or uploads there ends soon.
  void Interrupt();

 private:
  void CloseSession();  // with the mutex held

  std::mutex mutex_;
  std::optional<Session> session_;
  bool interrupted_ = false;
  std::thread closer_;
};

}  // namespace oncilla::server
