// Notes that the library's threads leave, and the calls by which Python handles them.
#include "python/src/deferred.h"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace oncilla_python {

std::atomic<Kept*> kept_for_release{nullptr};
std::atomic<bool> messages_wait{false};
thread_local bool WillDrain::promised = false;

namespace {

struct Message {
  int level;
  std::string text;
};

// Never destroyed: threads of the library may outlive the interpreter.
struct Notes {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Message> messages;
  std::deque<uintptr_t> runs;
  bool wake = false;
};
Notes& TheNotes() {
  static auto* const notes = new Notes;
  return *notes;
}

// A main thread that is busy computing in Python handles notes too.
void AskMainThread() {
  static std::atomic<bool> asked{false};
  if (asked.exchange(true)) return;
  const auto call = [](void* flag) {
    static_cast<std::atomic<bool>*>(flag)->store(false);
    Drain();
    return 0;
  };
  if (Py_AddPendingCall(call, &asked) != 0) asked.store(false);
}

}  // namespace

void ReleaseLater(void* user) {
  auto* kept = static_cast<Kept*>(user);
  Kept* first = kept_for_release.load(std::memory_order_relaxed);
  do {
    kept->next = first;
  } while (!kept_for_release.compare_exchange_weak(first, kept, std::memory_order_release));
  if (first == nullptr && !WillDrain::promised) AskMainThread();
}

void LogLater(void*, oncilla_log_level level, const char* message) {
  Notes& notes = TheNotes();
  {
    const std::lock_guard<std::mutex> lock(notes.mutex);
    notes.messages.push_back({static_cast<int>(level), message});
  }
  messages_wait.store(true);
  AskMainThread();
}

void RunIsOver(void* number) {
  Notes& notes = TheNotes();
  const std::lock_guard<std::mutex> lock(notes.mutex);
  notes.runs.push_back(reinterpret_cast<uintptr_t>(number));
  notes.changed.notify_all();
}

void DrainSlow() {
  for (Kept* kept = kept_for_release.exchange(nullptr, std::memory_order_acquire);
       kept != nullptr;) {
    const std::unique_ptr<Kept> own(std::exchange(kept, kept->next));
    if (own->view.obj != nullptr) PyBuffer_Release(&own->view);
    if (own->free != nullptr) own->free(own->managed);
  }
  if (!messages_wait.exchange(false)) return;
  std::deque<Message> messages;
  {
    const std::lock_guard<std::mutex> lock(TheNotes().mutex);
    messages.swap(TheNotes().messages);
  }
  const nb::error_scope failure_under_way;  // keeps the failure that is being reported
  for (const Message& message : messages) {
    try {
      PythonHelper("log")(message.level, nb::bytes(message.text.data(), message.text.size()));
    } catch (nb::python_error& failure) {
      failure.discard_as_unraisable("a handler of oncilla's log");
    }
  }
}

void DefineDeferred(nb::module_& m) {
  m.def("drain", &Drain);
  m.def("begin_end", &BeginEnd);
  // Returns the numbers of runs that have ended; an empty list after wake_waiting(). Waits without
  // the interpreter's lock.
  m.def("wait_for_runs", [] {
    std::vector<uintptr_t> runs;
    {
      const Unlock unlocked;
      Notes& notes = TheNotes();
      std::unique_lock<std::mutex> lock(notes.mutex);
      notes.changed.wait(lock, [&] { return notes.wake || !notes.runs.empty(); });
      notes.wake = false;
      runs.assign(notes.runs.begin(), notes.runs.end());
      notes.runs.clear();
    }
    nb::list numbers;
    for (const uintptr_t run : runs) numbers.append(run);
    return numbers;
  });
  m.def("wake_waiting", [] {
    const std::lock_guard<std::mutex> lock(TheNotes().mutex);
    TheNotes().wake = true;
    TheNotes().changed.notify_all();
  });
}

}  // namespace oncilla_python
