// Cancels a run from the handler of SIGINT. This is safe because cancelling a token is one atomic
// store.
#include "python/src/interrupt.h"

#include <atomic>

namespace oncilla_python {
namespace {

std::atomic<oncilla_cancellation*> to_cancel{nullptr};
std::atomic<bool> was_cancelled{false};
struct sigaction python_action = {};

void OnInterrupt(int number, siginfo_t* info, void* context) {
  if (oncilla_cancellation* token = to_cancel.load()) {
    was_cancelled.store(true);
    oncilla_cancellation_cancel(token);
  }
  if ((python_action.sa_flags & SA_SIGINFO) != 0) {
    python_action.sa_sigaction(number, info, context);
  } else if (python_action.sa_handler != SIG_DFL && python_action.sa_handler != SIG_IGN) {
    python_action.sa_handler(number);
  }
}

// Whether this is the main thread and Ctrl-C means KeyboardInterrupt.
bool RaisesKeyboardInterrupt() {
  static const auto main_thread = nb::cast<unsigned long>(PythonHelper("main_thread"));
  if (PyThread_get_thread_ident() != main_thread) return false;
  static PyObject* const get = PythonHelper("getsignal").ptr();
  static PyObject* const usual = PythonHelper("default_int_handler").ptr();
  static PyObject* const number = PythonHelper("SIGINT").ptr();
  return nb::handle(get)(nb::handle(number)).is(usual);
}

// The main thread's token; replaced after it was cancelled.
oncilla_cancellation* OurToken() {
  static oncilla_cancellation* token = nullptr;
  if (token == nullptr || was_cancelled.exchange(false)) {
    oncilla_cancellation_free(std::exchange(token, nullptr));
    Check(oncilla_cancellation_create(&token));
  }
  return token;
}

}  // namespace

Interruptible::Interruptible(const oncilla_cancellation* given) : token_(given) {
  if (to_cancel.load(std::memory_order_relaxed) != nullptr || !RaisesKeyboardInterrupt()) return;
  oncilla_cancellation* token =
      given != nullptr ? const_cast<oncilla_cancellation*>(given) : OurToken();
  token_ = token;
  struct sigaction ours = {};
  ours.sa_sigaction = OnInterrupt;
  ours.sa_flags = SA_SIGINFO;
  if (python_action.sa_handler == nullptr) sigaction(SIGINT, nullptr, &python_action);
  to_cancel.store(token);
  if (sigaction(SIGINT, &ours, &before_) == 0) {
    python_action = before_;
    armed_ = true;
  } else {
    to_cancel.store(nullptr);
  }
}

Interruptible::~Interruptible() {
  if (!armed_) return;
  sigaction(SIGINT, &before_, nullptr);
  to_cancel.store(nullptr);
}

void CheckRun(oncilla_status* status) {
  if (status == nullptr) return;
  if (oncilla_status_code(status) == ONCILLA_CANCELLED && PyErr_CheckSignals() != 0) {
    oncilla_status_free(status);
    throw nb::python_error();
  }
  Check(status);
}

}  // namespace oncilla_python
