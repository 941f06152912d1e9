// Fallback: decides which failures a run may retry on another device, and retries them.
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

// InvalidArgument, with near names, for an entry of the chain that is not a device name. A device
// that does not exist is accepted.
Status CheckFallback(const FallbackPolicy& policy);

FallbackPolicy FallbackOnAll(std::vector<std::string> chain);

// The cause of a failure that another device might avoid; nothing for a failure that would occur on
// any device.
std::optional<FallbackCause> CauseOf(const Status& failure);

class Session;

// Retries of one model's runs, and the devices that earlier runs fell back to. Thread-safe.
class Fallbacks {
 public:
  // One attempt on a device. It sets `may_repeat` to false once it has changed state that a second
  // attempt would change again.
  using Attempt = std::function<Result<RunResult>(const std::string& device, bool& may_repeat)>;

  // Runs the request on its own device and, after failures that the policy names, on the devices of
  // its chain. When runs of one kind fell back because a device cannot do them, that is remembered:
  // the next ones use the later device at once, until the first device has more free memory than it
  // had then. Each new step is logged as a warning that names the `model`. The report lists the
  // steps.
  Result<RunResult> Run(Session& session, const std::string& model, const RunRequest& request,
                        const Attempt& attempt);
  // Forgets the remembered devices: nodes are placed anew.
  void Forget();

 private:
  struct Settled {
    std::string device;
    size_t next = 0;  // of the policy's chain
    std::vector<FallbackStep> steps;
    std::vector<std::pair<size_t, int64_t>> room;  // device and bytes
  };
  // `known` is set if this kind of run fell back before, which is logged only once.
  std::optional<Settled> Find(Session& session, const std::string& key, bool& known) const;
  void Settle(const std::string& key, Settled settled);

  mutable Mutex mutex_;
  std::map<std::string, Settled> settled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace oncilla
