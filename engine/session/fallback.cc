// Causes of failures by code and stage, and the attempts on other devices.
#include "engine/session/fallback.h"

#include <algorithm>
#include <iterator>

#include "engine/base/near_names.h"
#include "engine/placement/device_name.h"
#include "engine/session/run.h"
#include "engine/session/session.h"

namespace oncilla {

Status CheckFallback(const FallbackPolicy& policy) {
  const std::string words[] = {"auto", "cpu", "cpu:plain", "gpu", "gpu:0", "gpu:1"};
  for (const std::string& spec : policy.chain) {
    if (std::find(std::begin(words), std::end(words), spec) != std::end(words)) continue;
    const auto name = DeviceName::Parse(spec);
    if (!spec.empty() && name.ok()) continue;
    return WithStage(InvalidArgument("fallback: '", spec, "' is not a device name",
                                     DidYouMeanAmong(spec, words,
                                                     "auto, cpu, cpu:plain, gpu, gpu:1, .. and "
                                                     "TensorFlow's names of devices")),
                     Stage::kOptions);
  }
  return {};
}

FallbackPolicy FallbackOnAll(std::vector<std::string> chain) {
  FallbackPolicy policy;
  for (const auto& [cause, name] : kFallbackCauseNames) policy.on.insert(cause);
  policy.chain = std::move(chain);
  return policy;
}

std::optional<FallbackCause> CauseOf(const Status& failure) {
  const StatusDetails details = Details(failure);
  switch (failure.code()) {
    case Code::kNotFound:
      if (details.stage == Stage::kDevice) return FallbackCause::kNoDevice;
      return std::nullopt;
    case Code::kResourceExhausted:
      return details.stage == Stage::kRun ? FallbackCause::kRunOutOfMemory
                                          : FallbackCause::kLoadOutOfMemory;
    case Code::kUnavailable:
      // Files can be unavailable too; another device would not help.
      if (details.device.empty()) return std::nullopt;
      return FallbackCause::kDeviceLost;
    case Code::kUnimplemented:
      if (details.stage == Stage::kCompile) return FallbackCause::kUnsupported;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

namespace {

// Runs with the same key succeed or fail alike on a device.
std::string KindOf(const RunRequest& request, const FallbackPolicy& policy) {
  std::string key = request.device + '\n' + request.signature + '\n';
  for (const std::string& fetch : request.fetches) key += fetch + '\n';
  for (const std::string& target : request.targets) key += target + '\n';
  for (const std::string& device : policy.chain) key += device + '\n';
  for (const FallbackCause cause : policy.on) key += static_cast<char>(cause);
  for (const NamedTensor& feed : request.feeds) key += StrCat(feed.first, ' ', feed.second.desc());
  for (const auto& [name, value] : request.device_feeds) key += StrCat(name, ' ', value.desc());
  return key;
}

}  // namespace

Result<RunResult> Fallbacks::Run(Session& session, const std::string& model,
                                 const RunRequest& request, const Attempt& attempt) {
  const FallbackPolicy& policy =
      request.fallback.has_value() ? *request.fallback : session.options().fallback;
  DeviceSet& devices = session.device_set();
  const std::string key = policy.chain.empty() ? std::string() : KindOf(request, policy);
  bool known = false;  // whether a fallback of this kind of run was reported already
  Settled now;
  now.device = request.device;
  if (auto settled = Find(session, key, known)) now = *std::move(settled);
  std::vector<FallbackStep>& steps = now.steps;
  std::set<int> tried;
  for (const FallbackStep& step : steps) {
    if (const auto used = devices.Use(step.device); used.ok()) tried.insert(*used);
  }
  const bool settled = !steps.empty();
  bool lasts = true;
  // One attempt per device, until one succeeds or the policy has no further device.
  for (;;) {
    bool may_repeat = true;
    const std::string device = now.device;
    const auto on = devices.Use(device);
    const bool was_lost = on.ok() && !devices.CheckAlive(static_cast<size_t>(*on)).ok();
    auto result = attempt(device, may_repeat);
    if (result.ok()) {
      if (!steps.empty() && lasts && !settled) Settle(key, now);
      result->report.fallbacks = std::move(steps);
      if (result->report.fallbacks.empty() && request.device.empty() &&
          !devices.preferred_note().empty()) {
        result->report.fallbacks.push_back(
            {session.options().device, NotFound(devices.preferred_note())});
      }
      return result;
    }
    const Status failure = AfterFailure(session, result.status(), device);
    if (on.ok()) tried.insert(*on);
    steps.push_back(
        {device.empty() ? std::string(devices.names()[devices.preferred()]) : device, failure});
    const auto cause = CauseOf(failure);
    const bool goes_on = cause.has_value() && policy.on.count(*cause) != 0 && may_repeat;
    while (goes_on && now.next < policy.chain.size()) {
      const auto used = devices.Use(policy.chain[now.next]);
      if (used.ok() && tried.count(*used) == 0) break;
      ++now.next;
    }
    if (!goes_on || now.next == policy.chain.size()) {
      if (steps.size() == 1) return failure;
      std::string before;
      for (size_t i = 0; i + 1 < steps.size(); ++i) {
        before +=
            StrCat(i ? "; " : "", ShortDeviceName(steps[i].device), ": ", Message(steps[i].why));
      }
      return In(failure, StrCat(ShortDeviceName(device), ", after others (", before, ")"));
    }
    // A lost device is remembered by CheckAlive(), so it is not part of the lasting decision.
    lasts &= cause != FallbackCause::kDeviceLost;
    if (on.ok() && failure.code() == Code::kResourceExhausted) {
      const auto d = static_cast<size_t>(*on);
      now.room.emplace_back(d, devices.budget(d).available_bytes());
    }
    now.device = policy.chain[now.next++];
    session.runtime().log().Write(
        known || was_lost ? LogLevel::kInfo : LogLevel::kWarning,
        StrCat(model, ": going on with ", now.device, ": ", Message(failure)));
  }
}

std::optional<Fallbacks::Settled> Fallbacks::Find(Session& session, const std::string& key,
                                                  bool& known) const {
  MutexLock lock(&mutex_);
  const auto found = settled_.find(key);
  known = found != settled_.end();
  if (!known) return std::nullopt;
  for (const auto& [device, bytes] : found->second.room) {
    if (session.device_set().budget(device).available_bytes() > bytes) return std::nullopt;
  }
  return found->second;
}

void Fallbacks::Settle(const std::string& key, Settled settled) {
  constexpr size_t kMost = 1024;
  MutexLock lock(&mutex_);
  if (settled_.size() >= kMost) settled_.clear();
  settled_[key] = std::move(settled);
}

void Fallbacks::Forget() {
  MutexLock lock(&mutex_);
  settled_.clear();
}

}  // namespace oncilla
