// ThreadPool: divides a range of work among threads that are kept ready for it.
//
// The calling thread works too, so a pool of N has N - 1 threads of its own. Each worker first
// takes the chunks of its own contiguous part of the range, so that the same data tends to stay in
// the same core's cache from one call to the next, then steals from the others. A call waits only
// for workers that have joined it: a thread that the system does not schedule does not delay it. It
// is not a task queue: a call returns when its work is done, and nothing outlives it.
//
// Results must not depend on the pool: which worker runs a chunk, and in which order, changes from
// call to call. The division of the range does not: a chunk is always [k * grain, min(n, (k+1) *
// grain)), with one thread or with many, so partial results that are kept per chunk and combined in
// chunk order are bit-identical as long as `grain` depends on neither thread count nor timing.
//
// A call may have an EarlyEnd. Once that is reached, the call skips the chunks that no worker has
// taken, and the caller must check it afterwards before using the result. Each call has its own:
// ending one call ends no other, whether on a shared pool, from inside a body or on the caller's
// own thread.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace oncilla {

struct EarlyEnd;

struct ThreadPoolOptions {
  // Workers, the caller included. 0: DefaultThreadCount().
  int threads = 0;
  // How long an idle worker spins for the next call before it sleeps. Spinning makes the next call
  // start in a fraction of a microsecond instead of several, at the price of a busy core; it is
  // suspended automatically while other programs compete for the cores. 0: sleep at once.
  int spin_us = 60;
};

class ThreadPool {
 public:
  // fn(context, begin, end, worker). Run rethrows its exception; chunks that were not begun are
  // skipped.
  using Body = void (*)(void* context, int64_t begin, int64_t end, int worker);

  // If the system refuses to start some threads, the pool has fewer: see size().
  explicit ThreadPool(ThreadPoolOptions options = {});
  explicit ThreadPool(int threads) : ThreadPool(ThreadPoolOptions{.threads = threads}) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Workers, the caller included; at least 1.
  int size() const { return size_; }

  // Calls fn(begin, end, worker) once for every chunk of [0, n) and returns when all have run, or
  // when the rest is skipped because `end`, which may be null, is reached; the writes of the chunks
  // are then visible to the caller. `end` is checked before each chunk. `grain` < 1 counts as 1.
  // `worker` is below size() and differs between chunks of one call that run at the same time, so
  // it may index scratch that belongs to the call (not to the pool). Safe from any thread at any
  // time: a call from inside the body of a divided call, or while another thread's call is in
  // progress, runs all its chunks on its own thread.
  template <class F>
  void ParallelFor(int64_t n, int64_t grain, F&& fn, const EarlyEnd* end = nullptr) {
    using Callable = std::remove_reference_t<F>;
    Run(
        n, grain,
        [](void* context, int64_t begin, int64_t end, int worker) {
          (*static_cast<Callable*>(context))(begin, end, worker);
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(fn))), end);
  }
  void Run(int64_t n, int64_t grain, Body body, void* context, const EarlyEnd* end = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
  int size_ = 1;
};

// The CPUs this process may use: the affinity mask, and a container's CPU quota rounded up.
int DefaultThreadCount();

}  // namespace oncilla
