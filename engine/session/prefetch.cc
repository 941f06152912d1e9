// Fills the buffer ahead of the runs, limited by its depth and by memory.
#include "engine/session/prefetch.h"

#include <exception>

#include "engine/base/caught.h"

namespace oncilla {

Result<std::unique_ptr<Prefetcher>> Prefetcher::Create(std::shared_ptr<Callable> callable,
                                                       FeedSource source, int depth) {
  if (depth < 1 || depth > 1024) {
    return WithStage(InvalidArgument("a prefetcher of depth ", depth), Stage::kOptions);
  }
  ONCILLA_ASSIGN(auto links, callable->FeedLinks());
  std::unique_ptr<Prefetcher> prefetcher(new Prefetcher(
      std::move(callable), std::move(source), static_cast<size_t>(depth), std::move(links)));
  try {
    prefetcher->thread_ = std::thread([p = prefetcher.get()] { p->Fill(); });
  } catch (const std::exception&) {  // no thread, or no memory for one
    return Exhausted("the system could not start a thread");
  }
  return prefetcher;
}

Prefetcher::Prefetcher(std::shared_ptr<Callable> callable, FeedSource source, size_t depth,
                       std::vector<std::shared_ptr<DeviceLink>> links)
    : callable_(std::move(callable)),
      source_(std::move(source)),
      depth_(depth),
      links_(std::move(links)) {}

Prefetcher::~Prefetcher() {
  {
    MutexLock lock(&mutex_);
    stops_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Prefetcher::Fill() {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      mutex_.Await(
          [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stops_ || ready_.size() < depth_; });
      if (stops_) return;
    }
    auto feeds = Fenced([&] { return Make(); });  // the application's code may throw
    MutexLock lock(&mutex_);
    putting_ = false;
    if (!feeds.ok()) failure_ = feeds.status();
    if (!feeds.ok() || !feeds->has_value()) {
      ended_ = true;
      return;
    }
    const auto keep = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // the mutex is held
      ready_.push_back(*std::move(*feeds));
      return Status();
    };
    if (Status kept = Fenced(keep); !kept.ok()) {
      failure_ = kept;
      ended_ = true;
      return;
    }
    ++out_;
  }
}

Result<std::optional<Prefetcher::Feeds>> Prefetcher::Make() {
  std::vector<Tensor> made(links_.size());
  ONCILLA_ASSIGN(const bool more, source_(made));
  if (!more) return std::optional<Feeds>();
  {
    MutexLock lock(&mutex_);
    putting_ = true;
  }
  Feeds feeds;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i].valid()) {
      return InvalidArgument("the source left feed ", i, " ('", callable_->options().feeds[i],
                             "') empty");
    }
    ONCILLA_ASSIGN(RunValue value, Put(made[i], links_[i].get()));
    feeds.push_back(std::move(value));
  }
  return std::optional<Feeds>(std::move(feeds));
}

Result<RunValue> Prefetcher::Put(const Tensor& feed, DeviceLink* link) {
  if (link == nullptr || feed.is_list() || feed.desc().bytes() == 0) return RunValue(feed);
  for (;;) {
    size_t freed = 0;
    {
      MutexLock lock(&mutex_);
      if (starved_) return RunValue(feed);
      freed = freed_;
    }
    auto there = link->Write(feed);
    if (there.ok()) return RunValue(*std::move(there));
    if (there.status().code() != Code::kResourceExhausted) return there.status();
    MutexLock lock(&mutex_);
    // If there is no set of feeds to wait for, the run itself must find the memory or report the
    // error.
    if (out_ == 0 && freed_ == freed) return RunValue(feed);
    ++waits_for_memory_;
    mutex_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stops_ || starved_ || freed_ != freed;
    });
    if (stops_) return Error(Code::kCancelled, "the prefetcher was closed");
  }
}

Result<std::optional<std::vector<RunValue>>> Prefetcher::Next(const CallOptions& options) {
  RunControl control;
  if (options.timeout.count() > 0) {
    control.deadline = std::chrono::steady_clock::now() + options.timeout;
  }
  control.cancel = options.cancel;
  Feeds feeds;
  {
    MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return ended_ || !ready_.empty();
    };
    if (!AwaitReady(mutex_, control, there)) {
      return In(MayGoOn(control), "waiting for the source");
    }
    if (ready_.empty()) {
      if (!failure_.ok()) return failure_;
      return std::optional<std::vector<RunValue>>();
    }
    feeds = std::move(ready_.front());
    ready_.pop_front();
  }
  // The run gets what remains of the time limit.
  CallOptions rest = options;
  const auto run = [&] {
    if (control.deadline != kNoDeadline) {
      const auto left = control.deadline - std::chrono::steady_clock::now();
      rest.timeout = std::max(std::chrono::ceil<std::chrono::milliseconds>(left),
                              std::chrono::milliseconds(1));
    }
    return Fenced([&] { return callable_->Run(feeds, rest); });
  };
  auto out = run();
  if (out.status().code() == Code::kResourceExhausted) {
    // Feeds that were uploaded ahead may hold the memory that is missing.
    if (Status back = BringBack(); back.ok()) out = run();
    MutexLock lock(&mutex_);
    starved_ = false;
  }
  feeds.clear();
  {
    MutexLock lock(&mutex_);
    --out_;
    ++freed_;
  }
  if (!out.ok()) return out.status();
  return std::optional<std::vector<RunValue>>(*std::move(out));
}

Status Prefetcher::BringBack() {
  MutexLock lock(&mutex_);
  starved_ = true;
  mutex_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !putting_; });
  for (Feeds& feeds : ready_) {
    for (RunValue& feed : feeds) {
      ONCILLA_ASSIGN(feed, feed.ToHost());
    }
  }
  return Status();
}

int64_t Prefetcher::waits_for_memory() const {
  MutexLock lock(&mutex_);
  return waits_for_memory_;
}

}  // namespace oncilla
