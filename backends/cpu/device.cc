// The CPU as a device: regions from mmap, queues that the waiting thread serves, kernels from the
// rows of the families.
//
// Submit only records the work. Wait does it, on the waiting thread with the help of the pool, so
// that a run needs no additional thread. A step that fails, or that is cut short because its run
// ends early, fails all work after it in its queue.
#include "backends/cpu/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>

#include "backends/cpu/instruction_set.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/packed_moves.h"
#include "backends/cpu/shares_scratch.h"
#include "engine/base/caught.h"
#include "engine/base/format.h"
#include "engine/base/free_memory.h"
#include "engine/base/thread_pool.h"
#include "engine/base/work_limits.h"
#include "engine/device/free_memory.h"

namespace oncilla::cpu {
namespace {

using Clock = std::chrono::steady_clock;

class MappedRegion : public Region {
 public:
  MappedRegion(void* data, int64_t bytes) : Region(bytes), data_(data) {}
  ~MappedRegion() override { munmap(data_, static_cast<size_t>(bytes())); }
  std::byte* host() const override { return static_cast<std::byte*>(data_); }

 private:
  void* data_;
};

// Memory from the application's own allocator.
class HostedRegion : public Region {
 public:
  HostedRegion(void* data, int64_t bytes, std::shared_ptr<const HostMemory> memory)
      : Region(bytes), data_(data), memory_(std::move(memory)) {}
  ~HostedRegion() override { memory_->release(data_, static_cast<size_t>(bytes())); }
  std::byte* host() const override { return static_cast<std::byte*>(data_); }

 private:
  void* data_;
  std::shared_ptr<const HostMemory> memory_;
};

class CpuRecording : public Recording {
 public:
  explicit CpuRecording(std::vector<Step> steps) : steps(std::move(steps)) {}
  const std::vector<Step> steps;
};

class CpuQueue;

class CpuEvent : public Event {
 public:
  std::vector<StepTime> step_times() const override { return times; }
  CpuQueue* queue = nullptr;
  bool done = false;
  Status status;
  std::vector<StepTime> times;
};

struct Work {
  std::shared_ptr<CpuEvent> event;
  const CpuRecording* recording = nullptr;
  std::vector<BufferView> externals;
  SubmitOptions options;
  std::vector<Upload> uploads;
  std::vector<Download> downloads;
  size_t next_step = 0;
};

class CpuQueue : public Queue {
 public:
  std::deque<Work> pending;
};

class CpuDevice : public Device, public TellsFreeMemory {
 public:
  CpuDevice(DeviceInfo info, const OpenOptions& options)
      : info_(std::move(info)),
        threads_(options.threads),
        plain_(options.plain),
        host_memory_(options.host_memory) {}

  const DeviceInfo& info() const override { return info_; }

  std::optional<FreeMemory> free_memory() const override {
    FreeMemory free;
    free.bytes = AvailableHostMemory(&free.source);
    if (free.bytes < 0) return std::nullopt;
    return free;
  }

  Status CanRun(const NodeView& node) const override { return Find(node).status(); }

  Result<Packing> PackingFor(const NodeView& node, int input) const override {
    ONCILLA_ASSIGN(const KernelRow* row, Find(node));
    if (row->packing != nullptr && !plain_) {
      ONCILLA_ASSIGN(CpuPacking packing, row->packing(node, input));
      if (packing.write == nullptr) return Packing{packing.name, packing.bytes, nullptr};
      return Packing{packing.name, packing.bytes,
                     [threads = threads_, write = std::move(packing.write)](
                         const Tensor& constant, std::span<std::byte> to) {
                       return write(threads, constant, to);
                     }};
    }
    return Packing{"dense", node.inputs[input].desc().bytes(), nullptr};
  }

  Result<std::unique_ptr<Kernel>> Prepare(const NodeView& node, const EarlyEnd&) override {
    return Fenced([&]() -> Result<std::unique_ptr<Kernel>> {
      ONCILLA_ASSIGN(auto kernel, MakeKernel(node, plain_));
      if (auto* shares = dynamic_cast<SharesScratch*>(kernel.get()); shares != nullptr) {
        shares->SetWorkers(WorkersOf(threads_));
      }
      return std::unique_ptr<Kernel>(std::move(kernel));
    });
  }

  Result<std::vector<Tensor>> Evaluate(const NodeView& node,
                                       std::span<const Tensor> inputs) override {
    return Fenced([&] { return EvaluateUnfenced(node, inputs); });
  }

  Result<std::unique_ptr<Region>> AllocateRegion(int64_t bytes, const EarlyEnd&) override {
    if (bytes <= 0) return InvalidArgument("a region of ", bytes, " bytes");
    if (host_memory_ != nullptr) {
      void* own = host_memory_->allocate(static_cast<size_t>(bytes), 64);
      if (own == nullptr) return Exhausted("the application's allocator has no ", bytes, " bytes");
      return std::unique_ptr<Region>(std::make_unique<HostedRegion>(own, bytes, host_memory_));
    }
    void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return Exhausted("the host has no ", bytes, " bytes to map");
    AskForLargePages(data, bytes);
    return std::unique_ptr<Region>(std::make_unique<MappedRegion>(data, bytes));
  }

  Status ReleaseRegion(std::unique_ptr<Region> region) override {
    region.reset();
    return Status();
  }

  Result<std::unique_ptr<Queue>> OpenQueue(const QueueOptions&) override {
    return std::unique_ptr<Queue>(std::make_unique<CpuQueue>());
  }

  Result<std::unique_ptr<Recording>> Record(std::vector<Step> steps) override {
    return std::unique_ptr<Recording>(std::make_unique<CpuRecording>(std::move(steps)));
  }

  Result<EventPtr> Submit(Queue& queue, const Recording& recording,
                          std::span<const BufferView> externals,
                          const SubmitOptions& options) override {
    Work work;
    work.recording = static_cast<const CpuRecording*>(&recording);
    work.externals.assign(externals.begin(), externals.end());
    work.options = options;
    return Add(static_cast<CpuQueue&>(queue), std::move(work));
  }

  Result<EventPtr> Transfer(Queue& queue, std::span<const Upload> uploads,
                            std::span<const Download> downloads) override {
    Work work;
    work.uploads.assign(uploads.begin(), uploads.end());
    work.downloads.assign(downloads.begin(), downloads.end());
    return Add(static_cast<CpuQueue&>(queue), std::move(work));
  }

  bool Poll(const EventPtr& event) override { return static_cast<CpuEvent&>(*event).done; }

  Status Wait(const EventPtr& event, Deadline deadline) override {
    auto& wanted = static_cast<CpuEvent&>(*event);
    while (!wanted.done) {
      if (deadline != kNoDeadline && Clock::now() >= deadline) {
        return Error(Code::kDeadlineExceeded, "the deadline passed before the work was done");
      }
      Advance(*wanted.queue);
    }
    return wanted.status;
  }

 private:
  Result<std::vector<Tensor>> EvaluateUnfenced(const NodeView& node,
                                               std::span<const Tensor> inputs) {
    ONCILLA_ASSIGN(const KernelRow* row, Find(node));
    std::vector<Tensor> in;
    Facts facts;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& t = inputs[i];
      // Most kernels read through typed pointers, but a view into a mapped file may be unaligned.
      in.push_back(!t.valid() || t.dtype() == DType::kString || t.aligned() || row->moves_alone
                       ? t
                       : Tensor::Copy(t.desc(), t.bytes()));
      facts.push_back(t.valid() ? Fact::Constant(in.back()) : Fact::Absent());
    }
    ONCILLA_ASSIGN(const Facts out_facts, node.op->infer(*node.attrs, facts));
    const NodeView known{node.op, node.attrs, facts, out_facts, node.name};
    if (RunsOnHost(*row, known)) {
      ONCILLA_TRY(CheckRoom(out_facts));
      return row->host(known, in);
    }
    std::vector<Tensor> out;
    for (const Fact& fact : out_facts) {
      if (!fact.fixed()) return Internal("the size of an output depends on data");
      ONCILLA_ASSIGN(Tensor t, Tensor::Allocate(fact.desc()));
      out.push_back(std::move(t));
    }
    ONCILLA_ASSIGN(auto kernel, MakeKernel(known, /*plain=*/true));
    std::vector<const std::byte*> in_data;
    std::vector<std::byte*> out_data;
    for (const Tensor& t : in) in_data.push_back(t.valid() ? t.bytes().data() : nullptr);
    for (Tensor& t : out) out_data.push_back(t.mutable_bytes().data());
    const NodeView view = kernel->node();
    const EarlyEnd* end = WorkScope::Current().end;
    ONCILLA_TRY(kernel->Run({view, in_data, out_data, nullptr, {threads_, end}}));
    ONCILLA_TRY(WorkLook::Ask());  // A run that ended early leaves `out` incomplete.
    return out;
  }

  // Host functions allocate their outputs themselves, so the known sizes are checked against the
  // limit first.
  static Status CheckRoom(const Facts& outputs) {
    HostCharge all;
    for (const Fact& fact : outputs) {
      if (!fact.fixed() || fact.kind != ValueKind::kTensor) continue;
      const TensorDesc desc = fact.desc();
      const bool strings = desc.dtype == DType::kString;
      ONCILLA_TRY(
          all.Grow(strings ? SaturatingMul(desc.elements(), sizeof(std::string)) : desc.bytes()));
    }
    return Status();
  }

  // A node whose outputs have no elements is skipped, including the kernel's checks (of indices,
  // for example). The OpenCL backend agrees: it launches nothing for such a node.
  static bool MakesNothing(const NodeView& node) {
    return !node.op->traits.has_effects && !node.outputs.empty() &&
           std::all_of(node.outputs.begin(), node.outputs.end(), [](const Fact& fact) {
             return fact.fixed() && fact.desc().elements() == 0;
           });
  }
  class NoWork : public CpuKernel {
   public:
    using CpuKernel::CpuKernel;
    std::string description() const override { return "nothing"; }
    Status Run(const Args&) const override { return Status(); }
  };

  static bool RunsOnHost(const KernelRow& row, const NodeView& node) {
    if (row.host == nullptr || row.plain == nullptr) return row.host != nullptr;
    auto is_string = [](const Fact& fact) { return fact.dtype == DType::kString; };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_string) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), is_string);
  }

  // Types that only store numbers are taken by rows that say so, and by rows that move elements.
  // For the latter, elements that share bytes are unpacked first (packed_moves.h). Host functions
  // have no such path: those that take such elements read them as they are stored.
  static Status CheckSmall(const KernelRow& row, const NodeView& node) {
    if (row.stored) return Status();
    auto check = [&](const Fact& fact) -> Status {
      const DTypeSet dtype = Set(fact.dtype) & kSmall;
      if (fact.absent() || dtype == 0) return Status();
      const bool fits = !IsPacked(fact.dtype) || row.plain != nullptr;
      if ((row.dtypes & dtype) != 0 && fits) return Status();
      return Unsupported("cpu has no ", node.op->name, " for ", fact.dtype);
    };
    for (const Fact& fact : node.inputs) ONCILLA_TRY(check(fact));
    for (const Fact& fact : node.outputs) ONCILLA_TRY(check(fact));
    return Status();
  }

  Result<const KernelRow*> Find(const NodeView& node) const {
    const KernelRow* row = FindKernel(node.op->name);
    if (row == nullptr) return Unsupported("cpu has no kernel for ", node.op->name);
    if (!node.inputs.empty() && !node.inputs[0].absent() &&
        node.inputs[0].kind == ValueKind::kTensor &&
        (row->dtypes & Set(node.inputs[0].dtype)) == 0) {
      return Unsupported("cpu has no ", node.op->name, " for ", node.inputs[0].dtype);
    }
    ONCILLA_TRY(CheckSmall(*row, node));
    if (row->can_run != nullptr) ONCILLA_TRY(row->can_run(node));
    return row;
  }

  Result<std::unique_ptr<CpuKernel>> MakeKernel(const NodeView& node, bool plain) const {
    ONCILLA_ASSIGN(const KernelRow* row, Find(node));
    if (RunsOnHost(*row, node)) return Internal(node.op->name, " runs on host tensors only");
    if (MakesNothing(node)) return std::make_unique<NoWork>(node);
    if (!row->stored && HasPacked(node)) return MakePackedMove(*row, node);
    if (row->fast != nullptr && !plain) {
      ONCILLA_ASSIGN(auto fast, row->fast(node));
      if (fast != nullptr) return fast;
    }
    return row->plain(node);
  }

  static Result<EventPtr> Add(CpuQueue& queue, Work work) {
    work.event = std::make_shared<CpuEvent>();
    work.event->queue = &queue;
    EventPtr event = work.event;
    queue.pending.push_back(std::move(work));
    return event;
  }

  // Runs one step of the work at the front of the queue.
  void Advance(CpuQueue& queue) {
    Work& work = queue.pending.front();
    Status status;
    bool finished = true;
    if (work.recording != nullptr && !work.recording->steps.empty()) {
      status = RunStep(work, work.recording->steps[work.next_step]);
      finished = ++work.next_step == work.recording->steps.size();
    }
    if (status.ok() && !finished) return;
    for (const Upload& u : work.uploads) std::memcpy(u.to.host(), u.from.data(), u.from.size());
    for (const Download& d : work.downloads) std::memcpy(d.to.data(), d.from.host(), d.to.size());
    work.event->done = true;
    work.event->status = status;
    queue.pending.pop_front();
    if (status.ok()) return;
    // All work that was queued behind the failure gets the same status, as on any device: a caller
    // may wait for the last event alone.
    for (Work& dropped : queue.pending) {
      dropped.event->done = true;
      dropped.event->status = status;
    }
    queue.pending.clear();
  }

  Status RunStep(Work& work, const Step& step) const {
    const auto& kernel = static_cast<const CpuKernel&>(*step.kernel);
    auto address = [&](const Operand& operand) -> std::byte* {
      const BufferView& view =
          operand.external >= 0 ? work.externals[operand.external] : operand.view;
      return view.region == nullptr ? nullptr : view.host();
    };
    absl::InlinedVector<const std::byte*, 8> in;
    absl::InlinedVector<std::byte*, 4> out;
    for (const Operand& o : step.inputs) in.push_back(address(o));
    for (const Operand& o : step.outputs) out.push_back(address(o));
    std::byte* scratch = step.scratch.region == nullptr ? nullptr : step.scratch.host();
    const int64_t start = work.options.profile ? Now() : 0;
    const NodeView view = kernel.node();
    Status status = Fenced([&] {
      return kernel.Run({view, in, out, scratch, {threads_, &work.options.end}});
    });
    if (work.options.profile) {
      work.event->times.push_back({static_cast<int>(work.next_step), start, Now()});
    }
    // A run that ended early reports that, whatever the kernel returned: its results are incomplete
    // and nobody reads them.
    ONCILLA_TRY(MayGoOn(work.options.end));
    if (status.ok()) return status;
    return WithNode(
        In(std::move(status), StrCat("node '", OneLine(step.node), "' (", view.op->name, ")")),
        step.node);
  }

  static int64_t Now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
        .count();
  }

  const DeviceInfo info_;
  ThreadPool* const threads_;
  const bool plain_;
  const std::shared_ptr<const HostMemory> host_memory_;
};

// The "model name" line of /proc/cpuinfo, if there is one.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "CPU";
}

std::vector<DeviceInfo> Discover(const DiscoverOptions&, std::vector<std::string>&) {
  DeviceInfo info;
  info.backend = "cpu";
  info.type = "CPU";
  info.name = ProcessorName();
  info.id = "cpu";
  info.memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  info.max_allocation_bytes = info.memory_bytes;
  info.compute_units = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  info.host_memory = true;
  info.can_evaluate = true;
  return {info};
}

Result<std::unique_ptr<Device>> Open(const DeviceInfo& info, const OpenOptions& options) {
  ONCILLA_TRY(LimitInstructionsAsAsked());
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(info, options));
}

}  // namespace

const Backend kBackend = {"cpu", &Discover, &Open};

}  // namespace oncilla::cpu
