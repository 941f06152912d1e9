// Batcher: the queue of one version of a model, and the threads that run it. Requests wait in a
// bounded queue, by their priority and then in order of arrival; if batches are allowed, requests
// of equal shapes are concatenated along the first axis, run as one, and their results divided
// again. Of a sequence one request runs at a time, with the state that the previous one left.
#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "server/core/request.h"
#include "server/model/sequences.h"
#include "server/model/statistics.h"

namespace oncilla::server {

// The number of runs at the same time on a device; an empty name is the session's device.
struct InstanceGroup {
  std::string device;
  int count = 1;
};

struct BatcherOptions {
  int64_t max_rows = 1;                    // 1: requests are not joined
  std::chrono::microseconds max_delay{0};  // how long the first request of a batch waits for others
  size_t max_waiting = 256;
  std::vector<InstanceGroup> instances = {{}};
  std::chrono::microseconds timeout{0};      // of requests, from their arrival; 0: none
  std::optional<SequenceOptions> sequences;  // of a model that keeps state
};

// A request in progress. `done` is called once, on any thread, without locks held.
class Job {
 public:
  // `rows`: the first size of each input where the model takes batches, else 1. Jobs of equal `key`
  // may be joined.
  Job(InferRequest request, int64_t rows, std::string key, InferDone done)
      : request(std::move(request)), rows(rows), key(std::move(key)), done_(std::move(done)) {}

  const InferRequest request;
  const int64_t rows;
  const std::string key;

 private:
  friend class Batcher;
  struct Execution;
  InferDone done_;
  Clock::time_point arrived_, taken_ = kNever, deadline_ = kNever;
  bool over_ = false;                     // guarded by the batcher's mutex
  std::shared_ptr<Execution> execution_;  // likewise; null while it waits
  Sequences::Place place_;                // of a model that keeps state
  std::vector<Tensor> state_;             // what its execution feeds besides the inputs
};

class Batcher {
 public:
  using Inputs = std::vector<std::pair<std::string, Tensor>>;
  // Runs the model. `timeout_ms`: 0 for none. Returns the outputs in the order of their names.
  using Run = std::function<absl::StatusOr<std::vector<Tensor>>(
      const std::string& device, const Inputs& inputs, const std::vector<std::string>& outputs,
      int64_t timeout_ms, const Cancellation& cancellation)>;

  Batcher(BatcherOptions options, Run run, StatisticsRecorder* statistics);
  ~Batcher();

  // Adds the job to the queue. If that is full or closed, `done` is called at once
  // (ResourceExhausted, Unavailable).
  void Submit(const std::shared_ptr<Job>& job);
  // Ends a job early; a run that has no other is cancelled. Does nothing for one that is over.
  void Cancel(const std::shared_ptr<Job>& job);
  // Accepts no further jobs and waits for the existing ones; at `deadline` they end as Unavailable.
  // Returns when none is left and no thread runs.
  void Close(Clock::time_point deadline);

  size_t waiting() const;
  size_t running() const;
  SequenceCounts sequences() const;

 private:
  using JobList = std::vector<std::shared_ptr<Job>>;
  void Work(const std::string& device);
  void Watch();
  std::shared_ptr<Job::Execution> Take();
  void Gather(Job::Execution& execution, std::unique_lock<std::mutex>& lock);
  void Execute(const std::string& device, const std::shared_ptr<Job::Execution>& execution);
  absl::Status RunJobs(const std::string& device, const JobList& jobs,
                       const Cancellation& cancellation);
  // The first job that may run, or end().
  std::deque<std::shared_ptr<Job>>::iterator Runnable();
  bool CanRun(const Job& job) const { return !sequences_ || sequences_->CanRun(job.place_); }
  // With the mutex held.
  absl::Status Accept(Job& job);
  // Gives the job its state, with the mutex held. Fails where its sequence is broken.
  absl::Status Begin(Job& job);
  absl::StatusOr<Inputs> Join(const JobList& jobs) const;
  std::vector<std::string> OutputsOf(const Job& job) const;
  absl::Status Divide(const JobList& jobs, const std::vector<Tensor>& outputs,
                      std::vector<InferResponse>& responses) const;
  // Each job's part of an output of all of them.
  absl::StatusOr<std::vector<Tensor>> Parts(const JobList& jobs, const std::string& name,
                                            const Tensor& output) const;
  // Stores the state that each job leaves for the next one of its sequence; `names` are those of
  // the outputs.
  absl::Status KeepState(const JobList& jobs, const std::vector<std::string>& names,
                         const std::vector<Tensor>& outputs, std::vector<absl::Status>& kept);
  int64_t TimeoutOf(const JobList& jobs) const;
  // Marks the job as over; false where it was already. With the mutex held.
  bool End(const std::shared_ptr<Job>& job, bool failed);
  void Tell(const std::shared_ptr<Job>& job, absl::StatusOr<InferResponse> outcome);
  void Finish(const std::shared_ptr<Job>& job, absl::StatusOr<InferResponse> outcome);

  const BatcherOptions options_;
  const Run run_;
  StatisticsRecorder* const statistics_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;    // for workers and Close
  std::condition_variable deadlines_;  // for Watch
  Clock::time_point watched_until_ = kNever;
  std::optional<Sequences> sequences_;
  std::deque<std::shared_ptr<Job>> queue_;
  std::set<std::shared_ptr<Job>> unfinished_;  // all jobs whose `done` was not called yet
  size_t executing_ = 0;
  bool closing_ = false, stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace oncilla::server
