// Memory of an OpenCL device: regions are buffers; views are sub-buffers, created on first request
// and shared while they are used.
//
// OpenCL knows no pointers into a buffer and no sub-buffer of a sub-buffer; a view must begin at a
// multiple of the device's base alignment. Whole regions are viewed as the buffer itself; where
// sub-buffers cannot be used (places.h), all views are. Commands on overlapping views are ordered
// by the one in-order queue that an arena belongs to.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/opencl/runtime/cl_objects.h"
#include "engine/device/device.h"

namespace oncilla::opencl {

// A buffer object to pass to a kernel. Keeps its region in use.
struct ClView {
  cl_mem raw = nullptr;
  cl_ulong place = 0;  // the offset in bytes within `raw`
  Memory owned;        // empty when `raw` is the region's own buffer
};
using ClViewPtr = std::shared_ptr<const ClView>;

class ClRegion : public Region {
 public:
  ClRegion(const Api& api, Memory buffer, int64_t bytes, int64_t alignment, bool sub_buffers)
      : Region(bytes),
        api_(api),
        buffer_(std::move(buffer)),
        alignment_(alignment),
        sub_buffers_(sub_buffers) {}

  // For transfers, which take an offset.
  cl_mem raw() const { return buffer_.get(); }
  // [offset, offset + bytes) as a buffer object; offset must be a multiple of the alignment and the
  // part not empty. Thread-safe.
  Result<ClViewPtr> View(int64_t offset, int64_t bytes);
  // True while a view is held. Thread-safe.
  bool InUse();
  void Abandon();

 private:
  const Api& api_;
  Memory buffer_;
  const int64_t alignment_;
  const bool sub_buffers_;
  std::mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, std::weak_ptr<const ClView>> views_;
  size_t prune_at_ = 64;
};

// Fails for a view that is not part of a region of this backend.
Result<ClRegion*> RegionOf(const BufferView& view);

// A new buffer for which the driver may not have allocated memory yet: drivers allocate lazily and
// may fail on first use.
struct Commitment {
  Memory buffer;
  EventObject done;  // its outcome says whether the memory was allocated
  int64_t bytes = 0;
  Deadline since = {};

  std::string what() const { return StrCat("committing ", bytes, " bytes"); }
  void Abandon() {
    done.Abandon();
    buffer.Abandon();
  }
};

// Enqueues the first use of a new buffer, and does not wait. ResourceExhausted when the driver
// refuses at once. `host_backed` devices use host memory, and PoCL aborts the process when there is
// none, so the host's free memory is checked first.
Result<Commitment> BeginCommit(const Api& api, cl_context context, cl_command_queue queue,
                               int64_t bytes, bool host_backed);

}  // namespace oncilla::opencl
