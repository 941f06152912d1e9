// Ctrl-C while the main thread runs a model: the run is cancelled, and KeyboardInterrupt raised.
#pragma once

#include <signal.h>

#include "python/src/handles.h"

namespace oncilla_python {

// While an object exists in the main thread, and Python's own handler of SIGINT is installed, a
// SIGINT also cancels the token. Handlers of the application are called after the run, as in any
// extension.
class Interruptible {
 public:
  // Null: a token of ours.
  explicit Interruptible(const oncilla_cancellation* given);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  const oncilla_cancellation* token() const { return token_; }

 private:
  const oncilla_cancellation* token_;
  bool armed_ = false;
  struct sigaction before_ = {};
};

// Raises the failure of a run, or what Python's handlers raise for the signal that cancelled it.
void CheckRun(oncilla_status* status);

}  // namespace oncilla_python
