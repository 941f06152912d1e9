// One task of FastAttention: a block of queries that share keys and values, on vectors.
#pragma once

#include <cstdint>

namespace oncilla::cpu {

// The most queries of a block on any instruction set, and the largest heads.
inline constexpr int kMostAttentionQueries = 32;
inline constexpr int64_t kMostAttentionSize = 256;

// T: float, Half or BFloat16. Elements of a row are contiguous.
template <class T>
struct AttentionBlock {
  int queries = 0;  // 1 .. AttentionQueries()
  const T* q[kMostAttentionQueries];
  T* y[kMostAttentionQueries];
  const T* mask[kMostAttentionQueries];  // of key 0; not read without has_mask
  float sink[kMostAttentionQueries];     // minus infinity: none
  // The keys that each query sees.
  int32_t first[kMostAttentionQueries], end[kMostAttentionQueries];

  const T *k = nullptr, *v = nullptr;  // row 0
  int64_t k_row = 0, v_row = 0;        // elements from one row to the next
  int64_t size = 0, value_size = 0;    // 1 .. kMostAttentionSize
  bool has_mask = false;
  int64_t mask_key = 0;  // elements from one key of the mask to the next
  float scale = 1, softcap = 0;
  bool zero_blind = false;
};

// The number of queries in a block on this machine.
int AttentionQueries();
template <class T>
void AttendBlock(const AttentionBlock<T>& block);

}  // namespace oncilla::cpu
