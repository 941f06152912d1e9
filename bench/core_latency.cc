// How long a word takes from one processor to another and back: two threads, each kept on a
// processor, pass a counter to and fro. What a parallel loop pays to start and to end depends on
// it, and on virtual machines it differs by ten times between hosts that look alike.
//
//   core_latency [ROUNDS]     one line of JSON: [{"cpus": [0, 1], "round_trip_ns": 123.4}, ..]
//
// Pairs are the first processor this process may use with each other one, at most seven of them;
// the time is the median of nine stretches.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// The counter has a cache line of its own, and of its neighbour's, which processors fetch with it.
struct alignas(128) Ball {
  std::atomic<int> turn{0};
};

bool StayOn(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

std::vector<int> OwnProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

double RoundTrip(int here, int there, int rounds) {
  constexpr int kStretches = 9;
  Ball ball;
  const int last = 2 * rounds * kStretches;
  std::thread partner([&] {
    StayOn(there);
    for (int turn = 1; turn < last; turn += 2) {
      while (ball.turn.load(std::memory_order_acquire) != turn) {
      }
      ball.turn.store(turn + 1, std::memory_order_release);
    }
  });
  StayOn(here);
  std::vector<double> times;
  for (int turn = 0, stretch = 0; stretch < kStretches; ++stretch) {
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i, turn += 2) {
      ball.turn.store(turn + 1, std::memory_order_release);
      while (ball.turn.load(std::memory_order_acquire) != turn + 2) {
      }
    }
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
                    rounds);
  }
  partner.join();
  std::nth_element(times.begin(), times.begin() + kStretches / 2, times.end());
  return times[kStretches / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20000;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: core_latency [ROUNDS]\n");
    return 2;
  }
  const std::vector<int> cpus = OwnProcessors();
  std::printf("[");
  for (size_t i = 1; i < std::min<size_t>(cpus.size(), 8); ++i) {
    std::printf("%s{\"cpus\": [%d, %d], \"round_trip_ns\": %.1f}", i == 1 ? "" : ", ", cpus[0],
                cpus[i], RoundTrip(cpus[0], cpus[i], rounds));
  }
  std::printf("]\n");
  return 0;
}
