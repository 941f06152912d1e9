// One call at a time owns the workers. It publishes a job, increments the epoch, works, closes the
// job and waits for the workers that joined. A worker joins by incrementing `active` and then
// checking that the job is still `open`; the caller closes by clearing `open` and then reading
// `active`. Both use sequentially consistent order, so either the worker sees that the job is
// closed or the caller sees the worker.
#include "engine/base/thread_pool.h"

#if defined(__linux__)
#include <pthread.h>
#endif

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/early_end.h"
#include "engine/base/file.h"
#include "engine/base/wait_word.h"
#include "engine/base/work_limits.h"

namespace oncilla {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// How long, beyond the duration of one chunk, the caller spins for a joined worker before it
// sleeps. Sleeping and waking cost tens of microseconds, which shows in a call of a few hundred.
constexpr microseconds kJoinSpin{50}, kLongestJoinSpin{500};
// A joined worker that ends later than one chunk plus this much after the caller has lost its core
// to another program, since systems give time slices of a millisecond and more. Interrupts, and
// waking the caller, take less.
constexpr microseconds kCoreLost{500};
// After such a loss, workers sleep between calls instead of spinning, for this many calls: a
// sleeping worker that wakes preempts the program that took the core, while a spinning one uses up
// its time slice and then loses the core within a chunk. Each loss doubles the number of calls for
// the next loss; each kFirstPenalty calls of spinning without a loss halve it. So a program that
// stays leads to long phases of sleep, while the occasional interruptions of any system cost a
// thousandth of the calls. A delay while workers sleep counts for nothing, since they may have
// woken late.
constexpr int kFirstPenalty = 256, kLongestPenalty = 1 << 14;

constexpr size_t kCacheLine = 128;  // two lines: CPUs fetch them in pairs

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#else
  std::this_thread::yield();
#endif
}

// The number of bodies, of any pool, that this thread is inside.
thread_local int depth = 0;

bool Reached(const EarlyEnd* end) { return end != nullptr && end->reached(); }

void RunInline(int64_t n, int64_t grain, ThreadPool::Body body, void* context,
               const EarlyEnd* early) {
  for (int64_t begin = 0; begin < n && !Reached(early);) {
    const int64_t end = n - begin > grain ? begin + grain : n;
    body(context, begin, end, 0);
    begin = end;
  }
}

}  // namespace

struct ThreadPool::State {
  // The chunks of one worker's part that nobody has taken yet. Other workers steal from it.
  struct alignas(kCacheLine) Part {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  explicit State(int count, int spin_us) : spin(spin_us), parts(static_cast<size_t>(count)) {
    spinning.store(spin_us > 0);
  }

  // Takes chunks until none is left or the call is to end, and returns how many it took. The first
  // exception of a body ends the call; the caller rethrows it.
  int64_t Drain(int worker) {
    const WorkLimitsOfCaller of_caller(limits);
    ++depth;
    int64_t taken = 0;
    for (int i = 0; i < size; ++i) {
      Part& part = parts[static_cast<size_t>((worker + i) % size)];
      // Reading `next` first keeps it from running past `end` by more than one per worker.
      while (part.next.load(std::memory_order_relaxed) < part.end && !Reached(early) &&
             !failed.load(std::memory_order_relaxed)) {
        const int64_t chunk = part.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= part.end) break;
        const int64_t begin = chunk * grain;
        try {
          body(context, begin, n - begin > grain ? begin + grain : n, worker);
        } catch (...) {
          if (!failed.exchange(true)) failure = std::current_exception();
        }
        ++taken;
      }
    }
    --depth;
    return taken;
  }

  void Work(int worker) {
#if defined(__linux__)
    ::pthread_setname_np(::pthread_self(), "oncilla");  // what top and perf show
#endif
    uint32_t seen = 0;
    for (;;) {
      WaitForEpoch(seen);
      seen = epoch.value.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_relaxed)) return;
      active.value.fetch_add(1);
      if (open.load()) Drain(worker);
      if (active.value.fetch_sub(1) == 1 && caller_sleeps.load()) active.Wake(1);
    }
  }

  void WaitForEpoch(uint32_t seen) {
    const Clock::time_point begin = Clock::now();
    for (int turn = 1; epoch.value.load(std::memory_order_acquire) == seen; ++turn) {
      if (spinning.load(std::memory_order_relaxed)) {
        Pause();
        if (turn % 32 != 0 || Clock::now() - begin < spin) continue;
      }
      sleepers.fetch_add(1);
      while (epoch.value.load() == seen) epoch.Wait(seen);
      sleepers.fetch_sub(1);
    }
  }

  // Waits for the workers that joined; `chunk`: how long one of the caller's took.
  void Join(Clock::duration chunk) {
    if (active.value.load() == 0) return AfterJoin(false);
    const bool watching = spinning.load(std::memory_order_relaxed);
    const Clock::duration spin_for =
        watching ? std::min<Clock::duration>(kJoinSpin + chunk, kLongestJoinSpin) : kJoinSpin;
    const Clock::time_point begin = Clock::now();
    bool asleep = false;
    for (int turn = 1;; ++turn) {
      const uint32_t left = active.value.load();
      if (left == 0) break;
      Pause();
      if (!asleep && (turn % 32 != 0 || Clock::now() - begin < spin_for)) continue;
      // Leave the core, so that the system can move a preempted worker here.
      asleep = true;
      caller_sleeps.store(true);
      if (const uint32_t now = active.value.load(); now != 0) active.Wait(now);
      caller_sleeps.store(false);
    }
    AfterJoin(asleep && Clock::now() - begin > kCoreLost + chunk);
  }

  void AfterJoin(bool core_lost) {
    if (spin.count() <= 0) return;
    if (penalty > 0) {
      if (--penalty == 0) spinning.store(true, std::memory_order_relaxed);
    } else if (core_lost) {
      penalty = next_penalty;
      next_penalty = std::min(2 * next_penalty, kLongestPenalty);
      quiet_calls = 0;
      spinning.store(false, std::memory_order_relaxed);
    } else if (next_penalty > kFirstPenalty && ++quiet_calls == kFirstPenalty) {
      next_penalty /= 2;
      quiet_calls = 0;
    }
  }

  // The job. The caller writes it while no worker is active; workers read it after they saw `open`.
  Body body = nullptr;
  void* context = nullptr;
  int64_t n = 0, grain = 1;
  const EarlyEnd* early = nullptr;
  const WorkLimits* limits = nullptr;  // of the caller's work
  int size = 1;
  std::atomic<bool> failed{false};
  std::exception_ptr failure;  // written by whoever set `failed`, read by the caller after joining

  const microseconds spin;
  // State of the caller that holds `busy`: how many calls are left without spinning; how many the
  // next loss of a core costs; how many calls have spun since the last loss, or since that number
  // was last halved.
  int penalty = 0, next_penalty = kFirstPenalty, quiet_calls = 0;

  alignas(kCacheLine) WaitWord epoch;
  std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> open{false}, spinning{true}, stop{false};
  alignas(kCacheLine) WaitWord active;
  std::atomic<bool> caller_sleeps{false};
  alignas(kCacheLine) std::atomic<bool> busy{false};
  std::vector<Part> parts;
  std::vector<std::thread> threads;
};

ThreadPool::ThreadPool(ThreadPoolOptions options) {
  const int wanted =
      std::clamp(options.threads > 0 ? options.threads : DefaultThreadCount(), 1, 1024);
  state_ = std::make_unique<State>(wanted, std::max(options.spin_us, 0));
  state_->threads.reserve(static_cast<size_t>(wanted));
  for (int worker = 1; worker < wanted; ++worker) {
    try {
      state_->threads.emplace_back([state = state_.get(), worker] { state->Work(worker); });
    } catch (const std::exception&) {
      break;  // the system has no more threads to give, or no memory for one
    }
  }
  size_ = static_cast<int>(state_->threads.size()) + 1;
  state_->size = size_;  // published to the workers by the first job
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true);
  state_->epoch.value.fetch_add(1);
  state_->epoch.Wake(INT_MAX);
  for (std::thread& thread : state_->threads) thread.join();
}

void ThreadPool::Run(int64_t n, int64_t grain, Body body, void* context, const EarlyEnd* end) {
  grain = std::max<int64_t>(grain, 1);
  State& s = *state_;
  if (n <= grain || size_ == 1 || depth > 0 || s.busy.load(std::memory_order_relaxed) ||
      s.busy.exchange(true, std::memory_order_acquire)) {
    return RunInline(n, grain, body, context, end);
  }
  const int64_t chunks = (n - 1) / grain + 1;
  s.body = body, s.context = context, s.n = n, s.grain = grain, s.early = end;
  s.limits = &WorkScope::Current();
  int64_t first = 0;
  for (int w = 0; w < size_; ++w) {
    const int64_t count = chunks / size_ + (w < chunks % size_ ? 1 : 0);
    State::Part& part = s.parts[static_cast<size_t>(w)];
    part.next.store(first, std::memory_order_relaxed);
    part.end = first += count;
  }
  s.open.store(true);
  s.epoch.value.fetch_add(1);
  if (s.sleepers.load() > 0) {
    s.epoch.Wake(static_cast<int>(std::min<int64_t>(chunks, size_) - 1));
  }
  const Clock::time_point begin = Clock::now();
  const int64_t taken = s.Drain(0);
  s.open.store(false);
  // A worker that is up to one chunk behind the caller has not lost its core.
  s.Join((Clock::now() - begin) / std::max<int64_t>(taken, 1));
  const std::exception_ptr failure = std::exchange(s.failure, nullptr);
  s.failed.store(false, std::memory_order_relaxed);
  s.busy.store(false, std::memory_order_release);
  if (failure != nullptr) std::rethrow_exception(failure);
}

int DefaultThreadCount() {
  int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  // A container's quota: "200000 100000" is 200 ms of CPU time every 100 ms; "max 100000" is none.
  if (auto text = ReadFile("/sys/fs/cgroup/cpu.max", 4096); text.ok()) {
    int64_t quota = 0, period = 0;
    const char* end = text->data() + text->size();
    const auto first = std::from_chars(text->data(), end, quota);
    if (first.ec == std::errc() && first.ptr != end &&
        std::from_chars(first.ptr + 1, end, period).ec == std::errc() && quota > 0 && period > 0) {
      count = static_cast<int>(std::clamp<int64_t>((quota - 1) / period + 1, 1, count));
    }
  }
  return count;
}

}  // namespace oncilla
