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
  DeviceTensor tensor;
  tensor.desc_ = std::move(desc);
  tensor.memory_ = std::move(memory);
  return tensor;
}

Status DeviceLink::Transfer(std::span<const Upload> uploads, std::span<const Download> downloads,
                            const Tensor& memory) {
  constexpr std::chrono::milliseconds kLook(4);
  using Clock = std::chrono::steady_clock;
  if (closed_) return Closed(device_name_);
  if (queue_ == nullptr) {
    ONCILLA_ASSIGN(queue_, device_->OpenQueue());
  }
  ONCILLA_ASSIGN(const EventPtr event, device_->Transfer(*queue_, uploads, downloads));
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

void DeviceLink::Close() {
  closed_ = true;  // transfers under way see it
  MutexLock lock(&mutex_);
  queue_ = nullptr;
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
