// Takes samples of profiled and of plain runs, and averages them.
#include "tools/oncilla/commands/op_times.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "engine/ops/control.h"
#include "tools/oncilla/exit_code.h"

namespace oncilla::tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFewest = 5, kMost = 200;  // runs of each kind

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The data of one profiled run.
struct Sample {
  std::map<std::string, double> times_s;  // by node
  double kernels_s = 0;
};

class Sampler {
 public:
  Sampler(const OpenedModel& opened, const Executor& executor, const GraphWork& work)
      : names_(opened.session->device_set().names()) {
    const Graph& graph = executor.compiled().graph;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      Known& known = known_[node.name];
      known.op = node.op->name;
      if (i < work.nodes.size()) known.work = work.nodes[i];
    }
  }

  void Add(const RunReport& report) {
    Sample& sample = samples_.emplace_back();
    for (const StepProfile& step : report.stats.steps) {
      OpTime& op = ops_[step.node];
      op.node = step.node;
      op.op = step.op;
      op.kernel = step.kernel.substr(0, step.kernel.find('\n'));
      op.plain = op.kernel.starts_with("plain");  // by Kernel::description
      op.device = names_[static_cast<size_t>(step.device)];
      AddTime(sample, step.node, static_cast<double>(step.end_ns - step.start_ns) * 1e-9);
    }
    // Work of the host on tensors. Control flow is left out, because the steps of its bodies are
    // counted separately.
    for (const TraceSpan& span : report.stats.spans) {
      const auto known = known_.find(span.name);
      if (span.kind != TraceSpan::kHost || known == known_.end() || IsControl(known->second.op)) {
        continue;
      }
      OpTime& op = ops_[span.name];
      op.node = span.name;
      op.op = known->second.op;
      op.kernel = "plain, on the host";
      op.plain = true;
      op.device = names_[0];
      AddTime(sample, span.name, static_cast<double>(span.end_ns - span.begin_ns) * 1e-9);
    }
  }

  void Finish(OpTimes& times) {
    std::sort(samples_.begin(), samples_.end(),
              [](const Sample& a, const Sample& b) { return a.kernels_s < b.kernels_s; });
    samples_.resize((samples_.size() + 1) / 2);
    for (auto& [node, op] : ops_) {
      for (const Sample& sample : samples_) {
        const auto found = sample.times_s.find(node);
        if (found != sample.times_s.end()) op.time_s += found->second;
      }
      op.time_s /= static_cast<double>(samples_.size());
      times.kernels_s += op.time_s;
      if (const auto known = known_.find(node); known != known_.end()) op.work = known->second.work;
      times.ops.push_back(std::move(op));
    }
    std::stable_sort(times.ops.begin(), times.ops.end(),
                     [](const OpTime& a, const OpTime& b) { return a.time_s > b.time_s; });
    if (times.kernels_s <= 0) times.ops.clear();
  }

 private:
  struct Known {
    std::string_view op;
    NodeWork work;
  };

  static void AddTime(Sample& sample, const std::string& node, double time_s) {
    sample.times_s[node] += time_s;
    sample.kernels_s += time_s;
  }

  const std::span<const std::string> names_;
  std::map<std::string, Known> known_;  // of the graph, by name
  std::map<std::string, OpTime> ops_;
  std::vector<Sample> samples_;
};

void AddShares(const RunReport& report, std::map<std::string, DeviceShare>& sums) {
  for (const DeviceShare& share : SharesOf(report)) {
    DeviceShare& sum = sums[share.device];
    sum.device = share.device;
    sum.busy += share.busy;
    sum.copying += share.copying;
    sum.gaps += share.gaps;
    if (share.longest_gap_ns > sum.longest_gap_ns) {
      sum.longest_gap_ns = share.longest_gap_ns;
      sum.waited = share.waited;
    }
  }
}

double MeanOfQuickerHalf(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  samples.resize((samples.size() + 1) / 2);
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

}  // namespace

Result<OpTimes> TimeOps(const OpenedModel& opened, RunRequest request, const Executor& executor,
                        const GraphWork& work, double duration_s) {
  OpTimes times;
  Sampler sampler(opened, executor, work);
  std::vector<double> runs_s;
  const auto begin = Clock::now();
  while (runs_s.size() < kFewest || (runs_s.size() < kMost && Since(begin) < duration_s)) {
    request.profile = true;
    auto profiled = opened.model->Run(request);
    if (!profiled.ok()) return OfRun(profiled.status());
    sampler.Add(profiled->report);
    AddShares(profiled->report, times.shares);
    request.profile = false;
    const auto start = Clock::now();
    auto run = opened.model->Run(request);
    runs_s.push_back(Since(start));
    if (!run.ok()) return OfRun(run.status());
  }
  for (auto& [device, share] : times.shares) {
    const auto count = static_cast<double>(runs_s.size());
    share.busy /= count;
    share.copying /= count;
    share.gaps /= count;
  }
  times.run_s = MeanOfQuickerHalf(std::move(runs_s));
  sampler.Finish(times);
  return times;
}

std::vector<const OpTime*> PlainAbove(const OpTimes& times, double percent) {
  std::vector<const OpTime*> found;
  for (const OpTime& op : times.ops) {
    if (op.plain && 100 * times.share(op) > percent) found.push_back(&op);
  }
  return found;
}

}  // namespace oncilla::tool
