// Transfers outside of runs, which end when the session closes or the device hangs.
#include "engine/compile/device_tensor.h"

#include <mutex>
#include <vector>

namespace oncilla {

void KeepForever(std::shared_ptr<const void> memory) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<const void>>();
  std::lock_guard lock(mutex);
  kept->push_back(std::move(memory));
}

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
  return WithDevice(Error(Code::kFailedPrecondition, "the session that the tensor on ", device,
                          " belongs to is closed, and its memory with it"),
                    device);
}

}  // namespace

Result<DeviceTensor> DeviceLink::Allocate(TensorDesc desc, OwnerId owner) {
  if (closed_) return Closed(device_name_);
  if (desc.dtype == DType::kString || desc.dtype == DType::kInvalid || desc.bytes() == 0) {
    return InvalidArgument("a tensor ", desc, " has no bytes to be on ", device_name_);
  }
  auto memory = std::make_shared<DeviceTensor::Memory>();
  memory->link = shared_from_this();
  ONCILLA_ASSIGN(memory->allocation,
                 pool_->Allocate(desc.bytes(), {owner, MemoryCategory::kValues}));
  memory->view = memory->allocation.view();
  DeviceTensor tensor;
  tensor.desc_ = std::move(desc);
  tensor.memory_ = std::move(memory);
  return tensor;
}

Status DeviceLink::OpenQueue() {
  if (closed_) return Closed(device_name_);
  if (queue_ == nullptr) {
    ONCILLA_ASSIGN(queue_, device_->OpenQueue());
  }
  return Status();
}

Status DeviceLink::Transfer(std::span<const Upload> uploads, std::span<const Download> downloads,
                            const Tensor& memory) {
  ONCILLA_TRY(OpenQueue());
  ONCILLA_ASSIGN(const EventPtr event, device_->Transfer(*queue_, uploads, downloads));
  return AwaitTransfer(event, memory);
}

// `memory` is what the device may still read or write when this gives up.
Status DeviceLink::AwaitTransfer(const EventPtr& event, const Tensor& memory) {
  constexpr std::chrono::milliseconds kLook(4);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const Clock::time_point now = Clock::now();
    Status status = device_->Wait(event, now + kLook);
    if (status.code() != Code::kDeadlineExceeded) return status;
    const bool hangs = watchdog_.count() > 0 && now - begin >= watchdog_;
    if (!closed_ && !hangs) continue;
    queue_ = nullptr;  // waits a little
    if (!device_->Wait(event, Deadline::min()).ok()) {
      KeepForever(std::make_shared<Tensor>(memory));
    }
    if (closed_) return Closed(device_name_);
    return Error(Code::kUnavailable, "a transfer hangs, and ", device_name_, " is given up");
  }
}

Result<DeviceTensor> DeviceLink::Write(const Tensor& tensor) {
  ONCILLA_ASSIGN(DeviceTensor on_device, Allocate(tensor.desc(), owner_));
  const Upload upload{on_device.view(), tensor.bytes()};
  MutexLock lock(&mutex_);
  Status status = Transfer({&upload, 1}, {}, tensor);
  if (status.code() == Code::kUnavailable) KeepForever(on_device.memory_);
  ONCILLA_TRY(WithDevice(std::move(status), device_name_));
  return on_device;
}

Result<Tensor> DeviceLink::Read(const DeviceTensor& tensor) {
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate(tensor.desc()));
  MutexLock lock(&mutex_);
  if (closed_) return Closed(device_name_);
  const Download download{out.mutable_bytes(), tensor.view()};
  ONCILLA_TRY(WithDevice(Transfer({}, {&download, 1}, out), device_name_));
  return out;
}

Result<DeviceTensor> DeviceLink::Wrap(TensorDesc desc, void* buffer, int64_t offset) {
  if (closed_) return Closed(device_name_);
  if (objects_ == nullptr) {
    return Unsupported(device_name_, " takes no buffers of the application's");
  }
  if (desc.dtype == DType::kString || desc.dtype == DType::kInvalid || desc.bytes() == 0) {
    return InvalidArgument("a tensor ", desc, " has no bytes to be in a buffer");
  }
  const int64_t element = BytesOf(desc.dtype);
  if (element > 1 && offset % element != 0) {
    return WithStage(InvalidArgument("a tensor ", desc, " at byte ", offset,
                                     ", which is no multiple of its elements' ", element),
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
    closed = closed_;
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
  if (found == wrapped_.end()) return;  // Close() has had it
  // Fails while a recording still has a view, and is then done when that goes.
  (void)device_->ReleaseRegion(std::move(found->second)).ok();
  wrapped_.erase(found);
}

Result<bool> DeviceLink::Fill(const DeviceTensor& to, const RunValue& from) {
  const bool here = from.on_device() && from.device().link().get() == this;
  Tensor host;
  if (!here) {
    ONCILLA_ASSIGN(host, from.ToHost());
  }
  MutexLock lock(&mutex_);
  ONCILLA_TRY(OpenQueue());
  if (!here) {
    const Upload upload{to.view(), host.bytes()};
    ONCILLA_TRY(WithDevice(Transfer({&upload, 1}, {}, host), device_name_));
    return false;
  }
  if (objects_ == nullptr) {
    return Unsupported(device_name_, " does not copy from memory to memory");
  }
  const DeviceCopy copy{to.view(), from.device().view()};
  if (objects_->Overlap(copy.to, copy.from)) {
    // An input that is handed on as it is, to where it lies.
    if (copy.to.offset == copy.from.offset && copy.to.bytes == copy.from.bytes) return true;
    return InvalidArgument("an input that is handed on overlaps the tensor given for it");
  }
  ONCILLA_ASSIGN(const EventPtr event, objects_->Copy(*queue_, {&copy, 1}));
  ONCILLA_TRY(WithDevice(AwaitTransfer(event, host), device_name_));
  return true;
}

Result<std::pair<void*, int64_t>> DeviceLink::BufferOf(const DeviceTensor& tensor) {
  MutexLock lock(&mutex_);
  if (closed_) return Closed(device_name_);
  if (objects_ == nullptr) {
    return Unsupported(device_name_, " has no buffers that the application could know");
  }
  return objects_->MemoryOf(tensor.view());
}

bool DeviceLink::Overlap(const DeviceTensor& a, const DeviceTensor& b) {
  return objects_ != nullptr && objects_->Overlap(a.view(), b.view());
}

void DeviceLink::Close() {
  closed_ = true;  // transfers under way see it
  {
    MutexLock lock(&mutex_);
    queue_ = nullptr;
  }
  MutexLock lock(&wrapped_mutex_);
  for (auto& [key, region] : wrapped_) (void)device_->ReleaseRegion(std::move(region)).ok();
  wrapped_.clear();
}

Result<Tensor> DeviceTensor::Read() const {
  if (!valid()) return InvalidArgument("there is no tensor to read");
  return memory_->link->Read(*this);
}

DeviceTensor DeviceTensor::Reshaped(Shape shape) const {
  DeviceTensor t = *this;
  t.desc_.shape = std::move(shape);
  return t;
}

}  // namespace oncilla
