// The queue of a model, the workers that run batches, and the thread that watches deadlines.
#include "server/model/batcher.h"

#include <algorithm>
#include <cstring>

#include "server/core/text.h"

namespace oncilla::server {
namespace {

absl::Status DeadlineError() { return absl::DeadlineExceededError("the request's time is over"); }

bool IsWorthRepeating(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kOutOfRange ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

// Rows [first, first + count) of a tensor, sharing its memory.
absl::StatusOr<Tensor> Rows(const Tensor& tensor, int64_t first, int64_t count) {
  std::vector<int64_t> dims = tensor.dims();
  const int64_t all = dims[0];
  dims[0] = count;
  const size_t each = tensor.size() / static_cast<size_t>(all);
  if (tensor.dtype() == ONCILLA_STRING) {
    std::vector<std::string> strings;
    for (size_t i = 0; i < each * static_cast<size_t>(count); ++i) {
      strings.push_back(tensor.string(each * static_cast<size_t>(first) + i));
    }
    auto rows = Tensor::Strings(dims, strings);
    if (!rows.ok()) return FromEngine(rows.status());
    return *std::move(rows);
  }
  const size_t row_bytes = tensor.bytes() / static_cast<size_t>(all);
  const auto* data =
      static_cast<const char*>(tensor.raw()) + row_bytes * static_cast<size_t>(first);
  // The copied handle keeps the memory alive.
  auto rows =
      Tensor::Wrap(tensor.dtype(), dims, data, row_bytes * static_cast<size_t>(count), [tensor] {});
  if (!rows.ok()) return FromEngine(rows.status());
  return *std::move(rows);
}

absl::StatusOr<Tensor> Owned(const Tensor& tensor) {
  if (tensor.dtype() == ONCILLA_STRING) return tensor;  // Rows has copied them
  auto copy = Tensor::Copy(tensor.dtype(), tensor.dims(), tensor.raw(), tensor.bytes());
  if (!copy.ok()) return FromEngine(copy.status());
  return *std::move(copy);
}

// Concatenates one input of several jobs; `rows` is the total.
absl::StatusOr<Tensor> Concatenated(const std::vector<Tensor>& parts, int64_t rows) {
  std::vector<int64_t> dims = parts[0].dims();
  dims[0] = rows;
  if (parts[0].dtype() == ONCILLA_STRING) {
    std::vector<std::string> strings;
    for (const Tensor& part : parts) {
      for (size_t i = 0; i < part.size(); ++i) strings.push_back(part.string(i));
    }
    auto joined = Tensor::Strings(dims, strings);
    if (!joined.ok()) return FromEngine(joined.status());
    return *std::move(joined);
  }
  const auto bytes = std::make_shared<std::string>();
  for (const Tensor& part : parts)
    bytes->append(static_cast<const char*>(part.raw()), part.bytes());
  auto joined = Tensor::Wrap(parts[0].dtype(), dims, bytes->data(), bytes->size(), [bytes] {});
  if (!joined.ok()) return FromEngine(joined.status());
  return *std::move(joined);
}

}  // namespace

// A run under way and the jobs that it serves. `left` counts those whose clients still want the
// result.
struct Job::Execution {
  std::vector<std::shared_ptr<Job>> jobs;
  int64_t rows = 0;
  size_t left = 0;  // guarded by the batcher's mutex
  Cancellation cancellation;
};

Batcher::Batcher(BatcherOptions options, Run run, StatisticsRecorder* statistics)
    : options_(std::move(options)), run_(std::move(run)), statistics_(statistics) {
  if (options_.sequences) sequences_.emplace(*options_.sequences);
  for (const InstanceGroup& group : options_.instances) {
    for (int i = 0; i < group.count; ++i)
      threads_.emplace_back([this, device = group.device] { Work(device); });
  }
  threads_.emplace_back([this] { Watch(); });
}

Batcher::~Batcher() { Close(Clock::now()); }

void Batcher::Submit(const std::shared_ptr<Job>& job) {
  job->arrived_ = Clock::now();
  job->deadline_ = std::min(job->request.deadline, After(options_.timeout));
  absl::Status refused;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) {
      refused = absl::UnavailableError("the model is being unloaded");
    } else if (queue_.size() >= options_.max_waiting) {
      refused = absl::ResourceExhaustedError(
          StrCat("the model's queue is full: ", queue_.size(), " requests wait"));
    } else if (refused = Accept(*job); refused.ok()) {
      const auto behind = std::upper_bound(
          queue_.begin(), queue_.end(), job,
          [](const auto& a, const auto& b) { return a->request.priority < b->request.priority; });
      queue_.insert(behind, job);
      unfinished_.insert(job);
    }
    if (!refused.ok()) job->over_ = true;
  }
  if (!refused.ok()) return Tell(job, refused);
  changed_.notify_all();
  if (job->deadline_ != kNever) deadlines_.notify_one();
}

absl::Status Batcher::Accept(Job& job) {
  if (!sequences_) return absl::OkStatus();
  auto place = sequences_->Accept(job.request.sequence);
  if (place.ok()) job.place_ = *std::move(place);
  return place.status();
}

bool Batcher::End(const std::shared_ptr<Job>& job, bool failed) {
  if (job->over_) return false;
  job->over_ = true;
  unfinished_.erase(job);
  if (sequences_) sequences_->Leave(job->place_, failed);
  if (job->execution_ == nullptr) {
    queue_.erase(std::remove(queue_.begin(), queue_.end(), job), queue_.end());
  } else if (--job->execution_->left == 0) {
    job->execution_->cancellation.Cancel();
  }
  return true;
}

void Batcher::Tell(const std::shared_ptr<Job>& job, absl::StatusOr<InferResponse> outcome) {
  const auto now = Clock::now();
  statistics_->RequestDone(outcome.status(), now - job->arrived_,
                           std::min(job->taken_, now) - job->arrived_);
  const InferDone done = std::move(job->done_);
  job->done_ = nullptr;
  done(std::move(outcome));
}

void Batcher::Finish(const std::shared_ptr<Job>& job, absl::StatusOr<InferResponse> outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (!End(job, !outcome.ok())) return;
    // A sequence that becomes idle now may be the first to expire.
    if (sequences_ && After(options_.sequences->max_idle) < watched_until_) deadlines_.notify_one();
  }
  changed_.notify_all();
  Tell(job, std::move(outcome));
}

void Batcher::Cancel(const std::shared_ptr<Job>& job) {
  Finish(job, absl::CancelledError("the client went away"));
}

// Ends jobs whose deadline has passed, waiting or running, and sequences that were idle too long.
void Batcher::Watch() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const auto now = Clock::now();
    auto next = sequences_ ? sequences_->Expire(now) : kNever;
    JobList late;
    for (const auto& job : unfinished_) {
      if (job->deadline_ <= now)
        late.push_back(job);
      else
        next = std::min(next, job->deadline_);
    }
    if (!late.empty()) {
      lock.unlock();
      for (const auto& job : late) Finish(job, DeadlineError());
      lock.lock();
      continue;
    }
    watched_until_ = next;
    if (next == kNever)
      deadlines_.wait(lock);
    else
      deadlines_.wait_until(lock, next);
  }
}

std::deque<std::shared_ptr<Job>>::iterator Batcher::Runnable() {
  return std::find_if(queue_.begin(), queue_.end(), [&](const auto& job) { return CanRun(*job); });
}

std::shared_ptr<Job::Execution> Batcher::Take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return Runnable() != queue_.end() || stopped_; });
  const auto found = Runnable();
  if (found == queue_.end()) return nullptr;
  const std::shared_ptr<Job> first = *found;
  queue_.erase(found);
  auto cancellation = Cancellation::Create();
  auto execution = std::make_shared<Job::Execution>();
  if (cancellation.ok()) execution->cancellation = *cancellation;
  execution->jobs.push_back(first);
  execution->rows = first->rows;
  execution->left = 1;
  first->execution_ = execution;
  if (sequences_) sequences_->Hold(first->place_);
  ++executing_;
  if (options_.max_rows > 1) Gather(*execution, lock);
  for (const auto& job : execution->jobs) {
    if (!job->over_) job->taken_ = Clock::now();
  }
  return execution;
}

// Adds waiting jobs of the same key until the batch is full or the first job has waited for the
// maximum delay.
void Batcher::Gather(Job::Execution& execution, std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Job> first = execution.jobs[0];
  const auto until = std::min(first->arrived_ + options_.max_delay, first->deadline_);
  while (true) {
    bool full = false;
    for (auto it = queue_.begin(); it != queue_.end() && !full;) {
      const std::shared_ptr<Job> job = *it;
      if (job->key != first->key || !CanRun(*job)) {
        ++it;
        continue;
      }
      // A job that does not fit keeps its place ahead of later ones.
      full = execution.rows + job->rows > options_.max_rows;
      if (full) break;
      it = queue_.erase(it);
      job->execution_ = first->execution_;
      if (sequences_) sequences_->Hold(job->place_);
      execution.jobs.push_back(job);
      execution.rows += job->rows;
      ++execution.left;
    }
    if (full || execution.rows >= options_.max_rows || closing_ || execution.left == 0) return;
    if (Clock::now() >= until) return;
    changed_.wait_until(lock, until);
  }
}

void Batcher::Work(const std::string& device) {
  while (const auto execution = Take()) {
    Execute(device, execution);
    {
      const std::lock_guard lock(mutex_);
      --executing_;
      for (const auto& job : execution->jobs) {
        job->execution_ = nullptr;  // they refer to each other
        job->state_.clear();
        if (sequences_) sequences_->Release(job->place_);
      }
    }
    changed_.notify_all();
  }
}

void Batcher::Execute(const std::string& device, const std::shared_ptr<Job::Execution>& execution) {
  JobList jobs;
  std::vector<std::pair<std::shared_ptr<Job>, absl::Status>> broken;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& job : execution->jobs) {
      if (job->over_) continue;
      const absl::Status begun = Begin(*job);
      if (begun.ok())
        jobs.push_back(job);
      else
        broken.emplace_back(job, begun);
    }
  }
  for (const auto& [job, why] : broken) Finish(job, why);
  if (jobs.empty()) return;
  absl::Status status = RunJobs(device, jobs, execution->cancellation);
  if (status.ok()) return;
  // A request must not fail because of another one in its batch.
  if (jobs.size() > 1 && IsWorthRepeating(status)) {
    for (const auto& job : jobs) {
      const absl::Status alone = RunJobs(device, {job}, execution->cancellation);
      if (!alone.ok()) Finish(job, alone);
    }
    return;
  }
  for (const auto& job : jobs) Finish(job, status);
}

absl::Status Batcher::Begin(Job& job) {
  if (!sequences_) return absl::OkStatus();
  auto state = sequences_->StateFor(job.place_);
  if (state.ok()) job.state_ = *std::move(state);
  return state.status();
}

// The longest time that a job of the run has left, in ms; 0 for no limit.
int64_t Batcher::TimeoutOf(const JobList& jobs) const {
  auto latest = Clock::time_point::min();
  for (const auto& job : jobs) latest = std::max(latest, job->deadline_);
  if (latest == kNever) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(latest - Clock::now()).count();
  return std::max<int64_t>(left, 1);
}

absl::Status Batcher::RunJobs(const std::string& device, const JobList& jobs,
                              const Cancellation& cancellation) {
  const auto begin = Clock::now();
  auto inputs = Join(jobs);
  if (!inputs.ok()) return inputs.status();
  const std::vector<std::string> names = OutputsOf(*jobs[0]);
  const auto joined = Clock::now();
  const auto outputs = run_(device, *inputs, names, TimeoutOf(jobs), cancellation);
  if (!outputs.ok()) return outputs.status();
  const auto ran = Clock::now();
  std::vector<InferResponse> responses(jobs.size());
  absl::Status status = Divide(jobs, *outputs, responses);
  std::vector<absl::Status> kept(jobs.size());
  if (status.ok()) status = KeepState(jobs, names, *outputs, kept);
  if (!status.ok()) return status;
  int64_t rows = 0;
  for (const auto& job : jobs) rows += job->rows;
  const ExecutionTimes times{joined - begin, ran - joined, Clock::now() - ran};
  statistics_->Executed(jobs.size(), static_cast<uint64_t>(rows), times);
  for (size_t i = 0; i < jobs.size(); ++i) {
    responses[i].times = {begin - jobs[i]->arrived_, times.input, times.infer, times.output, rows};
    if (kept[i].ok())
      Finish(jobs[i], std::move(responses[i]));
    else
      Finish(jobs[i], kept[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<Batcher::Inputs> Batcher::Join(const JobList& jobs) const {
  const size_t given = jobs[0]->request.inputs.size();
  const auto input = [&](const Job& job, size_t i) -> const Tensor& {
    return i < given ? job.request.inputs[i].tensor : job.state_[i - given];
  };
  Inputs inputs;
  for (size_t i = 0; i < given + jobs[0]->state_.size(); ++i) {
    const std::string& name =
        i < given ? jobs[0]->request.inputs[i].name : options_.sequences->states[i - given].input;
    if (jobs.size() == 1) {
      inputs.emplace_back(name, input(*jobs[0], i));
      continue;
    }
    std::vector<Tensor> parts;
    int64_t rows = 0;
    for (const auto& job : jobs) {
      parts.push_back(input(*job, i));
      rows += job->rows;
    }
    auto joined = Concatenated(parts, rows);
    if (!joined.ok()) return joined.status();
    inputs.emplace_back(name, *std::move(joined));
  }
  return inputs;
}

// The requested outputs, and those that become the sequence's state.
std::vector<std::string> Batcher::OutputsOf(const Job& job) const {
  std::vector<std::string> names;
  for (const WantedOutput& wanted : job.request.outputs) names.push_back(wanted.name);
  if (!sequences_) return names;
  for (const StateTensor& state : sequences_->states()) {
    if (std::find(names.begin(), names.end(), state.output) == names.end())
      names.push_back(state.output);
  }
  return names;
}

absl::StatusOr<std::vector<Tensor>> Batcher::Parts(const JobList& jobs, const std::string& name,
                                                   const Tensor& output) const {
  if (jobs.size() == 1) return std::vector<Tensor>{output};
  int64_t rows = 0;
  for (const auto& job : jobs) rows += job->rows;
  const std::vector<int64_t> dims = output.dims();
  if (dims.empty() || dims[0] != rows) {
    return absl::InternalError(
        StrCat("output '", name, "' has ", dims.empty() ? 0 : dims[0], " rows for a batch of ",
               rows, ": its first axis is not a batch axis, and max_batch must be 1"));
  }
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (const auto& job : jobs) {
    auto part = Rows(output, first, job->rows);
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
    first += job->rows;
  }
  return parts;
}

absl::Status Batcher::Divide(const JobList& jobs, const std::vector<Tensor>& outputs,
                             std::vector<InferResponse>& responses) const {
  for (size_t o = 0; o < jobs[0]->request.outputs.size(); ++o) {
    auto parts = Parts(jobs, jobs[0]->request.outputs[o].name, outputs[o]);
    if (!parts.ok()) return parts.status();
    for (size_t j = 0; j < jobs.size(); ++j) {
      const WantedOutput& own = jobs[j]->request.outputs[o];
      responses[j].outputs.push_back(
          {own.name, std::move((*parts)[j]), own.binary, own.classes, own.into});
    }
  }
  return absl::OkStatus();
}

absl::Status Batcher::KeepState(const JobList& jobs, const std::vector<std::string>& names,
                                const std::vector<Tensor>& outputs,
                                std::vector<absl::Status>& kept) {
  if (!sequences_) return absl::OkStatus();
  std::vector<std::vector<Tensor>> states(jobs.size());
  for (const StateTensor& state : sequences_->states()) {
    const auto at = std::find(names.begin(), names.end(), state.output) - names.begin();
    auto parts = Parts(jobs, state.output, outputs[static_cast<size_t>(at)]);
    if (!parts.ok()) return parts.status();
    for (size_t j = 0; j < jobs.size(); ++j) {
      // A slice would keep the memory of the whole batch.
      absl::StatusOr<Tensor> own =
          jobs.size() == 1 ? absl::StatusOr<Tensor>((*parts)[j]) : Owned((*parts)[j]);
      if (!own.ok()) return own.status();
      states[j].push_back(*std::move(own));
    }
  }
  const std::lock_guard lock(mutex_);
  for (size_t j = 0; j < jobs.size(); ++j) {
    if (!jobs[j]->over_) kept[j] = sequences_->Keep(jobs[j]->place_, std::move(states[j]));
  }
  return absl::OkStatus();
}

void Batcher::Close(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  const auto idle = [&] { return unfinished_.empty() && executing_ == 0; };
  if (deadline == kNever)
    changed_.wait(lock, idle);
  else
    changed_.wait_until(lock, deadline, idle);
  const JobList left(unfinished_.begin(), unfinished_.end());
  lock.unlock();
  for (const auto& job : left)
    Finish(job, absl::UnavailableError("the model was unloaded before the request's turn"));
  lock.lock();
  changed_.wait(lock, idle);
  if (sequences_) sequences_->Clear();
  stopped_ = true;
  std::vector<std::thread> threads;
  threads.swap(threads_);
  lock.unlock();
  changed_.notify_all();
  deadlines_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

size_t Batcher::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

size_t Batcher::running() const {
  const std::lock_guard lock(mutex_);
  return unfinished_.size() - queue_.size();
}

SequenceCounts Batcher::sequences() const {
  const std::lock_guard lock(mutex_);
  return sequences_ ? sequences_->counts() : SequenceCounts();
}

}  // namespace oncilla::server
