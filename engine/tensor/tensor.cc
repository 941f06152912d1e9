// Host tensors: allocation, views, and conversion of small ones to numbers.
#include "engine/tensor/tensor.h"

#include <cstdlib>
#include <cstring>

#include "engine/base/free_memory.h"
#include "engine/base/work_limits.h"
#include "engine/tensor/numbers.h"
#include "engine/tensor/result_memory.h"
#include "engine/tensor/tensor_list.h"

namespace oncilla {

int64_t TensorDesc::bytes() const {
  // Packed types round up to whole bytes once per tensor.
  const int64_t bits = SaturatingMul(elements(), BitsOf(dtype));
  return bits == std::numeric_limits<int64_t>::max() ? bits : (bits + 7) / 8;
}

namespace {

constexpr int64_t kAlignment = 64;

// Frees a tensor's memory, or returns it to the ResultMemory that it came from, and returns its
// bytes to the account that was charged for them.
struct FreeCounted {
  std::shared_ptr<HostAccount> account;
  int64_t bytes = 0;
  ResultMemory::Block block;
  std::weak_ptr<ResultMemory> kept;
  void operator()(const void*) const {
    if (const auto keeper = kept.lock()) {
      keeper->Keep(block);
    } else {
      std::free(block.allocated);
    }
    if (account != nullptr) account->Give(bytes);
  }
};

// Takes memory for block.bytes and says whether its first `bytes` are zero. Memory fresh from the
// system is known to be, so nothing is written to it here. A very large block is left for the
// caller to fill: touching its pages might outlast a deadline. block.allocated is null afterwards
// if there is no memory.
bool AllocateZeros(int64_t bytes, ResultMemory::Block& block) {
  constexpr int64_t kLeast = int64_t{128} << 10, kLarge = int64_t{4} << 20;
  constexpr int64_t kMost = int64_t{256} << 20;
  if (bytes < kLeast || bytes > kMost) {
    block.data = std::aligned_alloc(kAlignment, (block.bytes / kAlignment + 1) * kAlignment);
    block.allocated = block.data;
    return false;
  }
  block.allocated = std::calloc(static_cast<size_t>(block.bytes + 2 * kAlignment), 1);
  if (block.allocated == nullptr) return false;
  const auto first = reinterpret_cast<uintptr_t>(block.allocated);
  block.data = reinterpret_cast<void*>((first + kAlignment - 1) / kAlignment * kAlignment);
  bytes < kLarge ? AskForPages(block.data, bytes) : AskForLargePages(block.data, bytes);
  return true;
}

struct CountedStrings {
  HostCharge charge;
  std::vector<std::string> values;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const TensorDesc& desc) {
  return out << desc.dtype << desc.shape;
}

Result<Tensor> Tensor::Allocate(TensorDesc desc) { return AllocateFrom(std::move(desc), nullptr); }

Result<Tensor> Tensor::AllocateResult(TensorDesc desc, const std::shared_ptr<ResultMemory>& kept) {
  return AllocateFrom(std::move(desc), &kept);
}

// A result is written whole before anybody reads it. With `kept`, null or not, the tensor is one:
// its memory may be that of an earlier one, and a small one is not filled.
Result<Tensor> Tensor::AllocateFrom(TensorDesc desc, const std::shared_ptr<ResultMemory>* kept) {
  if (desc.dtype == DType::kString) {
    const auto count = static_cast<size_t>(desc.elements());
    if (desc.elements() > (int64_t{1} << 32)) return Exhausted("a tensor of ", count, " strings");
    HostCharge charge;
    ONCILLA_TRY(charge.Grow(SaturatingMul(desc.elements(), sizeof(std::string))));
    std::vector<std::string> values(count);
    charge.Clear();  // charged again with its contents
    return Strings(desc.shape, std::move(values));
  }
  const int64_t bytes = desc.bytes();
  const bool small_result = kept != nullptr && bytes < ResultMemory::kLeast;
  if (small_result || (kept != nullptr && *kept == nullptr)) kept = nullptr;
  const std::shared_ptr<HostAccount>& account = WorkScope::Current().memory;
  if (account != nullptr) {
    const Status taken = account->Take(bytes);
    if (!taken.ok()) return In(taken, StrCat("no host memory for ", desc));
  }
  FreeCounted free{account, bytes, {}, {}};
  bool written = false;
  if (kept != nullptr) {
    free.kept = *kept;
    free.block = (*kept)->Take(bytes);
    written = free.block.allocated != nullptr;
  }
  if (!written && bytes <= (int64_t{1} << 46)) {
    free.block.bytes = kept != nullptr ? ResultMemory::Rounded(bytes) : bytes;
    written = AllocateZeros(bytes, free.block);
  }
  if (free.block.data == nullptr) {
    if (account != nullptr) account->Give(bytes);
    return Exhausted("no host memory for ", desc, " (", bytes, " bytes)");
  }
  Tensor t;
  void* const data = free.block.data;
  t.owner_ = std::shared_ptr<const void>(data, std::move(free));
  if (!written && !small_result) ONCILLA_TRY(FillWithZeros(data, bytes));
  t.desc_ = std::move(desc);
  t.data_ = static_cast<const std::byte*>(data);
  t.size_ = static_cast<size_t>(bytes);
  t.allocated_ = true;
  return t;
}

Tensor Tensor::View(TensorDesc desc, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> owner) {
  Tensor t;
  t.desc_ = std::move(desc);
  t.owner_ = std::move(owner);
  t.data_ = bytes.data();
  t.size_ = bytes.size();
  return t;
}

Tensor Tensor::Strings(Shape shape, std::vector<std::string> values) {
  auto counted = std::make_shared<CountedStrings>();
  auto bytes = static_cast<int64_t>(values.size() * sizeof(std::string));
  for (const std::string& s : values) bytes += static_cast<int64_t>(s.size());
  if (Status s = counted->charge.Grow(bytes); !s.ok()) throw WorkRefused(std::move(s));
  counted->values = std::move(values);
  Tensor t;
  t.desc_ = {DType::kString, std::move(shape)};
  t.strings_ = std::shared_ptr<const std::vector<std::string>>(counted, &counted->values);
  return t;
}

Tensor Tensor::OfList(TensorList list) {
  Tensor t;
  t.desc_ = {list.dtype(), {list.size()}};
  t.list_ = std::make_shared<const TensorList>(std::move(list));
  return t;
}

Tensor Tensor::Copy(TensorDesc desc, std::span<const std::byte> bytes) {
  auto owned = std::make_shared<HostVector<std::byte>>(bytes.begin(), bytes.end());
  return View(std::move(desc), *owned, owned);
}

Tensor Tensor::Int64s(std::span<const int64_t> values) {
  return Of(DType::kI64, {static_cast<int64_t>(values.size())}, values);
}

Tensor Tensor::Scalar(float value) {
  return Of(DType::kF32, {}, std::span<const float>(&value, 1));
}

Tensor Tensor::ScalarInt64(int64_t value) {
  return Of(DType::kI64, {}, std::span<const int64_t>(&value, 1));
}

Tensor Tensor::Reshaped(Shape shape) const {
  Tensor t = *this;
  t.desc_.shape = std::move(shape);
  return t;
}

Result<std::vector<int64_t>> ToInt64s(const Tensor& tensor) {
  if (!HoldsInts(tensor.dtype())) {
    return InvalidArgument("expected integers, got ", tensor.dtype());
  }
  std::vector<int64_t> out(static_cast<size_t>(tensor.elements()));
  LoadInts(tensor.dtype(), tensor.bytes().data(), 0, out);
  if (tensor.dtype() == DType::kU64) {
    for (int64_t v : out) {
      if (v < 0) return InvalidArgument("a uint64 is above the largest int64");
    }
  }
  return out;
}

Result<std::vector<double>> ToDoubles(const Tensor& tensor) {
  if (!HoldsNumbers(tensor.dtype())) {
    return InvalidArgument("a tensor of ", tensor.dtype(), " is not a number");
  }
  std::vector<double> out(static_cast<size_t>(tensor.elements()));
  LoadNumbers(tensor.dtype(), tensor.bytes().data(), 0, out);
  return out;
}

}  // namespace oncilla
