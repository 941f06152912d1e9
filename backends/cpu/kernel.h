// Kernels of the CPU backend: a typed function plus one row in its family's table.
//
//   Status Softmax(const SoftmaxAttrs& attrs, const Args& args);       // plain, exact: the truth
//   const KernelRow kRows[] = {Row<Softmax>("Softmax", kFloats)};
//
// Plain code accumulates in double (or exactly, for integers) in a fixed order. A heavy op has a
// fast path beside it (FastKernel), chosen at Prepare; the option "plain" never takes it. Ops on
// strings or with sizes that depend on data are host functions on tensors instead.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/early_end.h"
#include "engine/base/thread_pool.h"
#include "engine/device/device.h"
#include "engine/tensor/dtype_set.h"

namespace oncilla::cpu {

// Number of sums, or of elements examined, for which plain code takes about a millisecond.
inline constexpr int64_t kLongStretch = 1 << 20;

// A node whose facts are owned, so that a kernel can keep it.
class OwnedNode {
 public:
  explicit OwnedNode(const NodeView& node);
  NodeView view() const { return {op_, &attrs_, inputs_, outputs_, name_}; }

 private:
  const OpDef* op_;
  AttrMap attrs_;
  Facts inputs_, outputs_;
  std::string name_;
};

// The thread pool for a call, and what may end the call early.
class Threads {
 public:
  // A null pool: the calling thread works alone; a null end: never ends early. Both are borrowed.
  Threads(ThreadPool* pool = nullptr, const EarlyEnd* end = nullptr)  // NOLINT: a pool is enough
      : pool_(pool), end_(end) {}
  ThreadPool* pool() const { return pool_; }
  const EarlyEnd* end() const { return end_; }
  // True once the remaining work may be skipped, because its results will not be used. It stays
  // true.
  bool ended() const { return end_ != nullptr && end_->reached(); }

 private:
  ThreadPool* pool_;
  const EarlyEnd* end_;
};

// One call of a kernel. Data of plan inputs is read from their facts (Ints), never from a buffer;
// data of absent inputs is null.
struct Args {
  const NodeView& node;
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* scratch = nullptr;
  Threads threads;

  template <class T>
  const T* In(size_t i) const {
    return reinterpret_cast<const T*>(inputs[i]);
  }
  template <class T>
  T* Out(size_t i) const {
    return reinterpret_cast<T*>(outputs[i]);
  }
  bool has_input(size_t i) const { return node.has_input(i); }
  TensorDesc in(size_t i) const { return node.inputs[i].desc(); }
  TensorDesc out(size_t i) const { return node.outputs[i].desc(); }
  // The value of plan input i.
  Result<std::vector<int64_t>> Ints(size_t i, std::string_view what) const {
    return NeedInts(node.inputs[i], what);
  }
};

// Runs fn(begin, end) over [0, n) in chunks of `grain`, on the pool if there is one. Chunks do not
// depend on the pool, so sums kept per chunk are bit-identical. Once the call is to end early,
// chunks are skipped, here and in every later ParallelFor, and their results are not written: what
// a kernel then does with these must be safe whatever they are. A chunk should take a few
// milliseconds at most.
template <class F>
void ParallelFor(const Threads& threads, int64_t n, int64_t grain, F&& fn) {
  if (threads.pool() != nullptr) {
    threads.pool()->ParallelFor(
        n, grain, [&](int64_t begin, int64_t end, int) { fn(begin, end); }, threads.end());
  } else {
    for (int64_t i = 0; i < n && !threads.ended(); i += grain) fn(i, i + grain < n ? i + grain : n);
  }
}

// The same with fn(begin, end, worker): chunks that run at the same time have different workers,
// below WorkersOf(threads), so that each worker may have scratch memory of its own.
inline int WorkersOf(const Threads& threads) {
  return threads.pool() == nullptr ? 1 : threads.pool()->size();
}
template <class F>
void ParallelForWorkers(const Threads& threads, int64_t n, int64_t grain, F&& fn) {
  if (threads.pool() != nullptr) {
    threads.pool()->ParallelFor(n, grain, fn, threads.end());
  } else {
    ParallelFor(threads, n, grain, [&](int64_t begin, int64_t end) { fn(begin, end, 0); });
  }
}

// The grain of chunks of about a million sums, at most `most` items of `sums` each.
inline int64_t GrainOf(int64_t sums, int64_t most) {
  return std::clamp<int64_t>(kLongStretch / std::max<int64_t>(sums, 1), 1, most);
}

// For a loop that may take long within one chunk, or outside of any: `if (look.Ended(sums))
// return;`, where `sums` counts those since the last call. Checks for the end once in kLongStretch
// sums.
class Lookout {
 public:
  explicit Lookout(const Threads& threads) : threads_(threads) {}
  bool Ended(int64_t sums) {
    done_ += sums;
    if (done_ < kLongStretch) return false;
    done_ = 0;
    return threads_.ended();
  }

 private:
  const Threads threads_;
  int64_t done_ = 0;
};

class CpuKernel : public Kernel {
 public:
  explicit CpuKernel(const NodeView& node) : node_(node) {}
  NodeView node() const { return node_.view(); }
  virtual Status Run(const Args& args) const = 0;

 private:
  OwnedNode node_;
};

// The layout in which a fast kernel needs a constant: a Packing (engine/device/device.h) whose work
// is divided among threads.
struct CpuPacking {
  std::string name = "dense";
  int64_t bytes = 0;
  // Writes the packed form, which does not depend on the number of threads; null copies the bytes.
  std::function<Status(const Threads&, const Tensor& constant, std::span<std::byte> to)> write;
};

struct KernelRow {
  std::string_view op;
  DTypeSet dtypes = kAll;  // of input 0
  // Accepts types that only store numbers (kSmall) in their stored form, packed ones too. A row
  // that lists such types without setting this only moves elements, and gets packed ones as bytes
  // (packed_moves.h).
  bool stored = false;
  // One of `plain` and `host` is set, or both: then `host` handles the nodes with strings. The
  // outputs in the view passed to `host` are inferred from its inputs: fixed, unless their sizes
  // depend on data.
  Result<std::unique_ptr<CpuKernel>> (*plain)(const NodeView&) = nullptr;
  Result<std::vector<Tensor>> (*host)(const NodeView&, std::span<const Tensor>) = nullptr;
  // Null, or makes a faster kernel; a null result means "use the plain one".
  Result<std::unique_ptr<CpuKernel>> (*fast)(const NodeView&) = nullptr;
  // The layout in which the fast kernel needs constant input i; called only if `fast` may accept
  // the node.
  Result<CpuPacking> (*packing)(const NodeView&, int input) = nullptr;
  // Only moves elements, without reading them as numbers: inputs need no alignment.
  bool moves_alone = false;
  // Null, or a refusal beyond dtypes. May see partly known facts.
  Status (*can_run)(const NodeView&) = nullptr;
};

namespace internal {
// A typed plain function with its attributes read once.
template <auto Function>
class PlainKernel : public CpuKernel {
 public:
  using Attrs = oncilla::internal::AttrsOf<Function>;
  PlainKernel(const NodeView& node, Attrs attrs) : CpuKernel(node), attrs_(std::move(attrs)) {}
  Status Run(const Args& args) const override { return Function(attrs_, args); }
  std::string description() const override { return "plain"; }

 private:
  Attrs attrs_;
};

template <auto F>
Result<std::unique_ptr<CpuKernel>> MakePlain(const NodeView& node) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<oncilla::internal::AttrsOf<F>>(*node.attrs));
  return std::unique_ptr<CpuKernel>(std::make_unique<PlainKernel<F>>(node, std::move(attrs)));
}

template <auto F>
Result<std::vector<Tensor>> RunHost(const NodeView& node, std::span<const Tensor> inputs) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<oncilla::internal::AttrsOf<F>>(*node.attrs));
  return F(attrs, node, inputs);
}
}  // namespace internal

// Status F(const Attrs&, const Args&).
template <auto F>
constexpr KernelRow Row(std::string_view op, DTypeSet dtypes) {
  KernelRow row;
  row.op = op;
  row.dtypes = dtypes;
  row.plain = &internal::MakePlain<F>;
  return row;
}

// The same with a fast kernel beside it.
template <auto F>
constexpr KernelRow Row(std::string_view op, DTypeSet dtypes,
                        Result<std::unique_ptr<CpuKernel>> (*fast)(const NodeView&),
                        Result<CpuPacking> (*packing)(const NodeView&, int) = nullptr) {
  KernelRow row = Row<F>(op, dtypes);
  row.fast = fast;
  row.packing = packing;
  return row;
}

// Result<std::vector<Tensor>> F(const Attrs&, const NodeView&, std::span<const Tensor> inputs).
template <auto F>
constexpr KernelRow HostRow(std::string_view op, DTypeSet dtypes) {
  KernelRow row;
  row.op = op;
  row.dtypes = dtypes;
  row.host = &internal::RunHost<F>;
  return row;
}

// A plain function, and a host function for the nodes with strings.
template <auto Plain, auto Host>
constexpr KernelRow BothRow(std::string_view op, DTypeSet dtypes) {
  KernelRow row = Row<Plain>(op, dtypes);
  row.host = &internal::RunHost<Host>;
  return row;
}

// Null if the backend does not have the op.
const KernelRow* FindKernel(std::string_view op);

// The tables of the families (engine/ops/families.inc), each at the end of its family's file.
#define FAMILY_own(word) std::span<const KernelRow> word##Kernels();
#define FAMILY_none(word)
#define FAMILY(word, ops, cpu, opencl) FAMILY_##cpu(word)
#include "engine/ops/families.inc"
#undef FAMILY_own
#undef FAMILY_none

}  // namespace oncilla::cpu
