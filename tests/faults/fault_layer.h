// The interface of the fault-injecting layer for a test in the same process: found by dlopen with
// RTLD_NOLOAD and the symbol "oncilla_faults". All thread-safe. Tests in Python call by index in
// this table, so new functions go last.
#pragma once

struct FaultControl {
  // Call number `n` from now on (1: the next) of "CreateBuffer" and the like fails with an OpenCL
  // error; with `sticky` every later one too.
  void (*fail)(const char* call, long n, int sticky, int error);
  // The number of calls since reset().
  long (*count)(const char* call);
  // Removes all faults and resets counts. Live objects stay counted.
  void (*reset)();
  // The number of live objects of all kinds, and the bytes of buffers.
  long (*live_objects)();
  long long (*live_bytes)();
  // Buffers beyond so many bytes are refused; 0: no limit.
  void (*limit_memory)(long long bytes);
  // Delays each wait.
  void (*delay)(int microseconds);
  // While on, no enqueued command completes.
  void (*hang)(int on);
  // While on, the driver itself gets nothing done that is enqueued: each queue is blocked by an
  // event that nobody completes. Off: the events are completed, and the work goes on.
  void (*block)(int on);
  // Delays each compilation of a program.
  void (*slow_build)(int milliseconds);
  // After so many more enqueues the device is lost: every use of it fails. Negative: never.
  void (*lose_after)(long enqueues);
  // Names of all calls there are, with an error that drivers give there, until a null:
  // "call:error".
  const char* const* calls;
  // A queue that is blocked takes so many commands; to enqueue more waits until it goes on. 0: any
  // number.
  void (*queue_room)(int commands);
};
