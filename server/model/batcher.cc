// The queue, its workers and its watch.
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
  // The copy of the handle keeps the memory.
  auto rows =
      Tensor::Wrap(tensor.dtype(), dims, data, row_bytes * static_cast<size_t>(count), [tensor] {});
  if (!rows.ok()) return FromEngine(rows.status());
  return *std::move(rows);
}

// One input of several jobs behind each other; `rows` in all.
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

// A run on its way: the jobs that it serves, of which `left` still want its result.
struct Job::Execution {
  std::vector<std::shared_ptr<Job>> jobs;
  int64_t rows = 0;
  size_t left = 0;  // guarded by the batcher's mutex
  Cancellation cancellation;
};

Batcher::Batcher(BatcherOptions options, Run run, StatisticsRecorder* statistics)
    : options_(std::move(options)), run_(std::move(run)), statistics_(statistics) {
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
    } else {
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

bool Batcher::End(const std::shared_ptr<Job>& job) {
  if (job->over_) return false;
  job->over_ = true;
  unfinished_.erase(job);
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
    if (!End(job)) return;
  }
  changed_.notify_all();
  Tell(job, std::move(outcome));
}

void Batcher::Cancel(const std::shared_ptr<Job>& job) {
  Finish(job, absl::CancelledError("the client went away"));
}

// Ends jobs whose time is over, whether they wait or run.
void Batcher::Watch() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const auto now = Clock::now();
    auto next = kNever;
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
    if (next == kNever)
      deadlines_.wait(lock);
    else
      deadlines_.wait_until(lock, next);
  }
}

std::shared_ptr<Job::Execution> Batcher::Take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !queue_.empty() || stopped_; });
  if (queue_.empty()) return nullptr;
  auto cancellation = Cancellation::Create();
  auto execution = std::make_shared<Job::Execution>();
  if (cancellation.ok()) execution->cancellation = *cancellation;
  execution->jobs.push_back(queue_.front());
  execution->rows = queue_.front()->rows;
  execution->left = 1;
  queue_.front()->execution_ = execution;
  queue_.pop_front();
  ++executing_;
  if (options_.max_rows > 1) Gather(*execution, lock);
  for (const auto& job : execution->jobs) {
    if (!job->over_) job->taken_ = Clock::now();
  }
  return execution;
}

// Adds waiting jobs of the same key until the batch is full or the first job has waited long
// enough.
void Batcher::Gather(Job::Execution& execution, std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Job> first = execution.jobs[0];
  const auto until = std::min(first->arrived_ + options_.max_delay, first->deadline_);
  while (true) {
    bool full = false;
    for (auto it = queue_.begin(); it != queue_.end() && !full;) {
      const std::shared_ptr<Job> job = *it;
      if (job->key != first->key) {
        ++it;
        continue;
      }
      // One that does not fit keeps its place before later ones.
      full = execution.rows + job->rows > options_.max_rows;
      if (full) break;
      it = queue_.erase(it);
      job->execution_ = first->execution_;
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
      for (const auto& job : execution->jobs)
        job->execution_ = nullptr;  // they refer to each other
    }
    changed_.notify_all();
  }
}

void Batcher::Execute(const std::string& device, const std::shared_ptr<Job::Execution>& execution) {
  JobList jobs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& job : execution->jobs) {
      if (!job->over_) jobs.push_back(job);
    }
  }
  if (jobs.empty()) return;
  absl::Status status = RunJobs(device, jobs, execution->cancellation);
  if (status.ok()) return;
  // One request must not fail others because they happened to meet in a batch.
  if (jobs.size() > 1 && IsWorthRepeating(status)) {
    for (const auto& job : jobs) {
      const absl::Status alone = RunJobs(device, {job}, execution->cancellation);
      if (!alone.ok()) Finish(job, alone);
    }
    return;
  }
  for (const auto& job : jobs) Finish(job, status);
}

// The longest time that a job of the run still has, in ms; 0: no limit.
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
  std::vector<std::string> names;
  for (const WantedOutput& wanted : jobs[0]->request.outputs) names.push_back(wanted.name);
  const auto joined = Clock::now();
  const auto outputs = run_(device, *inputs, names, TimeoutOf(jobs), cancellation);
  if (!outputs.ok()) return outputs.status();
  const auto ran = Clock::now();
  std::vector<InferResponse> responses(jobs.size());
  const absl::Status status = Divide(jobs, *outputs, responses);
  if (!status.ok()) return status;
  int64_t rows = 0;
  for (const auto& job : jobs) rows += job->rows;
  const ExecutionTimes times{joined - begin, ran - joined, Clock::now() - ran};
  statistics_->Executed(jobs.size(), static_cast<uint64_t>(rows), times);
  for (size_t i = 0; i < jobs.size(); ++i) {
    responses[i].times = {begin - jobs[i]->arrived_, times.input, times.infer, times.output, rows};
    Finish(jobs[i], std::move(responses[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<Batcher::Inputs> Batcher::Join(const JobList& jobs) const {
  Inputs inputs;
  for (size_t i = 0; i < jobs[0]->request.inputs.size(); ++i) {
    const NamedTensor& first = jobs[0]->request.inputs[i];
    if (jobs.size() == 1) {
      inputs.emplace_back(first.name, first.tensor);
      continue;
    }
    std::vector<Tensor> parts;
    int64_t rows = 0;
    for (const auto& job : jobs) {
      parts.push_back(job->request.inputs[i].tensor);
      rows += job->rows;
    }
    auto joined = Concatenated(parts, rows);
    if (!joined.ok()) return joined.status();
    inputs.emplace_back(first.name, *std::move(joined));
  }
  return inputs;
}

absl::Status Batcher::Divide(const JobList& jobs, const std::vector<Tensor>& outputs,
                             std::vector<InferResponse>& responses) const {
  int64_t rows = 0;
  for (const auto& job : jobs) rows += job->rows;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const WantedOutput& wanted = jobs[0]->request.outputs[o];
    const std::vector<int64_t> dims = outputs[o].dims();
    if (jobs.size() > 1 && (dims.empty() || dims[0] != rows)) {
      return absl::InternalError(StrCat(
          "output '", wanted.name, "' has ", dims.empty() ? 0 : dims[0], " rows for a batch of ",
          rows, ": its first axis is no batch axis, and max_batch must be 1"));
    }
    int64_t first = 0;
    for (size_t j = 0; j < jobs.size(); ++j) {
      const WantedOutput& own = jobs[j]->request.outputs[o];
      Tensor part = outputs[o];
      if (jobs.size() > 1) {
        auto rows_of_job = Rows(outputs[o], first, jobs[j]->rows);
        if (!rows_of_job.ok()) return rows_of_job.status();
        part = *std::move(rows_of_job);
        first += jobs[j]->rows;
      }
      responses[j].outputs.push_back({own.name, std::move(part), own.binary, own.into});
    }
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

}  // namespace oncilla::server
