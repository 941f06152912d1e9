// Waits on a driver that completes commands, and calls back, when the test says so.
#include "backends/opencl/runtime/waiter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace oncilla::opencl {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Callback = void(CL_CALLBACK*)(cl_event, cl_int, void*);

std::atomic<cl_int> state;
std::atomic<int> looks;
std::atomic<bool> calls_back;
std::atomic<Callback> callback;
std::atomic<void*> callback_data;

cl_int CL_API_CALL GetEventInfo(cl_event, cl_event_info, size_t, void* value, size_t*) {
  ++looks;
  *static_cast<cl_int*>(value) = state;
  return CL_SUCCESS;
}
cl_int CL_API_CALL WaitForEvents(cl_uint, const cl_event*) {
  return state < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}
cl_int CL_API_CALL SetEventCallback(cl_event, cl_int, Callback function, void* data) {
  if (!calls_back) return CL_OUT_OF_HOST_MEMORY;
  callback_data = data;
  callback = function;
  return CL_SUCCESS;
}

// A driver's thread that ends the command after a while.
class Driver {
 public:
  Driver(milliseconds after, bool tells)
      : thread_([=] {
          std::this_thread::sleep_for(after);
          state = CL_COMPLETE;
          if (tells) Call();
        }) {}
  ~Driver() { thread_.join(); }
  static cl_event Event() { return reinterpret_cast<cl_event>(0x1000); }

  // The call that was asked for, which a driver makes once.
  static void Call() {
    const Callback function = callback.exchange(nullptr);
    if (function != nullptr) function(Event(), CL_COMPLETE, callback_data);
  }

 private:
  std::thread thread_;
};

class OpenClWaiter : public ::testing::Test {
 protected:
  OpenClWaiter() {
    api_.GetEventInfo = &GetEventInfo;
    api_.WaitForEvents = &WaitForEvents;
    api_.SetEventCallback = &SetEventCallback;
    state = CL_RUNNING;
    looks = 0;
    calls_back = true;
    callback = nullptr;
  }
  // A callback that has not been made yet frees its data.
  ~OpenClWaiter() override { Driver::Call(); }

  Api api_;
};

TEST_F(OpenClWaiter, SleepsUntilTheDriverCalls) {
  Waiter waiter(api_, false);
  const Driver driver(milliseconds(300), true);
  EXPECT_TRUE(waiter.Wait(Driver::Event(), Clock::now() + milliseconds(20'000)).ok());
  EXPECT_EQ(state, CL_COMPLETE);
  // Sleeps that only grow with the time waited would have looked a thousand times; the first
  // microseconds yield, which is a few hundred looks.
  EXPECT_LT(looks, 800);
}

TEST_F(OpenClWaiter, DoesNotDependOnTheCall) {
  for (const bool asks : {true, false}) {
    state = CL_RUNNING;
    calls_back = asks;
    Waiter waiter(api_, true);
    const Driver driver(milliseconds(30), false);
    EXPECT_TRUE(waiter.Wait(Driver::Event(), Clock::now() + milliseconds(20'000)).ok());
    EXPECT_EQ(state, CL_COMPLETE);
    Driver::Call();  // long after
  }
}

TEST_F(OpenClWaiter, ADeadlineHoldsAndTheCallMayComeLater) {
  Waiter waiter(api_, true);
  const Clock::time_point begin = Clock::now();
  const Status late = waiter.Wait(Driver::Event(), begin + milliseconds(20));
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_GE(Clock::now() - begin, milliseconds(20));
  {
    // The same wait continued. The next one times out and is abandoned.
    const Driver driver(milliseconds(5), true);
    EXPECT_TRUE(waiter.Wait(Driver::Event(), Clock::now() + milliseconds(20'000)).ok());
  }
  state = CL_RUNNING;
  EXPECT_FALSE(waiter.Wait(Driver::Event(), Clock::now() + milliseconds(5)).ok());
  waiter.Restart();
}

TEST_F(OpenClWaiter, ACallThatComesEarlyIsNotTheEnd) {
  Waiter waiter(api_, false);
  std::atomic<bool> over{false};
  std::thread early([&] {
    while (callback.load() == nullptr) std::this_thread::yield();
    Driver::Call();  // still running
    std::this_thread::sleep_for(milliseconds(20));
    over = true;
    state = CL_COMPLETE;
  });
  EXPECT_TRUE(waiter.Wait(Driver::Event(), Clock::now() + milliseconds(20'000)).ok());
  EXPECT_TRUE(over);
  early.join();
}

TEST_F(OpenClWaiter, AFailedCommandIsAFailedWait) {
  state = CL_OUT_OF_RESOURCES;
  Waiter waiter(api_, true);
  const Status failed = waiter.Wait(Driver::Event(), Clock::now() + milliseconds(20'000));
  EXPECT_EQ(failed.code(), Code::kResourceExhausted) << failed;
}

}  // namespace
}  // namespace oncilla::opencl
