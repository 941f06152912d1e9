// Lists: chunks shared between versions.
#include "engine/tensor/tensor_list.h"

namespace oncilla {

const Tensor& TensorList::at(int64_t index) const {
  static const Tensor kEmpty;
  const auto& chunk = chunks_[static_cast<size_t>(index / kChunk)];
  return chunk == nullptr ? kEmpty : (*chunk)[static_cast<size_t>(index % kChunk)];
}

void TensorList::Set(int64_t index, Tensor element) {
  auto& chunk = chunks_[static_cast<size_t>(index / kChunk)];
  auto changed = chunk == nullptr ? std::make_shared<Chunk>() : std::make_shared<Chunk>(*chunk);
  Tensor& slot = (*changed)[static_cast<size_t>(index % kChunk)];
  bytes_ += HeldBytesOf(element) - HeldBytesOf(slot);
  slot = std::move(element);
  chunk = std::move(changed);
}

void TensorList::Push(Tensor element) {
  Resize(size_ + 1);
  Set(size_ - 1, std::move(element));
}

void TensorList::Resize(int64_t size) {
  if (size < size_ && size % kChunk != 0) {
    // Elements cut off within the last chunk must not reappear when the list grows again.
    for (int64_t i = size; i < std::min(size_, (size / kChunk + 1) * kChunk); ++i) Set(i, Tensor());
  }
  const auto chunks = static_cast<size_t>((size + kChunk - 1) / kChunk);
  for (size_t i = chunks; i < chunks_.size(); ++i) {
    if (chunks_[i] == nullptr) continue;
    for (const Tensor& gone : *chunks_[i]) bytes_ -= HeldBytesOf(gone);
  }
  chunks_.resize(chunks);
  size_ = size;
}

int64_t HeldBytesOf(const Tensor& tensor) {
  if (!tensor.valid() || tensor.mapped()) return 0;
  if (tensor.is_list()) return tensor.list().bytes();
  if (tensor.dtype() != DType::kString) return static_cast<int64_t>(tensor.bytes().size());
  int64_t bytes = 0;
  for (const std::string& s : tensor.strings()) {
    bytes += static_cast<int64_t>(sizeof(std::string) + s.size());
  }
  return bytes;
}

}  // namespace oncilla
