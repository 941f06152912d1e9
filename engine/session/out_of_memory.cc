// The steps of the out-of-memory policy, and the advice in its errors.
#include "engine/session/out_of_memory.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "engine/base/format.h"
#include "engine/compile/batch_split.h"
#include "engine/compile/plan_memory.h"
#include "engine/placement/device_name.h"
#include "engine/session/session.h"

namespace oncilla {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAdviceTime(40);

// The largest number of rows whose plan fits; `all` is the plan of all rows. If the time runs out,
// the result is DeadlineExceeded, and `rows_seen` is the largest number known to fit.
Result<int64_t> LargestBatch(Session& session, Executor& executor, std::span<const Tensor> feeds,
                             const BatchAxis& batch, const Plan& all, Clock::time_point deadline,
                             const EarlyEnd& end, int64_t* rows_seen) {
  *rows_seen = 0;
  // Memory grows almost linearly with the rows, so a line through two sizes is a good guess.
  ONCILLA_ASSIGN(const auto one, executor.PlanAlone(RowsOf(feeds, batch, 0, 1), end));
  int64_t guess = batch.size - 1;
  for (size_t d = 0; d < all.arenas.size(); ++d) {
    const auto device = static_cast<int>(d);
    const double least = static_cast<double>(one->arena_bytes(device));
    const double per_row = (static_cast<double>(all.arena_bytes(device)) - least) /
                           static_cast<double>(batch.size - 1);
    const double room = static_cast<double>(session.device_set().budget(d).available_bytes());
    if (per_row <= 0) continue;
    const double rows = 1 + std::max(room - least, 0.0) / per_row;
    guess = static_cast<int64_t>(std::min(static_cast<double>(guess), rows));
  }
  bool asked = false;  // so that even a slow machine tries the guess
  return LargestThatFits(
      batch.size,
      [&](int64_t rows) -> Result<bool> {
        if (asked && Clock::now() > deadline) {
          return Error(Code::kDeadlineExceeded, "no time left");
        }
        asked = true;
        bool fits;
        if (rows == 1) {
          fits = Fits(*one, session);
        } else {
          ONCILLA_ASSIGN(const auto plan, executor.PlanAlone(RowsOf(feeds, batch, 0, rows), end));
          fits = Fits(*plan, session);
        }
        if (fits) *rows_seen = rows;
        return fits;
      },
      guess);
}

// The feeds, if all of them are in host memory.
std::optional<std::vector<Tensor>> OnHost(std::span<const RunValue> feeds) {
  std::vector<Tensor> out;
  for (const RunValue& feed : feeds) {
    if (feed.on_device()) return std::nullopt;
    out.push_back(feed.host());
  }
  return out;
}

Result<std::vector<Tensor>> RunInParts(Session& session, Executor& executor,
                                       std::span<const Tensor> feeds, const RunControl& control,
                                       MemoryOutcome& outcome) {
  ONCILLA_ASSIGN(const BatchAxis batch, FindBatch(executor.compiled(), feeds));
  if (batch.size < 2) return Exhausted("it has ", batch.size, " rows");
  ONCILLA_TRY(
      CheckBatchIndependent(executor.compiled(), *session.device_set().devices()[0], feeds, batch));
  int64_t seen = 0;
  ONCILLA_ASSIGN(const auto all, executor.PlanAlone(feeds, control));
  ONCILLA_ASSIGN(const int64_t most, LargestBatch(session, executor, feeds, batch, *all,
                                                  Clock::time_point::max(), control, &seen));
  if (most == 0) return Exhausted("not even one row fits");
  // Parts as equal as possible: each distinct size needs a plan.
  const int64_t count = (batch.size + most - 1) / most;
  const int64_t rows = (batch.size + count - 1) / count;
  std::vector<std::vector<Tensor>> parts;
  for (int64_t first = 0; first < batch.size; first += rows) {
    const int64_t here = std::min(rows, batch.size - first);
    const std::vector<Tensor> part = RowsOf(feeds, batch, first, here);
    ONCILLA_ASSIGN(auto results, executor.Run(part, control));
    parts.push_back(std::move(results));
  }
  outcome.parts = static_cast<int>(parts.size());
  outcome.steps.push_back(StrCat("ran ", batch.size, " rows in ", parts.size(), " parts"));
  return JoinRows(parts);
}

}  // namespace

bool Fits(const Plan& plan, Session& session) {
  for (size_t d = 0; d < plan.arenas.size(); ++d) {
    std::vector<int64_t> blocks = plan.arenas[d].block_bytes;
    const int64_t results = d == 0 ? ResultBytes(plan) : 0;
    if (blocks.empty() && results == 0) continue;
    const Pool& pool = session.device_set().pool(d);
    std::sort(blocks.begin(), blocks.end(), std::greater<>());
    int64_t room = session.device_set().budget(d).available_bytes() - results;
    if (room < 0) return false;
    int64_t piece = pool.stats().largest_free_bytes;
    for (const int64_t block : blocks) {
      const int64_t bytes = pool.Rounded(block);
      int64_t& from = bytes <= piece ? piece : room;
      if (bytes > from) return false;
      from -= bytes;
    }
  }
  return true;
}

Status WithMemoryAdvice(Status failure, Session& session, Executor& executor,
                        std::span<const Tensor> feeds, const EarlyEnd& end) {
  const auto deadline = Clock::now() + kAdviceTime;
  const auto plan = executor.PlanAlone(feeds, end);
  if (!plan.ok()) return failure;
  std::string text;
  for (const PlanMemory& memory : MemoryOf(**plan)) {
    const auto& name = session.device_set().names()[static_cast<size_t>(memory.device)];
    text +=
        StrCat("; the run takes ", HumanBytes(session.memory().ArenaBytes(**plan, memory.device)),
               " on ", ShortDeviceName(name), ": ", PeakText(memory, 3));
    if (!memory.by_dtype.empty()) text += StrCat(" (", DTypesText(memory.by_dtype), ")");
  }
  if (!(*plan)->complete) text += "; more where sizes depend on data";
  const auto batch = FindBatch(executor.compiled(), feeds);
  if (batch.ok() && batch->size > 1) {
    int64_t seen = 0;
    const auto most = LargestBatch(session, executor, feeds, *batch, **plan, deadline, end, &seen);
    if (most.ok()) {
      text += *most > 0 ? StrCat("; of a batch of ", batch->size, " rows ", *most, " would fit")
                        : StrCat("; not even one of ", batch->size, " rows would fit");
    } else if (seen > 0) {
      text += StrCat("; of a batch of ", batch->size, " rows at least ", seen, " would fit");
    }
  }
  if (text.empty()) return failure;
  const StatusDetails details = Details(failure);
  Status out = Error(failure.code(), Message(failure), text);
  out = WithStage(std::move(out), details.stage == Stage::kUnknown ? Stage::kRun : details.stage);
  if (!details.node.empty()) out = WithNode(std::move(out), details.node);
  if (!details.device.empty()) out = WithDevice(std::move(out), details.device);
  return details.driver_code ? WithDriverCode(std::move(out), *details.driver_code) : out;
}

Result<std::vector<RunValue>> RunWithinMemory(Session& session, Executor& executor,
                                              std::span<const RunValue> feeds,
                                              const std::vector<bool>& keep,
                                              const RunControl& control,
                                              const OutOfMemoryPolicy& policy,
                                              MemoryOutcome& outcome) {
  const auto is_short = [](const Status& s) { return s.code() == Code::kResourceExhausted; };
  int64_t ended = session.memory().runs_under_way().ended();
  auto result = executor.RunValues(feeds, keep, control);
  if (result.ok() || !is_short(result.status())) return result;
  // A graph that changes variables must not run twice, so no step is tried for it.
  const bool once = executor.compiled().writes_variables;
  std::string tried;
  for (size_t s = 0; s < policy.steps.size() && !once; ++s) {
    switch (policy.steps[s]) {
      // Return empty regions and idle instances of all models, and try again.
      case OutOfMemoryStep::kTrim: {
        const int64_t bytes = session.memory().Trim().bytes;
        if (bytes == 0) break;
        outcome.steps.push_back(StrCat("gave back ", HumanBytes(bytes)));
        ended = session.memory().runs_under_way().ended();
        result = executor.RunValues(feeds, keep, control);
        break;
      }
      // Wait for other runs, whose memory becomes free when they end; try again after each one.
      case OutOfMemoryStep::kWait: {
        const auto begin = Clock::now();
        RunControl bounded = control;
        bounded.deadline = std::min(control.deadline, DeadlineAfter(begin, policy.wait));
        while (!result.ok() && is_short(result.status()) &&
               session.memory().runs_under_way().AwaitAnEnd(ended, bounded)) {
          ended = session.memory().runs_under_way().ended();
          session.memory().Trim();  // frees what the ended run keeps for the next one
          result = executor.RunValues(feeds, keep, control);
        }
        // Runs that wait for each other try again one at a time: each may hold what another needs.
        if (!result.ok() && is_short(result.status()) &&
            session.memory().runs_under_way().AwaitTurn(bounded)) {
          session.memory().Trim();
          result = executor.RunValues(feeds, keep, control);
          session.memory().runs_under_way().EndTurn();
        }
        const auto waited =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
        if (Status s = MayGoOn(control); !result.ok() && !s.ok()) {
          return WithStage(s, Stage::kRun);
        }
        if (result.ok()) outcome.steps.push_back(StrCat("waited ", waited, " ms"));
        tried += StrCat("; waited ", waited, " ms");
        break;
      }
      case OutOfMemoryStep::kFail:
        break;
      // Run the batch in parts; results and feeds must be in host memory, where rows can be cut.
      case OutOfMemoryStep::kSplit: {
        session.memory().Trim();
        const auto host = OnHost(feeds);
        const bool kept = std::find(keep.begin(), keep.end(), true) != keep.end();
        if (!host.has_value() || kept) {
          tried += StrCat("; the batch cannot be run in parts: some ",
                          kept ? "results stay" : "feeds are", " on a device");
          break;
        }
        auto parts = RunInParts(session, executor, *host, control, outcome);
        if (parts.ok()) return std::vector<RunValue>(parts->begin(), parts->end());
        const Code code = parts.status().code();
        if (!is_short(parts.status()) && code != Code::kFailedPrecondition) return parts.status();
        tried += StrCat("; the batch cannot be run in parts: ", Message(parts.status()));
        break;
      }
    }
    if (result.ok() || !is_short(result.status())) return result;
  }
  // Nothing helped: report the failure with what was tried and what would fit.
  const Status failure = result.status();
  const auto host = OnHost(feeds);
  const Status advised =
      host.has_value() ? WithMemoryAdvice(failure, session, executor, *host, control) : failure;
  if (tried.empty()) return advised;
  return In(advised, StrCat("out of memory", tried));
}

}  // namespace oncilla
