// SharesScratch: an interface that a CpuKernel may implement too, whose scratch has a part per
// worker.
#pragma once

namespace oncilla::cpu {

class SharesScratch {
 public:
  virtual ~SharesScratch() = default;
  // To be called before scratch_bytes(): WorkersOf(args.threads) will not exceed `workers`.
  void SetWorkers(int workers) { workers_ = workers; }
  int workers() const { return workers_; }

 private:
  int workers_ = 1;
};

}  // namespace oncilla::cpu
