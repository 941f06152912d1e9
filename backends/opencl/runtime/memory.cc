// Views, and the commitment of fresh buffers.
#include "backends/opencl/runtime/memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace oncilla::opencl {
namespace {

// Whether the host could map `bytes` now. The mapping is removed at once.
bool HostHasRoom(size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return false;
  ::munmap(data, bytes);
  return true;
}

}  // namespace

Result<ClViewPtr> ClRegion::View(int64_t offset, int64_t bytes) {
  if (offset < 0 || bytes <= 0 || offset > this->bytes() - bytes || offset % alignment_ != 0) {
    return Internal("a view of ", bytes, " bytes at ", offset, " in a region of ", this->bytes(),
                    " with alignment ", alignment_);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<const ClView>& slot = views_[{offset, bytes}];
  if (ClViewPtr view = slot.lock()) return view;
  auto view = std::make_shared<ClView>();
  view->raw = buffer_.get();
  if (!sub_buffers_) {
    view->place = static_cast<cl_ulong>(offset);
  } else if (offset != 0 || bytes != this->bytes()) {
    ONCILLA_ASSIGN(view->owned, CreateSubBuffer(api_, buffer_.get(), static_cast<size_t>(offset),
                                                static_cast<size_t>(bytes)));
    view->raw = view->owned.get();
  }
  slot = view;
  if (views_.size() > prune_at_) {
    std::erase_if(views_, [](const auto& item) { return item.second.expired(); });
    prune_at_ = std::max<size_t>(64, 2 * views_.size());
  }
  return view;
}

bool ClRegion::InUse() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(views_.begin(), views_.end(),
                     [](const auto& item) { return !item.second.expired(); });
}

void ClRegion::Abandon() { buffer_.Abandon(); }

Result<ClRegion*> RegionOf(const BufferView& view) {
  auto* region = dynamic_cast<ClRegion*>(view.region);
  if (region == nullptr) return Internal("an operand is not in memory of an OpenCL device");
  if (view.offset < 0 || view.bytes < 0 || view.offset > region->bytes() - view.bytes) {
    return Internal("an operand of ", view.bytes, " bytes at ", view.offset,
                    " lies outside its region of ", region->bytes());
  }
  return region;
}

Result<Commitment> BeginCommit(const Api& api, cl_context context, cl_command_queue queue,
                               int64_t bytes, bool host_backed) {
  const auto size = static_cast<size_t>(bytes);
  if (host_backed && !HostHasRoom(size)) {
    return WithStage(Exhausted("the host has no ", bytes, " bytes for the device"), Stage::kDevice);
  }
  Commitment commitment;
  commitment.bytes = bytes;
  ONCILLA_ASSIGN(commitment.buffer, CreateBuffer(api, context, size));
  const cl_mem raw = commitment.buffer.get();
  const std::string what = commitment.what();
  ONCILLA_TRY(
      Check(api.EnqueueMigrateMemObjects(queue, 1, &raw, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                         nullptr, nullptr),
            what));
  // A migration may be deferred as well, but a write at each end needs the memory.
  static const char kZero[16] = {};
  const size_t piece = std::min(size, sizeof(kZero));
  cl_event last = nullptr;
  ONCILLA_TRY(Check(
      api.EnqueueWriteBuffer(queue, raw, CL_FALSE, 0, piece, kZero, 0, nullptr, nullptr), what));
  ONCILLA_TRY(Check(
      api.EnqueueWriteBuffer(queue, raw, CL_FALSE, size - piece, piece, kZero, 0, nullptr, &last),
      what));
  commitment.done = EventObject(api, last);
  commitment.since = std::chrono::steady_clock::now();
  ONCILLA_TRY(Check(api.Flush(queue), what));
  return commitment;
}

}  // namespace oncilla::opencl
