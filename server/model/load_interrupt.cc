// Interrupts a load by closing its session.
#include "server/model/load_interrupt.h"

namespace oncilla::server {

LoadInterrupt::~LoadInterrupt() { Finish(); }

void LoadInterrupt::Watch(const Session& session) {
  const std::lock_guard lock(mutex_);
  session_ = session;
  if (interrupted_) CloseSession();
}

void LoadInterrupt::Interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  if (session_ && !closer_.joinable()) CloseSession();
}

void LoadInterrupt::CloseSession() {
  // Closing waits until the load has ended.
  closer_ = std::thread(
      [session = *session_]() mutable { (void)session.CloseWithin(/*cancel=*/true).ok(); });
}

bool LoadInterrupt::Finish() {
  std::thread closer;
  bool interrupted = false;
  {
    const std::lock_guard lock(mutex_);
    session_.reset();
    closer.swap(closer_);
    interrupted = interrupted_;
  }
  if (closer.joinable()) closer.join();
  return interrupted;
}

}  // namespace oncilla::server
