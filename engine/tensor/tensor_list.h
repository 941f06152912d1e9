// TensorList: a list of tensors of one dtype as an immutable value.
//
// Loops write a list element by element, and holders of an older version must not see it. So a list
// is divided into chunks that lists share: changing one element copies its chunk and the table of
// chunks, not the list. An element may be empty (reserved and not yet written).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/tensor/tensor.h"

namespace oncilla {

class TensorList {
 public:
  // The most elements that a list may have.
  static constexpr int64_t kMaxSize = int64_t{1} << 24;

  // `element` is what is known about the shapes of the elements.
  explicit TensorList(DType dtype, PartialShape element = {})
      : dtype_(dtype), element_(std::move(element)) {}

  DType dtype() const { return dtype_; }
  const PartialShape& element() const { return element_; }
  void set_element(PartialShape element) { element_ = std::move(element); }
  int64_t size() const { return size_; }
  // The bytes of all elements (HeldBytesOf); memory that several versions share counts in each.
  int64_t bytes() const { return bytes_; }

  // Invalid when the element is empty. The index must be in [0, size()).
  const Tensor& at(int64_t index) const;
  // The index must be in [0, size()).
  void Set(int64_t index, Tensor element);
  void Push(Tensor element);
  // New elements are empty; elements beyond `size` are dropped. 0 <= size <= kMaxSize.
  void Resize(int64_t size);

 private:
  static constexpr int64_t kChunk = 32;
  using Chunk = std::array<Tensor, kChunk>;

  DType dtype_;
  PartialShape element_;
  int64_t size_ = 0;
  int64_t bytes_ = 0;
  std::vector<std::shared_ptr<const Chunk>> chunks_;  // null: all empty
};

// The memory that a value holds: 0 for pages of a mapped file, which are not the process's own.
int64_t HeldBytesOf(const Tensor& tensor);

}  // namespace oncilla
