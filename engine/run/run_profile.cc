// Records submissions and converts their times to the host's clock.
#include "engine/run/run_profile.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace oncilla {

int64_t RunProfile::Now() const {
  if (!control_.profile) return 0;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void RunProfile::OnTransfer(int device, const EventPtr& event, int64_t asked_ns,
                            std::span<const Upload> up, std::span<const Download> down) {
  if (!control_.profile) return;
  Profiled& copy = profiled_.emplace_back();
  copy.device = device;
  copy.event = event;
  copy.asked_ns = asked_ns;
  copy.up_count = static_cast<int>(up.size());
  for (const Upload& u : up) copy.up_bytes += static_cast<int64_t>(u.from.size());
  for (const Download& d : down) copy.down_bytes += static_cast<int64_t>(d.to.size());
}

void RunProfile::OnPiece(int device, const Piece& piece, const EventPtr& event, int64_t asked_ns) {
  if (control_.profile) profiled_.push_back({device, &piece, event, asked_ns});
}

void RunProfile::OnWaited(int device, int64_t begin_ns) {
  if (!control_.profile) return;
  known_done_ns_[device] = Now();
  waits_.push_back({begin_ns, known_done_ns_[device]});
}

void RunProfile::ReportTo(RunStats& stats) const {
  for (const auto& [begin, end] : waits_) {
    stats.spans.push_back({TraceSpan::kHost, "wait", 0, begin, begin, end, 0});
  }
  for (size_t d = 0; control_.profile && d < devices_.size(); ++d) {
    ReportDevice(static_cast<int>(d), stats);
  }
}

// The offset from the device's clock to the host's. The first step must begin after it was
// submitted, and the last one must end before the host learned of it. The remaining freedom is
// divided between copies in and out by their bytes. The CPU's clock is the host's.
int64_t RunProfile::ClockShift(int device) const {
  if (devices_[device]->info().can_evaluate) return 0;
  int64_t submitted = 0, first = 0, last = 0, up = 0, down = 0;
  for (const Profiled& p : profiled_) {
    if (p.device != device) continue;
    const std::vector<StepTime> times = TimesOf(p);
    if (p.piece == nullptr && times.empty()) up += p.up_bytes, down += p.down_bytes;
    for (const StepTime& t : times) {
      if (t.end_ns == 0) continue;
      if (first == 0) first = t.start_ns, submitted = p.asked_ns;
      last = std::max(last, t.end_ns);
    }
  }
  if (first == 0) return 0;
  const int64_t least = submitted - first, most = known_done_ns_[device] - last;
  if (least >= most || up + down == 0) return std::min(least, most);
  const double share = static_cast<double>(up) / static_cast<double>(up + down);
  return least + static_cast<int64_t>(share * static_cast<double>(most - least));
}

// The times that the device reports for a submission; empty unless it reports all parts of a
// transfer.
std::vector<StepTime> RunProfile::TimesOf(const Profiled& p) const {
  if (!control_.stamps) return {};
  std::vector<StepTime> times = p.event->step_times();
  const auto told = [](const StepTime& t) { return t.end_ns != 0; };
  if (p.piece == nullptr && !std::all_of(times.begin(), times.end(), told)) times.clear();
  return times;
}

// Reports steps and copies with the times of the device's events. A copy without a time is placed
// between its known neighbours.
void RunProfile::ReportDevice(int device, RunStats& stats) const {
  const int64_t shift = ClockShift(device);
  const std::map<int, int64_t> live = LiveBytes(plan_, device);
  std::vector<TraceSpan> copies;
  int64_t before = 0;  // the end of the previous entry in the queue
  const auto settle = [&](int64_t next) {
    for (TraceSpan& copy : copies) {
      copy.end_ns = std::max(copy.begin_ns, next);
      stats.spans.push_back(std::move(copy));
    }
    copies.clear();
  };
  for (const Profiled& p : profiled_) {
    if (p.device != device) continue;
    if (p.piece == nullptr) {
      if (const std::vector<StepTime> times = TimesOf(p); !times.empty()) {
        settle(times.front().start_ns + shift);
        before = ReportStamped(p, times, shift, stats);
        continue;
      }
      for (const bool up : {true, false}) {
        const int64_t bytes = up ? p.up_bytes : p.down_bytes;
        if (bytes == 0) continue;
        copies.push_back({up ? TraceSpan::kUpload : TraceSpan::kDownload,
                          up ? "upload" : "download", device, p.asked_ns,
                          std::max(p.asked_ns, before), 0, bytes});
      }
      continue;
    }
    const Stretch& stretch = plan_.stretches[p.piece->stretch];
    bool first = true;
    for (const StepTime& t : p.event->step_times()) {
      const PlannedStep& step = stretch.steps[p.piece->first_step + t.step];
      const bool told = control_.stamps && t.end_ns != 0;
      const int64_t begin = told ? t.start_ns + shift : 0, end = told ? t.end_ns + shift : 0;
      if (told && first) settle(begin);
      first &= !told;
      before = std::max(before, end);
      stats.steps.push_back(ProfileOf(plan_, step, device, live, begin, end));
    }
  }
  settle(known_done_ns_[device]);
}

// Reports a transfer's copies, uploads first, as one slice per direction. Returns the end.
int64_t RunProfile::ReportStamped(const Profiled& p, const std::vector<StepTime>& times,
                                  int64_t shift, RunStats& stats) {
  int64_t end = 0;
  for (const bool up : {true, false}) {
    const int64_t bytes = up ? p.up_bytes : p.down_bytes;
    int64_t first = 0, last = 0;
    for (const StepTime& t : times) {
      if ((t.step < p.up_count) != up) continue;
      if (last == 0) first = t.start_ns;
      first = std::min(first, t.start_ns);
      last = std::max(last, t.end_ns);
    }
    if (last == 0) continue;
    end = std::max(end, last + shift);
    TraceSpan& span = stats.spans.emplace_back();
    span.kind = up ? TraceSpan::kUpload : TraceSpan::kDownload;
    span.name = up ? "upload" : "download";
    span.device = p.device;
    span.asked_ns = p.asked_ns;
    span.begin_ns = first + shift;
    span.end_ns = last + shift;
    span.bytes = bytes;
    span.by_device = true;
  }
  return end;
}

}  // namespace oncilla
