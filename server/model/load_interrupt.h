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

  // Registers the load's session; it is closed at once if the load was interrupted already.
  void Watch(const Session& session);
  // Ends the load: its session belongs to the model, and is not closed any more. Returns whether
  // the load was interrupted; the session is then closed.
  bool Finish();
  // Closes the session on a thread of its own: compilations and uploads in it end soon.
  void Interrupt();

 private:
  void CloseSession();  // with the mutex held

  std::mutex mutex_;
  std::optional<Session> session_;
  bool interrupted_ = false;
  std::thread closer_;
};

}  // namespace oncilla::server
