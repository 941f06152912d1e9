// matmul_packed_columns: the product of packed/matmul.cl, with BITS 4 or 8 and constants laid out for
// lanes that are columns: weights as [chunk][column][16 bytes], CODES numbers of a column each, scales and
// zeros as [block][column], a block being block_chunks chunks. So that neighbours read neighbouring 16
// bytes, once for ROWS rows, and all of them the same x. T: f32, f16 or bf16; computed in float.
// Zeros: none (the middle), CODE_ZEROS: bytes, ZEROS: of type T. X_WIDE: rows of x begin at quads.
// A group of LANES x SLICES work-items does LANES columns, a slice every SLICES-th chunk; their sums are
// added up in their order. Group (x, y): columns, rows.
// VARIANT: -DT=f32 -DBITS=4 -DIDX=int -DROWS=1 -DLANES=8 -DSLICES=32 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=4 -DIDX=int -DROWS=1 -DLANES=32 -DSLICES=8 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=4 -DIDX=int -DROWS=2 -DLANES=8 -DSLICES=32 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=4 -DIDX=int -DROWS=4 -DLANES=8 -DSLICES=32 -DX_WIDE=1 -DCODE_ZEROS
// VARIANT: -DT=f32 -DBITS=4 -DIDX=int -DROWS=8 -DLANES=8 -DSLICES=32 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=4 -DIDX=int -DROWS=8 -DLANES=32 -DSLICES=8 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=8 -DIDX=int -DROWS=1 -DLANES=8 -DSLICES=32 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=8 -DIDX=int -DROWS=2 -DLANES=32 -DSLICES=8 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=8 -DIDX=int -DROWS=8 -DLANES=8 -DSLICES=32 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=4 -DIDX=int -DROWS=1 -DLANES=32 -DSLICES=2 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=4 -DIDX=int -DROWS=1 -DLANES=8 -DSLICES=8 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=4 -DIDX=int -DROWS=4 -DLANES=8 -DSLICES=8 -DX_WIDE=1
// VARIANT: -DT=f32 -DBITS=8 -DIDX=int -DROWS=1 -DLANES=8 -DSLICES=8 -DX_WIDE=1
// VARIANT: -DT=f16 -DBITS=4 -DIDX=int -DROWS=4 -DLANES=32 -DSLICES=8 -DX_WIDE=1 -DCODE_ZEROS
// VARIANT: -DT=bf16 -DBITS=8 -DIDX=long -DROWS=2 -DLANES=8 -DSLICES=8 -DX_WIDE=0 -DZEROS
#include "common/quad.clh"
#define CODES (128 / BITS)
#define MASK ((1u << BITS) - 1)
// A number below 2^23 as a float, without a conversion, which some devices are slow at.
#define MAGIC 8388608.0f
#define CODE(word, i) as_float(((word) >> ((i) * BITS) & MASK) | 0x4b000000u)
#ifdef ZEROS
#define WEIGHT(v) (((v) - MAGIC) - zero)
#else
#define WEIGHT(v) ((v) - base)
#endif
#if X_WIDE
#define READ_X(p) LOAD4(p)
#else
#define READ_X(p) some_of(p, 1, 4)
#endif

__kernel __attribute__((reqd_work_group_size(LANES, SLICES, 1))) void matmul_packed_columns(
    __global const MEM(T)* restrict x, __global const uint4* restrict weights,
    __global const MEM(T)* restrict scales,
#ifdef CODE_ZEROS
    __global const uchar* restrict zeros,
#elif defined(ZEROS)
    __global const MEM(T)* restrict zeros,
#endif
    __global MEM(T)* restrict y, const IDX rows, const IDX columns, const IDX depth,
    const IDX chunks, const IDX block_chunks) {
  __local float sums_of[ROWS][SLICES][LANES];
  const int lane = get_local_id(0), slice = get_local_id(1);
  const IDX column = min((IDX)get_group_id(0) * LANES + lane, columns - 1);
  const IDX first = (IDX)get_group_id(1) * ROWS;
  float sums[ROWS];
  UNROLL for (int r = 0; r < ROWS; ++r) sums[r] = 0;
  for (IDX chunk = slice; chunk < chunks; chunk += SLICES) {
    const uint4 codes = weights[chunk * columns + column];
    const uint words[4] = {codes.x, codes.y, codes.z, codes.w};
    const IDX at = chunk / block_chunks * columns + column, k = chunk * CODES;
    const float scale = LOAD(T, scales, at);
#ifdef CODE_ZEROS
    const float base = MAGIC + zeros[at];
#elif defined(ZEROS)
    const float zero = LOAD(T, zeros, at);
#else
    const float base = MAGIC + (1 << (BITS - 1));
#endif
    float part[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) part[r] = 0;
    if (k + CODES <= depth) {
      UNROLL for (int w = 0; w < 4; ++w) {
        UNROLL for (int i = 0; i < CODES / 4; i += 4) {
          const float4 weight = (float4)(WEIGHT(CODE(words[w], i)), WEIGHT(CODE(words[w], i + 1)),
                                         WEIGHT(CODE(words[w], i + 2)), WEIGHT(CODE(words[w], i + 3)));
          UNROLL for (int r = 0; r < ROWS; ++r) {
            const float4 v = READ_X(x + min(first + r, rows - 1) * depth + k + w * (CODES / 4) + i);
            part[r] = fma(v.x, weight.x, part[r]);
            part[r] = fma(v.y, weight.y, part[r]);
            part[r] = fma(v.z, weight.z, part[r]);
            part[r] = fma(v.w, weight.w, part[r]);
          }
        }
      }
    } else {
      for (int i = 0; k + i < depth; ++i) {
        const float weight = WEIGHT(CODE(words[i / (CODES / 4)], i % (CODES / 4)));
        UNROLL for (int r = 0; r < ROWS; ++r) {
          part[r] = fma(LOAD(T, x, min(first + r, rows - 1) * depth + k + i), weight, part[r]);
        }
      }
    }
    UNROLL for (int r = 0; r < ROWS; ++r) sums[r] = fma(part[r], scale, sums[r]);
  }
  UNROLL for (int r = 0; r < ROWS; ++r) sums_of[r][slice][lane] = sums[r];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = slice * LANES + lane; i < ROWS * LANES; i += SLICES * LANES) {
    const int r = i / LANES, own = i % LANES;
    const IDX j = (IDX)get_group_id(0) * LANES + own;
    if (first + r >= rows || j >= columns) continue;
    float sum = sums_of[r][0][own];
    UNROLL for (int s = 1; s < SLICES; ++s) sum += sums_of[r][s][own];
    STORE(T, y, (first + r) * columns + j, sum);
  }
}
