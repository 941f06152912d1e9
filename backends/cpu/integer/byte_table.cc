// Fast ByteTable: all 256 bytes of the table in registers, where the processor looks up in 128 at a
// time (AVX-512 VBMI); a lookup from memory for each byte elsewhere.
#include "backends/cpu/fast/fast.h"
#include "backends/cpu/instruction_set.h"
#include "hwy/targets.h"

#if HWY_ARCH_X86
#include <immintrin.h>
#endif

namespace oncilla::cpu {
namespace {

#if HWY_ARCH_X86
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void LookUp(const uint8_t* x, int64_t n,
                                                                   const uint8_t* table,
                                                                   uint8_t* y) {
  const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
  const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    // The low seven bits of each byte index one half of the table; the highest bit chooses the
    // half.
    const __m512i at = _mm512_loadu_si512(x + i);
    const __m512i low = _mm512_permutex2var_epi8(t0, at, t1);
    const __m512i high = _mm512_permutex2var_epi8(t2, at, t3);
    _mm512_storeu_si512(y + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
  for (; i < n; ++i) y[i] = table[x[i]];
}
#else
void LookUp(const uint8_t*, int64_t, const uint8_t*, uint8_t*) {}
#endif

class FastByteTable : public CpuKernel {
 public:
  using CpuKernel::CpuKernel;
  std::string description() const override { return "vectors"; }

  Status Run(const Args& args) const override {
    ParallelFor(args.threads, args.in(0).elements(), 1 << 16, [&](int64_t begin, int64_t end) {
      LookUp(args.In<uint8_t>(0) + begin, end - begin, args.In<uint8_t>(1),
             args.Out<uint8_t>(0) + begin);
    });
    return Status();
  }
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastByteTable(const NodeView& node) {
  const DType to = node.outputs[0].dtype;
  if (!MayUseAvx512Vbmi() || BitsOf(to) != 8 || to == DType::kBool) return nullptr;
  return std::unique_ptr<CpuKernel>(std::make_unique<FastByteTable>(node));
}

}  // namespace oncilla::cpu
