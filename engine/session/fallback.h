// Fallback: what a failure means for a run that may go on with another device, and going on.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "engine/session/run_request.h"
#include "engine/session/session_options.h"

namespace oncilla {

// InvalidArgument, with near names, for an entry of the chain that is not a device name. The name
// of an absent device is accepted.
Status CheckFallback(const FallbackPolicy& policy);

FallbackPolicy FallbackOnAll(std::vector<std::string> chain);

// Why a run failed, where another device could do better; nothing for what would fail everywhere.
std::optional<FallbackCause> CauseOf(const Status& failure);

class Session;

// The runs of one model that may go on with other devices, and what they went on with. Thread-safe.
class Fallbacks {
 public:
  // One attempt on a device. It sets `may_repeat` to false once something has changed that a second
  // attempt would change again.
  using Attempt = std::function<Result<RunResult>(const std::string& device, bool& may_repeat)>;

  // The request's run on its own device, and after failures that the policy names on those of its
  // chain. What runs of one kind went on with because a device cannot do them is remembered: the
  // next goes there at once, until the device has more room than it had then. Each new step is a
  // warning in the log; `model` names the model there. The report lists the steps.
  Result<RunResult> Run(Session& session, const std::string& model, const RunRequest& request,
                        const Attempt& attempt);
  // Forgets what runs went on with: nodes are placed anew.
  void Forget();

 private:
  struct Settled {
    std::string device;
    size_t next = 0;  // of the policy's chain
    std::vector<FallbackStep> steps;
    std::vector<std::pair<size_t, int64_t>> room;  // device and bytes
  };
  // `known`: that this kind of run went on elsewhere before, which is told once.
  std::optional<Settled> Find(Session& session, const std::string& key, bool& known) const;
  void Settle(const std::string& key, Settled settled);

  mutable Mutex mutex_;
  std::map<std::string, Settled> settled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace oncilla
