// RunProfile: the clocks of one run of an instance. It records what is submitted and when, and at
// the end reports steps, copies and waits on the host's clock (RunStats). Without profiling it does
// nothing.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/run/instance_state.h"

namespace oncilla {

class RunProfile {
 public:
  RunProfile(const Plan& plan, std::span<Device* const> devices, const RunControl& control)
      : plan_(plan), devices_(devices), control_(control), known_done_ns_(devices.size()) {}

  // The host's clock in nanoseconds; 0 when not profiling.
  int64_t Now() const;
  // `asked_ns`: Now() before the submission. The piece must outlive the profile.
  void OnTransfer(int device, const EventPtr& event, int64_t asked_ns, std::span<const Upload> up,
                  std::span<const Download> down);
  void OnPiece(int device, const Piece& piece, const EventPtr& event, int64_t asked_ns);
  // Records that a wait for the device, which began at `begin_ns`, has ended.
  void OnWaited(int device, int64_t begin_ns);

  // To be called once, when all work is done.
  void ReportTo(RunStats& stats) const;

 private:
  // One submission of a profiled run; they are kept in order.
  struct Profiled {
    int device = 0;
    const Piece* piece = nullptr;  // null: a transfer
    EventPtr event;
    int64_t asked_ns = 0;
    int64_t up_bytes = 0, down_bytes = 0;
    int up_count = 0;  // in the event's times, steps from this index on are downloads
  };

  int64_t ClockShift(int device) const;
  std::vector<StepTime> TimesOf(const Profiled& p) const;
  void ReportDevice(int device, RunStats& stats) const;
  static int64_t ReportStamped(const Profiled& p, const std::vector<StepTime>& times, int64_t shift,
                               RunStats& stats);

  const Plan& plan_;
  const std::span<Device* const> devices_;
  const RunControl& control_;
  std::vector<Profiled> profiled_;
  std::vector<int64_t> known_done_ns_;              // [device]: when the last wait was over
  std::vector<std::pair<int64_t, int64_t>> waits_;  // begin and end
};

}  // namespace oncilla
