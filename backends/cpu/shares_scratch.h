// SharesScratch: an interface that a CpuKernel may implement too, whose scratch has a part for each
// worker.
#pragma once

namespace oncilla::cpu {

class SharesScratch {
 public:
  virtual ~SharesScratch() = default;
  // Before scratch_bytes() is asked for: WorkersOf(args.threads) will not be above it.
  void SetWorkers(int workers) { workers_ = workers; }
  int workers() const { return workers_; }

 private:
  int workers_ = 1;
};

}  // namespace oncilla::cpu
