// The plans of an executor: found by key, made, kept for later runs, and their instances.
#include <algorithm>

#include "engine/base/caught.h"
#include "engine/compile/plan_memo.h"
#include "engine/memory/host_account.h"
#include "engine/run/executor.h"
#include "engine/run/executor_entry.h"

namespace oncilla {

namespace {

// Keys are built for every run, in loops for every iteration, so they are bytes rather than text.
void AppendNumber(std::string& key, int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendFact(std::string& key, const Fact& fact) {
  key.push_back(static_cast<char>(fact.kind));
  key.push_back(static_cast<char>(fact.dtype));
  key.push_back(static_cast<char>(fact.shape.ranked() ? fact.shape.rank() : -1));
  if (!fact.shape.ranked()) return;
  for (const Dim& dim : fact.shape.dims()) {
    AppendNumber(key, dim.size);
    if (dim.known()) continue;
    AppendNumber(key, static_cast<int64_t>(dim.name.size()));
    key += dim.name;
  }
}

}  // namespace

std::string Executor::KeyOf(const SegmentStart& start) const {
  std::string key(start.done.begin(), start.done.end());
  key.append(start.keep.begin(), start.keep.end());
  for (const auto& [id, device] : start.on_device) {
    AppendNumber(key, Index(id));
    AppendNumber(key, device);
  }
  for (const auto& [id, fact] : start.available) {
    AppendNumber(key, Index(id));
    AppendFact(key, fact);
    if (!fact.has_value()) continue;
    if (fact.dtype == DType::kString) {
      for (const std::string& s : fact.value.strings()) {
        AppendNumber(key, static_cast<int64_t>(s.size()));
        key += s;
      }
    } else {
      key.append(reinterpret_cast<const char*>(fact.value.bytes().data()),
                 fact.value.bytes().size());
    }
  }
  return key;
}

bool Executor::LastFeed::IsLike(const RunValue& feed) const {
  if (feed.on_device() || feed.host().is_list() != is_list) return false;
  if (is_list) {
    std::string other;
    AppendFact(other, Fact::Of(feed.host()));
    return element == other;
  }
  if (feed.host().desc() != desc) return false;
  return !contents.valid() || std::ranges::equal(contents.bytes(), feed.host().bytes());
}

Executor::EntryPtr Executor::LastIfSame(std::span<const RunValue> feeds,
                                        const std::vector<bool>& keep) {
  MutexLock lock(&mutex_);
  if (last_.entry == nullptr || last_.keep != keep || last_.feeds.size() != feeds.size()) {
    return nullptr;
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (!last_.feeds[i].IsLike(feeds[i])) return nullptr;
  }
  return last_.entry;
}

void Executor::RememberLast(std::span<const RunValue> feeds, const std::vector<bool>& keep,
                            const EntryPtr& entry) {
  LastRun last = {{}, keep, entry};
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (feeds[i].on_device()) return;
    const Tensor& feed = feeds[i].host();
    LastFeed known = {feed.desc(), feed.is_list(), {}, {}};
    if (feed.is_list()) {
      AppendFact(known.element, Fact::Of(feed));
    } else if (compiled_->fixes_shapes[Index(compiled_->graph.inputs()[i].value)]) {
      if (feed.dtype() == DType::kString) return;
      known.contents = Tensor::Copy(feed.desc(), feed.bytes());
    }
    last.feeds.push_back(std::move(known));
  }
  MutexLock lock(&mutex_);
  const auto kept = by_key_.find(entry->key);
  if (kept == by_key_.end() || *kept->second != entry) return;  // another run has dropped it
  std::swap(last_, last);  // the other one is destroyed after the lock is released
}

void Executor::Remember(std::shared_ptr<const PlanMemo> memo) {
  constexpr size_t kMostMemos = 4;  // segments of one graph
  std::erase_if(memos_, [&](const auto& other) { return other->begun == memo->begun; });
  memos_.push_front(std::move(memo));
  if (memos_.size() > kMostMemos) memos_.pop_back();
}

Result<Executor::EntryPtr> Executor::FindOrMake(const SegmentStart& start, PlanOptions options) {
  std::string key = KeyOf(start);
  Status refused;
  {
    MutexLock lock(&mutex_);
    if (auto it = by_key_.find(key); it != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return *it->second;
    }
    const auto it = std::ranges::find(refused_, key, &Refusal::key);
    if (it != refused_.end()) refused = it->why;
    const auto memo = std::ranges::find(memos_, start.done, &PlanMemo::begun);
    if (memo != memos_.end()) options.earlier = *memo;
  }
  // The plan is made without the lock. Two runs may make the same plan; the second one is dropped.
  const auto unchanged = [&] {
    return options_.constants_unchanged ? options_.constants_unchanged() : Status();
  };
  ONCILLA_TRY(unchanged());
  if (!refused.ok()) return refused;
  auto made = MakePlan(compiled_, devices_, start, options);
  ONCILLA_TRY(unchanged());  // a changed file may be why the plan failed
  if (!made.ok()) {
    MutexLock lock(&mutex_);
    ++counters_.plans_refused;
    // Only this failure depends on nothing but the graph and the key. Others need not recur, such
    // as a lack of memory or a passed deadline.
    if (made.status().code() == Code::kInvalidArgument) {
      refused_.push_front({std::move(key), made.status()});
      if (refused_.size() > options_.max_plans) refused_.pop_back();
    }
    return made.status();
  }
  ONCILLA_ASSIGN(std::shared_ptr<Plan> plan, std::move(made));
  std::shared_ptr<const PlanMemo> memo = std::exchange(plan->memo, nullptr);
  auto entry = std::make_shared<Entry>();
  entry->key = key;
  entry->plan = std::move(plan);
  std::vector<EntryPtr> dropped;  // their memory is freed after the lock is released
  MutexLock lock(&mutex_);
  ++counters_.plans_made;
  Remember(std::move(memo));
  if (auto it = by_key_.find(key); it != by_key_.end()) return *it->second;
  entries_.push_front(entry);
  by_key_[std::move(key)] = entries_.begin();
  while (entries_.size() > options_.max_plans) {
    by_key_.erase(entries_.back()->key);
    if (last_.entry == entries_.back()) last_.entry = nullptr;
    dropped.push_back(std::move(entries_.back()));
    entries_.pop_back();
  }
  counters_.plans_kept = entries_.size();
  return entry;
}

Result<std::shared_ptr<const Plan>> Executor::FindOrMakePlan(const SegmentStart& start,
                                                             const PlanProgress& progress) {
  ONCILLA_ASSIGN(const EntryPtr entry, FindOrMake(start, {.progress = progress}));
  return entry->plan;
}

Result<std::unique_ptr<Instance>> Executor::Acquire(Entry& entry, const RunControl& control) {
  {
    MutexLock lock(&mutex_);
    ONCILLA_TRY(LookAfterLate(control));
    auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !entry.idle.empty() || entry.alive < options_.max_instances;
    };
    if (!AwaitReady(mutex_, control, free)) {
      return In(MayGoOn(control),
                StrCat("while all ", options_.max_instances, " instances of the plan were busy"));
    }
    if (!entry.idle.empty()) {
      auto instance = std::move(entry.idle.back());
      entry.idle.pop_back();
      return instance;
    }
    ++entry.alive;
    ++counters_.instances_made;
  }
  // Fenced, so that even after an exception `alive` counts the instances correctly.
  const auto make = [&] {
    const InstanceOptions options{pools_, owner_, options_.links, options_.abandoned_bytes,
                                  results_};
    return Instance::Create(entry.plan, devices_, options, control);
  };
  auto instance = Fenced(make);
  if (!instance.ok() && instance.status().code() == Code::kResourceExhausted) {
    // Idle instances of other plans may hold the memory that is missing; free them and try once
    // more.
    if (Fenced([&] { return DropIdle(), Status(); }).ok()) instance = Fenced(make);
  }
  if (!instance.ok()) {
    MutexLock lock(&mutex_);
    --entry.alive;
  }
  return instance;
}

void Executor::Release(Entry& entry, std::unique_ptr<Instance> instance, bool reusable) {
  MutexLock lock(&mutex_);
  if (reusable) {
    entry.idle.push_back(std::move(instance));
    return;
  }
  --entry.alive;
  if (!instance->Idle()) {
    quarantine_.push_back({std::move(instance), std::chrono::steady_clock::now()});
  }
}

Status Executor::LookAfterLate(const RunControl& control) {
  std::erase_if(quarantine_, [](const Late& late) { return late.instance->Idle(); });
  for (const Late& late : quarantine_) {
    const Status waited = MayWait({.watchdog = control.watchdog}, late.since, "an earlier run");
    if (waited.ok()) continue;
    const auto device = static_cast<size_t>(late.instance->BusyDevice());
    return WithDevice(waited, compiled_->placement.devices[device]);
  }
  return Status();
}

void Executor::DropIdle() {
  for (const auto& [name, function] : functions_) function->DropIdle();
  CloseLines(/*all=*/false);
  results_->Clear();
  std::vector<std::unique_ptr<Instance>> dropped;
  MutexLock lock(&mutex_);
  for (const EntryPtr& entry : entries_) {
    entry->alive -= static_cast<int>(entry->idle.size());
    for (auto& instance : entry->idle) dropped.push_back(std::move(instance));
    entry->idle.clear();
  }
  memos_.clear();
}

Result<std::shared_ptr<const Plan>> Executor::PlanAlone(std::span<const Tensor> feeds,
                                                        const EarlyEnd& end) {
  const CountedWork counted(*pools_[0], owner_, nullptr);
  std::vector<RunValue> values(feeds.begin(), feeds.end());
  ONCILLA_ASSIGN(const SegmentStart start, Start(values, {}));
  ONCILLA_ASSIGN(std::shared_ptr<const Plan> plan,
                 MakePlan(compiled_, devices_, start, {.end = end, .arena_work = 0}));
  return plan;
}

std::vector<Executor::KeptPlan> Executor::KeptPlans() const {
  std::vector<KeptPlan> plans;
  {
    MutexLock lock(&mutex_);
    for (const EntryPtr& entry : entries_) {
      plans.push_back({entry->plan, entry->alive, static_cast<int>(entry->idle.size())});
    }
  }
  for (const auto& [name, function] : functions_) {
    for (KeptPlan& plan : function->KeptPlans()) plans.push_back(std::move(plan));
  }
  return plans;
}

ExecutorCounters Executor::counters() const {
  ExecutorCounters sum;
  {
    MutexLock lock(&mutex_);
    sum = counters_;
  }
  for (const auto& [name, function] : functions_) {
    const ExecutorCounters c = function->counters();
    sum.plans_made += c.plans_made;
    sum.plans_refused += c.plans_refused;
    sum.instances_made += c.instances_made;
    sum.plans_kept += c.plans_kept;
  }
  return sum;
}

}  // namespace oncilla
