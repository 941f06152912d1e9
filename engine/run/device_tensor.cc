// Transfers outside of runs. They end early with the caller's control, when the session closes, or
// when the device hangs.
#include "engine/run/device_tensor.h"

#include <algorithm>

#include "engine/base/caught.h"
#include "engine/compile/run_control.h"

namespace oncilla {

DeviceLink::DeviceLink(Device* device, Pool* pool, std::string device_name, OwnerId owner,
                       std::chrono::milliseconds watchdog)
    : device_(device),
      objects_(dynamic_cast<HostObjects*>(device)),
      pool_(pool),
      device_name_(std::move(device_name)),
      owner_(owner),
      watchdog_(watchdog) {}

DeviceLink::~DeviceLink() = default;

namespace {

Status Closed(const std::string& device) {
  return WithDevice(Error(Code::kFailedPrecondition, "the session is closed, and with it the memory on ", device,
                          " that tensors of the session had there"),
                    device);
}

}  // namespace

Status DeviceLink::Enter() {
  MutexLock lock(&mutex_);
  if (closed()) return Closed(device_name_);
  ++active_;
  return Status();
}

void DeviceLink::Leave() {
  MutexLock lock(&mutex_);
  --active_;
}

Result<DeviceTensor> DeviceLink::Allocate(TensorDesc desc, OwnerId owner, const EarlyEnd& end) {
  if (desc.dtype == DType::kString || desc.dtype == DType::kInvalid || desc.bytes() == 0) {
    return InvalidArgument("a tensor ", desc, " has no bytes to be on ", device_name_);
  }
  auto memory = std::make_shared<DeviceTensor::Memory>();
  memory->link = shared_from_this();
  ONCILLA_TRY(Enter());
  auto allocation = pool_->Allocate(desc.bytes(), {owner, MemoryCategory::kValues}, end);
  Leave();
  if (!allocation.ok()) return allocation.status();
  memory->allocation = *std::move(allocation);
  memory->view = memory->allocation.view();
  DeviceTensor tensor;
  tensor.desc_ = std::move(desc);
  tensor.memory_ = std::move(memory);
  return tensor;
}

Status DeviceLink::Do(const std::function<Result<EventPtr>(Queue&)>& submit,
                      std::shared_ptr<const void> used, const EarlyEnd& end) {
  std::unique_ptr<Queue> queue;
  std::vector<Late> over;  // destroyed after the lock is released
  {
    MutexLock lock(&mutex_);
    if (closed()) return Closed(device_name_);
    for (size_t i = late_.size(); i-- > 0;) {
      if (!device_->Poll(late_[i].event)) continue;
      over.push_back(std::move(late_[i]));
      late_.erase(late_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (idle_.empty()) {
      ONCILLA_ASSIGN(queue, device_->OpenQueue());
    } else {
      queue = std::move(idle_.back());
      idle_.pop_back();
    }
    ++active_;
  }
  const Result<EventPtr> event = Fenced([&] { return submit(*queue); });
  const Status status = event.ok() ? Fenced([&] { return Await(*event, end); }) : event.status();
  const bool is_over = !event.ok() || device_->Poll(*event);
  MutexLock lock(&mutex_);
  --active_;
  if (is_over) {
    idle_.push_back(std::move(queue));
  } else {
    late_.push_back({std::move(queue), *event, std::move(used)});
  }
  return WithDevice(status, device_name_);
}

Status DeviceLink::Await(const EventPtr& event, const EarlyEnd& end) {
  constexpr std::chrono::milliseconds kLook(4);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const Clock::time_point now = Clock::now();
    Status status = device_->Wait(event, std::min(end.deadline, now + kLook));
    if (status.code() != Code::kDeadlineExceeded) return status;
    if (closed()) return Closed(device_name_);
    EarlyEnd watched = end;
    watched.watchdog = watchdog_;
    ONCILLA_TRY(MayWait(watched, begin, "a transfer"));
  }
}

Result<DeviceTensor> DeviceLink::Write(const Tensor& tensor) {
  EarlyEnd end;
  end.stop = closing_;
  end.watchdog = watchdog_;
  ONCILLA_ASSIGN(DeviceTensor on_device, Allocate(tensor.desc(), owner_, end));
  const Upload upload{on_device.view(), tensor.bytes()};
  const auto used = std::make_shared<std::pair<Tensor, DeviceTensor>>(tensor, on_device);
  ONCILLA_TRY(Do([&](Queue& queue) { return device_->Transfer(queue, {&upload, 1}, {}); }, used));
  return on_device;
}

Result<Tensor> DeviceLink::Read(const DeviceTensor& tensor, const EarlyEnd& end) {
  if (closed()) return Closed(device_name_);
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate(tensor.desc()));
  const Download download{out.mutable_bytes(), tensor.view()};
  const auto used = std::make_shared<std::pair<Tensor, DeviceTensor>>(out, tensor);
  ONCILLA_TRY(Do(
      [&](Queue& queue) {
        return device_->Transfer(queue, {}, {&download, 1});
      },
      used, end));
  return out;
}

Result<DeviceTensor> DeviceLink::Wrap(TensorDesc desc, void* buffer, int64_t offset) {
  if (closed()) return Closed(device_name_);
  if (objects_ == nullptr) {
    return Unsupported(device_name_, " takes no buffers of the application's");
  }
  if (desc.dtype == DType::kString || desc.dtype == DType::kInvalid || desc.bytes() == 0) {
    return InvalidArgument("a tensor ", desc, " has no bytes to be in a buffer");
  }
  const int64_t element = BytesOf(desc.dtype);
  if (element > 1 && offset % element != 0) {
    return WithStage(InvalidArgument("a tensor ", desc, " at byte ", offset,
                                     ", which is not a multiple of its elements' ", element),
                     Stage::kOptions);
  }
  ONCILLA_ASSIGN(WrappedMemory wrapped, objects_->WrapMemory(buffer, offset, desc.bytes()));
  auto memory = std::make_shared<DeviceTensor::Memory>();
  memory->view = wrapped.view;
  memory->readable = wrapped.readable;
  memory->writable = wrapped.writable;
  DeviceTensor tensor;
  tensor.desc_ = std::move(desc);
  const Region* region = wrapped.region.get();
  bool closed = false;
  {
    MutexLock lock(&wrapped_mutex_);
    closed = this->closed();
    if (!closed) wrapped_[region] = std::move(wrapped.region);
  }
  if (closed) {
    ONCILLA_TRY(device_->ReleaseRegion(std::move(wrapped.region)));
    return Closed(device_name_);
  }
  memory->link = shared_from_this();
  memory->wrapped = region;
  tensor.memory_ = std::move(memory);
  return tensor;
}

void DeviceLink::ReleaseWrapped(const Region* region) {
  MutexLock lock(&wrapped_mutex_);
  const auto found = wrapped_.find(region);
  if (found == wrapped_.end()) return;  // Close() has already released it
  // Fails while a recording still has a view; the region is then released with the recording.
  (void)device_->ReleaseRegion(std::move(found->second)).ok();
  wrapped_.erase(found);
}

Result<bool> DeviceLink::Fill(const DeviceTensor& to, const RunValue& from) {
  const bool here = from.on_device() && from.device().link().get() == this;
  Tensor host;
  if (!here) {
    ONCILLA_ASSIGN(host, from.ToHost());
  }
  if (!here) {
    const Upload upload{to.view(), host.bytes()};
    const auto used = std::make_shared<std::pair<Tensor, DeviceTensor>>(host, to);
    ONCILLA_TRY(Do([&](Queue& queue) { return device_->Transfer(queue, {&upload, 1}, {}); }, used));
    return false;
  }
  if (objects_ == nullptr) {
    return Unsupported(device_name_, " does not copy from memory to memory");
  }
  const DeviceCopy copy{to.view(), from.device().view()};
  if (objects_->Overlap(copy.to, copy.from)) {
    // An input passed on unchanged to its own address needs no copy.
    if (copy.to.offset == copy.from.offset && copy.to.bytes == copy.from.bytes) return true;
    return InvalidArgument("an input that is handed on overlaps the tensor given for it");
  }
  const auto used = std::make_shared<std::pair<DeviceTensor, DeviceTensor>>(to, from.device());
  ONCILLA_TRY(Do([&](Queue& queue) { return objects_->Copy(queue, {&copy, 1}); }, used));
  return true;
}

Result<std::pair<void*, int64_t>> DeviceLink::BufferOf(const DeviceTensor& tensor) {
  MutexLock lock(&mutex_);
  if (closed()) return Closed(device_name_);
  if (objects_ == nullptr) {
    return Unsupported(device_name_, " has no buffers that the application could know");
  }
  return objects_->MemoryOf(tensor.view());
}

bool DeviceLink::Overlap(const DeviceTensor& a, const DeviceTensor& b) {
  return objects_ != nullptr && objects_->Overlap(a.view(), b.view());
}

void DeviceLink::Close() {
  closing_.Cancel();  // transfers under way notice it
  std::vector<Late> late;
  {
    MutexLock lock(&mutex_);
    mutex_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return active_ == 0; });
    idle_.clear();
    late.swap(late_);
  }
  for (Late& l : late) {
    l.queue = nullptr;  // waits a bounded time for its work
    if (WasGivenUp(*device_, l.event)) KeepForever(std::move(l.used));
  }
  late.clear();
  MutexLock lock(&wrapped_mutex_);
  for (auto& [key, region] : wrapped_) (void)device_->ReleaseRegion(std::move(region)).ok();
  wrapped_.clear();
}

Result<Tensor> DeviceTensor::Read(const EarlyEnd& end) const {
  if (!valid()) return InvalidArgument("there is no tensor to read");
  return memory_->link->Read(*this, end);
}

DeviceTensor DeviceTensor::Reshaped(Shape shape) const {
  DeviceTensor t = *this;
  t.desc_.shape = std::move(shape);
  return t;
}

}  // namespace oncilla
